"""Classifiers: LogisticRegression, LinearSVC, RidgeClassifier."""

from __future__ import annotations

import numbers
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, _fit_context, clone
from sklearn.linear_model._base import LinearClassifierMixin, SparseCoefMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.extmath import softmax
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, check_X_y, validate_data

from coordwise.estimators.base import CONSTRAINTS, Linear, method_of, weights_of, with_callbacks
from coordwise.estimators.logistic_path import PathOverC, grid_of, over_C
from coordwise.fitting.multinomial import multinomial
from coordwise.fitting.sparse_multinomial import sparse_multinomial
from coordwise.fitting.unpenalised import penalty_of
from coordwise.losses import Hinge, Logistic, Loss, Squared, SquaredHinge
from coordwise.penalties import ElasticNet as Penalty
from coordwise.validation import FloatArray

__all__ = ["LinearSVC", "LogisticRegression", "RidgeClassifier"]


class _Classifier(LinearClassifierMixin, SparseCoefMixin, ClassifierMixin, Linear):
    """A linear classifier: one binary problem per class (one for two classes), all of them at once."""

    def _loss(self) -> Loss:
        raise NotImplementedError

    def _penalty(self, total: float) -> Penalty:
        raise NotImplementedError

    @_fit_context(prefer_skip_nested_validation=True)
    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Classes.
        sample_weight : float or array-like of shape (n_samples,), default=None

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight)

    def _fit(self, X: Any, y: Any, sample_weight: Any, **routed: Any) -> Any:
        """Check, solve, report; `routed` is what `_fit_classes` may need besides."""
        X, y = validate_data(self, X, y, accept_sparse=["csr", "csc"], dtype=[np.float64, np.float32])
        codes = self._classes(y)
        weights = weights_of(sample_weight, X)
        with self._watching(X, y) as watch:
            fits = self._fit_classes(X, y, codes, weights, watch, **routed)
        coef = np.concatenate([found.w.T for found in fits])
        intercept = np.concatenate([found.c for found in fits])
        self.coef_ = coef.astype(X.dtype, copy=False)
        self.intercept_ = intercept.astype(X.dtype, copy=False) if self.fit_intercept else np.zeros(len(coef), X.dtype)
        self.n_iter_ = self._iterations(fits)
        self._report(fits, len(coef) == 1)
        return self

    def _classes(self, y: Any) -> Any:
        """Set classes_, and return the position in it of every label."""
        check_classification_targets(y)
        self.classes_, codes = _classes(y)
        if len(self.classes_) < 2:
            raise ValueError(
                "This solver needs samples of at least 2 classes in the data, but the data contains only one class: "
                f"{self.classes_[0]!r}"
            )
        return codes

    def _iterations(self, fits: Any) -> Any:
        return max(int(np.ceil(sum(found.passes for found in fits))), 1)

    def _fit_classes(self, X: Any, y: Any, codes: Any, weights: FloatArray | None, watch: Any) -> list[Any]:
        """One fit of all classes at once."""
        weights = self._weighted(y, codes, weights)
        return [self._fit_signs(X, _signs(codes, len(self.classes_)), weights, watch)]

    _balanced_by_weight = True  # whether "balanced" counts samples with their weights, as scikit-learn's twin does

    def _class_weights(self, y: Any, weights: FloatArray | None) -> FloatArray:
        """One weight per class."""
        by = {"sample_weight": weights} if self._balanced_by_weight and weights is not None else {}
        return np.asarray(compute_class_weight(self.class_weight, classes=self.classes_, y=y, **by), np.float64)

    def _weighted(self, y: Any, codes: Any, weights: FloatArray | None) -> FloatArray | None:
        """Sample weights times class weights."""
        if self.class_weight is None:
            return weights
        given = self._class_weights(y, weights)[codes]
        return given if weights is None else given * weights

    def _fit_signs(self, X: Any, signs: FloatArray, weights: FloatArray | None, watch: Any) -> Any:
        total = float(X.shape[0] if weights is None else weights.sum())
        start = self._start((X.shape[1], signs.shape[1]), X.shape[0])
        found = self._fit_model(
            X,
            signs,
            self._loss(),
            self._penalty(total),
            weights,
            intercept=self.fit_intercept,
            start=start,
            watch=watch,
        )
        self._keep(found)
        return found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _classes(y: Any) -> tuple[Any, Any]:
    """The classes in order, and the place of each sample's; two numbers need no sorting."""
    if y.dtype.kind in "fiu" and len(y):
        low, high = y.min(), y.max()
        codes = (y == high).astype(np.intp)
        if low < high and np.all(codes | (y == low)):
            return np.array([low, high], y.dtype), codes
    classes, codes = np.unique(y, return_inverse=True)
    return classes, codes


def _signs(codes: Any, count: int) -> FloatArray:
    """-1/+1, one column per class; one for two classes."""
    if count == 2:
        return np.where(codes == 1, 1.0, -1.0)[:, None]
    return np.where(codes[:, None] == np.arange(count), 1.0, -1.0)


class LogisticRegression(_Classifier):
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

    def _fit_classes(self, X: Any, y: Any, codes: Any, weights: FloatArray | None, watch: Any) -> list[Any]:
        if len(self.classes_) == 2:
            return super()._fit_classes(X, y, codes, weights, watch)
        weights = self._weighted(y, codes, weights)
        total = float(X.shape[0] if weights is None else weights.sum())
        penalty = self._penalty(total)
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
            "start": self._start((X.shape[1], len(self.classes_)), X.shape[0]),
            "time_limit": self.time_limit,
            "callback": watch,
        }
        if penalty.l1 > 0:
            found = sparse_multinomial(X, codes, len(self.classes_), penalty, weights, **options)
        else:
            found = multinomial(X, codes, len(self.classes_), penalty.l2, weights, **options)
        self._keep(found)
        return [found]

    def _report(self, fits: list[Any], flat: bool) -> None:
        super()._report(fits, flat)
        if len(self.classes_) > 2:
            self.dual_gap_ = float(fits[0].gap[0])

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
            most tol times the objective at zero) and converged, from the smallest C up.

        Raises
        ------
        ValueError
            For a C that is not positive, for fewer than two classes, and for wrong data.
        """
        self._validate_params()
        X, y = check_X_y(X, y, accept_sparse=["csr", "csc"], dtype=[np.float64, np.float32])
        one = clone(self)
        codes = one._classes(y)
        values = np.sort(grid_of(Cs))
        weights = one._weighted(y, codes, weights_of(sample_weight, X))
        found = over_C(one, X, codes, weights, values)
        return PathOverC(
            values,
            one.classes_,
            np.array([point.w.T for point in found]),
            np.array([point.c for point in found]),
            np.array([point.gap.max() for point in found]),
            np.array([point.converged for point in found]),
        )

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


class LinearSVC(_Classifier):
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

    def _fit_classes(self, X: Any, y: Any, codes: Any, weights: FloatArray | None, watch: Any) -> list[Any]:
        if self.penalty == "l1" and self.loss == "hinge":
            raise ValueError(
                "Unsupported set of arguments: The combination of penalty='l1' and loss='hinge' is not supported. Use "
                "loss='squared_hinge'."
            )
        if self.class_weight is None or len(self.classes_) == 2:
            return super()._fit_classes(X, y, codes, weights, watch)
        given = self._class_weights(y, weights)[codes]
        fits = []
        for k in range(len(self.classes_)):
            own = np.where(codes == k, given, 1.0)
            signs = np.where(codes == k, 1.0, -1.0)[:, None]
            fits.append(self._fit_signs(X, signs, own if weights is None else own * weights, watch))
        return fits


class RidgeClassifier(_Classifier):
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
