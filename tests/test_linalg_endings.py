"""How coordwise.linalg ends where a tolerance or a system cannot be met: the best point, its status and `info`."""

import numpy as np
import pytest
import scipy.sparse as sp

from coordwise import linalg

EPS = np.finfo(float).eps
SYSTEMS = {
    "kaczmarz": linalg.kaczmarz,
    "acdm": linalg.acdm,
    "nuacdm": linalg.nuacdm,
    "solve": linalg.solve,
    "cgls": lambda *a, **k: linalg.solve(*a, method="cgls", **k),
}


def shapes(count, seed):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        m, n = (int(size) for size in rng.integers(1, 60, 2))
        A = rng.standard_normal((m, n)) * 10 ** rng.uniform(-3, 3, (m, 1)) ** rng.integers(0, 2)
        if rng.random() < 0.3:
            A = sp.csr_array(np.where(rng.random((m, n)) < 0.4, A, 0.0))
        yield A, rng.standard_normal(n), rng


@pytest.mark.parametrize(("rtol", "maxiter"), [(0.0, 300), (1e-16, None), (0.0, 1000)])
@pytest.mark.parametrize("method", ["solve", "cgls", "lstsq"])
def test_nothing_diverges_past_convergence(method, rtol, maxiter):
    """Consistent systems, tolerances that rounding may not allow: what comes back is as good as rounding allows."""
    for A, x, rng in shapes(40, 0):
        b = A @ x
        call = linalg.lstsq if method == "lstsq" else SYSTEMS[method]
        options = {"method": "cgls"} if method == "lstsq" else {}
        start = rng.standard_normal(len(x)) if rng.random() < 0.3 else None
        found = call(A, b, x0=start, rtol=rtol, maxiter=maxiter, random_state=0, full_output=True, **options)
        assert found.status in ("converged", "stalled", "max_passes")
        assert np.all(np.isfinite(found.w))
        if method == "solve":
            assert np.linalg.norm(b - A @ found.w) <= 1e-12 * np.linalg.norm(b)
        gaps = found.history.gap
        # A residual is known up to n eps (|A| |x| + |b|), and A' times it up to |A| times that, however it is computed.
        known = len(x) * EPS * np.linalg.norm(abs(A) @ abs(found.x) + abs(b))
        floor = known if method != "lstsq" else known * np.sqrt(np.sum(np.square(A.data if sp.issparse(A) else A)))
        assert found.gap <= gaps[0] + floor
        assert found.gap <= 2 * gaps.min() + floor, "not the best point that was recorded"


@pytest.mark.parametrize("rtol", [0.0, 1e-16])
def test_positive_definite_systems_neither(rtol):
    rng = np.random.default_rng(1)
    for _ in range(40):
        n = int(rng.integers(1, 60))
        Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
        A = Q * 10 ** rng.uniform(-4, 0, n) @ Q.T
        A = (A + A.T) / 2
        b = A @ rng.standard_normal(n)
        found = linalg.spd_solve(A, b, rtol=rtol, maxiter=1000, full_output=True)
        assert np.all(np.isfinite(found.w))
        assert np.linalg.norm(b - A @ found.w) <= 1e-11 * np.linalg.norm(b)
        assert found.gap == pytest.approx(np.linalg.norm(b - A @ found.w), rel=1e-3, abs=1e-15)


@pytest.mark.parametrize("method", ["cgls", "lstsq", "cg"])
@pytest.mark.parametrize("stop", ["maxiter", "callback"])
def test_the_best_point_that_was_recorded_comes_back(method, stop):
    """Residuals of conjugate gradients, and gradients of CGLS, rise on the way."""
    rng = np.random.default_rng(2)
    rose = 0
    for _ in range(30):
        n = 40
        A = rng.standard_normal((n, n)) * 10 ** rng.uniform(-2, 2, n)
        A = A @ A.T if method == "cg" else A
        b = A @ rng.standard_normal((n, 2))
        calls, most = [], int(rng.integers(2, 40))

        def count(x, calls=calls, most=most):
            calls.append(1)
            return len(calls) > most and stop == "callback"

        options = {"rtol": 1e-12, "maxiter": most if stop == "maxiter" else 1000, "callback": count}
        options |= {"full_output": True, "random_state": 0}
        if method == "cg":
            found = linalg.spd_solve(A, b, **options)
        elif method == "lstsq":
            found = linalg.lstsq(A, b, method="cgls", **options)
        else:
            found = linalg.solve(A, b, method="cgls", **options)
        residual = b - A @ found.w
        gap = np.linalg.norm(A.T @ residual if method == "lstsq" else residual, axis=0)
        np.testing.assert_allclose(found.gap, gap, rtol=1e-6, atol=1e-12 * gap.max())
        gaps = found.history.gap
        rose += np.any(gaps[-1] > 1.01 * gaps.min(axis=0))
        assert np.all(gap <= 1.0001 * gaps.min(axis=0) + 1e-13 * gaps[0])
    assert rose > 3 or method == "cgls"  # whose residuals fall


@pytest.mark.parametrize("method", SYSTEMS)
@pytest.mark.parametrize("noise", [1e-2, 1e-4, 1e-6, 1e-8, 1e-10])
@pytest.mark.parametrize("rtol", [1e-2, 1e-6])
def test_a_solution_that_is_hard_to_find_is_not_denied(method, noise, rtol):
    """Rows that are nearly parallel, with right-hand sides that only large x can meet."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((8, 1)) + noise * rng.standard_normal((8, 20))
        b = rng.standard_normal(8)
        exact = np.linalg.lstsq(A, b, rcond=None)[0]
        result = SYSTEMS[method](A, b, rtol=rtol, maxiter=2000, random_state=0, full_output=True)
        assert result.status != "inconsistent"
        if method == "solve" and np.linalg.norm(b - A @ exact) <= 1e-3 * rtol * np.linalg.norm(b):
            assert result.converged


@pytest.mark.parametrize("method", SYSTEMS)
@pytest.mark.parametrize("contradiction", [1e-3, 1.0, 100.0])
def test_a_system_without_a_solution_leaves_a_point_of_least_squares(method, contradiction):
    rng = np.random.default_rng(3)
    A = rng.standard_normal((60, 8))
    b = A @ rng.standard_normal(8)
    b += contradiction * np.linalg.norm(b) * rng.standard_normal(60) / 8
    least = np.linalg.norm(b - A @ np.linalg.lstsq(A, b, rcond=None)[0])
    x, info = SYSTEMS[method](A, b, random_state=0)
    assert info == -1
    assert np.linalg.norm(b - A @ x) <= (1 + 1e-9 if method in ("solve", "cgls") else 3) * least


@pytest.mark.parametrize("method", SYSTEMS)
def test_zero_rows_that_contradict_leave_the_solution_of_the_others(method):
    rng = np.random.default_rng(4)
    A = rng.standard_normal((30, 10))
    x = rng.standard_normal((10, 2))
    A[[3, 9]] = 0.0
    b = A @ x
    b[3] = [5.0, 0.0]
    found, info = SYSTEMS[method](A, b, rtol=1e-8, random_state=0, maxiter=10_000)
    assert info == -1
    np.testing.assert_allclose(found, x, atol=1e-6)
    result = SYSTEMS[method](A, b, rtol=1e-8, random_state=0, full_output=True, maxiter=10_000)
    np.testing.assert_allclose(result.gap, np.linalg.norm(b - A @ result.w, axis=0), rtol=1e-6)
    assert "zero rows have right-hand sides of norm 5" in result.notes


@pytest.mark.parametrize("method", SYSTEMS)
def test_one_meaning_of_info(method):
    """0: the inequality holds; positive: passes until a limit came; negative: why more passes would not help."""
    singular = np.array([[1.0, 2.0], [2.0, 4.0]])
    x, info = SYSTEMS[method](singular, [1.0, 1.0], random_state=0)
    assert info == -1
    assert np.linalg.norm(singular @ x - [1, 1]) < np.sqrt(2)
    hard = np.vander(np.linspace(0, 1, 30), 25)
    b = hard @ np.ones(25)
    x, info = linalg.solve(hard, b, rtol=1e-14, method="cgls", maxiter=7)
    assert info in (7, 8)
    assert linalg.lstsq(hard, b, rtol=1e-17, method="cgls", maxiter=10**6)[1] == -2
    assert linalg.spd_solve(np.diag([1.0, 1.0, 1.0]) - 0.9, [1.0, 1.0, 2.0])[1] == -3  # indefinite
    assert SYSTEMS[method](hard, b, rtol=1e-1, random_state=0)[1] == 0
