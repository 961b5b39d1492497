"""Linear models without a penalty: Newton's method, whose steps lead to dual points too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from coordwise.blas import one_blas_thread
from coordwise.fitting.active_set import ActiveSet
from coordwise.fitting.gram import centered_moments
from coordwise.fitting.model import Candidate, LinearModel
from coordwise.fitting.newton import FEW, direction
from coordwise.fitting.singular import Singular, decomposes
from coordwise.linalg.conjugate import cg
from coordwise.lines import halved
from coordwise.penalties import ElasticNet
from coordwise.validation import FloatArray

__all__ = ["ROUNDING", "NoPenalty", "conjugate_gradients", "nonnegative", "penalty_of", "unpenalised"]

ROUNDING = 1e-11  # |<a_j, y>| relative to |a_j| |y| that counts as 0


class NoPenalty(ElasticNet):
    """r(w) = 0, over w >= 0 if `positive`; r*(v) = 0 where v = 0 (v <= 0 if positive), and inf elsewhere."""

    def __init__(self, positive: bool = False) -> None:
        for name, value in (("l1", 0.0), ("l2", 0.0), ("positive", bool(positive))):
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"NoPenalty({'positive=True' * self.positive})"

    def conjugate(self, v: FloatArray) -> FloatArray:
        """See the class."""
        return np.where((v > 0 if self.positive else v != 0).any(0), np.inf, 0.0)


def penalty_of(l1: float, l2: float, positive: bool = False) -> ElasticNet:
    """l1 |w|_1 + (l2/2) |w|^2, where both weights may be 0."""
    return ElasticNet(l1, l2, positive) if l1 > 0 or l2 > 0 else NoPenalty(positive)


def unpenalised(
    model: LinearModel,
    tol: float,
    *,
    most: float,
    start: Candidate | None = None,
) -> Iterator[Candidate]:
    r"""minimise over w, c   (1/W) sum_i s_i phi(<a_i, w> + c; b_i)   for smooth losses, by Newton's method.

    A dual point is a y in the domain of the conjugates with A'y = 0 (and sum_i y_i = 0 for the intercept). With the
    Newton step (u, e) at (w, c) one is y_i - h_i (<a_i, u> + e), y_i = s_i phi', h_i = s_i phi'': its moments are 0 by
    the equations of the step. Where the step changes some y_i by more than half of its distance to the end of the
    domain, the gap is infinite: far from a minimum, or where there is none, as for logistic losses of classes that a
    hyperplane separates. What rounding leaves of A'y is added to the gap, times |w|.

    The squared loss has a minimum for any data; where it has many, that of smallest |w| is found. Yields the best
    candidate before every step, until every gap is <= tol * scale, after `most` steps (or products with the data, where
    there are many features), or when nothing is left of the losses.
    """
    w = np.zeros((model.d, model.outputs)) if start is None else start.w.copy()
    c = np.zeros(model.outputs) if start is None else start.c.copy()
    solver = Singular(model) if decomposes(model) else _Steps(model)
    best: Candidate | None = None
    steps = 0
    while True:
        found = [_certified(model, w[:, k], c[k], int(k), solver, most - steps) for k in range(model.outputs)]
        steps += max(taken for *_, taken in found)
        y = np.stack([one[0] for one in found], axis=-1)
        value, gap = (np.array([one[i] for one in found]) for i in (1, 2))
        best = Candidate(w.copy(), c.copy(), y, value, gap).better(best)
        todo = np.flatnonzero((best.gap > tol * model.scale) & (value > np.finfo(float).eps * model.scale))
        yield best
        if not len(todo) or steps >= most:
            return
        for k in todo:
            _, _, _, u, e, _ = found[k]
            w[:, k], c[k] = _descended(model, w[:, k], c[k], u, e, int(k))


class _Steps:
    """Newton steps from weighted Gram matrices, or by conjugate gradients if the features are many."""

    def __init__(self, model: LinearModel) -> None:
        self.model = model
        self.gram = model.weighted if model.d <= FEW else None

    def step(self, y: FloatArray, h: FloatArray, most: float) -> tuple[FloatArray, float, int]:
        """As `Singular.step`."""
        model, d = self.model, self.model.d
        gradient = model.problem.moments(y[:, None])[:, 0]
        slope, mass = float(y.sum()) / model.total, float(h.sum()) / model.total
        if self.gram is not None:
            right = np.append(gradient, slope) if model.intercept else gradient
            found = direction(self.gram(h) / model.total, right)
            return found[:d], float(found[d]) if model.intercept else 0.0, 1
        centred = model.intercept and mass > 0
        means = model.problem.moments(h[:, None])[:, 0] / mass if centred else np.zeros(d)

        def product(u: FloatArray) -> FloatArray:
            t = model.problem.product(u[:, None])[:, 0] - means @ u
            return model.problem.moments((h * t)[:, None])[:, 0] - (h @ t) / model.total * means

        u, taken = conjugate_gradients(product, gradient - slope * means, most)
        return u, slope / mass - float(means @ u) if centred else 0.0, taken


def conjugate_gradients(product: Any, right: FloatArray, most: float) -> tuple[FloatArray, int]:
    """x with product(x) = right, up to 1e-12 of its size, and the products it took; from 0, so that |x| is smallest."""
    iterates = cg(lambda p: product(p[:, 0])[:, None], right[:, None], np.zeros((len(right), 1)), None)
    now, taken = next(iterates), 0
    goal = 1e-24 * float(right @ right)
    while now.moving and np.sum(now.residual**2) > goal and taken < most:
        now, taken = next(iterates), taken + 1
    return now.x[:, 0], max(taken, 1)


def _certified(
    model: LinearModel, w: FloatArray, c: float, k: int, solver: Any, most: float
) -> tuple[FloatArray, float, float, FloatArray, float, int]:
    """(y, value, gap) of output k at w, c; the Newton step (u, e) there; and what that took."""
    b, total = model.b[:, k], model.total
    s = np.ones(model.n) if model.weights is None else model.weights
    t = model.problem.product(w[:, None])[:, 0] + c
    y, h = model.loss.derivative(t, b, s), np.asarray(model.loss.second_derivative(t, b, s))
    value = float(model.loss.value(t, b, s).sum() / total)
    u, e, taken = solver.step(y, h, max(most, 1))
    change = h * (model.problem.product(u[:, None])[:, 0] + e)
    low, high = model.loss.domain(b, s)
    zero, gap = np.zeros(model.n), np.inf
    if np.all((low < 0) & (high > 0) | (s == 0)):  # then 0 is the loss at some score, and y = 0 a dual point
        gap = value
    if np.all(np.abs(change) <= np.minimum(y - low, high - y) / 2):
        moved = y - change
        v = model.problem.moments(moved[:, None])[:, 0]
        norms = model.columns.norms(None, False)
        size = float(np.linalg.norm(moved))
        if np.all(np.abs(v) * total <= ROUNDING * norms * size) and (
            not model.intercept or abs(moved.sum()) <= ROUNDING * np.sqrt(model.n) * size
        ):
            if model.loss.name == "squared":  # what is left of P + D, free of cancellation
                both = float(np.sum(np.divide(change**2, s, out=zero.copy(), where=s > 0))) / (2 * total)
            else:
                both = max(float(value + model.loss.conjugate(moved, b, s).sum() / total), 0.0)
            both += float(np.abs(v) @ np.abs(w))
            if both <= gap:
                return moved, value, both, u, e, taken
    return zero, value, gap, u, e, taken


def _descended(
    model: LinearModel, w: FloatArray, c: float, u: FloatArray, e: float, k: int
) -> tuple[FloatArray, float]:
    """w, c after the step, halved until it descends."""
    b, s = model.b[:, k], 1.0 if model.weights is None else model.weights
    t = model.problem.product(w[:, None])[:, 0] + c
    move = model.problem.product(u[:, None])[:, 0] + e
    slope = float(model.loss.derivative(t, b, s) @ move) / model.total

    def value(length: float) -> float:
        return float(model.loss.value(t - length * move, b, s).sum() / model.total)

    length, _ = halved(value, value(0.0), -slope)
    return w - length * u, c - length * e


def nonnegative(model: LinearModel, *, most: float, late: Callable[[], bool] | None = None) -> tuple[Candidate, int]:
    """Least squares over w >= 0, on active sets, and the rounds these took.

    The dual point is the residual made orthogonal to the features in use; moments of the others may not exceed 0.
    """
    G, m, shift, means = centered_moments(model)
    w = np.zeros((model.d, model.outputs))
    rounds = 1
    for k in range(model.outputs):
        search = ActiveSet(G, m[:, k])
        with one_blas_thread(model.d):
            search.solve(model.penalty, most=most, late=late)
        w[:, k], rounds = search.w, max(rounds, search.rounds)
    c = means - shift @ w if model.intercept else np.zeros(model.outputs)
    norms = model.columns.norms(None, False)
    y, value, gap = np.zeros((model.n, model.outputs)), np.zeros(model.outputs), np.zeros(model.outputs)
    for k in range(model.outputs):
        used = np.flatnonzero(w[:, k])
        part = model.restricted(used, k) if len(used) else None
        t = model.problem.product(w[:, [k]])[:, 0] + c[k]
        s = np.ones(model.n) if model.weights is None else model.weights
        value[k] = gap[k] = model.loss.value(t, model.b[:, k], s).sum() / model.total
        dual = s * (t - model.b[:, k])
        if part is not None:
            steps = Singular(part)
            dual, _, _, u, e, _ = _certified(part, w[used, k], float(c[k]), 0, steps, most)
            if np.all(w[used, k] - u > 0):  # a step of refinement
                w[used, k] -= u
                c[k] -= e
                t = model.problem.product(w[:, [k]])[:, 0] + c[k]
                value[k] = gap[k] = model.loss.value(t, model.b[:, k], s).sum() / model.total
                dual, *_ = _certified(part, w[used, k], float(c[k]), 0, steps, most)
        elif model.intercept:
            dual = dual - s * (dual.sum() / model.total)
        v = -model.problem.moments(dual[:, None])[:, 0]
        if np.all(v * model.total <= ROUNDING * norms * np.linalg.norm(dual)):
            both = value[k] + model.loss.conjugate(dual, model.b[:, k], s).sum() / model.total
            both = max(float(both), 0.0) + float(np.maximum(v, 0) @ w[:, k])
            if both <= gap[k]:
                y[:, k], gap[k] = dual, both
    return Candidate(w, c, y, value, gap), rounds
