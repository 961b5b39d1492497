"""The loop around solvers: limits, callback, Ctrl-C and lost samples at every visit; the best point is kept."""

import numpy as np
import pytest

from coordwise import Interrupted, Status
from coordwise.drive import Limits, drive
from coordwise.interrupts import Failed
from coordwise.losses import get_loss
from coordwise.oracle import Candidate, Oracle, Problem, Work
from coordwise.samples import Block, Chunks, Memory
from coordwise.samples.base import RowsLost
from coordwise.solvers import NewtonCG

TOL = 1e-6


def table(seed=0, n=90, d=5):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d))
    return A, np.where(A @ rng.standard_normal(d) + rng.standard_normal(n) > 0, 1.0, -1.0)[:, None]


def oracle_of(loss="logistic", l2=1e-2, *, chunks=False, poll=None, intercept=True):
    A, b = table()
    if not chunks:
        return Oracle(Memory(Block(A, b, constant=intercept)), Problem(get_loss(loss), l2, intercept), poll)
    cuts = [slice(0, 1), slice(1, 50), slice(50, 90)]
    loads = [lambda cut=cut: Block(A[cut], b[cut], constant=intercept) for cut in cuts]
    return Oracle(Chunks(loads), Problem(get_loss(loss), l2, intercept), poll)


def objective(w, l2=1e-2):
    A, b = table()
    return np.mean(np.logaddexp(0, -b[:, 0] * (A @ w[:-1, 0] + w[-1, 0]))) + l2 / 2 * np.sum(w[:-1, 0] ** 2)


def check_bound(found, best):
    """Whatever ended the run: P is that of the weights, and P - min P <= gap <= P."""
    assert found.value[0] == pytest.approx(objective(found.w), rel=1e-12)
    assert -1e-14 <= found.value[0] - best <= found.gap[0] + 1e-14
    assert found.gap[0] <= found.value[0]
    assert found.value[0] <= np.log(2) * (1 + 1e-15)  # never worse than zeros


@pytest.fixture(scope="module")
def best():
    return drive(oracle_of(), [NewtonCG()], 1e-13).value[0]


def test_it_ends_by_its_inequality_and_says_what_it_took(best):
    seen = []
    oracle = oracle_of()
    found = drive(oracle, [NewtonCG()], TOL, callback=seen.append)
    assert found.status is Status.CONVERGED
    assert found.scale[0] == pytest.approx(np.log(2))
    assert found.gap[0] <= TOL * found.scale[0]
    check_bound(found, best)
    assert oracle.work == Work()  # the caller's is left as it was
    assert found.passes == found.work.entries / 450
    assert [look.solver for look in found.history] == [""] + ["newton_cg"] * (len(found.history) - 1)
    assert np.all(np.diff([look.error for look in found.history]) <= 0)
    assert [progress.passes for progress in seen] == [look.passes for look in found.history]
    np.testing.assert_array_equal(seen[-1].solution(), found.w)


@pytest.mark.parametrize("chunks", [False, True])
@pytest.mark.parametrize("error", [KeyboardInterrupt, RowsLost])
def test_whatever_is_raised_at_whichever_visit_the_best_point_comes_with_it(best, chunks, error):
    visits = 0

    def count():
        nonlocal visits
        visits += 1

    drive(oracle_of(chunks=chunks, poll=count), [NewtonCG()], TOL)
    most = visits
    assert most > 20
    for k in range(most):
        visits = 0

        def raises(k=k):
            nonlocal visits
            visits += 1
            if visits > k:
                raise error("gone")

        with pytest.raises(Interrupted if error is KeyboardInterrupt else Failed) as stop:
            drive(oracle_of(chunks=chunks, poll=raises), [NewtonCG()], TOL)
        left = stop.value.result
        assert left.status is (Status.INTERRUPTED if error is KeyboardInterrupt else Status.STALLED)
        if np.isfinite(left.value[0]):  # else it came before the objective at zero was known, and w = 0
            check_bound(left, best)
        else:
            assert not left.w.any()


def test_limits_and_the_callback_end_it(best):
    whole = drive(oracle_of(), [NewtonCG()], 1e-12)
    short = drive(oracle_of(), [NewtonCG()], 1e-12, limits=Limits(passes=whole.passes / 3))
    assert short.status is Status.MAX_PASSES
    assert short.passes < whole.passes
    check_bound(short, best)
    late = drive(oracle_of(), [NewtonCG()], 1e-12, limits=Limits(seconds=0.0))
    assert late.status is Status.TIME_LIMIT
    stopped = drive(oracle_of(), [NewtonCG()], 1e-12, callback=lambda progress: progress.passes > 0)
    assert stopped.status is Status.STOPPED
    check_bound(stopped, best)
    unmet = drive(oracle_of(), [NewtonCG()], 0.0)
    assert unmet.status is Status.STALLED
    check_bound(unmet, best)


def test_a_start_is_used(best):
    first = drive(oracle_of(), [NewtonCG()], TOL)
    again = drive(oracle_of(), [NewtonCG()], TOL, start=first.w)
    assert again.status is Status.CONVERGED
    assert again.passes < first.passes / 2
    check_bound(again, best)


def test_refusals_name_every_solver():
    with pytest.raises(ValueError, match="newton_cg: it needs a smooth loss"):
        drive(oracle_of("hinge"), [NewtonCG()], TOL)


class Split:
    """Yields good weights without duals first, then good duals with bad weights."""

    name, sure = "split", False

    def __init__(self, good):
        self.good = good

    def refuses(self, oracle):
        return ""

    def forecast(self, oracle, folds):
        return Work(1.0)

    def rounds(self, oracle, start, goal):
        point = oracle.at(self.good)
        yield Candidate(point.w, point.slopes, point.value, np.array([np.inf]))
        found = oracle.certificate(point)
        worse = oracle.at(0.5 * self.good)
        yield Candidate(worse.w, found.y, worse.value, worse.value - found.value + found.gap)


def test_the_best_weights_and_the_best_bound_may_come_from_different_candidates(best):
    good = drive(oracle_of(), [NewtonCG()], 1e-10)
    found = drive(oracle_of(), [Split(good.w)], TOL)
    assert found.status is Status.CONVERGED
    np.testing.assert_allclose(found.w, good.w, atol=1e-12)
    check_bound(found, best)
    (y, column) = found.duals[0]
    assert column == 0
    assert y[0].shape == (90, 1)
