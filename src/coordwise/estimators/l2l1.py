"""L2L1Regressor: the l2-l1 penalty regression of the paper."""

from __future__ import annotations

import numbers
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from coordwise.estimators.alpha_path import Penalised
from coordwise.estimators.base import CONSTRAINTS
from coordwise.losses import L2L1, Loss
from coordwise.penalties import ElasticNet as Penalty

__all__ = ["L2L1Regressor"]


class L2L1Regressor(Penalised):
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
