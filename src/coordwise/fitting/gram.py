"""The squared loss by one Gram matrix: Cholesky for l2 penalties, exact solutions on active sets for others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from coordwise.blas import one_blas_thread
from coordwise.fitting.active_set import ActiveSet
from coordwise.fitting.model import Candidate, LinearModel
from coordwise.fitting.moments import Moments
from coordwise.fitting.singular import Singular, decomposes
from coordwise.fitting.weighted import Gram
from coordwise.validation import FloatArray

__all__ = ["active_weights", "centered_moments", "gram_solution", "shifted"]

LOST = 100.0  # times its rounding, a penalty decides w to two digits or fewer where the data do not
BLOCK = 4096  # columns of dense data that are copied at once


def gram_solution(
    model: LinearModel,
    tol: float,
    start: Candidate | None = None,
    *,
    most: float = np.inf,
    late: Callable[[], bool] | None = None,
) -> tuple[Candidate, int]:
    """The solution as well as a Gram matrix allows, and the steps of refinement or rounds of active sets it took.

    Rounds end after `most` of them, or when `late` returns True.
    """
    plain = model.penalty.l1 == 0 and not model.penalty.positive
    if plain and model.n < model.d:
        return _over_samples(model), 1
    if plain:
        return _over_features(model, tol, most)
    if start is not None:  # it may be the solution, found by other means
        again = model.from_primal(start.w)
        if np.all(again.gap <= tol * model.scale):
            return again, 1
    w, rounds = active_weights(model, None if start is None else start.w, most, late)
    _, _, shift, means = centered_moments(model)
    return model.from_primal(w, means - shift @ w if model.intercept else None), rounds


def _over_features(model: LinearModel, tol: float, most: float) -> tuple[Candidate, int]:
    s = np.ones(model.n) if model.weights is None else model.weights
    G, moments, shift, means = centered_moments(model)
    l2, steps = model.penalty.l2, 1
    factor = _factor(G, l2)
    if _lost(G, l2, np.diag(factor[0])) and decomposes(model):
        return model.from_primal(Singular(model).ridge(model.b, l2 * model.total)), 1
    w = scipy.linalg.cho_solve(factor, moments, check_finite=False)
    best = model.from_primal(w, means - shift @ w if model.intercept else None)
    for _ in range(3):  # refinement on the data: a Gram matrix squares the condition number
        if np.all(best.gap <= tol * model.scale) or steps + 1 > most:
            break
        t = model.scores(best.w, best.c)
        y = s[:, None] * (t - model.b)
        gradient = model.problem.moments(y) + l2 * best.w
        w = best.w - scipy.linalg.cho_solve(factor, gradient, check_finite=False)
        best = model.from_primal(w).better(best)
        steps += 1
    return best, steps


def _lost(G: FloatArray, l2: float, pivots: FloatArray) -> bool:
    """Whether the Gram matrix is singular up to rounding that is not small beside the penalty.

    A direction that the data do not have is decided by the penalty alone. The duality gap hardly sees it; w does.
    `pivots` are those of a Cholesky factor.
    """
    rounding = LOST * len(G) * float(np.finfo(float).eps * np.max(np.diag(G), initial=0.0))
    smallest = float(np.min(pivots, initial=np.inf)) ** 2 / len(G)  # about the smallest eigenvalue, or less
    return l2 <= rounding and smallest <= rounding + _added(G, l2)


def active_weights(
    model: LinearModel, start: FloatArray | None, most: float = np.inf, late: Callable[[], bool] | None = None
) -> tuple[FloatArray, int]:
    """Weights (d x K) by exact solutions on active sets, from those of `start`, and the rounds that it took."""
    G, moments, _, _ = centered_moments(model)
    w = np.zeros((model.d, model.outputs))
    rounds = 0
    for k in range(model.outputs):
        search = ActiveSet(G, moments[:, k])
        if start is not None:
            search.begin(start[:, k])
        with one_blas_thread(model.d):
            search.solve(model.penalty, most=most, late=late)
        w[:, k] = search.w
        rounds = max(rounds, search.rounds)
    return w, max(rounds, 1)


def centered_moments(model: LinearModel) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Gram matrix and moments A'Sb/W, both centered if there is an intercept, and the means of columns and targets."""
    if "moments" not in model.shared:
        found = Moments.of(
            model.A,
            model.b,
            model.weights,
            sums=model.intercept,
            threads=model.problem.threads,
            rows=model.problem.rows,
        )
        found.share(model)
    return model.shared["moments"]


def _over_samples(model: LinearModel) -> Candidate:
    """Ridge regression with n < d: (AA' + lam W S^-1) z = b, by way of the centered rows for an intercept."""
    s = np.ones(model.n) if model.weights is None else model.weights
    root = np.sqrt(s)[:, None]
    if "kernel" not in model.shared:
        model.shared["kernel"] = _products(model)
    K, b = model.shared["kernel"], model.b
    if model.intercept:
        p = s / model.total
        b = b - p @ b
        if sp.issparse(model.A):
            mean = K @ p
            K = K - mean[:, None] - mean[None, :] + p @ mean
    l2 = model.penalty.l2 * model.total
    factor = _factor(K if model.weights is None else root * K * root.T, l2)
    y = -l2 * root * scipy.linalg.cho_solve(factor, root * b, check_finite=False)
    return model.from_dual(y)


def _products(model: LinearModel) -> FloatArray:
    """AA'; rows of dense data are centred before, with an intercept, since far from 0 nothing would be left after."""
    if sp.issparse(model.A):
        return Gram(model.A.T, False, model.problem.threads)(np.ones(model.d))
    if not model.intercept and model.A.dtype == np.float64:
        return np.asarray(model.A @ model.A.T)
    K = np.zeros((model.n, model.n))
    for first in range(0, model.d, BLOCK):  # copies of some columns, not of all
        part = np.asarray(model.A[:, first : first + BLOCK], np.float64)
        if model.intercept:
            part = part - (part.mean(0) if model.weights is None else model.weights @ part / model.total)
        K += part @ part.T
    return K


def shifted(G: FloatArray, ridge: float) -> FloatArray:
    """G with `ridge` added to its diagonal."""
    H = G.copy()
    H[np.diag_indices_from(H)] += ridge
    return H


def _factor(G: FloatArray, ridge: float) -> Any:
    def factor(ridge: float) -> Any:  # the transpose is the same, and in the order of LAPACK: no other copy
        return scipy.linalg.cho_factor(shifted(G, ridge).T, overwrite_a=True, check_finite=False)

    try:
        return factor(ridge)
    except np.linalg.LinAlgError:
        return factor(ridge + _added(G, ridge))


def _added(G: FloatArray, ridge: float) -> float:
    """What a matrix that is singular up to rounding needs for a factor."""
    return 1e-12 * (float(np.trace(G)) / len(G) + ridge)
