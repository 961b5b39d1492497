"""Penalties against explicit formulas, numerical suprema and the terms the kernel takes."""

import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordwise.kernels import Terms
from coordwise.penalties import L1, L2, PENALTIES, ElasticNet, get_penalty

CASES = {
    "l2": L2(0.7),
    "l2_positive": L2(0.7, positive=True),
    "l1": L1(0.4),
    "l1_positive": L1(0.4, positive=True),
    "elastic_net": ElasticNet(0.3, 1.2),
    "elastic_net_positive": ElasticNet(0.3, 1.2, positive=True),
    "elastic_net_weak": ElasticNet(2.0, 1e-3),
}
CURVED = {name: penalty for name, penalty in CASES.items() if penalty.l2 > 0}
each = pytest.mark.parametrize("penalty", CASES.values(), ids=CASES.keys())
each_curved = pytest.mark.parametrize("penalty", CURVED.values(), ids=CURVED.keys())


def formula(penalty, w):
    """r(w) for one coordinate."""
    w = np.asarray(w, float)
    value = penalty.l1 * np.abs(w) + penalty.l2 / 2 * w**2
    return np.where(w < 0, np.inf, value) if penalty.positive else value


def numerical_conjugate(penalty, v, reach, rounds=9, count=401):
    """sup over w of v w - r(w), by a grid that closes in on the best w (the function is concave)."""
    v = np.asarray(v, float)
    center, width = np.zeros_like(v), np.full_like(v, reach)
    for _ in range(rounds):
        w = center[:, None] + width[:, None] * np.linspace(-1, 1, count)
        value = v[:, None] * w - formula(penalty, w)
        center = w[np.arange(len(v)), value.argmax(1)]
        width = width * (3 / count)
    return value.max(1)


vectors = st.lists(st.floats(-20, 20), min_size=1, max_size=6).map(np.array)


@each
def test_value_is_the_formula(penalty):
    w = np.array([[0.5, 0.0, 3.0], [2.0, 0.0, -1e-9], [0.0, 0.0, 1.0]])
    np.testing.assert_allclose(penalty.value(w), formula(penalty, w).sum(0), rtol=1e-14)
    assert penalty.value(w)[1] == 0
    assert np.isinf(penalty.value(w)[2]) == penalty.positive
    np.testing.assert_allclose(penalty.value(w[:, 0]), formula(penalty, w[:, 0]).sum(), rtol=1e-14)


@each
def test_conjugate_is_the_supremum(penalty):
    if penalty.l2 > 0:
        v = np.linspace(-4, 4, 33)
    else:  # inside the domain, ends included
        v = np.linspace(-4.0 if penalty.positive else -penalty.l1, penalty.l1, 33)
    found = penalty.conjugate(v[None, :])
    np.testing.assert_allclose(found, numerical_conjugate(penalty, v, reach=1e4), rtol=1e-9, atol=1e-9)
    assert penalty.conjugate(v) == pytest.approx(found.sum(), rel=1e-14)


@pytest.mark.parametrize("positive", [False, True])
def test_conjugate_of_l1_is_an_indicator(positive):
    penalty = L1(0.4, positive=positive)
    beyond = np.nextafter(0.4, 1)
    np.testing.assert_array_equal(
        penalty.conjugate(np.array([[0.4, beyond, 9.0], [0.1, 0.0, 0.0]])), [0, np.inf, np.inf]
    )
    np.testing.assert_array_equal(penalty.conjugate(np.array([[-0.4, -beyond]])), [0, 0 if positive else np.inf])


@settings(deadline=None, max_examples=300)
@given(penalty=st.sampled_from(list(CASES.values())), w=vectors, v=vectors)
def test_fenchel_young_inequality(penalty, w, v):
    size = min(len(w), len(v))
    w, v = w[:size], v[:size]
    assert penalty.value(w) + penalty.conjugate(v) >= w @ v - 1e-12 * (1 + np.abs(w * v).sum())


@settings(deadline=None, max_examples=300)
@given(penalty=st.sampled_from(list(CURVED.values())), v=vectors)
def test_conjugate_gradient_attains_the_supremum(penalty, v):
    w = penalty.conjugate_gradient(v)
    attained = v @ w - penalty.value(w)
    assert attained == pytest.approx(float(penalty.conjugate(v)), rel=1e-11, abs=1e-13)
    assert not (penalty.positive and np.any(w < 0))


@each_curved
def test_conjugate_gradient_is_the_slope_of_the_conjugate(penalty):
    v, h = np.linspace(-4, 4, 53)[None, :], 1e-6
    slope = (penalty.conjugate(v + h) - penalty.conjugate(v - h)) / (2 * h)
    np.testing.assert_allclose(penalty.conjugate_gradient(v)[0], slope, rtol=1e-6, atol=1e-5 / penalty.l2)


@pytest.mark.parametrize("positive", [False, True])
def test_conjugate_gradient_needs_an_l2_part(positive):
    with pytest.raises(ValueError, match="l2 > 0"):
        L1(1.0, positive=positive).conjugate_gradient(np.ones(3))


@each
@pytest.mark.parametrize("step", [0.1, 1.0, 8.0])
def test_shape_is_the_coordinate_term_of_the_primal(penalty, step):
    """The kernel's term is r_j itself: value, domain, and the proximal step."""
    w = np.array([[-1.5], [0.0], [0.2], [3.0]])
    terms = Terms(penalty.shape, 1.0, None, np.ones(4))
    np.testing.assert_allclose(terms.conjugate(w), penalty.value(w), rtol=1e-14)
    np.testing.assert_allclose(terms.conjugate(np.abs(w)), formula(penalty, np.abs(w)).sum(0), rtol=1e-14)
    np.testing.assert_array_equal(terms.clip(w), np.maximum(w, 0) if penalty.positive else w)
    for z in np.linspace(-3, 3, 13):
        # argmin of r(w) + kappa/2 w^2 - rhs w with kappa = 1/step, rhs = z/step: the prox of step r at z
        found = terms.prox(0, 0, z / step, 1 / step)
        wanted = np.sign(z) * max(abs(z) - step * penalty.l1, 0) / (1 + step * penalty.l2)
        assert found == pytest.approx(max(wanted, 0.0) if penalty.positive else wanted, rel=1e-13, abs=1e-15)
        grid = found + np.linspace(-2, 2, 401)
        assert step * formula(penalty, found) + (found - z) ** 2 / 2 <= np.min(
            step * formula(penalty, grid) + (grid - z) ** 2 / 2 + 1e-14
        )


@each
def test_value_of_the_shape_is_the_conjugate_of_the_penalty(penalty):
    """What the primal certificate adds up: (r_j)^*(v)."""
    v = np.linspace(-2, 2, 41)[:, None]
    terms = Terms(penalty.shape, 1.0, None, np.ones(1))
    for row in v:
        assert terms.value(row[None, :]) == pytest.approx(penalty.conjugate(row[None, :]), rel=1e-13, abs=1e-15)


@each_curved
@pytest.mark.parametrize("n", [1.0, 7.0, 250.5])
def test_dual_shape_is_the_smooth_part_of_the_dual(penalty, n):
    """G(v) = r*(-v/n): value, derivative and the bound M of its second derivative."""
    v = n * np.linspace(-5, 5, 401)[:, None]
    terms = Terms(penalty.dual_shape(n), 1.0, None, np.ones(len(v)))
    np.testing.assert_allclose(terms.value(v), penalty.conjugate(-v / n), rtol=1e-12)
    h = 1e-6 * n
    slope = (penalty.conjugate(-(v + h).T / n) - penalty.conjugate(-(v - h).T / n)) / (2 * h)
    found = terms.derivative(v)[:, 0]
    np.testing.assert_allclose(found, slope, rtol=1e-6, atol=1e-5 / (n * penalty.l2))
    # the chain rule gives the weights: G'(v) = -w/n with w = grad r*(-v/n)
    np.testing.assert_allclose(
        found, -penalty.conjugate_gradient(-v / n)[:, 0] / n, rtol=1e-12, atol=1e-15 / penalty.l2
    )
    curvature = np.diff(found) / np.diff(v[:, 0])
    assert curvature.max() == pytest.approx(1 / terms.shape.curvature, rel=1e-9)
    assert terms.shape.curvature == pytest.approx(penalty.l2 * n**2)


@each
def test_smoothed_adds_a_square(penalty):
    w = np.array([0.3, 2.0])
    more = penalty.smoothed(0.5)
    assert more.positive == penalty.positive
    assert more.value(w) == pytest.approx(float(penalty.value(w) + 0.25 * w @ w), rel=1e-14)


def test_norms_by_themselves():
    w = np.array([-3.0, 4.0])
    assert L2(2.0).value(w) == pytest.approx(25.0, rel=1e-15)
    assert L1(2.0).value(w) == 14.0
    assert L1(2.0, positive=True).value(w) == np.inf
    assert ElasticNet(2.0, 2.0).value(w) == pytest.approx(39.0, rel=1e-15)
    assert (L2.name, L1.name, ElasticNet.name) == PENALTIES


# --- construction -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [L2, L1])
def test_norms_check_their_weight(make):
    for value in (0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match=r"^lam=.*must be > 0"):
            make(value)
    for value in ("1", None, True, [1.0]):
        with pytest.raises(TypeError, match=r"^lam must be a real number"):
            make(value)
    with pytest.raises(TypeError, match=r"^positive must be True or False, not str"):
        make(1.0, positive="no")


@pytest.mark.parametrize("name", ["l1", "l2"])
def test_elastic_net_checks_its_weights(name):
    other = {"l1": "l2", "l2": "l1"}[name]
    for value in (-1e-3, np.nan, np.inf, 10**400):
        with pytest.raises(ValueError, match=rf"^{name}=.*must be >= 0"):
            ElasticNet(**{name: value, other: 1.0})
    with pytest.raises(TypeError, match=f"^{name} must be a real number"):
        ElasticNet(**{name: "1", other: 1.0})
    penalty = ElasticNet(**{name: Fraction(1, 2), other: np.float32(0.25)})
    assert (type(penalty.l1), type(penalty.l2)) == (float, float)
    assert penalty == ElasticNet(**{name: 0.5, other: 0.25})


def test_elastic_net_refuses_to_be_nothing():
    with pytest.raises(ValueError, match=r"penalty is zero .*give a positive l1 or l2"):
        ElasticNet(0.0, 0.0)


@each
def test_penalties_are_immutable_values(penalty):
    assert pickle.loads(pickle.dumps(penalty)) == penalty
    with pytest.raises(AttributeError):
        penalty.l1 = 3.0


def test_get_penalty_by_name():
    assert get_penalty("l2", 0.3, None, False) == L2(0.3)
    assert get_penalty("l1", 0.3, None, True) == L1(0.3, positive=True)
    mixed = get_penalty("elastic_net", 0.5, 0.2, False)
    assert (mixed.l1, mixed.l2) == pytest.approx((0.1, 0.4))
    assert get_penalty("elastic_net", 0.5, 1, False).l2 == 0
    assert get_penalty("elastic_net", 0.5, 0, True).l1 == 0
    assert get_penalty(mixed, None, None, False) is mixed


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            ("elasticnet", 1.0, 0.5, False),
            ValueError,
            r"penalty='elasticnet' is not known. Did you mean 'elastic_net'\?",
        ),
        (
            ("L2", 1.0, None, False),
            ValueError,
            r"penalty='L2' is not known. Did you mean 'l2'\? Known: elastic_net, l1, l2",
        ),
        (("none", 1.0, None, False), ValueError, "penalty='none' is not known. .*Known: elastic_net, l1, l2"),
        ((None, 1.0, None, False), TypeError, "penalty must be one of elastic_net, l1, l2 .*not NoneType"),
        (("l2", None, None, False), ValueError, "penalty='l2' needs lam.*give lam > 0"),
        (("l2", 0.0, None, False), ValueError, "lam=0.0 is out of range; it must be > 0"),
        (("l1", -1, None, False), ValueError, "lam=-1 is out of range; it must be > 0"),
        (("l1", np.nan, None, False), ValueError, "lam=nan is not a finite number; it must be > 0"),
        (("l1", 10**400, None, False), ValueError, "lam=1000.* is not a finite number; it must be > 0"),
        (("l1", "1", None, False), TypeError, "lam must be a real number, not str"),
        (("l2", 1.0, 0.5, False), ValueError, "l1_ratio has no meaning for penalty='l2'; use penalty='elastic_net'"),
        (("elastic_net", 1.0, None, False), ValueError, r"penalty='elastic_net' needs l1_ratio in \[0, 1\]"),
        (("elastic_net", 1.0, 1.5, False), ValueError, "l1_ratio=1.5 is out of range; it must be >= 0 and <= 1"),
        (("elastic_net", 1.0, np.nan, False), ValueError, "l1_ratio=nan is not a finite number"),
        (("l2", 1.0, None, "yes"), TypeError, "positive must be True or False, not str"),
        ((L2(1.0), 1.0, None, False), ValueError, "lam, l1_ratio and positive belong to a penalty given by name"),
        ((L2(1.0), None, 0.5, False), ValueError, "lam, l1_ratio and positive belong to a penalty given by name"),
        ((L2(1.0), None, None, True), ValueError, "lam, l1_ratio and positive belong to a penalty given by name"),
    ],
)
def test_get_penalty_refuses(arguments, error, message):
    with pytest.raises(error, match=message):
        get_penalty(*arguments)


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_squares_neither_overflow_nor_vanish(size):
    v = size * np.array([3.0, 4.0])
    for penalty in (L2(size**-1.5), ElasticNet(0.0, size**-1.5)):
        assert penalty.value(v) == pytest.approx(12.5 * size**0.5)
    assert L2(size**1.5).conjugate(v) == pytest.approx(12.5 * size**0.5)
    assert ElasticNet(size, size**1.5).conjugate(v) == pytest.approx(6.5 * size**0.5)
