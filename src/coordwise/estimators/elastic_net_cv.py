"""ElasticNetCV and LassoCV: alpha and l1_ratio chosen by cross-validation.

Folds run in threads, with the GIL released. With few features the data are read once for the Gram matrices of all
folds, and the whole grid of a fold comes from its matrix; else every fit starts from the last.
"""

from __future__ import annotations

import numbers
from typing import Any, ClassVar

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval

from coordwise.estimators.alpha_path import checked
from coordwise.estimators.base import CONSTRAINTS, Data, nothing, with_callbacks
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
from coordwise.estimators.progress import Watch
from coordwise.estimators.regressor import Regressor
from coordwise.fitting.fit import Fit
from coordwise.fitting.model import Candidate, LinearModel
from coordwise.fitting.offsets import Offsets
from coordwise.fitting.path import points, values_of
from coordwise.penalties import ElasticNet as Penalty
from coordwise.results import Status
from coordwise.validation import FloatArray

__all__ = ["ElasticNetCV", "LassoCV"]


class ElasticNetCV(CrossValidated, Regressor):
    """`ElasticNet` with alpha and l1_ratio chosen by cross-validation on the mean squared error.

    minimise over w, c   P(w, c) = (1/(2W)) sum_i s_i (y_i - <x_i, w> - c)^2 + alpha l1_ratio |w|_1
    + alpha (1 - l1_ratio)/2 |w|^2,   W = sum_i s_i.

    For every l1_ratio, alphas run from the smallest with solution 0 down to eps times it. With the same parameters the
    choice is that of ``sklearn.linear_model.ElasticNetCV``. Every fit ends when its duality gap is at most
    tol * P(0, 0); the last one, on all data, leaves its certificate behind.

    Parameters
    ----------
    l1_ratio : float or list of float, default=0.5
    eps : float, default=1e-3
    alphas : int or array-like, default=100
        How many, or which.
    fit_intercept : bool, default=True
    max_iter : int, default=1000
    tol : float, default=1e-4
    cv : int, cross-validation generator or iterable, default=None
    verbose : int, default=0
    n_jobs : int, default=None
        Threads over the folds.
    positive : bool, default=False
    random_state : int, RandomState instance or None, default=None
    method, beta, strategy, time_limit, callbacks
        See `coordwise.estimators`. Three quarters of the time limit are for the choice; callbacks watch the last fit.

    Attributes
    ----------
    alpha_, l1_ratio_ : float
        What was chosen.
    alphas_ : ndarray of shape (n_alphas,) or (n_l1_ratio, n_alphas)
    mse_path_ : ndarray of shape (n_l1_ratio, n_alphas, n_folds), or (n_alphas, n_folds) for one l1_ratio
    """

    _multi_output = False
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **CONSTRAINTS,
        "l1_ratio": [Interval(numbers.Real, 0, 1, closed="both"), "array-like"],
        "eps": [Interval(numbers.Real, 0, None, closed="neither")],
        "alphas": ["array-like", Interval(numbers.Integral, 1, None, closed="left")],
        "cv": ["cv_object"],
        "positive": ["boolean"],
    }

    def __init__(
        self,
        *,
        l1_ratio: Any = 0.5,
        eps: float = 1e-3,
        alphas: Any = 100,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float = 1e-4,
        cv: Any = None,
        verbose: int = 0,
        n_jobs: int | None = None,
        positive: bool = False,
        random_state: Any = None,
        method: Any = "auto",
        beta: float | None = None,
        strategy: str = "auto",
        time_limit: float | None = None,
        callbacks: Any = None,
    ) -> None:
        self.l1_ratio = l1_ratio
        self.eps = eps
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.cv = cv
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.positive = positive
        self.random_state = random_state
        self.method = method
        self.beta = beta
        self.strategy = strategy
        self.time_limit = time_limit
        self.callbacks = callbacks

    @_fit_context(prefer_skip_nested_validation=True)
    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> Any:
        """Choose by cross-validation, and fit all samples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : float or array-like of shape (n_samples,), default=None
        **params
            For the splitter, with scikit-learn's metadata routing.

        Returns
        -------
        self
        """
        split, _ = self._routed(sample_weight, params)
        return self._fit(X, y, sample_weight, split=split)

    def _ratios(self) -> list[float]:
        return [float(ratio) for ratio in np.atleast_1d(self.l1_ratio)]

    def _solve(
        self,
        X: Any,
        y: Any,
        targets: FloatArray,
        offsets: Offsets,
        weights: FloatArray | None,
        start: Candidate | None,
        watch: Watch,
        split: Any = None,
    ) -> Fit:
        """Choose alpha and l1_ratio by cross-validation, and fit all data with them."""
        ratios = self._ratios()
        splits = folds_of(self.cv, X, targets[:, 0], classifier=False, params=split or {})
        count = int(self.alphas) if isinstance(self.alphas, numbers.Integral) else len(self.alphas)
        grids = np.full((len(ratios), count), np.nan)
        table = np.full((*grids.shape, len(splits)), np.nan)  # mean squared errors
        converged = np.zeros(table.shape, bool)
        whole = self._model(X, targets, weights)

        def fill(over: Halt) -> None:
            folds = prepare(self._model, X, targets, weights, splits, self.n_jobs, over, whole)
            grids[:] = [self._grid(whole, ratio) for ratio in ratios]

            def errors(task: tuple[slice, int, int, Fold], halt: Halt) -> None:
                part, r, k, fold = task
                penalties = [self._elastic_net(alpha, ratios[r]) for alpha in grids[r, part]]
                options = self._options(turns.next())
                found = [one for one in points(fold.model, penalties, callback=halt, **options) if not one.cut]
                done = slice(part.start, part.start + len(found))
                converged[r, done, k] = [point.converged for point in found]
                if not found or (fold.weights is not None and not fold.weights.any()):
                    return
                scores = fold.X @ np.column_stack([point.w[:, 0] for point in found])
                residuals = np.asarray(scores) + np.array([point.c[0] for point in found]) - targets[fold.test]
                table[r, done, k] = np.average(residuals**2, axis=0, weights=fold.weights)

            parts, places = halves(count, watch), range(len(ratios))
            tasks = [(part, r, k, fold) for part in parts for r in places for k, fold in enumerate(folds)]
            turns = Turns(watch, len(tasks), self.n_jobs)
            in_threads(errors, tasks, self.n_jobs, over)

        try:
            in_time(watch, fill)
        finally:  # after Ctrl-C, too
            self._decide(grids, ratios, table, [weights is None or weights[test].any() for _, test in splits])
        warn_of_folds(type(self).__name__, converged, self.tol)
        if np.isnan(self.alpha_):
            return nothing(X.shape, 1, Status.TIME_LIMIT)
        chosen = whole.penalised(self._elastic_net(self.alpha_, self.l1_ratio_))
        near = points(whole, [chosen.penalty], callback=watch, **self._options(watch.left()))[0]
        return self._run(chosen, watch, start=chosen.from_primal(near.w, near.c))

    def _decide(self, grids: FloatArray, ratios: list[float], table: FloatArray, used: list[Any]) -> None:
        """Set the attributes of the choice: the mean over the folds decides, with and without weights.

        Folds that test nothing but samples of weight 0 are left out of it.
        """
        mean = table[:, :, np.array(used, bool)].mean(axis=-1) if any(used) else np.full(grids.shape, np.nan)
        best = best_of(-mean, np.isfinite(mean))
        self.l1_ratio_, self.alpha_ = (ratios[0], np.nan) if best is None else (ratios[best[0]], float(grids[best]))
        self.mse_path_ = table[0] if len(ratios) == 1 else table
        self.alphas_ = grids if len(ratios) > 1 and isinstance(self.alphas, numbers.Integral) else grids[0]

    def _model(self, X: Any, targets: FloatArray, weights: FloatArray | None) -> LinearModel:
        penalty = self._elastic_net(1.0, 0.5)  # of no consequence: `path` gives it others
        return LinearModel(Data(X, targets, penalty=penalty, sample_weight=weights), self.fit_intercept)

    def _elastic_net(self, alpha: float, ratio: float) -> Penalty:
        return Penalty(float(alpha) * ratio, float(alpha) * (1 - ratio), bool(self.positive))

    def _grid(self, model: LinearModel, ratio: float) -> FloatArray:
        if isinstance(self.alphas, numbers.Integral) and ratio == 0:
            raise ValueError(
                "Automatic alpha grid generation is not supported for l1_ratio=0. Please supply a grid by providing "
                "your estimator with the appropriate `alphas=` argument."
            )
        return values_of(checked(self.alphas), model, ratio, eps=float(self.eps))


class LassoCV(ElasticNetCV):
    """`Lasso` with alpha chosen by cross-validation on the mean squared error; see `ElasticNetCV`.

    Parameters
    ----------
    eps : float, default=1e-3
    alphas : int or array-like, default=100
    fit_intercept : bool, default=True
    max_iter : int, default=1000
    tol : float, default=1e-4
    cv : int, cross-validation generator or iterable, default=None
    verbose : int, default=0
    n_jobs : int, default=None
    positive : bool, default=False
    random_state : int, RandomState instance or None, default=None
    method, beta, strategy, time_limit, callbacks
        See `coordwise.estimators`.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        name: rule for name, rule in ElasticNetCV._parameter_constraints.items() if name != "l1_ratio"
    }
    l1_ratio = 1.0

    def __init__(
        self,
        *,
        eps: float = 1e-3,
        alphas: Any = 100,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float = 1e-4,
        cv: Any = None,
        verbose: int = 0,
        n_jobs: int | None = None,
        positive: bool = False,
        random_state: Any = None,
        method: Any = "auto",
        beta: float | None = None,
        strategy: str = "auto",
        time_limit: float | None = None,
        callbacks: Any = None,
    ) -> None:
        self.eps = eps
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.cv = cv
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.positive = positive
        self.random_state = random_state
        self.method = method
        self.beta = beta
        self.strategy = strategy
        self.time_limit = time_limit
        self.callbacks = callbacks
