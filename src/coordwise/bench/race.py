"""A row's race: tolerances swept from loose to tight, every solver timed to the same accuracies."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from coordwise.bench.rows import Row
from coordwise.bench.worker import Crashed, Entrant, Field, Measured, Overdue, Refused, Worker

__all__ = ["Optimum", "Rules", "race"]


@dataclass(frozen=True)
class Rules:
    """How solvers are compared.

    Parameters
    ----------
    goals : tuple of float
        Accuracies, loose to tight: P(w, c) - min P <= goal * P(0, 0).
    limit : float
        Seconds that a call may take; all of a solver's calls on a problem together, three times that.
    repeats : int
        Times of the winners (and ours) are medians of so many calls, taken in turns.
    threads : int
        For solvers that use more than one.
    patience : float
        A peer is given up when one of its calls has taken so many times the best peer's time to the last goal (or ten
        times ours).
    """

    goals: tuple[float, ...] = (1e-3, 1e-6)
    limit: float = 60.0
    repeats: int = 3
    threads: int = 2
    patience: float = 2.0


FLOOR = 0.1  # seconds that a call may take, however fast others were
LEAD = 10.0  # times ours: what a peer may take before it is given up
LIKELY = 2  # of those that are likely to be the best go first
AGAIN = 2.0  # seconds: a solver's first call on a row is not measured if it is shorter, nor ended before
QUICK, SETTLING = 0.25, 4  # seconds, and calls: a process that is a copy of another is slow at first, page by page
STALLED = 5  # tolerances without progress in error or time, after which a solver is at its end
RESTART = 0.3  # seconds: what a call gets at least before it is ended
SWEEP = 3.0  # times the limit: what all calls of a solver may take
COARSE = 9.0  # factor between tolerances that one more is tried in
CLOSE = 1.5  # calls within this factor of the best are refined and measured again
SURE = 0.3  # of a goal: what a certificate may leave open


@dataclass
class Optimum:
    """min P is in [lower, best]."""

    best: float
    lower: float

    def sure(self, goal: float, at_zero: float) -> bool:
        """Whether the certificate is fine enough for a goal."""
        return self.best - self.lower <= SURE * goal * at_zero

    def learn(self, value: float, gap: float | None) -> None:
        """Take in a solution."""
        if np.isfinite(value):
            self.best = min(self.best, value)
            if gap is not None:
                self.lower = max(self.lower, value - gap)

    def error(self, value: float, goal: float, at_zero: float) -> float:
        """(P - min P) / P(0), or what it is at most; against the best value known if there is no certificate."""
        return (value - (self.lower if self.sure(goal, at_zero) else self.best)) / at_zero


@dataclass
class _Trial:
    tol: float
    value: float
    seconds: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def rank(self) -> tuple[int, float]:
        """Trials that were called often come first, then fast ones."""
        return -len(self.seconds), self.median


@dataclass
class _Runner:
    entrant: Entrant
    trials: list[_Trial] = field(default_factory=list)
    spent: float = 0.0
    longest: float = 0.0  # of its calls, those that were ended included
    ended: str = ""
    tried: float = 0.0  # seconds that its next call was given in vain
    exhausted: bool = False  # more time would not help

    def finish(self, why: str, *, exhausted: bool = False) -> None:
        """No more calls."""
        self.ended, self.exhausted = why, exhausted

    @property
    def stalled(self) -> bool:
        """Whether smaller tolerances change nothing any more."""
        if len(self.trials) <= STALLED:
            return False
        before, *last = self.trials[-STALLED - 1 :]
        gained = before.value - min(trial.value for trial in last)
        slower = last[-1].seconds[0] > 1.5 * before.seconds[0]
        return gained <= 1e-9 * abs(before.value) and not slower

    @property
    def next_tol(self) -> float | None:
        at = len(self.trials)
        return self.entrant.ladder[at] if at < len(self.entrant.ladder) else None


class _Race:
    def __init__(
        self, worker: Worker, rules: Rules, at: Field, optimum: Optimum, seconds: float, order: Sequence[str]
    ) -> None:
        self.worker, self.rules, self.at, self.optimum, self.order = worker, rules, at, optimum, order
        self.seconds, self.grace = seconds, seconds / 4
        self.end = time.monotonic() + seconds - worker.warming
        self.runners = [_Runner(entrant) for entrant in at.entrants if not entrant.reason]

    @property
    def deadline(self) -> float:
        """When the row's time is up; first calls do not count."""
        return self.end + self.worker.warming

    def sweep(self) -> None:
        """Ours, then those that are likely to be the best; then everyone in turns, with growing shares of time.

        The first share is of the size of our first call: large data need more than small ones from everyone.
        """
        ours = [runner for runner in self.runners if runner.entrant.ours]
        by_name = {runner.entrant.name: runner for runner in self.runners if not runner.entrant.ours}
        likely = [by_name[name] for name in self.order if name in by_name]
        for part, first in ((0.4, ours), (0.7, likely[:LIKELY])):  # of the row's time, so that all have their turn
            until = self.deadline - (1 - part) * self.seconds if np.isfinite(self.seconds) else np.inf
            for runner in first:
                while self._open(runner) and time.monotonic() < until and self._affordable(runner, np.inf):
                    self._call(runner, np.inf, until)
        share = max([FLOOR, *(runner.trials[0].seconds[0] / 2 for runner in ours if runner.trials)])
        in_turn = sorted(self.runners, key=lambda r: likely.index(r) if r in likely else len(likely))
        while open_ones := [runner for runner in in_turn if self._open(runner)]:
            for runner in open_ones:
                while self._open(runner) and self._affordable(runner, share):
                    self._call(runner, share)
            share *= 2

    def _open(self, runner: _Runner) -> bool:
        """Whether it has to go on: not there yet, or nobody knows where the optimum is."""
        return not runner.ended and not (self._sure and self.reached(runner, self.rules.goals[-1]))

    @property
    def _sure(self) -> bool:
        return self.optimum.sure(self.rules.goals[-1], self.at.at_zero)

    def _affordable(self, runner: _Runner, share: float) -> bool:
        """Whether the next call, which takes at least as long as the last, fits; a reason to end is written down."""
        last = max(runner.trials[-1].seconds[0] if runner.trials else 0.0, runner.tried)
        if runner.next_tol is None:
            runner.finish("not reached with the tightest tolerance", exhausted=True)
        elif runner.stalled:
            runner.finish(f"not reached, and no better below tol={runner.trials[-STALLED].tol:g}", exhausted=True)
        elif last >= self.rules.limit or runner.spent + last > SWEEP * self.rules.limit:
            runner.finish(f"not reached in a call of {last:.2g} s, nor time for a longer one")
        elif last > self._cut(runner):
            best, who = min((self._best(), "another peer"), (self._best(ours=True), "coordwise"))
            runner.finish(f"given up: a call took {last:.2g} s, and {who} was there in {best:.2g} s")
        elif time.monotonic() > self.deadline and not (runner.entrant.ours and last <= self._even()):
            runner.finish(f"not reached when the row's time was up, after {runner.spent:.2g} s")
        if runner.ended:
            return False
        return runner.spent + last <= share or not (runner.trials or runner.tried)

    def _best(self, *, ours: bool = False) -> float:
        """The best peer's time to the last goal, or ours, so far."""
        if not self._sure:
            return np.inf
        times = [
            trial.seconds[0]
            for runner in self.runners
            if runner.entrant.ours == ours and (trial := self.reached(runner, self.rules.goals[-1])) is not None
        ]
        return min(times, default=np.inf)

    def _even(self) -> float:
        """Seconds that ours may take even when the row's time is up, since the best peer did with less."""
        best = self._best()
        return max(FLOOR, self.rules.patience * best) if np.isfinite(best) else FLOOR

    def _cut(self, runner: _Runner) -> float:
        if runner.entrant.ours:
            return np.inf
        return max(FLOOR, min(self.rules.patience * self._best(), LEAD * self._best(ours=True)))

    def _call(self, runner: _Runner, share: float, until: float = np.inf) -> None:
        """One more tolerance; ended after twice the share, and tried again with a larger one if that may help."""
        tol = runner.next_tol
        assert tol is not None
        most = min(self.rules.limit, max(RESTART, self._cut(runner)))
        timeout = most if runner.entrant.ours else min(most, max(RESTART, 2 * share))
        least = max(RESTART, self._even()) if runner.entrant.ours else RESTART
        timeout = min(timeout, max(least, min(until, self.deadline) - time.monotonic()))
        warm, timeout = timeout, timeout if runner.trials else max(timeout, min(AGAIN, self.rules.limit))
        try:
            measured = self.worker.run(runner.entrant.name, tol, timeout)
            if not runner.trials and measured.seconds < AGAIN:
                timeout = warm
                for _ in range(SETTLING if measured.seconds < QUICK else 1):
                    measured = self.worker.run(runner.entrant.name, tol, timeout)
        except Overdue:
            runner.spent += timeout
            runner.longest = max(runner.longest, timeout)
            runner.tried = timeout
            if timeout >= most:
                runner.finish(f"ended after {timeout:.2g} s in a call with tol={tol:g}")
            return
        except (Crashed, Refused) as error:
            runner.finish(f"failed: {error}", exhausted=True)
            return
        runner.tried = 0.0
        runner.spent += measured.seconds
        runner.longest = max(runner.longest, measured.seconds)
        runner.trials.append(_Trial(tol, measured.value, [measured.seconds]))
        self.optimum.learn(measured.value, measured.gap)

    def refine(self) -> None:
        """The tolerance between the last two, for ours and for those that may be the best: tens are coarse steps."""
        for goal in self.rules.goals:
            for runner, trial in self._foremost(goal):
                at = runner.trials.index(trial)
                looser = runner.trials[at - 1].tol if at > 0 else trial.tol
                late = time.monotonic() + trial.seconds[0] > self.deadline + self.grace
                if looser < COARSE * trial.tol or late:
                    continue
                tol = float(np.sqrt(looser * trial.tol))
                if (measured := self._settled(runner, tol, trial)) is not None:
                    runner.spent += measured.seconds
                    runner.trials.insert(at, _Trial(tol, measured.value, [measured.seconds]))
                    self.optimum.learn(measured.value, measured.gap)

    def _settled(self, runner: _Runner, tol: float, like: _Trial) -> Measured | None:
        """One more call that takes about as long as another; a short one twice, since that may have been elsewhere."""
        try:
            if like.seconds[0] < QUICK:
                self.worker.run(runner.entrant.name, tol, self.rules.limit)
            return self.worker.run(runner.entrant.name, tol, self.rules.limit)
        except (Overdue, Crashed, Refused):
            return None

    def _foremost(self, goal: float) -> list[tuple[_Runner, _Trial]]:
        """Ours, and the peers that may be the best, with their calls that reached a goal."""
        found = [(r, t) for r in self.runners if (t := self.reached(r, goal)) is not None]
        best = min((t.seconds[0] for r, t in found if not r.entrant.ours), default=np.inf)
        close = [(r, t) for r, t in found if r.entrant.ours or t.seconds[0] <= CLOSE * best]
        return [(r, t) for r, t in close if t.seconds[0] <= self.rules.limit / 2]

    def repeat(self) -> None:
        """Once more, in turns, for ours and for those that may be the best."""
        again: list[tuple[_Runner, _Trial]] = []
        for goal in self.rules.goals:
            again += [pair for pair in self._foremost(goal) if pair not in again]
        for _ in range(self.rules.repeats - 1):
            for runner, trial in again:
                if time.monotonic() + trial.seconds[0] > self.deadline + self.grace:
                    continue
                if (measured := self._settled(runner, trial.tol, trial)) is not None:
                    trial.seconds.append(measured.seconds)

    def reached(self, runner: _Runner, goal: float) -> _Trial | None:
        """The fastest tolerance that was accurate enough, of those that were called most often."""
        at_zero = self.at.at_zero
        there = [trial for trial in runner.trials if self.optimum.error(trial.value, goal, at_zero) <= goal]
        return min(there, key=lambda trial: trial.rank, default=None)

    def result(self) -> dict[str, Any]:
        """All that was measured, as plain values."""
        at_zero, solvers = self.at.at_zero, []
        for runner in self.runners:
            there = self.reached(runner, self.rules.goals[-1]) is not None
            entry: dict[str, Any] = asdict(runner.entrant)
            entry |= {"ended": "" if there else runner.ended, "spent": runner.spent}
            del entry["ladder"], entry["reason"]
            entry["trials"] = [
                {
                    "tol": trial.tol,
                    "seconds": trial.seconds,
                    "error": self.optimum.error(trial.value, self.rules.goals[-1], at_zero),
                }
                for trial in runner.trials
            ]
            entry["times"] = [t.median if (t := self.reached(runner, g)) else None for g in self.rules.goals]
            solvers.append(entry)
        return {
            "n": self.at.n,
            "d": self.at.d,
            "nnz": self.at.nnz,
            "statement": self.at.statement,
            "formula": self.at.formula,
            "at_zero": at_zero,
            "optimum": asdict(self.optimum),
            "certified": [self.optimum.sure(goal, at_zero) for goal in self.rules.goals],
            "solvers": solvers,
            "skipped": [
                {"name": e.name, "library": e.library, "reason": e.reason} for e in self.at.entrants if e.reason
            ],
            "goals": [self._verdict(k) for k in range(len(self.rules.goals))],
        }

    def _verdict(self, k: int) -> dict[str, Any]:
        """Best peer, ours, and the ratio for one goal; with a bound in place of a time that was not reached.

        A side that did not get there would have needed longer than the longest call it was given: for the peers, than
        the shortest of theirs, where those whom no time would help count with the limit. A bound that does not tell
        who is faster is none.
        """
        goal = self.rules.goals[k]
        ours, _, ours_at_least = self._side(goal, ours=True)
        peer, name, peers_at_least = self._side(goal, ours=False)
        bound, ratio = "", None
        if peer is not None and ours is not None:
            ratio = peer / ours
        elif ours is not None and peers_at_least is not None and peers_at_least >= ours:
            bound, ratio = ">", peers_at_least / ours
        elif peer is not None and ours_at_least is not None and ours_at_least > peer:
            bound, ratio = "<", peer / ours_at_least
        return {"goal": goal, "peer": name, "peer_seconds": peer, "ours": ours, "ratio": ratio, "bound": bound}

    def _side(self, goal: float, *, ours: bool) -> tuple[float | None, str | None, float | None]:
        """(best time, whose, what it would have been at least) of ours or of the peers."""
        side = [runner for runner in self.runners if runner.entrant.ours == ours]
        there = [(t, r.entrant.name) for r in side if (t := self.reached(r, goal)) is not None]
        if there:  # a single call is of somebody who was too slow to be called again
            best, name = min(there, key=lambda one: one[0].rank)
            return best.median, name, None
        bounds = [self.rules.limit if r.exhausted else r.longest for r in side]  # 0 of those who had no turn
        return None, None, min(bounds, default=None)


def race(
    worker: Worker,
    row: Row,
    rules: Rules,
    *,
    known: Callable[[Field], Optimum | None] | None = None,
    keep: Callable[[Field, Optimum], None] | None = None,
    row_limit: float | None = None,
    order: Sequence[str] = (),
) -> dict[str, Any]:
    """Compare all solvers on one row.

    Parameters
    ----------
    worker : Worker
    row : Row
    rules : Rules
    known, keep : callable, optional
        Where optima are looked up, and kept for another time.
    row_limit : float, optional
        Seconds for the whole row; half of it at most for the optimum, and a quarter more for repeats.
    order : sequence of str, optional
        Names of solvers, those first that are likely to be the fastest: the sooner a fast one is known, the less time
        goes into slow ones. It does not change who is measured.

    Returns
    -------
    dict
        Plain values: the problem, every solver's calls, who was left out and why, and the verdicts.
    """
    at = worker.enter(row)
    begun = time.monotonic()
    optimum = (known(at) if known is not None else None) or Optimum(np.inf, -np.inf)
    contested = any(not entrant.reason and not entrant.ours for entrant in at.entrants)
    if contested and not optimum.sure(rules.goals[-1], at.at_zero):
        try:
            found = worker.optimum(rules.goals[-1] / 100, 2 * rules.limit if row_limit is None else row_limit / 2)
        except (Overdue, Crashed, Refused):
            found = None
        if found is not None:
            optimum.learn(*found)
    spent = time.monotonic() - begun
    seconds = np.inf if row_limit is None else max(row_limit - spent, row_limit / 2)
    run = _Race(worker, rules, at, optimum, seconds, order)
    if contested:
        run.sweep()
        run.refine()
        run.repeat()
    if keep is not None and np.isfinite(optimum.best):
        keep(at, optimum)
    about = {"row": row.spec(), "key": row.key, "title": row.title, "task": row.task, "rules": asdict(rules)}
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return about | run.result() | {"contested": contested, "elapsed": time.monotonic() - begun, "load": load}
