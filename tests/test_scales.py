"""Data of extreme size: the same answers, scaled, or a refusal that names the argument."""

import numpy as np
import pytest
import scipy.sparse as sp

import coordwise as cw
from coordwise import linalg
from coordwise.penalties import ElasticNet

SIZES = [2.0**-120, 2.0**-60, 2.0**60, 2.0**120]
SOLVERS = {
    "kaczmarz": linalg.kaczmarz,
    "nuacdm": linalg.nuacdm,
    "acdm": linalg.acdm,
    "solve": linalg.solve,
    "cgls": lambda *a, **k: linalg.solve(*a, method="cgls", **k),
    "spd_solve": linalg.spd_solve,
    "lstsq": linalg.lstsq,
    "lstsq columns": lambda *a, **k: linalg.lstsq(*a, method="columns", **k),
    "lstsq rows": lambda *a, **k: linalg.lstsq(*a, method="rows", **k),
    "lstsq cgls": lambda *a, **k: linalg.lstsq(*a, method="cgls", **k),
}


def system(name, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((40, 12))
    if name == "spd_solve":
        A = A.T @ A
    b = A @ rng.standard_normal((A.shape[1], 2))
    return A, b + rng.standard_normal(b.shape) * name.startswith("lstsq")


@pytest.mark.parametrize("store", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", SOLVERS)
def test_systems_of_any_size(name, store):
    A, b = system(name)
    plain, info = SOLVERS[name](store(A), b, rtol=1e-8, random_state=0, maxiter=10_000)
    assert info == 0
    for size in SIZES:
        for target in SIZES:
            found, info = SOLVERS[name](store(A * size), b * target, rtol=1e-8, random_state=0, maxiter=10_000)
            assert info == 0
            np.testing.assert_allclose(found * (size / target), plain, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("factor", [1e-82, 1e-60, 1e60, 1e78])
@pytest.mark.parametrize("name", SOLVERS)
def test_systems_beyond_that_are_refused_by_name(name, factor):
    A, b = system(name)
    with pytest.raises(ValueError, match=r"^A has entries of size .* leave the range of floating point; rescale it"):
        SOLVERS[name](sp.csr_array(A * factor), b)
    with pytest.raises(ValueError, match=r"^b\[:, 0\] has entries of size"):
        SOLVERS[name](A, b * factor)
    with pytest.raises(ValueError, match=r"^b\[:, 1\] has entries of size"):
        SOLVERS[name](A, b * [1.0, factor])
    with pytest.raises(ValueError, match=r"^b has entries of size"):
        SOLVERS[name](A, b[:, 0] * factor)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("target", SIZES)
@pytest.mark.parametrize("penalty", [ElasticNet(0.0, 0.1), ElasticNet(0.1, 0.0), ElasticNet(0.1, 0.1)])
def test_regressions_of_any_size(penalty, target, size):
    """P of scaled data and penalties is that of the plain ones times target^2."""
    rng = np.random.default_rng(1)
    A, b = rng.standard_normal((50, 8)), rng.standard_normal(50)
    scaled = ElasticNet(penalty.l1 * size * target, penalty.l2 * size**2)
    plain = cw.solve(cw.ERM(A, b, penalty=penalty).primal(), tol=1e-9)
    problem = cw.ERM(A * size, b * target, penalty=scaled)
    for objective in (problem.primal(), *([problem.dual()] if penalty.l2 else [])):
        found = cw.solve(objective, tol=1e-9)
        assert found.converged
        np.testing.assert_allclose(found.w * (size / target), plain.w, atol=1e-3 * np.abs(plain.w).max())
        assert found.primal / target**2 == pytest.approx(plain.primal, rel=1e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_estimators_at_the_ends_of_single_precision(dtype):
    E = pytest.importorskip("coordwise.estimators")
    rng = np.random.default_rng(2)
    X, w = rng.standard_normal((60, 5)), rng.standard_normal(5)
    y = X @ w + 1
    for size in (1e-30, 1e30):
        for target in (1e-36, 1e37, 1e39):
            found = E.Ridge(alpha=1e-6 * size**2).fit((X * size).astype(dtype), y * target)
            assert np.all(np.isfinite(found.coef_))
            assert np.isfinite(found.intercept_)
            assert found.coef_ @ np.ones(5) * (size / target) == pytest.approx(w.sum(), rel=1e-3)
            # in double precision where single precision would overflow
            assert found.intercept_ == pytest.approx(target, rel=1e-2)
    with pytest.raises(ValueError, match=r"^y has entries of size"):
        E.Lasso(1e-3).fit(X.astype(dtype), y * 1e42)
    with pytest.raises(ValueError, match=r"^X has entries of size"):
        E.LinearSVC().fit(X * 1e42, y > 0)


def test_a_target_without_spread_is_no_matter_of_size():
    E = pytest.importorskip("coordwise.estimators")
    X = np.random.default_rng(3).standard_normal((30, 3))
    for value in (0.1, 1e-39, 1e39, 1e300):
        found = E.Lasso().fit(X, np.full(30, value))
        assert found.intercept_ == value
        assert not found.coef_.any()
