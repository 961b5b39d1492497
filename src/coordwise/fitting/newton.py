"""Newton's method in the feature space, for data with few features: one weighted Gram matrix per step."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from coordwise.fitting.model import Candidate, LinearModel, lower_of
from coordwise.fitting.weighted import Changing, Most
from coordwise.lines import flattest, halved
from coordwise.validation import FloatArray

__all__ = ["FEW", "direction", "factored", "factored_with_rest", "majorant", "newton"]

FEW = 1000  # features (or samples) for which a dense Gram matrix is cheap
SHORT = 1 / 8  # a step of less than this came from curvatures that say little about the loss
STEEP = 0.03  # of the slope at its begin: what is left at the end of a step on the logistic loss
LITTLE = 1e-4  # of what the slope at its begin promises: what a step has to gain
HALF = 1 / 2  # dual variables of one of at most this say little about the point that is reached
RIGHT = 1.0  # how far on the right side a logistic loss is to end up that is on the wrong one
FAR = 5e-3  # times P(0, 0): after steps that gain as much, the next one leads samples across
WORSE = 1.0  # times P(0, 0): a start is not used that is worse than this
MOST = 4.0  # times the goal: what a step that leads samples across may gain for that, as measured
FALL = 1e3  # times the goal: what a step may gain for its dual variables to be looked at
NEAR = 1e-3  # the same, times P(0, 0), where nothing else leads to a gap
NOTHING = 1e-6  # times the goal: what rounding errors may change
MENDABLE, MENDS = 100.0, 3  # times the goal: a gap, known or expected, that dual variables are mended for; how often
MOVED = 0.8  # times the share of them that had to be moved into their domain: what mending leaves of a gap at least
FIRM = 1e-9  # of its diagonal: what a pivot has left if features are far from linear combinations of others
ROOM = 2**24  # numbers in the factors of all outputs that are kept for that, or in the Gram matrices that are


def newton(
    model: LinearModel,
    tol: float,
    *,
    start: Candidate | None = None,
    w: FloatArray | None = None,
    t: FloatArray | None = None,
) -> Iterator[Candidate]:
    """Newton's method, output by output, for smooth losses and an l2 penalty.

    It begins with `start`, or with weights w (d x K) and t = Aw if that is known, unless zeros are better.

    On the logistic loss a step ends where P stops falling: where losses have become exponentials, a full step moves
    their scores by 1 only. Far from the solution, after a rough start, samples on the wrong side get the curvatures
    that lead them across (`aimed`). Steps on other losses, which are quadratic in parts, do so only if full ones do not
    descend. Steps that become short came from curvatures which say little about the losses. Then these are the
    curvatures of parabolas that lie above the losses.

    A step (u, e) from scores t leads to dual variables as well: y_i = s_i phi'(t_i) - h_i (<a_i, u> + e), where h_i are
    the curvatures it was computed with. By the equations of the step, -(1/W) A'y is l2 (w - u) and sum_i y_i = 0: weak
    penalties do not blow up what is wrong with y, as they do with derivatives at the new point. D(y) is as close to its
    minimum as P is, once no y_i has to be moved into its domain. Where some have to be, A'y is no longer what it should
    be, and solutions with the same Hessian mend that (`_mended`), each for two products instead of a Gram matrix.

    Yields the best candidate at the start and after every step, until every gap is <= tol * scale.
    """
    here, best = _begun(model, start, w, t)
    yield best
    norms2 = model.problem.rows("rows").norms2()
    outputs = [_Output(model, k, tol, norms2, rough=start is None and w is not None) for k in range(model.outputs)]
    rounding = _Rounding(model, here, norms2)
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
        if any(outputs[k].asks(step) for k, step in steps.items()):
            y, dual = lower_of(y, dual, *_mended(model, y, steps, value, tol))
        best = Candidate(w, c, y, value, np.maximum(value + dual, 0)).better(best)
        if not np.all(best.gap <= tol * model.scale):
            here = _here(model, w, c, t, value)
            found = here.candidate(model, at_any_cost=any(step.shortened for step in steps.values()))
            best = found.better(best)
            y, dual = lower_of(y, dual, found.y, found.gap - value)
        rounding.add(w, c, *(step.taken for step in steps.values()))
        del steps  # and with them the Hessians that were kept
        if np.all(best.gap <= tol * model.scale) and rounding.matters(here, tol):
            exact = model.recertified(best)
            if not np.all(exact.gap <= tol * model.scale):
                here = _here(model, best.w, best.c, model.scores(best.w, best.c), exact.value)
                exact = here.candidate(model).better(exact).better(model.nothing)
            best = exact
        yield best


def _mended(
    model: LinearModel, y: FloatArray, steps: dict[int, _Taken], value: FloatArray, tol: float
) -> tuple[FloatArray, FloatArray]:
    """Dual variables that steps lead to (those of other outputs are y), and D of them.

    They are moved into their domain, and those of steps that have kept their Hessian are mended, as long as once more,
    with a gap that falls by as much as the last time, would lead to a gap <= tol * scale; at first if twice would, with
    one that falls as the share of those that were moved lets expect.
    """
    other, goal = y.copy(), tol * model.scale
    for k, step in steps.items():
        other[:, k : k + 1] = step.y
    low, high = model.domain
    outside = np.mean((other < low) | (other > high), axis=0)
    y, dual, v = model.dual_at(other)
    fall = np.maximum((MOVED * outside) ** 2, 1 / MENDABLE)
    for _ in range(MENDS):
        gap = value + dual
        going = [k for k, step in steps.items() if step.quadratic is not None and gap[k] > goal[k] >= fall[k] * gap[k]]
        if not going:
            break
        other = y.copy()
        for k in going:
            other[:, k] = steps[k].mended(model, y[:, k], v[:, k])
        other, there, moments = model.dual_at(other)
        fall = (value + there) / np.where(gap > 0, gap, 1.0)
        v = np.where(there < dual, moments, v)
        y, dual = lower_of(y, dual, other, there)
    return y, dual


class _Rounding:
    """How far scores that are updated, not computed from w, may be from Aw + c by rounding."""

    def __init__(self, model: LinearModel, here: _Here, norms2: FloatArray) -> None:
        self.model = model
        self.reach = math.sqrt(float(norms2.max()))  # the longest sample
        self.error = 0.0
        self.add(here.w, here.c)

    def add(self, w: FloatArray, c: FloatArray, *steps: _Step) -> None:
        """Weights and intercepts have become w and c, by steps."""
        sizes = [self.reach * np.linalg.norm(w) + np.abs(c).max()]
        sizes += [self.reach * np.linalg.norm(step.u) + abs(step.e) for step in steps]
        self.error += float(np.finfo(float).eps * sum(sizes))

    def matters(self, here: _Here, tol: float) -> bool:
        """Whether that may change P by more than a millionth of tol * scale; `here` is near enough for slopes."""
        slopes = np.abs(here.y).sum(axis=0) / self.model.total
        return bool(np.any(self.error * slopes > NOTHING * tol * self.model.scale))


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


def _begun(
    model: LinearModel, start: Candidate | None, w: FloatArray | None, t: FloatArray | None
) -> tuple[_Here, Candidate]:
    """Where it begins, and the best candidate there."""
    none, zeros = np.zeros((model.d, model.outputs)), np.zeros((model.n, model.outputs))
    w, c = (none if w is None else w, None) if start is None else (start.w, start.c)
    t = model.scores(w, np.zeros(model.outputs)) if t is None else t
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
    quadratic: _Quadratic | None  # kept if y may be worth mending
    aim: FloatArray  # what -(1/W) A'y is by the equations of the full step, l2 (w - u)
    y: FloatArray
    gain: float
    aimed: bool  # whether its curvatures were not those of the losses alone
    shortened: bool  # then y says little about the point that was reached

    def mended(self, model: LinearModel, y: FloatArray, v: FloatArray) -> FloatArray:
        """Dual variables that were moved into their domain, where -(1/W) A'y = v, led back to the step's equations.

        Up to l2 u: the change that is smallest in the metric of 1/h beside what is left of that, as D weighs the two.
        """
        assert self.quadratic is not None
        wrong = self.aim - v
        u = self.quadratic.solve(np.append(wrong, 0.0) if model.intercept else wrong)
        move = model.problem.product(u[: model.d, None])[:, 0] + (u[model.d] if model.intercept else 0.0)
        return y - self.quadratic.curvature * move


class _Quadratic(NamedTuple):
    """A model of P around a point: curvatures of the losses, and solutions with the Hessian they lead to."""

    curvature: FloatArray
    solve: Callable[[FloatArray], FloatArray]


class _Output:
    """Steps of one output."""

    def __init__(self, model: LinearModel, k: int, tol: float, norms2: FloatArray, *, rough: bool) -> None:
        self.model, self.k, self.tol, self.terms = model, k, tol, model.terms(k)
        room = model.outputs * model.d**2 <= ROOM
        mends = model.loss.shape.logistic and room
        self.gram = Changing(model.weighted) if room and not mends else model.weighted
        self.most = Most(model.weighted, model.penalty.l2 * model.total) if model.loss.shape.logistic else None
        self.near = MOST * tol * model.scale[k] if mends else -math.inf  # what a step may gain for y to be mended
        self.ends, self.norms2 = model.loss.domain(model.b[:, k : k + 1], model.s), norms2
        self.rough = rough  # whether it began far from the solution, but not at 0, where no sample is on a side
        self.aims = rough and bool(model.loss.shape.logistic)  # the next step, by curvatures that lead samples across

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

        def towards(quadratic: _Quadratic) -> tuple[_Step, float]:
            """The step to the minimum of a model, and how steeply P falls at its begin."""
            u = quadratic.solve(gradient)
            e = float(u[model.d]) if model.intercept else 0.0
            move = model.problem.product(u[: model.d, None])
            move += e
            return _Step(u[: model.d], e, move), float(gradient @ u)

        def searched(full: _Step, slope: float) -> tuple[float, float]:
            """(length, value there)."""

            def fall(length: float) -> float:
                losses = self.terms.slope(t, full.move, -length) / model.total
                return losses + l2 * float((w - length * full.u) @ full.u)

            def descends(length: float) -> bool:
                return there <= here - LITTLE * length * slope + 1e-15 * abs(here)

            length = flattest(fall, slope, steep=STEEP) if model.loss.shape.logistic else 1.0
            there = value(full.times(length))
            if not descends(length) and not model.loss.shape.logistic:
                length = flattest(fall, slope)
                there = value(full.times(length))
            return (length, there) if descends(length) else halved(lambda x: value(full.times(x)), here, -slope)

        def taken(quadratic: _Quadratic, full: _Step, slope: float, length: float, there: float) -> _Taken:
            far = self.rough and here - there >= FAR * model.scale[self.k]
            self.aims = model.loss.shape.logistic and (far or length < 1)
            dual = y - quadratic.curvature[:, None] * full.move
            kept = quadratic if slope / 2 <= self.near else None
            aim = l2 * (w - full.u)
            return _Taken(full.times(length), there, kept, aim, dual, slope / 2, other_curvatures, length <= HALF)

        other_curvatures = self.aims
        curvature = self.terms.second_derivative(t)[:, 0]
        curvature = np.maximum(curvature, aimed(t[:, 0], y[:, 0])) if self.aims else curvature
        quadratic = self._model(curvature)
        full, slope = towards(quadratic)
        if self.most is not None and self.most.missed(
            curvature, quadratic.curvature, full.move[:, 0], slope * model.total
        ):
            quadratic = self._whole(curvature)
            full, slope = towards(quadratic)
        length, there = searched(full, slope)
        if length < SHORT:
            s: Any = 1.0 if model.weights is None else model.weights
            safe = self._whole(majorant(model, t[:, 0], y[:, 0], model.b[:, self.k], s))
            other, steep = towards(safe)
            part, lower = searched(other, steep)
            if lower < there or not np.isfinite(there):
                quadratic, full, slope, length, there = safe, other, steep, part, lower
                other_curvatures = True
        return taken(quadratic, full, slope, length, there)

    def asks(self, step: _Taken) -> bool:
        """Whether D at a step's dual variables may be small enough for a gap <= tol * scale.

        P - min P was about `gain` before the step, which squares it at best, and does not if it was aimed. With an
        intercept nothing else leads to gaps, and they are asked further from the solution.
        """
        tol, scale = self.tol, self.model.scale[self.k]
        if step.aimed and step.gain > MOST * tol * scale:
            return False
        most = max(math.sqrt(tol), NEAR) if self.model.intercept else min(FALL * tol, math.sqrt(tol))
        if step.gain > most * scale:
            return False
        return self.spoilt(step.y) <= (1.0 if step.quadratic is None else MENDABLE) * tol * scale

    def spoilt(self, y: FloatArray) -> float:
        """What moving y into its domain is expected to add to D: |A'e|^2/(2 l2 W^2), e being the changes of y, as if
        samples had nothing in common, sum_i e_i^2 |a_i|^2 in place of |A'e|^2. It is often much more, hardly ever less.

        Without an intercept, losses other than the logistic one have derivatives that are as good as such y: infinite.
        """
        moved = (np.clip(y, *self.ends) - y)[:, 0]
        if not self.model.loss.shape.logistic and not self.model.intercept and moved.any():
            return math.inf
        return float((moved / self.model.total) ** 2 @ self.norms2) / (2 * self.model.penalty.l2)

    def _model(self, curvature: FloatArray) -> _Quadratic:
        """Of the samples that matter, or of all."""
        if self.most is None:
            return self._whole(curvature)
        gram, curvature = self.most(curvature)
        return _Quadratic(curvature, factored(self.model.hessian_of(gram)))

    def _whole(self, curvature: FloatArray) -> _Quadratic:
        return _Quadratic(curvature, factored(self.model.hessian(curvature, self.gram)))


def aimed(t: FloatArray, y: FloatArray) -> FloatArray:
    """Curvatures that would lead samples on the wrong side of a logistic loss, each by itself, to a score of RIGHT on
    the other, |phi'|/(|t| + RIGHT); 0 for those on the right side.

    Far on the wrong side the loss is a straight line, and its own curvature next to none: a feature that only such
    samples have would get a step of any length.
    """
    return np.where(y * t > 0, np.abs(y) / (np.abs(t) + RIGHT), 0.0)


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
    """Solutions of hessian x = gradient."""
    return factored_with_rest(hessian)[0]


def factored_with_rest(hessian: FloatArray) -> tuple[Callable[[FloatArray], FloatArray], FloatArray]:
    """Solutions of hessian x = gradient, and the directions (columns) that these leave out, where the Hessian is
    singular up to rounding. Rows and columns are scaled to a unit diagonal, since features may be of any size.
    """
    diagonal = np.diagonal(hessian)
    unit = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))

    def scaled() -> FloatArray:
        product = hessian * unit
        product *= unit[:, None]
        return product.T  # the same, and in the order of LAPACK, which then needs no copy

    factor, wrong = scipy.linalg.lapack.dpotrf(scaled(), lower=0, clean=0, overwrite_a=1)
    if wrong == 0 and (_firm(factor) or _conditioned(factor, scaled())):
        solve = partial(_solved, factor, unit)
        return solve, np.empty((len(unit), 0))
    values, vectors = scipy.linalg.eigh(scaled(), check_finite=False)  # the smallest solution
    kept = values > len(values) * np.finfo(float).eps * values[-1]
    rest = unit[:, None] * vectors[:, ~kept]
    values, vectors = values[kept], vectors[:, kept]
    return lambda g: np.asarray(unit * (vectors @ ((vectors.T @ (unit * g)) / values)), np.float64), rest


def _solved(factor: FloatArray, unit: FloatArray, g: FloatArray) -> FloatArray:
    return np.asarray(unit * scipy.linalg.lapack.dpotrs(factor, unit * g)[0], np.float64)


def _firm(factor: FloatArray) -> bool:
    """Whether no pivot of a matrix with a unit diagonal is small: its condition number is hardly ever large then."""
    return bool(np.diagonal(factor).min() ** 2 > FIRM)


def _conditioned(factor: FloatArray, matrix: FloatArray) -> bool:
    """Whether a matrix is not singular up to rounding."""
    condition, wrong = scipy.linalg.lapack.dpocon(factor, scipy.linalg.lapack.dlange("1", matrix))
    return bool(wrong == 0 and condition > np.finfo(float).eps)
