"""Regressions over a grid of alphas: one regressor's path."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_X_y

from coordwise.erm import ERM
from coordwise.estimators.base import weights_of
from coordwise.estimators.regressor import Regressor
from coordwise.fitting.model import LinearModel
from coordwise.fitting.path import points, values_of
from coordwise.penalties import ElasticNet as Penalty
from coordwise.validation import FloatArray

__all__ = ["Path", "Penalised"]


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
            and converged, from the largest alpha down.

        Raises
        ------
        ValueError
            For a number of alphas without an l1 part, and for wrong data.
        """
        self._validate_params()
        X, y = check_X_y(X, y, accept_sparse=["csr", "csc"], dtype=[np.float64, np.float32], y_numeric=True)
        weights = weights_of(sample_weight, X)
        total = float(len(y) if weights is None else weights.sum())

        def penalty(alpha: float) -> Penalty:
            return clone(self).set_params(alpha=float(alpha))._penalty(total)

        one = penalty(1.0)
        targets = np.asarray(y, np.float64)[:, None]
        problem = ERM(X, targets, loss=self._loss(), penalty=one, sample_weight=weights)
        model = LinearModel(problem, bool(self.fit_intercept))
        if isinstance(alphas, numbers.Integral) and one.l1 == 0:
            raise ValueError(f"alphas={alphas} is a number of values, which needs an l1 penalty; give the values.")
        values = values_of(alphas, model, one.l1, eps=float(eps))
        fits = points(model, [penalty(alpha) for alpha in values], **self._options())
        return Path(
            values,
            np.array([found.w[:, 0] for found in fits]),
            np.array([found.c[0] for found in fits]),
            np.array([found.gap[0] for found in fits]),
            np.array([found.converged for found in fits]),
        )
