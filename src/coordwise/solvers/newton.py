"""Newton's method whose steps are found by conjugate gradients with the diagonal of the Hessian."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coordwise.oracle import Candidate, Oracle, Point, Work
from coordwise.validation import FloatArray

__all__ = ["NewtonCG"]

DESCENT = 1e-4  # of what the slope promises: what a step has to gain (Armijo)
LENGTHS = 0.5 ** np.arange(1.0, 21.0)  # that are tried where the full step gains too little
MOST = 500  # steps of conjugate gradients for one Newton step
PATIENCE = 9  # Newton steps in which some gap has to halve
NEWTON_STEPS = 4  # that a forecast allows for
ROUNDING = 1e-15  # of P: what its sums may be off by


@dataclass(frozen=True)
class NewtonCG:
    """w <- w + length * s with H s = -grad P up to a tolerance that follows the gap; all outputs at once.

    For smooth losses and an l2 penalty. A Newton step costs two products for every step of conjugate gradients and four
    more; every point has a duality gap for free. The work grows with sqrt(kappa), kappa being the condition number of
    the Hessian after scaling by its diagonal, or with the number of its distinct eigenvalues.
    """

    name: ClassVar[str] = "newton_cg"
    sure: ClassVar[bool] = False

    def refuses(self, oracle: Oracle) -> str:
        """Why it does not apply, or nothing."""
        if oracle.problem.loss.gamma == 0:
            return "it needs a smooth loss"
        if oracle.problem.l1 > 0:
            return "it knows no l1 penalty"
        return "" if oracle.problem.l2 > 0 else "it needs an l2 penalty"

    def forecast(self, oracle: Oracle, folds: float) -> Work:
        """See `Solver`: sqrt(kappa)/2 steps of conjugate gradients per e-fold, no more than there are features."""
        sizes, problem = oracle.samples.sizes, oracle.problem
        kappa = sizes.squares / sizes.total / (problem.loss.gamma * problem.l2 * max(sizes.d, 1))
        pairs = min(folds * (1 + math.sqrt(kappa) / 2), float(sizes.d)) + NEWTON_STEPS
        rounds = pairs + 4 * NEWTON_STEPS
        numbers = 16.0 * sizes.d * sizes.outputs
        return Work((2 * pairs + 4 * NEWTON_STEPS) * sizes.nnz, rounds, numbers * rounds)

    def rounds(self, oracle: Oracle, start: FloatArray, goal: FloatArray) -> Iterator[Candidate]:
        """Candidates from weights `start` on, one after every Newton step, until every gap is <= goal.

        The one that meets the goal was computed from its weights alone. It ends earlier where rounding allows no more.
        """
        point = oracle.at(start)
        begun = oracle.certificate(point).gap
        fresh, least, patience = True, begun, PATIENCE
        while patience:
            found = oracle.certificate(point)
            if np.all(found.gap <= goal) and not fresh:  # scores that are updated drift
                point, fresh = oracle.at(point.w), True
                found = oracle.certificate(point)
            yield found
            active = found.gap > goal
            if not active.any():
                return
            patience = PATIENCE if np.any(active & (found.gap < least / 2)) else patience - 1
            least = np.minimum(least, found.gap)
            step = self.step(oracle, point, np.where(active, found.gap / np.maximum(begun, 1e-300), 0.0), goal)
            reached = _descended(oracle, point, step)
            if reached is None:
                return
            point, fresh = reached, False

    def step(self, oracle: Oracle, point: Point, left: FloatArray, goal: FloatArray) -> FloatArray:
        """The Newton step, as exact as the gap is small (`left` is its share of the first one; 0: no step)."""
        H = oracle.curvature(point)
        inverse = 1 / np.where(H.diagonal > 0, H.diagonal, 1.0)
        r = np.where(left > 0, -point.gradient, 0.0)
        s = np.zeros_like(r)
        p = z = inverse * r
        rz = (r * z).sum(axis=0)
        enough = oracle.problem.l2 * goal / 2  # |r|^2/(2 l2) is the gap, if the losses are quadratic
        quadratic = oracle.problem.loss.name == "squared"
        far = 0.0 if quadratic else rz * np.minimum(0.3, 0.5 * left**0.25) ** 2
        for _ in range(MOST):
            if np.all((rz <= far) | ((r * r).sum(axis=0) <= enough)):
                break
            Hp, square = H.times(p)
            moving = square > 0
            length = np.where(moving, rz / np.where(moving, square, 1.0), 0.0)
            s = s + length * p
            r = r - length * Hp
            z, last = inverse * r, rz
            rz = (r * z).sum(axis=0)
            p = z + np.where(last > 0, rz / np.where(last > 0, last, 1.0), 0.0) * p
        return s


def _descended(oracle: Oracle, point: Point, step: FloatArray) -> Point | None:
    """The point after the full step, or after the longest of shorter ones that gains enough; None without a gain."""
    line, slope = oracle.line(point, step), (point.gradient * step).sum(axis=0)
    noise = ROUNDING * np.abs(point.value)
    w, scores, value = line.to(np.ones(len(slope)))
    fine = value <= point.value + DESCENT * slope + noise
    if not np.all(fine):
        good = line.values(LENGTHS) <= point.value + DESCENT * LENGTHS[:, None] * slope + noise
        shorter = np.where(good.any(axis=0), LENGTHS[good.argmax(axis=0)], 0.0)
        length = np.where(fine, 1.0, shorter)
        if not np.any(length * slope):
            return None
        w, scores, value = line.to(length)
    elif not np.any(slope):
        return None
    return oracle.at_scores(w, scores)
