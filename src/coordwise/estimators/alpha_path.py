"""Regressions over a grid of alphas: one regressor's path."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_X_y

from coordwise.estimators.base import Data, weights_of
from coordwise.estimators.elsewhere import refuse_source
from coordwise.estimators.regressor import Regressor
from coordwise.fitting.model import LinearModel
from coordwise.fitting.path import Point, points, values_of
from coordwise.interrupts import Interrupted
from coordwise.penalties import ElasticNet as Penalty
from coordwise.validation import FloatArray

__all__ = ["Path", "Penalised", "checked"]


def checked(alphas: Any, name: str = "alphas") -> Any:
    """Weights of penalties, numbers that are at least 0, as an array; or how many of them there are to be.

    Raises
    ------
    TypeError, ValueError
        Naming the entry that is not one.
    """
    if isinstance(alphas, numbers.Integral) or np.ndim(alphas) != 1:
        return alphas
    several = len(alphas) > 1
    for k, alpha in enumerate(alphas):
        one = f"{name}[{k}]" if several else name
        check_scalar(alpha, one, numbers.Real, min_val=0.0, include_boundaries="left")
        if np.isnan(alpha):
            raise ValueError(f"{one} is nan; give a number that is at least 0.")
    return np.asarray(alphas, np.float64)


@dataclass(frozen=True)
class Path:
    """A regularisation path: a model for every alpha, from the largest down."""

    alphas: FloatArray
    coefs: FloatArray
    intercepts: FloatArray
    dual_gaps: FloatArray
    converged: Any


class Penalised(Regressor):
    """A regressor whose penalty has the weight alpha."""

    def path(self, X: Any, y: Any, alphas: Any = 100, *, eps: float = 1e-3, sample_weight: Any = None) -> Path:
        """The models for a grid of alphas, each fit started from the last; the estimator itself is left as it is.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        alphas : int or array-like, default=100
            Which, or how many between the smallest alpha with solution 0 and `eps` times it (penalties with an l1
            part only).
        eps : float, default=1e-3
        sample_weight : float or array-like of shape (n_samples,), default=None

        Returns
        -------
        Path
            alphas, coefs (n_alphas x n_features), intercepts, dual_gaps (each at most tol times the objective at zero)
            and converged, from the largest alpha down; fewer models if `time_limit`, that of the whole path, came
            first.

        Raises
        ------
        ValueError
            For a number of alphas without an l1 part, and for wrong data.
        coordwise.Interrupted
            On Ctrl-C, with the path so far as its `result`.
        """
        self._validate_params()
        refuse_source(X, f"{type(self).__name__}.path", "fit for each alpha, with warm_start=True where there is one")
        X, y = check_X_y(X, y, accept_sparse=["csr", "csc"], dtype=[np.float64, np.float32], y_numeric=True)
        weights = weights_of(sample_weight, X)
        total = float(len(y) if weights is None else weights.sum())

        def penalty(alpha: float) -> Penalty:
            return clone(self).set_params(alpha=float(alpha))._penalty(total)

        one = penalty(1.0)
        X, targets, offsets = self._near_zero(X, np.asarray(y, np.float64)[:, None], weights, self._loss())
        problem = Data(X, targets, loss=self._loss(), penalty=one, sample_weight=weights)
        level = None if problem.loss.name == "squared" else offsets.level
        model = LinearModel(problem, bool(self.fit_intercept), level)
        if isinstance(alphas, numbers.Integral) and one.l1 == 0:
            raise ValueError(f"alphas={alphas} is a number of values, which needs an l1 penalty; give the values.")
        values = values_of(checked(alphas), model, one.l1, eps=float(eps))

        def assembled(found: list[Point]) -> Path:
            return Path(
                values[: len(found)],
                np.array([point.w[:, 0] for point in found]),
                np.array([offsets.restored(point.w, point.c)[0] for point in found]),
                np.array([point.gap[0] for point in found]),
                np.array([point.converged for point in found]),
            )

        try:
            return assembled(points(model, [penalty(alpha) for alpha in values], **self._options(self.time_limit)))
        except Interrupted as stop:
            raise Interrupted(str(stop), assembled(stop.result)) from None
