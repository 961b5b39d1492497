"""Following an iteration that is not the kernel's: clock, history, stopping, the best point, interruption."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from coordwise.linalg.conjugate import Iterate
from coordwise.linalg.request import Request, norms
from coordwise.results import Constants, History, Result, Status
from coordwise.validation import FloatArray

__all__ = ["Ending", "follow", "result_of"]

Judge = Callable[[Iterate], Status | None]
RESTARTS_WITHOUT_GAIN = 2
EPS = float(np.finfo(float).eps)


class Ending:
    """What a followed iteration came to: its point, why it ended, and its history.

    Where the status is "converged", `gap` was computed from the point alone.
    """

    def __init__(self, begun: float) -> None:
        self.begun = begun
        self.status: Status | None = None
        self.x: FloatArray
        self.gap: FloatArray
        self.iterations = 0
        self.passes = 0.0
        self.rows: list[tuple[int, float, float, FloatArray]] = []

    @classmethod
    def now(cls) -> Ending:
        """An iteration whose clock begins now."""
        return cls(time.perf_counter())

    @property
    def seconds(self) -> float:
        """Since the call."""
        return time.perf_counter() - self.begun

    def record(self, gap: FloatArray) -> None:
        """One row of the history."""
        self.rows.append((self.iterations, self.passes, self.seconds, gap))


class _Best:
    """The best point of an iteration, column by column.

    While gaps fall it is the present one, and copies are made only where they have halved; where they rise it is led
    back to by the last step. The copies are for steps so long that nothing can be led back.
    """

    def __init__(self, x: FloatArray) -> None:
        self.gap = np.full(x.shape[1], np.inf)
        self.present = np.zeros(x.shape[1], bool)
        self.x = self.copy = x.copy()
        self.at_copy = self.gap.copy()

    def see(self, now: Iterate, gap: FloatArray) -> None:
        """A new point with its gap."""
        better = gap < self.gap
        left = self.present & ~better
        if left.any():
            self.x = np.where(left, now.before(), self.x)
        self.present = better | (self.present & ~left)
        self.gap = np.where(better, gap, self.gap)
        self.keep(now.x, gap, gap < self.at_copy / 2)

    def keep(self, x: FloatArray, gap: FloatArray, which: Any) -> None:
        """Copy some columns."""
        if which.any():
            self.copy = np.where(which, x, self.copy)
            self.at_copy = np.where(which, gap, self.at_copy)

    def restart(self, x: FloatArray, gap: FloatArray, near: FloatArray) -> None:
        """Gaps are true ones from now on; below `near` those before were not."""
        self.keep(x, gap, (gap < self.at_copy) | (self.at_copy <= near))
        self.gap, self.x, self.present = self.at_copy.copy(), self.copy, np.zeros_like(self.present)

    def point(self, x: FloatArray, exact: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """The best point, x being the present one."""
        here = np.where(self.present, x, self.x)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.where(exact(here) <= exact(self.copy), here, self.copy)


def follow(
    restart: Callable[[FloatArray], Iterator[Iterate]],
    x: FloatArray,
    exact: Callable[[FloatArray], FloatArray],
    request: Request,
    goal: FloatArray,
    *,
    ending: Ending,
    size: FloatArray,
    by_slope: bool = False,
    limit: float | None = None,
    judge: Judge | None = None,
    share: float = 1.0,
) -> Ending:
    """Iterate from x until the gap, confirmed by `exact(x)`, is <= goal in every column, or something else ends it.

    A recursion knows nothing of its own rounding. Where its gap meets the goal, or is at eps * size, it begins anew
    from its point with a gap that is computed from that; if this has not helped a few times, the iteration has stalled.
    Unless it converged, the point that is left has the smallest gap that was recorded.

    Parameters
    ----------
    restart : callable
        The iteration from a point, which it overwrites.
    exact : callable
        The gap of x from x alone.
    size : array of shape (K,)
        The gap of x = 0.
    by_slope : bool
        Whether the gap is the norm of the slope (least squares) or that of the residual.
    limit : float, optional
        Iterations at most; `request.maxiter` passes by default.
    judge : callable, optional
        Asked after every step for a reason to end.
    share : float
        Passes that one step costs.
    """
    seconds = np.inf if request.time_limit is None else request.time_limit
    last = ending.iterations + (np.inf if limit is None else limit)
    near, best, without_gain = np.maximum(goal, EPS * size), _Best(x), 0
    ending.x, ending.status = x, None
    shown = ending.iterations
    steps = restart(x)
    try:
        now = next(steps)
        while True:
            gap = norms(now.slope if by_slope else now.residual)
            best.see(now, gap)
            ending.gap = gap
            ending.record(gap)
            asked = ending.iterations > shown and request.show(x)  # not where it begins, as in scipy
            shown = ending.iterations
            verdict = None if judge is None else judge(now)
            if (gap <= near).all() or not now.moving:
                ending.gap = true = exact(x)
                if (true <= goal).all():
                    ending.status = Status.CONVERGED
                    break
                gained = np.any((true > goal) & (true < best.at_copy / 2))
                best.restart(x, true, near)
                without_gain = 0 if gained else without_gain + 1
                if without_gain > RESTARTS_WITHOUT_GAIN:
                    ending.status = Status.STALLED
                    break
                steps = restart(x)
                now = next(steps)
            elif not np.isfinite(gap).all():
                ending.status = Status.DIVERGED
                break
            if asked:
                ending.status = Status.STOPPED
            elif verdict is not None:
                ending.status = verdict
            elif ending.passes >= request.maxiter:
                ending.status = Status.MAX_PASSES
            elif ending.seconds >= seconds:
                ending.status = Status.TIME_LIMIT
            if ending.status is not None or ending.iterations >= last:
                break
            now = next(steps)
            ending.iterations += 1
            ending.passes += share
    except KeyboardInterrupt:
        ending.status = Status.INTERRUPTED
    if ending.status is not Status.CONVERGED:
        ending.x = best.point(x, exact)
    return ending


def result_of(
    ending: Ending,
    request: Request,
    *,
    gap: FloatArray,
    goal: FloatArray,
    value: FloatArray,
    L: FloatArray,
    method: str,
    certificate: str,
    storage: str,
    notes: tuple[str, ...],
) -> Result:
    """The `Result` of a followed iteration; `x` is the solution itself."""

    def scalar(values: FloatArray) -> float | FloatArray:
        return float(values[0]) if request.flat else values

    rows = ending.rows or [(0, 0.0, ending.seconds, gap)]
    iterations, passes, seconds, gaps = zip(*rows, strict=True)
    gap_column = np.array(gaps)[:, 0] if request.flat else np.array(gaps)
    unknown = np.full(gap_column.shape, np.nan)
    history = History(
        np.array(iterations), np.array(passes), np.array(seconds), unknown, gap_column, unknown, np.zeros(len(rows))
    )
    active = L[L > 0] if np.any(L > 0) else np.zeros(1)
    constants = Constants(
        L_min=float(active.min()),
        L_mean=float(active.mean()),
        L_max=float(active.max()),
        L_sum=float(active.sum()),
        iterations_per_pass=1.0,
    )
    status = ending.status
    assert status is not None
    if status is Status.CONVERGED and np.any(gap > goal):
        status = Status.STALLED
    x = request.shaped(ending.x)
    return Result(
        x=x,
        point=x,
        last=x,
        value=scalar(value),
        gap=scalar(gap),
        primal=scalar(np.full(request.outputs, np.nan)),
        scale=scalar(goal),
        status=status,
        iterations=ending.iterations,
        passes=ending.passes,
        seconds=ending.seconds,
        history=history,
        constants=constants,
        method=method,
        certificate=certificate,
        storage=storage,
        notes=notes,
    )
