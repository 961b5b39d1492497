"""What the loop asks of a solver."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from coordwise.oracle import Candidate, Oracle, Work
from coordwise.validation import FloatArray

__all__ = ["Solver"]


class Solver(Protocol):
    """A way to the minimum by the oracle's verbs. It is immutable; its state is in `rounds`."""

    @property
    def name(self) -> str:
        """What the result calls it."""

    @property
    def sure(self) -> bool:
        """Whether its forecast is a count, which no observation has to confirm."""

    def refuses(self, oracle: Oracle) -> str:
        """Why it does not apply, or nothing."""

    def forecast(self, oracle: Oracle, folds: float) -> Work:
        """The work from here to exp(-folds) times the error: counted, or of theory."""

    def rounds(self, oracle: Oracle, start: FloatArray, goal: FloatArray) -> Iterator[Candidate]:
        """Candidates from weights `start` on, every few visits, until every gap is <= goal.

        Nothing that was yielded changes later. One that meets the goal was computed from its weights and dual variables
        alone. It ends earlier where rounding allows no more.
        """
