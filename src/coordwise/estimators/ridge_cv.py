"""RidgeCV and RidgeClassifierCV: alpha chosen by leaving out one sample at a time, or by folds."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.base import _fit_context
from sklearn.utils._param_validation import StrOptions

from coordwise.estimators.alpha_cv import AlphaCV
from coordwise.estimators.base import with_callbacks
from coordwise.estimators.classifier import Classifier, signs_of
from coordwise.estimators.multilabel import Multilabel
from coordwise.estimators.progress import Watch
from coordwise.estimators.regressor import Regressor
from coordwise.fitting.fit import Fit
from coordwise.fitting.model import Candidate
from coordwise.fitting.offsets import Offsets
from coordwise.validation import FloatArray

__all__ = ["RidgeCV", "RidgeClassifierCV"]


class RidgeCV(AlphaCV, Regressor):
    """`Ridge` with alpha chosen by cross-validation: minimise sum_i s_i (y_i - <x_i, w> - c)^2 + alpha |w|^2.

    By default every sample is left out in turn, exactly, by one eigendecomposition for all alphas: of a matrix of the
    features if these are fewer than the samples, else of one of the samples; sparse X stays sparse. With ``cv`` given,
    folds run in threads. With the same parameters the choice, the scores and the solution are those of
    ``sklearn.linear_model.RidgeCV``. The last fit, of all samples, ends when its duality gap is at most tol times the
    objective at zero, as for `Ridge`.

    Parameters
    ----------
    alphas : float or array-like, default=(0.1, 1.0, 10.0)
        At least 0.
    fit_intercept : bool, default=True
    scoring : str or callable, default=None
        None: the negative mean squared error if samples are left out one at a time, R^2 for folds.
    cv : int, cross-validation generator or iterable, default=None
        None: one sample at a time. That is refused if both the samples and the features are more than 16384, since the
        matrix to decompose would not fit into 2 GiB; give a number of folds then.
    gcv_mode : {"auto", "svd", "eigen"}, default=None
        "svd" decomposes dense X itself, without squaring its condition number.
    store_cv_results : bool, default=False
        Keep cv_results_; for cv=None.
    alpha_per_target : bool, default=False
        An alpha for every target; for cv=None.
    tol : float, default=1e-4
    max_iter : int, default=None
        Limit on passes over the data; 1000 if None.
    random_state : int, RandomState instance or None, default=None
    method, beta, strategy, time_limit, verbose, callbacks
        See `coordwise.estimators`. Three quarters of the time limit are for the choice; callbacks watch the last fit.
    n_jobs : int, default=None
        Threads over the folds.

    Attributes
    ----------
    alpha_ : float or ndarray of shape (n_targets,)
    best_score_ : float or ndarray of shape (n_targets,)
    cv_results_ : ndarray of shape (n_samples, n_alphas) or (n_samples, n_targets, n_alphas)
        With store_cv_results: squared errors times sample weights, or predictions if `scoring` is given.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **AlphaCV._parameter_constraints,
        "gcv_mode": [StrOptions({"auto", "svd", "eigen"}), None],
        "alpha_per_target": ["boolean"],
    }

    def __init__(
        self,
        alphas: Any = (0.1, 1.0, 10.0),
        *,
        fit_intercept: bool = True,
        scoring: Any = None,
        cv: Any = None,
        gcv_mode: str | None = None,
        store_cv_results: bool = False,
        alpha_per_target: bool = False,
        tol: float = 1e-4,
        max_iter: int | None = None,
        random_state: Any = None,
        method: Any = "auto",
        beta: float | None = None,
        strategy: str = "auto",
        time_limit: float | None = None,
        verbose: int = 0,
        callbacks: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.scoring = scoring
        self.cv = cv
        self.gcv_mode = gcv_mode
        self.store_cv_results = store_cv_results
        self.alpha_per_target = alpha_per_target
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.method = method
        self.beta = beta
        self.strategy = strategy
        self.time_limit = time_limit
        self.verbose = verbose
        self.callbacks = callbacks
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=True)
    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> Any:
        """Choose alpha by cross-validation, and fit all samples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : float or array-like of shape (n_samples,), default=None
        **params
            For the splitter and the scorer, with scikit-learn's metadata routing.

        Returns
        -------
        self
        """
        split, score = self._routed(sample_weight, params)
        return self._fit(X, y, sample_weight, split=split, score=score)

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
        score: Any = None,
    ) -> Fit:
        return self._choose(X, y, targets, offsets, weights, watch, split, score)


class RidgeClassifierCV(Multilabel, AlphaCV, Classifier):
    """`RidgeClassifier` with alpha chosen by cross-validation; see `RidgeCV`.

    With y of zeros and ones, a column for every label, each label is decided by itself.

    With the same parameters the choice and the solution are those of ``sklearn.linear_model.RidgeClassifierCV``.

    Parameters
    ----------
    alphas : float or array-like, default=(0.1, 1.0, 10.0)
        At least 0.
    fit_intercept : bool, default=True
    scoring : str or callable, default=None
        None: the negative mean squared error of the labels -1 and +1 if samples are left out one at a time, accuracy
        for folds.
    cv : int, cross-validation generator or iterable, default=None
        None: one sample at a time.
    class_weight : dict or "balanced", default=None
    store_cv_results : bool, default=False
    tol : float, default=1e-4
    max_iter : int, default=None
    random_state : int, RandomState instance or None, default=None
    method, beta, strategy, time_limit, verbose, callbacks, n_jobs
        See `RidgeCV`.

    Attributes
    ----------
    alpha_, best_score_ : float
    cv_results_ : ndarray of shape (n_samples, n_classes or 1, n_alphas)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **AlphaCV._parameter_constraints,
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }
    _balanced_by_weight = False

    def __init__(
        self,
        alphas: Any = (0.1, 1.0, 10.0),
        *,
        fit_intercept: bool = True,
        scoring: Any = None,
        cv: Any = None,
        class_weight: Any = None,
        store_cv_results: bool = False,
        tol: float = 1e-4,
        max_iter: int | None = None,
        random_state: Any = None,
        method: Any = "auto",
        beta: float | None = None,
        strategy: str = "auto",
        time_limit: float | None = None,
        verbose: int = 0,
        callbacks: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.scoring = scoring
        self.cv = cv
        self.class_weight = class_weight
        self.store_cv_results = store_cv_results
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.method = method
        self.beta = beta
        self.strategy = strategy
        self.time_limit = time_limit
        self.verbose = verbose
        self.callbacks = callbacks
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=True)
    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> Any:
        """Choose alpha by cross-validation, and fit all samples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            Classes, or zeros and ones for labels.
        sample_weight : float or array-like of shape (n_samples,), default=None
        **params
            For the splitter and the scorer, with scikit-learn's metadata routing.

        Returns
        -------
        self
        """
        split, score = self._routed(sample_weight, params)
        return self._fit(X, y, sample_weight, split=split, score=score)

    def _report(self, fits: list[Fit], interrupted: bool) -> None:
        if len(self.coef_) == 1:  # as scikit-learn's
            self.coef_ = self.coef_[0]
        super()._report(fits, interrupted)

    def _fit_classes(
        self,
        X: Any,
        y: Any,
        codes: Any,
        offsets: Offsets,
        weights: FloatArray | None,
        watch: Watch,
        split: Any = None,
        score: Any = None,
    ) -> list[Fit]:
        weights = self._weighted(y, codes, weights)
        targets = signs_of(codes, len(self.classes_))
        return [self._choose(X, y, targets, offsets, weights, watch, split, score)]
