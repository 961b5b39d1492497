"""What all estimators share: checking input, fitting, reporting, warnings."""

from __future__ import annotations

import numbers
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight

from coordwise.erm import ERM
from coordwise.estimators.progress import Watch, callback_support, with_callbacks
from coordwise.estimators.warn import warn
from coordwise.fitting.fit import Fit, fit
from coordwise.fitting.model import Candidate, LinearModel
from coordwise.fitting.offsets import Offsets, near_zero
from coordwise.fitting.strategies import STRATEGIES
from coordwise.interrupts import Failed, Interrupted
from coordwise.losses import Loss
from coordwise.methods import ACDM, NUACDM, RCDM, ACDMns, Method, NUACDMns, get_method
from coordwise.penalties import ElasticNet
from coordwise.results import Status
from coordwise.samples.appended import with_column
from coordwise.solvers import SOLVERS
from coordwise.validation import FloatArray

__all__ = [
    "CONSTRAINTS",
    "Data",
    "Linear",
    "joined",
    "method_of",
    "narrowed",
    "nothing",
    "one_by_one",
    "threads_of",
    "weights_of",
    "with_callbacks",
]

CONSTRAINTS: dict[str, list[Any]] = {
    "fit_intercept": ["boolean"],
    "tol": [Interval(numbers.Real, 0, None, closed="left")],
    "max_iter": [Interval(numbers.Integral, 1, None, closed="left"), None],
    "random_state": ["random_state"],
    "method": [str, Method],
    "beta": [Interval(numbers.Real, 0, 1, closed="both"), None],
    "strategy": [StrOptions({*STRATEGIES, *(solver.name for solver in SOLVERS)})],
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
        watch: Watch,
        *,
        intercept: bool,
        start: Candidate | None = None,
        level: FloatArray | None = None,
    ) -> Fit:
        """Fit all columns of `targets` (n x K) at once, from which `level` was taken off.

        A finite `intercept_scaling` makes the intercept the weight of a constant feature, penalised as the others.
        """
        scaling = self._scaling
        if not intercept or np.isinf(scaling):
            problem = Data(X, targets, loss=loss, penalty=penalty, sample_weight=sample_weight)
            return self._run(LinearModel(problem, intercept, level), watch, start=start)

        def split(found: Fit) -> Fit:
            return replace(found, w=found.w[:-1], c=found.w[-1] * scaling)

        column = with_column(X, scaling)
        try:
            return split(self._fit_model(column, targets, loss, penalty, sample_weight, watch, intercept=False))
        except Interrupted as stop:
            raise split(stop.result).interruption from None

    @property
    def _scaling(self) -> float:
        """Of the constant feature whose weight is the intercept; inf if that is free."""
        return float(getattr(self, "intercept_scaling", np.inf))

    def _near_zero(
        self, X: Any, targets: FloatArray, weights: FloatArray | None, loss: Loss
    ) -> tuple[Any, FloatArray, Offsets]:
        """The data moved near 0, where an intercept allows it; what is found of them is moved back at the end."""
        if self.fit_intercept and np.isinf(self._scaling):
            return near_zero(X, targets, weights, loss)
        return X, targets, Offsets.none()

    def _run(self, model: LinearModel, watch: Watch, *, start: Candidate | None = None) -> Fit:
        """Fit a model with the estimator's options."""
        return fit(
            model,
            random_state=self._seed(),
            start=start,
            callback=watch,
            n_jobs=threads_of(self.n_jobs),
            **self._options(watch.left()),
        )

    def _attempt(self, solve: Callable[[], list[Fit]], nothing: Callable[[], Fit]) -> tuple[list[Fit], bool]:
        """What `solve` returns, or what Ctrl-C has left of it (`nothing` if it came early); and whether it did."""
        try:
            return solve(), False
        except KeyboardInterrupt as stop:
            left = stop.result if isinstance(stop, Interrupted) else None
            fits = [left] if isinstance(left, Fit) else left if isinstance(left, list) else []
            return (fits if fits and all(isinstance(one, Fit) for one in fits) else [nothing()]), True

    def _seed(self) -> int:
        return check_random_state(self.random_state).randint(2**31 - 1) if self.random_state is not None else 0

    def _options(self, time_limit: float | None) -> dict[str, Any]:
        """What fits are asked for, in the words of `coordwise.fitting.fit`."""
        return {
            "tol": float(self.tol),
            "max_passes": float(self.max_iter or 1000),
            "time_limit": time_limit,
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
        name, callbacks = type(self).__name__, many(self.callbacks)
        limit = None if self.time_limit is None else float(self.time_limit)
        watch = Watch(name, float(self.tol), self.verbose, callbacks, tell if listening else None, limit)
        try:
            yield watch
        finally:
            watch.close()
        if context is not None:
            context.call_on_fit_task_end(estimator=self, X=X, y=y)

    def _report(self, fits: list[Fit], interrupted: bool) -> None:
        """Set what a fit leaves behind, and warn if it did not converge; raise what Ctrl-C has to raise."""
        gaps = self._certify(fits)
        if interrupted:
            raise Interrupted.at(self.result_, "duality gap", gaps, f"{self.passes_:.1f} passes")
        bad = [found for found in fits if not found.converged]
        if bad:
            not_begun = all(found.passes == 0 and not found.w.any() and np.isinf(found.gap).all() for found in bad)
            worst = max(float(np.max(found.gap / np.where(found.scale > 0, found.scale, 1.0))) for found in bad)
            reached = (
                f"its duality gap is {worst:.2g} of the objective at zero, and tol={self.tol:g} was asked for. Raise "
                "max_iter or time_limit, loosen tol, or regularise more; scaling the features helps too."
                if np.isfinite(worst)
                else "the fit has not begun, and all coefficients are 0. Raise time_limit."
                if not_begun
                else "without a penalty no duality gap was found. If a hyperplane separates the classes there is no "
                "minimum, and the coefficients grow without bound: regularise. Otherwise raise max_iter or time_limit."
            )
            warn(
                f"{type(self).__name__} stopped before it converged ({bad[0].status.value}): {reached}",
                ConvergenceWarning,
            )

    def _certify(self, fits: list[Fit]) -> FloatArray:
        """Set the gaps of a fit and what it took; returns the gaps."""
        gaps = np.concatenate([found.gap for found in fits])
        self.dual_gap_ = float(gaps[0]) if len(gaps) == 1 else gaps
        self.passes_ = float(sum(found.passes for found in fits))
        self.strategy_ = fits[0].strategy
        self.result_ = fits[0] if len(fits) == 1 else fits
        return gaps

    def _start(self, shape: tuple[int, int], n: int, offsets: Offsets) -> Candidate | None:
        """The last solution, for a warm start on data of the same shape from which `offsets` were taken."""
        last = getattr(self, "_last", None)
        if not getattr(self, "warm_start", False) or last is None:
            return None
        if last.w.shape != shape or len(last.y) != n:
            return None
        return replace(last, c=offsets.removed(last.w, last.c))

    def _keep(self, found: Fit) -> None:
        """The solution for the data as they were, for fits that ``warm_start`` is set for afterwards too."""
        if hasattr(self, "warm_start"):
            self._last = found.candidate


class Data(ERM):
    """A problem by the names that users of estimators know."""

    names: ClassVar[tuple[str, str]] = ("X", "y")


def nothing(shape: tuple[int, int], outputs: int, status: Status) -> Fit:
    """What is left of a fit of X of this shape that has not begun: zeros, of which nothing is known."""
    n, d = shape
    none, unknown = np.zeros(outputs), np.full(outputs, np.inf)
    found = Candidate(np.zeros((d, outputs)), none, np.zeros((n, outputs)), unknown, unknown)
    return Fit.of(found, np.ones(outputs), status, time.perf_counter(), 0, f"none: {status.value} before the fit")


def one_by_one(fits: Iterable[Fit], count: int, none: Fit) -> list[Fit]:
    """So many fits as they come. The result of `Interrupted` or `Failed` are as many, `none` for those not begun."""
    found: list[Fit] = []
    try:
        for one in fits:
            found.append(one)  # those so far stay, whatever comes
        return found
    except Failed as lost:
        if not found and lost.result is None:
            raise
        found.append(none if lost.result is None else lost.result)
        raise Failed(str(lost), found + [none] * (count - len(found))) from lost.__cause__
    except KeyboardInterrupt as stop:
        if isinstance(stop, Interrupted):
            found.append(stop.result)
        raise Interrupted(str(stop), found + [none] * (count - len(found))) from None


def joined(fits: list[Fit]) -> Fit:
    """Fits of some outputs each as one of all of them."""
    if len(fits) == 1:
        return fits[0]
    table: dict[str, Any] = {
        name: np.concatenate([getattr(one, name) for one in fits], axis=-1) for name in ("w", "c", "y")
    }
    table |= {name: np.concatenate([getattr(one, name) for one in fits]) for name in ("value", "gap", "scale")}
    bad = [one.status for one in fits if not one.converged]
    return replace(
        fits[0],
        **table,
        status=bad[0] if bad else fits[0].status,
        passes=max(one.passes for one in fits),
        iterations=max(one.iterations for one in fits),
        seconds=sum(one.seconds for one in fits),
        results=sum((one.results for one in fits), ()),
    )


def narrowed(values: FloatArray, dtype: Any) -> Any:
    """Values as `dtype`; as they are, if the largest is beyond its range or next to its smallest numbers."""
    largest = float(np.max(np.abs(values), initial=0.0, where=np.isfinite(values)))
    low, high = float(np.finfo(dtype).tiny / np.finfo(dtype).eps), float(np.finfo(dtype).max)
    fits = largest == 0 or low <= largest <= high
    return values.astype(dtype, copy=False) if fits else values


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
