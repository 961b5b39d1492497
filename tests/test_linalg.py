"""coordwise.linalg: every case with every method, and exactly the inequality that is documented."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import interruption

from coordwise import linalg
from coordwise.datasets.tomography import parallel_beams, phantom
from coordwise.experiments import paper
from coordwise.experiments.systems import random_system

METHODS = {
    "kaczmarz": linalg.kaczmarz,
    "kaczmarz rows": lambda *a, **k: linalg.kaczmarz(*a, scaling="rows", **k),
    "acdm": linalg.acdm,
    "nuacdm": linalg.nuacdm,
    "nuacdm adaptive": lambda *a, **k: linalg.nuacdm(*a, sigma="adaptive", **k),
    "nuacdm rows": lambda *a, **k: linalg.nuacdm(*a, scaling="rows", **k),
    "solve": linalg.solve,
    "cgls": lambda *a, **k: linalg.solve(*a, method="cgls", **k),
}


@dataclass(frozen=True)
class Case:
    """A consistent system; `slow_for` are the methods that need more passes than a test should take."""

    name: str
    A: object
    b: np.ndarray
    slow_for: tuple[str, ...] = ()

    def __str__(self):
        return self.name


def spectrum(m, n, values, seed=0):
    rng = np.random.default_rng(seed)
    k = len(values)
    U = np.linalg.qr(rng.standard_normal((m, k)))[0]
    V = np.linalg.qr(rng.standard_normal((n, k)))[0]
    return U * values @ V.T


def of(name, A, x=None, **options):
    x = np.random.default_rng(1).standard_normal(A.shape[1]) if x is None else x
    return Case(name, A, A @ x, **options)


def grid_laplacian(side, shift):
    path = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(side, side))
    eye = sp.eye_array(side)
    return sp.csr_array(sp.kron(path, eye) + sp.kron(eye, path) + shift * sp.eye_array(side**2))


def cases():
    rng = np.random.default_rng(0)
    yield of("geometric spectrum", spectrum(80, 40, np.geomspace(1, 3e-2, 40)))
    yield of("two clusters", spectrum(60, 30, np.r_[np.full(20, 1.0), np.full(10, 0.05)]))
    yield of("one small value", spectrum(60, 30, np.r_[np.ones(29), 0.02]))
    for share in paper.SHARES:
        for exact in (True, False):
            A, b, _ = random_system(share, 3, paper.LONG_ROWS[share] if exact else None)
            yield Case(f"section 8, {share:.0%} {'exact' if exact else 'random'}", A, b)
    yield of("rays", parallel_beams(6, 60), phantom(6).ravel())
    yield of("Laplacian of a grid", grid_laplacian(7, 0.3))
    graded = rng.standard_normal((90, 30)) * np.geomspace(1e-6, 1e6, 90)[:, None]
    # Without scaling the small rows are hardly ever drawn.
    yield of("graded rows", graded, slow_for=("kaczmarz", "acdm", "nuacdm", "nuacdm adaptive"))
    yield of("rank deficient", spectrum(60, 40, np.linspace(1, 0.3, 15)))
    yield of("wide", rng.standard_normal((30, 90)))
    yield of("tall", rng.standard_normal((900, 20)))
    yield of("very tall, sparse", sp.random_array((3000, 30), density=0.1, rng=rng, format="csr"))
    A = rng.standard_normal((40, 15))
    yield of("duplicate rows", np.vstack([A, A, 3 * A]))
    A[[3, 8, 20]] = 0.0
    yield of("zero rows", A)
    yield of("one column", rng.standard_normal((20, 1)))
    yield of("one row", rng.standard_normal((1, 20)))
    yield of("one equation", np.array([[2.0]]))
    yield of("identity", sp.eye_array(30, format="csr"))


CASES = list(cases())


def norm_ok(case, x, rtol, atol=0.0):
    return np.linalg.norm(case.b - case.A @ x) <= max(rtol * np.linalg.norm(case.b), atol)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_documented_inequality_holds(case, method):
    if method in case.slow_for:
        x, info = METHODS[method](case.A, case.b, maxiter=50, random_state=0)
        assert info == 0 or info >= 50
        assert (info == 0) == norm_ok(case, x, 1e-5)
        return
    for rtol in (1e-5, 1e-8):
        x, info = METHODS[method](case.A, case.b, rtol=rtol, maxiter=20_000, random_state=0)
        assert info == 0
        assert x.shape == (case.A.shape[1],)
        assert norm_ok(case, x, rtol)


@pytest.mark.parametrize("method", METHODS)
def test_atol_is_enough(method):
    case = CASES[0]
    x, info = METHODS[method](case.A, case.b, rtol=0.0, atol=1e-3, random_state=0)
    assert info == 0
    assert norm_ok(case, x, 0.0, 1e-3)
    assert norm_ok(case, x, 1e-13) == (method == "solve")  # which factorises it


@pytest.mark.parametrize("method", METHODS)
def test_default_tolerance_is_scipys(method):
    case = CASES[3]
    result = METHODS[method](case.A, case.b, random_state=0, full_output=True)
    assert result.converged
    assert result.scale == pytest.approx(1e-5 * np.linalg.norm(case.b), rel=1e-12)
    assert result.gap == pytest.approx(np.linalg.norm(case.b - case.A @ result.w), rel=1e-6, abs=1e-12)
    assert result.gap <= result.scale


@pytest.mark.parametrize("method", sorted(set(METHODS) - {"solve"}))
def test_solution_nearest_to_the_start(method):
    """Row action stays in x0 + the span of the rows: the solution of smallest norm, or the one nearest to x0."""
    rng = np.random.default_rng(2)
    A = rng.standard_normal((20, 50))
    b = A @ rng.standard_normal(50)
    x, info = METHODS[method](A, b, rtol=1e-11, random_state=0, maxiter=20_000)
    assert info == 0
    np.testing.assert_allclose(x, np.linalg.lstsq(A, b, rcond=None)[0], atol=1e-9)
    x0 = rng.standard_normal(50)
    x, info = METHODS[method](A, b, x0, rtol=1e-11, random_state=0, maxiter=20_000)
    assert info == 0
    np.testing.assert_allclose(x, x0 + np.linalg.lstsq(A, b - A @ x0, rcond=None)[0], atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_a_good_start_ends_at_once(method):
    case = CASES[0]
    first, _ = METHODS[method](case.A, case.b, rtol=1e-9, random_state=0, maxiter=20_000)
    result = METHODS[method](case.A, case.b, first, rtol=1e-8, random_state=0, full_output=True)
    assert result.converged
    assert result.iterations == 0
    np.testing.assert_allclose(result.w, first, rtol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_a_zero_right_hand_side_has_the_solution_zero(method):
    A = np.random.default_rng(0).standard_normal((20, 5))
    for start in (None, np.ones(5)):
        x, info = METHODS[method](A, np.zeros(20), start)
        assert info == 0
        np.testing.assert_array_equal(x, np.zeros(5))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("K", [1, 3, 9])
def test_several_right_hand_sides_at_once(method, K):
    rng = np.random.default_rng(3)
    A = rng.standard_normal((120, 30))
    X = rng.standard_normal((30, K)) * 10.0 ** np.arange(K)
    X[:, K // 2] = 0.0
    x, info = METHODS[method](A, A @ X, rtol=1e-7, random_state=0)
    assert info == 0
    assert x.shape == (30, K)
    residual, b = np.linalg.norm(A @ X - A @ x, axis=0), np.linalg.norm(A @ X, axis=0)
    assert np.all(residual <= 1e-7 * b)


def test_right_hand_sides_together_are_the_same_as_alone():
    """The drawn rows are those of the seed, so each column has the iterates it has alone."""
    rng = np.random.default_rng(4)
    A, X = rng.standard_normal((90, 20)), rng.standard_normal((20, 3))
    together = linalg.nuacdm(A, A @ X, rtol=0.0, maxiter=7, random_state=5)[0]
    for k in range(3):
        alone = linalg.nuacdm(A, A @ X[:, k], rtol=0.0, maxiter=7, random_state=5)[0]
        np.testing.assert_allclose(together[:, k], alone, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_info_is_the_number_of_passes_where_it_did_not_converge(method):
    A = spectrum(60, 30, np.geomspace(1, 1e-4, 30))
    b = A @ np.ones(30)
    options = {} if method != "solve" else {"method": "cgls"}
    x, info = METHODS[method](A, b, rtol=1e-13, maxiter=5, random_state=0, **options)
    assert info in (5, 6)
    result = METHODS[method](A, b, rtol=1e-13, maxiter=5, random_state=0, full_output=True, **options)
    np.testing.assert_array_equal(result.w, x)
    assert result.status == "max_passes"
    assert 5 <= result.passes < 6
    assert result.gap == pytest.approx(np.linalg.norm(b - A @ x), rel=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_inconsistent_systems_end_and_say_so(method):
    """A contradiction as large as b, one of a thousandth of it, two contradicting rows, a zero row."""
    rng = np.random.default_rng(5)
    A = rng.standard_normal((100, 20))
    b = A @ rng.standard_normal(20)
    noise = rng.standard_normal(100)
    for right in (b + 5 * noise, b + 5e-3 * noise):
        result = METHODS[method](A, right, random_state=0, full_output=True)
        assert result.status == "inconsistent", result.message
        assert "lstsq" in result.message
        assert any("least-squares" in note for note in result.notes)
        least = np.linalg.norm(right - A @ np.linalg.lstsq(A, right, rcond=None)[0])
        assert least > result.scale
        assert result.gap >= least * (1 - 1e-9)
        assert result.passes < 1000
    two = np.vstack([A[:10], A[0]])
    result = METHODS[method](two, np.r_[b[:10], b[0] + 1], random_state=0, full_output=True)
    assert result.status == "inconsistent"
    A[7] = 0.0
    result = METHODS[method](A, np.where(np.arange(100) == 7, 1.0, A @ np.ones(20)), full_output=True)
    assert result.status == "inconsistent"
    assert any("zero row" in note for note in result.notes)
    _, info = METHODS[method](A, np.where(np.arange(100) == 7, 1e-9, A @ np.ones(20)), random_state=0)
    assert info == 0  # less than the tolerance


@pytest.mark.parametrize("method", METHODS)
def test_ill_conditioned_is_not_called_inconsistent(method):
    A = spectrum(60, 30, np.geomspace(1, 1e-5, 30))
    result = METHODS[method](A, A @ np.ones(30), rtol=1e-12, maxiter=300, random_state=0, full_output=True)
    assert result.status in ("max_passes", "converged", "stalled")


@pytest.mark.parametrize("method", METHODS)
def test_unreachable_tolerances_end(method):
    A = np.random.default_rng(0).standard_normal((40, 10)) / 3
    result = METHODS[method](A, A @ np.full(10, 1 / 3), rtol=0.0, maxiter=500, random_state=0, full_output=True)
    assert result.status in ("max_passes", "stalled", "converged")
    assert result.gap <= 1e-13 * np.linalg.norm(A @ np.full(10, 1 / 3))


@pytest.mark.parametrize("method", sorted(set(METHODS) - {"solve"}))
def test_callback_sees_the_iterates(method):
    case = CASES[3]
    seen = []
    x, info = METHODS[method](case.A, case.b, callback=seen.append, random_state=0)
    assert info == 0
    assert all(s.shape == x.shape for s in seen)
    residuals = [np.linalg.norm(case.b - case.A @ s) for s in seen]
    assert residuals[0] != pytest.approx(np.linalg.norm(case.b))  # after the first pass or step, not before it
    np.testing.assert_allclose(seen[-1], x, atol=1e-9)
    quiet, _ = METHODS[method](case.A, case.b, random_state=0)
    assert norm_ok(case, quiet, 1e-5)

    def stop(xk):
        xk[:] = np.nan  # the callback's array is its own
        calls.append(1)
        return len(calls) == 3

    calls = []
    result = METHODS[method](case.A, case.b, rtol=1e-14, callback=stop, random_state=0, full_output=True)
    assert result.status == "stopped"
    assert len(calls) == 3
    assert np.all(np.isfinite(result.w))


@pytest.mark.parametrize("method", ["kaczmarz", "acdm", "nuacdm", "solve"])
def test_same_seed_same_solution(method):
    A = np.random.default_rng(0).standard_normal((3000, 130))
    b = A @ np.ones(130)
    one, two, other = (METHODS[method](A, b, random_state=s)[0] for s in (1, 1, 2))
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, other)


def test_history_has_the_course():
    case = CASES[3]
    for method in METHODS.values():
        result = method(case.A, case.b, rtol=1e-9, random_state=0, full_output=True)
        h = result.history
        assert len(h) >= 1
        assert np.all(np.diff(h.passes) >= 0)
        assert result.passes == pytest.approx(h.passes[-1])
        assert h.gap[-1] <= result.scale


class TestSolve:
    def test_says_what_it_chose(self):
        rng = np.random.default_rng(0)
        small = rng.standard_normal((50, 20))
        assert linalg.solve(small, small @ np.ones(20), full_output=True).method == "direct (QR) on all rows"
        sparse = sp.random_array((400, 200), density=0.1, rng=rng, format="csr") + sp.eye_array(400, 200)
        chosen = linalg.solve(sparse, sparse @ np.ones(200), full_output=True)
        assert chosen.method.startswith("cgls on all rows")
        tall = sp.random_array((20_000, 200), density=0.05, rng=rng, format="csr")
        chosen = linalg.solve(tall, tall @ np.ones(200), random_state=0, full_output=True)
        assert chosen.method == "kaczmarz on 3200 of 20000 rows"
        assert chosen.passes < 3
        assert chosen.passes == chosen.history.passes[-1]
        assert chosen.gap == chosen.history.gap[-1]
        less = linalg.solve(tall[:5000], tall[:5000] @ np.ones(200), random_state=0, full_output=True)
        assert less.method == "cgls on 800 of 5000 rows"

    def test_a_sample_that_says_nothing_about_the_rest(self):
        """One column is seen by a single row: samples miss it, and the whole system is solved in the end."""
        rng = np.random.default_rng(1)
        A = rng.standard_normal((8000, 150))
        A[:, 0] = 0.0
        A[4321, 0] = 50.0
        b = A @ np.ones(150)
        for method in ("auto", "cgls"):
            x, info = linalg.solve(A, b, rtol=1e-8, random_state=0, method=method)
            assert info == 0
            assert np.linalg.norm(b - A @ x) <= 1e-8 * np.linalg.norm(b)

    def test_inconsistent_where_samples_are_not(self):
        rng = np.random.default_rng(2)
        A = rng.standard_normal((9000, 140))
        b = A @ rng.standard_normal(140)
        b[5000] += 100.0
        result = linalg.solve(A, b, random_state=0, full_output=True)
        assert result.status == "inconsistent"

    def test_scaling_is_stated(self):
        rng = np.random.default_rng(3)
        A = rng.standard_normal((300, 200)) * 10 ** rng.uniform(-2, 2, (300, 1))
        result = linalg.solve(A, A @ np.ones(200), rtol=1e-8, full_output=True)
        assert any("rows scaled" in note for note in result.notes)
        assert np.linalg.norm(A @ (result.w - 1)) <= 1e-8 * np.linalg.norm(A @ np.ones(200))

    def test_rank_is_reported(self):
        A = spectrum(60, 40, np.linspace(1, 0.3, 15))
        assert "rank 15 of at most 40" in linalg.solve(A, A @ np.ones(40), full_output=True).notes
        assert "rank 15 of at most 40" in linalg.lstsq(A, np.ones(60), full_output=True).notes

    def test_dense_systems_too_hard_for_iterations_are_factorised(self):
        A = spectrum(300, 300, np.geomspace(1, 1e-6, 300))
        result = linalg.solve(A, A @ np.ones(300), rtol=1e-10, full_output=True)
        assert result.converged
        assert result.method == "direct (QR) on all rows"

    @pytest.mark.parametrize("name", ["kaczmarz", "acdm", "nuacdm", "cgls", "direct"])
    def test_methods_by_name(self, name):
        case = CASES[3]
        result = linalg.solve(case.A, case.b, method=name, random_state=0, full_output=True)
        assert result.converged
        assert name.replace("nuacdm", "nu_acdm") in result.method


SCRIPT = """
    import numpy as np, coordwise as cw
    from coordwise import linalg
    rng = np.random.default_rng(0)
    U, V = (np.linalg.qr(rng.standard_normal((400, 400)))[0] for _ in range(2))
    A = U * np.geomspace(1, 1e-9, 400) @ V
    b = A @ np.ones(400)
    calls = []
    def ready(xk):
        calls.append(1)
        if len(calls) == 3:
            print("ready", flush=True)
    try:
        {call}(A, b, rtol=0.0, maxiter=10**9, callback=ready, random_state=0{more})
    except cw.Interrupted as stop:
        result = stop.result
    residual = b - A @ result.w
    gap = np.linalg.norm(residual if result.certificate == "residual norm" else A.T @ residual)
    print(result.status, result.passes > 0, bool(gap < 0.1 * result.history.gap[0]), bool(np.isclose(result.gap, gap)))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT cannot be sent to one process there")
@pytest.mark.parametrize(
    ("call", "more"),
    [("linalg.nuacdm", ""), ("linalg.kaczmarz", ""), ("linalg.lstsq", ", method='columns'")],
)
def test_interrupt_keeps_the_best_result(call, more):
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SCRIPT.format(call=call, more=more))],
        stdout=subprocess.PIPE,
        env=os.environ,
    ) as process:
        assert process.stdout.readline() == b"ready\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    assert out.decode().split() == ["interrupted", "True", "True", "True"]


@pytest.mark.parametrize("which", ["cgls", "cg"])
def test_interrupted_conjugate_gradients_keep_their_point(which):
    A = grid_laplacian(20, 1e-4)
    calls = []

    def interrupt(xk):
        calls.append(1)
        if len(calls) == 6:
            raise KeyboardInterrupt

    call = {
        "cgls": lambda: linalg.solve(
            A, A @ np.ones(400), rtol=1e-12, method="cgls", callback=interrupt, full_output=True
        ),
        "cg": lambda: linalg.spd_solve(A, A @ np.arange(400.0), rtol=1e-12, callback=interrupt, full_output=True),
    }[which]
    result = interruption(call)
    assert result.status == "interrupted"
    assert result.iterations == 6
    assert result.gap < result.history.gap[0]
