"""Newton's method in the feature space, for data with few features: one weighted Gram matrix per step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from coordwise.fitting.model import Candidate, LinearModel
from coordwise.fitting.search import halved
from coordwise.validation import FloatArray

__all__ = ["FEW", "direction", "factored", "majorant", "newton"]

FEW = 1000  # features (or samples) for which a dense Gram matrix is cheap
SHORT = 1 / 8  # a step that had to be halved more often came from curvatures that say little about the loss
TRIALS = 3  # of damping, each ten times stronger than the last
FIRST, LEAST = 1e-4, 5e-6  # damping, in parts of the mean curvature: the first and the smallest
ENOUGH = 0.1  # of the decrease that the quadratic model promises


def newton(
    model: LinearModel,
    tol: float,
    *,
    start: Candidate | None = None,
) -> Iterator[Candidate]:
    """Newton's method, output by output, for smooth losses and an l2 penalty.

    Steps on the logistic loss are damped where they do not descend, as if l2 were larger, which costs a factorisation
    and a product with the data but no Gram matrix; the damping is kept, and made smaller with every step that is taken
    at once. Other steps are halved. Where they become short, the curvatures are those of parabolas that lie above the
    losses.

    Yields the best candidate at the start and after every step, until every gap is <= tol * scale.
    """
    w = np.zeros((model.d, model.outputs)) if start is None else start.w
    last, v = model.certified(w, None if start is None else start.c)
    best = last
    yield best
    outputs = [_Output(model, k) for k in range(model.outputs)]
    t = model.scores(last.w, last.c)
    while (active := best.gap > tol * model.scale).any():
        w, c, t, value = last.w.copy(), last.c.copy(), t.copy(), last.value.copy()
        for k in np.flatnonzero(active):
            step, value[k] = outputs[k].step(w[:, k], t[:, k : k + 1], v[:, k], float(value[k]))
            w[:, k] -= step.u
            c[k] -= step.e
            t[:, k : k + 1] -= step.move
        last, v = model.certified_at(w, c, t, value)
        if np.all(last.better(best).gap <= tol * model.scale):  # scores that were updated carry rounding
            t = model.scores(w, c)
            last, v = model.certified_at(w, c, t)
        best = last.better(best)
        yield best


class _Step(NamedTuple):
    """What is to be subtracted from w, c and the scores: u, e and Au + e."""

    u: FloatArray
    e: float
    move: FloatArray

    def times(self, length: float) -> _Step:
        return self if length == 1 else _Step(length * self.u, length * self.e, length * self.move)


class _Output:
    """Steps of one output, and the damping that the last one needed."""

    def __init__(self, model: LinearModel, k: int) -> None:
        self.model, self.k, self.terms = model, k, model.terms(k)
        self.damping = 0.0
        A = model.weighted.A
        squares = model.problem.rows("rows").norms2().sum() if A is None else np.vdot(A, A)
        self.unit = float(model.loss.smoothness * squares / model.n / model.d)  # of damping: the mean curvature at most
        self.trials = TRIALS if model.loss.shape.logistic else 1

    def step(self, w: FloatArray, t: FloatArray, v: FloatArray, here: float) -> tuple[_Step, float]:
        """A step from w with scores t, and the value after it.

        v are the moments of -phi'(t), and `here` is the value before.
        """
        model, l2 = self.model, self.model.penalty.l2
        if model.intercept:
            y = self.terms.derivative(t)
            gradient = np.append(model.problem.moments(y)[:, 0] + l2 * w, y.sum() / model.total)
        else:  # these are the subgradients that v was computed of
            gradient = l2 * w - v

        def value(step: _Step) -> float:
            point = w - step.u
            return float(self.terms.value(t - step.move)[0] / model.total + l2 / 2 * (point @ point))

        def halving(step: _Step, slope: float) -> tuple[_Step, float, float]:
            length, there = halved(lambda length: value(step.times(length)), here, -slope)
            return step.times(length), there, length

        hessian = model.hessian(self.terms.second_derivative(t)[:, 0])
        for trial in range(self.trials):
            if trial > 0:
                self.damping = max(10 * self.damping, FIRST * self.unit)
            step, slope, bend = self._solve(hessian, gradient, self.damping)
            if (there := value(step)) <= here - ENOUGH * (slope - bend / 2) + 1e-15 * abs(here):
                if trial == 0:
                    self.damping = self.damping / 10 if self.damping > LEAST * self.unit else 0.0
                return step, there
        step, there, length = halving(step, slope)
        if length >= SHORT:
            return step, there
        s: Any = 1.0 if model.weights is None else model.weights
        above = majorant(model, t[:, 0], self.terms.derivative(t)[:, 0], model.b[:, self.k], s)
        other, slope, _ = self._solve(model.hessian(above), gradient, 0.0)
        other, lower, _ = halving(other, slope)
        return (other, lower) if lower < there or not np.isfinite(there) else (step, there)

    def _solve(self, hessian: FloatArray, gradient: FloatArray, damping: float) -> tuple[_Step, float, float]:
        """The step, and slope and curvature of the quadratic model along it."""
        d = self.model.d
        damped = hessian
        if damping > 0:
            damped = hessian.copy()
            np.einsum("ii->i", damped)[:d] += damping
        full = direction(damped, gradient)
        e = float(full[d]) if self.model.intercept else 0.0
        move = self.model.problem.product(full[:d, None])
        move += e
        return _Step(full[:d], e, move), float(gradient @ full), float(full @ (hessian @ full))


def majorant(model: LinearModel, t: FloatArray, y: FloatArray, b: FloatArray, s: Any) -> FloatArray:
    """Curvatures of parabolas that lie above the losses and touch them at t.

    A loss that is linear far out has the parabola with its vertex at the target; other losses have their largest
    curvature everywhere.
    """
    largest = np.broadcast_to(np.asarray(model.loss.smoothness * s, np.float64), t.shape)
    shape = model.loss.shape
    if shape.logistic or shape.kink > 0 or shape.dead > 0:
        return largest
    r = np.abs(t - b)
    return np.where(y == 0, largest, np.minimum(np.abs(y) / np.where(r > 0, r, 1.0), largest))


def direction(hessian: FloatArray, gradient: FloatArray) -> FloatArray:
    """The Newton direction."""
    return factored(hessian)(gradient)


def factored(hessian: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Solutions of hessian x = gradient; rows and columns are scaled to a unit diagonal, since features may be of any
    size.
    """
    diagonal = np.diagonal(hessian)
    unit = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    scaled = hessian * unit
    scaled *= unit[:, None]
    size = scipy.linalg.lapack.dlange("1", scaled)
    factor, wrong = scipy.linalg.lapack.dpotrf(scaled, lower=0, clean=0)
    if wrong == 0:
        condition, wrong = scipy.linalg.lapack.dpocon(factor, size)
        if wrong == 0 and condition > np.finfo(float).eps:
            return lambda g: np.asarray(unit * scipy.linalg.lapack.dpotrs(factor, unit * g)[0], np.float64)
    values, vectors = scipy.linalg.eigh(scaled, check_finite=False)  # the smallest solution
    kept = values > len(values) * np.finfo(float).eps * values[-1]
    values, vectors = values[kept], vectors[:, kept]
    return lambda g: np.asarray(unit * (vectors @ ((vectors.T @ (unit * g)) / values)), np.float64)
