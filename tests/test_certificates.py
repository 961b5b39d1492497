"""Gaps bound the suboptimality, go to rounding level, and can be recomputed by the user."""

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import unequal_rows
from hypothesis import example, given, settings
from hypothesis import strategies as st

import coordwise as cw
from coordwise.fitting.fit import fit
from coordwise.fitting.model import LinearModel
from coordwise.losses import LOSSES

PENALTIES = {
    "l2": dict(penalty="l2", lam=0.05),
    "elastic_net": dict(penalty="elastic_net", lam=0.1, l1_ratio=0.4),
    "positive": dict(penalty="l2", lam=0.05, positive=True),
}


def make(loss, penalty="l2", n=30, d=8, seed=0, outputs=None, weighted=False):
    rng = np.random.default_rng(seed)
    A = unequal_rows(n, d, seed=seed, spread=1.0)
    b = rng.standard_normal(n if outputs is None else (n, outputs))
    if LOSSES[loss].classification:
        b = np.where(b > 0, 1.0, -1.0)
    weight = rng.integers(0, 4, n).astype(float) if weighted else None
    return cw.ERM(A, b, loss=loss, **PENALTIES.get(penalty, dict(penalty="l1", lam=0.05)), sample_weight=weight)


def random_point(problem, rng):
    low, high = problem.loss.domain(problem.b[:, 0], 1.0 if problem.sample_weight is None else problem.sample_weight)
    low, high = np.maximum(low, -3), np.minimum(high, 3)
    return rng.uniform(low, high)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", ["squared", "huber", "logistic", "squared_hinge", "smooth_hinge"])
def test_no_gap_over_the_features_is_larger_than_the_value(loss, intercept):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((30, 60))
    b = np.sign(rng.standard_normal(30)) * (1 if LOSSES[loss].classification else 10)
    weights = rng.integers(0, 3, 30).astype(float)
    # no loss is left at the minimum
    problem = cw.ERM(A, b, loss=loss, penalty="elastic_net", lam=1e-9, l1_ratio=0.5, sample_weight=weights)
    found = cw.solve(problem.primal(), tol=1e-9, max_passes=20)
    assert np.all(found.history.gap <= found.history.value)
    assert np.any(found.history.gap == found.history.value)
    model = LinearModel(problem, intercept)
    w = rng.standard_normal((60, 1))
    candidate = model.from_primal(w)
    assert candidate.gap == candidate.value
    assert not candidate.y.any()
    assert model.paired(w, candidate.c, model.scores(w, candidate.c), candidate.y).gap == candidate.gap


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_every_pair_solves_and_the_gap_bounds_the_suboptimality(loss, penalty, weighted):
    problem = make(loss, penalty, weighted=weighted)
    result = cw.solve(problem.dual(), tol=1e-9, max_passes=30_000)
    assert result.converged, result.message
    at_zero = problem.value(np.zeros(8))
    assert 0 <= result.gap <= 1e-9 * at_zero
    assert result.scale == pytest.approx(at_zero)
    assert problem.gap(result.w, result.point) == pytest.approx(result.gap, abs=1e-13 * at_zero)
    assert result.primal == pytest.approx(problem.value(result.w), rel=1e-12)
    assert result.value == pytest.approx(problem.dual_value(result.point), rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(problem.primal_point(result.point), result.w, rtol=1e-12, atol=1e-12)

    rng = np.random.default_rng(1)
    best = result.primal - result.gap
    for _ in range(50):
        w = result.w + rng.standard_normal(8) * 10 ** rng.uniform(-4, 1)
        if penalty == "positive":
            w = np.abs(w)
        y = random_point(problem, rng)
        assert problem.value(w) >= best - 1e-12  # P >= min P
        assert problem.dual_value(y) >= -result.primal - 1e-12  # D >= -min P
        gap = problem.gap(w, y)
        assert gap >= problem.value(w) - result.primal - 1e-12
        assert gap >= 0


@pytest.mark.parametrize("penalty", ["l2", "l1", "elastic_net", "positive"])
@pytest.mark.parametrize("loss", [name for name, loss in LOSSES.items() if loss().gamma > 0])
def test_primal_and_dual_agree(loss, penalty):
    problem = make(loss, penalty, seed=2)
    primal = cw.solve(problem.primal(), tol=1e-10, max_passes=60_000)
    assert primal.converged, primal.message
    assert problem.gap(primal.w, problem.dual_point(primal.w)) == pytest.approx(primal.gap, abs=1e-12)
    if penalty != "l1":
        dual = cw.solve(problem.dual(), tol=1e-10, max_passes=60_000)
        assert dual.primal == pytest.approx(primal.primal, abs=3e-10 * float(dual.scale))


@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge"])
def test_gap_reaches_rounding_level(loss):
    problem = make(loss, n=200, d=40, seed=3)
    result = cw.solve(problem.dual(), tol=1e-12, max_passes=5000)
    assert result.converged
    assert result.gap <= 1e-12 * problem.value(np.zeros(40))


def test_ridge_against_normal_equations():
    problem = make("squared", n=60, d=12, seed=4, outputs=3)
    A, b = problem.A, problem.b
    exact = np.linalg.solve(A.T @ A / 60 + 0.05 * np.eye(12), A.T @ b / 60)
    for objective in (problem.dual(), problem.primal()):
        result = cw.solve(objective, tol=1e-15, max_passes=5000)
        np.testing.assert_allclose(result.w, exact, rtol=1e-7, atol=1e-7)


def test_lasso_against_its_optimality_conditions():
    problem = make("squared", "l1", n=50, d=20, seed=5)
    result = cw.solve(problem.primal(), tol=1e-13, max_passes=50_000)
    slope = problem.A.T @ (problem.A @ result.w - problem.b[:, 0]) / 50
    support = result.w != 0
    assert 0 < support.sum() < 20
    np.testing.assert_allclose(slope[support], -0.05 * np.sign(result.w[support]), atol=1e-6)
    assert np.all(np.abs(slope) <= 0.05 + 1e-6)


def test_lasso_through_smoothing_has_the_stated_error():
    problem = make("squared", "l1", n=50, d=20, seed=6)
    exact = cw.solve(problem.primal(), tol=1e-12, max_passes=50_000)
    for smoothing in (1e-2, 1e-4):
        objective = problem.dual(smoothing=smoothing)
        result = cw.solve(objective, tol=1e-11, max_passes=50_000)
        assert result.converged
        excess = problem.value(result.w) - exact.primal
        assert 0 <= excess + 1e-10 <= objective.smoothing_error + 1e-9
        assert excess <= smoothing / 2 * np.sum(exact.w**2) + 1e-9


def test_linear_system_residual():
    rng = np.random.default_rng(7)
    A = unequal_rows(80, 15, seed=7)
    x = rng.standard_normal((15, 2))
    result = cw.solve(cw.LinearSystem(sp.csr_array(A), A @ x), tol=1e-10, max_passes=5000)
    assert result.converged
    residual = np.linalg.norm(A @ x - A @ result.w, axis=0)
    assert np.all(residual <= 1e-10 * np.linalg.norm(A @ x, axis=0))
    np.testing.assert_allclose(result.gap, residual, rtol=1e-3)
    np.testing.assert_allclose(result.w, x, atol=1e-6)
    np.testing.assert_allclose(A.T @ result.y, result.x, atol=1e-9)


def test_underdetermined_system_gives_the_minimum_norm_solution():
    rng = np.random.default_rng(8)
    A = rng.standard_normal((10, 30))
    b = rng.standard_normal(10)
    result = cw.solve(cw.LinearSystem(A, b), tol=1e-12, max_passes=20_000)
    np.testing.assert_allclose(result.w, np.linalg.pinv(A) @ b, atol=1e-9)


@pytest.mark.parametrize("damp", [0.0, 0.7])
def test_least_squares(damp):
    rng = np.random.default_rng(9)
    A = unequal_rows(40, 9, seed=9, spread=1.0)
    b = rng.standard_normal(40)
    result = cw.solve(cw.LeastSquares(A, b, damp=damp), tol=1e-11, max_passes=20_000)
    assert result.converged
    gradient = A.T @ (A @ result.w - b) + damp**2 * result.w
    assert np.linalg.norm(gradient) <= 1e-11 * np.linalg.norm(A.T @ b) * (1 + 1e-3)
    exact = np.linalg.solve(A.T @ A + damp**2 * np.eye(9), A.T @ b)
    np.testing.assert_allclose(result.w, exact, atol=1e-7)


@pytest.mark.parametrize("damp", [1.0, 30.0, 1e5])
@pytest.mark.parametrize("seed", range(10))
def test_gradient_norm_is_not_lost_to_cancellation(damp, seed):
    rng = np.random.default_rng(seed)
    A, b = rng.standard_normal((60, 20)), rng.standard_normal(60)
    result = cw.solve(cw.LeastSquares(A, b, damp=damp), tol=1e-13, max_passes=300)
    gradient = np.linalg.norm(A.T @ (A @ result.w - b) + damp**2 * result.w)
    rounding = 1e-15 * (np.linalg.norm(A.T @ b) + damp**2 * np.linalg.norm(result.w))
    assert abs(result.gap - gradient) <= 5 * rounding
    if result.converged:
        assert gradient <= 1e-13 * np.linalg.norm(A.T @ b) + 5 * rounding


@pytest.mark.parametrize("x0", [None, 0.5])
def test_outputs_whose_scale_is_zero(x0):
    """P(0) = 0 or b = 0: the solution is 0, and a start elsewhere is brought there."""
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((30, 5)), rng.standard_normal((30, 2))
    B[:, 1] = 0
    problem = cw.ERM(A, B, lam=0.1)
    for objective, n in ((problem.dual(), 30), (problem.primal(), 5), (cw.LinearSystem(A.T, B[:5]), 5)):
        start = None if x0 is None else np.full((n, 2), x0)
        result = cw.solve(objective, tol=1e-6, max_passes=20_000, x0=start)
        assert result.converged, result.message
        np.testing.assert_allclose(result.w[:, 1], 0, atol=1e-5)


def test_smoothness_constants_from_their_definition():
    """L_i and sigma by second differences of the dual itself."""
    for loss in ("squared", "l2l1"):
        problem = make(loss, n=12, d=5, seed=10, weighted=False)
        L = cw.schedules.Split.of(problem.dual()).L
        y = np.full(12, 2.0)  # past the flat part of l2l1
        for i in range(12):
            e = np.eye(12)[i]
            second = problem.dual_value(y + e) - 2 * problem.dual_value(y) + problem.dual_value(y - e)
            assert second <= L[i] * (1 + 1e-9)
            if loss == "squared":
                assert second == pytest.approx(L[i], rel=1e-9)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    loss=st.sampled_from(sorted(LOSSES)),
    scale=st.sampled_from([1e-6, 1e-2, 1.0, 1e3]),
    lam=st.sampled_from([1e-3, 1.0, 100.0]),
)
@example(seed=218, loss="logistic", scale=1000.0, lam=0.001)  # momentum leads out of the domain
def test_recorded_gaps_are_certificates(seed, loss, scale, lam):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 25)), int(rng.integers(1, 10))
    A = sp.random_array((n, d), density=0.6, rng=rng) * scale
    b = rng.choice([-1.0, 1.0], n)
    problem = cw.ERM(A, b, loss=loss, lam=lam)
    result = cw.solve(problem.dual(), tol=1e-7, max_passes=300, record_growth=0)
    h = result.history
    assert np.all(h.gap >= 0)
    assert np.all(np.diff(h.passes) > 0) or A.nnz == 0
    # far from the solution w is large, and the image of x that a run keeps carries rounding
    np.testing.assert_allclose(h.gap, h.primal + h.value, rtol=1e-6, atol=1e-9 * (1 + np.abs(h.primal).max()))
    lowest = (h.primal - h.gap).max()  # the best lower bound of min P seen
    assert np.all(h.primal >= lowest - 1e-9 * (1 + abs(lowest)))
    assert problem.gap(result.w, result.point) <= 1e-7 * problem.value(np.zeros(d)) or not result.converged


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("penalty", sorted(PENALTIES))
@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge", "huber"])
def test_a_certificate_is_confirmed_for_the_point_and_the_weights_of_any_image(loss, penalty, weighted):
    problem = make(loss, penalty, weighted=weighted)
    objective, rng = problem.dual(), np.random.default_rng(1)
    x = random_point(problem, rng)[:, None]
    for error in (0.0, 1e-6, 0.1):
        image = objective.image(x)
        image += error * np.abs(image).max() * rng.standard_normal(image.shape)
        rough = objective.certificate(image, lambda omega: objective.rows.sums(objective.coordinates, x, omega))
        kept, found = objective.confirmed(x, image, rough)
        w = objective.solution(kept)[:, 0]
        gap = problem.gap(w, x[:, 0])
        assert found.gap[0] >= gap - 1e-12 * problem.value(w)
        if penalty == "l2":
            np.testing.assert_allclose(found.gap[0], gap, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(found.primal[0], problem.value(w), rtol=1e-12)


@pytest.mark.parametrize("penalty", [{"penalty": "l1"}, {"penalty": "elastic_net", "l1_ratio": 0.5}, {"penalty": "l2"}])
@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge"])
@pytest.mark.parametrize("options", [{}, {"positive": True}, {"sample_weight": np.arange(80) % 4.0}])
@pytest.mark.parametrize("max_passes", [0.5, 1000])
def test_the_gap_of_a_result_is_that_of_its_weights_and_dual_variables(loss, penalty, options, max_passes):
    rng = np.random.default_rng(5)
    A = unequal_rows(80, 12, seed=5)
    b = np.where(A @ rng.standard_normal((12, 2)) > 0, 1.0, -1.0)
    problem = cw.ERM(A, b, loss=loss, lam=1e-2, **penalty, **options)
    objectives = [problem.primal(), *([problem.dual()] if penalty["penalty"] != "l1" else [])]
    for objective in objectives:
        res = cw.solve(objective, tol=1e-7, max_passes=max_passes)
        assert res.y.shape == (80, 2)
        np.testing.assert_allclose(problem.gap(res.w, res.y), res.gap, rtol=1e-6, atol=1e-12)


def test_linear_systems_have_no_dual_variables():
    assert cw.solve(cw.LeastSquares(np.eye(3), np.ones(3))).y is None


def test_known_dual_variables_are_those_of_the_gap_while_they_are_better():
    A = unequal_rows(80, 12, seed=6)
    b = np.where(A.sum(axis=1) > 0, 1.0, -1.0)
    problem = cw.ERM(A, b, loss="squared", penalty="elastic_net", l1_ratio=0.5, lam=1e-2)
    y = cw.solve(problem.dual(), tol=1e-10).point
    objective = problem.primal()
    objective.learn(y, problem.dual_value(y))
    res = cw.solve(objective, tol=1e-12, max_passes=0.1)
    np.testing.assert_array_equal(res.y, y)
    assert res.gap == pytest.approx(problem.gap(res.w, y), rel=1e-9)
    objective.learn(1e3 * y, problem.dual_value(1e3 * y))  # worse than zeros
    res = cw.solve(objective, tol=1e-12, max_passes=0.1)
    assert res.gap == pytest.approx(problem.gap(res.w, res.y), rel=1e-9)
    assert res.gap <= problem.value(res.w) * (1 + 1e-12)
    with pytest.raises(ValueError, match="y"):
        objective.learn(y[:-1], 0.0)


@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("outputs", [1, 2])
def test_a_run_over_features_begins_with_the_certificate_at_zero(loss, l1_ratio, weighted, outputs, monkeypatch):
    rng = np.random.default_rng(7)
    A = unequal_rows(60, 9, seed=7)
    b = np.where(rng.random((60, outputs)) < 0.5, -1.0, 1.0)
    weights = rng.integers(0, 3, 60).astype(float) if weighted else None
    penalty = {"penalty": "elastic_net", "l1_ratio": l1_ratio, "lam": 1e-2}
    model = LinearModel(cw.ERM(A, b, loss=loss, sample_weight=weights, **penalty), intercept=False)
    seen = []

    def watched(objective, *args, **kwargs):
        result = cw.solve(objective, *args, **kwargs)
        seen.append((objective, result))
        return result

    monkeypatch.setattr("coordwise.fitting.runners.solve", watched)
    fit(model, tol=1e-6, strategy="primal")
    objective, result = seen[0]
    exact = objective.certify(np.zeros((9, outputs)))
    np.testing.assert_allclose(result.history.gap[0].ravel(), exact.gap, rtol=1e-9)
    np.testing.assert_allclose(result.history.value[0].ravel(), exact.value, rtol=1e-12)
    again, there = cw.solve(objective, tol=1e-6, x0=result.point), objective.certify(result.point)  # another start
    np.testing.assert_allclose(again.history.gap[0], there.gap, rtol=1e-6, atol=1e-14)
