"""What all regressors share: targets in one column or several."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin, _fit_context
from sklearn.linear_model._base import LinearModel as _Predictor
from sklearn.utils.validation import validate_data

from coordwise.estimators.base import Linear, weights_of, with_callbacks
from coordwise.fitting.fit import Fit
from coordwise.losses import Loss, Squared
from coordwise.penalties import ElasticNet as Penalty
from coordwise.validation import FloatArray

__all__ = ["Regressor"]


class Regressor(MultiOutputMixin, RegressorMixin, _Predictor, Linear):
    """A linear regressor: subclasses give a loss and a penalty."""

    def _loss(self) -> Loss:
        return Squared()

    def _penalty(self, total: float) -> Penalty:
        raise NotImplementedError

    @_fit_context(prefer_skip_nested_validation=True)
    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : float or array-like of shape (n_samples,), default=None

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight)

    def _fit(self, X: Any, y: Any, sample_weight: Any, **routed: Any) -> Any:
        """Check, solve, report; `routed` is what `_solve` may need besides."""
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse=["csr", "csc"],
            dtype=[np.float64, np.float32],
            multi_output=self._multi_output,
            y_numeric=True,
        )
        weights = weights_of(sample_weight, X)
        flat = y.ndim == 1
        targets = np.asarray(y, np.float64).reshape(len(y), -1)
        start = self._start((X.shape[1], targets.shape[1]), X.shape[0])
        with self._watching(X, y) as watch:
            found = self._solve(X, targets, weights, start, watch, **routed)
        self._keep(found)
        self._set(found.w.T.astype(X.dtype, copy=False), found.c.astype(X.dtype, copy=False), flat)
        self.n_iter_ = self._iterations(found)
        self._report([found], flat)
        return self

    _multi_output = True

    def _solve(self, X: Any, targets: FloatArray, weights: FloatArray | None, start: Any, watch: Any) -> Fit:
        total = float(len(targets) if weights is None else weights.sum())
        penalty = self._penalty(total)
        return self._fit_model(
            X, targets, self._loss(), penalty, weights, intercept=self.fit_intercept, start=start, watch=watch
        )

    def _set(self, coef: FloatArray, intercept: FloatArray, flat: bool) -> None:
        self.coef_ = coef[0] if flat else coef
        self.intercept_ = intercept[0] if flat else intercept
        if not self.fit_intercept:
            self.intercept_ = 0.0

    def _iterations(self, found: Any) -> Any:
        return max(int(np.ceil(found.passes)), 1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = self._multi_output
        tags.target_tags.single_output = True
        return tags
