"""HuberRegressor: Huber's loss with its scale estimated alongside."""

from __future__ import annotations

import numbers
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval

from coordwise.estimators.base import CONSTRAINTS, nothing
from coordwise.estimators.progress import Watch
from coordwise.estimators.regressor import Regressor
from coordwise.estimators.warn import warn
from coordwise.fitting.elsewhere import Elsewhere, fit_source, unfitted
from coordwise.fitting.fit import Fit
from coordwise.fitting.model import Candidate
from coordwise.fitting.offsets import Offsets
from coordwise.fitting.unpenalised import penalty_of
from coordwise.interrupts import Failed, Interrupted
from coordwise.losses import Huber
from coordwise.results import Status
from coordwise.samples.base import Kept, RowsLost, rowless
from coordwise.samples.block import Block
from coordwise.validation import FloatArray

__all__ = ["HuberRegressor"]

SMALLEST = 10 * np.finfo(np.float64).eps  # the scale that scikit-learn stops at, too
BOTTOM = float(np.log(SMALLEST))


class HuberRegressor(Regressor):
    """minimise over w, c, sigma > 0   sum_i s_i (sigma + sigma H((y_i - <x_i, w> - c)/sigma)) + alpha |w|^2.

    H(z) = z^2 up to |z| = epsilon and 2 epsilon |z| - epsilon^2 beyond. With the same parameters the solution is that
    of ``sklearn.linear_model.HuberRegressor``. For a fixed scale sigma this is, up to constants, twice W/sigma times

        P(w, c) = (1/W) sum_i s_i phi(<x_i, w> + c; y_i) + (alpha sigma/W)/2 |w|^2,   W = sum_i s_i,

    with Huber's loss phi for delta = epsilon sigma. dual_gap_ is the duality gap of P at the last sigma, scale_, and
    the fit ends with dual_gap_ <= tol * P(0, 0). It says nothing about sigma. The minimum over w and c is convex in
    sigma: its derivative is brought to zero by bracketing, until its modulus times the width of the bracket, a bound on
    what is left to gain in sigma, is at most tol times the objective at w = 0, c = 0 and that sigma.

    Parameters
    ----------
    epsilon : float, default=1.35
        At least 1.
    max_iter : int, default=100
        Limit on passes over the data, or on steps of Newton's method, for each scale that is tried.
    alpha : float, default=1e-4
        At least 0.
    warm_start : bool, default=False
    fit_intercept : bool, default=True
    tol : float, default=1e-5
    method, beta, strategy, time_limit, verbose, callbacks, n_jobs
        See `coordwise.estimators`.

    Attributes
    ----------
    scale_ : float
        sigma.
    outliers_ : ndarray of bool, shape (n_samples,)
        Where |y_i - <x_i, w> - c| > epsilon sigma; not after a fit of samples that are elsewhere.
    """

    _multi_output = False
    random_state = None
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{name: rule for name, rule in CONSTRAINTS.items() if name != "random_state"},
        "epsilon": [Interval(numbers.Real, 1.0, None, closed="left")],
        "alpha": [Interval(numbers.Real, 0, None, closed="left")],
        "warm_start": ["boolean"],
    }

    def __init__(
        self,
        *,
        epsilon: float = 1.35,
        max_iter: int = 100,
        alpha: float = 1e-4,
        warm_start: bool = False,
        fit_intercept: bool = True,
        tol: float = 1e-5,
        method: Any = "auto",
        beta: float | None = None,
        strategy: str = "auto",
        time_limit: float | None = None,
        verbose: int = 0,
        callbacks: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.max_iter = max_iter
        self.alpha = alpha
        self.warm_start = warm_start
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.method = method
        self.beta = beta
        self.strategy = strategy
        self.time_limit = time_limit
        self.verbose = verbose
        self.callbacks = callbacks
        self.n_jobs = n_jobs

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
        """The fit at the scale whose derivative vanishes; fits are warm-started from one scale to the next."""
        return self._searched(_Search(self, X, targets, offsets.level, weights, start, watch), targets, start)

    def _solve_source(self, data: Elsewhere, outputs: int, watch: Watch) -> Fit:
        """The same; the first guess of the scale is that of the first rows, and `outliers_` is not set."""
        self.__dict__.pop("outliers_", None)
        start = getattr(self, "_last", None) if self.warm_start else None
        known = start is not None and start.w.shape == (data.source.shape[1], 1)
        head = getattr(data.source, "head", None)
        some = np.ones((1, 1)) if head is None else np.reshape(head()[1], (-1, 1))
        return self._searched(_SearchElsewhere(self, data, some, watch), some, start if known else None)

    def _searched(self, search: _Search, targets: FloatArray, start: Candidate | None) -> Fit:
        """What a search finds, that begins at the spread of these targets."""
        try:
            self._find_scale(search, targets, start)
        except KeyboardInterrupt as stop:
            raise Interrupted(result=self._ended(search, stop)) from None
        except (Failed, RowsLost) as lost:
            self.scale_ = search.scale
            raise Failed(str(lost), lost.result if isinstance(lost, Failed) else search.fit) from lost
        return self._ended(search, None)

    def _ended(self, search: _Search, stop: KeyboardInterrupt | None) -> Fit:
        """Set what the search has found, perhaps until Ctrl-C."""
        if isinstance(stop, Interrupted):
            search.end(stop.result)
        elif stop is not None and search.fit is None:
            search.nothing_found()
        assert search.fit is not None
        self.scale_ = search.scale
        if isinstance(search.residual, np.ndarray):
            self.outliers_ = search.residual > float(self.epsilon) * search.scale
        self._left = search.left
        status = search.fit.status if stop is None else Status.INTERRUPTED
        return replace(search.fit, passes=search.passes, status=status)

    def _find_scale(self, search: _Search, targets: FloatArray, start: Candidate | None) -> None:
        """Bracket the scale, and close in on it."""
        away = np.abs(targets[:, 0] - np.median(targets[:, 0]))
        spread = np.median(away) or np.mean(away)  # more than half of the targets may be equal
        guess = getattr(self, "scale_", spread) if start is not None else spread
        low = high = float(np.log(max(guess, SMALLEST)))
        f_low = f_high = search.slope(low)
        step = 1.0
        known = search.last[0].converged  # a fit that did not converge tells no slope
        while f_high < 0 and not search.stopped:  # too small a scale: up
            low, f_low, high, known = high, f_high, high + step, search.last[0].converged
            f_high = search.slope(high)
            step *= 2
        known_high = search.last[0].converged
        if not known and known_high:  # down again from here, where the next fits begin at a solution
            low, f_low, known, step = high, f_high, True, 1.0
        while f_low > 0 and search.gain(f_low) > float(self.tol) and low > BOTTOM and not search.stopped:  # too large
            last, lower = search.last, max(low - step, BOTTOM)
            f_lower = search.slope(lower)
            if last[0].converged and not search.last[0].converged and not search.stopped:
                search.last = last  # too small for its residuals to be more than rounding: a shorter step
                step /= 4
                if step < 0.1:
                    break
                continue
            high, f_high, low, f_low = low, f_low, lower, f_lower
            known, known_high = search.last[0].converged, known
            step *= 2
        search.left = search.gain(max(f_low, 0.0))
        if f_low < 0 < f_high:
            search.close_in(low, f_low, high, f_high, known, known_high)

    def _report(self, fits: list[Fit], interrupted: bool) -> None:
        super()._report(fits, interrupted)
        if fits[0].converged and self._left > float(self.tol):
            self.result_ = replace(fits[0], status=Status.MAX_PASSES)
            warn(
                f"HuberRegressor could not bring its scale to tol={self.tol:g}: at scale_={self.scale_:.2g} up to "
                f"{self._left:.2g} of the objective at zero may be left to gain. If the fit is nearly exact, raise "
                "alpha or loosen tol; otherwise raise max_iter.",
                ConvergenceWarning,
            )


class _Search:
    """Fits at fixed scales sigma, and the derivative of the minimum in sigma."""

    fit: Fit | None = None
    residual: Any

    def __init__(
        self,
        estimator: HuberRegressor,
        X: Any,
        targets: FloatArray,
        level: FloatArray,
        weights: FloatArray | None,
        start: Candidate | None,
        watch: Watch,
    ) -> None:
        self.X, self.targets, self.level, self.weights = X, targets, level, weights
        self.start = start
        self.s = np.ones(len(targets)) if weights is None else weights
        self.total = float(self.s.sum())
        self.residual = np.abs(targets[:, 0])
        self.begin(estimator, watch)

    def begin(self, estimator: HuberRegressor, watch: Watch) -> None:
        """Nothing is known yet."""
        self.estimator, self.watch = estimator, watch
        self.epsilon, self.alpha = float(estimator.epsilon), float(estimator.alpha)
        self.passes = 0.0
        self.left = 0.0  # to gain in sigma, relative to the objective at zero
        self.scale = np.nan

    @property
    def last(self) -> tuple[Fit, float, Any]:
        """The last fit, its scale and its residuals."""
        assert self.fit is not None
        return self.fit, self.scale, self.residual

    @last.setter
    def last(self, last: tuple[Fit, float, Any]) -> None:
        self.fit, self.scale, self.residual = last
        self.start = last[0].candidate

    @property
    def stopped(self) -> bool:
        """Whether the last fit was ended from outside."""
        return self.last[0].status in (Status.STOPPED, Status.TIME_LIMIT)

    def slope(self, log_scale: float) -> float:
        """(1/W) dF/dsigma at the best w, c for this sigma."""
        self.scale = float(np.exp(log_scale))
        found = self.fitted(Huber(delta=self.epsilon * self.scale))
        self.start = found.candidate
        self.see(found)
        return 1 - self.inside()

    def fitted(self, loss: Huber) -> Fit:
        """The fit at the present scale, whose loss this is."""
        return self.estimator._fit_model(
            self.X,
            self.targets,
            loss,
            penalty_of(0.0, self.alpha * self.scale / self.total),
            self.weights,
            self.watch,
            intercept=bool(self.estimator.fit_intercept),
            start=self.start,
            level=self.level,
        )

    def inside(self) -> float:
        """(1/W) sum_i s_i min(|r_i|/sigma, epsilon)^2."""
        return float(self.s @ np.minimum(self.residual / self.scale, self.epsilon) ** 2) / self.total

    def nothing_found(self) -> None:
        """Ctrl-C came before the first fit."""
        self.see(nothing(self.X.shape, 1, Status.INTERRUPTED))

    def see(self, found: Fit) -> None:
        """The fit at the present scale."""
        self.fit = found
        self.passes += found.passes
        self.residual = np.abs(self.targets[:, 0] - np.asarray(self.X @ found.w[:, 0]) - found.c[0])

    def end(self, found: Fit) -> None:
        """What Ctrl-C has left of the fit at the present scale."""
        self.see(found)

    def at_zero(self) -> float:
        """(1/W) F at w = 0, c = 0 and the current scale, of the targets as given or as moved, whichever is less."""

        def of(targets: FloatArray) -> float:
            z = np.abs(targets) / self.scale
            inside = np.minimum(z, self.epsilon)
            return self.scale * (1 + float(self.s @ (inside * (2 * z - inside))) / self.total)

        moved = self.targets[:, 0]
        return min(of(moved), of(moved + self.level[0])) if np.any(self.level) else of(moved)

    def gain(self, slope: float) -> float:
        """What is left to gain by smaller scales, relative to the objective at zero, where the slope is positive."""
        return slope * self.scale / self.at_zero()

    def close_in(self, low: float, f_low: float, high: float, f_high: float, known_low: bool, known_high: bool) -> None:
        """Regula falsi with halving. The minimum over w, c is convex in sigma: |slope| * width bounds what is left.

        It begins after a fit at `low` or `high`, and keeps it if that is enough, or if none of a few between converges:
        residuals that are nothing but rounding have no slope. An end whose fit did not converge is none to rely on.
        """
        tol = float(self.estimator.tol) / 2  # slopes are those of fits, whose gaps have their share
        f_middle = f_low if np.isclose(self.scale, np.exp(low), rtol=1e-9, atol=0) else f_high
        for _ in range(100):
            width = np.exp(high) - np.exp(low) if (known_low if f_middle > 0 else known_high) else self.scale
            self.left = abs(f_middle) * width / self.at_zero()
            if self.stopped or self.left <= tol or high - low <= 1e-13 * max(1.0, abs(low)):
                return
            last = self.last
            middle = (low * f_high - high * f_low) / (f_high - f_low)
            if not low < middle < high:
                middle = (low + high) / 2
            f_middle = self.slope(middle)
            for _ in range(3):
                if not last[0].converged or self.last[0].converged or self.stopped:
                    break
                self.last = last
                middle = (middle + float(np.log(self.scale))) / 2
                f_middle = self.slope(middle)
            if last[0].converged and not self.last[0].converged and not self.stopped:
                self.last = last
                return
            if f_middle < 0:
                low, f_low, f_high, known_low = middle, f_middle, f_high / 2, self.last[0].converged
            else:
                high, f_high, f_low, known_high = middle, f_middle, f_low / 2, self.last[0].converged


class _SearchElsewhere(_Search):
    """The same over samples that are elsewhere, where the residuals stay."""

    def __init__(self, estimator: HuberRegressor, data: Elsewhere, some: FloatArray, watch: Watch) -> None:
        self.data = data
        self.level = float(np.median(some)) if data.intercept else 0.0  # type: ignore[assignment]
        self.samples = data.samples(Offsets.none())
        self.total = self.samples.sizes.total
        self.residual: Kept = ()
        self.begin(estimator, watch)
        self.start = None

    def fitted(self, loss: Huber) -> Fit:
        """See `_Search.fitted`."""
        estimator, start = self.estimator, self.start
        options = estimator._options(self.watch.left())
        return fit_source(
            self.data,
            loss,
            lambda total: penalty_of(0.0, self.alpha * self.scale / total),
            tol=options["tol"],
            max_passes=options["max_passes"],
            time_limit=options["time_limit"],
            strategy=options["strategy"],
            start=None if start is None else (start.w, start.c),
            callback=self.watch,
        )

    def see(self, found: Fit) -> None:
        """See `_Search.see`: one pass."""
        self.fit = found
        self.passes += found.passes + 1
        w = np.vstack([found.w, found.c]) if self.data.intercept else found.w
        self.residual = self.samples.visit(residuals, w=w)[0]

    def inside(self) -> float:
        """See `_Search.inside`."""
        sums = self.samples.visit(clipped, self.residual, scale=self.scale, epsilon=self.epsilon)[1]
        return float(sums[0]) / self.total

    def at_zero(self) -> float:
        """See `_Search.at_zero`."""
        levels = np.array([0.0, self.level])
        (sums,) = self.samples.visit(losses_at, levels=levels, scale=self.scale, epsilon=self.epsilon)[1]
        return self.scale * (1 + float(np.min(sums)) / self.total)

    def end(self, found: Fit) -> None:
        """See `_Search.end`; without a pass for the residuals."""
        self.fit = found
        self.passes += found.passes

    def nothing_found(self) -> None:
        """See `_Search.nothing_found`."""
        self.fit = unfitted((self.data.source.shape[1], 1), Status.INTERRUPTED)


def residuals(block: Block, *, w: FloatArray) -> tuple[Any, list[FloatArray]]:
    """A visit: keep |<a_i, w> - b_i|."""
    return np.abs(block.product(w) - block.b), []


@rowless
def clipped(block: Block, residual: FloatArray, *, scale: float, epsilon: float) -> tuple[Any, list[FloatArray]]:
    """A visit: sum_i s_i min(|r_i|/scale, epsilon)^2."""
    s = np.ones(block.m) if block.s is None else block.s
    return None, [s @ np.minimum(residual[:, 0] / scale, epsilon) ** 2]


@rowless
def losses_at(block: Block, *, levels: FloatArray, scale: float, epsilon: float) -> tuple[Any, list[FloatArray]]:
    """A visit: sum_i s_i H((b_i - level)/scale) of every level."""
    s = np.ones(block.m) if block.s is None else block.s
    z = np.abs(block.b - levels) / scale
    inside = np.minimum(z, epsilon)
    return None, [s @ (inside * (2 * z - inside))]
