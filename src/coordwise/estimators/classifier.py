"""What all classifiers share: classes, their weights and their signs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.linear_model._base import LinearClassifierMixin, SparseCoefMixin
from sklearn.utils.class_weight import compute_class_weight, compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from coordwise.estimators.base import Linear, narrowed, nothing, weights_of, with_callbacks
from coordwise.estimators.elsewhere import Labels, Sourced, classes_elsewhere, scores
from coordwise.estimators.multilabel import Multilabel, labels_of, several_labels
from coordwise.estimators.progress import Watch
from coordwise.fitting.fit import Fit
from coordwise.fitting.offsets import Offsets
from coordwise.losses import Logistic, Loss
from coordwise.penalties import ElasticNet as Penalty
from coordwise.results import Status
from coordwise.samples.source import Source, is_source
from coordwise.validation import FloatArray

__all__ = ["Classifier", "outputs_of", "signs_of"]

LARGE = 2.0**63  # beyond the integers


class Classifier(Sourced, LinearClassifierMixin, SparseCoefMixin, ClassifierMixin, Linear):
    """A linear classifier: one binary problem per class (one for two classes), all of them at once."""

    def _loss(self) -> Loss:
        raise NotImplementedError

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
        y : array-like of shape (n_samples,)
            Classes; None for those that a source has.
        sample_weight : float or array-like of shape (n_samples,), default=None

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight)

    def _fit(self, X: Any, y: Any, sample_weight: Any, **routed: Any) -> Any:
        """Check, solve, report; `routed` is what `_fit_classes` may need besides."""
        if is_source(X):
            return self._fit_source(X, y, sample_weight)
        several = isinstance(self, Multilabel) and several_labels(y)
        X, y = validate_data(
            self, X, y, accept_sparse=["csr", "csc"], dtype=[np.float64, np.float32], multi_output=several
        )
        codes = self._classes(y)
        weights = weights_of(sample_weight, X)
        kind, outputs = X.dtype, outputs_of(codes, len(self.classes_))
        X, _, offsets = self._near_zero(X, np.zeros((len(y), 1)), weights, Logistic())
        with self._watching(X, y) as watch:
            fits, interrupted = self._attempt(
                lambda: self._fit_classes(X, y, codes, offsets, weights, watch, **routed),
                lambda: nothing(X.shape, outputs, Status.INTERRUPTED),
            )
        fits = [replace(found, c=offsets.restored(found.w, found.c)) for found in fits]
        self._set(fits, kind)
        self._report(fits, interrupted)
        return self

    def _set(self, fits: list[Fit], kind: Any) -> None:
        """The attributes of a model."""
        if len(fits) == 1:
            self._keep(fits[0])
        coef = np.concatenate([found.w.T for found in fits])
        intercept = np.concatenate([found.c for found in fits])
        self.coef_ = narrowed(coef, kind)
        self.intercept_ = narrowed(intercept, kind) if self.fit_intercept else np.zeros(len(coef), kind)
        self.n_iter_ = self._iterations(fits)

    def _fit_source(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """Fit samples that are elsewhere."""
        source, self.classes_, labels = classes_elsewhere(self, X, y, sample_weight)
        outputs = labels.outputs
        with self._watching(source, None) as watch:
            fits, interrupted, lost = self._attempt_source(
                lambda: self._solve_source(source, labels, watch), (source.shape[1], outputs)
            )
        self._set(fits, source.dtype)
        self._end_source(source, fits, interrupted, lost)
        return self

    def _solve_source(self, source: Source, labels: Labels, watch: Watch) -> list[Fit]:
        """One fit of all classes at once, of samples that are elsewhere."""
        data = self._data(source, labels.signs, labels.weights(self._class_weights_elsewhere(labels)))
        return [self._fit_data(data, self._loss(), self._penalty, labels.outputs, watch)]

    def _class_weights_elsewhere(self, labels: Labels) -> FloatArray | None:
        """One weight per class, or None; see `_class_weights`."""
        if self.class_weight is None:
            return None
        if labels.several:
            raise ValueError(
                "class_weight with several labels per sample needs the samples in memory; for samples that are "
                "elsewhere leave it out, or fit one label at a time."
            )
        if self.class_weight == "balanced":
            sums = labels.sums if self._balanced_by_weight else labels.counts()
            return np.divide(sums.sum(), len(sums) * sums, out=np.zeros_like(sums), where=sums > 0)
        return np.asarray(compute_class_weight(self.class_weight, classes=self.classes_, y=self.classes_), np.float64)

    def decision_function(self, X: Any) -> FloatArray:
        """Confidence scores: of classes_[1] for two classes, else a column for every class or label.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or source

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        return scores(self, X) if is_source(X) else super().decision_function(X)

    def _classes(self, y: Any) -> Any:
        """Set classes_, and return the position in it of every label, or which labels every sample has."""
        if isinstance(self, Multilabel):
            self._several = y.ndim == 2
            if self._several:
                self.classes_, codes = labels_of(y)
                return codes
        self.classes_, codes = _classes(y)
        if len(self.classes_) < 2:
            raise ValueError(
                "This solver needs samples of at least 2 classes in the data, but the data contains only one class: "
                f"{self.classes_[0]!r}"
            )
        return codes

    def _iterations(self, fits: Any) -> Any:
        return max(int(np.ceil(sum(found.passes for found in fits))), 1)

    def _fit_classes(
        self, X: Any, y: Any, codes: Any, offsets: Offsets, weights: FloatArray | None, watch: Watch
    ) -> list[Fit]:
        """One fit of all classes at once, of data near 0."""
        weights = self._weighted(y, codes, weights)
        return [self._fit_signs(X, signs_of(codes, len(self.classes_)), offsets, weights, watch)]

    _balanced_by_weight = True  # whether "balanced" counts samples with their weights, as scikit-learn's twin does

    def _class_weights(self, y: Any, weights: FloatArray | None) -> FloatArray:
        """One weight per class; 0 for a class none of whose samples counts, where "balanced" would divide by 0."""
        if self.class_weight == "balanced" and self._balanced_by_weight and weights is not None:
            sums = np.array([weights[y == one].sum() for one in self.classes_])
            return np.divide(weights.sum(), len(sums) * sums, out=np.zeros_like(sums), where=sums > 0)
        return np.asarray(compute_class_weight(self.class_weight, classes=self.classes_, y=y), np.float64)

    def _weighted(self, y: Any, codes: Any, weights: FloatArray | None) -> FloatArray | None:
        """Sample weights times class weights."""
        if self.class_weight is None:
            return weights
        several = codes.ndim == 2
        given = compute_sample_weight(self.class_weight, y) if several else self._class_weights(y, weights)[codes]
        return given if weights is None else given * weights

    def _fit_signs(self, X: Any, signs: FloatArray, offsets: Offsets, weights: FloatArray | None, watch: Watch) -> Fit:
        total = float(X.shape[0] if weights is None else weights.sum())
        penalty, intercept = self._penalty(total), bool(self.fit_intercept)
        start = self._start((X.shape[1], signs.shape[1]), X.shape[0], offsets)
        return self._fit_model(X, signs, self._loss(), penalty, weights, watch, intercept=intercept, start=start)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _classes(y: Any) -> tuple[Any, Any]:
    """The classes in order, and the place of each sample's; two whole numbers need no sorting and no other checks.

    Whole numbers are those that integers hold, as scikit-learn has it.
    """
    if y.dtype.kind in "fiu" and len(y):
        low, high = y.min(), y.max()
        codes = (y == high).astype(np.intp)
        whole = y.dtype.kind != "f" or (low % 1 == high % 1 == 0 and low >= -LARGE and high < LARGE)
        if low < high and whole and np.all(codes | (y == low)):
            return np.array([low, high], y.dtype), codes
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    return classes, codes


def outputs_of(codes: Any, count: int) -> int:
    """Problems to solve: one for two classes, else one per class or label."""
    return 1 if count == 2 and codes.ndim == 1 else count


def signs_of(codes: Any, count: int) -> FloatArray:
    """-1/+1, one column per class or label; one for two classes."""
    if codes.ndim == 2:
        return np.where(codes, 1.0, -1.0)
    if count == 2:
        return np.where(codes == 1, 1.0, -1.0)[:, None]
    return np.where(codes[:, None] == np.arange(count), 1.0, -1.0)
