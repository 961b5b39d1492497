"""LogisticRegression, for two classes or more."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.extmath import softmax
from sklearn.utils.validation import check_is_fitted, check_X_y

from coordwise.coupled import OneHot, Softmax
from coordwise.estimators.base import CONSTRAINTS, method_of, weights_of
from coordwise.estimators.classifier import Classifier
from coordwise.estimators.elsewhere import Labels, refuse_source
from coordwise.estimators.logistic_path import PathOverC, grid_of, over_C
from coordwise.estimators.progress import Watch
from coordwise.fitting.fit import Fit
from coordwise.fitting.model import Candidate
from coordwise.fitting.multinomial import multinomial
from coordwise.fitting.offsets import Offsets
from coordwise.fitting.path import Point
from coordwise.fitting.sparse_multinomial import sparse_multinomial
from coordwise.fitting.unpenalised import penalty_of
from coordwise.interrupts import Interrupted
from coordwise.losses import Logistic, Loss
from coordwise.penalties import ElasticNet as Penalty
from coordwise.recording import Progress
from coordwise.samples.source import Source
from coordwise.validation import FloatArray

__all__ = ["LogisticRegression"]


class LogisticRegression(Classifier):
    """minimise over w, c   C sum_i s_i log(1 + exp(-b_i (<x_i, w> + c))) + (1 - l1_ratio)/2 |w|^2 + l1_ratio |w|_1.

    With more than two classes, the multinomial loss. With the same parameters the solution is that of
    ``sklearn.linear_model.LogisticRegression``; the intercept is not penalised. The fit ends when the duality gap is at
    most tol times the objective at zero (both divided by C sum_i s_i).

    With C = inf there is no penalty, and a minimum only if no hyperplane separates the classes. If one does, also one
    that some samples lie on, or if there are fewer samples than features, the fit ends with a ConvergenceWarning, large
    coefficients and an infinite dual_gap_.

    Parameters
    ----------
    C : float, default=1.0
        Positive; inf for no penalty.
    l1_ratio : float, default=0.0
    tol : float, default=1e-4
    fit_intercept : bool, default=True
    class_weight : dict or "balanced", default=None
    random_state : int, RandomState instance or None, default=None
    max_iter : int, default=100
        Limit on passes over the data, or on steps of Newton's method.
    verbose : int, default=0
    warm_start : bool, default=False
    method, beta, strategy, time_limit, callbacks, n_jobs
        See `coordwise.estimators`.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **CONSTRAINTS,
        "C": [Interval(numbers.Real, 0, None, closed="right")],
        "l1_ratio": [Interval(numbers.Real, 0, 1, closed="both")],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "warm_start": ["boolean"],
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
        l1_ratio: float = 0.0,
        tol: float = 1e-4,
        fit_intercept: bool = True,
        class_weight: Any = None,
        random_state: Any = None,
        max_iter: int = 100,
        verbose: int = 0,
        warm_start: bool = False,
        method: Any = "auto",
        beta: float | None = None,
        strategy: str = "auto",
        time_limit: float | None = None,
        callbacks: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.C = C
        self.l1_ratio = l1_ratio
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.random_state = random_state
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.method = method
        self.beta = beta
        self.strategy = strategy
        self.time_limit = time_limit
        self.verbose = verbose
        self.callbacks = callbacks
        self.n_jobs = n_jobs

    def _loss(self) -> Loss:
        return Logistic()

    def _penalty(self, total: float) -> Penalty:
        lam, ratio = 1 / (float(self.C) * total), float(self.l1_ratio)
        return penalty_of(lam * ratio, lam * (1 - ratio))

    def _fit_classes(
        self, X: Any, y: Any, codes: Any, offsets: Offsets, weights: FloatArray | None, watch: Watch
    ) -> list[Fit]:
        if len(self.classes_) == 2:
            return super()._fit_classes(X, y, codes, offsets, weights, watch)
        start = self._start((X.shape[1], len(self.classes_)), X.shape[0], offsets)
        return [self._several(X, codes, self._weighted(y, codes, weights), start, watch.left(), watch)]

    def _solve_source(self, source: Source, labels: Labels, watch: Watch) -> list[Fit]:
        if len(labels.values) == 2:
            return super()._solve_source(source, labels, watch)
        weights = labels.weights(self._class_weights_elsewhere(labels))
        data = self._data(source, OneHot(tuple(labels.values.tolist())), weights)
        return [self._fit_data(data, Softmax(), self._penalty, len(labels.values), watch)]

    def _several(
        self,
        X: Any,
        codes: Any,
        weights: FloatArray | None,
        start: Candidate | None,
        time_limit: float | None,
        callback: Callable[[Progress], object] | None,
    ) -> Fit:
        """The multinomial fit; `weights` include those of the classes."""
        penalty = self._penalty(float(X.shape[0] if weights is None else weights.sum()))
        if self.strategy not in ("auto", "working_set" if penalty.l1 > 0 else "newton"):
            raise ValueError(
                f"strategy={self.strategy!r} does not apply here: more than two classes are fitted by Newton's method "
                "or L-BFGS, and on working sets with an l1 penalty. Use strategy='auto'."
            )
        method_of(self.method, self.beta)  # refuses what has no meaning; the method itself is for coordinates
        options: dict[str, Any] = {
            "intercept": self.fit_intercept,
            "tol": float(self.tol),
            "most": int(self.max_iter or 100),
            "start": start,
            "time_limit": time_limit,
            "callback": callback,
        }
        if penalty.l1 > 0:
            return sparse_multinomial(X, codes, len(self.classes_), penalty, weights, **options)
        return multinomial(X, codes, len(self.classes_), penalty.l2, weights, **options)

    def _iterations(self, fits: Any) -> Any:
        return np.array([super()._iterations(fits)], np.int32)  # scikit-learn's has one entry, too

    def path(self, X: Any, y: Any, Cs: Any = 10, *, sample_weight: Any = None) -> PathOverC:
        """The models for a grid of C, each fit started from the last; the estimator itself is left as it is.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Classes.
        Cs : int or array-like, default=10
            Which, or how many between 1e-4 and 1e4.
        sample_weight : float or array-like of shape (n_samples,), default=None

        Returns
        -------
        PathOverC
            Cs, classes, coefs (n_Cs x n_classes x n_features, one row for two classes), intercepts, dual_gaps (each at
            most tol times the objective at zero) and converged, from the smallest C up; fewer models if `time_limit`,
            that of the whole path, came first.

        Raises
        ------
        ValueError
            For a C that is not positive, for fewer than two classes, and for wrong data.
        coordwise.Interrupted
            On Ctrl-C, with the path so far as its `result`.
        """
        self._validate_params()
        refuse_source(X, "LogisticRegression.path", "fit for each C, with warm_start=True")
        X, y = check_X_y(X, y, accept_sparse=["csr", "csc"], dtype=[np.float64, np.float32])
        one = clone(self)
        codes = one._classes(y)
        values = np.sort(grid_of(Cs))
        weights = one._weighted(y, codes, weights_of(sample_weight, X))
        X, _, offsets = one._near_zero(X, np.zeros((len(y), 1)), weights, one._loss())

        def assembled(found: list[Point]) -> PathOverC:
            return PathOverC(
                values[: len(found)],
                one.classes_,
                np.array([point.w.T for point in found]),
                np.array([offsets.restored(point.w, point.c) for point in found]),
                np.array([point.gap.max() for point in found]),
                np.array([point.converged for point in found]),
            )

        try:
            return assembled(over_C(one, X, codes, weights, values, time_limit=self.time_limit))
        except Interrupted as stop:
            raise Interrupted(str(stop), assembled(stop.result)) from None

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the classes, in the order of classes_.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        scores = self.decision_function(X)
        if scores.ndim == 1:
            scores = np.column_stack([np.zeros_like(scores), scores])
        return softmax(scores, copy=False)

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logarithms of the probabilities of the classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return np.log(self.predict_proba(X))
