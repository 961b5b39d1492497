"""Regularisation paths: one penalty after the other, each fit started from the last."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from coordwise.fitting.fit import Fit, fit
from coordwise.fitting.model import Candidate, LinearModel
from coordwise.penalties import ElasticNet
from coordwise.validation import FloatArray

__all__ = ["grid", "largest_l1", "path", "values_of"]


def path(model: LinearModel, penalties: Iterable[ElasticNet], **options: Any) -> Iterator[Fit]:
    """Fits of the model with one penalty after the other; `options` are those of `fit`."""
    start: Candidate | None = options.pop("start", None)
    for penalty in penalties:
        found = fit(model.penalised(penalty), start=start, **options)
        start = found.candidate
        yield found


def largest_l1(model: LinearModel) -> FloatArray:
    """The smallest l1 weight, per output, for which w = 0 is the solution: |A'y|_inf/W at w = 0 and the best c."""
    t = np.zeros((model.n, model.outputs))
    y = model.loss.derivative(t + model.best_intercept(t), model.b, model.s)
    v = -model.problem.moments(y)
    return np.asarray(np.max(np.maximum(v, 0) if model.penalty.positive else np.abs(v), axis=0))


def values_of(alphas: Any, model: LinearModel, l1: float, *, eps: float) -> FloatArray:
    """Weights of a penalty with the l1 part `l1` per unit, from the largest down: those given, or so many."""
    if isinstance(alphas, numbers.Integral):
        return grid(float(largest_l1(model)[0]) / l1, eps=eps, count=int(alphas))
    return np.sort(np.asarray(alphas, np.float64))[::-1]


def grid(largest: float, *, eps: float = 1e-3, count: int = 100) -> FloatArray:
    """`count` values from `largest` down to eps times it, evenly spaced on a logarithmic axis."""
    if largest <= np.finfo(float).resolution:
        return np.full(count, np.finfo(float).resolution)
    return np.geomspace(largest, largest * eps, count)
