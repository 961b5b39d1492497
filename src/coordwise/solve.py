"""The driver: the only loop around the kernel."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from coordwise.kernels import NO_LIMIT, Run
from coordwise.methods import SDCA, Method, Schedule, get_method
from coordwise.objectives import LinearSystem, Objective
from coordwise.restarts import Restarts
from coordwise.results import Certificate, History, Result, Status
from coordwise.validation import FloatArray, check_number, seed_of

__all__ = ["Progress", "solve"]


@dataclass(frozen=True)
class Progress:
    """What a callback sees at every record; it stops the run by returning True."""

    iterations: int
    passes: float
    seconds: float
    value: FloatArray
    gap: FloatArray
    scale: FloatArray
    restarts: int
    predicted_passes_left: float


def solve(
    objective: Objective,
    method: str | Method = "auto",
    *,
    tol: float = 1e-8,
    max_passes: float = 1000,
    time_limit: float | None = None,
    random_state: Any = 0,
    x0: Any = None,
    callback: Callable[[Progress], object] | None = None,
    record_every: float = 1.0,
    record_growth: float = 0.1,
    n_jobs: int = 1,
) -> Result:
    """Minimise F(x) = G(Bx) + sum_i h_i(x_i) by randomized coordinate descent, with a certificate.

    Stops when gap <= tol * scale for every output, checked at the returned point from that point alone. For empirical
    risk minimisation gap is the duality gap P(w) + D(y) and scale = P(0); for `LinearSystem` |b - Ax| and |b|; for
    `LeastSquares` |A'(Ax - b) + damp^2 x| and |A'b|.

    Parameters
    ----------
    objective : Objective
        ``ERM(...).dual()``, ``ERM(...).primal()``, ``LinearSystem(A, b)``, ``LeastSquares(A, b)``.
    method : str or Method, default "auto"
        auto, nu_acdm, nu_acdm_ns, acdm, apcg, approx, rcdm, kaczmarz, sdca; or an object such as ``NUACDM(beta=0.5)``.
    tol : float, default 1e-8
    max_passes : float, default 1000
        Limit on entries touched / nnz(A).
    time_limit : float, optional
        Limit on seconds of wall time, measuring included.
    random_state : int, Generator, RandomState or None, default 0
        Same seed, same result, bit for bit, on one machine; None draws a fresh seed.
    x0 : array of shape (N,) or (N, K), optional
        Start in coordinate space, a previous ``Result.x`` for instance. Zeros by default; moved into the domain.
    callback : callable, optional
        Called with a `Progress` at every record; return True to stop.
    record_every : float, default 1.0
        Passes between records (certificate, history, callback) at the beginning of the run.
    record_growth : float, default 0.1
        Later records are record_growth * passes apart if that is more, so that certificates stay a small share of the
        work; 0 keeps them evenly spaced.
    n_jobs : int, default 1
        Threads over groups of outputs; one output uses one thread. The result does not depend on it.

    Returns
    -------
    Result
        With the last point if it converged, else the best point recorded. Ctrl-C ends the run with status
        "interrupted" and the best point so far.

    Raises
    ------
    TypeError, ValueError
        Naming the argument, what was wrong and what would work; a method that needs what the objective lacks says so.
    """
    if not isinstance(objective, Objective):
        hint = "; call .dual() or .primal() on it first" if hasattr(objective, "dual") else ""
        raise TypeError(f"objective must be a coordwise objective, not {type(objective).__name__}{hint}.")
    tol = check_number("tol", tol, low=0)
    max_passes = check_number("max_passes", max_passes, low=0, strictly=True, infinite=True)
    limit = np.inf if time_limit is None else check_number("time_limit", time_limit, low=0, infinite=True)
    every = check_number("record_every", record_every, low=0, strictly=True)
    growth = check_number("record_growth", record_growth, low=0)
    threads = int(check_number("n_jobs", n_jobs, low=1))
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be callable, not {type(callback).__name__}.")
    seed = seed_of(random_state)

    begun = time.perf_counter()
    schedule = get_method(method).schedule(objective)
    x = objective.start(x0)
    _settle(objective, schedule, x)
    run = start(objective, schedule, seed, x, threads)
    log = _Log(objective, schedule, run, every, growth, time.perf_counter() - begun)
    restarts = Restarts() if schedule.restarts else None
    status = Status.INCONSISTENT if isinstance(objective, LinearSystem) and objective.inconsistent else None
    try:
        log.record()
        while status is None:
            if log.current.meets(tol) and log.confirm(tol):
                status = Status.CONVERGED
            elif not np.isfinite(log.error):
                status = Status.DIVERGED
            elif callback is not None and callback(log.progress(tol)) is True:
                status = Status.STOPPED
            elif log.passes >= max_passes:
                status = Status.MAX_PASSES
            elif time.perf_counter() - begun >= limit:
                status = Status.TIME_LIMIT
            else:
                if restarts is not None and restarts.due(log.error):
                    run.restart()
                    log.restarts += 1
                log.advance(max_passes, limit - (time.perf_counter() - begun))
                log.record()
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
        log.record()
    return log.result(status)


def start(objective: Objective, schedule: Schedule, seed: int, x: FloatArray, threads: int = 1) -> Run:
    """A run of the schedule on the objective from x (N x K)."""
    return Run(
        objective.rows,
        objective.coordinates,
        objective.smooth,
        schedule.plan,
        cells=schedule.cells,
        seed=seed,
        x0=x,
        image0=objective.image0,
        threads=threads,
    )


def _settle(objective: Objective, schedule: Schedule, x: FloatArray) -> None:
    """Put coordinates that are never drawn at their own minimiser, where they have one."""
    idle = schedule.idle
    if idle.any() and objective.coordinates.centers is not None:
        best = objective.coordinates.minimizers(objective.outputs)
        x[idle] = np.where(np.isfinite(best[idle]), best[idle], x[idle])


class _Log:
    """Clock, history and best point of one run. The clock runs during `advance` only."""

    resync_every = 50.0  # passes

    def __init__(
        self, objective: Objective, schedule: Schedule, run: Run, every: float, growth: float, seconds: float
    ) -> None:
        self.objective, self.schedule, self.run = objective, schedule, run
        self.every, self.growth, self.seconds = every, growth, seconds
        self.nnz = objective.rows.nnz
        self.restarts = 0
        self.rows: list[tuple[Any, ...]] = []
        self.current: Certificate
        self.best_error = np.inf
        self.best: FloatArray | None = None
        self.synced = 0.0
        self.polish_steps = self.polish_entries = 0

    @property
    def passes(self) -> float:
        """Entries touched / nnz; iterations / N for a matrix without entries."""
        if self.nnz == 0:
            return self.iterations / self.objective.rows.count
        return (self.run.entries + self.polish_entries) / self.nnz

    @property
    def iterations(self) -> int:
        return self.run.steps + self.polish_steps

    @property
    def error(self) -> float:
        return self.current.error

    def advance(self, max_passes: float, seconds_left: float) -> None:
        gap = max(self.every, self.growth * self.passes)
        gap = min(gap, max_passes - self.passes)
        count = self.objective.rows.count
        entries = max(int(np.ceil(gap * self.nnz)), 1) if self.nnz else NO_LIMIT
        per_pass = self.schedule.constants.iterations_per_pass
        steps = max(int(np.ceil(4 * gap * max(per_pass, count))), 1)  # rows without entries would not end otherwise
        begun = time.perf_counter()
        if self.passes - self.synced >= self.resync_every:
            self.run.resync()
            self.synced = self.passes
        try:
            self.run.advance(
                steps=steps if self.nnz else max(int(np.ceil(gap * count)), 1),
                entries=entries,
                seconds=seconds_left if np.isfinite(seconds_left) else -1.0,
            )
        finally:
            self.seconds += time.perf_counter() - begun

    def record(self) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            self.current = c = self.objective.certificate(self.run.image(), self.run.sums)
        self.rows.append((self.run.steps, self.passes, self.seconds, c.value, c.gap, c.primal, self.restarts))
        if self.best is None or c.error < self.best_error:
            self.best, self.best_error = self.run.point(), c.error

    def confirm(self, tol: float) -> bool:
        """Whether the inequality holds at the point itself, not only for images that carry rounding."""
        x = self.run.point()
        exact = self.objective.certify(x)
        if exact.meets(tol):
            self.best = self.polished(x, tol)
            return True
        self.run.resync()
        self.synced = self.passes
        return False

    def polished(self, x: FloatArray, tol: float) -> FloatArray:
        """x after one round of exact coordinate steps, if that still meets tol.

        Accelerated iterates are averages of points on the boundary: without the round, coordinates that belong at a kink
        or a bound (the zeros of a Lasso) are only close to it.
        """
        shape, plan = self.objective.coordinates.shape, self.schedule.plan
        if not (plan.accelerated and plan.prox) or shape.logistic:
            return x
        begun = time.perf_counter()
        schedule = SDCA().schedule(self.objective)
        run = start(self.objective, schedule, 0, x)
        run.advance(steps=self.objective.rows.count)
        self.polish_steps, self.polish_entries = run.steps, run.entries
        self.seconds += time.perf_counter() - begun
        y = run.point()
        return y if self.objective.certify(y).meets(tol) else x

    def progress(self, tol: float) -> Progress:
        rate = self.schedule.constants.rate_per_pass
        left = np.nan
        if rate is not None and 0 < rate < 1 and self.error > 0:
            left = max(np.log(tol / self.error) / np.log(rate), 0.0) if tol > 0 else np.inf
        c = self.current
        return Progress(self.run.steps, self.passes, self.seconds, c.value, c.gap, c.scale, self.restarts, float(left))

    def result(self, status: Status) -> Result:
        objective = self.objective
        assert self.best is not None
        x = self.best
        certificate = objective.certify(x)
        w = objective.solution(objective.image(x))

        def scalar(values: FloatArray) -> Any:
            return float(values[0]) if objective.flat else values

        columns = [np.array(column) for column in zip(*self.rows, strict=True)]
        if objective.flat:
            columns = [column[:, 0] if column.ndim == 2 else column for column in columns]
        return Result(
            x=objective.shaped(x),
            w=objective.shaped(x if w is None else w),
            value=scalar(certificate.value),
            gap=scalar(certificate.gap),
            primal=scalar(certificate.primal),
            scale=scalar(certificate.scale),
            status=status,
            iterations=self.iterations,
            passes=self.passes,
            seconds=self.seconds,
            history=History(*columns),
            constants=self.schedule.constants,
            method=self.schedule.description,
            certificate=objective.certificate_name,
            storage=objective.rows.storage,
        )
