"""Losses against explicit formulas, their own conjugates, and the compiled terms."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from coordwise.kernels import Terms
from coordwise.losses import (
    L2L1,
    LOSSES,
    Absolute,
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    Loss,
    Quantile,
    SmoothHinge,
    Squared,
    SquaredEpsilonInsensitive,
    SquaredHinge,
    get_loss,
)

CASES = {
    "squared": Squared(),
    "l2l1": L2L1(),
    "huber": Huber(),
    "huber_0.3": Huber(0.3),
    "absolute": Absolute(),
    "quantile": Quantile(),
    "quantile_0.2": Quantile(0.2),
    "quantile_0": Quantile(0.0),
    "quantile_1": Quantile(1.0),
    "logistic": Logistic(),
    "squared_hinge": SquaredHinge(),
    "smooth_hinge": SmoothHinge(),
    "smooth_hinge_0.25": SmoothHinge(0.25),
    "hinge": Hinge(),
    "epsilon_insensitive": EpsilonInsensitive(),
    "epsilon_insensitive_0": EpsilonInsensitive(0.0),
    "epsilon_insensitive_1.5": EpsilonInsensitive(1.5),
    "squared_epsilon_insensitive": SquaredEpsilonInsensitive(),
    "squared_epsilon_insensitive_0.7": SquaredEpsilonInsensitive(0.7),
}
each = pytest.mark.parametrize("loss", CASES.values(), ids=CASES.keys())


def formula(loss, t, b):
    """phi(t; b), written down from the literature and not from the library's shapes."""
    t, b = np.broadcast_arrays(np.asarray(t, float), np.asarray(b, float))
    r, m = t - b, 1 - b * t
    match loss:
        case Squared():
            return r**2 / 2
        case L2L1():
            return r**2 / 2 + np.abs(r)
        case Huber(delta):
            return np.where(np.abs(r) <= delta, r**2 / 2, delta * np.abs(r) - delta**2 / 2)
        case Absolute():
            return np.abs(r)
        case Quantile(q):
            return q * np.maximum(b - t, 0) + (1 - q) * np.maximum(t - b, 0)
        case Logistic():
            return np.log1p(np.exp(-np.abs(t))) + np.maximum(-b * t, 0)
        case SquaredHinge():
            return np.maximum(m, 0) ** 2 / 2
        case SmoothHinge(delta):
            return np.where(m <= 0, 0.0, np.where(m <= delta, m**2 / (2 * delta), m - delta / 2))
        case Hinge():
            return np.maximum(m, 0)
        case EpsilonInsensitive(epsilon):
            return np.maximum(np.abs(r) - epsilon, 0)
        case SquaredEpsilonInsensitive(epsilon):
            return np.maximum(np.abs(r) - epsilon, 0) ** 2 / 2
    raise AssertionError(f"no formula for {loss}")


def interval(loss, b):
    """The closure of the slopes of phi(.; b): the domain of the conjugate."""
    match loss:
        case Huber(delta):
            return -delta, delta
        case Absolute() | EpsilonInsensitive():
            return -1.0, 1.0
        case Quantile(q):
            return -q, 1 - q
        case Logistic() | SmoothHinge() | Hinge():
            return (-1.0, 0.0) if b > 0 else (0.0, 1.0)
        case SquaredHinge():
            return (-np.inf, 0.0) if b > 0 else (0.0, np.inf)
    return -np.inf, np.inf


def kinks(loss, b):
    """Where phi' is not differentiable."""
    match loss:
        case L2L1() | Absolute() | Quantile():
            return [b]
        case Huber(delta):
            return [b - delta, b + delta]
        case EpsilonInsensitive(epsilon) | SquaredEpsilonInsensitive(epsilon):
            return [b - epsilon, b + epsilon]
        case SquaredHinge() | Hinge():
            return [b]
        case SmoothHinge(delta):
            return [b, b * (1 - delta)]
    return []


# (smoothness of phi, strong convexity of phi*, strong convexity of phi)
CONSTANTS = {
    Squared: lambda loss: (1.0, 1.0, 1.0),
    L2L1: lambda loss: (np.inf, 0.0, 1.0),
    Huber: lambda loss: (1.0, 1.0, 0.0),
    Absolute: lambda loss: (np.inf, 0.0, 0.0),
    Quantile: lambda loss: (np.inf, 0.0, 0.0),
    Logistic: lambda loss: (0.25, 4.0, 0.0),
    SquaredHinge: lambda loss: (1.0, 1.0, 0.0),
    SmoothHinge: lambda loss: (1 / loss.delta, loss.delta, 0.0),
    Hinge: lambda loss: (np.inf, 0.0, 0.0),
    EpsilonInsensitive: lambda loss: (np.inf, 0.0, 0.0),
    SquaredEpsilonInsensitive: lambda loss: (1.0, 1.0, 0.0),
}


def targets(loss):
    return [-1.0, 1.0] if loss.classification else [-1.5, 0.0, 0.7]


def points_inside(loss, b, count=41):
    """Points of the domain of phi*(.; b), both ends included where there are any."""
    low, high = interval(loss, b)
    return np.linspace(max(low, -3.0), min(high, 3.0), count)


def numerical_conjugate(loss, y, b, reach=60.0, rounds=9, count=401):
    """sup over t of t y - phi(t; b), by a grid that closes in on the best t (the function is concave in t)."""
    y = np.asarray(y, float)
    center, width = np.zeros_like(y), np.full_like(y, reach)
    for _ in range(rounds):
        t = center[:, None] + width[:, None] * np.linspace(-1, 1, count)
        value = t * y[:, None] - formula(loss, t, b)
        center = t[np.arange(len(y)), value.argmax(1)]
        width = width * (3 / count)
    return value.max(1)


real = st.floats(-50, 50)
weights = st.sampled_from([1.0, 0.01, 2.0, 7.5])


@st.composite
def loss_and_target(draw):
    loss = draw(st.sampled_from(list(CASES.values())))
    return loss, draw(st.sampled_from([-1.0, 1.0]) if loss.classification else st.floats(-5, 5))


# --- phi itself -------------------------------------------------------------------------------------------------------


def test_the_cases_cover_every_loss():
    assert {type(loss) for loss in CASES.values()} == set(LOSSES.values())
    assert {loss.name for loss in CASES.values()} == set(LOSSES)


@each
def test_value_is_the_formula(loss):
    t = np.concatenate([np.linspace(-6, 6, 241), np.geomspace(1e-12, 1e8, 21), -np.geomspace(1e-12, 1e8, 21)])
    for b in targets(loss):
        np.testing.assert_allclose(loss.value(t, b), formula(loss, t, b), rtol=1e-12, atol=1e-15)


@each
def test_derivative_is_the_slope_of_the_formula(loss):
    t, h = np.linspace(-6, 6, 483), 1e-6
    for b in targets(loss):
        away = (
            np.all([np.abs(t - k) > 10 * h for k in kinks(loss, b)], axis=0) if kinks(loss, b) else np.full(483, True)
        )
        slope = (formula(loss, t + h, b) - formula(loss, t - h, b)) / (2 * h)
        assert away.sum() > 400
        np.testing.assert_allclose(loss.derivative(t, b)[away], slope[away], atol=1e-8)


@each
def test_second_derivative_is_the_slope_of_the_derivative(loss):
    h = 1e-6
    for b in targets(loss):
        t = np.linspace(-4.02, 4.03, 97)
        smooth = np.array([np.all(np.abs(np.asarray(kinks(loss, b), float) - at) > 10 * h) for at in t])
        t = t[smooth]
        expected = (loss.derivative(t + h, b) - loss.derivative(t - h, b)) / (2 * h)
        np.testing.assert_allclose(loss.second_derivative(t, b), expected, rtol=1e-5, atol=1e-8)
        np.testing.assert_allclose(loss.second_derivative(t, b, 2.5), 2.5 * loss.second_derivative(t, b), rtol=1e-15)
        assert np.all(loss.second_derivative(t, b) >= 0)


@each
def test_derivative_at_a_kink_is_the_smallest_subgradient(loss):
    h = 1e-7
    for b in targets(loss) if loss.classification else [0.0]:  # at 0 the kinks are where they are, without rounding
        for kink in kinks(loss, b):
            left = (formula(loss, kink, b) - formula(loss, kink - h, b)) / h
            right = (formula(loss, kink + h, b) - formula(loss, kink, b)) / h
            smallest = np.clip(0.0, left, right)
            assert loss.derivative(kink, b) == pytest.approx(smallest, abs=1e-6)


@each
def test_value_and_derivative_are_convex_and_monotone(loss):
    t = np.linspace(-8, 8, 2001)
    for b in targets(loss):
        assert np.all(np.diff(loss.derivative(t, b)) >= -1e-14)
        value = loss.value(t, b)
        assert np.all(value[2:] - 2 * value[1:-1] + value[:-2] >= -1e-13)
        assert np.all(value >= 0)


# --- phi* -------------------------------------------------------------------------------------------------------------


@each
def test_conjugate_is_the_supremum(loss):
    for b in targets(loss):
        y = points_inside(loss, b)
        found = loss.conjugate(y, b)
        assert np.all(np.isfinite(found))
        sup = numerical_conjugate(loss, y, b)
        # the supremum at the ends of an interval may only be reached at infinity (logistic)
        np.testing.assert_allclose(found[1:-1], sup[1:-1], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found, sup, rtol=1e-9, atol=1e-8)


@each
def test_conjugate_is_finite_inside_its_domain_only(loss):
    for b in targets(loss):
        for weight in (1.0, 2.5):
            low, high = loss.domain(b, weight)
            wanted_low, wanted_high = interval(loss, b)
            assert (low, high) == (weight * wanted_low, weight * wanted_high)
            for end, outwards in ((low, -1), (high, 1)):
                if np.isinf(end):
                    assert np.isfinite(loss.conjugate(outwards * 1e6, b, weight))
                else:
                    assert np.isfinite(loss.conjugate(end, b, weight))
                    beyond = np.nextafter(end, outwards * np.inf)
                    assert loss.conjugate(beyond, b, weight) == np.inf
                    assert loss.conjugate(end + outwards * 1e-3, b, weight) == np.inf
            # outside, the supremum indeed grows without bound
            if np.isfinite(high):
                t = np.array([1e3, 1e6])
                grows = t * (wanted_high + 1e-3) - formula(loss, t, b)
                assert grows[1] > grows[0] + 100


@settings(deadline=None, max_examples=400)
@given(case=loss_and_target(), t=real, y=real, weight=weights)
def test_fenchel_young_inequality(case, t, y, weight):
    loss, b = case
    low, high = loss.domain(b, weight)
    for point in (y, np.clip(y, low, high), np.clip(y / 50, low, high)):
        left = loss.value(t, b, weight) + loss.conjugate(point, b, weight)
        assert left >= t * point - 1e-12 * (1 + abs(t * point))


@settings(deadline=None, max_examples=400)
@given(case=loss_and_target(), t=real, weight=weights)
def test_fenchel_young_equality_at_the_derivative(case, t, weight):
    loss, b = case
    y = loss.derivative(t, b, weight)
    value, conjugate = loss.value(t, b, weight), loss.conjugate(y, b, weight)
    assert np.isfinite(conjugate)
    assert value + conjugate == pytest.approx(float(t * y), abs=1e-12 * (1 + abs(value) + abs(conjugate)))


# --- constants --------------------------------------------------------------------------------------------------------


@each
def test_smoothness_is_the_largest_curvature(loss):
    smoothness = CONSTANTS[type(loss)](loss)[0]
    assert loss.smoothness == smoothness
    steepest = {}
    for h in (1e-3, 1e-5):
        steepest[h] = 0.0
        for b in targets(loss):
            corners = [k + h * np.linspace(-3, 3, 61) for k in kinks(loss, b)]
            around = np.concatenate([np.linspace(-6, 6, 2001), *corners])
            slopes = (loss.derivative(around + h / 2, b) - loss.derivative(around - h / 2, b)) / h
            steepest[h] = max(steepest[h], slopes.max())
    if np.isinf(smoothness):
        assert steepest[1e-5] > 50 * steepest[1e-3] > 1000
    else:
        assert steepest[1e-3] == pytest.approx(smoothness, rel=1e-5)


@each
def test_gamma_is_the_least_curvature_of_the_conjugate(loss):
    gamma = CONSTANTS[type(loss)](loss)[1]
    assert loss.gamma == gamma
    assert loss.gamma == (0.0 if np.isinf(loss.smoothness) else pytest.approx(1 / loss.smoothness))
    least = np.inf
    for b in targets(loss):
        y = points_inside(loss, b, 2001)
        h = y[1] - y[0]
        value = loss.conjugate(y, b)
        least = min(least, float(np.min((value[2:] - 2 * value[1:-1] + value[:-2]) / h**2)))
    assert least == pytest.approx(gamma, abs=1e-5 * (1 + gamma))


@each
def test_strong_convexity_is_the_least_curvature(loss):
    wanted = CONSTANTS[type(loss)](loss)[2]
    assert loss.strong_convexity == wanted
    t = np.linspace(-40, 40, 4001)
    least = min(np.min(np.diff(loss.derivative(t, b)) / np.diff(t)) for b in targets(loss))
    assert least == pytest.approx(wanted, abs=1e-9)


# --- proximal steps ---------------------------------------------------------------------------------------------------


@each
@pytest.mark.parametrize("weight", [1.0, 0.3, 4.0])
@pytest.mark.parametrize("step", [1e-3, 0.5, 1.0, 30.0])
def test_prox_conjugate_is_optimal(loss, step, weight):
    z = np.linspace(-5, 5, 21)
    for b in targets(loss):
        y = loss.prox_conjugate(z, step, b, weight)
        low, high = (weight * end for end in interval(loss, b))
        assert np.all((low <= y) & (y <= high))

        def objective(point, z=z, b=b):
            return step * loss.conjugate(point, b, weight) + (point - z) ** 2 / 2

        # first-order condition: one-sided slopes embrace zero, or the end of the domain stops the step
        h = 1e-6 * weight
        with np.errstate(invalid="ignore"):
            right = np.where(y + h > high, np.inf, (objective(np.minimum(y + h, high)) - objective(y)) / h)
            left = np.where(y - h < low, -np.inf, (objective(y) - objective(np.maximum(y - h, low))) / h)
        slack = 1e-5 * (1 + step + step / weight)
        if isinstance(loss, Logistic):  # slopes of y log y change quickly near the ends
            room = np.minimum(y - low, high - y)
            slack = slack + np.where(room > 0, step * h / np.maximum(room, h), np.inf)
        assert np.all(left <= slack)
        assert np.all(right >= -slack)
        # and a fine grid, around the point and over the domain, holds nothing better
        inside = np.linspace(max(low, -20.0), min(high, 20.0), 501)
        grid = np.concatenate(
            [np.broadcast_to(inside, (len(z), 501)), np.clip(y[:, None] + h * np.arange(-9, 10), low, high)], 1
        )
        best = np.min(step * loss.conjugate(grid, b, weight) + (grid - z[:, None]) ** 2 / 2, axis=1)
        assert np.all(objective(y) <= best + 1e-12 * (1 + np.abs(best)))


@settings(deadline=None, max_examples=200)
@given(case=loss_and_target(), z=st.lists(st.floats(-20, 20), min_size=2, max_size=2), step=st.floats(1e-3, 1e3))
def test_prox_conjugate_is_firmly_nonexpansive(case, z, step):
    loss, b = case
    p, q = loss.prox_conjugate(z, step, b)
    assert (p - q) ** 2 <= (p - q) * (z[0] - z[1]) + 1e-12 * (1 + abs(z[0] - z[1]))


@each
def test_moreau_identity(loss):
    """z = prox_{s phi*}(z) + s prox_{phi/s}(z/s): the second term must minimise phi(t) + (s/2)(t - z/s)^2."""
    z, step = np.linspace(-4, 4, 9), 0.8
    for b in targets(loss):
        t = (z - loss.prox_conjugate(z, step, b)) / step
        nearby = t[:, None] + np.concatenate([np.linspace(-3, 3, 301), np.linspace(-1e-4, 1e-4, 11)])

        def objective(point, z, b=b):
            return formula(loss, point, b) + step / 2 * (point - z / step) ** 2

        assert np.all(objective(t, z) <= objective(nearby, z[:, None]).min(1) + 1e-12)


@pytest.mark.parametrize(("step", "weight"), [(0.0, 1.0), (-1.0, 1.0), (np.nan, 1.0), (1.0, -1.0), (1.0, np.nan)])
def test_prox_conjugate_refuses_what_has_no_meaning(step, weight):
    with pytest.raises(ValueError, match="step must be positive and weight non-negative"):
        Huber().prox_conjugate(1.0, step, 0.0, weight)


# --- sample weights ---------------------------------------------------------------------------------------------------


@each
@pytest.mark.parametrize("weight", [1e-3, 0.5, 3.0, 1e4])
def test_weights_scale_the_loss_and_its_conjugate(loss, weight):
    t = np.linspace(-5, 5, 31)
    for b in targets(loss):
        np.testing.assert_allclose(loss.value(t, b, weight), weight * formula(loss, t, b), rtol=1e-12)
        np.testing.assert_allclose(loss.derivative(t, b, weight), weight * loss.derivative(t, b), rtol=1e-12)
        y = np.concatenate([points_inside(loss, b)[1:-1], [-7.0, 7.0]])
        np.testing.assert_allclose(
            loss.conjugate(weight * y, b, weight), weight * loss.conjugate(y, b), rtol=1e-11, atol=1e-12 * weight
        )


@each
def test_a_weight_of_zero_leaves_the_sample_out(loss):
    for b in targets(loss):
        assert loss.value(3.0, b, 0.0) == 0
        assert loss.derivative(3.0, b, 0.0) == 0
        assert loss.domain(b, 0.0) == (0, 0)
        # (0 phi)^* is the indicator of {0}
        assert loss.conjugate(0.0, b, 0.0) == 0
        np.testing.assert_array_equal(loss.conjugate([-1.0, -1e-9, 1e-9, 0.5], b, 0.0), np.inf)
        np.testing.assert_array_equal(loss.prox_conjugate([-3.0, 0.0, 4.0], 0.7, b, 0.0), 0)


@each
def test_weights_broadcast(loss):
    b = np.array(targets(loss))
    t, weight = np.linspace(-2, 2, 5)[:, None, None], np.array([[0.0], [1.0], [2.5]])
    shape = (5, 3, len(b))
    for function in (loss.value, loss.derivative, loss.conjugate):
        out = function(t, b, weight)
        assert out.shape == shape
        assert out[3, 2, 0] == function(t[3, 0, 0], b[0], 2.5)
    assert loss.prox_conjugate(t, 0.5, b, weight).shape == shape


# --- the compiled terms -----------------------------------------------------------------------------------------------


def make_terms(loss, scale, weighted, outputs=3, count=40, seed=0):
    rng = np.random.default_rng(seed)
    b = rng.choice([-1.0, 1.0], (count, outputs)) if loss.classification else rng.standard_normal((count, outputs))
    weight = rng.uniform(0.1, 3.0, count) if weighted else None
    return rng, b, weight, Terms(loss.shape, scale, b, weight)


@each
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scale", [1.0, 0.02])
def test_compiled_terms_are_the_numpy_losses(loss, weighted, scale):
    rng, b, weight, terms = make_terms(loss, scale, weighted)
    s = np.ones(len(b)) if weight is None else weight
    t = rng.standard_normal(b.shape) * 3
    t[:5] = b[:5]  # kinks among them
    values = loss.value(t, b, s[:, None])
    np.testing.assert_allclose(terms.value(t), scale * values.sum(0), rtol=1e-12)
    slopes = loss.derivative(t, b, s[:, None])
    np.testing.assert_allclose(terms.derivative(t), scale * slopes, rtol=1e-12, atol=0)

    low, high = loss.domain(b, s[:, None])
    y = rng.uniform(np.maximum(low, -4), np.minimum(high, 4))
    conjugates = loss.conjugate(y, b, s[:, None])
    size = scale * np.abs(conjugates).sum(0)
    np.testing.assert_array_less(np.abs(terms.conjugate(y) - scale * conjugates.sum(0)), 1e-12 * size + 1e-300)
    found_low, found_high = terms.bounds(b.shape)
    np.testing.assert_array_equal(found_low, np.broadcast_to(low, b.shape))
    np.testing.assert_array_equal(found_high, np.broadcast_to(high, b.shape))
    wild = rng.standard_normal(b.shape) * 10
    np.testing.assert_array_equal(terms.clip(wild), np.clip(wild, low, high))
    outside = wild != terms.clip(wild)
    if outside.any():
        assert np.all(np.isinf(terms.conjugate(wild)) == outside.any(0))
    else:
        assert not np.isfinite(interval(loss, 1.0)).any()

    np.testing.assert_allclose(terms.minimizers(40, 3), loss.derivative(0.0, b, s[:, None]), rtol=1e-12, atol=0)
    for i, k in ((0, 0), (7, 2), (39, 1)):
        assert terms.core.clip(wild[i, k], b[i, k], s[i]) == np.clip(wild[i, k], low[i, k], high[i, k])
        for rhs, kappa in ((1.7, 0.3), (-4.0, 11.0), (b[i, k], 1.0)):
            # argmin of scale h + kappa/2 y^2 - rhs y is the prox of (scale/kappa) h at rhs/kappa
            wanted = loss.prox_conjugate(rhs / kappa, scale / kappa, b[i, k], s[i])
            assert terms.prox(i, k, rhs, kappa) == pytest.approx(float(wanted), rel=1e-12, abs=1e-15)


@each
def test_minimizers_minimise_the_conjugates(loss):
    _, b, weight, terms = make_terms(loss, 0.1, True)
    best = terms.minimizers(40, 3)
    at_best = loss.conjugate(best, b, weight[:, None])
    assert np.all(np.isfinite(at_best))
    for move in (-0.3, -1e-3, 1e-3, 0.3):
        assert np.all(loss.conjugate(best + move, b, weight[:, None]) >= at_best - 1e-15)


@each
def test_compiled_terms_with_a_weight_of_zero(loss):
    """(0 phi)^* is the indicator of {0}: infinite elsewhere, nearest point of the domain 0."""
    b = np.array([[1.0], [-1.0]])
    terms = Terms(loss.shape, 0.5, b, np.zeros(2))
    y = np.array([[0.3], [-0.2]])
    assert terms.value(y) == 0
    np.testing.assert_array_equal(terms.derivative(y), 0)
    np.testing.assert_array_equal(terms.minimizers(2, 1), 0)
    assert terms.prox(0, 0, 5.0, 1.0) == 0
    assert terms.conjugate(np.zeros((2, 1))) == 0
    np.testing.assert_array_equal(terms.clip(y), 0)
    assert terms.conjugate(y) == np.inf


@settings(deadline=None, max_examples=200)
@given(
    case=loss_and_target(),
    rhs=st.floats(-1e3, 1e3),
    kappa=st.floats(1e-6, 1e6),
    weight=weights,
    scale=st.floats(1e-4, 10),
)
@example(case=(Logistic(), 1.0), rhs=0.0, kappa=1e6, weight=1.0, scale=1e-4)
def test_compiled_prox_satisfies_its_inclusion(case, rhs, kappa, weight, scale):
    """(rhs - kappa y)/scale is a subgradient of (s phi)^* at y: y = s phi' there, up to kinks."""
    loss, b = case
    y = Terms(loss.shape, scale, np.array([[b]]), np.array([weight])).prox(0, 0, rhs, kappa)
    t = (rhs - kappa * y) / scale
    size = 1e-9 * (1 + abs(rhs) + kappa * abs(y)) / scale  # rounding of t
    below, above = loss.derivative(t - size, b, weight), loss.derivative(t + size, b, weight)
    low, high = loss.domain(b, weight)
    # phi' is monotone, so its values just left and right of t embrace its subgradients at t
    assert below - 1e-9 * (1 + abs(y)) <= y <= above + 1e-9 * (1 + abs(y))
    assert low <= y <= high


# --- construction -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda v: Huber(delta=v), "delta"),
        (lambda v: SmoothHinge(delta=v), "delta"),
        (lambda v: EpsilonInsensitive(epsilon=v), "epsilon"),
        (lambda v: SquaredEpsilonInsensitive(epsilon=v), "epsilon"),
        (lambda v: Quantile(quantile=v), "quantile"),
    ],
)
def test_parameters_are_checked(make, name):
    for value in (-0.5, np.nan, np.inf, -np.inf, 10**400):
        with pytest.raises(ValueError, match=f"^{name}=.*must be >"):
            make(value)
    for value in ("1", None, True, [0.5], 1j, np.array([0.5])):
        with pytest.raises(TypeError, match=f"^{name} must be a real number, not {type(value).__name__}"):
            make(value)
    for value in (np.float32(0.5), np.float64(0.5), Fraction(1, 2), 1, np.int32(1)):
        loss = make(value)
        assert type(getattr(loss, name)) is float
        assert loss == make(float(value))
        np.testing.assert_allclose(
            loss.value([-3.0, 0.2, 3.0], 1.0), formula(make(float(value)), [-3.0, 0.2, 3.0], 1.0)
        )
        assert loss.prox_conjugate(0.3, 1.0, 1.0) == make(float(value)).prox_conjugate(0.3, 1.0, 1.0)


def test_zero_and_out_of_range_parameters():
    for make in (Huber, SmoothHinge):
        with pytest.raises(ValueError, match=r"^delta=0 is out of range; it must be > 0"):
            make(delta=0)
    with pytest.raises(ValueError, match=r"^quantile=2 is out of range; it must be >= 0 and <= 1"):
        Quantile(2)
    assert EpsilonInsensitive(0.0).value(3.0, 1.0) == 2.0


def test_losses_are_immutable_values():
    assert Huber(0.5) == Huber(0.5) != Huber(0.6)
    assert hash(Quantile(0.1)) == hash(Quantile(0.1))
    with pytest.raises(AttributeError):
        Huber().delta = 2.0


@pytest.mark.parametrize("name", LOSSES)
def test_get_loss_by_name(name):
    loss = get_loss(name)
    assert type(loss) is LOSSES[name]
    assert loss.name == name
    assert get_loss(loss) is loss


@pytest.mark.parametrize(
    ("name", "meant"),
    [("logistc", "logistic"), ("Squared", "squared"), ("squared-hinge", "squared_hinge"), ("hubber", "huber")],
)
def test_get_loss_suggests_the_nearest_name(name, meant):
    with pytest.raises(ValueError, match=rf"^loss='{name}' is not known. Did you mean '{meant}'\? Known: absolute, "):
        get_loss(name)


@pytest.mark.parametrize("wrong", [None, 3, ["squared"]])
def test_get_loss_refuses_other_types(wrong):
    with pytest.raises(TypeError, match=f"^loss must be one of absolute, .* not {type(wrong).__name__}"):
        get_loss(wrong)


def test_get_loss_asks_for_an_object():
    with pytest.raises(TypeError, match=r"^loss is the class Huber; make a loss of it: Huber\(\)"):
        get_loss(Huber)


def test_a_new_loss_must_give_its_shape():
    with pytest.raises(NotImplementedError):
        _ = Loss().shape
