"""Support vector machines: LinearSVC, LinearSVR."""

from __future__ import annotations

import numbers
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from coordwise.estimators.base import CONSTRAINTS, nothing, one_by_one
from coordwise.estimators.classifier import Classifier
from coordwise.estimators.elsewhere import Labels, OneAgainstAll
from coordwise.estimators.progress import Watch
from coordwise.estimators.regressor import Regressor
from coordwise.fitting.elsewhere import unfitted
from coordwise.fitting.fit import Fit
from coordwise.fitting.offsets import Offsets
from coordwise.losses import EpsilonInsensitive, Hinge, Loss, SquaredEpsilonInsensitive, SquaredHinge
from coordwise.penalties import ElasticNet as Penalty
from coordwise.results import Status
from coordwise.samples.source import Source
from coordwise.validation import FloatArray

__all__ = ["LinearSVC", "LinearSVR"]


class LinearSVC(Classifier):
    """minimise over w, c   (1/2)(|w|^2 + c^2/intercept_scaling^2) + C sum_i s_i loss(b_i (<x_i, w> + c)).

    loss(t) = max(1 - t, 0) (hinge) or its square. With penalty="l1" the first term is |w|_1 + |c|/intercept_scaling.
    One problem per class against the rest with more than two classes. With the same parameters the solution is that of
    ``sklearn.svm.LinearSVC``, which penalises the intercept; ``intercept_scaling=inf`` does not. The fit ends when the
    duality gap is at most tol times the objective at zero (both divided by C sum_i s_i, and by 2 for the square).

    Parameters
    ----------
    penalty : {"l1", "l2"}, default="l2"
        "l1" needs the squared hinge; a ValueError says so.
    loss : {"hinge", "squared_hinge"}, default="squared_hinge"
    dual : "auto" or bool, default="auto"
        Of no consequence, for code written for scikit-learn: the solution is the same, and `strategy` says how it is
        found.
    tol : float, default=1e-4
    C : float, default=1.0
    fit_intercept : bool, default=True
    intercept_scaling : float, default=1.0
    class_weight : dict or "balanced", default=None
        As in LIBLINEAR: with more than two classes, the weight of a class counts in its own problem, and the rest
        has weight 1 there.
    verbose : int, default=0
    random_state : int, RandomState instance or None, default=None
    max_iter : int, default=1000
        Limit on passes over the data, or on steps of Newton's method.
    method, beta, strategy, time_limit, callbacks, n_jobs
        See `coordwise.estimators`.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **CONSTRAINTS,
        "penalty": [StrOptions({"l1", "l2"})],
        "loss": [StrOptions({"hinge", "squared_hinge"})],
        "dual": ["boolean", StrOptions({"auto"})],
        "C": [Interval(numbers.Real, 0, None, closed="neither")],
        "intercept_scaling": [Interval(numbers.Real, 0, np.inf, closed="right")],
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    def __init__(
        self,
        penalty: str = "l2",
        loss: str = "squared_hinge",
        *,
        dual: str | bool = "auto",
        tol: float = 1e-4,
        C: float = 1.0,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        class_weight: Any = None,
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
        self.penalty = penalty
        self.loss = loss
        self.dual = dual
        self.tol = tol
        self.C = C
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
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
        return Hinge() if self.loss == "hinge" else SquaredHinge()

    def _penalty(self, total: float) -> Penalty:
        lam = 1 / ((1.0 if self.loss == "hinge" else 2.0) * float(self.C) * total)
        return Penalty(lam, 0.0) if self.penalty == "l1" else Penalty(0.0, lam)

    def _fit_classes(
        self, X: Any, y: Any, codes: Any, offsets: Offsets, weights: FloatArray | None, watch: Watch
    ) -> list[Fit]:
        self._refuse_l1_of_hinge()
        if self.class_weight is None or len(self.classes_) == 2:
            return super()._fit_classes(X, y, codes, offsets, weights, watch)
        given = self._class_weights(y, weights)[codes]

        def against_the_rest(k: int) -> Fit:
            if k > 0 and watch.left() == 0:
                return nothing(X.shape, 1, Status.TIME_LIMIT)
            own = np.where(codes == k, given, 1.0)
            signs = np.where(codes == k, 1.0, -1.0)[:, None]
            return self._fit_signs(X, signs, offsets, own if weights is None else own * weights, watch)

        count = len(self.classes_)
        return one_by_one(map(against_the_rest, range(count)), count, nothing(X.shape, 1, Status.INTERRUPTED))

    def _solve_source(self, source: Source, labels: Labels, watch: Watch) -> list[Fit]:
        self._refuse_l1_of_hinge()
        given = self._class_weights_elsewhere(labels)
        if given is None or len(labels.values) == 2:
            return super()._solve_source(source, labels, watch)
        d, count = source.shape[1], len(labels.values)

        def against_the_rest(k: int) -> Fit:
            if k > 0 and watch.left() == 0:
                return unfitted((d, 1), Status.TIME_LIMIT)
            own = labels.weights(np.where(np.arange(count) == k, given, 1.0))
            data = self._data(source, OneAgainstAll(float(labels.values[k])), own)
            return self._fit_data(data, self._loss(), self._penalty, 1, watch)

        return one_by_one(map(against_the_rest, range(count)), count, unfitted((d, 1), Status.INTERRUPTED))

    def _refuse_l1_of_hinge(self) -> None:
        if self.penalty == "l1" and self.loss == "hinge":
            raise ValueError(
                "Unsupported set of arguments: The combination of penalty='l1' and loss='hinge' is not supported. Use "
                "loss='squared_hinge'."
            )


class LinearSVR(Regressor):
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
