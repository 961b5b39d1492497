"""A sure thing and a probe: which solver goes on, by counted work and observed rates. No clock is read.

A solver is `sure` if its work can be counted beforehand (a Gram matrix, some Newton steps with formed Hessians). What
an iterative one costs is known only from its rate. Where theory, with some hope, says that it costs less than the other
solver's B, it is tried as a probe: after `PROBE` B it has to predict an end within `STAY` B, and it is given up after
`CAP` B in any case. As far as B is right, both together cost at most 1 + CAP = 3 times B, and at most
(1 + PROBE)/PROBE = 3 times the probe alone. Without a sure solver two iterative ones take turns with budgets that
double, until their rates tell them apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

__all__ = ["Bidder", "Choice", "rate_left"]

PROBE, STAY, CAP = 0.5, 0.7, 2.0  # derived: see above
HOPE = 3.0  # assumed: how much faster than its worst case an iterative solver may turn out


class Bidder(Protocol):
    """What is asked of a solver here."""

    @property
    def name(self) -> str:
        """What results call it."""

    @property
    def sure(self) -> bool:
        """Whether its forecast is a count."""


One = TypeVar("One", bound=Bidder)


@dataclass
class Choice(Generic[One]):
    """The solver that is at work, and what the ones before it have cost.

    Parameters
    ----------
    theory : callable
        theory(solver): the cost to the end that it forecasts from here.
    seen : callable
        seen(name): the same at its observed rate; None before that is known.
    """

    theory: Callable[[One], float]
    seen: Callable[[str], float | None]
    current: One | None = None
    begun: float = 0.0
    changes: int = 0

    def next(self, able: Sequence[One], cost: float) -> One:
        """Who goes on, `cost` being what has been spent so far."""
        chosen = self._next(able, cost)
        if chosen is not self.current:
            self.changes += self.current is not None
            self.begun, self.current = cost, chosen
        return chosen

    def _next(self, able: Sequence[One], cost: float) -> One:
        current = self.current
        others = [one for one in able if one is not current]
        if current is None or current not in able:
            return min(able, key=self._cost)
        if not others or current.sure:
            return current
        B, other = min(((self._cost(one), one) for one in others), key=lambda pair: pair[0])
        spent, most = cost - self.begun, B * 2.0**self.changes
        promising = self._cost(current) <= STAY * B
        return current if spent < PROBE * most or (spent < CAP * most and promising) else other

    def _cost(self, one: One) -> float:
        theory, seen = self.theory(one), self.seen(one.name)
        if one.sure:
            return theory
        if seen is None:
            return theory / HOPE if self.current is None else theory
        return seen if one is self.current else min(seen, theory * 2.0**self.changes)  # no plateau is believed for ever


def rate_left(
    costs: Sequence[float], errors: Sequence[float], values: Sequence[Sequence[float]], folds: float
) -> float | None:
    """The cost of so many e-folds of the error at the rate of the last three looks; None before there are three.

    The error may stand still while the objective falls (l1 penalties, kinks, first Newton steps): then the decreases of
    the objective, which shrink as fast as the error, tell the rate.
    """
    if len(costs) < 3 or not costs[-3] < costs[-2] < costs[-1]:
        return None
    (a, b, c), span = costs[-3:], costs[-1] - costs[-3]
    rate = math.log(max(errors[-3], 1e-300) / max(errors[-1], 1e-300)) / span
    falls = [
        ((one - two) / (b - a), (two - three) / (c - b))
        for one, two, three in zip(values[-3], values[-2], values[-1], strict=True)
    ]
    if all(0 < now < before for before, now in falls):
        rate = max(rate, 2 * math.log(min(before / now for before, now in falls)) / span)
    return folds / rate if rate > 0 else math.inf
