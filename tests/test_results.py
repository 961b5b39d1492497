"""One meaning of a result everywhere: x is the answer, y the duals, point a start, last where the steps ended."""

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import unequal_rows

import coordwise as cw
from coordwise import linalg, reference, sampling

A = unequal_rows(60, 12, seed=4)
B = A @ np.arange(12.0) + np.random.default_rng(5).standard_normal(60)


@pytest.fixture(params=["ridge dual", "ridge primal", "hinge dual", "system", "least squares", "symmetric"])
def case(request):
    """(objective, the answer by other means, the dual variables that go with it or None)."""
    ridge = cw.ERM(A, B, lam=0.1)
    weights = np.linalg.solve(A.T @ A / 60 + 0.1 * np.eye(12), A.T @ B / 60)
    if request.param.startswith("ridge"):
        return (ridge.dual() if "dual" in request.param else ridge.primal()), weights, A @ weights - B
    if request.param == "hinge dual":
        hinge = cw.ERM(A, np.sign(B), "hinge", lam=0.1)
        y = cw.solve(hinge.dual(), tol=1e-13, max_passes=1e5).y
        return hinge.dual(), hinge.primal_point(y), None
    if request.param == "system":
        wide = A[:8]
        return cw.LinearSystem(wide, B[:8]), np.linalg.pinv(wide) @ B[:8], np.linalg.solve(wide @ wide.T, B[:8])
    if request.param == "least squares":
        return cw.LeastSquares(A, B, damp=0.3), np.linalg.solve(A.T @ A + 0.09 * np.eye(12), A.T @ B), None
    H = A.T @ A + np.eye(12)
    return cw.SymmetricSystem(H, B[:12]), np.linalg.solve(H, B[:12]), None


def test_x_is_what_was_asked_for_and_point_is_a_start(case):
    objective, answer, duals = case
    result = cw.solve(objective, tol=1e-11, max_passes=1e5)
    np.testing.assert_allclose(result.x, answer, rtol=1e-4, atol=1e-5)
    assert result.w is result.x
    if duals is not None:
        np.testing.assert_allclose(result.y, duals, rtol=1e-3, atol=1e-3)
    again = cw.solve(objective, tol=1e-9, x0=result.point)
    assert again.iterations == 0
    np.testing.assert_array_equal(again.point, result.point)


def test_linalg_and_solve_agree_on_x():
    system = cw.solve(cw.LinearSystem(A[:8], B[:8]), tol=1e-10, max_passes=1e5)
    for function in (linalg.solve, linalg.nuacdm, linalg.kaczmarz, linalg.acdm):
        result = function(A[:8], B[:8], rtol=1e-10, full_output=True, maxiter=10**5, random_state=0)
        np.testing.assert_allclose(result.x, system.x, rtol=1e-6, atol=1e-8)
        np.testing.assert_array_equal(result.x, function(A[:8], B[:8], rtol=1e-10, maxiter=10**5, random_state=0)[0])
        if result.y is not None:
            np.testing.assert_allclose(A[:8].T @ result.y, result.x, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("T", [0, 1, 59, 60, 61, 720])
@pytest.mark.parametrize("beta", [0.0, 1.0])
def test_last_is_the_point_of_the_algorithm_after_exactly_so_many_steps(T, beta):
    """Whatever the certificate says: the record of smallest gap may be an earlier one."""
    problem = cw.ERM(A, B, lam=1e-3)
    method = cw.NUACDM(beta=beta)
    result = cw.solve(problem.dual(), method, tol=0, max_iterations=T, random_state=7)
    assert result.iterations == T
    assert result.status == "max_iterations"
    n = 60
    L = (np.sum(A**2, axis=1) / (1e-3 * n) + 1) / n
    p = L ** ((1 - beta) / 2) / np.sum(L ** ((1 - beta) / 2))
    indices = sampling.draw_weighted(7, sampling.alias_cells(p), T).tolist()

    def partial(i, y):
        return (A[i] @ (A.T @ y) / (1e-3 * n) + y[i] + B[i]) / n

    steps = reference.nu_acdm(partial, L, np.zeros(n), indices, sigma=(L**-beta / n).min(), beta=beta)
    y = [np.zeros(n), *steps][-1]
    np.testing.assert_allclose(result.last, y, rtol=0, atol=1e-9 * max(np.abs(y).max(), 1e-300))


def test_steps_are_counted_over_records_and_restarts():
    result = cw.solve(cw.LinearSystem(A[:8], B[:8]), "nu_acdm", tol=0, max_iterations=501, record_every=0.3)
    assert result.iterations == 501
    assert result.history.iterations[-1] == 501


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (-1, ValueError, r"^max_iterations=-1 is out of range; it must be >= 0"),
        (1.5, ValueError, r"^max_iterations=1.5 is not a whole number"),
        ("ten", TypeError, r"^max_iterations must be a real number, not str"),
    ],
)
def test_wrong_numbers_of_steps(value, error, message):
    with pytest.raises(error, match=message):
        cw.solve(cw.LinearSystem(A[:8], B[:8]), max_iterations=value)


def test_nothing_that_the_caller_holds_is_written_to(case):
    objective = case[0]
    before, rows = dict(vars(objective)), dict(vars(objective.rows))
    copies = {name: value.copy() for name, value in before.items() if isinstance(value, np.ndarray)}
    arrays, packing = [array.copy() for array in objective.rows.arrays], objective.rows.packing
    cw.solve(objective, tol=1e-3, n_jobs=2)
    assert vars(objective).keys() == before.keys()
    assert all(value is before[name] for name, value in vars(objective).items())
    for name, value in copies.items():
        np.testing.assert_array_equal(getattr(objective, name), value)
    for array, copy in zip(objective.rows.arrays, arrays, strict=True):
        np.testing.assert_array_equal(array, copy)
    assert objective.rows.packing == packing
    assert all(vars(objective.rows)[name] is value for name, value in rows.items())
    assert objective.threads == 1


def test_fits_do_not_write_to_the_problem():
    from coordwise.fitting.fit import fit
    from coordwise.fitting.model import LinearModel

    problem = cw.ERM(sp.csr_array(A), np.sign(B), "logistic", lam=0.01)
    model = LinearModel(problem, True)
    before = dict(vars(problem))
    for strategy in ("auto", "dual", "newton"):
        fit(model, tol=1e-6, n_jobs=2, strategy=strategy)
    assert all(value is before[name] for name, value in vars(problem).items())
