"""Symmetric positive definite systems: the kernel against the algorithms line by line, L_i = a_ii, and spd_solve."""

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import STORAGES

import coordwise as cw
from coordwise import linalg, reference, sampling
from coordwise.linalg.spd import METHODS
from coordwise.objectives import SymmetricSystem


def matrix(n=30, seed=0, spread=1.0):
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((2 * n, n)) * 10 ** rng.uniform(-spread / 2, spread / 2, n)
    return B.T @ B / n + 0.1 * np.eye(n)


def sparse_matrix(n=400, seed=0):
    """The Laplacian of a random graph with very different degrees, plus a multiple of the identity."""
    rng = np.random.default_rng(seed)
    one = np.repeat(np.arange(1, n), 3)
    other = (one * rng.random(len(one)) ** 2).astype(int)
    W = sp.coo_array((np.ones(len(one)), (one, other)), shape=(n, n)).tocsr()
    W = W + W.T
    A = sp.csr_array(sp.diags_array(np.asarray(W.sum(axis=1))) - W + 0.1 * sp.eye_array(n))
    A.indices, A.indptr = A.indices.astype(np.int32), A.indptr.astype(np.int32)
    return A


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0])
def test_nu_acdm_is_algorithm_1(storage, beta):
    A = matrix()
    b = np.random.default_rng(1).standard_normal(30)
    L = np.diag(A).copy()
    weights = L**beta
    sigma = np.linalg.eigvalsh(A / np.sqrt(np.outer(weights, weights)))[0]
    objective = SymmetricSystem(STORAGES[storage](A), b)
    result = cw.solve(
        objective, cw.NUACDM(beta=beta, sigma=sigma), tol=0.0, max_passes=6, record_every=10, random_state=4
    )
    p = L ** ((1 - beta) / 2) / np.sum(L ** ((1 - beta) / 2))
    drawn = sampling.draw_weighted(4, sampling.alias_cells(p), result.iterations)
    *_, y = reference.nu_acdm(lambda i, x: A[i] @ x - b[i], L, np.zeros(30), drawn, sigma=sigma, beta=beta)
    np.testing.assert_allclose(result.x, y, rtol=1e-9, atol=1e-11)
    assert result.value == pytest.approx(y @ A @ y / 2 - b @ y, rel=1e-9)
    assert result.history.value[-1] == pytest.approx(result.value, rel=1e-9)


def test_nu_acdm_ns_and_rcdm_are_theirs():
    A = matrix()
    b = np.random.default_rng(1).standard_normal(30)
    L = np.diag(A).copy()
    objective = SymmetricSystem(A, b)
    for method, algorithm, power in (
        (cw.NUACDMns(), reference.nu_acdm_ns, 0.5),
        (cw.RCDM(), reference.rcdm, 1.0),
    ):
        result = cw.solve(objective, method, tol=0.0, max_passes=5, record_every=10, random_state=2)
        drawn = sampling.draw_weighted(2, sampling.alias_cells(L**power / np.sum(L**power)), result.iterations)
        *_, y = algorithm(lambda i, x: A[i] @ x - b[i], L, np.zeros(30), drawn)
        np.testing.assert_allclose(result.x, y, rtol=1e-9, atol=1e-11)


def test_sdca_is_gauss_seidel():
    A, b = matrix(), np.arange(30.0)
    result = cw.solve(SymmetricSystem(A, b), "sdca", tol=0.0, max_passes=2, record_every=10, random_state=7)
    x = np.zeros(30)
    for i in sampling.draw_permutations(7, 30, result.iterations):
        x[i] += (b[i] - A[i] @ x) / A[i, i]
    np.testing.assert_allclose(result.x, x, rtol=1e-10)


@pytest.mark.parametrize("K", [1, 2, 5, 8])
def test_outputs_do_not_mix(K):
    A = sparse_matrix()
    B = np.random.default_rng(2).standard_normal((400, K))
    together = cw.solve(SymmetricSystem(A, B), cw.NUACDM(sigma=0.1), tol=0.0, max_passes=5, record_every=10)
    for k in range(K):
        alone = cw.solve(SymmetricSystem(A, B[:, k]), cw.NUACDM(sigma=0.1), tol=0.0, max_passes=5, record_every=10)
        np.testing.assert_allclose(together.x[:, k], alone.x, rtol=1e-9, atol=1e-12)
        assert together.value[k] == pytest.approx(alone.value, rel=1e-9)


def test_packed_rows_give_the_same_steps():
    """More than 50,000 entries are packed beside the coordinates; an int64 copy of the matrix is not."""
    A = sparse_matrix(9000)
    b = np.random.default_rng(3).standard_normal(9000)
    plain = A.copy()
    plain.indices, plain.indptr = A.indices.astype(np.int64), A.indptr.astype(np.int64)
    one, other = (
        cw.solve(SymmetricSystem(M, b), cw.NUACDM(sigma=0.1), tol=0.0, max_passes=3, record_every=10)
        for M in (A, plain)
    )
    assert "packed" in one.storage
    assert "packed" not in other.storage
    np.testing.assert_allclose(one.x, other.x, rtol=1e-9, atol=1e-12)


def test_constants_come_from_the_diagonal():
    A = matrix()
    objective = SymmetricSystem(A, np.ones(30))
    np.testing.assert_array_equal(objective.curvature, np.diag(A))
    constants = cw.NUACDM(sigma=0.1).schedule(objective).constants
    assert pytest.approx(np.sqrt(np.diag(A)).sum()) == constants.S


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("make", [matrix, sparse_matrix, lambda: matrix(spread=6.0), lambda: np.array([[3.0]])])
def test_the_documented_inequality_holds(make, method):
    A = make()
    b = np.random.default_rng(1).standard_normal(A.shape[0])
    for rtol in (1e-5, 1e-8):
        x, info = linalg.spd_solve(A, b, rtol=rtol, method=method, random_state=0, maxiter=200_000)
        assert info == 0
        assert np.linalg.norm(b - A @ x) <= rtol * np.linalg.norm(b)
    x, info = linalg.spd_solve(A, b, rtol=0.0, atol=1e-3, method=method, random_state=0, maxiter=200_000)
    assert info == 0
    assert np.linalg.norm(b - A @ x) <= 1e-3


@pytest.mark.parametrize("method", METHODS)
def test_several_right_hand_sides_and_a_start(method):
    A, X = matrix(), np.random.default_rng(5).standard_normal((30, 4))
    x, info = linalg.spd_solve(A, A @ X, X + 0.1, rtol=1e-9, method=method, random_state=0)
    assert info == 0
    assert np.all(np.linalg.norm(A @ X - A @ x, axis=0) <= 1e-9 * np.linalg.norm(A @ X, axis=0))
    result = linalg.spd_solve(A, A @ X, X, rtol=1e-9, method=method, full_output=True)
    assert result.converged
    assert result.iterations == 0


@pytest.mark.parametrize("method", METHODS)
def test_singular_but_consistent(method):
    A = sp.csr_array(sparse_matrix() - 0.1 * sp.eye_array(400))
    b = A @ np.random.default_rng(6).standard_normal(400)
    x, info = linalg.spd_solve(A, b, rtol=1e-7, method=method, random_state=0)
    assert info == 0
    assert np.linalg.norm(b - A @ x) <= 1e-7 * np.linalg.norm(b)


def test_a_given_sigma_is_honoured():
    A = matrix()
    sigma = np.linalg.eigvalsh(A)[0]
    result = linalg.spd_solve(A, np.ones(30), method="nuacdm", sigma=sigma, rtol=1e-9, full_output=True)
    assert result.converged
    assert result.constants.sigma == sigma


def test_refusals():
    A = matrix()
    with pytest.raises(ValueError, match="A is not symmetric"):
        linalg.spd_solve(np.triu(A), np.ones(30))
    with pytest.raises(ValueError, match=r"A has shape \(20, 30\); it must be square"):
        linalg.spd_solve(A[:20], np.ones(20))
    A[4, 4] = -1.0
    with pytest.raises(ValueError, match="not positive definite: its diagonal entry 4 is -1"):
        linalg.spd_solve(A, np.ones(30))


@pytest.mark.parametrize("size", [50, 300])
def test_a_matrix_that_is_not_symmetric_is_refused(size):
    """From 20,000 entries on it is looked at after some steps of cg, or where they fail."""
    A = matrix(size)
    A[0, 1] += 0.5 * np.abs(A).max()
    with pytest.raises(ValueError, match="A is not symmetric"):
        linalg.spd_solve(A, np.ones(size))


def test_a_solution_is_a_solution_although_a_large_matrix_is_not_symmetric():
    A, b = matrix(300), np.ones(300)
    A[0, 1] += 10.0
    A += 1e5 * np.eye(300)
    x, info = linalg.spd_solve(A, b, rtol=1e-3)
    assert info == 0
    assert np.linalg.norm(b - A @ x) <= 1e-3 * np.linalg.norm(b)


@pytest.mark.parametrize("method", METHODS)
def test_indefinite_matrices_end(method):
    A = np.array([[1.0, 3.0, 0.0], [3.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    result = linalg.spd_solve(
        A, np.array([1.0, -1.0, 1.0]), method=method, rtol=1e-10, full_output=True, random_state=0
    )
    assert result.status in ("diverged", "stalled", "max_passes", "converged")
    assert np.all(np.isfinite(result.w))
    if result.converged:
        assert result.gap <= 1e-10 * np.sqrt(3)
