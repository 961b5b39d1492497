"""How estimators fit samples that are elsewhere, and predict for them: a source in the place of X and y."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import _fit_context, is_classifier
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, check_is_fitted, column_or_1d

from coordwise.datasets.stream import Stream
from coordwise.estimators.base import Linear, method_of, threads_of, with_callbacks
from coordwise.estimators.multilabel import Multilabel, several_labels
from coordwise.estimators.progress import Watch
from coordwise.fitting.elsewhere import Elsewhere, fit_source, unfitted
from coordwise.fitting.fit import Fit
from coordwise.interrupts import Failed
from coordwise.losses import Loss
from coordwise.penalties import ElasticNet as Penalty
from coordwise.results import Status
from coordwise.samples.base import rowless
from coordwise.samples.block import Block
from coordwise.samples.source import Source, Targets, Weights, is_source
from coordwise.validation import FloatArray

__all__ = [
    "Labels",
    "OfClass",
    "OneAgainstAll",
    "Signs",
    "Sourced",
    "beside",
    "classes_elsewhere",
    "refuse_source",
    "scores",
    "targets_of",
]


class Sourced(Linear):
    """An estimator that takes sources, with what regressors and classifiers do alike."""

    def _data(self, source: Source, targets: Targets | None = None, weights: Weights | None = None) -> Elsewhere:
        """The samples of a fit."""
        intercept, threads = bool(self.fit_intercept), threads_of(self.n_jobs)
        return Elsewhere(source, targets, weights, intercept, self._scaling, threads)

    def _fit_data(
        self, data: Elsewhere, loss: Loss, penalty: Callable[[float], Penalty], outputs: int, watch: Watch
    ) -> Fit:
        """Fit all outputs at once; `penalty` is a function of the sum of the weights."""
        if method_of(self.method, self.beta).name != "auto":
            raise ValueError(
                f"method={self.method!r}, beta={self.beta} choose coordinate steps, which need the samples in memory; "
                "for samples that are elsewhere leave them out."
            )
        last = getattr(self, "_last", None) if getattr(self, "warm_start", False) else None
        known = last is not None and last.w.shape == (data.source.shape[1], outputs)
        return fit_source(
            data,
            loss,
            penalty,
            tol=float(self.tol),
            max_passes=float(self.max_iter or 1000),
            time_limit=watch.left(),
            strategy=self.strategy,
            start=(last.w, last.c) if last is not None and known else None,
            callback=watch,
        )

    def _attempt_source(
        self, solve: Callable[[], Any], shape: tuple[int, int]
    ) -> tuple[list[Fit], bool, Failed | None]:
        """What `solve` returns, or what Ctrl-C or lost samples have left of it, and which of both came."""

        def several() -> list[Fit]:
            found = solve()
            return found if isinstance(found, list) else [found]

        try:
            return *self._attempt(several, lambda: unfitted(shape, Status.INTERRUPTED)), None
        except Failed as lost:
            if lost.result is None:
                raise
            return (lost.result if isinstance(lost.result, list) else [lost.result]), False, lost

    def _end_source(self, source: Source, fits: list[Fit], interrupted: bool, lost: Failed | None) -> None:
        """Set the remaining attributes; raise, or warn, as after a fit in memory."""
        self.n_features_in_ = source.shape[1]
        self.__dict__.pop("feature_names_in_", None)
        if source.feature_names is not None:
            self.feature_names_in_ = np.array(source.feature_names, object)
        if lost is not None:
            self._certify(fits)
            raise lost
        self._report(fits, interrupted)

    @_fit_context(prefer_skip_nested_validation=True)
    @with_callbacks
    def fit_batches(self, make_batches: Callable[[], Any], classes: Any = None) -> Any:
        """Fit samples that come in batches, of which one is in memory at a time.

        The problem is that of `fit`, of all samples together. Every pass over the data calls ``make_batches`` again; of
        each sample only its target, its weight and a few numbers of the solver stay in memory.

        Parameters
        ----------
        make_batches : callable
            Returns a fresh iterator over the same (X, y) or (X, y, sample_weight) batches in the same order each time
            it is called. X is dense or sparse. Shapes, targets and weights are compared from pass to pass, X is not.
            The first pass, which finds out about the samples, is not subject to `time_limit`.
        classes : array-like, default=None
            The classes, for a classifier; a ValueError says so if the batches hold others, or lack one.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            If a batch is wrong, or differs from the one of the first pass.
        """
        stream, y = Stream(make_batches), None
        if is_classifier(self):
            y = stream.y
            if classes is not None and set(np.unique(y).tolist()) != set(np.unique(classes).tolist()):
                raise ValueError(f"classes={classes!r}, but the labels in the batches are {np.unique(y).tolist()}.")
        elif classes is not None:
            raise ValueError(f"classes={classes!r} is for classifiers; leave it out.")
        return self._fit_source(stream, y, None)

    def _fit_source(self, X: Any, y: Any, sample_weight: Any) -> Any:
        raise NotImplementedError

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """R^2 of the predictions of a regressor, the share of right ones of a classifier.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or source
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            None for the targets that a source has.
        sample_weight : array-like of shape (n_samples,), default=None
            None for the weights that a source has, if any.

        Returns
        -------
        float
        """
        if is_source(X):
            if y is None:
                targets_of(X)
                y = np.concatenate([np.array(rows[1]) for rows in X])
            if sample_weight is None and X.weighted:
                sample_weight = np.concatenate([np.array(rows[2]) for rows in X])
        return float(super().score(X, y, sample_weight))


def scores(estimator: Any, source: Any) -> FloatArray:
    """<x_i, w> + c for all samples of a source, part by part; only the scores stay in memory."""
    check_is_fitted(estimator)
    _refuse_scattered(source)
    known, names = getattr(estimator, "feature_names_in_", None), source.feature_names
    if known is not None and names is not None and tuple(known) != tuple(names):
        other = next((pair for pair in zip(known, names, strict=False) if pair[0] != pair[1]), None)
        why = f"{other[1]!r} in the place of {other[0]!r}" if other else f"{len(names)} of them, not {len(known)}"
        raise ValueError(
            f"X has other features than {type(estimator).__name__} was fitted on: {why}. The features of a categorical "
            "column are its values; convert data that are to be predicted together with those of the fit."
        )
    if source.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {source.shape[1]} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
    w = estimator.coef_.T
    found = np.concatenate([np.asarray(rows[0] @ w) + estimator.intercept_ for rows in source])
    return found.ravel() if w.ndim == 2 and w.shape[1] == 1 and hasattr(estimator, "classes_") else found


def _refuse_scattered(source: Any) -> None:
    if not hasattr(source, "__iter__"):
        raise TypeError(f"{type(source).__name__} cannot be read part by part here; predict where its samples are.")


def refuse_source(X: Any, name: str, instead: str) -> None:
    """TypeError for a source, with what works instead."""
    if is_source(X):
        raise TypeError(f"{name} needs the samples in memory, as arrays. For samples that are elsewhere {instead}.")


def beside(X: Any, y: Any, sample_weight: Any) -> Source:
    """A source with the targets and weights that were passed beside it, if any were."""
    if y is None and sample_weight is None:
        return X
    if not hasattr(X, "beside"):
        raise TypeError(f"{type(X).__name__} takes no y or sample_weight beside it; make them a part of it.")
    s = (
        np.full(X.shape[0], sample_weight)
        if np.ndim(sample_weight) == 0 and sample_weight is not None
        else sample_weight
    )
    return X.beside(y, s)


def targets_of(source: Source) -> tuple[int, ...]:
    """The shape of the targets of a sample; ValueError if there are none."""
    if source.target_shape is None:
        raise ValueError(f"y is missing: {source!r} holds no targets. Pass them as an array of {source.shape[0]} rows.")
    return source.target_shape


@dataclass(frozen=True)
class Signs:
    """-1/+1, one column per class; one for two classes. A function that can be sent to where the labels are."""

    values: FloatArray

    def __call__(self, y: FloatArray) -> FloatArray:
        """See the class."""
        which = y[:, None] == (self.values[1:] if len(self.values) == 2 else self.values)
        return np.where(which, 1.0, -1.0)


@dataclass(frozen=True)
class OneAgainstAll:
    """-1/+1 of one class against the rest. A function that can be sent to where the labels are."""

    value: float

    def __call__(self, y: FloatArray) -> FloatArray:
        """See the class."""
        return np.where(y == self.value, 1.0, -1.0)


def signs_of_each(y: FloatArray) -> FloatArray:
    """-1/+1 of labels 0 and 1, a column for each."""
    if not np.all((y == 0) | (y == 1)):
        raise ValueError("y has several columns, which must be zeros and ones, one column for every label.")
    return np.where(y == 1, 1.0, -1.0)


@dataclass(frozen=True)
class OfClass:
    """Sample weights times the weight of each sample's class. A function that can be sent to where the labels are."""

    values: FloatArray
    given: FloatArray

    def __call__(self, y: FloatArray, s: FloatArray | None) -> FloatArray:
        """See the class."""
        own = self.given[np.searchsorted(self.values, y)]
        return own if s is None else own * s


def ones(y: FloatArray, s: FloatArray | None) -> FloatArray:
    """A weight of 1 for every sample."""
    return np.ones(len(y))


@rowless
def sum_of_targets(block: Block) -> tuple[None, list[FloatArray]]:
    """A visit: the sum of every column of targets."""
    return None, [block.b.sum(axis=0)]


@dataclass(frozen=True)
class Labels:
    """The distinct labels of a source with the weights of their samples; or `several` labels, 0 or 1, per sample."""

    source: Source
    values: FloatArray
    sums: FloatArray
    several: bool

    @property
    def outputs(self) -> int:
        """Problems to solve: one for two classes, else one per class or label."""
        return 1 if len(self.values) == 2 and not self.several else len(self.values)

    @property
    def signs(self) -> Targets:
        """-1/+1 of labels."""
        return signs_of_each if self.several else Signs(self.values)

    def weights(self, given: FloatArray | None) -> Weights | None:
        """Sample weights times these weights of the classes, as a function of labels."""
        return None if given is None else OfClass(self.values, given)

    def counts(self) -> FloatArray:
        """The number of samples of each class: one visit, where samples have weights."""
        if not self.source.weighted:
            return self.sums
        n = self.source.shape[0]
        samples = self.source.samples(Signs(self.values), weights=ones)
        signs = samples.visit(sum_of_targets)[1][0]
        found = (n + signs) / 2
        return np.array([n - found[0], found[0]]) if len(self.values) == 2 else found


def classes_elsewhere(estimator: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Source, Any, Labels]:
    """The source to fit, the classes by the names that the user knows, and its labels."""
    name, source = type(estimator).__name__, X
    names: Any = None
    if y is not None and not (isinstance(estimator, Multilabel) and several_labels(y)):
        y = column_or_1d(y, warn=True)
        if y.dtype.kind == "f":
            assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        names, y = np.unique(y, return_inverse=True)  # codes go beside the source, of whatever type the labels are
    source = beside(X, y, sample_weight)
    shape = targets_of(source)
    several = len(shape) == 1
    if isinstance(estimator, Multilabel):
        estimator._several = several
    elif several:
        raise ValueError(f"y has {shape[0]} columns; {name} takes one label per sample.")
    if several:
        return source, np.arange(shape[0]), Labels(source, np.arange(float(shape[0])), np.zeros(shape[0]), True)
    values, sums = source.labels()
    check_classification_targets(values)
    classes = values if names is None else names
    if len(values) < 2:
        raise ValueError(
            "This solver needs samples of at least 2 classes in the data, but the data contains only one class: "
            f"{np.asarray(classes[0]).item()!r}"
        )
    return source, classes, Labels(source, values, sums, False)
