"""The driver: stopping, reproducibility, interruption, threads, warm starts, history."""

import copy
import dataclasses
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import interruption, unequal_rows

import coordwise as cw
from coordwise.erm import PrimalERM
from coordwise.kernels import Run
from coordwise.methods import METHODS
from coordwise.recording import worth_recording
from coordwise.results import Status
from coordwise.rows import Rows


def ridge(n=300, d=60, lam=1e-3, seed=0, **options):
    A = sp.csr_array(unequal_rows(n, d, seed=seed, density=0.2))
    return cw.ERM(A, np.random.default_rng(seed).standard_normal(n), lam=lam, **options)


@pytest.mark.parametrize("method", sorted(set(METHODS) - {"kaczmarz"}))
def test_every_method_reaches_the_same_solution(method):
    problem = ridge(lam=0.5)
    exact = cw.solve(problem.dual(), tol=1e-14)
    result = cw.solve(problem.dual(), method, tol=1e-9, max_passes=100_000)
    assert result.converged
    assert result.gap <= 1e-9 * problem.value(np.zeros(60))
    np.testing.assert_allclose(result.w, exact.w, atol=1e-3 * np.abs(exact.w).max())
    assert method in result.method or method == "auto"


def test_stops_at_the_first_record_that_meets_the_inequality():
    problem = ridge()
    result = cw.solve(problem.dual(), tol=1e-6, record_growth=0)
    at_zero = problem.value(np.zeros(60))
    assert result.converged
    assert np.all(result.history.gap[:-1] > 1e-6 * at_zero)
    assert result.history.gap[-1] <= 1e-6 * at_zero


@pytest.mark.parametrize(
    ("shape", "storage", "passes"),
    [
        ((100, 50), np.asarray, 4.0),
        ((100, 50), sp.csr_array, 4.0),
        ((2000, 250), sp.csr_array, 2.0),
        ((2000, 1000), sp.csr_array, 1.0),
        ((2000, 1000), np.asarray, 2.5),
    ],
)
def test_small_data_are_recorded_less_often(shape, storage, passes):
    assert worth_recording(Rows(storage(np.ones(shape)))) == pytest.approx(passes)


def test_history_and_passes_can_be_recomputed():
    problem = ridge()
    result = cw.solve(problem.dual(), "nu_acdm", tol=1e-8, record_every=2.0, record_growth=0, random_state=3)
    h = result.history
    # entries touched = sum of the lengths of the drawn rows
    from coordwise import sampling

    L = 1 / 300 + problem.A.power(2).sum(axis=1) / (1e-3 * 300**2)
    p = np.sqrt(L) / np.sqrt(L).sum()
    drawn = sampling.draw_weighted(3, sampling.alias_cells(p), result.iterations)
    lengths = np.diff(problem.A.indptr)
    touched = np.cumsum(lengths[drawn])
    assert result.passes == touched[-1] / problem.A.nnz
    for steps, passes in zip(h.iterations[1:], h.passes[1:], strict=True):
        assert passes == touched[steps - 1] / problem.A.nnz
    assert np.all(np.diff(h.passes) >= 2.0)
    assert np.all(np.diff(h.passes) < 2.0 + lengths.max() / problem.A.nnz)
    assert h.iterations[0] == 0
    assert h.seconds[-1] == result.seconds
    assert np.all(np.diff(h.seconds) > 0)


def test_records_grow_apart():
    problem = ridge()
    result = cw.solve(problem.dual(), tol=0, max_passes=400, record_growth=0.5)
    gaps = np.diff(result.history.passes)
    assert gaps[0] < 1.2
    assert gaps[-2] > 0.4 * result.history.passes[-3]
    assert result.status == "max_passes"
    assert 400 <= result.passes < 401


@pytest.mark.parametrize("method", ["nu_acdm", "nu_acdm_ns", "sdca", cw.NUACDM(sigma="adaptive")])
def test_same_seed_same_bits(method):
    problem = ridge(lam=0.5)
    one, two = (cw.solve(problem.dual(), method, max_passes=30, random_state=5) for _ in range(2))
    np.testing.assert_array_equal(one.point, two.point)
    np.testing.assert_array_equal(one.history.gap, two.history.gap)
    other = cw.solve(problem.dual(), method, max_passes=30, random_state=6)
    assert not np.array_equal(one.point, other.point)


def test_records_do_not_change_the_run():
    problem = ridge()
    a = cw.solve(problem.dual(), "nu_acdm", tol=0, max_passes=20, record_every=0.25, record_growth=0)
    b = cw.solve(problem.dual(), "nu_acdm", tol=0, max_passes=20, record_every=20)
    assert a.iterations == b.iterations
    assert a.history.value[-1] == b.history.value[-1]
    assert a.history.gap[-1] == b.history.gap[-1]


def test_random_states():
    problem = ridge(lam=0.5)
    fixed = cw.solve(problem.dual(), max_passes=5, random_state=np.random.default_rng(1))
    again = cw.solve(problem.dual(), max_passes=5, random_state=np.random.default_rng(1))
    np.testing.assert_array_equal(fixed.point, again.point)
    legacy = [cw.solve(problem.dual(), max_passes=5, random_state=np.random.RandomState(1)).point for _ in range(2)]
    np.testing.assert_array_equal(*legacy)
    fresh = [cw.solve(problem.dual(), max_passes=5, random_state=None).point for _ in range(2)]
    assert not np.array_equal(*fresh)


@pytest.mark.parametrize("shared", [False, True], ids=["two objectives", "one objective"])
def test_two_threads_at_once_equal_one_after_the_other(shared):
    objectives = [ridge(seed=3).dual()] * 2 if shared else [ridge(seed=s).dual() for s in (1, 2)]
    together = [None, None]

    def work(k):
        together[k] = cw.solve(objectives[k], tol=1e-11, random_state=k).point

    threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for k in range(2):
        np.testing.assert_array_equal(together[k], cw.solve(objectives[k], tol=1e-11, random_state=k).point)


def test_callback_sees_progress_and_stops():
    seen = []

    def callback(progress):
        seen.append(progress)
        return len(seen) == 4

    result = cw.solve(ridge().dual(), "nu_acdm", callback=callback, record_growth=0, tol=1e-12)
    assert result.status == "stopped"
    assert len(seen) == 4 == len(result.history)
    assert [p.iterations for p in seen] == result.history.iterations.tolist()
    assert seen[0].predicted_passes_left > 0
    error = seen[-1].gap / seen[-1].scale
    rate = result.constants.rate_per_pass
    assert seen[-1].predicted_passes_left == pytest.approx(np.log(1e-12 / error) / np.log(rate))


def test_truthy_callback_values_do_not_stop():
    result = cw.solve(ridge().dual(), callback=lambda p: 1, tol=1e-6)
    assert result.converged


def test_time_limit_is_kept_inside_long_blocks():
    problem = ridge(n=3000, d=400)
    begun = time.perf_counter()
    result = cw.solve(problem.dual(), "rcdm", tol=0, max_passes=1e9, time_limit=0.3, record_every=1e8)
    assert result.status == "time_limit"
    assert time.perf_counter() - begun < 20  # a pass limit alone would take hours
    assert result.passes > 0


def test_warm_start():
    problem = ridge()
    cold = cw.solve(problem.dual(), tol=1e-9)
    warm = cw.solve(problem.dual(), tol=1e-9, x0=cold.point)
    assert warm.iterations == 0
    assert warm.converged
    np.testing.assert_array_equal(warm.point, cold.point)
    near = cw.solve(ridge(lam=1.1e-3).dual(), tol=1e-9, x0=cold.point)
    assert near.passes < cold.passes


@pytest.mark.parametrize(("what", "call"), [("settle", 1), ("replan", 2)])
def test_ctrl_c_while_the_schedule_changes_keeps_the_point_that_was_certified(what, call, monkeypatch):
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((300, 50)), np.where(rng.random(300) < 0.5, 1.0, -1.0)
    calls, done = [], getattr(Run, what)

    def interrupted(self, *args):
        done(self, *args)
        calls.append(1)
        if len(calls) == call:
            raise KeyboardInterrupt

    monkeypatch.setattr(Run, what, interrupted)
    result = interruption(cw.solve, cw.ERM(A, b, loss="squared_hinge", lam=0.1).dual(), tol=1e-9)
    assert result.status is Status.INTERRUPTED
    assert result.history.gap[-1] < result.history.gap[:-1].min()  # it had moved
    assert result.gap == pytest.approx(result.history.gap[-1], rel=1e-9)


def test_x0_is_moved_into_the_domain():
    A = unequal_rows(40, 10)
    b = np.where(np.arange(40) % 2, 1.0, -1.0)
    problem = cw.ERM(A, b, loss="hinge", lam=0.1)
    result = cw.solve(problem.dual(), x0=np.full(40, 7.0), max_passes=3, tol=0)
    assert np.isfinite(problem.dual_value(result.point))
    assert np.all(np.isfinite(result.history.gap))


def test_not_converged_returns_the_best_point():
    problem = ridge(lam=1e-5)
    result = cw.solve(problem.dual(), tol=0, max_passes=30, record_growth=0)
    assert result.gap == pytest.approx(result.history.gap.min(), rel=1e-6)
    assert result.status == "max_passes"
    assert "max_passes" in result.message
    assert not result.converged


def test_a_system_without_a_solution_ends_with_finite_numbers():
    A = unequal_rows(60, 30, seed=4)
    b = np.random.default_rng(4).standard_normal(60)
    with np.errstate(all="ignore"):
        result = cw.solve(cw.LinearSystem(A, b), cw.NUACDM(sigma=1e-3), tol=1e-8, max_passes=1e6, time_limit=60)
    assert result.status in ("diverged", "max_passes")
    assert np.all(np.isfinite(result.w))


def test_divergence_is_reported(monkeypatch):
    objective = ridge(lam=0.5).dual()
    certificate, calls = type(objective).certificate, []

    def overflowing(self, image, sums):
        calls.append(None)
        found = certificate(self, image, sums)
        return dataclasses.replace(found, gap=found.gap * np.inf) if len(calls) == 5 else found

    monkeypatch.setattr(type(objective), "certificate", overflowing)
    result = cw.solve(objective, tol=1e-14, record_growth=0)
    assert result.status == "diverged"
    assert np.isinf(result.history.gap[-1])
    assert result.gap == pytest.approx(result.history.gap[:-1].min())


def test_inconsistent_zero_row():
    A = unequal_rows(20, 5)
    A[3] = 0
    b = A @ np.ones(5)
    assert cw.solve(cw.LinearSystem(A, b), tol=1e-9, max_passes=10_000).converged
    for method in ("auto", "kaczmarz", "sdca", "acdm"):
        assert cw.solve(cw.LinearSystem(A, b), method, tol=1e-6, max_passes=100_000).converged
    b[3] = 1.0
    result = cw.solve(cw.LinearSystem(A, b))
    assert result.status == "inconsistent"
    assert "LeastSquares" in result.status.help


def test_adaptive_needs_at_most_twice_the_passes_of_a_known_sigma(paper_dataset):
    A, b = paper_dataset("w8a")
    problem = cw.ERM(A, b, lam=1e-5)
    known, adaptive = (
        [cw.solve(problem.dual(), m, tol=1e-8, random_state=s, record_growth=0).passes for s in range(3)]
        for m in (cw.NUACDM(), cw.NUACDM(sigma="adaptive"))
    )
    assert np.median(adaptive) <= 2 * np.median(known)


def test_adaptive_is_linear_without_known_sigma():
    problem = ridge(lam=1e-3)
    result = cw.solve(problem.dual(), cw.NUACDM(sigma="adaptive"), tol=1e-13, max_passes=5000)
    plain = cw.solve(problem.dual(), "nu_acdm_ns", tol=1e-13, max_passes=5000)
    assert result.converged
    assert result.passes < plain.passes / 3
    assert result.history.restarts[-1] > 3
    assert plain.history.restarts[-1] == 0


def test_nonuniform_sample_weights_pay():
    """Norm weights from each term's own curvature: fewer passes than in the Euclidean norm if they differ much."""
    rng = np.random.default_rng(0)
    weight = 10 ** rng.uniform(-2, 2, 300)
    problem = ridge(sample_weight=weight)
    auto = cw.solve(problem.dual(), tol=1e-8, max_passes=20_000)
    euclidean = cw.solve(problem.dual(), cw.NUACDM(beta=0.0), tol=1e-8, max_passes=20_000)
    assert auto.converged
    assert auto.passes < euclidean.passes / 2


def test_weights_many_orders_apart_keep_their_constants():
    """L = curvature + sigma w must not be found by subtracting numbers 1e16 times larger."""
    A = np.ones((4, 1))
    weight = np.array([1.0, 1.0, 1.0, 1e-17])
    objective = cw.ERM(A, np.array([1.0, -1.0, 1.0, 1.0]), loss="squared_hinge", lam=1.0, sample_weight=weight).dual()
    L = np.sort(np.full(4, 1 / weight.sum() ** 2) + 1 / weight.sum())  # sigma = min own = 1/W, w = 1
    constants = cw.NUACDM().schedule(objective).constants
    assert constants.L_max == pytest.approx(L[-1], rel=1e-12)
    assert constants.L_min == pytest.approx(L[0], rel=1e-12)


@pytest.mark.parametrize("factor", [1e-2, 1e-6])
def test_one_short_row_does_not_slow_the_rest(factor):
    """The proximal form without strong convexity starts at tau_0 = min p: one tiny row must not set it."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((300, 20))
    b = np.sign(A[:, 0] + 0.5 * rng.standard_normal(300))
    short = A.copy()
    short[7] *= factor
    for method in ("auto", cw.NUACDM(sigma="adaptive")):
        plain, result = (cw.solve(cw.ERM(X, b, loss="hinge", lam=1e-2).dual(), method, tol=1e-4) for X in (A, short))
        assert result.converged
        assert result.passes < 4 * plain.passes


@pytest.mark.parametrize("objective", ["lasso", "least squares", "ridge primal"])
def test_auto_does_not_depend_on_the_scale_of_columns(objective):
    rng = np.random.default_rng(1)
    A = rng.standard_normal((400, 40))
    b = A @ rng.standard_normal(40) + rng.standard_normal(400)
    scales = 10 ** rng.uniform(-2, 2, 40)

    def passes(A):
        made = {
            "lasso": lambda: cw.ERM(A, b, penalty="l1", lam=1e-3).primal(),
            "least squares": lambda: cw.LeastSquares(A, b),
            "ridge primal": lambda: cw.ERM(A, b, lam=1e-7).primal(),
        }[objective]()
        result = cw.solve(made, tol=1e-6)
        assert result.converged, result.message
        return result.passes

    assert passes(A * scales) < 5 * passes(A)


def test_objects_can_be_pickled_copied_and_compared():
    problem = ridge()
    objective = problem.dual()
    result = cw.solve(objective)
    for thing in (problem, objective, problem.primal(), cw.LinearSystem(problem.A, problem.b[:, 0])):
        for other in (pickle.loads(pickle.dumps(thing)), copy.deepcopy(thing)):
            assert repr(other) == repr(thing)
    again = cw.solve(pickle.loads(pickle.dumps(objective)))
    np.testing.assert_array_equal(again.point, result.point)
    restored = pickle.loads(pickle.dumps(result))
    np.testing.assert_array_equal(restored.w, result.w)
    assert restored.status is result.status
    assert result == result
    assert result != restored
    assert len({result, restored}) == 2
    assert cw.NUACDM(weights=[1.0, 2.0]) == cw.NUACDM(weights=np.array([1.0, 2.0]))
    assert cw.NUACDM(weights=[1.0, 2.0]) != cw.NUACDM(weights=[1.0, 3.0]) != cw.NUACDM()
    assert cw.NUACDM(beta=0.5) == cw.NUACDM(beta=0.5)
    assert "weights=given" in cw.solve(objective, cw.NUACDM(weights=np.ones(300)), max_passes=1).method


def test_the_callers_targets_may_change_afterwards():
    A = unequal_rows(30, 5)
    b, weight = np.ones(30), np.ones(30)
    problem = cw.ERM(A, b, lam=0.1, sample_weight=weight)
    before = cw.solve(problem.dual())
    b *= 10
    weight[:] = np.arange(30)
    np.testing.assert_array_equal(cw.solve(problem.dual()).w, before.w)


def test_callback_is_called_at_every_record():
    seen = []
    result = cw.solve(ridge().dual(), callback=seen.append)
    assert result.converged
    assert [p.passes for p in seen] == result.history.passes.tolist()


def test_all_processors():
    A = unequal_rows(40, 6)
    problem = cw.ERM(A, np.random.default_rng(0).standard_normal((40, 5)), lam=0.1)
    assert cw.solve(problem.dual(), n_jobs=-1).converged


SCRIPT = """
    import sys
    import numpy as np, scipy.sparse as sp, coordwise as cw
    rng = np.random.default_rng(0)
    A = sp.random_array((4000, 500), density=0.05, rng=rng).tocsr()
    problem = cw.ERM(A, rng.standard_normal(4000), lam=1e-8)
    print("ready", flush=True)
    try:
        cw.solve(problem.dual(), "rcdm", tol=0, max_passes=1e12, record_every={every})
    except cw.Interrupted as stop:
        result = stop.result
    print(result.status, result.iterations > 0, np.isfinite(result.gap), problem.gap(result.w, result.point) >= 0)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT cannot be sent to one process there")
@pytest.mark.parametrize("every", ["1.0", "1e9"])
def test_interrupt_keeps_the_best_result(every):
    """Ctrl-C inside a block of steps (every=1e9: one endless block) or between records."""
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SCRIPT.format(every=every))], stdout=subprocess.PIPE, env=os.environ
    ) as process:
        assert process.stdout.readline() == b"ready\n"
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    assert out.decode().split() == ["interrupted", "True", "True", "True"]


def test_result_prints_one_line():
    result = cw.solve(ridge().dual())
    assert repr(result).startswith("<coordwise Result, x of shape 60, nu_acdm(")
    assert "converged: duality gap" in result.message
    assert result.storage.endswith("used in place")


def test_a_callback_sees_gaps_that_are_infinite(monkeypatch):
    whole, seen = PrimalERM.certificate, []

    def endless(self, image, sums):
        return dataclasses.replace(whole(self, image, sums), gap=np.array([np.inf]))

    monkeypatch.setattr(PrimalERM, "certificate", endless)
    A = np.random.default_rng(0).standard_normal((30, 5))
    cw.solve(cw.ERM(A, A[:, 0], lam=0.1).primal(), "nu_acdm", tol=1e-3, max_passes=3, callback=seen.append)
    assert seen
    assert all(progress.predicted_passes_left == np.inf for progress in seen)
