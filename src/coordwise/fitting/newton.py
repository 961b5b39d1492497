"""Newton's method in the feature space, for data with few features: one weighted Gram matrix per step."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from coordwise.fitting.model import Candidate, LinearModel, lower_of
from coordwise.fitting.search import halved, stretched
from coordwise.validation import FloatArray

__all__ = ["FEW", "direction", "factored", "majorant", "newton"]

FEW = 1000  # features (or samples) for which a dense Gram matrix is cheap
SHORT = 1 / 8  # a step that had to be halved more often came from curvatures that say little about the loss
TRIALS = 6  # of a step; damping is ten times stronger in each, unless there is something else to change
FIRST, LEAST = 1e-6, 5e-8  # damping, in parts of the mean curvature: the first and the smallest
RIGHT = 2.0  # how far on the right side a logistic loss is to end up that is on the wrong one
ENOUGH = 0.1  # of the decrease that the quadratic model promises
WORSE = 1.0  # times P(0, 0): a start is not used that is worse than this
FALL = 1e3  # times the goal: what a step may gain for its dual variables to be looked at
NEAR = 1e-3  # the same, times P(0, 0), where nothing else leads to a gap


def newton(
    model: LinearModel,
    tol: float,
    *,
    start: Candidate | None = None,
    w: FloatArray | None = None,
) -> Iterator[Candidate]:
    """Newton's method, output by output, for smooth losses and an l2 penalty.

    It begins with `start`, or with weights w (d x K), unless zeros are better.

    Steps on the logistic loss that do not descend are computed again with larger curvatures for samples that they would
    throw across (`_Output._tamed`), if there are any, which costs another Gram matrix. Else they are damped, as if l2
    were larger, which costs a factorisation and a product with the data but no Gram matrix; it is kept, and made
    smaller once a step succeeds at once. Steps along which P still falls at their end are stretched: where losses have
    become exponentials, a step moves their scores by 1 only. Steps on other losses are halved if need be. Where they
    become short, the curvatures are those of parabolas that lie above the losses.

    A step (u, e) from scores t leads to dual variables as well: y_i = s_i phi'(t_i) - h_i (<a_i, u> + e), where h_i are
    the curvatures it was computed with. By the equations of the step, -(1/W) A'y is l2 (w - u) and sum_i y_i = 0 (up to
    damping): weak penalties do not blow up what is wrong with y, as they do with derivatives at the new point. D(y) is
    as close to its minimum as P is, once no y_i has to be moved into its domain.

    Yields the best candidate at the start and after every step, until every gap is <= tol * scale.
    """
    here, best = _begun(model, start, w)
    yield best
    outputs = [_Output(model, k) for k in range(model.outputs)]
    dual = best.gap - best.value  # the smallest D(y) so far
    y = best.y
    while (active := best.gap > tol * model.scale).any():
        w, c, t, value = here.w.copy(), here.c.copy(), here.t.copy(), here.value.copy()
        steps = {int(k): outputs[k].step(here) for k in np.flatnonzero(active)}
        for k, step in steps.items():
            w[:, k] -= step.taken.u
            c[k] -= step.taken.e
            t[:, k : k + 1] -= step.taken.move
            value[k] = step.value
        if any(step.worth_asking(tol, model.scale[k], alone=model.intercept) for k, step in steps.items()):
            other = y.copy()
            for k, step in steps.items():
                other[:, k : k + 1] = step.y
            y, dual = lower_of(y, dual, *model.dual_of(other))
        best = Candidate(w, c, y, value, np.maximum(value + dual, 0)).better(best)
        if not np.all(best.gap <= tol * model.scale):
            here = _here(model, w, c, t, value)
            found = here.candidate(model, at_any_cost=any(step.shortened for step in steps.values()))
            best = found.better(best)
            y, dual = lower_of(y, dual, found.y, found.gap - value)
        if np.all(best.gap <= tol * model.scale):  # scores that were updated carry rounding
            exact = model.recertified(best)
            if not np.all(exact.gap <= tol * model.scale):
                here = _here(model, best.w, best.c, model.scores(best.w, best.c), exact.value)
                exact = here.candidate(model).better(exact)
            best = exact
        yield best


class _Here(NamedTuple):
    """A point: weights, intercepts, scores, values, derivatives y of the losses and v = -(1/W) A'y."""

    w: FloatArray
    c: FloatArray
    t: FloatArray
    value: FloatArray
    y: FloatArray
    v: FloatArray

    def candidate(self, model: LinearModel, *, at_any_cost: bool = False) -> Candidate:
        """With y as dual variables. An intercept wants sum_i y_i = 0: then the gap is infinite, unless at any cost."""
        if model.intercept and at_any_cost:
            return model.certified_at(self.w, self.c, self.t, self.value)[0]
        if model.intercept:
            return Candidate(self.w, self.c, self.y, self.value, np.full(model.outputs, np.inf))
        return Candidate(self.w, self.c, self.y, self.value, model.gap_at_derivatives(self.w, self.v))


def _here(model: LinearModel, w: FloatArray, c: FloatArray, t: FloatArray, value: FloatArray) -> _Here:
    y = model.problem.terms.subgradients(t)
    return _Here(w, c, t, value, y, -model.problem.moments(y))


def _begun(model: LinearModel, start: Candidate | None, w: FloatArray | None) -> tuple[_Here, Candidate]:
    """Where it begins, and the best candidate there."""
    none, zeros = np.zeros((model.d, model.outputs)), np.zeros((model.n, model.outputs))
    w, c = (none if w is None else w, None) if start is None else (start.w, start.c)
    t = model.scores(w, np.zeros(model.outputs))
    c = model.best_intercept(t, rough=True) if c is None else c
    value = model.value(w, t + c)
    if np.any(value > WORSE * model.scale):
        start, w, t, c = None, none, zeros, model.best_intercept(zeros)
        value = model.value(w, t + c)
    here = _here(model, w, c, t + c, value)
    found = Candidate(w, c, zeros, value, value)  # D(0) = 0: no loss is negative
    if start is not None:
        found = model.certified_at(w, c, here.t, value)[0].better(found)
    return here, here.candidate(model).better(found)


class _Step(NamedTuple):
    """What is to be subtracted from w, c and the scores: u, e and Au + e."""

    u: FloatArray
    e: float
    move: FloatArray

    def times(self, length: float) -> _Step:
        return self if length == 1 else _Step(length * self.u, length * self.e, length * self.move)


class _Taken(NamedTuple):
    """The step that was taken, the value after it, the dual variables it leads to, and what it was expected to gain."""

    taken: _Step
    value: float
    y: FloatArray
    gain: float
    inside: bool  # whether y is in its domain without help
    shortened: bool  # then y says little about the point that was reached

    def worth_asking(self, tol: float, scale: float, *, alone: bool) -> bool:
        """Whether D(y) may be small enough for a gap <= tol * scale: P - min P was about `gain` before the step, which
        squares it at best. Where they `alone` lead to gaps, they are asked near the solution in any case.
        """
        if alone:
            return self.gain <= max(math.sqrt(tol), NEAR) * scale
        return self.inside and self.gain <= min(FALL * tol, math.sqrt(tol)) * scale


class _Output:
    """Steps of one output, and the damping that the last one needed."""

    def __init__(self, model: LinearModel, k: int) -> None:
        self.model, self.k, self.terms = model, k, model.terms(k)
        self.damping = 0.0
        squares = model.problem.rows("rows").norms2()
        self.unit = float(model.loss.smoothness * squares.mean() / model.d)  # of damping: the mean curvature at most
        self.trials = TRIALS if model.loss.shape.logistic else 1
        self.ends = None if model.loss.shape.logistic else model.loss.domain(model.b[:, k : k + 1], model.s)

    def step(self, at: _Here) -> _Taken:
        """A step from a point."""
        model, l2 = self.model, self.model.penalty.l2
        w, t, y, here = at.w[:, self.k], at.t[:, self.k : self.k + 1], at.y[:, self.k : self.k + 1], at.value[self.k]
        gradient = l2 * w - at.v[:, self.k]
        if model.intercept:
            gradient = np.append(gradient, y.sum() / model.total)

        def value(step: _Step) -> float:
            point = w - step.u
            return float(self.terms.value(t - step.move)[0] / model.total + l2 / 2 * (point @ point))

        def taken(
            step: _Step, there: float, full: _Step, curvature: FloatArray, gain: float, *, shortened: bool
        ) -> _Taken:
            dual = y - curvature[:, None] * full.move
            inside = self.ends is None or not (np.any(dual < self.ends[0]) or np.any(dual > self.ends[1]))
            return _Taken(step, there, dual, gain, inside, shortened)

        def halving(step: _Step, slope: float) -> tuple[_Step, float, float]:
            length, there = halved(lambda length: value(step.times(length)), here, -slope)
            return step.times(length), there, length

        def stretching(step: _Step, there: float, slope: float) -> tuple[_Step, float]:
            """For losses with exponential tails, along which a step leads by 1 only."""

            def fall(length: float) -> float:
                y = self.terms.derivative(t - length * step.move)
                return float(y[:, 0] @ step.move[:, 0]) / model.total + l2 * float((w - length * step.u) @ step.u)

            length = stretched(fall, slope) if model.loss.shape.logistic else 1.0
            longer = step.times(length)
            return (longer, lower) if length > 1 and (lower := value(longer)) < there else (step, there)

        curvature = self.terms.second_derivative(t)[:, 0]
        hessian = model.hessian(curvature)
        full, slope, bend = self._solve(hessian, gradient, self.damping)
        for trial in range(self.trials):
            if trial > 0:
                tamed = self._tamed(t, y, curvature, full) if trial == 1 else None
                if tamed is not None:
                    curvature, hessian = tamed, model.hessian(tamed)
                else:
                    self.damping = max(10 * self.damping, FIRST * self.unit)
                full, slope, bend = self._solve(hessian, gradient, self.damping)
            if (there := value(full)) <= here - ENOUGH * (slope - bend / 2) + 1e-15 * abs(here):
                if trial == 0:
                    self.damping = self.damping / 100 if self.damping > LEAST * self.unit else 0.0
                step, there = stretching(full, there, slope)
                return taken(step, there, full, curvature, slope / 2, shortened=False)
        step, there, length = halving(full, slope)
        if length >= SHORT:
            return taken(step, there, full, curvature, slope / 2, shortened=length < 1)
        s: Any = 1.0 if model.weights is None else model.weights
        above = majorant(model, t[:, 0], y[:, 0], model.b[:, self.k], s)
        other, steep, _ = self._solve(model.hessian(above), gradient, 0.0)
        shorter, lower, part = halving(other, steep)
        if lower < there or not np.isfinite(there):
            return taken(shorter, lower, other, above, steep / 2, shortened=part < 1)
        return taken(step, there, full, curvature, slope / 2, shortened=True)

    def _tamed(self, t: FloatArray, y: FloatArray, curvature: FloatArray, step: _Step) -> FloatArray | None:
        """Curvatures with larger ones for samples that are far on the wrong side and would be thrown across; None if
        there are none.

        There the logistic loss is a straight line, and a feature that only such samples have gets a step of any length.
        The curvature |phi'|/(|t| + 2) leads a sample to a score of 2 on the right side, and is phi'' at t = 0.
        """
        t, y, move = t[:, 0], y[:, 0], step.move[:, 0]
        wild = (y * t > 0) & (np.sign(t) * move > np.abs(t) + RIGHT)
        return np.where(wild, np.abs(y) / (np.abs(t) + RIGHT), curvature) if wild.any() else None

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

    def scaled() -> FloatArray:
        product = hessian * unit
        product *= unit[:, None]
        return product.T  # the same, and in the order of LAPACK, which then needs no copy

    matrix = scaled()
    size = scipy.linalg.lapack.dlange("1", matrix)
    factor, wrong = scipy.linalg.lapack.dpotrf(matrix, lower=0, clean=0, overwrite_a=1)
    if wrong == 0:
        condition, wrong = scipy.linalg.lapack.dpocon(factor, size)
        if wrong == 0 and condition > np.finfo(float).eps:
            return lambda g: np.asarray(unit * scipy.linalg.lapack.dpotrs(factor, unit * g)[0], np.float64)
    values, vectors = scipy.linalg.eigh(scaled(), check_finite=False)  # the smallest solution
    kept = values > len(values) * np.finfo(float).eps * values[-1]
    values, vectors = values[kept], vectors[:, kept]
    return lambda g: np.asarray(unit * (vectors @ ((vectors.T @ (unit * g)) / values)), np.float64)
