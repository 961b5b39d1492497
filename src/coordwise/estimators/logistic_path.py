"""Logistic regressions over a grid of C: one classifier's path, for two classes or more."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from coordwise.estimators.base import Data
from coordwise.estimators.classifier import signs_of
from coordwise.fitting.fit import Fit
from coordwise.fitting.model import LinearModel
from coordwise.fitting.path import Point, clock, points, points_of
from coordwise.losses import Logistic
from coordwise.penalties import ElasticNet as Penalty
from coordwise.validation import FloatArray

__all__ = ["PathOverC", "grid_of", "logistic_model", "over_C"]


@dataclass(frozen=True)
class PathOverC:
    """A regularisation path of a classifier: a model for every C, from the smallest (the strongest penalty) up."""

    Cs: FloatArray
    classes: Any
    coefs: FloatArray
    intercepts: FloatArray
    dual_gaps: FloatArray
    converged: Any


def grid_of(Cs: Any) -> FloatArray:
    """The values themselves, or so many between 1e-4 and 1e4 on a logarithmic axis, as scikit-learn has them."""
    if isinstance(Cs, numbers.Integral):
        return np.logspace(-4, 4, int(Cs))
    values = np.atleast_1d(np.asarray(Cs, np.float64))
    if values.ndim != 1 or not len(values) or not np.all(values > 0):
        raise ValueError(f"Cs must be a number of values, or positive values in one dimension; got {Cs!r}.")
    return values


def logistic_model(X: Any, signs: FloatArray, weights: FloatArray | None, *, intercept: bool) -> LinearModel:
    """The model for labels -1 and +1, whose penalty is to be replaced."""
    return LinearModel(Data(X, signs, loss=Logistic(), penalty=Penalty(0.0, 1.0), sample_weight=weights), intercept)


def over_C(
    one: Any,
    X: Any,
    codes: Any,
    weights: FloatArray | None,
    Cs: FloatArray,
    *,
    model: LinearModel | None = None,
    callback: Callable[[Any], object] | None = None,
    time_limit: float | None = None,
) -> list[Point]:
    """The solutions for Cs, from the smallest up is best: every fit starts from the last.

    `one` is a LogisticRegression with classes_ and the options of every fit, which is used up; `codes` are positions in
    classes_, `weights` include those of the classes. For two classes `model` may be that of the samples. Limits and
    Ctrl-C as in `coordwise.fitting.path.points`.
    """
    if len(one.classes_) == 2:
        if model is None:
            model = logistic_model(X, signs_of(codes, 2), weights, intercept=bool(one.fit_intercept))
        penalties = []
        for C in Cs:
            one.C = float(C)
            penalties.append(one._penalty(model.total))
        return points(model, penalties, callback=callback, **one._options(time_limit))

    def fits() -> Iterator[Fit]:
        start, left = None, clock(time_limit)
        for C in Cs:
            one.C = float(C)
            found = one._several(X, codes, weights, start, left(), callback)
            start = found.candidate
            yield found

    return points_of(fits(), len(Cs))
