"""The estimators: those of `coordwise.estimators`, with a source on a cluster in the place of X and y."""

from __future__ import annotations

import inspect
import numbers
import os
from dataclasses import replace
from typing import Any, TypeVar

from dask.base import is_dask_collection
from sklearn.base import clone
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from coordwise import estimators as here
from coordwise.dask.predictions import lazily, score
from coordwise.estimators.elsewhere import Sourced
from coordwise.fitting.checkpoint import Checkpoint
from coordwise.fitting.elsewhere import Elsewhere
from coordwise.fitting.fit import Fit
from coordwise.interrupts import Failed
from coordwise.samples.base import RowsLost
from coordwise.samples.cluster import PATIENCE
from coordwise.samples.dask_source import DaskSource
from coordwise.samples.source import Source, is_source

__all__ = [
    "ElasticNet",
    "HuberRegressor",
    "Lasso",
    "LinearSVC",
    "LinearSVR",
    "LogisticRegression",
    "Ridge",
    "RidgeClassifier",
]

OURS: dict[str, Any] = {"client": None, "checkpoint": None, "patience": PATIENCE}
# parameters that say how a problem is solved, or how much is shown, but not which problem it is
HOW = {*OURS, "tol", "max_iter", "random_state", "warm_start", "method", "beta", "strategy", "time_limit", "verbose"}
HOW |= {"callbacks", "n_jobs", "solver", "selection", "copy_X", "precompute"}

Class = TypeVar("Class", bound=type[Sourced])


class OnDask(Sourced):
    """What the estimators have in common: `fit` on a cluster, predictions that are lazy, a checkpoint."""

    client: Any
    checkpoint: Any
    patience: float

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit the model to samples on a cluster.

        Parameters
        ----------
        X : dask array or dataframe of shape (n_samples, n_features), or list
            See `coordwise.dask`.
        y : dask array or series of shape (n_samples,) or (n_samples, n_targets)
            None if X is a list.
        sample_weight : dask array or series of shape (n_samples,), default=None

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            If X and y cannot be fitted, or there is no client.
        coordwise.interrupts.Failed
            If samples are lost, with the best point so far, if any, as its `result`.
        coordwise.Interrupted
            On Ctrl-C; likewise.
        """
        self._validate_params()
        try:
            source = X
            if not is_source(X):
                source = DaskSource(X, y, sample_weight, client=self.client, patience=float(self.patience))
            return super().fit(source)
        except RowsLost as error:
            raise Failed(f"{error} The fit had not begun.") from error

    def _data(self, *arguments: Any) -> Elsewhere:
        data = super()._data(*arguments)
        if self.checkpoint is None:
            return data
        what = {name: value for name, value in self.get_params(deep=False).items() if name not in HOW}
        source = data.source
        labels = f", classes {self.classes_.tolist()!r}" if hasattr(self, "classes_") else ""
        n, d = source.shape
        problem = (
            f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in sorted(what.items()))}) of {n} x {d}{labels}"
        )
        return replace(data, checkpoint=Checkpoint(self.checkpoint, problem))

    def _end_source(self, source: Source, fits: list[Fit], interrupted: bool, lost: Failed | None) -> None:
        """Let go of the arrays on the workers; the rest of a result is here."""
        fits = [_released(found) for found in fits]
        if lost is not None:
            lost.result = fits[0] if len(fits) == 1 else fits
        super()._end_source(source, fits, interrupted, lost)

    def predict(self, X: Any) -> Any:
        """Predicted targets or classes: of dask arrays and dataframes a dask array that has not been computed."""
        return self._predicted("predict", X)

    def _predicted(self, method: str, X: Any) -> Any:
        if not is_dask_collection(X):
            return getattr(super(), method)(X)
        check_is_fitted(self)
        return lazily(self, self._model(), method, X)

    def _model(self) -> Any:
        """The same model as an estimator that workers know."""
        model = clone(self._local())
        for name in ("coef_", "intercept_", "classes_", "n_features_in_"):
            if hasattr(self, name):
                setattr(model, name, getattr(self, name))
        return model

    def _local(self) -> Any:
        kind = next(kind for kind in type(self).__mro__ if kind.__module__.startswith(here.__name__))
        names = kind._get_param_names()  # type: ignore[attr-defined]
        skipped = {"callbacks": None, "random_state": None}
        return kind(**{name: skipped.get(name, getattr(self, name)) for name in names})

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """R^2 of the predictions of a regressor, the share of right ones of a classifier, computed on the workers.

        Parameters
        ----------
        X : dask array or dataframe of shape (n_samples, n_features), or array
        y : dask array or series of shape (n_samples,) or (n_samples, n_targets), or array
        sample_weight : dask array or series of shape (n_samples,), default=None

        Returns
        -------
        float
        """
        if not is_dask_collection(X):
            return float(super().score(X, y, sample_weight))
        return score(self.predict(X), y, sample_weight, classes=hasattr(self, "classes_"))

    def __sklearn_clone__(self) -> Any:
        """A clone with the same client, which cannot be copied."""
        names = [name for name in self._get_param_names() if name != "client"]
        parameters = {name: clone(getattr(self, name), safe=False) for name in names}
        return type(self)(**parameters, client=self.client)

    def __getstate__(self) -> Any:
        """What is pickled: all but the client."""
        return {**super().__getstate__(), "client": None}


class Scores(OnDask):
    """A classifier's scores."""

    def decision_function(self, X: Any) -> Any:
        """Confidence scores, of dask arrays and dataframes a dask array that has not been computed."""
        return self._predicted("decision_function", X)


def _released(found: Fit) -> Fit:
    """A result without the handles of dual variables, which would keep these on the workers."""
    return replace(
        found, results=tuple(replace(one, duals=()) if hasattr(one, "duals") else one for one in found.results)
    )


def _with_client(cls: Class) -> Class:
    """Give an estimator the parameters of its base, and ours."""
    base: Any = next(
        kind for kind in cls.__mro__ if kind.__module__.startswith(here.__name__) and "__init__" in vars(kind)
    )
    theirs = inspect.signature(base.__init__)
    own = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=value) for name, value in OURS.items()]
    signature = theirs.replace(parameters=[*theirs.parameters.values(), *own])

    def __init__(self: Any, *arguments: Any, **parameters: Any) -> None:
        for name, default in OURS.items():
            setattr(self, name, parameters.pop(name, default))
        base.__init__(self, *arguments, **parameters)

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    __init__.__doc__ = None
    cls.__init__ = __init__  # type: ignore[method-assign]
    cls._parameter_constraints = {
        **base._parameter_constraints,
        "client": "no_validation",
        "checkpoint": [str, os.PathLike, None],
        "patience": [Interval(numbers.Real, 0, None, closed="neither")],
    }
    cls.__doc__ = f"`coordwise.estimators.{cls.__name__}` for samples on a Dask cluster; see `coordwise.dask`."
    return cls


@_with_client
class Ridge(OnDask, here.Ridge):  # noqa: D101
    pass


@_with_client
class RidgeClassifier(Scores, here.RidgeClassifier):  # noqa: D101
    pass


@_with_client
class Lasso(OnDask, here.Lasso):  # noqa: D101
    pass


@_with_client
class ElasticNet(OnDask, here.ElasticNet):  # noqa: D101
    pass


@_with_client
class LogisticRegression(Scores, here.LogisticRegression):  # noqa: D101
    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes, of dask arrays and dataframes a dask array that has not been computed."""
        return self._predicted("predict_proba", X)

    def predict_log_proba(self, X: Any) -> Any:
        """Their logarithms; likewise."""
        return self._predicted("predict_log_proba", X)


@_with_client
class LinearSVC(Scores, here.LinearSVC):  # noqa: D101
    pass


@_with_client
class LinearSVR(OnDask, here.LinearSVR):  # noqa: D101
    pass


@_with_client
class HuberRegressor(OnDask, here.HuberRegressor):  # noqa: D101
    pass
