"""The choice of alpha for the squared loss, by leaving out one sample at a time or by folds."""

from __future__ import annotations

import numbers
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, is_classifier
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.metrics import check_scoring, get_scorer, get_scorer_names
from sklearn.utils import check_scalar
from sklearn.utils._metadata_requests import _routing_enabled
from sklearn.utils._param_validation import Interval, StrOptions

from coordwise.erm import ERM
from coordwise.estimators.base import CONSTRAINTS, Linear
from coordwise.estimators.folds import (
    CrossValidated,
    Fold,
    folds_of,
    halves,
    in_threads,
    prepare,
    score_params,
    warn_of_folds,
)
from coordwise.estimators.ridge import Ridge, RidgeClassifier
from coordwise.fitting.fit import Fit
from coordwise.fitting.leave_one_out import LeaveOneOut
from coordwise.fitting.model import LinearModel
from coordwise.fitting.path import points
from coordwise.penalties import ElasticNet as Penalty
from coordwise.validation import FloatArray

__all__ = ["AlphaCV"]


class AlphaCV(CrossValidated, Linear):
    """The choice of alpha for the squared loss: of all outputs at once, or of each output."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **CONSTRAINTS,
        "alphas": ["array-like", Interval(numbers.Real, 0, None, closed="neither")],
        "scoring": [StrOptions(set(get_scorer_names())), callable, None],
        "cv": ["cv_object"],
        "store_cv_results": ["boolean"],
    }
    gcv_mode: Any = None
    alpha_per_target = False
    alpha_: Any
    best_score_: Any

    def _scorer_for_routing(self) -> Any:
        if self.scoring is not None:
            return check_scoring(self, scoring=self.scoring)
        if not _routing_enabled():
            return None
        return get_scorer("accuracy" if is_classifier(self) else "r2").set_score_request(sample_weight=True)

    def _alphas(self) -> FloatArray:
        alphas = np.atleast_1d(np.asarray(self.alphas, np.float64)).reshape(-1)
        for k, alpha in enumerate(alphas):
            name = f"alphas[{k}]" if len(alphas) > 1 else "alphas"
            check_scalar(float(alpha), name, numbers.Real, min_val=0.0, include_boundaries="neither")
        return alphas

    def _choose(
        self, X: Any, y: Any, targets: FloatArray, weights: FloatArray | None, watch: Any, split: Any, score: Any
    ) -> Fit:
        """Choose alpha, and fit all samples with it."""
        alphas = self._alphas()
        whole = self._model(X, targets, weights)
        if self.cv is None:
            held = LeaveOneOut(X, targets, weights, intercept=bool(self.fit_intercept), svd=self.gcv_mode == "svd")
            self._leave_one_out(held, y, alphas, weights, score, X.dtype)
            fits = []
            for k, alpha in enumerate(np.atleast_1d(self.alpha_)):
                model = whole if np.ndim(self.alpha_) == 0 else self._model(X, targets[:, [k]], weights)
                model = model.penalised(Penalty(0.0, float(alpha) / model.total))
                w, c = held.coefficients(float(alpha))
                if np.ndim(self.alpha_):
                    w, c = w[:, [k]], c[[k]]
                fits.append(self._run(model, start=model.from_primal(np.ascontiguousarray(w), c), watch=watch))
            return _joined(fits)
        for name in ("store_cv_results", "alpha_per_target"):
            if getattr(self, name):
                raise ValueError(f"cv!=None and {name}=True are incompatible")
        splits = folds_of(self.cv, X, y, classifier=is_classifier(self), params=split)
        folds = prepare(self._model, X, targets, weights, splits, self.n_jobs, whole)
        table = self._fold_scores(folds, y, alphas, weights, score)
        best = int(np.argmax(np.nan_to_num(table.mean(axis=0), nan=-np.inf)))
        self.alpha_, self.best_score_ = float(alphas[best]), float(table[:, best].mean())
        chosen = whole.penalised(Penalty(0.0, self.alpha_ / whole.total))
        return self._run(chosen, watch=watch)

    def _model(self, X: Any, targets: FloatArray, weights: FloatArray | None) -> LinearModel:
        penalty = Penalty(0.0, 1.0)  # of no consequence: others take its place
        return LinearModel(ERM(X, targets, penalty=penalty, sample_weight=weights), bool(self.fit_intercept))

    def _leave_one_out(
        self, held: LeaveOneOut, y: Any, alphas: FloatArray, weights: FloatArray | None, score: Any, dtype: Any
    ) -> None:
        errors = held.errors(alphas)
        each = self.alpha_per_target and errors.shape[1] > 1
        if self.scoring is None:
            results = held.s[:, None, None] * errors**2
            scores = -results.mean(axis=0 if each else (0, 1))
        else:
            results = held.b[:, :, None] - errors
            scores = self._score_predictions(results, y, weights, score, each)
        comparable = np.nan_to_num(scores, nan=-np.inf)
        best = np.argmax(comparable, axis=-1)
        self.alpha_ = alphas[best] if each else float(alphas[best])
        self.best_score_ = np.take_along_axis(scores, best[:, None], 1)[:, 0] if each else float(scores[best])
        if self.store_cv_results:
            flat = not is_classifier(self) and np.ndim(y) == 1
            self.cv_results_ = (results[:, 0] if flat else results).astype(dtype, copy=False)

    def _score_predictions(
        self, predictions: FloatArray, y: Any, weights: FloatArray | None, score: Any, each: bool
    ) -> FloatArray:
        """Scores of the predictions (n x K x alphas) by `scoring`: one per alpha, or K x alphas."""
        scorer = check_scoring(self, scoring=self.scoring)
        params = score_params(scorer, score, weights, slice(None), type(self).__name__)
        if is_classifier(self):
            judge: Any = _Decided(self.classes_)
            flat = predictions.shape[1] == 1
        else:
            judge, flat = _Predicted(), np.ndim(y) == 1
        tables = [predictions[:, 0, k] if flat else predictions[:, :, k] for k in range(predictions.shape[2])]
        if each:
            columns = range(predictions.shape[1])
            return np.array([[scorer(judge, table[:, j], y[:, j], **params) for table in tables] for j in columns])
        return np.array([scorer(judge, table, y, **params) for table in tables])

    def _fold_scores(
        self, folds: list[Fold], y: Any, alphas: FloatArray, weights: FloatArray | None, score: Any
    ) -> FloatArray:
        """Scores of the folds (folds x alphas), as scikit-learn's GridSearchCV has them."""
        judge: Any = RidgeClassifier() if is_classifier(self) else Ridge()
        scorer = check_scoring(judge, scoring=self.scoring)
        order = np.argsort(-alphas, kind="stable")
        converged: list[bool] = []

        table = np.empty((len(folds), len(alphas)))
        params = [score_params(scorer, score, weights, fold.test, type(self).__name__) for fold in folds]

        def one(task: tuple[slice, int], halt: Any) -> None:
            part, f = task
            fold = folds[f]
            penalties = [Penalty(0.0, float(alpha) / fold.model.total) for alpha in alphas[order[part]]]
            found = points(fold.model, penalties, callback=halt, **self._options())
            converged.extend(point.converged for point in found)
            for k, point in zip(order[part], found, strict=True):
                model = self._as_model(alphas[k], point, flat=np.ndim(y) == 1)
                table[f, k] = scorer(model, fold.X, y[fold.test], **params[f])

        in_threads(one, [(part, f) for part in halves(len(alphas)) for f in range(len(folds))], self.n_jobs)
        warn_of_folds(type(self).__name__, converged, self.tol)
        return table

    def _as_model(self, alpha: float, point: Any, flat: bool) -> Any:
        """A fitted estimator without cross-validation, for scorers."""
        coef, intercept = point.w.T, point.c
        if is_classifier(self):
            model: Any = RidgeClassifier(alpha=float(alpha), fit_intercept=self.fit_intercept)
            model.classes_ = self.classes_
        else:
            model = Ridge(alpha=float(alpha), fit_intercept=self.fit_intercept)
            coef, intercept = (coef[0], intercept[0]) if flat else (coef, intercept)
        model.coef_, model.intercept_ = coef, intercept
        model.n_features_in_ = coef.shape[-1]
        return model


class _Predicted(RegressorMixin, BaseEstimator):
    """Its input is its prediction."""

    def predict(self, X: Any) -> Any:
        """X itself."""
        return X


class _Decided(LinearClassifierMixin, BaseEstimator):
    """Its input is its decision function."""

    def __init__(self, classes: Any) -> None:
        self.classes = self.classes_ = classes

    def decision_function(self, X: Any) -> Any:
        """X itself."""
        return X


def _joined(fits: list[Fit]) -> Fit:
    """Fits of one output each as one of several."""
    if len(fits) == 1:
        return fits[0]
    table: dict[str, Any] = {
        name: np.concatenate([getattr(one, name) for one in fits], axis=-1) for name in ("w", "c", "y")
    }
    table |= {name: np.concatenate([getattr(one, name) for one in fits]) for name in ("value", "gap", "scale")}
    bad = [one.status for one in fits if not one.converged]
    return replace(
        fits[0],
        **table,
        status=bad[0] if bad else fits[0].status,
        passes=max(one.passes for one in fits),
        iterations=max(one.iterations for one in fits),
        seconds=sum(one.seconds for one in fits),
        results=sum((one.results for one in fits), ()),
    )
