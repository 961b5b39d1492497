"""Who takes part in a race: calls, tolerances and what is known of the optimum."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

import numpy as np

from coordwise.bench.worker import Entrant

__all__ = ["STALLED", "Optimum", "Runner", "Trial"]

STALLED = 5  # tolerances without progress in error or time, after which a solver is at its end
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
class Trial:
    """A tolerance, the value it led to, and the seconds of its calls."""

    tol: float
    value: float
    seconds: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """Of its calls."""
        return statistics.median(self.seconds)

    @property
    def rank(self) -> tuple[int, float]:
        """Trials that were called often come first, then fast ones."""
        return -len(self.seconds), self.median


@dataclass
class Runner:
    """A solver in a race: what it has tried so far, from loose to tight, and why it ended."""

    entrant: Entrant
    trials: list[Trial] = field(default_factory=list)
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
        """The tolerance of its next call; None after the last."""
        at = len(self.trials)
        return self.entrant.ladder[at] if at < len(self.entrant.ladder) else None
