"""Regressors: Ridge, Lasso, ElasticNet, LinearSVR, L2L1Regressor."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin, _fit_context, clone
from sklearn.linear_model._base import LinearModel as _Predictor
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_X_y, validate_data

from coordwise.erm import ERM
from coordwise.estimators.base import CONSTRAINTS, Linear, weights_of, with_callbacks
from coordwise.fitting.fit import Fit
from coordwise.fitting.model import LinearModel
from coordwise.fitting.path import points, values_of
from coordwise.fitting.unpenalised import penalty_of
from coordwise.losses import L2L1, EpsilonInsensitive, Loss, Squared, SquaredEpsilonInsensitive
from coordwise.penalties import ElasticNet as Penalty
from coordwise.validation import FloatArray

__all__ = ["ElasticNet", "L2L1Regressor", "Lasso", "LinearSVR", "Path", "Ridge"]


@dataclass(frozen=True)
class Path:
    """A regularisation path: a model for every alpha, from the largest down."""

    alphas: FloatArray
    coefs: FloatArray
    intercepts: FloatArray
    dual_gaps: FloatArray
    converged: Any


class _Regressor(MultiOutputMixin, RegressorMixin, _Predictor, Linear):
    """A linear regressor: subclasses give a loss and a penalty."""

    _parameter_constraints: ClassVar[dict[str, Any]] = CONSTRAINTS

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


class _Penalised(_Regressor):
    """A regressor whose penalty has the weight alpha."""

    def path(self, X: Any, y: Any, alphas: Any = 100, *, eps: float = 1e-3, sample_weight: Any = None) -> Path:
        """The models for a grid of alphas, each fit started from the last; the estimator itself is left as it is.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        alphas : int or array-like, default=100
            Which, or how many between the smallest alpha with solution 0 and `eps` times it (penalties with an l1
            part only).
        eps : float, default=1e-3
        sample_weight : float or array-like of shape (n_samples,), default=None

        Returns
        -------
        Path
            alphas, coefs (n_alphas x n_features), intercepts, dual_gaps (each at most tol times the objective at zero)
            and converged, from the largest alpha down.

        Raises
        ------
        ValueError
            For a number of alphas without an l1 part, and for wrong data.
        """
        self._validate_params()
        X, y = check_X_y(X, y, accept_sparse=["csr", "csc"], dtype=[np.float64, np.float32], y_numeric=True)
        weights = weights_of(sample_weight, X)
        total = float(len(y) if weights is None else weights.sum())

        def penalty(alpha: float) -> Penalty:
            return clone(self).set_params(alpha=float(alpha))._penalty(total)

        one = penalty(1.0)
        targets = np.asarray(y, np.float64)[:, None]
        problem = ERM(X, targets, loss=self._loss(), penalty=one, sample_weight=weights)
        model = LinearModel(problem, bool(self.fit_intercept))
        if isinstance(alphas, numbers.Integral) and one.l1 == 0:
            raise ValueError(f"alphas={alphas} is a number of values, which needs an l1 penalty; give the values.")
        values = values_of(alphas, model, one.l1, eps=float(eps))
        fits = points(model, [penalty(alpha) for alpha in values], **self._options())
        return Path(
            values,
            np.array([found.w[:, 0] for found in fits]),
            np.array([found.c[0] for found in fits]),
            np.array([found.gap[0] for found in fits]),
            np.array([found.converged for found in fits]),
        )


class Ridge(_Penalised):
    """minimise over w, c   sum_i s_i (y_i - <x_i, w> - c)^2 + alpha |w|^2.

    With the same parameters the solution is that of ``sklearn.linear_model.Ridge``. The fit ends when the duality gap
    is at most tol times the objective at zero, both for the objective above divided by 2 sum_i s_i.

    Parameters
    ----------
    alpha : float, default=1.0
        At least 0. Without a penalty this is least squares: of several solutions, that of smallest |w|.
    fit_intercept : bool, default=True
    max_iter : int, default=None
        Limit on passes over the data; 1000 if None.
    tol : float, default=1e-4
    positive : bool, default=False
    random_state : int, RandomState instance or None, default=None
    method, beta, strategy, time_limit, verbose, callbacks, n_jobs
        See `coordwise.estimators`.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **CONSTRAINTS,
        "alpha": [Interval(numbers.Real, 0, None, closed="left")],
        "positive": ["boolean"],
    }

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        max_iter: int | None = None,
        tol: float = 1e-4,
        positive: bool = False,
        random_state: Any = None,
        method: Any = "auto",
        beta: float | None = None,
        strategy: str = "auto",
        time_limit: float | None = None,
        verbose: int = 0,
        callbacks: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.positive = positive
        self.random_state = random_state
        self.method = method
        self.beta = beta
        self.strategy = strategy
        self.time_limit = time_limit
        self.verbose = verbose
        self.callbacks = callbacks
        self.n_jobs = n_jobs

    def _penalty(self, total: float) -> Penalty:
        return penalty_of(0.0, float(self.alpha) / total, bool(self.positive))


class ElasticNet(_Penalised):
    """minimise over w, c   P(w, c) = (1/(2W)) sum_i s_i (y_i - <x_i, w> - c)^2 + alpha l1_ratio |w|_1
    + alpha (1 - l1_ratio)/2 |w|^2,   W = sum_i s_i.

    With the same parameters the solution is that of ``sklearn.linear_model.ElasticNet``. The fit ends when the duality
    gap is at most tol * P(0, 0).

    Parameters
    ----------
    alpha : float, default=1.0
        At least 0; 0 is least squares as for `Ridge`, and no worse a problem than others.
    l1_ratio : float, default=0.5
    fit_intercept : bool, default=True
    max_iter : int, default=1000
        Limit on passes over the data.
    tol : float, default=1e-4
    warm_start, positive : bool, default=False
    random_state : int, RandomState instance or None, default=None
    method, beta, strategy, time_limit, verbose, callbacks, n_jobs
        See `coordwise.estimators`.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **CONSTRAINTS,
        "alpha": [Interval(numbers.Real, 0, None, closed="left")],
        "l1_ratio": [Interval(numbers.Real, 0, 1, closed="both")],
        "positive": ["boolean"],
        "warm_start": ["boolean"],
    }

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        l1_ratio: float = 0.5,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float = 1e-4,
        warm_start: bool = False,
        positive: bool = False,
        random_state: Any = None,
        method: Any = "auto",
        beta: float | None = None,
        strategy: str = "auto",
        time_limit: float | None = None,
        verbose: int = 0,
        callbacks: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.positive = positive
        self.random_state = random_state
        self.method = method
        self.beta = beta
        self.strategy = strategy
        self.time_limit = time_limit
        self.verbose = verbose
        self.callbacks = callbacks
        self.n_jobs = n_jobs

    def _penalty(self, total: float) -> Penalty:
        ratio = float(self.l1_ratio)
        return penalty_of(float(self.alpha) * ratio, float(self.alpha) * (1 - ratio), bool(self.positive))


class Lasso(ElasticNet):
    """minimise over w, c   P(w, c) = (1/(2W)) sum_i s_i (y_i - <x_i, w> - c)^2 + alpha |w|_1,   W = sum_i s_i.

    With the same parameters the solution is that of ``sklearn.linear_model.Lasso``. The fit ends when the duality gap
    is at most tol * P(0, 0).

    Parameters
    ----------
    alpha : float, default=1.0
        At least 0; 0 is least squares as for `Ridge`, and no worse a problem than others.
    fit_intercept : bool, default=True
    max_iter : int, default=1000
        Limit on passes over the data.
    tol : float, default=1e-4
    warm_start, positive : bool, default=False
    random_state : int, RandomState instance or None, default=None
    method, beta, strategy, time_limit, verbose, callbacks, n_jobs
        See `coordwise.estimators`.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        name: rule for name, rule in ElasticNet._parameter_constraints.items() if name != "l1_ratio"
    }

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float = 1e-4,
        warm_start: bool = False,
        positive: bool = False,
        random_state: Any = None,
        method: Any = "auto",
        beta: float | None = None,
        strategy: str = "auto",
        time_limit: float | None = None,
        verbose: int = 0,
        callbacks: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.positive = positive
        self.random_state = random_state
        self.method = method
        self.beta = beta
        self.strategy = strategy
        self.time_limit = time_limit
        self.verbose = verbose
        self.callbacks = callbacks
        self.n_jobs = n_jobs

    def _penalty(self, total: float) -> Penalty:
        return penalty_of(float(self.alpha), 0.0, bool(self.positive))


class L2L1Regressor(_Penalised):
    """minimise over w, c   P(w, c) = (1/W) sum_i s_i (r_i^2/2 + |r_i|) + (alpha/2) |w|^2,   r_i = <x_i, w> + c - y_i.

    The l2-l1 penalty regression of the paper (section 7.2). The fit ends when the duality gap is at most tol * P(0, 0).

    Parameters
    ----------
    alpha : float, default=1e-4
    fit_intercept : bool, default=True
    max_iter : int, default=1000
        Limit on passes over the data.
    tol : float, default=1e-4
    warm_start : bool, default=False
    random_state : int, RandomState instance or None, default=None
    method, beta, strategy, time_limit, verbose, callbacks, n_jobs
        See `coordwise.estimators`.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **CONSTRAINTS,
        "alpha": [Interval(numbers.Real, 0, None, closed="neither")],
        "warm_start": ["boolean"],
    }

    def __init__(
        self,
        alpha: float = 1e-4,
        *,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float = 1e-4,
        warm_start: bool = False,
        random_state: Any = None,
        method: Any = "auto",
        beta: float | None = None,
        strategy: str = "auto",
        time_limit: float | None = None,
        verbose: int = 0,
        callbacks: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.random_state = random_state
        self.method = method
        self.beta = beta
        self.strategy = strategy
        self.time_limit = time_limit
        self.verbose = verbose
        self.callbacks = callbacks
        self.n_jobs = n_jobs

    def _loss(self) -> Loss:
        return L2L1()

    def _penalty(self, total: float) -> Penalty:
        return Penalty(0.0, float(self.alpha))


class LinearSVR(_Regressor):
    """minimise over w, c   (1/2)(|w|^2 + c^2/intercept_scaling^2) + C sum_i s_i loss(y_i - <x_i, w> - c).

    loss(r) = max(|r| - epsilon, 0) or its square. With the same parameters the solution is that of
    ``sklearn.svm.LinearSVR``, which penalises the intercept; ``intercept_scaling=inf`` does not. The fit ends when the
    duality gap is at most tol times the objective at zero (both divided by C sum_i s_i, and by 2 for the square).

    Parameters
    ----------
    epsilon : float, default=0.0
    tol : float, default=1e-4
    C : float, default=1.0
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, default="epsilon_insensitive"
    fit_intercept : bool, default=True
    intercept_scaling : float, default=1.0
    verbose : int, default=0
    random_state : int, RandomState instance or None, default=None
    max_iter : int, default=1000
        Limit on passes over the data.
    method, beta, strategy, time_limit, callbacks, n_jobs
        See `coordwise.estimators`.
    """

    _multi_output = False
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **CONSTRAINTS,
        "epsilon": [Interval(numbers.Real, 0, None, closed="left")],
        "C": [Interval(numbers.Real, 0, None, closed="neither")],
        "loss": [StrOptions({"epsilon_insensitive", "squared_epsilon_insensitive"})],
        "intercept_scaling": [Interval(numbers.Real, 0, np.inf, closed="right")],
    }

    def __init__(
        self,
        *,
        epsilon: float = 0.0,
        tol: float = 1e-4,
        C: float = 1.0,
        loss: str = "epsilon_insensitive",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        verbose: int = 0,
        random_state: Any = None,
        max_iter: int = 1000,
        method: Any = "auto",
        beta: float | None = None,
        strategy: str = "auto",
        time_limit: float | None = None,
        callbacks: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.tol = tol
        self.C = C
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.random_state = random_state
        self.max_iter = max_iter
        self.method = method
        self.beta = beta
        self.strategy = strategy
        self.time_limit = time_limit
        self.verbose = verbose
        self.callbacks = callbacks
        self.n_jobs = n_jobs

    def _loss(self) -> Loss:
        kind = EpsilonInsensitive if self.loss == "epsilon_insensitive" else SquaredEpsilonInsensitive
        return kind(epsilon=float(self.epsilon))

    def _penalty(self, total: float) -> Penalty:
        factor = 1.0 if self.loss == "epsilon_insensitive" else 2.0
        return Penalty(0.0, 1 / (factor * float(self.C) * total))
