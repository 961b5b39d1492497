"""Following an iteration that is not the kernel's: clock, history, stopping, the best point, interruption."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from coordwise.linalg.conjugate import Iterate
from coordwise.linalg.request import Request, norms
from coordwise.results import Constants, History, Result, Status
from coordwise.validation import FloatArray

__all__ = ["Ending", "follow", "result_of"]

Judge = Callable[[Iterate], Status | None]
RESTARTS_WITHOUT_GAIN = 2


class Ending:
    """What a followed iteration came to: its last point, why it ended, and its history.

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


def follow(
    restart: Callable[[FloatArray], Iterator[Iterate]],
    x: FloatArray,
    exact: Callable[[FloatArray], FloatArray],
    request: Request,
    goal: FloatArray,
    *,
    ending: Ending,
    by_slope: bool = False,
    limit: float | None = None,
    judge: Judge | None = None,
    share: float = 1.0,
) -> Ending:
    """Iterate from x until the gap, confirmed by `exact(x)`, is <= goal in every column, or something else ends it.

    Parameters
    ----------
    restart : callable
        The iteration from a point; called again when rounding has carried the recursion away from the truth.
    exact : callable
        The gap of x from x alone.
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
    best, without_gain = np.inf, 0
    ending.x, ending.status = x, None
    steps = restart(x)
    try:
        now = next(steps)
        while True:
            gap = norms(now.slope if by_slope else now.residual)
            ending.gap = gap
            ending.record(gap)
            asked = request.show(x)
            verdict = None if judge is None else judge(now)
            if (gap <= goal).all() or not now.moving:
                ending.gap = exact(x)
                error = float(np.max(ending.gap / goal))
                if error <= 1:
                    ending.status = Status.CONVERGED
                    break
                without_gain = 0 if error < 0.5 * best else without_gain + 1
                best = min(best, error)
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
        w=x,
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
