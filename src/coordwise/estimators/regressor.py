"""What all regressors share: targets in one column or several."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin, _fit_context
from sklearn.linear_model._base import LinearModel as _Predictor
from sklearn.utils.validation import validate_data

from coordwise.estimators.base import Linear, narrowed, nothing, weights_of, with_callbacks
from coordwise.estimators.elsewhere import Sourced, beside, scores, targets_of
from coordwise.estimators.progress import Watch
from coordwise.fitting.elsewhere import Elsewhere
from coordwise.fitting.fit import Fit
from coordwise.fitting.model import Candidate
from coordwise.fitting.offsets import Offsets
from coordwise.losses import Loss, Squared
from coordwise.penalties import ElasticNet as Penalty
from coordwise.results import Status
from coordwise.samples.source import is_source
from coordwise.validation import FloatArray

__all__ = ["Regressor"]


class Regressor(Sourced, MultiOutputMixin, RegressorMixin, _Predictor, Linear):
    """A linear regressor: subclasses give a loss and a penalty."""

    def _loss(self) -> Loss:
        return Squared()

    def _penalty(self, total: float) -> Penalty:
        raise NotImplementedError

    @_fit_context(prefer_skip_nested_validation=True)
    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or source
            Such as a `coordwise.datasets.Folder`, whose samples are read from the disk, pass after pass.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            None for the targets that a source has.
        sample_weight : float or array-like of shape (n_samples,), default=None

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight)

    def _fit(self, X: Any, y: Any, sample_weight: Any, **routed: Any) -> Any:
        """Check, solve, report; `routed` is what `_solve` may need besides."""
        if is_source(X):
            return self._fit_source(X, y, sample_weight)
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
        targets = np.asarray(y, np.float64).reshape(len(y), -1)
        kind, outputs = X.dtype, targets.shape[1]
        X, targets, offsets = self._near_zero(X, targets, weights, self._loss())
        start = self._start((X.shape[1], outputs), X.shape[0], offsets)
        with self._watching(X, y) as watch:
            (found,), interrupted = self._attempt(
                lambda: [self._solve(X, y, targets, offsets, weights, start, watch, **routed)],
                lambda: nothing(X.shape, outputs, Status.INTERRUPTED),
            )
        found = replace(found, c=offsets.restored(found.w, found.c))
        self._set(found, kind, flat=y.ndim == 1)
        self._report([found], interrupted)
        return self

    def _set(self, found: Fit, kind: Any, *, flat: bool) -> None:
        """The attributes of a model; `flat` for targets of one dimension."""
        self._keep(found)
        coef, intercept = narrowed(found.w.T, kind), narrowed(found.c, kind)
        self.coef_ = coef[0] if len(coef) == 1 else coef
        self.intercept_ = (intercept[0] if flat else intercept) if self.fit_intercept else 0.0
        self.n_iter_ = self._iterations(found)

    _multi_output = True

    def _solve(
        self,
        X: Any,
        y: Any,
        targets: FloatArray,
        offsets: Offsets,
        weights: FloatArray | None,
        start: Candidate | None,
        watch: Watch,
    ) -> Fit:
        """The fit of data near 0, from which `offsets` were taken."""
        total = float(len(targets) if weights is None else weights.sum())
        penalty, loss = self._penalty(total), self._loss()
        level = None if loss.name == "squared" else offsets.level  # the mean is the best level for squares
        intercept = bool(self.fit_intercept)
        return self._fit_model(X, targets, loss, penalty, weights, watch, intercept=intercept, start=start, level=level)

    def _fit_source(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """Fit samples that are elsewhere."""
        source = beside(X, None if y is None else np.asarray(y), sample_weight)
        shape = targets_of(source)
        if len(shape) > 0 and not self._multi_output:
            raise ValueError(f"y has {shape[0]} columns; {type(self).__name__} takes one target per sample.")
        outputs = int(np.prod(shape))
        data = self._data(source)
        with self._watching(source, None) as watch:
            fits, interrupted, lost = self._attempt_source(
                lambda: [self._solve_source(data, outputs, watch)], (source.shape[1], outputs)
            )
        self._set(fits[0], source.dtype, flat=shape == ())
        self._end_source(source, fits, interrupted, lost)
        return self

    def _solve_source(self, data: Elsewhere, outputs: int, watch: Watch) -> Fit:
        """The fit of samples that are elsewhere."""
        return self._fit_data(data, self._loss(), self._penalty, outputs, watch)

    def _decision_function(self, X: Any) -> FloatArray:
        return scores(self, X) if is_source(X) else super()._decision_function(X)

    def _iterations(self, found: Any) -> Any:
        return max(int(np.ceil(found.passes)), 1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = self._multi_output
        tags.target_tags.single_output = True
        return tags
