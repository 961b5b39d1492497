"""The squared loss with an l1 penalty, alone or with an l2 one: ElasticNet, Lasso."""

from __future__ import annotations

import numbers
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import Interval

from coordwise.estimators.alpha_path import Penalised
from coordwise.estimators.base import CONSTRAINTS
from coordwise.fitting.unpenalised import penalty_of
from coordwise.penalties import ElasticNet as Penalty

__all__ = ["ElasticNet", "Lasso"]


class ElasticNet(Penalised):
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

    @property
    def sparse_coef_(self) -> Any:
        """``coef_`` as a sparse array with a row for every target."""
        return sp.csr_array(np.atleast_2d(self.coef_))

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
