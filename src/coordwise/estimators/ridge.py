"""The squared loss with an l2 penalty: Ridge, RidgeClassifier."""

from __future__ import annotations

import numbers
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import validate_data

from coordwise.estimators.alpha_path import Penalised, checked
from coordwise.estimators.base import CONSTRAINTS, joined, narrowed, nothing, one_by_one, weights_of
from coordwise.estimators.classifier import Classifier
from coordwise.estimators.elsewhere import refuse_source
from coordwise.estimators.multilabel import Multilabel
from coordwise.estimators.progress import Watch
from coordwise.fitting.elsewhere import Elsewhere, unfitted
from coordwise.fitting.fit import Fit
from coordwise.fitting.model import Candidate
from coordwise.fitting.offsets import Offsets
from coordwise.fitting.unpenalised import penalty_of
from coordwise.interrupts import Failed, Interrupted
from coordwise.losses import Loss, Squared
from coordwise.penalties import ElasticNet as Penalty
from coordwise.results import Status
from coordwise.second_moments import MOST_FEATURES, SecondMoments
from coordwise.validation import FloatArray

__all__ = ["Ridge", "RidgeClassifier"]


class Ridge(Penalised):
    """minimise over w, c   sum_i s_i (y_i - <x_i, w> - c)^2 + alpha |w|^2.

    With the same parameters the solution is that of ``sklearn.linear_model.Ridge``. The fit ends when the duality gap
    is at most tol times the objective at zero, both for the objective above divided by 2 sum_i s_i.

    Parameters
    ----------
    alpha : float or ndarray of shape (n_targets,), default=1.0
        At least 0; an array has one for every target. Without a penalty this is least squares: of several solutions,
        that of smallest |w|.
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
        "alpha": [Interval(numbers.Real, 0, None, closed="left"), np.ndarray],
        "positive": ["boolean"],
    }

    def __init__(
        self,
        alpha: Any = 1.0,
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
        return self._l2(float(self.alpha), total)

    def _l2(self, alpha: float, total: float) -> Penalty:
        return penalty_of(0.0, alpha / total, bool(self.positive))

    def _solve(
        self,
        X: Any,
        y: Any,
        targets: FloatArray,
        offsets: Offsets,
        weights: FloatArray | None,
        start: Candidate | None,
        watch: Watch,
    ) -> Fit:
        """All targets at once if they share alpha, else one after the other."""
        self.__dict__.pop("_batches", None)  # `partial_fit` begins anew
        outputs = targets.shape[1]
        alphas, total = self._alphas(outputs), float(len(targets) if weights is None else weights.sum())

        def one(k: int, which: slice) -> Fit:
            if k > 0 and watch.left() == 0:
                return nothing(X.shape, 1, Status.TIME_LIMIT)
            some, penalty = np.ascontiguousarray(targets[:, which]), self._l2(float(alphas[k]), total)
            intercept = bool(self.fit_intercept)
            return self._fit_model(X, some, self._loss(), penalty, weights, watch, intercept=intercept)

        if np.all(alphas == alphas[0]):
            return one(0, slice(None))
        each = (one(k, slice(k, k + 1)) for k in range(outputs))
        try:
            return joined(one_by_one(each, outputs, nothing(X.shape, 1, Status.INTERRUPTED)))
        except Interrupted as stop:
            raise Interrupted(str(stop), joined(stop.result)) from None

    def _solve_source(self, data: Elsewhere, outputs: int, watch: Watch) -> Fit:
        """See `_solve`."""
        self.__dict__.pop("_batches", None)
        alphas = self._alphas(outputs)

        def one(k: int, some: Elsewhere, count: int) -> Fit:
            if k > 0 and watch.left() == 0:
                return unfitted((data.source.shape[1], 1), Status.TIME_LIMIT)
            return self._fit_data(some, self._loss(), partial(self._l2, float(alphas[k])), count, watch)

        if np.all(alphas == alphas[0]):
            return one(0, data, outputs)
        each = (one(k, data.column(k), 1) for k in range(outputs))
        try:
            return joined(one_by_one(each, outputs, unfitted((data.source.shape[1], 1), Status.INTERRUPTED)))
        except (Interrupted, Failed) as stop:
            left = None if stop.result is None else joined(stop.result)
            raise type(stop)(str(stop), left) from stop.__cause__

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Take in one more batch of samples: afterwards the model is that of all batches since the last `fit`, exactly.

        Of the samples only means and products of features with each other are kept, d^2 numbers. `dual_gap_` is
        a bound of P(w, c) - min P that allows for the rounding of these numbers (with alpha=0 and features that depend
        on each other it is P(0)), `n_samples_seen_` counts the samples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : float or array-like of shape (n_samples,), default=None

        Returns
        -------
        self

        Raises
        ------
        ValueError
            Also for ``positive=True`` and for more than 10,000 features, which need the samples themselves: use `fit`.
        """
        refuse_source(X, "Ridge.partial_fit", "use fit")
        before: SecondMoments | None = getattr(self, "_batches", None)
        if self.positive:
            raise ValueError("partial_fit does not take positive=True, which needs the samples themselves; use fit.")
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse=["csr", "csc"],
            dtype=[np.float64, np.float32],
            multi_output=True,
            y_numeric=True,
            reset=before is None,
        )
        if X.shape[1] > MOST_FEATURES:
            raise ValueError(f"X has {X.shape[1]} features; partial_fit takes at most {MOST_FEATURES}. Use fit.")
        targets = np.asarray(y, np.float64).reshape(len(y), -1)
        if before is not None and before.cross.shape[1] != targets.shape[1]:
            raise ValueError(f"y has {targets.shape[1]} targets; the batches before had {before.cross.shape[1]}.")
        now = SecondMoments.of(X, targets, weights_of(sample_weight, X), center=bool(self.fit_intercept))
        self._batches = now if before is None else before + now
        w, c, gap = self._batches.ridge(self._alphas(targets.shape[1]))
        kind, flat = X.dtype, targets.shape[1] == 1
        self.coef_ = narrowed(w.T[0] if flat else w.T, kind)
        self.intercept_ = narrowed(c[0] if y.ndim == 1 else c, kind) if self.fit_intercept else 0.0
        self.dual_gap_ = float(gap[0]) if flat else gap
        self.n_iter_, self.passes_ = self._batches.batches, 1.0
        self.n_samples_seen_ = self._batches.samples
        self.strategy_ = f"moments: {self._batches.samples} samples in {self._batches.batches} batches"
        return self

    def _alphas(self, outputs: int) -> FloatArray:
        """One alpha for every target."""
        alphas = np.asarray(checked(np.ravel(self.alpha), "alpha"), np.float64)
        if len(alphas) not in (1, outputs):
            raise ValueError(
                f"Number of targets and number of penalties do not correspond: {len(alphas)} != {outputs}. Give one "
                "alpha, or one for every target."
            )
        return np.broadcast_to(alphas, (outputs,))


class RidgeClassifier(Multilabel, Classifier):
    """Ridge regression on labels -1 and +1, one problem per class with more than two classes, or per label.

    With y of zeros and ones, a column for every label, each label is decided by itself.

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
