"""The one loop around solvers: limits, callback, Ctrl-C, the best point, its certificate, history, change of solver."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from coordwise.choose.chooser import Choice, rate_left
from coordwise.deadlines import TimeUp
from coordwise.interrupts import Failed, Interrupted
from coordwise.oracle import Candidate, Oracle, Work
from coordwise.recording import Progress, says_stop
from coordwise.results import Status
from coordwise.samples.base import Kept, RowsLost
from coordwise.solvers.base import Solver
from coordwise.validation import FloatArray

__all__ = ["Limits", "Look", "Outcome", "drive"]

EPS = float(np.finfo(float).eps)


@dataclass(frozen=True)
class Limits:
    """Seconds, and passes (entries touched / nnz). They end a run and never steer it."""

    seconds: float = math.inf
    passes: float = math.inf


class Look(NamedTuple):
    """One row of the history: `error` is the largest gap over its scale, of the best point so far."""

    solver: str
    rounds: float
    passes: float
    seconds: float
    cost: float
    value: FloatArray
    error: float


@dataclass(frozen=True, eq=False)
class Outcome:
    """The best weights that were met, and a bound on what they are off by: P(w) - min P <= gap, per output.

    `duals` are dual variables that attain the bound: for every output the arrays that stay with the samples, and the
    column to take. `scale` is what tolerances are relative to.
    """

    w: FloatArray
    value: FloatArray
    gap: FloatArray
    scale: FloatArray
    duals: tuple[tuple[Kept | None, int], ...]
    status: Status
    work: Work
    passes: float
    seconds: float
    solvers: tuple[str, ...]
    history: tuple[Look, ...]

    @property
    def converged(self) -> bool:
        """Whether the stopping inequality holds."""
        return self.status is Status.CONVERGED


def drive(
    oracle: Oracle,
    solvers: Sequence[Solver],
    tol: float,
    *,
    start: FloatArray | None = None,
    limits: Limits | None = None,
    callback: Callable[[Progress], object] | None = None,
) -> Outcome:
    """Run solvers until gap <= tol * scale for every output, or a limit, the callback, Ctrl-C or rounding ends it.

    Parameters
    ----------
    oracle : Oracle
        Its `poll` is called between blocks, besides the clock.
    solvers : sequence of Solver
        Which may run; `coordwise.choose.chooser` chooses among those that apply.
    tol : float
    start : ndarray of shape (d, K), optional
        Weights, with that of the intercept; zeros by default.
    limits : Limits, optional
    callback : callable, optional
        Called with a `Progress` after every candidate; True ends the run.

    Raises
    ------
    ValueError
        If no solver applies, with the reasons.
    Interrupted
        On Ctrl-C, with the outcome so far as its `result`.
    Failed
        If samples were lost; likewise.
    """
    able = [solver for solver in solvers if not solver.refuses(oracle)]
    if not able:
        reasons = "; ".join(f"{solver.name}: {solver.refuses(oracle)}" for solver in solvers)
        raise ValueError(f"no solver applies: {reasons}.")
    trace = _Trace(oracle, tol, Limits() if limits is None else limits)
    oracle, status = trace.oracle, Status.STALLED
    choice: Choice[Solver] = Choice(trace.theory, trace.left)
    runs: dict[str, Iterator[Candidate]] = {}
    try:
        trace.begin(start)
        while able:
            if callback is not None and says_stop(callback(trace.progress())):
                status = Status.STOPPED
                break
            if trace.met or trace.passes >= trace.limits.passes:
                status = Status.CONVERGED if trace.met else Status.MAX_PASSES
                break
            solver = choice.next(able, trace.cost)
            if solver.name not in runs:
                runs[solver.name] = solver.rounds(oracle, trace.w.copy(), trace.goal)
            if (found := next(runs[solver.name], None)) is None:
                able.remove(solver)
            else:
                trace.add(found, solver.name)
    except TimeUp:
        status = Status.TIME_LIMIT
    except RowsLost as error:
        raise Failed(f"{error} The best point so far is the `result` of this exception.", trace.outcome()) from error
    except KeyboardInterrupt:
        left = trace.outcome(Status.INTERRUPTED)
        raise Interrupted.at(left, "duality gap", left.gap, f"{left.passes:.1f} passes") from None
    return trace.outcome(status)


@dataclass
class _Trace:
    """What has happened so far: counted work, history, the best weights and the best dual bound of every output."""

    given: Oracle
    tol: float
    limits: Limits
    begun: float = field(default_factory=time.perf_counter)
    history: list[Look] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.oracle = replace(self.given, poll=self._poll, work=Work())
        d, K = self.oracle.shape
        groups = self.oracle.groups
        self.w = np.zeros((d, K))
        self.value = self.scale = np.full(groups, np.inf)
        self.dual = np.zeros(groups)  # -D(y); no loss is negative, so that y = 0 gives P >= 0
        self.least = np.full(groups, np.inf)  # of the candidates' own gaps, which keep digits that P + D loses
        self.duals: list[tuple[Kept | None, int]] = [(None, k) for k in range(groups)]

    def _poll(self) -> None:
        if self.given.poll is not None:
            self.given.poll()
        if self.seconds > self.limits.seconds:
            raise TimeUp

    def begin(self, start: FloatArray | None) -> None:
        """The values at zero, which tolerances are relative to, and at the start."""
        at_zero, self.scale = self.oracle.zero()
        self._better(at_zero.w, at_zero.value)
        if start is not None:
            point = self.oracle.at(start)
            self._better(point.w, point.value)
        self._note("")

    def add(self, found: Candidate, solver: str) -> None:
        """One more candidate. Until dual variables are good, what P has fallen counts all the same."""
        self._better(found.w, found.value)
        bound = found.value - found.gap
        as_good = (bound >= self.dual - EPS * found.value) & (found.gap < self.least)
        for k in np.flatnonzero((bound > self.dual) | as_good):
            self.duals[k] = found.y, int(k)
        self.dual, self.least = np.fmax(self.dual, bound), np.fmin(self.least, found.gap)
        self._note(solver)

    def _better(self, w: FloatArray, value: FloatArray) -> None:
        lower = value < self.value
        self.w, self.value = np.where(lower, w, self.w), np.where(lower, value, self.value)

    def _note(self, solver: str) -> None:
        work = self.oracle.work
        self.history.append(
            Look(solver, work.rounds, self.passes, self.seconds, self.cost, self.value.copy(), self.error)
        )

    @property
    def gap(self) -> FloatArray:
        """Of the best weights, whose P is at most that of every candidate, and the best dual variables."""
        return np.minimum(np.maximum(self.value - self.dual, EPS * self.value), self.least)

    @property
    def goal(self) -> FloatArray:
        """What gaps have to be."""
        return np.where(self.scale > 0, self.tol * self.scale, self.tol**2)

    @property
    def met(self) -> bool:
        """Whether the stopping inequality holds."""
        return bool(np.all(self.gap <= self.goal))

    @property
    def error(self) -> float:
        """The largest gap over its scale."""
        return float(np.max(self.gap / np.where(self.scale > 0, self.scale, 1.0)))

    @property
    def folds(self) -> float:
        """e-folds of the error that are left."""
        return max(math.log(max(self.error, 1e-300) / max(self.tol, 1e-16)), 0.0)

    @property
    def cost(self) -> float:
        """Of the work so far."""
        return self.oracle.work.cost(self.oracle.samples.price)

    @property
    def passes(self) -> float:
        """Entries touched / nnz."""
        return self.oracle.work.entries / max(self.oracle.samples.sizes.nnz, 1)

    @property
    def seconds(self) -> float:
        """Since the call."""
        return time.perf_counter() - self.begun

    def theory(self, solver: Solver) -> float:
        """The cost to the end that a solver forecasts."""
        return solver.forecast(self.oracle, self.folds).cost(self.oracle.samples.price)

    def left(self, solver: str) -> float | None:
        """The cost to the end at a solver's observed rate."""
        looks = [look for look in self.history if look.solver == solver][-3:]
        values = [look.value.tolist() for look in looks]
        return rate_left([look.cost for look in looks], [look.error for look in looks], values, self.folds)

    def progress(self) -> Progress:
        """For the callback."""
        last = self.history[-1].solver
        left, unit = self.left(last) if last else None, self.cost / self.passes if self.passes > 0 else math.inf
        predicted = math.nan if left is None else left / unit
        rounds = int(self.oracle.work.rounds)
        return Progress(rounds, self.passes, self.seconds, self.value, self.gap, self.scale, 0, predicted, self.w.copy)

    def outcome(self, status: Status = Status.STALLED) -> Outcome:
        """What is returned, or raised with an exception."""
        names = tuple(dict.fromkeys(look.solver for look in self.history if look.solver))
        return Outcome(
            self.w,
            self.value,
            self.gap,
            self.scale,
            tuple(self.duals),
            status,
            self.oracle.work,
            self.passes,
            self.seconds,
            names,
            tuple(self.history),
        )
