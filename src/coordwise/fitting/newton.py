"""Newton's method in the feature space, for data with few features: one weighted Gram matrix per step."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

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


class Gram:
    """Weighted Gram matrices A'DA, with a column of ones appended for the intercept.

    Sparse rows go through the compiled kernel, dense ones through BLAS; both release the GIL.
    """

    def __init__(self, A: Any, intercept: bool, threads: int = 1) -> None:
        n, d = A.shape
        self.intercept, self.threads = intercept, threads
        sparse = sp.issparse(A)
        if sparse and A.nnz > DENSE * n * d and n * d <= 2**27:  # BLAS is faster, and the copy small
            A, sparse = A.toarray(), False
        self.rows = Rows(A, "rows") if sparse else None
        self.A: Any = None if sparse else np.ascontiguousarray(A, dtype=np.float64)

    def __call__(self, weights: FloatArray) -> FloatArray:
        """[A 1]' diag(weights) [A 1], or A' diag(weights) A."""
        if self.rows is not None:
            gram = self.rows.gram(np.ascontiguousarray(weights), self.threads)
            sums = self.rows.combine(np.ascontiguousarray(weights[:, None]))[:, 0] if self.intercept else None
        else:
            if np.min(weights) < 0:
                gram = self.A.T @ (weights[:, None] * self.A)
            else:  # half the work
                root = np.sqrt(weights)[:, None] * self.A
                gram = root.T @ root
            sums = weights @ self.A
        if sums is None or not self.intercept:
            return gram
        return np.block([[gram, sums[:, None]], [sums[None, :], np.array([[weights.sum()]])]])


def newton(
    model: LinearModel,
    tol: float,
    *,
    start: Candidate | None = None,
    threads: int = 1,
) -> Iterator[Candidate]:
    """Newton's method with a line search, output by output, for smooth losses and an l2 penalty.

    Yields the best candidate at the start and after every step, until every gap is <= tol * scale.
    """
    w = np.zeros((model.d, model.outputs)) if start is None else start.w
    best = model.from_primal(w, None if start is None else start.c)
    yield best
    if "weighted" not in model.shared:  # its copies of the data serve all penalties of a path
        model.shared["weighted"] = Gram(model.A, model.intercept, threads)
    gram = model.shared["weighted"]
    last = best
    while (active := best.gap > tol * model.scale).any():
        w, c = last.w.copy(), last.c.copy()
        t = model.scores(w, c)
        for k in np.flatnonzero(active):
            w[:, k], c[k] = _step(model, gram, w[:, k], c[k], t[:, k], last.value[k], int(k))
        last = model.from_primal(w, c)
        best = last.better(best)
        yield best


def _step(
    model: LinearModel, gram: Gram, w: FloatArray, c: float, t: FloatArray, here: float, k: int
) -> tuple[FloatArray, float]:
    """One damped step for output k from w, c with scores t and value `here`."""
    b, lam, total = model.b[:, k], model.penalty.l2, model.total
    s: Any = 1.0 if model.weights is None else model.weights
    y = model.loss.derivative(t, b, s)
    gradient = model.problem.moments(y[:, None])[:, 0] + lam * w
    if model.intercept:
        gradient = np.append(gradient, y.sum() / total)

    def search(curvature: FloatArray) -> tuple[float, float, FloatArray, float]:
        """(value, length, w, c) after the step with these curvatures of the loss, halved until it descends."""
        hessian = gram(curvature) / total
        hessian[np.arange(model.d), np.arange(model.d)] += lam
        if model.intercept:
            hessian[-1, -1] += 1e-14 * max(hessian[-1, -1], 1e-8)  # all curvatures may vanish
        step = direction(hessian, gradient)
        shift = float(step[-1]) if model.intercept else 0.0
        step = step[: model.d]
        move = model.problem.product(step[:, None])[:, 0] + shift
        slope = float(gradient[: model.d] @ step) + (float(gradient[-1]) * shift if model.intercept else 0.0)

        def value(length: float) -> float:
            v = w - length * step
            return float(model.loss.value(t - length * move, b, s).sum() / total + lam / 2 * (v @ v))

        length, there = halved(value, here, -slope)
        return there, length, w - length * step, c - length * shift

    reached, length, new_w, new_c = search(np.asarray(model.loss.second_derivative(t, b, s)))
    if length < SHORT:
        other, _, other_w, other_c = search(majorant(model, t, y, b, s))
        if other < reached or not np.isfinite(reached):
            return other_w, other_c
    return new_w, new_c


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
    scaled = unit[:, None] * hessian * unit
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", scipy.linalg.LinAlgWarning)
            found = scipy.linalg.solve(scaled, unit * gradient, assume_a="pos", check_finite=False)
    except (np.linalg.LinAlgError, scipy.linalg.LinAlgWarning):
        found = np.linalg.lstsq(scaled, unit * gradient, rcond=None)[0]
    return np.asarray(unit * found, np.float64)
