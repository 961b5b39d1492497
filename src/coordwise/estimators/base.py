"""What all estimators share: checking input, fitting, reporting, warnings."""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight

from coordwise.erm import ERM
from coordwise.estimators.progress import Watch, callback_support, with_callbacks
from coordwise.estimators.warn import warn
from coordwise.fitting.dual import with_column
from coordwise.fitting.fit import Fit, fit
from coordwise.fitting.model import Candidate, LinearModel
from coordwise.fitting.strategies import STRATEGIES
from coordwise.losses import Loss
from coordwise.methods import ACDM, NUACDM, RCDM, ACDMns, Method, NUACDMns, get_method
from coordwise.penalties import ElasticNet
from coordwise.validation import FloatArray

__all__ = ["CONSTRAINTS", "Linear", "method_of", "threads_of", "weights_of", "with_callbacks"]

CONSTRAINTS: dict[str, list[Any]] = {
    "fit_intercept": ["boolean"],
    "tol": [Interval(numbers.Real, 0, None, closed="left")],
    "max_iter": [Interval(numbers.Integral, 1, None, closed="left"), None],
    "random_state": ["random_state"],
    "method": [str, Method],
    "beta": [Interval(numbers.Real, 0, 1, closed="both"), None],
    "strategy": [StrOptions(set(STRATEGIES))],
    "time_limit": [Interval(numbers.Real, 0, None, closed="left"), None],
    "verbose": ["verbose"],
    "callbacks": ["array-like", callable, None],
    "n_jobs": [numbers.Integral, None],
}


class Linear(callback_support(), BaseEstimator):  # type: ignore[misc]
    """Base of the estimators: a loss and a penalty in, coef_, intercept_ and a certificate out."""

    def _fit_model(
        self,
        X: Any,
        targets: FloatArray,
        loss: Loss,
        penalty: ElasticNet,
        sample_weight: FloatArray | None,
        *,
        intercept: bool,
        start: Candidate | None = None,
        time_limit: float | None = None,
        watch: Watch | None = None,
    ) -> Fit:
        """Fit all columns of `targets` (n x K) at once.

        A finite `intercept_scaling` makes the intercept the weight of a constant feature, penalised as the others.
        """
        scaling = getattr(self, "intercept_scaling", np.inf)
        if intercept and np.isfinite(scaling):
            found = self._fit_model(
                with_column(X, float(scaling)),
                targets,
                loss,
                penalty,
                sample_weight,
                intercept=False,
                time_limit=time_limit,
                watch=watch,
            )
            return replace(found, w=found.w[:-1], c=found.w[-1] * float(scaling))
        model = LinearModel(ERM(X, targets, loss=loss, penalty=penalty, sample_weight=sample_weight), intercept)
        return self._run(model, start=start, time_limit=time_limit, watch=watch)

    def _run(
        self,
        model: LinearModel,
        *,
        start: Candidate | None = None,
        time_limit: float | None = None,
        watch: Watch | None = None,
    ) -> Fit:
        """Fit a model with the estimator's options."""
        options = self._options() | ({} if time_limit is None else {"time_limit": time_limit})
        return fit(
            model,
            random_state=self._seed(),
            start=start,
            callback=watch,
            n_jobs=threads_of(self.n_jobs),
            **options,
        )

    def _seed(self) -> int:
        return check_random_state(self.random_state).randint(2**31 - 1) if self.random_state is not None else 0

    def _options(self) -> dict[str, Any]:
        """What every fit is asked for, in the words of `coordwise.fitting.fit`."""
        return {
            "tol": float(self.tol),
            "max_passes": float(self.max_iter or 1000),
            "time_limit": self.time_limit,
            "method": method_of(self.method, self.beta),
            "strategy": self.strategy,
        }

    @contextmanager
    def _watching(self, X: Any, y: Any) -> Iterator[Watch]:
        """A watch over one fit: the live line, `callbacks`, and scikit-learn's callbacks if some are set."""
        context: Any = None
        if hasattr(self, "_init_callback_context"):
            context = self._init_callback_context(max_subtasks=None)
            context.call_on_fit_task_begin(estimator=self, X=X, y=y)

        def tell(progress: Any) -> bool:
            task = context.subcontext(task_name="record")
            task.call_on_fit_task_begin(estimator=self, X=X, y=y)
            return bool(task.call_on_fit_task_end(estimator=self, X=X, y=y))

        listening = context is not None and getattr(self, "_skl_callbacks", None)
        watch = Watch(
            type(self).__name__, float(self.tol), self.verbose, many(self.callbacks), tell if listening else None
        )
        try:
            yield watch
        finally:
            watch.close()
        if context is not None:
            context.call_on_fit_task_end(estimator=self, X=X, y=y)

    def _report(self, fits: list[Fit], flat: bool) -> None:
        """Set what a fit leaves behind, and warn if it did not converge."""
        gaps = np.concatenate([found.gap for found in fits])
        self.dual_gap_ = float(gaps[0]) if flat or len(gaps) == 1 else gaps
        self.passes_ = float(sum(found.passes for found in fits))
        self.strategy_ = fits[0].strategy
        self.result_ = fits[0] if len(fits) == 1 else fits
        bad = [found for found in fits if not found.converged]
        if bad:
            worst = max(float(np.max(found.gap / np.where(found.scale > 0, found.scale, 1.0))) for found in bad)
            reached = (
                f"its duality gap is {worst:.2g} of the objective at zero, and tol={self.tol:g} was asked for. Raise "
                "max_iter or time_limit, loosen tol, or regularise more; scaling the features helps too."
                if np.isfinite(worst)
                else "without a penalty no duality gap was found. If a hyperplane separates the classes there is no "
                "minimum, and the coefficients grow without bound: regularise. Otherwise raise max_iter or time_limit."
            )
            warn(
                f"{type(self).__name__} stopped before it converged ({bad[0].status.value}): {reached}",
                ConvergenceWarning,
            )

    def _start(self, shape: tuple[int, int], n: int) -> Candidate | None:
        """The last solution, for a warm start on data of the same shape."""
        last = getattr(self, "_last", None)
        if not getattr(self, "warm_start", False) or last is None:
            return None
        return last if last.w.shape == shape and len(last.y) == n else None

    def _keep(self, found: Fit) -> None:
        if getattr(self, "warm_start", False):
            self._last = found.candidate


def weights_of(sample_weight: Any, X: Any) -> FloatArray | None:
    """Sample weights as float64, or None; non-negative, as scikit-learn checks them."""
    if sample_weight is None:
        return None
    weights = np.asarray(_check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True))
    if not np.any(weights > 0):
        raise ValueError("sample_weight must have at least one positive entry.")
    return None if np.all(weights == 1) else weights


def threads_of(n_jobs: int | None) -> int:
    """Threads: 1 for None, all processors for -1, all but one for -2, and so on."""
    if n_jobs == 0:
        raise ValueError("n_jobs=0 has no meaning; give a number of threads, -1 for all processors, or None for one.")
    if n_jobs is not None and n_jobs < 0:
        return max((os.cpu_count() or 1) + 1 + int(n_jobs), 1)
    return int(n_jobs or 1)


def method_of(method: str | Method, beta: float | None) -> Method:
    """The method by name, with a beta of its own where one is given."""
    chosen = get_method(method)
    if beta is None:
        return chosen
    if isinstance(chosen, (NUACDM, NUACDMns, ACDM, ACDMns, RCDM)):
        return replace(chosen, beta=float(beta))
    if chosen.name == "auto":
        return NUACDM(beta=float(beta))
    raise ValueError(f"beta={beta} has no meaning for method={chosen.name!r}; leave beta out.")


def many(callbacks: Any) -> list[Callable[[Any], object]]:
    """Callbacks as a list."""
    if callbacks is None:
        return []
    return list(callbacks) if isinstance(callbacks, Iterable) else [callbacks]
