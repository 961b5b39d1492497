"""Coordinate steps on the dual variables, which stay beside the blocks of samples."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coordwise import visits
from coordwise.oracle import Candidate, Oracle, Work
from coordwise.samples.base import InOrder, Kept
from coordwise.solvers.local import (
    Gathered,
    Statement,
    balanced,
    counted,
    descended,
    doubled,
    finished,
    gathered,
    halved,
    sizes_of,
    swept,
)
from coordwise.validation import FloatArray

__all__ = ["Descent"]

MOST = 2.0**25  # entries that are gathered: 400 MB of sparse float64 rows
DOUBT, GROWTH = 0.1, 2.0  # of the change of w that the gap allows; its growth where the gap does not fall by half
CLOSE = 0.1  # of the gap: how well the gathered samples are solved
ROOM = 20.0  # passes over all samples that this may take, in passes over the gathered ones; at least
LEAST = 50.0
MOVES = 10  # rounds after which the center of an intercept moves, where blocks move at the same time
NEWS = 0.8  # of the last gap: what is worth a candidate
KINK = 1e-3  # in the place of gamma for losses with kinks
PRODUCTS = 3  # entries that a round touches, in those of A: a certificate is two products
FEW_PARTS = 8  # what a forecast takes for the number of blocks elsewhere
ONES = np.ones((2, 1))  # factors that change nothing
STILL = 30  # sweeps without a smaller gap after which rounding is to blame


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
        rounds = passes * math.sqrt(FEW_PARTS)
        return Work(PRODUCTS * rounds * sizes.nnz, rounds, 4 * numbers * rounds)

    def rounds(self, oracle: Oracle, start: FloatArray, goal: FloatArray) -> Iterator[Candidate]:
        """Candidates from weights `start` on, one for every round that brings news, until every gap is <= goal.

        Each was computed from its weights and dual variables alone.
        """
        if isinstance(oracle.samples, InOrder):
            return self._in_order(oracle, start, goal)
        return self._at_once(oracle, start, goal)

    def _in_order(self, oracle: Oracle, start: FloatArray, goal: FloatArray) -> Iterator[Candidate]:
        point = _Dual.at(oracle, start)
        statement, y, l2 = point.statement, point.y, oracle.problem.l2
        sizes = oracle.samples.sizes
        gap, least, news, doubt = np.full(sizes.outputs, np.inf), np.inf, 0, DOUBT
        far, most = math.inf, min(self.most / max(sizes.nnz, 1), 1.0)
        for k in range(10**9):
            w = point.weights()
            point.move()
            certain = y
            if oracle.problem.intercept:
                factors = _factors(np.sum([sizes_of(part) for part in y], axis=0))
                certain = tuple(balanced(part, factors) for part in y)
            y, state = oracle.sweep(
                PRODUCTS,
                swept,
                y,
                certain,
                state={"image": point.image},
                w=w,
                statement=statement,
                far=far,
                most=most,
                seed=self.seed + k,
            )
            found = point.candidate(w, certain, state["sums"])
            yield found
            if np.all(found.gap <= goal):
                return
            worst = float(np.max(found.gap / np.maximum(goal, 1e-300)))
            news = 0 if worst < least else news + 1
            if news > STILL:
                return
            doubt = min(doubt * GROWTH, 1.0) if worst > least / 2 else doubt
            least, gap = min(worst, least), np.minimum(found.gap, gap)
            far = doubt * math.sqrt(2 * float(gap.max()) / l2)
            point.image = state["image"]
            near = gathered(state, 1)
            if near is not None:
                y = self._finish(oracle, point, near, y, np.maximum(CLOSE * gap, goal / 4), k)

    def _finish(self, oracle: Oracle, point: _Dual, near: Gathered, y: Kept, goal: FloatArray, k: int) -> Kept:
        """Solve for the gathered samples, and put what was found in its places."""
        room = max(ROOM * oracle.samples.sizes.nnz / max(near.block.rows.nnz, 1), LEAST)
        own, point.image, passes = finished(near, point.statement, goal, room, self.seed + k, oracle.poll)
        oracle.work.entries += passes * near.block.rows.nnz
        ends = np.cumsum([len(which) for which in near.places])[:-1]
        for part, which, new in zip(y, near.places, np.split(own, ends), strict=True):
            part[which] = new  # which nobody else has seen yet
        return y

    def _at_once(self, oracle: Oracle, start: FloatArray, goal: FloatArray) -> Iterator[Candidate]:
        point = _Dual.at(oracle, start)
        statement, blocks = point.statement, len(point.y)
        pairs = oracle.visit(0, doubled, point.y)[0]
        factors = _factors(oracle.visit(0, counted, point.y)[1][0]) if oracle.problem.intercept else ONES
        other, theta, restart, last, seen = point.image, 1.0, True, np.full(1, np.inf), np.inf
        least, news = np.inf, 0
        for k in range(10**9):
            if restart:
                other, theta = point.image, 1.0
            w, image = point.weights(), (1 - theta) * point.image + theta * other
            after, sums = oracle.visit(
                PRODUCTS,
                descended,
                pairs,
                w=w,
                factors=factors,
                image=image,
                theta=theta,
                sigma=float(blocks),
                restart=restart,
                seed=self.seed + k,
                statement=statement,
            )
            found = point.candidate(w, (), sums[:3])
            worst = float(np.max(found.gap / np.maximum(goal, 1e-300)))
            if worst <= 1 or worst <= NEWS * seen:
                seen = worst
                yield found._replace(y=oracle.visit(0, halved, pairs, factors=factors)[0])
            if worst <= 1:
                return
            news, least = (0, worst) if worst < least else (news + 1, least)
            if news > 10 * STILL:
                return
            change, conjugates, sizes = sums[3:]
            other = other + change
            point.image = (1 - theta) * point.image + theta * other
            value = conjugates / statement.total + point.squares()
            restart = bool(np.any(value > last))
            last, theta = value, (math.sqrt(theta**4 + 4 * theta**2) - theta**2) / 2
            pairs, factors = after, _factors(sizes) if oracle.problem.intercept else ONES
            if oracle.problem.intercept and k % MOVES == MOVES - 1:
                before = point.image
                point.move()
                other, last = other + (point.image - before), np.full(1, np.inf)


class _Dual:
    """Dual variables with their image A'y here, to which the center of an intercept is added."""

    def __init__(self, oracle: Oracle, statement: Statement, y: Kept, image: FloatArray, center: FloatArray) -> None:
        self.oracle, self.statement, self.y = oracle, statement, y
        self.image, self.center = image.copy(), np.zeros_like(center)
        self.scale = statement.l2 * statement.total
        if statement.column > 0:
            self.image[-1] *= statement.column
            self._put(center)

    @classmethod
    def at(cls, oracle: Oracle, start: FloatArray) -> _Dual:
        """The slopes of the losses at weights `start`, or zeros where there are no weights yet."""
        problem, sizes = oracle.problem, oracle.samples.sizes
        column = 0.0
        if problem.intercept:  # as `fitting/dual.py` has it
            light = problem.l2 * sizes.total * max(problem.loss.gamma, KINK)
            column = math.sqrt(max(light, sizes.squares / sizes.total, 1e-12))
        statement = Statement(problem.loss, problem.l2, sizes.total, column)
        image = np.zeros(oracle.shape)
        if (start[:-1] if problem.intercept else start).any():
            y = oracle.at(start).slopes
            image = oracle.visit(1, visits.dual, y, loss=problem.loss)[1][1]
        else:
            y = oracle.visit(0, visits.zeros)[0]
        return cls(oracle, statement, y, image, start[-1] if problem.intercept else np.zeros(sizes.outputs))

    def weights(self) -> FloatArray:
        """w = -A'y/(l2 W), with the intercept."""
        w = self.image / -self.scale
        if self.statement.column > 0:
            w[-1] *= self.statement.column
        return w

    def move(self) -> None:
        """Put the center of the intercept's penalty to where the intercept is."""
        if self.statement.column > 0:
            self._put(self.weights()[-1])

    def _put(self, center: FloatArray) -> None:
        self.image = self.image.copy()
        self.image[-1] -= (center - self.center) * self.scale / self.statement.column
        self.center = center

    def squares(self) -> FloatArray:
        """|A'y|^2/(2 l2 W^2)."""
        return (self.image**2).sum(axis=0) / (2 * self.scale * self.statement.total)

    def candidate(self, w: FloatArray, y: Kept, sums: list[FloatArray]) -> Candidate:
        """With P(w) and the gap, from sums of the losses and of the conjugates, and A'y."""
        losses, conjugates, image = sums
        value = losses / self.statement.total + self.oracle.penalty(w)
        features = image[:-1] if self.oracle.problem.intercept else image
        dual = conjugates / self.statement.total + (features**2).sum(axis=0) / (2 * self.scale * self.statement.total)
        return Candidate(w, y, value, np.maximum(value + dual, 0.0))


def _factors(sizes: FloatArray) -> FloatArray:
    """What positive and negative dual variables have to be multiplied by to add up to 0; see `balanced`."""
    return np.where(sizes > 0, sizes.min(axis=0) / np.where(sizes > 0, sizes, 1.0), 0.0)
