"""Minima that distances are measured from, each with the duality gap that certifies it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coordwise.erm import ERM, DualERM
from coordwise.experiments.units import Interrupted, Watch
from coordwise.fitting.weighted import Gram
from coordwise.recording import Progress
from coordwise.solve import solve
from coordwise.validation import FloatArray

__all__ = ["Certified", "certified_minimum"]


@dataclass(frozen=True)
class Certified:
    """min D = -min P lies between `dual - gap` and `dual`, and min P between `primal - gap` and `primal`."""

    dual: float
    primal: float
    gap: float
    how: str


def certified_minimum(objective: DualERM, tol: float, watch: Watch, *, passes: float = 3000) -> tuple[Certified, Any]:
    """The minimum of D and a minimiser, with P(w) + D(y) <= tol P(0) if that can be had within the given passes.

    `gap` says what it came to. With far more samples than features, squared and l2-l1 losses with an l2 penalty are
    solved in the feature space by Newton's method; everything else by `solve`.
    """
    problem = objective.problem
    scale = float(problem.value_at_zero[0])
    tall = problem.n_features <= 1000 and problem.n_samples >= 4 * problem.n_features
    if tall and problem.loss.name in ("squared", "l2l1") and problem.penalty.l1 == 0 and not problem.penalty.positive:
        w, y = _newton(problem, tol, watch)
        gap = problem.gap(w, y)
        if gap <= max(tol, 1e-11) * scale:
            rounded = max(gap, 1e-15 * scale)  # sums of n terms know no better
            return Certified(problem.dual_value(y), problem.value(w), rounded, "Newton's method on the primal"), y

    def stops(progress: Progress) -> bool:
        return watch.stopped

    result = solve(objective, tol=tol, max_passes=passes, callback=stops)
    if watch.stopped:
        raise Interrupted
    gap = max(float(result.gap), 1e-15 * scale)
    return Certified(float(result.value), float(result.primal), gap, result.method), result.point


def _newton(problem: ERM, tol: float, watch: Watch) -> tuple[FloatArray, FloatArray]:
    """(w, y) with a small gap: |r| in the l2-l1 loss is rounded over a width that shrinks to nothing.

    P_width(w) = (1/n) sum_i r_i^2/2 + huber(r_i) + (lam/2)|w|^2 with r = Aw - b has the Hessian of ridge regression
    plus A_S'A_S/(n width), S the rows with |r_i| < width; y_i = r_i + clip(r_i/width, -1, 1) is its dual point.
    """
    A, b, n, lam = problem.A, problem.b[:, 0], problem.n_samples, problem.penalty.l2
    kink = 1.0 if problem.loss.name == "l2l1" else 0.0
    base = Gram(A, False)(np.ones(n)) / n + lam * np.eye(problem.n_features)
    scale = float(problem.value_at_zero[0])
    w = np.linalg.solve(base, A.T @ b / n)
    r = A @ w - b

    def smoothed(w: FloatArray, r: FloatArray, width: float) -> float:
        size = np.abs(r)
        rounded = np.where(size < width, size**2 / (2 * width), size - width / 2)
        return float(np.mean(r**2 / 2 + kink * rounded) + lam / 2 * (w @ w))

    best_w, best_y, best_gap = w, r, np.inf
    for width in 10.0 ** np.arange(0, -13, -0.5):
        for _ in range(30):
            if watch.stopped:
                raise Interrupted
            y = r + kink * np.clip(r / width, -1, 1)
            gradient = A.T @ y / n + lam * w
            inside = np.flatnonzero(np.abs(r) < width) if kink else np.arange(0)
            kinks = Gram(A[inside], False)(np.ones(len(inside))) / (n * width) if len(inside) else 0.0
            step = np.linalg.solve(base + kinks, gradient)
            if gradient @ step <= 1e-16 * scale:
                break
            length, here = 1.0, smoothed(w, r, width)
            move = A @ step
            while smoothed(w - length * step, r - length * move, width) > here - 1e-4 * length * (gradient @ step):
                length /= 2
                if length < 1e-10:
                    break
            if length < 1e-10:  # rounding: this width has nothing more to give
                break
            w, r = w - length * step, r - length * move
        r = A @ w - b
        y = r + kink * np.clip(r / width, -1, 1)
        gap = problem.gap(w, y)
        if gap < best_gap:
            best_w, best_y, best_gap = w, y, gap
        if best_gap <= 0.1 * tol * scale or not kink:
            break
    return best_w, best_y
