"""Unusual but legal problems and options are solved, or refused, never wrong."""

import numpy as np
import pytest
import scipy.sparse as sp
from problem_cases import LABELS, A, B, D, N, data, erm, solve_or_refuse

import coordwise as cw
from coordwise.losses import LOSSES

SIDES = [(loss, "dual") for loss in LOSSES]
SIDES += [(loss, "primal") for loss in LOSSES if LOSSES[loss]().gamma > 0]  # the primal needs a smooth loss


def check_certified(problem, objective, tol=1e-9, **options):
    """Solve, and check the claim from the returned point alone."""
    result = cw.solve(objective, tol=tol, max_passes=1e5, **options)
    assert result.converged, result.message
    at_zero = problem.value(np.zeros_like(result.w))
    y = result.point if isinstance(objective, type(erm().dual())) else problem.dual_point(result.w)
    gap = np.asarray(problem.gap(result.w, y))
    assert np.all(gap >= -1e-12 * np.asarray(at_zero))
    assert np.all(gap <= tol * np.asarray(at_zero) + 1e-13)
    return result


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1)])
@pytest.mark.parametrize(("loss", "side"), SIDES)
def test_one_sample_or_one_feature(loss, shape, side):
    X, b = data(*shape, seed=3)
    b = np.where(b > 0, 1.0, -1.0) if LOSSES[loss].classification else 3 * b
    for make in (np.asarray, sp.csr_array):
        problem = cw.ERM(make(X), b, loss, lam=0.2)
        check_certified(problem, getattr(problem, side)())


def test_one_sample_by_hand():
    # minimise (a w - b)^2/2 + lam/2 w^2
    result = cw.solve(cw.ERM([[2.0]], [3.0], lam=0.5).dual(), tol=1e-14)
    assert result.w[0] == pytest.approx(6 / 4.5, rel=1e-6)
    assert cw.solve(cw.LinearSystem([[2.0]], [3.0])).w[0] == pytest.approx(1.5)
    assert cw.solve(cw.LeastSquares([[2.0], [1.0]], [3.0, 0.0])).w[0] == pytest.approx(1.2)


@pytest.mark.parametrize(("loss", "side"), SIDES)
def test_constant_labels(loss, side):
    for constant in (1.0, -1.0):
        problem = cw.ERM(A, np.full(N, constant), loss, lam=0.2)
        check_certified(problem, getattr(problem, side)())


def test_zero_targets_have_the_zero_solution():
    for loss in LOSSES:
        if not LOSSES[loss].classification:
            problem = cw.ERM(A, np.zeros(N), loss, lam=0.2)
            result = cw.solve(problem.dual())
            assert result.converged
            np.testing.assert_array_equal(result.w, 0)
    for objective in (cw.LinearSystem(A, np.zeros(N)), cw.LeastSquares(A, np.zeros(N))):
        result = cw.solve(objective)
        assert result.converged
        np.testing.assert_array_equal(result.w, 0)


@pytest.mark.parametrize("method", ["auto", "nu_acdm_ns", "acdm", "approx", "rcdm", "sdca"])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("loss", LOSSES)
def test_all_zero_matrix(loss, make, method):
    weight = np.linspace(0.1, 1.3, N)
    for options in (dict(), dict(sample_weight=weight)):
        b = LABELS if LOSSES[loss].classification else 5 * B
        problem = cw.ERM(make(np.zeros((N, D))), b, loss, lam=0.2, **options)
        result = check_certified(problem, problem.dual(), method=method)
        np.testing.assert_array_equal(result.w, 0)
        if problem.loss.gamma > 0:
            result = check_certified(problem, problem.primal(), method=method)
            np.testing.assert_allclose(result.w, 0, atol=1e-12)


def test_all_zero_matrix_in_a_linear_system():
    zero = np.zeros((N, D))
    for matrix in (zero, sp.csr_array(zero)):
        assert cw.solve(cw.LinearSystem(matrix, np.zeros(N))).converged
        impossible = cw.solve(cw.LinearSystem(matrix, B))
        assert impossible.status == "inconsistent"
        assert "LeastSquares" in impossible.status.help
        result = cw.solve(cw.LeastSquares(matrix, B))
        assert result.converged  # every x is a least-squares solution
        np.testing.assert_array_equal(result.w, 0)


@pytest.mark.parametrize("method", ["auto", "acdm", "rcdm", "sdca"])
@pytest.mark.parametrize("loss", LOSSES)
def test_zero_rows_and_columns(loss, method):
    """Zero rows add a constant to P, zero columns get w_j = 0; both must not hinder the rest."""
    weight = np.linspace(0.1, 1.3, N)
    X = A.copy()
    X[[2, 5, 6]] = 0
    X[:, 1] = 0
    b = LABELS if LOSSES[loss].classification else 5 * B
    for make in (np.asarray, sp.csr_array, sp.csc_array):
        problem = cw.ERM(make(X), b, loss, lam=0.2, sample_weight=weight)
        result = check_certified(problem, problem.dual(), method=method, tol=1e-7)
        assert result.w[1] == 0
        if problem.loss.gamma > 0:
            result = check_certified(problem, problem.primal(), method=method, tol=1e-7)
            assert abs(result.w[1]) <= 1e-7


@pytest.mark.parametrize("method", ["auto", "approx", "rcdm", "sdca"])
@pytest.mark.parametrize("penalty", [dict(penalty="l1"), dict(penalty="l2"), dict(penalty="elastic_net", l1_ratio=0.5)])
def test_a_start_that_is_wrong_in_a_zero_column_is_corrected(penalty, method):
    X = A.copy()
    X[:, 1] = 0
    problem = cw.ERM(X, B, lam=0.05, **penalty)
    result = cw.solve(problem.primal(), method, x0=np.ones(D), max_passes=1e5)
    assert result.converged, result.message
    assert abs(result.w[1]) <= 2e-3  # what gap <= 1e-8 P(0) guarantees


@pytest.mark.parametrize("n", [13, 33, 65, 66])
def test_saturated_samples_stay_in_the_domain(n):
    """n * (delta/n) may round to more than delta; the dual point must still have a finite value."""
    rng = np.random.default_rng(n)
    X, b = rng.standard_normal((n, 3)), 10 * rng.standard_normal(n)
    for delta in (0.3, 1.35):
        problem = cw.ERM(X, b, cw.losses.Huber(delta), lam=0.1)
        y = problem.dual_point(np.zeros(3))
        np.testing.assert_allclose(y, problem.loss.derivative(0.0, b), rtol=1e-14)
        assert np.isfinite(problem.dual_value(y))
        # so much l1 that w = 0 is optimal: the certificate at the start must say so
        problem = cw.ERM(X, b, cw.losses.Huber(delta), penalty="l1", lam=50.0)
        result = cw.solve(problem.primal())
        assert result.converged, result.message
        np.testing.assert_array_equal(result.w, 0)


OBJECTIVES = {
    "ridge dual": lambda X, b: cw.ERM(X, b, lam=0.1).dual(),
    "ridge primal": lambda X, b: cw.ERM(X, b, lam=0.1).primal(),
    "lasso": lambda X, b: cw.ERM(X, b, penalty="l1", lam=0.01).primal(),
    "huber dual": lambda X, b: cw.ERM(X, b, "huber", lam=0.1).dual(),
    "logistic dual": lambda X, b: cw.ERM(X, np.sign(b), "logistic", lam=0.1).dual(),
    "logistic primal": lambda X, b: cw.ERM(X, np.sign(b), "logistic", lam=0.1).primal(),
    "hinge": lambda X, b: cw.ERM(X, np.sign(b), "hinge", lam=0.1).dual(),
    "elastic net dual": lambda X, b: cw.ERM(X, b, penalty="elastic_net", l1_ratio=0.5, lam=0.1).dual(),
    "linear system": lambda X, b: cw.LinearSystem(X, b),
    "least squares": lambda X, b: cw.LeastSquares(X, b),
    "damped": lambda X, b: cw.LeastSquares(X, b, damp=0.1),
}


def exact_error(name, X, b, w):
    """Relative error of w in exact arithmetic's stead: everything rescaled to size one first."""
    sx, sb = np.abs(X).max(), np.abs(b).max()
    X, b, w = X / sx, b / sb, w * (sx / sb) if sx / sb < 1e300 else (w * sx) / sb
    residual = X @ w - b
    if name == "linear system":
        return np.linalg.norm(residual) / np.linalg.norm(b)
    return np.linalg.norm(X.T @ residual) / np.linalg.norm(X.T @ b)


@pytest.mark.parametrize(
    "scale", [1e-200, 1e-170, 1e-160, 1e-150, 1e-100, 1e-30, 1e30, 1e100, 1e150, 1e160, 1e200, 1e300]
)
@pytest.mark.parametrize("name", OBJECTIVES)
def test_huge_and_tiny_matrices(name, scale):
    """Solved with finite numbers and a true certificate, or refused; never a false claim about the problem."""
    X, w = A[:D], np.array([1.0, -2.0, 0.5, 1.5])
    b = X @ w
    if name == "linear system":
        b = b * min(scale, 1e300)  # A x = b with the same x
    result = solve_or_refuse(OBJECTIVES[name], X * scale, b)
    if result is None:
        return
    assert np.all(np.isfinite(result.w))
    assert result.status != "inconsistent"
    if result.converged:
        assert np.all(np.isfinite(result.gap))
        if name in ("linear system", "least squares"):
            assert exact_error(name, X * scale, b, result.w) <= 1e-6
        elif name != "damped":
            assert 0 <= result.gap <= 1e-8 * result.scale


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e-170, 1e-150, 1e-100, 1e100, 1e150, 1e160, 1e200, 1e300])
@pytest.mark.parametrize("name", ["ridge dual", "ridge primal", "huber dual", "linear system", "least squares"])
def test_huge_and_tiny_targets(name, scale):
    X = A[:D]
    b = X @ np.array([1.0, -2.0, 0.5, 1.5])
    result = solve_or_refuse(OBJECTIVES[name], X, b * scale)
    if result is None:
        return
    assert np.all(np.isfinite(result.w))
    if result.converged:
        assert np.isfinite(result.gap)
        assert np.isfinite(result.scale)
        if name in ("linear system", "least squares"):
            assert exact_error(name, X, b * scale, result.w) <= 1e-6
        elif name.startswith("ridge"):
            exact = np.linalg.solve(X.T @ X / D + 0.1 * np.eye(D), X.T @ b / D)
            # gap <= 1e-8 P(0) bounds the error of w by sqrt(2 gap/lam)
            np.testing.assert_allclose(result.w / scale, exact, atol=1e-2)


def test_starts_outside_the_domain_are_moved_into_it():
    for loss in LOSSES:
        for x0 in (np.full(N, 100.0), np.full(N, -100.0)):
            result = cw.solve(erm(loss).dual(), x0=x0, tol=1e-6, max_passes=1e4)
            assert result.converged, (loss, result.message)


def test_seeds_of_every_kind():
    objective = erm().dual()
    for seed in (
        0,
        2**31,
        2**64 - 1,
        10**30,
        np.int64(5),
        np.uint8(3),
        None,
        np.random.default_rng(0),
        np.random.RandomState(0),
    ):
        assert cw.solve(objective, random_state=seed).converged
    same = [cw.solve(objective, random_state=np.random.default_rng(7)).point for _ in range(2)]
    np.testing.assert_array_equal(*same)


def test_a_callback_stops_the_run():
    for answer in (True, np.True_):
        result = cw.solve(erm().dual(), tol=0, max_passes=50, callback=lambda progress, answer=answer: answer)
        assert result.status == "stopped"
    result = cw.solve(erm().dual(), tol=0, max_passes=5, callback=lambda progress: None)
    assert result.status == "max_passes"


def test_arguments_are_not_written_to():
    X, b, weight = A.copy(), B.copy(), np.linspace(0, 2, N)
    x0 = np.full(N, 5.0)
    for array in (X, b, weight, x0):
        array.setflags(write=False)
    problem = cw.ERM(X, b, "huber", lam=0.1, sample_weight=weight)
    assert cw.solve(problem.dual(), x0=x0).converged
    assert cw.solve(problem.primal(), x0=np.ones(D)).converged
    assert cw.solve(cw.LeastSquares(X, b)).converged
    np.testing.assert_array_equal(X, A)
    np.testing.assert_array_equal(x0, 5.0)
