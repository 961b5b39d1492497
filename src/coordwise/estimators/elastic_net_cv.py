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

from coordwise.erm import ERM
from coordwise.estimators.base import CONSTRAINTS, with_callbacks
from coordwise.estimators.folds import CrossValidated, Fold, folds_of, halves, in_threads, prepare, warn_of_folds
from coordwise.estimators.regressor import Regressor
from coordwise.fitting.fit import Fit
from coordwise.fitting.model import LinearModel
from coordwise.fitting.path import points, values_of
from coordwise.penalties import ElasticNet as Penalty
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
        See `coordwise.estimators`. The time limit is that of a single fit; callbacks watch the last one.

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
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Any:
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
        self, X: Any, targets: FloatArray, weights: FloatArray | None, start: Any, watch: Any, split: Any = None
    ) -> Fit:
        """Choose alpha and l1_ratio by cross-validation, and fit all data with them."""
        whole = self._model(X, targets, weights)
        ratios = self._ratios()
        splits = folds_of(self.cv, X, targets[:, 0], classifier=False, params=split or {})
        folds = prepare(self._model, X, targets, weights, splits, self.n_jobs, whole)
        grids = np.array([self._grid(whole, ratio) for ratio in ratios])
        tables = np.empty((*grids.shape, len(folds)))
        converged = np.empty(tables.shape, bool)

        def errors(task: tuple[slice, int, int, Fold], halt: Any) -> None:
            part, r, k, fold = task
            penalties = [self._elastic_net(alpha, ratios[r]) for alpha in grids[r, part]]
            found = points(fold.model, penalties, callback=halt, **self._options())
            converged[r, part, k] = [point.converged for point in found]
            scores = fold.X @ np.column_stack([point.w[:, 0] for point in found])
            residuals = np.asarray(scores) + np.array([point.c[0] for point in found]) - targets[fold.test]
            tables[r, part, k] = np.average(residuals**2, axis=0, weights=fold.weights)

        parts = reversed(halves(grids.shape[1]))  # weak penalties take longest
        tasks = [(part, r, k, fold) for part in parts for r in range(len(ratios)) for k, fold in enumerate(folds)]
        in_threads(errors, tasks, self.n_jobs)
        warn_of_folds(type(self).__name__, converged, self.tol)
        share = None if weights is None else [weights[test].sum() for _, test in splits]
        mean = np.average(tables, axis=-1, weights=share)
        best = np.unravel_index(int(np.argmin(mean)), mean.shape)
        self.l1_ratio_, self.alpha_ = ratios[best[0]], float(grids[best])
        self.mse_path_ = tables[0] if len(ratios) == 1 else tables
        self.alphas_ = grids[0] if len(ratios) == 1 else grids
        chosen = whole.penalised(self._elastic_net(self.alpha_, self.l1_ratio_))
        near = points(whole, [chosen.penalty], callback=watch, **self._options())[0]
        return self._run(chosen, start=chosen.from_primal(near.w, near.c), watch=watch)

    def _model(self, X: Any, targets: FloatArray, weights: FloatArray | None) -> LinearModel:
        penalty = self._elastic_net(1.0, 0.5)  # of no consequence: `path` gives it others
        return LinearModel(ERM(X, targets, penalty=penalty, sample_weight=weights), self.fit_intercept)

    def _elastic_net(self, alpha: float, ratio: float) -> Penalty:
        return Penalty(float(alpha) * ratio, float(alpha) * (1 - ratio), bool(self.positive))

    def _grid(self, model: LinearModel, ratio: float) -> FloatArray:
        if isinstance(self.alphas, numbers.Integral) and ratio == 0:
            raise ValueError(
                "Automatic alpha grid generation is not supported for l1_ratio=0. Please supply a grid by providing "
                "your estimator with the appropriate `alphas=` argument."
            )
        return values_of(self.alphas, model, ratio, eps=float(self.eps))


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
