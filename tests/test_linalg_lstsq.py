"""lstsq: the inequality on the gradient, the minimiser that is promised, damping, and every method."""

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import unequal_rows

from coordwise import linalg
from coordwise.linalg.leastsquares import METHODS

RNG = np.random.default_rng(0)
SHAPES = {
    "tall": RNG.standard_normal((80, 20)),
    "wide": RNG.standard_normal((20, 60)),
    "square": RNG.standard_normal((25, 25)) + 3 * np.eye(25),
    "rank deficient": RNG.standard_normal((50, 8)) @ RNG.standard_normal((8, 20)),
    "unequal rows": unequal_rows(90, 15),
    "unequal columns": RNG.standard_normal((90, 15)) * np.geomspace(0.01, 10, 15),
    "zero column": RNG.standard_normal((30, 6)) * np.array([1, 1, 0, 1, 1, 1]),
    "duplicate columns": np.repeat(RNG.standard_normal((30, 5)), 2, axis=1),
}


def exact(A, b, damp):
    n = A.shape[1]
    return np.linalg.lstsq(
        np.vstack([A, damp * np.eye(n)]), np.concatenate([b, np.zeros((n, *b.shape[1:]))]), rcond=None
    )[0]


@pytest.mark.parametrize("damp", [0.0, 0.7])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", SHAPES)
def test_the_documented_inequality_holds(name, method, damp):
    A = SHAPES[name]
    b = np.random.default_rng(1).standard_normal(len(A))
    x, info = linalg.lstsq(A, b, damp, rtol=1e-8, method=method, random_state=0, maxiter=20_000)
    assert info == 0
    assert np.linalg.norm(A.T @ (b - A @ x) - damp**2 * x) <= 1e-8 * np.linalg.norm(A.T @ b)
    best = exact(A, b, damp)
    objective = [np.sum((A @ v - b) ** 2) + damp**2 * np.sum(v**2) for v in (x, best)]
    assert objective[0] <= objective[1] * (1 + 1e-8) + 1e-12
    if method in ("rows", "cgls", "direct") or damp > 0:  # of several minimisers that of smallest norm
        np.testing.assert_allclose(x, best, atol=1e-4 * np.linalg.norm(best))


@pytest.mark.parametrize("method", ["rows", "cgls", "direct"])
def test_of_several_minimisers_the_nearest_to_the_start(method):
    A = SHAPES["rank deficient"]
    rng = np.random.default_rng(2)
    b, x0 = rng.standard_normal(50), rng.standard_normal(20)
    x, info = linalg.lstsq(A, b, x0=x0, rtol=1e-10, method=method, random_state=0)
    assert info == 0
    np.testing.assert_allclose(x, x0 + exact(A, b - A @ x0, 0.0), atol=1e-6)


@pytest.mark.parametrize("damp", [0.0, 0.7])
@pytest.mark.parametrize("method", METHODS)
def test_several_right_hand_sides(method, damp):
    A = SHAPES["tall"]
    b = np.random.default_rng(3).standard_normal((80, 3)) * [1.0, 100.0, 1e-3]
    x, info = linalg.lstsq(A, b, damp, rtol=1e-9, method=method, random_state=0)
    assert info == 0
    gradient = np.linalg.norm(A.T @ (b - A @ x) - damp**2 * x, axis=0)
    assert np.all(gradient <= 1e-9 * np.linalg.norm(A.T @ b, axis=0))
    np.testing.assert_allclose(x, exact(A, b, damp), rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize("method", sorted(set(METHODS) - {"direct"}))
def test_sparse_and_dense_agree(method):
    A = SHAPES["unequal rows"]
    b = np.random.default_rng(4).standard_normal(90)
    for storage in (sp.csr_array, sp.csc_array):
        x, info = linalg.lstsq(storage(A), b, 0.7, rtol=1e-9, method=method, random_state=0)
        assert info == 0
        np.testing.assert_allclose(x, exact(A, b, 0.7), atol=1e-6)


def test_auto_says_why():
    b = np.random.default_rng(5).standard_normal(90)
    small = linalg.lstsq(SHAPES["unequal rows"], b, full_output=True)
    assert small.notes[0].startswith("direct: dense, with a side of 15")
    even = linalg.lstsq(sp.csr_array(SHAPES["unequal rows"]), b, full_output=True)
    assert even.notes[0].startswith("cgls")
    uneven = linalg.lstsq(sp.csr_array(SHAPES["unequal columns"]), b, full_output=True)
    assert uneven.notes[0].startswith("columns: column norms differ")
    assert small.converged
    assert even.converged
    assert uneven.converged


def test_a_gradient_that_is_zero_at_once():
    """b orthogonal to the range of A: zero is the minimiser."""
    A = np.vstack([np.eye(4), np.zeros((2, 4))])
    for method in METHODS:
        x, info = linalg.lstsq(A, np.r_[np.zeros(4), 1.0, 2.0], method=method)
        assert info == 0
        np.testing.assert_array_equal(x, np.zeros(4))


def test_not_converged():
    A = np.vander(np.linspace(0, 1, 40), 15)
    b = np.random.default_rng(0).standard_normal(40)
    for method in ("columns", "rows", "cgls"):
        x, info = linalg.lstsq(A, b, rtol=1e-12, maxiter=4, method=method, random_state=0)
        assert info in (4, 5)
        assert np.all(np.isfinite(x))
