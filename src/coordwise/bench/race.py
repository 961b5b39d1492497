"""A row's race: tolerances swept from loose to tight, every solver timed to the same accuracies."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from coordwise.bench.rows import Row
from coordwise.bench.runner import STALLED, Optimum, Runner, Trial
from coordwise.bench.worker import Crashed, Field, Measured, Overdue, Refused, Worker
from coordwise.interrupts import Interrupted

__all__ = ["Rules", "race"]


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
AGAIN = 2.0  # seconds: a solver's first call on a row is not measured if it is shorter, nor ended before, unless
BEHIND, FAIR = 4.0, 0.5  # it takes so many times as long as ours to the first goal, and so many seconds
COLD = 0.5  # of the time that a first call was given in vain: what counts, since the next one may be faster
QUICK, SETTLING = 0.25, 4  # seconds, or calls if that is less: a copy of a process is slow at first, page by page
RESTART = 0.3  # seconds: what a call gets at least before it is ended
SWEEP = 3.0  # times the limit: what all calls of a solver may take
COARSE = 2.5  # factor between tolerances that one more is tried in
LOOSEST = 1.0  # a tolerance that asks for nothing, before the first of all that are swept
CLOSE = 1.5  # calls within this factor of the best are refined and measured again
SHORT, OFTEN = 0.06, 3  # seconds: if a call is shorter, all are made so many times as often: machines are slow at times


class _Race:
    def __init__(
        self, worker: Worker, rules: Rules, at: Field, optimum: Optimum, seconds: float, order: Sequence[str]
    ) -> None:
        self.worker, self.rules, self.at, self.optimum, self.order = worker, rules, at, optimum, order
        self.seconds, self.grace = seconds, seconds / 4
        self.end = time.monotonic() + seconds - worker.warming
        self.runners = [Runner(entrant) for entrant in at.entrants if not entrant.reason]

    @property
    def deadline(self) -> float:
        """When the row's time is up; first calls do not count."""
        return self.end + self.worker.warming

    def sweep(self) -> None:
        """Ours; one call of each; those that are likely to be the best; then all in turns, with growing shares of time.

        The first share is of the size of our first call: large data need more than small ones from everyone.
        """
        ours = [runner for runner in self.runners if runner.entrant.ours]
        by_name = {runner.entrant.name: runner for runner in self.runners if not runner.entrant.ours}
        likely = [by_name[name] for name in self.order if name in by_name]
        in_turn = sorted(self.runners, key=lambda r: likely.index(r) if r in likely else len(likely))
        self._ahead(ours, 0.4)
        share = max([FLOOR, *(runner.trials[0].seconds[0] / 2 for runner in ours if runner.trials)])
        for runner in in_turn:
            if not runner.trials and self._open(runner) and self._affordable(runner, share):
                self._call(runner, share)
        self._ahead(likely[:LIKELY], 0.7)
        while open_ones := [runner for runner in in_turn if self._open(runner)]:
            for runner in open_ones:
                while self._open(runner) and self._affordable(runner, share):
                    self._call(runner, share)
            share *= 2

    def _ahead(self, runners: Sequence[Runner], part: float) -> None:
        """All calls of some, up to a part of the row's time, so that the others have theirs."""
        until = self.deadline - (1 - part) * self.seconds if np.isfinite(self.seconds) else np.inf
        for runner in runners:
            while self._open(runner) and time.monotonic() < until and self._affordable(runner, np.inf):
                self._call(runner, np.inf, until)

    def _open(self, runner: Runner) -> bool:
        """Whether it has to go on: not there yet, or nobody knows where the optimum is."""
        return not runner.ended and not (self._sure and self.reached(runner, self.rules.goals[-1]))

    @property
    def _sure(self) -> bool:
        return self.optimum.sure(self.rules.goals[-1], self.at.at_zero)

    def _affordable(self, runner: Runner, share: float) -> bool:
        """Whether the next call, which takes at least as long as the last, fits; a reason to end is written down."""
        last = max(runner.trials[-1].seconds[0] if runner.trials else 0.0, runner.tried)
        if runner.next_tol is None:
            runner.finish("not reached with the tightest tolerance", exhausted=True)
        elif runner.stalled:
            runner.finish(f"not reached, and no better below tol={runner.trials[-STALLED].tol:g}", exhausted=True)
        elif last >= self.rules.limit or runner.spent + last > SWEEP * self.rules.limit:
            runner.finish(f"not reached in a call of {last:.2g} s, nor time for a longer one")
        elif last > self._cut(runner):
            runner.finish(f"given up: a call took {last:.2g} s, {self._lead()}")
        elif time.monotonic() > self.deadline and not (runner.entrant.ours and last <= self._even()):
            runner.finish(f"not reached when the row's time was up, after {runner.spent:.2g} s")
        if runner.ended:
            return False
        return runner.spent + last <= share or not (runner.trials or runner.tried)

    def _best(self, *, ours: bool = False, goal: int = -1) -> float:
        """The best peer's time to a goal (the last one), or ours, so far."""
        if not self._sure:
            return np.inf
        times = [
            trial.seconds[0]
            for runner in self.runners
            if runner.entrant.ours == ours and (trial := self.reached(runner, self.rules.goals[goal])) is not None
        ]
        return min(times, default=np.inf)

    def _lead(self) -> str:
        """Why less than the whole limit was given: who needed how much less."""
        best, who = min((self._best(), "another peer"), (self._best(ours=True), "coordwise"))
        return f"and {who} was there in {best:.2g} s" if np.isfinite(best) else "and the row's time was up"

    def _fair(self) -> float:
        """Seconds that a first call is given at least."""
        return min(AGAIN, self.rules.limit, max(FAIR, BEHIND * self._best(ours=True, goal=0)))

    def _even(self) -> float:
        """Seconds that ours may take even when the row's time is up, since the best peer did with less."""
        best = self._best()
        return max(FLOOR, self.rules.patience * best) if np.isfinite(best) else FLOOR

    def _cut(self, runner: Runner) -> float:
        if runner.entrant.ours:
            return np.inf
        return max(FLOOR, min(self.rules.patience * self._best(), LEAD * self._best(ours=True)))

    def _call(self, runner: Runner, share: float, until: float = np.inf) -> None:
        """One more tolerance; ended after twice the share, and tried again with a larger one if that may help."""
        tol = runner.next_tol
        assert tol is not None
        most = min(self.rules.limit, max(RESTART, self._cut(runner)))
        timeout = most if runner.entrant.ours else min(most, max(RESTART, 2 * share))
        least = max(RESTART, self._even()) if runner.entrant.ours else RESTART
        timeout = min(timeout, max(least, min(until, self.deadline) - time.monotonic()))
        warm, timeout = timeout, timeout if runner.trials else max(timeout, self._fair())
        try:
            measured = self.worker.run(runner.entrant.name, tol, timeout)
            if not runner.trials and measured.seconds < AGAIN:
                timeout, settled = warm, 0
                while settled < SETTLING and (settled == 0 or settled * measured.seconds < QUICK):
                    measured = self.worker.run(runner.entrant.name, tol, timeout)
                    settled += 1
        except Overdue:
            runner.spent += timeout
            runner.longest = max(runner.longest, timeout if runner.trials else COLD * timeout)
            runner.tried = timeout
            if timeout >= most:
                ended = f"ended after {timeout:.2g} s in a call with tol={tol:g}"
                runner.finish(ended if timeout >= self.rules.limit else f"{ended}, {self._lead()}")
            return
        except (Crashed, Refused) as error:
            runner.finish(f"failed: {error}", exhausted=True)
            return
        runner.tried = 0.0
        runner.spent += measured.seconds
        runner.longest = max(runner.longest, measured.seconds)
        runner.trials.append(Trial(tol, measured.value, [measured.seconds]))
        self.optimum.learn(measured.value, measured.gap)

    def refine(self) -> None:
        """Tolerances before the first that is enough, for ours and those that may be the best: tens are coarse."""
        for goal in self.rules.goals:
            for runner in self._foremost(goal):
                while self._between(runner, goal):
                    pass

    def _between(self, runner: Runner, goal: float) -> bool:
        """Whether there was a tolerance to try between the first that is enough and the one before.

        A solver that knows one tolerance alone has none to do with.
        """
        there = self._there(runner, goal)
        if not there:  # a better value has been found meanwhile
            return False
        trial = there[0]
        at = runner.trials.index(trial)
        first = LOOSEST if len(runner.entrant.ladder) > 1 else trial.tol
        looser = runner.trials[at - 1].tol if at > 0 else first
        late = time.monotonic() + trial.seconds[0] > self.deadline + self.grace
        if looser < COARSE * trial.tol or late:
            return False
        tol = float(np.sqrt(looser * trial.tol))
        if (measured := self._settled(runner, tol, trial)) is None:
            return False
        runner.spent += measured.seconds
        runner.trials.insert(at, Trial(tol, measured.value, [measured.seconds]))
        self.optimum.learn(measured.value, measured.gap)
        return True

    def _settled(self, runner: Runner, tol: float, like: Trial) -> Measured | None:
        """One more call that takes about as long as another; a short one twice, since that may have been elsewhere."""
        try:
            if like.seconds[0] < QUICK:
                self.worker.run(runner.entrant.name, tol, self.rules.limit)
            return self.worker.run(runner.entrant.name, tol, self.rules.limit)
        except (Overdue, Crashed, Refused):
            return None

    def _foremost(self, goal: float) -> list[Runner]:
        """Ours, and the peers that may be the best, if they reached a goal."""
        found = [(r, t.seconds[0]) for r in self.runners if (t := self.reached(r, goal)) is not None]
        best = min((seconds for r, seconds in found if not r.entrant.ours), default=np.inf)
        close = [(r, seconds) for r, seconds in found if r.entrant.ours or seconds <= CLOSE * best]
        return [r for r, seconds in close if seconds <= self.rules.limit / 2]

    def repeat(self) -> None:
        """Once more, in turns, for ours and for those that may be the best.

        With the tolerance that was fastest, and with the loosest that is enough: it is less work, and single times of
        short calls differ by more than that.
        """
        again: list[tuple[Runner, Trial]] = []
        for goal in self.rules.goals:
            for runner in self._foremost(goal):
                there = self._there(runner, goal)
                for trial in (there[0], min(there, key=lambda trial: trial.rank)):
                    if (runner, trial) not in again:
                        again.append((runner, trial))
        short = min((trial.seconds[0] for _, trial in again), default=SHORT) < SHORT
        often = OFTEN if short and self.rules.repeats > 1 else 1
        for _ in range(often * self.rules.repeats - 1):
            for runner, trial in again:
                if time.monotonic() + trial.seconds[0] > self.deadline + self.grace:
                    continue
                if (measured := self._settled(runner, trial.tol, trial)) is not None:
                    trial.seconds.append(measured.seconds)

    def _there(self, runner: Runner, goal: float) -> list[Trial]:
        """The tolerances that were accurate enough, the loosest first."""
        return [t for t in runner.trials if self.optimum.error(t.value, goal, self.at.at_zero) <= goal]

    def reached(self, runner: Runner, goal: float) -> Trial | None:
        """The fastest tolerance that was accurate enough, of those that were called most often."""
        return min(self._there(runner, goal), key=lambda trial: trial.rank, default=None)

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

    Raises
    ------
    Interrupted
        On Ctrl-C while solvers are measured: a KeyboardInterrupt with the same dict, of what was measured until then,
        as its `result`.
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
    interrupted = False
    if contested:
        try:
            run.sweep()
            run.refine()
            run.repeat()
        except KeyboardInterrupt:
            interrupted = True
    if keep is not None and np.isfinite(optimum.best):
        keep(at, optimum)
    about = {"row": row.spec(), "key": row.key, "title": row.title, "task": row.task, "rules": asdict(rules)}
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    measured = about | run.result() | {"contested": contested, "elapsed": time.monotonic() - begun, "load": load}
    if interrupted:
        raise Interrupted("Ctrl-C ended the comparison; `result` of this exception has what was measured.", measured)
    return measured
