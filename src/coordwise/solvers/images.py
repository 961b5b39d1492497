"""What dual variables add up to: A'y, the weights that it leads to, and certificates."""

from __future__ import annotations

import math

import numpy as np

from coordwise import visits
from coordwise.oracle import Candidate, Oracle
from coordwise.samples.base import Kept
from coordwise.solvers.local import Statement
from coordwise.validation import FloatArray

__all__ = ["Image", "factors_of"]

LIGHT = 1e-3  # in the place of gamma for losses with kinks, as in `fitting/dual.py`


class Image:
    """Dual variables, which stay with the samples, and their image A'y here, with the center of an intercept added."""

    def __init__(self, oracle: Oracle, statement: Statement, y: Kept, image: FloatArray, center: FloatArray) -> None:
        self.oracle, self.statement, self.y = oracle, statement, y
        self.value, self.center = image.copy(), np.zeros_like(center)
        self.scale = statement.l2 * statement.total
        if statement.column > 0:
            self.value[-1] *= statement.column
            self._put(center)

    @classmethod
    def at(cls, oracle: Oracle, start: FloatArray, column: float = 1.0) -> Image:
        """The slopes of the losses at weights `start`, or zeros where there are no weights yet.

        The column of an intercept is so many times as large as in `fitting/dual.py`, where it is as long as the rows.
        """
        problem, sizes = oracle.problem, oracle.samples.sizes
        light = problem.l2 * sizes.total * max(problem.loss.gamma, LIGHT)
        column *= math.sqrt(max(light, sizes.squares / sizes.total, 1e-12)) if problem.intercept else 0.0
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
        w = self.value / -self.scale
        if self.statement.column > 0:
            w[-1] *= self.statement.column
        return w

    def move(self) -> FloatArray:
        """Put the center of the intercept's penalty to where the intercept is; what that adds to the image."""
        before = self.value
        if self.statement.column > 0:
            self._put(self.weights()[-1])
        return self.value - before

    def _put(self, center: FloatArray) -> None:
        self.value = self.value.copy()
        self.value[-1] -= (center - self.center) * self.scale / self.statement.column
        self.center = center

    def squares(self) -> FloatArray:
        """|A'y|^2/(2 l2 W^2)."""
        return (self.value**2).sum(axis=0) / (2 * self.scale * self.statement.total)

    def candidate(self, w: FloatArray, y: Kept, sums: list[FloatArray]) -> Candidate:
        """With P(w) and the gap, from sums of the losses and of the conjugates, and A'y."""
        losses, conjugates, image = sums
        value = losses / self.statement.total + self.oracle.penalty(w)
        features = image[:-1] if self.oracle.problem.intercept else image
        dual = conjugates / self.statement.total + (features**2).sum(axis=0) / (2 * self.scale * self.statement.total)
        return Candidate(w, y, value, np.maximum(value + dual, 0.0))


def factors_of(sizes: FloatArray) -> FloatArray:
    """What positive and negative dual variables have to be multiplied by to add up to 0; see `balanced`."""
    return np.where(sizes > 0, sizes.min(axis=0) / np.where(sizes > 0, sizes, 1.0), 0.0)
