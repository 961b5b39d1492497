"""LogisticRegressionCV: C and l1_ratio chosen by cross-validation."""

from __future__ import annotations

import inspect
import numbers
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import _fit_context
from sklearn.metrics import get_scorer, get_scorer_names, make_scorer
from sklearn.utils._metadata_requests import _raise_for_params, _routing_enabled
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metadata_routing import UNUSED, process_routing

from coordwise.estimators.base import CONSTRAINTS, nothing, with_callbacks
from coordwise.estimators.classifier import Classifier, signs_of
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
    warn_of_folds,
)
from coordwise.estimators.logistic import LogisticRegression
from coordwise.estimators.logistic_path import grid_of, logistic_model, over_C
from coordwise.estimators.progress import Watch
from coordwise.fitting.fit import Fit
from coordwise.fitting.offsets import Offsets
from coordwise.fitting.path import Point
from coordwise.results import Status
from coordwise.validation import FloatArray

__all__ = ["LogisticRegressionCV"]


class LogisticRegressionCV(CrossValidated, Classifier):
    """`LogisticRegression` with C and l1_ratio chosen by cross-validation.

    minimise over w, c   C sum_i s_i log(1 + exp(-b_i (<x_i, w> + c))) + (1 - l1_ratio)/2 |w|^2 + l1_ratio |w|_1,

    with more than two classes the multinomial loss. For every fold and l1_ratio the fits go from the strongest penalty
    to the weakest, each from the last; folds run in threads. With the same parameters the choice, the scores and the
    solution are those of ``sklearn.linear_model.LogisticRegressionCV``. Every fit ends when its duality gap is at most
    tol times the objective at zero (both divided by C sum_i s_i).

    Parameters
    ----------
    Cs : int or array-like, default=10
        Which, or how many between 1e-4 and 1e4.
    l1_ratios : array-like, default=None
        None is (0.0,), with attributes that have no dimension for it.
    fit_intercept : bool, default=True
    cv : int, cross-validation generator or iterable, default=None
        None is five stratified folds.
    scoring : str or callable, default=None
        None is accuracy. scikit-learn announces "neg_log_loss" for version 1.11 and warns until then; here it is what
        is given.
    tol : float, default=1e-4
    max_iter : int, default=100
        Limit on passes over the data, or on steps of Newton's method.
    class_weight : dict or "balanced", default=None
        "balanced" is computed from all samples.
    n_jobs : int, default=None
        Threads over the folds.
    verbose : int, default=0
    refit : bool, default=True
        Fit all samples with what had the best mean score. False takes the means, over the folds, of the coefficients
        and of C and l1_ratio with the best score of each fold; dual_gap_ is then the largest gap of those fits.
    random_state : int, RandomState instance or None, default=None
    use_legacy_attributes : bool, default=True
        Attributes as dicts by class, with C_ and l1_ratio_ repeated for every class; False has plain arrays.
    method, beta, strategy, time_limit, callbacks
        See `coordwise.estimators`. Three quarters of the time limit are for the choice; callbacks watch the last fit.

    Attributes
    ----------
    Cs_, l1_ratios_ : ndarray
        What was tried.
    C_, l1_ratio_ : ndarray of shape (n_classes,), (1,) for two classes, or float
        What was chosen.
    coefs_paths_ : dict of ndarray of shape (n_folds, n_cs, n_dof) or (n_folds, n_cs, n_l1_ratios, n_dof), or ndarray \
of shape (n_folds, n_l1_ratios, n_cs, n_classes, n_dof)
        With the intercept last, if there is one.
    scores_ : dict of ndarray of shape (n_folds, n_cs) or (n_folds, n_cs, n_l1_ratios), or ndarray of shape \
(n_folds, n_l1_ratios, n_cs)
    n_iter_ : ndarray of shape (1, n_folds, n_cs) or (1, n_folds, n_cs, n_l1_ratios), or (n_folds, n_l1_ratios, n_cs)
    """

    __metadata_request__score: ClassVar[dict[str, Any]] = {"sample_weight": UNUSED}  # it is the scorer's

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **CONSTRAINTS,
        "Cs": [Interval(numbers.Integral, 1, None, closed="left"), "array-like"],
        "l1_ratios": ["array-like", None],
        "cv": ["cv_object"],
        "scoring": [StrOptions(set(get_scorer_names())), callable, None],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "refit": ["boolean"],
        "use_legacy_attributes": ["boolean"],
    }

    def __init__(
        self,
        *,
        Cs: Any = 10,
        l1_ratios: Any = None,
        fit_intercept: bool = True,
        cv: Any = None,
        scoring: Any = None,
        tol: float = 1e-4,
        max_iter: int = 100,
        class_weight: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        refit: bool = True,
        random_state: Any = None,
        use_legacy_attributes: bool = True,
        method: Any = "auto",
        beta: float | None = None,
        strategy: str = "auto",
        time_limit: float | None = None,
        callbacks: Any = None,
    ) -> None:
        self.Cs = Cs
        self.l1_ratios = l1_ratios
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.scoring = scoring
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.refit = refit
        self.random_state = random_state
        self.use_legacy_attributes = use_legacy_attributes
        self.method = method
        self.beta = beta
        self.strategy = strategy
        self.time_limit = time_limit
        self.callbacks = callbacks

    C_: Any
    l1_ratio_: Any
    coefs_paths_: Any
    scores_: Any
    predict_proba = LogisticRegression.predict_proba
    predict_log_proba = LogisticRegression.predict_log_proba

    def _scorer_for_routing(self) -> Any:
        return get_scorer(self.scoring or "accuracy")

    @_fit_context(prefer_skip_nested_validation=True)
    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> Any:
        """Choose C and l1_ratio by cross-validation, and fit all samples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Classes.
        sample_weight : float or array-like of shape (n_samples,), default=None
        **params
            For the splitter and the scorer, with scikit-learn's metadata routing.

        Returns
        -------
        self
        """
        split, score = self._routed(sample_weight, params)
        return self._fit(X, y, sample_weight, split=split, score=score)

    def score(self, X: Any, y: Any, *, sample_weight: Any = None, **params: Any) -> float:  # type: ignore[override]
        """The score by `scoring`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
        **params
            For the scorer, with scikit-learn's metadata routing.

        Returns
        -------
        float
        """
        _raise_for_params(params, self, "score")
        given = params if sample_weight is None else params | {"sample_weight": sample_weight}
        if _routing_enabled():
            given = process_routing(self, "score", **given).scorer.score
        return self._scorer_for_routing()(self, X, y, **given)

    def _fit_classes(
        self,
        X: Any,
        y: Any,
        codes: Any,
        offsets: Offsets,
        weights: FloatArray | None,
        watch: Watch,
        split: Any = None,
        score: Any = None,
    ) -> list[Fit]:
        Cs = self.Cs_ = grid_of(self.Cs)
        ratios = self._ratios()
        if isinstance(self.class_weight, dict) and not set(self.class_weight) <= set(self.classes_):
            raise ValueError(
                "The given class_weight dict must have the class labels as keys; "
                f"classes={self.classes_} but key={self.class_weight.keys()}"
            )
        given, weights = weights, self._weighted(y, codes, weights)
        splits = folds_of(self.cv, X, y, classifier=True, params=split or {})
        intercept = bool(self.fit_intercept)

        def build(A: Any, signs: FloatArray, own: FloatArray | None) -> Any:
            return logistic_model(A, signs, own, intercept=intercept)

        signs = signs_of(codes if len(self.classes_) == 2 else codes % 2, 2)  # more classes have no use for them
        order = np.argsort(Cs, kind="stable")
        shape = (len(splits), len(Cs), len(ratios))
        found = np.full(shape, None, object)
        scores = np.full(shape, np.nan)
        scorer = self._scorer_of_folds()

        def fill(over: Halt) -> None:
            folds = prepare(build, X, signs, weights, splits, self.n_jobs, over)

            def one(task: tuple[Any, int, int, Fold], halt: Halt) -> None:
                part, r, k, fold = task
                some = over_C(
                    self._single(ratios[r]),
                    fold.model.A,
                    codes[fold.train],
                    None if weights is None else weights[fold.train],
                    Cs[part],
                    model=fold.model if len(self.classes_) == 2 else None,
                    callback=halt,
                    time_limit=turns.next(),
                )
                params = self._score_params(score, given, fold.test)
                for at, point in zip(part, some, strict=False):
                    if not point.cut:
                        scores[k, at, r] = scorer(self._judge(point), fold.X, y[fold.test], **params)
                        found[k, at, r] = point

            parts, places = [order[part] for part in halves(len(Cs), watch)], range(len(ratios))
            tasks = [(part, r, k, fold) for part in parts for r in places for k, fold in enumerate(folds)]
            turns = Turns(watch, len(tasks), self.n_jobs)
            in_threads(one, tasks, self.n_jobs, over)

        try:
            in_time(watch, fill)
        finally:  # after Ctrl-C, too
            known = np.array([point is not None for point in found.flat]).reshape(shape)
            place = best_of(scores.sum(axis=0), known.all(axis=0))
            C, ratio = (np.nan, np.nan) if place is None else (float(Cs[place[0]]), float(ratios[place[1]]))
            self._set_paths(found, scores, offsets, X.shape[1], C, ratio)
        warn_of_folds(type(self).__name__, [point is not None and point.converged for point in found.flat], self.tol)
        if place is None:
            return [nothing(X.shape, 1 if len(self.classes_) == 2 else len(self.classes_), Status.TIME_LIMIT)]
        if self.refit:
            return [self._refit(X, codes, weights, watch, found[:, place[0], place[1]], C, ratio)]
        last, C, ratio = self._averaged(found, np.where(known, scores, -np.inf))
        self._set_paths(found, scores, offsets, X.shape[1], C, ratio)
        return [last]

    def _ratios(self) -> FloatArray:
        ratios = np.atleast_1d(np.asarray((0.0,) if self.l1_ratios is None else self.l1_ratios, np.float64))
        if not np.all((ratios >= 0) & (ratios <= 1)):
            raise ValueError(
                f"l1_ratios must be array-like of numbers between 0 and 1; got (l1_ratios={self.l1_ratios!r})"
            )
        return ratios

    def _single(self, ratio: float) -> LogisticRegression:
        """The estimator of one C, with the options of every fit."""
        one = LogisticRegression(
            l1_ratio=float(ratio),
            tol=self.tol,
            fit_intercept=self.fit_intercept,
            max_iter=self.max_iter,
            random_state=self.random_state,
            method=self.method,
            beta=self.beta,
            strategy=self.strategy,
            time_limit=self.time_limit,
        )
        one.classes_ = self.classes_
        return one

    def _judge(self, point: Point) -> LogisticRegression:
        """A fitted estimator, for scorers."""
        one = self._single(0.0)
        one.coef_, one.intercept_ = point.w.T, point.c
        one.n_features_in_ = len(point.w)
        return one

    def _scorer_of_folds(self) -> Any:
        """The scorer, told all classes where it would take them from the tested samples."""
        scorer = get_scorer(self.scoring or "accuracy")
        known = inspect.signature(scorer._score_func).parameters if hasattr(scorer, "_score_func") else {}
        if "labels" not in known:
            return scorer
        labels = {"labels": self.classes_}
        if len(self.classes_) == 2 and "pos_label" in known:
            labels["pos_label"] = self.classes_[-1]
        options = labels | getattr(scorer, "_kwargs", {})
        return make_scorer(
            scorer._score_func, greater_is_better=scorer._sign == 1, response_method=scorer._response_method, **options
        )

    @staticmethod
    def _score_params(routed: Any, given: FloatArray | None, test: Any) -> dict[str, Any]:
        if routed is not None:
            return {name: value if value is None else np.asarray(value)[test] for name, value in routed.items()}
        return {} if given is None else {"sample_weight": given[test]}

    def _refit(
        self, X: Any, codes: Any, weights: FloatArray | None, watch: Watch, near: Any, C: float, ratio: float
    ) -> Fit:
        """Fit all samples with the best C and l1_ratio, from the mean of the folds' solutions `near` by."""
        one = self._single(ratio)
        one.C = C
        if len(self.classes_) > 2:
            return one._several(X, codes, weights, None, watch.left(), watch)
        model = logistic_model(X, signs_of(codes, 2), weights, intercept=bool(self.fit_intercept))
        model = model.penalised(one._penalty(model.total))
        w, c = (np.mean([getattr(point, name) for point in near], axis=0) for name in ("w", "c"))
        return self._run(model, watch, start=model.from_primal(w, c if self.fit_intercept else None))

    def _averaged(self, found: Any, scores: FloatArray) -> tuple[Fit, float, float]:
        """The means of the folds' best solutions."""
        best = [np.unravel_index(int(np.argmax(table)), table.shape) for table in scores]
        chosen: list[Point] = [found[k, *at] for k, at in enumerate(best)]
        C = float(np.mean(self.Cs_[[at[0] for at in best]]))
        ratio = float(np.mean(self._ratios()[[at[1] for at in best]]))
        w, c = (np.mean([getattr(point, name) for point in chosen], axis=0) for name in ("w", "c"))
        gap = np.max([point.gap for point in chosen], axis=0)
        status = Status.CONVERGED if all(point.converged for point in chosen) else Status.MAX_PASSES
        passes = float(sum(point.passes for point in chosen))
        unknown, scale = np.full(1, np.nan), np.ones(len(gap))
        last = Fit(w, c, unknown, unknown, gap, scale, status, passes, int(passes), 0.0, "mean of the folds", ())
        return last, C, ratio

    def _set_paths(
        self, found: Any, scores: FloatArray, offsets: Offsets, features: int, C: float, ratio: float
    ) -> None:
        """Attributes of the cross-validation, in scikit-learn's shapes; nan for what was not computed."""
        outputs = 1 if len(self.classes_) == 2 else len(self.classes_)
        intercept = bool(self.fit_intercept)
        coefs = np.full((*found.shape, outputs, features + intercept), np.nan)  # folds, Cs, ratios, classes, features
        steps = np.zeros(found.shape, int)
        for place, point in np.ndenumerate(found):
            if point is not None:
                coefs[*place, :, :features] = point.w.T
                if intercept:
                    coefs[*place, :, -1] = offsets.restored(point.w, point.c)
                steps[place] = max(int(np.ceil(point.passes)), 1)
        self.l1_ratios_ = np.array([None]) if self.l1_ratios is None else np.asarray(self._ratios())
        if not self.use_legacy_attributes:
            self.C_, self.l1_ratio_ = C, ratio
            self.coefs_paths_ = coefs.transpose(0, 2, 1, 3, 4)
            self.scores_, self.n_iter_ = scores.transpose(0, 2, 1), steps.transpose(0, 2, 1)
            return
        names = self.classes_[1:] if outputs == 1 else self.classes_
        self.C_, self.l1_ratio_ = np.full(outputs, C), np.full(outputs, ratio)
        if self.l1_ratios is None:
            coefs, scores, steps = coefs[:, :, 0], scores[:, :, 0], steps[:, :, 0]
        self.coefs_paths_ = {name: coefs[..., k, :] for k, name in enumerate(names)}
        self.scores_ = {name: scores.copy() for name in names}
        self.n_iter_ = steps[None]

    def _iterations(self, fits: Any) -> Any:
        return self.n_iter_

    def _report(self, fits: list[Fit], interrupted: bool) -> None:
        if not self.refit:  # of the folds
            fits = [replace(fits[0], gap=fits[0].gap.max(keepdims=True), scale=np.ones(1))]
        super()._report(fits, interrupted)
