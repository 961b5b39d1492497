"""Newton's method for smooth losses and an l2 penalty: the outer steps, and steps by formed Hessians."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coordwise.fitting.newton import direction
from coordwise.oracle import Candidate, Curvature, Oracle, Point, Work
from coordwise.second_moments import MOST_FEATURES
from coordwise.validation import FloatArray

__all__ = ["Newton", "Outer", "descended"]

DESCENT = 1e-4  # of what the slope promises: what a step has to gain (Armijo)
LENGTHS = 0.5 ** np.arange(1.0, 21.0)  # that are tried where the full step gains too little
PATIENCE = 9  # Newton steps in which some gap has to halve, or P to fall by more than rounding
SHORT = 1 / 8  # a step of less than this came from curvatures that say little about the loss
NEWTON_STEPS, QUADRATIC_STEPS = 8, 2  # that a forecast allows for; of the squared loss
EPS = float(np.finfo(float).eps)
ROUNDING = 1e-15  # of P: what its sums may be off by


class Outer:
    """w <- w + length * s, all outputs at once, with steps s that a subclass finds.

    The Hessian is that of the losses; where a step gets short, on losses that are curved in some places and straight
    in others, that of parabolas above the losses, whose full step always gains.
    """

    def refuses(self, oracle: Oracle) -> str:
        """Why it does not apply, or nothing."""
        if oracle.problem.loss.gamma == 0:
            return "it needs a smooth loss"
        if oracle.problem.l1 > 0:
            return "it knows no l1 penalty"
        return "" if oracle.problem.l2 > 0 else "it needs an l2 penalty"

    def rounds(self, oracle: Oracle, start: FloatArray, goal: FloatArray) -> Iterator[Candidate]:
        """Candidates from weights `start` on, one after every Newton step, until every gap is <= goal.

        The one that meets the goal was computed from its weights alone. It ends earlier where rounding allows no more.
        """
        point = oracle.at(start)
        begun = oracle.certificate(point).gap
        fresh, above, patience, least, lowest = True, False, PATIENCE, begun, point.value
        while patience:
            found = oracle.certificate(point)
            if np.all(found.gap <= goal) and not fresh:  # scores that are updated drift
                point, fresh = oracle.at(point.w), True
                found = oracle.certificate(point)
            yield found
            active = found.gap > goal
            if not active.any():
                return
            better = (found.gap < least / 2) | (found.value < lowest - 64 * EPS * np.abs(lowest))
            patience = PATIENCE if np.any(active & better) else patience - 1
            least, lowest = np.minimum(least, found.gap), np.minimum(lowest, found.value)
            with np.errstate(invalid="ignore"):  # both may be infinite
                left = np.where(active, np.fmin(found.gap / np.maximum(begun, 1e-300), 1.0), 0.0)
            curvature = oracle.curvature(point, "majorant" if above else "exact")
            step = self.step(curvature, left, goal)
            if oracle.problem.loss.coupled:  # it does not see a shift of all outputs, which the penalty takes to 0
                step = step - (step + point.w).mean(axis=1, keepdims=True)
            reached, length = descended(oracle, point, step, (point.gradient * step).sum(axis=0))
            above, retried = length < SHORT and not oracle.problem.loss.coupled, above
            if reached is not None:
                point, fresh = reached, False
            elif retried or not above:
                return

    def step(self, curvature: Curvature, left: FloatArray, goal: FloatArray) -> FloatArray:
        """About -H^-1 grad P (`left` is what is left of the first gap; 0: no step)."""
        raise NotImplementedError


@dataclass(frozen=True)
class Newton(Outer):
    """Newton's method with a Hessian that is formed in one visit per output and step, and factored here.

    The work is known beforehand: about eight steps of n d^2 + d^3/3 multiplications, fewer for sparse samples.
    """

    name: ClassVar[str] = "newton"
    sure: ClassVar[bool] = True

    def refuses(self, oracle: Oracle) -> str:
        """Why it does not apply, or nothing."""
        if why := super().refuses(oracle):
            return why
        size = oracle.shape[0] * (oracle.shape[1] if oracle.problem.loss.coupled else 1)
        return f"it is for at most {MOST_FEATURES} features" if size > MOST_FEATURES else ""

    def forecast(self, oracle: Oracle, folds: float) -> Work:
        """See `Solver`: some steps, each a Hessian and its factor per output, and two products."""
        sizes, coupled = oracle.samples.sizes, oracle.problem.loss.coupled
        d, K = oracle.shape
        steps = QUADRATIC_STEPS if oracle.problem.loss.name == "squared" else NEWTON_STEPS
        times, size = (1, d * K) if coupled else (K, d)
        grams = oracle.gram_flops(d) * (K**2 / 2 if coupled else K)
        rounds = times + 4 + 5 * oracle.problem.intercept
        numbers = 8.0 * (times * size**2 + 4 * d * K)
        return Work(
            steps * (2 + times) * sizes.nnz, steps * rounds, steps * numbers, steps * (grams + times * size**3 / 3)
        )

    def step(self, curvature: Curvature, left: FloatArray, goal: FloatArray) -> FloatArray:
        """-H^-1 grad P of the outputs that are not done."""
        oracle, gradient = curvature.oracle, curvature.point.gradient
        step = np.zeros_like(gradient)
        if oracle.problem.loss.coupled:
            H = curvature.formed()
            H[np.diag_indices_from(H)] += oracle.penalised(np.ones(oracle.shape)).ravel()
            oracle.work.flops += len(H) ** 3 / 3
            return -direction(H, gradient.ravel()).reshape(gradient.shape)
        for k in np.flatnonzero(left > 0):
            H = curvature.formed(int(k))
            H[np.diag_indices_from(H)] += oracle.penalised(np.ones((len(H), 1)))[:, 0]
            oracle.work.flops += len(H) ** 3 / 3
            step[:, k] = -direction(H, gradient[:, k])
        return step


def descended(oracle: Oracle, point: Point, step: FloatArray, slope: FloatArray) -> tuple[Point | None, float]:
    """The point after the full step, or after the longest of shorter ones that gains enough, and the smallest length.

    No point where there is no gain. `slope` is what P falls by, to first order, per output (an upper bound of it with
    an l1 penalty).
    """
    slope = np.minimum(oracle.grouped(slope), 0.0)
    line, noise = oracle.line(point, step), ROUNDING * np.abs(point.value)
    length = np.ones(len(slope))
    w, scores, value = line.to(length)
    fine = value <= point.value + DESCENT * slope + noise
    if not np.all(fine):
        good = line.values(LENGTHS) <= point.value + DESCENT * LENGTHS[:, None] * slope + noise
        shorter = np.where(good.any(axis=0), LENGTHS[good.argmax(axis=0)], 0.0)
        length = np.where(fine, 1.0, shorter)
        if not np.any(length * slope):
            return None, 0.0
        w, scores, value = line.to(length)
    elif not np.any(slope):
        return None, 1.0
    return oracle.at_scores(w, scores), float(length.min())
