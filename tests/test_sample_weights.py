"""Sample weights: relative to each other, as repetitions, and none at all."""

import numpy as np
import pytest
import scipy.sparse as sp
from problem_cases import LABELS, A, B, D, N, erm, solve_or_refuse

import coordwise as cw
from coordwise.losses import LOSSES


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e-160, 1e-6, 1e6, 1e160, 1e200, 1e307])
@pytest.mark.parametrize("side", ["dual", "primal"])
@pytest.mark.parametrize("loss", ["squared", "huber", "logistic"])
def test_sample_weights_count_only_relative_to_each_other(loss, side, scale):
    weight = np.linspace(0.5, 2.0, N)
    b = LABELS if loss == "logistic" else B

    def make(weight):
        return getattr(cw.ERM(A, b, loss, lam=0.1, sample_weight=weight), side)()

    wanted = cw.solve(make(weight), tol=1e-12, max_passes=1e4)
    assert wanted.converged
    result = solve_or_refuse(make, weight * scale)
    if result is not None:
        assert result.converged, result.message
        np.testing.assert_allclose(result.w, wanted.w, atol=1e-3)


WEIGHTED = ["squared", "logistic", "squared_hinge", "huber"]


@pytest.mark.parametrize("outputs", [None, 3])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("side", ["dual", "primal"])
@pytest.mark.parametrize("loss", WEIGHTED)
def test_weights_of_zero_remove_rows_and_whole_weights_repeat_them(loss, side, make, outputs):
    n, d = 30, 5
    rng = np.random.default_rng(4)
    X = rng.standard_normal((n, d))
    b = rng.standard_normal(n if outputs is None else (n, outputs))
    b = np.where(b > 0, 1.0, -1.0) if LOSSES[loss].classification else 2 * b
    weight = rng.integers(0, 4, n)
    assert set(weight) == {0, 1, 2, 3}

    def solution(X, b, weight=None):
        problem = cw.ERM(make(X), b, loss, lam=0.3, sample_weight=weight)
        result = cw.solve(getattr(problem, side)(), tol=1e-13, max_passes=1e5)
        assert result.converged, result.message
        return problem, result

    weighted, found = solution(X, b, weight)
    repeated, wanted = solution(np.repeat(X, weight, axis=0), np.repeat(b, weight, axis=0))
    np.testing.assert_allclose(found.w, wanted.w, atol=1e-6)
    np.testing.assert_allclose(weighted.value(wanted.w), repeated.value(wanted.w), rtol=1e-13)
    np.testing.assert_allclose(found.scale, wanted.scale, rtol=1e-13)

    some = weight > 0
    _, found = solution(X, b, some.astype(float))
    _, wanted = solution(X[some], b[some])
    np.testing.assert_allclose(found.w, wanted.w, atol=1e-6)
    if side == "dual":
        np.testing.assert_array_equal(found.point[~some], 0)


def test_weighted_ridge_by_hand():
    weight = np.arange(N) % 4.0
    exact = np.linalg.solve(
        A.T @ (weight[:, None] * A) / weight.sum() + 0.1 * np.eye(D), A.T @ (weight * B) / weight.sum()
    )
    problem = cw.ERM(A, B, lam=0.1, sample_weight=weight)
    for objective in (problem.dual(), problem.primal()):
        np.testing.assert_allclose(cw.solve(objective, tol=1e-14).w, exact, atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_dual_variables_of_samples_without_weight_must_be_zero(loss):
    """(0 phi)^* is infinite away from 0; a finite value would make the gap no bound."""
    weight = np.ones(N)
    weight[3] = 0
    problem = erm(loss, sample_weight=weight)
    y = np.zeros(N)
    assert np.isfinite(problem.dual_value(y))
    y[3] = -0.25 * problem.b[3, 0]
    assert problem.dual_value(y) == np.inf
    y[3] = 50.0
    result = cw.solve(problem.dual(), x0=y, tol=1e-7, max_passes=1e4)
    assert result.converged, result.message
    assert result.point[3] == 0
