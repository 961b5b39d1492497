"""The squared loss with an l2 penalty: Ridge, RidgeClassifier."""

from __future__ import annotations

import numbers
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from coordwise.estimators.alpha_path import Penalised
from coordwise.estimators.base import CONSTRAINTS
from coordwise.estimators.classifier import Classifier
from coordwise.fitting.unpenalised import penalty_of
from coordwise.losses import Loss, Squared
from coordwise.penalties import ElasticNet as Penalty

__all__ = ["Ridge", "RidgeClassifier"]


class Ridge(Penalised):
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


class RidgeClassifier(Classifier):
    """Ridge regression on labels -1 and +1, one problem per class with more than two classes.

    With the same parameters the solution is that of ``sklearn.linear_model.RidgeClassifier``. The fit ends when the
    duality gap is at most tol times the objective at zero, as for `Ridge`.

    Parameters
    ----------
    alpha : float, default=1.0
        At least 0, which is least squares as for `Ridge`.
    fit_intercept : bool, default=True
    max_iter : int, default=None
        Limit on passes over the data; 1000 if None.
    tol : float, default=1e-4
    class_weight : dict or "balanced", default=None
    positive : bool, default=False
    random_state : int, RandomState instance or None, default=None
    method, beta, strategy, time_limit, verbose, callbacks, n_jobs
        See `coordwise.estimators`.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **CONSTRAINTS,
        "alpha": [Interval(numbers.Real, 0, None, closed="left")],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "positive": ["boolean"],
    }

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        max_iter: int | None = None,
        tol: float = 1e-4,
        class_weight: Any = None,
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
        self.class_weight = class_weight
        self.positive = positive
        self.random_state = random_state
        self.method = method
        self.beta = beta
        self.strategy = strategy
        self.time_limit = time_limit
        self.verbose = verbose
        self.callbacks = callbacks
        self.n_jobs = n_jobs

    _balanced_by_weight = False

    def _loss(self) -> Loss:
        return Squared()

    def _penalty(self, total: float) -> Penalty:
        return penalty_of(0.0, float(self.alpha) / total, bool(self.positive))
