"""The choice of alpha for the squared loss, by leaving out one sample at a time or by folds."""

from __future__ import annotations

import numbers
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, is_classifier
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.metrics import check_scoring, get_scorer, get_scorer_names
from sklearn.utils._metadata_requests import _routing_enabled
from sklearn.utils._param_validation import Interval, StrOptions

from coordwise.estimators.alpha_path import checked
from coordwise.estimators.base import CONSTRAINTS, Data, Linear, joined, narrowed, nothing, one_by_one
from coordwise.estimators.folds import (
    CrossValidated,
    Fold,
    Halt,
    Turns,
    best_of,
    folds_of,
    halves,
    in_threads,
    in_time,
    prepare,
    score_params,
    warn_of_folds,
)
from coordwise.estimators.multilabel import Multilabel
from coordwise.estimators.progress import Watch
from coordwise.estimators.ridge import Ridge, RidgeClassifier
from coordwise.fitting.fit import Fit
from coordwise.fitting.leave_one_out import LeaveOneOut
from coordwise.fitting.model import LinearModel
from coordwise.fitting.offsets import Offsets
from coordwise.fitting.path import Point, points
from coordwise.fitting.unpenalised import penalty_of
from coordwise.interrupts import Interrupted
from coordwise.penalties import ElasticNet as Penalty
from coordwise.results import Status
from coordwise.validation import FloatArray

__all__ = ["AlphaCV"]


class AlphaCV(CrossValidated, Linear):
    """The choice of alpha for the squared loss: of all outputs at once, or of each output."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **CONSTRAINTS,
        "alphas": ["array-like", Interval(numbers.Real, 0, None, closed="left")],
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
        return np.asarray(checked(self.alphas if np.ndim(self.alphas) == 1 else np.ravel(self.alphas)), np.float64)

    def _choose(
        self,
        X: Any,
        y: Any,
        targets: FloatArray,
        offsets: Offsets,
        weights: FloatArray | None,
        watch: Watch,
        split: Any,
        score: Any,
    ) -> Fit:
        """Choose alpha, and fit all samples with it."""
        alphas = self._alphas()
        outputs = targets.shape[1]
        each = self.cv is None and self.alpha_per_target and outputs > 1
        self.alpha_ = self.best_score_ = np.full(outputs, np.nan) if each else np.nan  # if it ends before
        whole = self._model(X, targets, weights)
        if self.cv is None:
            held = self._leave_one_out(X, y, targets, offsets, weights, alphas, watch, score)
            if held is None:
                return nothing(X.shape, outputs, Status.TIME_LIMIT)
            chosen = np.atleast_1d(self.alpha_)

            def one(k: int) -> Fit:
                model = self._model(X, targets[:, [k]], weights) if each else whole
                model = model.penalised(penalty_of(0.0, float(chosen[k]) / model.total))
                w, _ = held.coefficients(float(chosen[k]))
                return self._run(model, watch, start=model.from_primal(np.ascontiguousarray(w[:, [k]] if each else w)))

            none = nothing(X.shape, 1 if each else outputs, Status.INTERRUPTED)
            try:
                return joined(one_by_one(map(one, range(len(chosen))), len(chosen), none))
            except Interrupted as stop:
                raise Interrupted(str(stop), joined(stop.result)) from None
        for name in ("store_cv_results", "alpha_per_target"):
            if getattr(self, name):
                raise ValueError(f"cv!=None and {name}=True are incompatible")
        splits = folds_of(self.cv, X, y, classifier=is_classifier(self), params=split)
        scored, converged, table = np.zeros((3, len(splits), len(alphas)))

        def fill(over: Halt) -> None:
            folds = prepare(self._model, X, targets, weights, splits, self.n_jobs, over, whole)
            self._score_folds(folds, y, offsets, alphas, weights, score, watch, over, scored, converged, table)

        try:
            in_time(watch, fill)
            warn_of_folds(type(self).__name__, converged[scored > 0], self.tol)
        finally:  # after Ctrl-C, too
            best = best_of(table.mean(axis=0), np.all(scored > 0, axis=0))
            if best is not None:
                self.alpha_, self.best_score_ = float(alphas[best]), float(table[:, best[0]].mean())
        if best is None:
            return nothing(X.shape, outputs, Status.TIME_LIMIT)
        return self._run(whole.penalised(penalty_of(0.0, float(self.alpha_) / whole.total)), watch)

    def _model(self, X: Any, targets: FloatArray, weights: FloatArray | None) -> LinearModel:
        penalty = Penalty(0.0, 1.0)  # of no consequence: others take its place
        return LinearModel(Data(X, targets, penalty=penalty, sample_weight=weights), bool(self.fit_intercept))

    def _leave_one_out(
        self,
        X: Any,
        y: Any,
        targets: FloatArray,
        offsets: Offsets,
        weights: FloatArray | None,
        alphas: FloatArray,
        watch: Watch,
        score: Any,
    ) -> LeaveOneOut | None:
        """Choose by leaving out one sample at a time; None if the time limit came first."""

        def compute(_: Halt) -> tuple[LeaveOneOut, FloatArray]:
            svd = self.gcv_mode == "svd"
            held = LeaveOneOut(X, targets, weights, intercept=bool(self.fit_intercept), svd=svd)
            return held, held.errors(alphas)

        found = in_time(watch, compute)
        if found is None:
            return None
        held, errors = found
        each = np.ndim(self.alpha_) == 1
        if self.scoring is None:
            results = held.s[:, None, None] * errors**2
            scores = -results.mean(axis=0 if each else (0, 1))
        else:
            results = (targets + offsets.level)[:, :, None] - errors
            scores = self._score_predictions(results, y, weights, score, each)
        comparable = np.nan_to_num(scores, nan=-np.inf)
        best = np.argmax(comparable, axis=-1)
        self.alpha_ = alphas[best] if each else float(alphas[best])
        self.best_score_ = np.take_along_axis(scores, best[:, None], 1)[:, 0] if each else float(scores[best])
        if self.store_cv_results:
            flat = not is_classifier(self) and np.ndim(y) == 1
            self.cv_results_ = narrowed(results[:, 0] if flat else results, X.dtype)
        return held

    def _score_predictions(
        self, predictions: FloatArray, y: Any, weights: FloatArray | None, score: Any, each: bool
    ) -> FloatArray:
        """Scores of the predictions (n x K x alphas) by `scoring`: one per alpha, or K x alphas."""
        scorer = check_scoring(self, scoring=self.scoring)
        params = score_params(scorer, score, weights, slice(None), type(self).__name__)
        if is_classifier(self):
            judge: Any = _Decided(self.classes_, self._several)
            flat = predictions.shape[1] == 1
        else:
            judge, flat = _Predicted(), np.ndim(y) == 1
        tables = [predictions[:, 0, k] if flat else predictions[:, :, k] for k in range(predictions.shape[2])]
        if each:
            columns = range(predictions.shape[1])
            return np.array([[scorer(judge, table[:, j], y[:, j], **params) for table in tables] for j in columns])
        return np.array([scorer(judge, table, y, **params) for table in tables])

    def _score_folds(
        self,
        folds: list[Fold],
        y: Any,
        offsets: Offsets,
        alphas: FloatArray,
        weights: FloatArray | None,
        score: Any,
        watch: Watch,
        over: Halt,
        scored: FloatArray,
        converged: FloatArray,
        table: FloatArray,
    ) -> None:
        """Fill in the scores of the folds (folds x alphas), as scikit-learn's GridSearchCV has them."""
        judge: Any = RidgeClassifier() if is_classifier(self) else Ridge()
        scorer = check_scoring(judge, scoring=self.scoring)
        order = np.argsort(-alphas, kind="stable")
        params = [score_params(scorer, score, weights, fold.test, type(self).__name__) for fold in folds]

        def one(task: tuple[slice, int], halt: Halt) -> None:
            part, f = task
            fold = folds[f]
            penalties = [penalty_of(0.0, float(alpha) / fold.model.total) for alpha in alphas[order[part]]]
            found = points(fold.model, penalties, callback=halt, **self._options(turns.next()))
            for k, point in zip(order[part], found, strict=False):
                if not point.cut:
                    model = self._as_model(alphas[k], point, offsets, flat=np.ndim(y) == 1)
                    table[f, k] = scorer(model, fold.X, y[fold.test], **params[f])
                    scored[f, k], converged[f, k] = 1, point.converged

        tasks = [(part, f) for part in halves(len(alphas), watch) for f in range(len(folds))]
        turns = Turns(watch, len(tasks), self.n_jobs)
        in_threads(one, tasks, self.n_jobs, over)

    def _as_model(self, alpha: float, point: Point, offsets: Offsets, flat: bool) -> Any:
        """A fitted estimator without cross-validation, for scorers, whose features are those near 0."""
        coef, intercept = point.w.T, point.c + offsets.level
        if is_classifier(self):
            model: Any = RidgeClassifier(alpha=float(alpha), fit_intercept=self.fit_intercept)
            model.classes_, model._several = self.classes_, self._several
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


class _Decided(Multilabel, LinearClassifierMixin, BaseEstimator):
    """Its input is its decision function."""

    def __init__(self, classes: Any, several: bool) -> None:
        self.classes = self.classes_ = classes
        self.several = self._several = several

    def decision_function(self, X: Any) -> Any:
        """X itself."""
        return X
