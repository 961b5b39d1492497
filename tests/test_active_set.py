"""Active sets on Gram matrices: optimality, degenerate cases, paths; moments of folds as differences."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from coordwise.erm import ERM
from coordwise.fitting.active_set import ActiveSet
from coordwise.fitting.fit import fit
from coordwise.fitting.gram import centered_moments
from coordwise.fitting.model import LinearModel
from coordwise.fitting.moments import Moments
from coordwise.fitting.path import path, points
from coordwise.fitting.unpenalised import NoPenalty
from coordwise.penalties import ElasticNet


def quadratic(n, d, seed, copies=0):
    """(G, m) of n samples, with so many columns repeated."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) * 10 ** rng.uniform(-1, 1, d)
    A = np.column_stack([A, A[:, :copies]])
    b = A[:, : min(4, d)].sum(1) + rng.standard_normal(n)
    return A.T @ A / n, A.T @ b / n


def assert_optimal(G, m, penalty, w, rtol=1e-8):
    """The subdifferential of (1/2) w'Gw - m'w + r(w) contains 0."""
    slope = G @ w - m + penalty.l2 * w
    size = rtol * np.abs(m).max()
    on = w != 0
    np.testing.assert_allclose(slope[on], -penalty.l1 * np.sign(w[on]), atol=size)
    if penalty.positive:
        assert np.all(w >= 0)
        assert np.all(slope[~on] >= -penalty.l1 - size)
    else:
        assert np.all(np.abs(slope[~on]) <= penalty.l1 + size)


@settings(deadline=None, max_examples=60)
@given(
    n=st.integers(2, 30),
    d=st.integers(1, 25),
    seed=st.integers(0, 10**6),
    share=st.floats(1e-3, 1.2),
    ratio=st.sampled_from([1.0, 0.5, 0.0]),
    positive=st.booleans(),
)
def test_solutions_are_optimal(n, d, seed, share, ratio, positive):
    G, m = quadratic(n, d, seed)
    alpha = share * np.abs(m).max()
    penalty = ElasticNet(alpha * ratio, alpha * (1 - ratio), positive)
    w = ActiveSet(G, m).solve(penalty)
    assert w is not None
    assert_optimal(G, m, penalty, w, 1e-7)


@pytest.mark.parametrize("ratio", [1.0, 0.3])
@pytest.mark.parametrize(("n", "d"), [(200, 10), (40, 100), (300, 120)])
@pytest.mark.parametrize("positive", [False, True])
def test_a_path_is_optimal_everywhere(n, d, ratio, positive):
    G, m = quadratic(n, d, 1)
    alphas = np.geomspace(np.abs(m).max() / ratio, 1e-3 * np.abs(m).max(), 60)
    penalties = [ElasticNet(alpha * ratio, alpha * (1 - ratio), positive) for alpha in alphas]
    found = ActiveSet(G, m).path(penalties)
    for penalty, w in zip(penalties, found.T, strict=True):
        assert_optimal(G, m, penalty, w)


def test_repeated_columns():
    G, m = quadratic(50, 6, 2, copies=6)
    penalty = ElasticNet(0.05 * np.abs(m).max(), 0.0)
    w = ActiveSet(G, m).solve(penalty)
    assert_optimal(G, m, penalty, w)
    single = ActiveSet(G[:6, :6], m[:6]).solve(penalty)
    np.testing.assert_allclose(w[:6] + w[6:], single, atol=1e-9 * np.abs(single).max())


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("share", [0.3, 1e-2, 1e-4])
@pytest.mark.parametrize(
    ("n", "d", "copies"), [(400, 150, 0), (100, 250, 0), (300, 60, 60)], ids=["tall", "wide", "repeated"]
)
def test_many_coordinates_are_sorted_out_by_steps_over_all(n, d, copies, share, positive):
    G, m = quadratic(n, d, 4, copies)
    G[:, 0] = G[0] = m[0] = 0.0  # a column of zeros
    penalty = ElasticNet(share * np.abs(m).max(), 0.0, positive)
    w = ActiveSet(G, m).solve(penalty)
    assert w is not None
    assert w[0] == 0
    assert_optimal(G, m, penalty, w)


def nearly_dependent(kind):
    """(G, m) of 60 samples and 80 features that are nearly linear combinations of others."""
    rng = np.random.default_rng(0)
    if kind == "powers":
        A = np.linspace(0, 1, 60)[:, None] ** np.arange(80)
    elif kind == "rank 10":
        A = rng.standard_normal((60, 10)) @ rng.standard_normal((10, 80))
    else:
        A = rng.standard_normal((60, 80))
        for j in range(1, 80):
            A[:, j] = 0.999 * A[:, j - 1] + np.sqrt(1 - 0.999**2) * A[:, j]
    b = A[:, :5].sum(1) + rng.standard_normal(60)
    return A.T @ A / 60, A.T @ b / 60


@pytest.mark.parametrize("kind", ["neighbours", "powers", "rank 10"])
@pytest.mark.parametrize("share", [1e-1, 1e-3, 1e-5, 1e-7])
def test_steps_that_lead_nowhere_are_left_for_systems(kind, share):
    G, m = nearly_dependent(kind)
    penalty = ElasticNet(share * np.abs(m).max(), 0.0)
    search = ActiveSet(G, m)
    w = search.solve(penalty)
    assert w is not None
    assert search.rounds <= 100
    assert_optimal(G, m, penalty, w, 1e-9)


def test_an_early_end_keeps_the_better_of_steps_and_systems():
    G, m = nearly_dependent("rank 10")
    penalty = ElasticNet(1e-5 * np.abs(m).max(), 0.0)

    def value(w):
        return w @ G @ w / 2 - m @ w + penalty.l1 * np.abs(w).sum()

    best = value(ActiveSet(G, m).solve(penalty))
    for most in range(3, 12):
        search = ActiveSet(G, m)
        assert search.solve(penalty, most=most) is None
        assert value(search.w) < 0.9 * best  # values are negative: after 30 passes it is nearly there


def test_few_rounds_for_many_coordinates():
    G, m = quadratic(1000, 300, 5)
    search = ActiveSet(G, m)
    w = search.solve(ElasticNet(1e-4 * np.abs(m).max(), 0.0))
    assert np.count_nonzero(w) > 200
    assert search.rounds <= 8


def test_least_squares_over_positive_weights():
    G, m = quadratic(400, 200, 6)
    penalty = NoPenalty(positive=True)
    w = ActiveSet(G, m).solve(penalty)
    assert w is not None
    assert np.count_nonzero(w) > 50
    assert_optimal(G, m, penalty, w)


@pytest.mark.parametrize("most", [2, 3, 4])
def test_rounds_can_be_limited_and_the_value_never_rises(most):
    G, m = quadratic(400, 150, 7)
    penalty = ElasticNet(1e-3 * np.abs(m).max(), 0.0)

    def value(w):
        return w @ G @ w / 2 - m @ w + penalty.l1 * np.abs(w).sum()

    search, values = ActiveSet(G, m), [0.0]
    while search.solve(penalty, most=most) is None:
        values.append(value(search.w))
        assert len(values) < 50
    values.append(value(search.w))
    assert np.all(np.diff(values) <= 1e-12 * abs(values[-1]))
    assert_optimal(G, m, penalty, search.w)


def test_what_overflows_is_not_solved():
    G, m = quadratic(60, 40, 8)
    G[0, 1] = G[1, 0] = np.inf
    search = ActiveSet(G, m)
    with np.errstate(all="ignore"):
        assert search.solve(ElasticNet(1e-3 * np.abs(m).max(), 0.0)) is None
    assert np.all(np.isfinite(search.w))


def test_penalties_in_any_order_and_constraint():
    G, m = quadratic(80, 12, 3)
    walker = ActiveSet(G, m)
    for share in (0.01, 0.9, 0.1, 2.0, 0.05):
        for positive in (False, True):
            penalty = ElasticNet(share * np.abs(m).max(), 0.0, positive)
            assert_optimal(G, m, penalty, walker.solve(penalty))


def model_of(storage=np.asarray, n=80, d=12, weighted=False, intercept=True, outputs=1, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.6) + 0.5
    b = A[:, :3] @ rng.standard_normal((3, outputs)) + 4 + rng.standard_normal((n, outputs))
    s = rng.uniform(0.1, 2, n) if weighted else None
    return LinearModel(ERM(storage(A), b, penalty=ElasticNet(0.1, 0.1), sample_weight=s), intercept), A, b, s


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("ratio", [0.0, 0.5, 1.0])
def test_points_are_the_fits_with_their_gaps(storage, weighted, intercept, outputs, ratio):
    model = model_of(storage, weighted=weighted, intercept=intercept, outputs=outputs)[0]
    penalties = [ElasticNet(alpha * ratio, alpha * (1 - ratio)) for alpha in np.geomspace(2, 0.01, 9)]
    options = {"tol": 1e-10, "max_passes": 100_000}
    for penalty, point in zip(penalties, points(model, penalties, **options), strict=True):
        own = model.penalised(penalty)
        assert point.converged
        assert np.all(point.gap <= 1e-10 * own.scale)
        exact = own.from_primal(point.w, point.c)
        assert np.all(exact.gap <= point.gap + 1e-12 * own.scale)
        alone = fit(own, tol=1e-12, max_passes=100_000)
        np.testing.assert_allclose(point.w, alone.w, atol=1e-6 * np.abs(alone.w).max() + 1e-9)
        np.testing.assert_allclose(point.c, alone.c, atol=1e-6 * np.abs(alone.c).max())


def test_a_tolerance_below_rounding_goes_to_the_data():
    model = model_of()[0]
    penalties = [ElasticNet(0.3, 0.0), ElasticNet(0.1, 0.0)]
    found = points(model, penalties, tol=1e-17, max_passes=50)
    assert not any(point.converged and np.any(point.gap > 1e-17 * model.scale) for point in found)
    near = points(model, penalties, tol=1e-10)
    for a, b in zip(found, near, strict=True):
        np.testing.assert_allclose(a.w, b.w, atol=1e-8)


def test_points_of_other_losses_are_a_path():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, 5))
    b = np.where(A[:, [0]] + 0.3 * rng.standard_normal((60, 1)) > 0, 1.0, -1.0)
    model = LinearModel(ERM(A, b, loss="logistic", penalty=ElasticNet(0.0, 1.0)), True)
    penalties = [ElasticNet(0.0, lam) for lam in (1.0, 0.1, 0.01)]
    for point, found in zip(points(model, penalties, tol=1e-9), path(model, penalties, tol=1e-9), strict=True):
        np.testing.assert_array_equal(point.w, found.w)
        np.testing.assert_array_equal(point.gap, found.gap)
    assert points(model, [], tol=1e-9) == []


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_moments_of_the_rest_are_a_difference(storage, weighted, intercept):
    _, A, b, s = model_of(n=60, weighted=weighted)
    test = np.arange(60) % 3 == 0
    pick = (lambda rows: None) if s is None else (lambda rows: s[rows])
    both = Moments.of(storage(A[test]), b[test], pick(test)) + Moments.of(storage(A[~test]), b[~test], pick(~test))
    rest = both.without(Moments.of(storage(A[test]), b[test], pick(test)))
    problem = ERM(storage(A[~test]), b[~test], penalty=ElasticNet(0.1, 0.1), sample_weight=pick(~test))
    given, computed = LinearModel(problem, intercept), LinearModel(problem, intercept)
    rest.share(given)
    for ours, direct in zip(centered_moments(given), centered_moments(computed), strict=True):
        np.testing.assert_allclose(ours, direct, rtol=1e-12, atol=1e-12)


def test_differences_that_would_lose_digits_are_refused():
    rng = np.random.default_rng(1)
    A, b = rng.standard_normal((40, 3)), rng.standard_normal((40, 1))
    large = A.copy()
    large[:10, 1] *= 1e6
    whole = Moments.of(large, b, None)
    assert whole.without(Moments.of(large[:10], b[:10], None)) is None
    assert whole.without(Moments.of(large[30:], b[30:], None)) is not None
    only = A * 0.1
    only[10:, 2] = 0  # a feature of the tested samples alone
    rest = Moments.of(only, b, None).without(Moments.of(only[:10], b[:10], None))
    assert np.all(rest.gram[2] == 0)
    assert rest.cross[2, 0] == 0
