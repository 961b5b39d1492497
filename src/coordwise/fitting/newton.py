"""Newton's method in the feature space, for data with few features: one weighted Gram matrix per step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from coordwise.fitting.model import Candidate, LinearModel
from coordwise.fitting.search import halved
from coordwise.rows import Rows
from coordwise.validation import FloatArray

__all__ = ["FEW", "Gram", "direction", "majorant", "newton"]

FEW = 1000  # features (or samples) for which a dense Gram matrix is cheap
DENSE = 0.3  # share of entries above which a sparse matrix is cheaper as a dense one
SHORT = 1 / 8  # a step that had to be halved more often came from curvatures that say little about the loss
BLOCK = 4096  # rows of a dense matrix
TRIALS = 3  # of damping, each ten times stronger than the last
FIRST, LEAST = 1e-4, 5e-6  # damping, in parts of the mean curvature: the first and the smallest
ENOUGH = 0.1  # of the decrease that the quadratic model promises


class Gram:
    """Weighted Gram matrices A'DA, with a column of ones appended for the intercept.

    Sparse rows go through the compiled kernel, dense ones through BLAS; both release the GIL.
    """

    def __init__(
        self, A: Any, intercept: bool, threads: int = 1, rows: Callable[[Literal["rows"]], Rows] | None = None
    ) -> None:
        n, d = A.shape
        self.intercept, self.threads = intercept, threads
        sparse = sp.issparse(A)
        if sparse and A.nnz > DENSE * n * d and n * d <= 2**27:  # BLAS is faster, and the copy small
            A, sparse = A.toarray(), False
        self.rows = (Rows(A, "rows") if rows is None else rows("rows")) if sparse else None
        self.A: Any = None if sparse else np.ascontiguousarray(A, dtype=np.float64)

    def __call__(self, weights: FloatArray) -> FloatArray:
        """[A 1]' diag(weights) [A 1], or A' diag(weights) A."""
        if self.rows is not None:
            gram = self.rows.gram(np.ascontiguousarray(weights), self.threads)
            sums = self.rows.combine(np.ascontiguousarray(weights[:, None]))[:, 0] if self.intercept else None
        else:
            gram, sums = self._dense(weights)
        if sums is None or not self.intercept:
            return gram
        return np.block([[gram, sums[:, None]], [sums[None, :], np.array([[weights.sum()]])]])

    def _dense(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """By blocks of rows that fit into a cache, unless all weigh the same."""
        if weights[0] > 0 and np.all(weights == weights[0]):
            return weights[0] * (self.A.T @ self.A), weights[0] * self.A.sum(0) if self.intercept else np.zeros(0)
        gram = np.zeros((self.A.shape[1],) * 2)
        sums = np.zeros(self.A.shape[1])
        used = np.flatnonzero(weights)
        positive = bool(np.all(weights >= 0))
        for first in range(0, len(used), BLOCK):
            which = used[first : first + BLOCK]
            whole = which[-1] - which[0] == len(which) - 1
            part = self.A[which[0] : which[-1] + 1] if whole else self.A[which]
            s = weights[which]
            if positive:  # half the work
                root = np.sqrt(s)[:, None] * part
                gram += root.T @ root
            else:
                gram += part.T @ (s[:, None] * part)
            if self.intercept:
                sums += s @ part
        return gram, sums


def newton(
    model: LinearModel,
    tol: float,
    *,
    start: Candidate | None = None,
    threads: int = 1,
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
    if "weighted" not in model.shared:  # its copies of the data serve all penalties of a path
        model.shared["weighted"] = Gram(model.A, model.intercept, threads, rows=model.problem.rows)
    outputs = [_Output(model, k) for k in range(model.outputs)]
    t = model.scores(last.w, last.c)
    while (active := best.gap > tol * model.scale).any():
        w, c, t, value = last.w.copy(), last.c.copy(), t.copy(), last.value.copy()
        for k in np.flatnonzero(active):
            step, shift, move, value[k] = outputs[k].step(w[:, k], t[:, k : k + 1], v[:, k], float(value[k]))
            w[:, k] -= step
            c[k] -= shift
            t[:, k : k + 1] -= move
        last, v = model.certified_at(w, c, t, value)
        if np.all(last.better(best).gap <= tol * model.scale):  # scores that were updated carry rounding
            t = model.scores(w, c)
            last, v = model.certified_at(w, c, t)
        best = last.better(best)
        yield best


class _Output:
    """Steps of one output, and the damping that the last one needed."""

    def __init__(self, model: LinearModel, k: int) -> None:
        self.model, self.k, self.terms = model, k, model.terms(k)
        self.gram: Gram = model.shared["weighted"]
        self.damping = 0.0
        norms = model.problem.rows("rows").norms2() if self.gram.rows is not None else np.square(self.gram.A).sum(1)
        self.unit = float(model.loss.smoothness * norms.mean() / model.d)  # of damping: the mean curvature at most

    def step(
        self, w: FloatArray, t: FloatArray, v: FloatArray, here: float
    ) -> tuple[FloatArray, float, FloatArray, float]:
        """(u, e, Au + e) to subtract from w, c and t, and the value then.

        v are the moments of -phi'(t), and `here` is the value at w, c.
        """
        model = self.model
        if model.intercept:
            y = self.terms.derivative(t)
            gradient = model.problem.moments(y)[:, 0] + model.penalty.l2 * w
            gradient = np.append(gradient, y.sum() / model.total)
        else:  # these are the subgradients that v was computed of
            gradient = model.penalty.l2 * w - v

        def value(length: float) -> float:
            point = w - length * step
            losses = self.terms.value(t - length * move)[0] / model.total
            return float(losses + model.penalty.l2 / 2 * (point @ point))

        hessian = self._hessian(self.terms.second_derivative(t)[:, 0])
        damped = TRIALS if model.loss.shape.logistic else 1
        for trial in range(damped):
            step, shift, move = self._solve(hessian, gradient, self.damping)
            full = np.append(step, shift) if model.intercept else step
            slope = float(gradient @ full)
            if (there := value(1.0)) <= here - ENOUGH * (slope - full @ (hessian @ full) / 2) + 1e-15 * abs(here):
                if trial == 0:
                    self.damping = self.damping / 10 if self.damping > LEAST * self.unit else 0.0
                return step, shift, move, there
            if trial < damped - 1:
                self.damping = max(10 * self.damping, FIRST * self.unit)
        length, there = halved(value, here, -slope)
        if length >= SHORT:
            return length * step, length * shift, length * move, there
        shorter = length * step, length * shift, length * move, there
        s: Any = 1.0 if model.weights is None else model.weights
        above = majorant(model, t[:, 0], self.terms.derivative(t)[:, 0], model.b[:, self.k], s)
        step, shift, move = self._solve(self._hessian(above), gradient, 0.0)
        full = np.append(step, shift) if model.intercept else step
        length, other = halved(value, here, -float(gradient @ full))
        if other < there or not np.isfinite(there):
            return length * step, length * shift, length * move, other
        return shorter

    def _hessian(self, curvature: FloatArray) -> FloatArray:
        model = self.model
        hessian = self.gram(curvature)
        hessian /= model.total
        _diagonal(hessian)[: model.d] += model.penalty.l2
        if model.intercept:
            hessian[-1, -1] += 1e-14 * max(hessian[-1, -1], 1e-8)  # all curvatures may vanish
        return hessian

    def _solve(self, hessian: FloatArray, gradient: FloatArray, damping: float) -> tuple[FloatArray, float, FloatArray]:
        if damping > 0:
            hessian = hessian.copy()
            _diagonal(hessian)[: self.model.d] += damping
        step = direction(hessian, gradient)
        shift = float(step[-1]) if self.model.intercept else 0.0
        step = step[: self.model.d]
        move = self.model.problem.product(step[:, None])
        move += shift
        return step, shift, move


def _diagonal(square: FloatArray) -> FloatArray:
    """A view of the diagonal."""
    return square.reshape(-1)[:: len(square) + 1]


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
    """The Newton direction; rows and columns are scaled to a unit diagonal, since features may be of any size."""
    diagonal = np.diagonal(hessian)
    unit = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    scaled = hessian * unit
    scaled *= unit[:, None]
    size = scipy.linalg.lapack.dlange("1", scaled)
    factor, wrong = scipy.linalg.lapack.dpotrf(scaled, lower=0, clean=0)
    if wrong == 0:
        condition, wrong = scipy.linalg.lapack.dpocon(factor, size)
        if wrong == 0 and condition > np.finfo(float).eps:
            return np.asarray(unit * scipy.linalg.lapack.dpotrs(factor, unit * gradient)[0], np.float64)
    values, vectors = scipy.linalg.eigh(scaled, check_finite=False)  # the smallest solution
    kept = values > len(values) * np.finfo(float).eps * values[-1]
    return np.asarray(unit * (vectors[:, kept] @ ((vectors[:, kept].T @ (unit * gradient)) / values[kept])), np.float64)
