"""Regularisation paths: one penalty after the other, each fit started from the last, or all by one Gram matrix."""

from __future__ import annotations

import numbers
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from coordwise.blas import one_blas_thread
from coordwise.deadlines import TimeUp, within
from coordwise.fitting.active_set import ActiveSet
from coordwise.fitting.fit import Fit, fit
from coordwise.fitting.gram import centered_moments, shifted
from coordwise.fitting.model import Candidate, LinearModel
from coordwise.fitting.newton import FEW
from coordwise.fitting.strategies import choose
from coordwise.interrupts import Interrupted
from coordwise.penalties import ElasticNet
from coordwise.results import Status
from coordwise.validation import FloatArray

__all__ = ["Point", "clock", "grid", "largest_l1", "path", "points", "points_of", "values_of"]


@dataclass(frozen=True, eq=False)
class Point:
    """One solution of a path (w is d x K, one column per output), with its duality gap and the passes it took."""

    w: FloatArray
    c: FloatArray
    gap: FloatArray
    passes: float
    converged: bool
    cut: bool = False  # whether the time limit or Ctrl-C ended its fit


def path(
    model: LinearModel, penalties: Sequence[ElasticNet], *, time_limit: float | None = None, **options: Any
) -> Iterator[Fit]:
    """Fits of the model with one penalty after the other; `options` are those of `fit`.

    The time limit is that of all fits.
    """
    left = clock(time_limit)
    start: Candidate | None = options.pop("start", None)
    for penalty in penalties:
        found = fit(model.penalised(penalty), start=start, alone=len(penalties) == 1, time_limit=left(), **options)
        start = found.candidate
        yield found


def clock(time_limit: float | None) -> Callable[[], float | None]:
    """What is left of a limit that begins now."""
    begun = time.perf_counter()
    return lambda: None if time_limit is None else max(time_limit - (time.perf_counter() - begun), 0.0)


def points(model: LinearModel, penalties: Sequence[ElasticNet], **options: Any) -> list[Point]:
    """The solutions for one penalty after the other, each with gap <= tol * P(0, 0) if it converged.

    For the squared loss with few features all of them come from one Gram matrix: eigenvalues for l2 penalties, exact
    solutions on active sets for others. Gaps are then those of the moments, with a bound on their rounding added; where
    that does not prove what was asked for, and for all other models, fits start from the last solution as in `path`.
    After Ctrl-C the result of `Interrupted` are those that are there. So are the results when the time limit, that of
    all together, came first: fewer than asked for, of which the last may be `cut`.
    """
    left = clock(options.get("time_limit"))
    found: list[Point] = []
    try:
        found = _by_gram(model, penalties, options, left()) if penalties else []
        if not found:
            return points_of(path(model, penalties, **options | {"time_limit": left()}), len(penalties))
        for k, (point, penalty) in enumerate(zip(found, penalties, strict=True)):
            if not point.converged and left() != 0:
                near = model.penalised(penalty)
                start = near.from_primal(point.w, point.c)
                found[k] = _point(fit(near, **options | {"start": start, "time_limit": left()}))
        return found
    except Interrupted as stop:
        raise (stop if isinstance(stop.result, list) else _after_ctrl_c(found, len(penalties))) from None
    except KeyboardInterrupt:
        raise _after_ctrl_c(found, len(penalties)) from None


def points_of(fits: Iterator[Fit], count: int) -> list[Point]:
    """Of `count` fits, all that come before the time limit or Ctrl-C ends one; the last may be that."""
    found: list[Point] = []
    try:
        for one in fits:
            found.append(_point(one))  # those so far stay, whatever comes
            if one.status is Status.TIME_LIMIT:
                break
        return found
    except KeyboardInterrupt as stop:
        if isinstance(stop, Interrupted):
            found.append(_point(stop.result))
        raise _after_ctrl_c(found, count) from None


def _after_ctrl_c(found: list[Point], count: int) -> Interrupted:
    return Interrupted(f"Ctrl-C ended the call; `result` of this exception are {len(found)} of {count} models.", found)


def _point(found: Fit) -> Point:
    cut = found.status in (Status.TIME_LIMIT, Status.INTERRUPTED)
    return Point(found.w, found.c, found.gap, found.passes, found.converged, cut)


def _by_gram(
    model: LinearModel, penalties: Sequence[ElasticNet], options: dict[str, Any], time_limit: float | None
) -> list[Point]:
    """All solutions from the moments, or [] where those do not apply or no time is left for them."""
    limit = None if time_limit is None else time.perf_counter() + time_limit
    try:
        return within(limit, lambda _: _from_moments(model, penalties, options))
    except TimeUp:
        return []


def _from_moments(model: LinearModel, penalties: Sequence[ElasticNet], options: dict[str, Any]) -> list[Point]:
    first = model.penalised(penalties[0])
    plain = all(penalty.l1 == 0 and not penalty.positive for penalty in penalties)
    asked = options.get("strategy", "auto")
    name = choose(first)[0] if asked == "auto" else asked
    if name != "gram" or model.loss.name != "squared" or model.d > FEW or (plain and model.n < model.d):
        return []
    if any(penalty.l1 == 0 and penalty.l2 == 0 for penalty in penalties):
        return []
    G, m, shift, means = centered_moments(model)
    if plain:
        solutions = _ridges(model, G, m, penalties)
    else:
        with one_blas_thread(model.d):
            columns = [ActiveSet(G, m[:, k]).path(penalties) for k in range(model.outputs)]
        if any(column is None for column in columns):
            return []
        solutions = list(np.moveaxis(np.array(columns), 2, 0).transpose(0, 2, 1))
    centers = [means - shift @ w if model.intercept else np.zeros(model.outputs) for w in solutions]
    gaps = _gaps(model, G, m, solutions, penalties)
    limit = float(options["tol"]) * model.scale
    return [
        Point(w, c, gap, 1.0, bool(np.all(gap <= limit))) for w, c, gap in zip(solutions, centers, gaps, strict=True)
    ]


def _ridges(model: LinearModel, G: FloatArray, m: FloatArray, penalties: Sequence[ElasticNet]) -> list[FloatArray]:
    """Solutions of (G + l2) w = m: a factor for each of a few penalties, one eigendecomposition for many."""
    if len(penalties) <= 6 and "eigen" not in model.shared:
        try:
            return [cho_solve(cho_factor(shifted(G, one.l2), check_finite=False), m) for one in penalties]
        except np.linalg.LinAlgError:  # singular up to rounding: eigenvalues tell how far
            pass
    if "eigen" not in model.shared:
        model.shared["eigen"] = np.linalg.eigh(G)
    values, vectors = model.shared["eigen"]
    turned = vectors.T @ m
    values = np.maximum(values, 0)[:, None]
    return [vectors @ (turned / (values + one.l2)) for one in penalties]


def _gaps(
    model: LinearModel, G: FloatArray, m: FloatArray, solutions: list[FloatArray], penalties: Sequence[ElasticNet]
) -> list[FloatArray]:
    """Duality gaps from the centered moments, with a bound on their rounding.

    With v = m - Gw, the moments of the residuals r, and y = theta S r, P + D = r(w) - theta <v, w> + r*(theta v) +
    (1 - theta)^2/2 |r|^2/W; theta = 1 unless the penalty is l1 alone, whose r* is infinite outside |v| <= l1. There
    |r|^2/W <= 2 P(0, 0) for solutions that are better than 0.
    """
    W = np.concatenate(solutions, axis=1)
    V = np.tile(m, len(solutions)) - G @ W
    largest = np.tile(np.abs(m), len(solutions)) + np.abs(G) @ np.abs(W)
    rounding = np.sum(largest * np.abs(W), axis=0) * (len(m) + 2) * np.finfo(float).eps
    l1, l2 = (np.repeat([getattr(one, name) for one in penalties], model.outputs) for name in ("l1", "l2"))
    sizes = V if penalties[0].positive else np.abs(V)
    inside, outer = l1 * (1 - 1e-13), np.max(sizes, axis=0)
    theta = np.where((l2 == 0) & (outer > inside), inside / np.where(outer > 0, outer, 1.0), 1.0)
    excess = np.sum(np.maximum(sizes - l1, 0) ** 2, axis=0)
    penalty = l1 * np.sum(np.abs(W), axis=0) + l2 / 2 * np.sum(W * W, axis=0)
    conjugate = np.where(l2 > 0, excess / (2 * np.where(l2 > 0, l2, 1.0)), 0.0)
    gap = penalty - theta * np.sum(V * W, axis=0) + conjugate + (1 - theta) ** 2 * np.tile(model.scale, len(solutions))
    return np.split(np.maximum(gap, 0) + rounding, len(solutions))


def largest_l1(model: LinearModel) -> FloatArray:
    """The smallest l1 weight, per output, for which w = 0 is the solution: |A'y|_inf/W at w = 0 and the best c."""
    if "moments" in model.shared:  # of the squared loss
        v = model.shared["moments"][1]
    else:
        t = np.zeros((model.n, model.outputs))
        y = model.loss.derivative(t + model.best_intercept(t), model.b, model.s)
        v = -model.problem.moments(y)
    return np.asarray(np.max(np.maximum(v, 0) if model.penalty.positive else np.abs(v), axis=0))


def values_of(alphas: Any, model: LinearModel, l1: float, *, eps: float) -> FloatArray:
    """Weights of a penalty with the l1 part `l1` per unit, from the largest down: those given, or so many."""
    if isinstance(alphas, numbers.Integral):
        return grid(float(largest_l1(model)[0]) / l1, eps=eps, count=int(alphas))
    values = np.asarray(alphas, np.float64)
    if values.ndim != 1 or not len(values) or not np.all((values >= 0) & (values < np.inf)):
        raise ValueError(
            f"alphas must be a number of values, or values in one dimension that are at least 0; got {alphas!r}."
        )
    return np.sort(values)[::-1]


def grid(largest: float, *, eps: float = 1e-3, count: int = 100) -> FloatArray:
    """`count` values from `largest` down to eps times it, evenly spaced on a logarithmic axis."""
    if largest <= np.finfo(float).resolution:
        return np.full(count, np.finfo(float).resolution)
    return np.geomspace(largest, largest * eps, count)
