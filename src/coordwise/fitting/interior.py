"""An interior-point method in the feature space, for losses with kinks and data with few features.

A loss with kinks is, beside a parabola, a sum of pieces max over lo <= u <= up of u (t - c): one for hinge, absolute
and quantile losses, two for the epsilon-insensitive one. With multipliers p, q >= 0 of the bounds, w is optimal where

    t - c = q - p,   (u - lo) p = (up - u) q = 0,   l2 w + (1/W) A'y = 0,   y_i = s_i (sum of its u + (t_i - b_i)/quad).

The method follows the points where both products are mu > 0 instead, mu -> 0, by Newton's method (Mehrotra's
predictor and corrector). A sample's curvature is then D = 1/(p/(u - lo) + q/(up - u)) per piece, and what is left to
solve has the size of w: one Gram matrix A'DA, one factorisation and two solves per step. The number of steps hardly
depends on the penalty or on how features are scaled.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from coordwise.fitting.model import Candidate, LinearModel
from coordwise.fitting.newton import factored
from coordwise.kernels import Shape
from coordwise.validation import FloatArray

__all__ = ["interior", "made_of_pieces"]

INSIDE = 0.99  # of the way to the first bound
SPREAD = 10.0  # how far the products that a step aims at may be from their mean
PATIENCE = 15  # steps in which the gap has to become half as large: rounding ends that


def made_of_pieces(shape: Shape) -> bool:
    """Whether a loss has the form above."""
    if shape.logistic or shape.curvature > 0:
        return False
    if shape.quad > 0:
        return shape.kink == 0 and np.isinf(shape.lower) and np.isinf(shape.upper)
    return bool(np.isfinite(shape.lower) and np.isfinite(shape.upper))


def interior(
    model: LinearModel,
    tol: float,
    *,
    start: Candidate | None = None,
    w: FloatArray | None = None,
) -> Iterator[Candidate]:
    """Interior-point steps, output by output, for losses that are `made_of_pieces` and an l2 penalty.

    `start` is certified but not where the method begins, which is far from bounds: at weights w (d x K), or 0.

    Yields the best candidate at the start and after every step, until every gap is <= tol * scale, or until rounding
    errors stop the gaps from falling.
    """
    best = model.from_dual(np.zeros_like(model.b)) if start is None else model.recertified(start)
    yield best
    w = np.zeros((model.d, model.outputs)) if w is None else w
    outputs = [_Output(model, k, w[:, k]) for k in range(model.outputs)]
    seen: list[FloatArray] = []
    while (active := best.gap > tol * model.scale).any():
        for k in np.flatnonzero(active):
            outputs[k].step()
        found = _candidate(model, outputs)
        if np.all(found.better(best).gap <= tol * model.scale):  # scores that were updated carry rounding
            for output in outputs:
                output.refresh()
            found = _candidate(model, outputs)
        best = found.better(best)
        seen.append(found.gap)  # in the beginning larger than that of w = 0
        if len(seen) > PATIENCE and np.all((found.gap > seen[-1 - PATIENCE] / 2) | ~active):
            return
        yield best


class _Pieces(NamedTuple):
    """Centres and bounds, n of them (n x 2 for two per sample), and the parabola's curvature."""

    centers: FloatArray
    lower: FloatArray
    upper: FloatArray
    quad: float

    @staticmethod
    def of(shape: Shape, b: FloatArray) -> _Pieces:
        if shape.quad > 0:
            ends = np.full((len(b), 1), shape.dead)
            return _Pieces(b[:, None], -ends, ends, 1 / shape.quad)
        low, high = (end[:, None] for end in shape.domain(b))
        if shape.kink == 0:
            return _Pieces(b[:, None], low, high, 0.0)
        zero = np.zeros_like(low)
        centers = b[:, None] + np.array([shape.kink, -shape.kink])
        return _Pieces(centers, np.hstack([zero, low]), np.hstack([high, zero]), 0.0)


class _Direction(NamedTuple):
    x: FloatArray  # of the weights, and of the intercept
    t: FloatArray  # of the scores
    u: FloatArray
    p: FloatArray
    q: FloatArray


class _Output:
    """The iterate of one output: weights x (with the intercept), scores t, a = u - lo, e = up - u, p and q."""

    def __init__(self, model: LinearModel, k: int, w: FloatArray) -> None:
        self.model, self.b = model, model.b[:, k]
        self.s = np.ones(model.n) if model.weights is None else model.weights
        self.pieces = pieces = _Pieces.of(model.loss.shape, self.b)
        self.x = w
        if model.intercept:
            t = np.repeat(model.problem.product(w[:, None]), model.outputs, axis=1)
            self.x = np.append(w, model.best_intercept(t)[k])
        self.refresh()
        self.penalties = np.full(len(self.x), model.penalty.l2)
        self.penalties[model.d :] = 0.0
        mu = max(float(np.mean(np.abs(pieces.centers))), 1e-100)
        self.a, self.e = central(self.r, pieces.upper - pieces.lower, mu)
        self.p, self.q = mu / self.a, mu / self.e

    def refresh(self) -> None:
        """Compute the scores from the weights."""
        self.t = self.model.problem.product(self.x[: self.model.d, None])[:, 0]
        if self.model.intercept:
            self.t += self.x[-1]

    @property
    def r(self) -> FloatArray:
        return self.t[:, None] - self.pieces.centers

    @property
    def u(self) -> FloatArray:
        pieces = self.pieces
        return np.where(self.a < self.e, pieces.lower + self.a, pieces.upper - self.e)

    @property
    def y(self) -> FloatArray:
        """The dual variables."""
        return self._dual(self.u)

    def _dual(self, u: FloatArray) -> FloatArray:
        y = u.sum(1)
        if self.pieces.quad > 0:
            y += self.pieces.quad * (self.t - self.b)
        return np.asarray(self.s * y, np.float64)

    def _moments(self, y: FloatArray) -> FloatArray:
        moments = self.model.problem.moments(y[:, None])[:, 0]
        return np.append(moments, y.sum() / self.model.total) if self.model.intercept else moments

    def _mean(self, a: FloatArray, p: FloatArray, e: FloatArray, q: FloatArray) -> float:
        """Of the products."""
        products = a * p
        products += e * q
        return float(self.s @ products.sum(1)) / (2 * products.shape[1] * self.model.total)

    def step(self) -> None:
        """One step: a predictor that aims at the solution says how much of mu to leave, and the corrector does it."""
        model, a, e, p, q = self.model, self.a, self.e, self.p, self.q
        u, r = self.u, self.r
        left, right = p / a, q / e
        D = 1 / (left + right)
        solve = factored(model.hessian(self.s * (D.sum(1) + self.pieces.quad)))

        def towards(low: float | FloatArray, high: float | FloatArray) -> _Direction:
            """The direction to where (u - lo) p is `low` and (up - u) q is `high`."""
            low, high = low / a, high / e
            h = r + low - high
            x = -solve(self.penalties * self.x + self._moments(self._dual(u + D * h)))
            t = model.problem.product(x[: model.d, None])[:, 0]
            if model.intercept:
                t += x[-1]
            du = D * (t[:, None] + h)
            return _Direction(x, t, du, low - p - left * du, high - q + right * du)

        def length(move: _Direction) -> float:
            """Of the step along a direction that just reaches a bound."""
            worst = max(float(v.max()) for v in (-move.u / a, move.u / e, -move.p / p, -move.q / q))
            return 1 / worst if worst > 0 else np.inf

        mu = self._mean(a, p, e, q)
        move = towards(0.0, 0.0)
        far = min(1.0, length(move))
        ahead = self._mean(a + far * move.u, p + far * move.p, e - far * move.u, q + far * move.q)
        aim = mu * min(max(ahead / mu, 0.0), 1.0) ** 3
        bounds = aim / SPREAD, aim * SPREAD
        move = towards(np.clip(aim - move.u * move.p, *bounds), np.clip(aim + move.u * move.q, *bounds))
        far = min(1.0, INSIDE * length(move))
        self.x = self.x + far * move.x
        self.t = self.t + far * move.t
        self.a, self.e = a + far * move.u, e - far * move.u
        self.p, self.q = p + far * move.p, q + far * move.q

    def balanced(self, y: FloatArray) -> FloatArray:
        """Dual variables moved, away from bounds, to where they sum to 0, if there is room."""
        room = self.s * (self.a * self.e).sum(1)
        return y - y.sum() / room.sum() * room


def _candidate(model: LinearModel, outputs: list[_Output]) -> Candidate:
    x = np.stack([output.x for output in outputs], axis=1)
    w, c = np.ascontiguousarray(x[: model.d]), x[model.d] if model.intercept else np.zeros(model.outputs)
    t = np.stack([output.t for output in outputs], axis=1)
    y = np.stack([output.balanced(output.y) if model.intercept else output.y for output in outputs], axis=1)
    return model.paired(w, c, t, y)


def central(r: FloatArray, width: FloatArray, mu: float) -> tuple[FloatArray, FloatArray]:
    """(u - lo, up - u) with q - p = r and both products mu, for up - lo = width."""
    size = np.abs(r) * width
    root = np.sqrt(4 * mu**2 + size**2) + size
    near = 2 * mu * width / (2 * mu + root)
    far = 2 * mu * width / (2 * mu + 4 * mu**2 / root)
    return np.where(r > 0, far, near), np.where(r > 0, near, far)
