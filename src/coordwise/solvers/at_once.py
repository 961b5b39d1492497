"""Blocks that move at the same time: CoCoA+ with Nesterov's acceleration."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from coordwise import visits
from coordwise.oracle import Candidate, Oracle
from coordwise.solvers.images import Image, factors_of
from coordwise.solvers.local import PRODUCTS, counted, descended, doubled, halved
from coordwise.solvers.news import News
from coordwise.validation import FloatArray

__all__ = ["at_once"]

MOVES = 3  # rounds after which the center of an intercept moves
COLUMN = 0.1  # of the length of rows: all blocks pull at an intercept the same way (news20, 8 blocks: half the rounds)
WORTH = 0.8  # of the last gap: what is worth a candidate, which costs a visit
STILL = 300  # rounds without a smaller gap after which rounding is to blame
ONES = np.ones((2, 1))  # factors that change nothing


def at_once(oracle: Oracle, start: FloatArray, goal: FloatArray, seed: int) -> Iterator[Candidate]:
    """Candidates from weights `start` on, whenever the gap is less than before by a fifth.

    With x = (1 - theta) y + theta z and K blocks, each makes steps towards the minimum over its own dz of

        sum of conjugates at z + dz + <grad, dz> + (theta K/(2 l2)) |dv_k|^2,   dv_k = (1/W) A_k'dz,

    where grad is that of the quadratic part of D at x; then y = x + theta dz. Since |sum_k dv_k|^2 <= K sum_k |dv_k|^2,
    these models together are nowhere below D.
    """
    image, intercept = Image.at(oracle, start, COLUMN), oracle.problem.intercept
    blocks = float(oracle.visit(0, visits.one)[1][0])
    pairs = oracle.visit(0, doubled, image.y)[0]
    factors = factors_of(oracle.visit(0, counted, image.y)[1][0]) if intercept else ONES
    pace, news, best, told = _Pace(image.value), News(), _Best(), np.inf
    for k in count():
        w = image.weights()
        after, sums = oracle.visit(
            PRODUCTS,
            descended,
            pairs,
            w=w,
            factors=factors,
            image=pace.between(image.value),
            theta=pace.theta,
            sigma=blocks,
            restart=pace.restart,
            seed=seed + k,
            statement=image.statement,
        )
        found = best.beside(image.candidate(w, (), sums[:3]))
        still = news.since(found, goal)
        worst = float(np.max(found.gap / np.maximum(goal, 1e-300)))
        if worst <= 1 or worst <= WORTH * told:
            told = worst
            yield found._replace(y=oracle.visit(0, halved, pairs, factors=factors)[0])
        if worst <= 1 or still > STILL:
            return
        change, conjugates, sizes = sums[3:]
        image.value = pace.moved(image.value, change)
        pace.judge(conjugates / image.statement.total + image.squares())
        pairs, factors = after, factors_of(sizes) if intercept else ONES
        if intercept and k % MOVES == MOVES - 1:
            pace.shift(image.move())


@dataclass
class _Pace:
    """theta, the image of z, and whether the next round begins anew from y."""

    other: FloatArray
    theta: float = 1.0
    restart: bool = True
    last: FloatArray = field(default_factory=lambda: np.full(1, np.inf))

    def between(self, image: FloatArray) -> FloatArray:
        """The image of x, from that of y."""
        if self.restart:
            self.other, self.theta = image, 1.0
        return (1 - self.theta) * image + self.theta * self.other

    def moved(self, image: FloatArray, change: FloatArray) -> FloatArray:
        """The image of the new y, `change` being that of dz."""
        self.other = self.other + change
        return (1 - self.theta) * image + self.theta * self.other

    def judge(self, value: FloatArray) -> None:
        """Go on with the next theta, or begin anew if D has risen."""
        self.restart, self.last = bool(np.any(value > self.last)), value
        self.theta = (math.sqrt(self.theta**4 + 4 * self.theta**2) - self.theta**2) / 2

    def shift(self, by: FloatArray) -> None:
        """All images have moved, and D is another one."""
        self.other, self.last = self.other + by, np.full(1, np.inf)


@dataclass
class _Best:
    """The weights with the smallest P so far, per output."""

    w: FloatArray | None = None
    value: FloatArray = field(default_factory=lambda: np.full(1, np.inf))

    def beside(self, found: Candidate) -> Candidate:
        """Them beside the bound of a candidate."""
        bound, lower = found.value - found.gap, found.value < self.value
        self.w = found.w if self.w is None else np.where(lower, found.w, self.w)
        self.value = np.where(lower, found.value, self.value)
        return found._replace(w=self.w, value=self.value, gap=np.maximum(self.value - bound, 0.0))
