"""Coordinate steps on the dual variables, which stay beside the blocks of samples."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from coordwise.oracle import Candidate, Oracle, Work
from coordwise.samples.base import InOrder
from coordwise.solvers.at_once import at_once
from coordwise.solvers.local import PRODUCTS
from coordwise.solvers.sweeping import sweeping
from coordwise.validation import FloatArray

__all__ = ["Descent"]

MOST = 2.0**25  # entries that are gathered: 400 MB of sparse float64 rows
KINK = 0.1  # in the place of gamma for losses with kinks: between what w8a and news20 took for the hinge, kappa 300
BLOCKS = 8.0  # that a forecast allows for where they move at the same time


@dataclass(frozen=True)
class Descent:
    """Exact coordinate steps on the samples, for any loss and an l2 penalty; all outputs at once.

    Where the blocks are in this process (`InOrder`), a round is one sweep: every block makes a step on each of its
    samples, at random, with the changes of the blocks before it, and hands over the samples that may still have to
    leave, or to reach, a corner of their conjugates. These are solved together here, in memory, by the method that
    `coordwise.solve` chooses, and the next sweep certifies the point that they lead to.

    Elsewhere the blocks move at the same time (CoCoA+ with as many blocks as there are, and Nesterov's acceleration,
    restarted whenever D rises): each minimises a local model of D whose quadratic part counts K times, which makes the
    sum of all changes safe. y is a mean of points of its domain at any time.

    An intercept has a light penalty on its distance from a center, which moves to where the intercept is: the
    multiplier method for sum_i y_i = 0. Certified dual variables add up to 0.

    Parameters
    ----------
    seed : int
        Of the random order of samples.
    most : float
        Entries of A that are gathered at most, beside the blocks.
    """

    name: ClassVar[str] = "descent"
    sure: ClassVar[bool] = False
    seed: int = 0
    most: float = MOST

    def refuses(self, oracle: Oracle) -> str:
        """Why it does not apply, or nothing."""
        if oracle.problem.loss.coupled:
            return "it is for losses that do not couple the outputs"
        if oracle.problem.l1 > 0:
            return "it knows no l1 penalty"
        return "" if oracle.problem.l2 > 0 else "it needs an l2 penalty"

    def forecast(self, oracle: Oracle, folds: float) -> Work:
        """See `Solver`: by Theorem 5.1 mean sqrt(1 + |a_i|^2/(gamma l2 W)) passes per e-fold, at least.

        That is the rate of accelerated steps on single samples. It is one of passes in memory where the blocks are
        here, of visits with sqrt(K) times as many where K blocks move at the same time.
        """
        sizes, problem = oracle.samples.sizes, oracle.problem
        gamma = max(problem.loss.gamma, KINK)
        passes = folds * math.sqrt(1 + sizes.squares / sizes.total / (gamma * problem.l2 * sizes.total))
        numbers = 8.0 * sizes.d * sizes.outputs
        if isinstance(oracle.samples, InOrder):
            rounds = folds + 1 if problem.loss.shape.corners else passes
            return Work(PRODUCTS * rounds * sizes.nnz + passes * sizes.nnz, rounds)
        rounds = passes * math.sqrt(BLOCKS)
        return Work(PRODUCTS * rounds * sizes.nnz, rounds, 4 * numbers * rounds)

    def rounds(self, oracle: Oracle, start: FloatArray, goal: FloatArray) -> Iterator[Candidate]:
        """Candidates from weights `start` on, one for every round that brings news, until every gap is <= goal.

        Each was computed from its weights and dual variables alone.
        """
        if isinstance(oracle.samples, InOrder):
            return sweeping(oracle, start, goal, self.most, self.seed)
        return at_once(oracle, start, goal, self.seed)
