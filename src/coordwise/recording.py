"""Around a run of the kernel: its clock, history, certificates, best point and changes of weights."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coordwise.ending import Ending, Found
from coordwise.kernels import NO_LIMIT, Run
from coordwise.objectives import Look, Objective
from coordwise.pace import Pace
from coordwise.results import Certificate, Constants, History, Result, Status
from coordwise.rows import Rows
from coordwise.schedules import Schedule
from coordwise.starting import start
from coordwise.validation import FloatArray

MANY = 8  # passes of a run after which packed rows have made up for the packing
SHORT = 1.5  # of the error's logarithm: what a run without a known rate is expected to take so many passes for
OUTSIDE = 1e-12  # of the largest coordinate: how far rounding alone leads a run out of its domain
ROUNDING = 1e-13  # of a value: what its sums may be off by
RECORD, RARE = 1e6, 4.0  # entries of sparse rows that take as long as a record does at least; and passes between two
DENSE = 0.2  # what an entry of a dense row takes, in those

__all__ = ["Log", "Progress", "says_stop", "start_of", "worth_recording"]


@dataclass(frozen=True)
class Progress:
    """What a callback sees at every record; it stops the run by returning True."""

    iterations: int
    passes: float
    seconds: float
    value: float | FloatArray
    gap: float | FloatArray
    scale: float | FloatArray
    restarts: int
    predicted_passes_left: float
    solution: Callable[[], FloatArray] = field(repr=False, compare=False)  # the weights of the point as it is now


def says_stop(answer: object) -> bool:
    """Whether a callback's answer is True itself; other values, truthy or not, mean nothing."""
    return isinstance(answer, (bool, np.bool_)) and bool(answer)


def worth_recording(rows: Rows) -> float:
    """Passes after which a record is due: 1, or up to 4 where a pass would cost less than the record."""
    entries = rows.nnz * (1.0 if rows.dense is None else DENSE)
    return min(max(RECORD / max(entries, 1.0), 1.0), RARE)


class Log:
    """Clock, history and best point of one run; `seconds` leaves out the time spent measuring."""

    resync_every = 200.0  # passes
    looks_per_period = 6  # records within one period of a restarted method: how closely its end is met

    def __init__(
        self,
        objective: Objective,
        schedule: Schedule,
        run: Run,
        *,
        tol: float,
        every: float,
        growth: float,
        begun: float,
        threads: int = 1,
    ) -> None:
        self.objective, self.schedule, self.run, self.threads = objective, schedule, run, threads
        self.tol, self.every, self.growth = tol, every, growth
        self.begun = begun
        self.seconds = self.elapsed
        self.current: Certificate
        self.rows: list[tuple[Any, ...]] = []
        self._point: FloatArray | None = None
        self.errors: list[tuple[float, float]] = []  # (passes, error)
        self.best: FloatArray | None = None
        self.best_errors: FloatArray
        self.restarts, self.restarted, self.period = 0, 0.0, 0.0
        self.pace = Pace(schedule.constants.rate_per_pass or 1.0)
        count, outputs = objective.rows.count, objective.outputs
        self.g = None if schedule.renew is None else np.empty((count, outputs))  # for looks
        self.synced = 0.0
        self.packed = run.packed
        self.extra_steps = self.extra_entries = 0  # of other runs than this one
        self.ending = Ending(self)

    @property
    def elapsed(self) -> float:
        """Wall time, measuring included."""
        return time.perf_counter() - self.begun

    @property
    def passes(self) -> float:
        """Entries touched / nnz; iterations / N for a matrix without entries."""
        if self.objective.rows.nnz == 0:
            return self.iterations / self.objective.count
        return self.entries / self.objective.rows.nnz

    @property
    def entries(self) -> int:
        """Entries touched."""
        return self.run.entries + self.extra_entries

    @property
    def iterations(self) -> int:
        """Steps taken."""
        return self.run.steps + self.extra_steps

    @property
    def point(self) -> FloatArray:
        """The current point (N x K), which nobody may change."""
        if self._point is None:
            self._point = self.run.point()
        return self._point

    @property
    def rising(self) -> bool:
        """Whether a value rose since the last record, where the gap lags behind it and is not there yet."""
        if len(self.rows) < 2 or self.objective.gap_power == 1.0:
            return False
        before, now = (np.asarray(row[3]) for row in self.rows[-2:])
        there = self.current.gap <= self.tol * self.current.scale
        return bool(np.any(~there & (now - before > ROUNDING * np.abs(before))))

    def restart(self) -> None:
        """Restart the momentum, and remember how long the period was: the next one is looked at on its scale."""
        self.run.restart()
        self.restarts += 1
        self.period, self.restarted = self.passes - self.restarted, self.passes

    def adapt(self) -> None:
        """Go on with other weights: the careful ones if the pace is lost, or such as suit the point reached."""
        schedule, passes, error = self.schedule, self.passes, self.current.error
        if schedule.careful is not None:
            if self.pace.lost(passes, error):
                self.change(schedule.careful())
        elif schedule.renew is not None and passes > 0:
            lost = self.pace.lost(passes, error, share=0.5, factor=2.0)
            restarted = schedule.restarts and self.restarted == passes
            assert self.g is not None
            left = self.folds_left(error)
            renewed = schedule.renew(Look(self.point, self.g, self.current, self.speed(), left, lost, restarted))
            if renewed is not None:
                if schedule.restarts and not restarted and self.objective.coordinates.shape.bounded:
                    self.restart()
                self.change(renewed)

    def rate(self, window: float = 0.0, *, skip: int = 0) -> float:
        """How much the logarithm of the error fell per pass over the last `window` passes, two records at least.

        Leaves out the last `skip` records. 0 if that cannot be said: an error may be 0 before the end, that of an image
        with rounding which the point itself does not confirm.
        """
        errors = self.errors[: len(self.errors) - skip]
        now, error = errors[-1]
        far = (look for look in reversed(errors) if look[0] < now and look[0] <= now - window)
        since, was = next(far, errors[0])
        said = now > since and 0 < error < math.inf and 0 < was < math.inf
        return (math.log(was) - math.log(error)) / (now - since) if said else 0.0

    def speed(self) -> float:
        """The rate of exact steps: of the error, or where that lags behind the value, as the value's decreases say it.

        Decreases that become smaller by a factor are what is left becoming smaller by it; see `Objective.gap_power`.
        The gap of losses with kinks lags behind too, by a primal point that swings; there D's own rate counts, though
        the gap follows it by half in the end. On logistic losses, whose curvature is first used up where it is large, a
        rate that has become smaller is expected to do so once more, by the same factor.
        """
        rate, power = self.rate(), self.objective.gap_power
        shape = self.objective.coordinates.shape
        if shape.logistic and len(self.errors) > 2 and 0 < rate < (before := self.rate(skip=1)):
            return rate * rate / before
        lags = power < 1.0 or shape.curvature == 0
        if not lags or len(self.rows) < 3:
            return rate
        (first, high), (middle, lower), (last, low) = ((row[1], np.asarray(row[3])) for row in self.rows[-3:])
        if not last > middle > first:
            return rate
        before, now = (high - lower) / (middle - first), (lower - low) / (last - middle)
        if not np.all((now > 0) & (before > now)):
            return rate
        return max(rate, power * float(np.log(before / now).min()) / ((last - first) / 2))

    def folds_left(self, error: float) -> float:
        """How much of the logarithm of the error is left to the tolerance."""
        return math.log(error / self.tol) if error > 0 and self.tol > 0 else math.inf

    def long(self, schedule: Schedule) -> bool:
        """Whether a schedule is expected to take so many passes that packing the rows for it pays."""
        rate, left = schedule.constants.rate_per_pass, self.folds_left(self.current.error)
        return left > (SHORT if rate is None else -MANY * math.log(max(rate, 1e-300)))

    def change(self, schedule: Schedule) -> None:
        """Another schedule from the same point, and with the same momentum if there is one."""
        plan, places = schedule.plan, schedule.places
        here, self._point = self.point, None  # Ctrl-C may come when it has moved already
        if plan.accelerated == self.schedule.plan.accelerated:
            if places is not None:
                self.run.settle(np.flatnonzero(schedule.idle).astype(np.uint32), places)
            self.run.replan(plan, schedule.cells, schedule.members)
        else:
            done, pack, image = (self.iterations, self.entries), self.long(schedule), self.run.image()
            run = start(self.objective, schedule, self.run.seed, here, self.threads, pack=pack, image=image)
            self.run, (self.extra_steps, self.extra_entries) = run, done  # at once: Ctrl-C may have come before
            self.packed |= run.packed
            if places is not None:
                self.run.settle(np.flatnonzero(schedule.idle).astype(np.uint32), places)
        self.pace = self.pace.renewed(schedule.constants.rate_per_pass or 1.0)
        self.schedule = schedule.without_arrays()

    def spacing(self) -> float:
        """Passes to the next record."""
        spacing = self.growth * self.passes
        if self.schedule.careful is not None:
            spacing = max(spacing / 2, min(spacing, self.pace.fold))
        elif self.schedule.renew is not None:
            spacing = min(max(self.pace.fold, 2 * self.every), spacing)
        if self.schedule.restarts:
            spacing = min(spacing, max(self.passes - self.restarted, self.period) / self.looks_per_period)
        spacing = max(self.every, spacing)
        steady = self.schedule.careful is None and self.schedule.renew is None  # else records change the weights
        least = self.every / 4 if steady else self.every
        if self.growth > 0 and self.tol > 0 and (rate := self.rate(spacing)) > 0:
            spacing = min(spacing, max(1.05 * self.folds_left(self.errors[-1][1]) / rate, least))
        return spacing

    def advance(self, max_passes: float, max_iterations: float, seconds_left: float) -> None:
        """Steps up to the next record, or to a limit."""
        spacing = min(self.spacing(), max_passes - self.passes)
        rows = self.objective.rows
        entries = max(math.ceil(spacing * rows.nnz), 1) if rows.nnz else NO_LIMIT
        # Rows without entries would not end a run that counts entries only.
        count = self.objective.count
        per_pass = max(4 * self.schedule.constants.iterations_per_pass, 4 * count) if rows.nnz else count
        steps = int(min(max(math.ceil(spacing * per_pass), 1), max_iterations - self.iterations, NO_LIMIT))
        self._point = None
        begun = time.perf_counter()
        if self.passes - self.synced >= self.resync_every:
            self.resync()
        try:
            self.run.advance(
                steps=steps,
                entries=min(entries, NO_LIMIT),
                seconds=seconds_left if math.isfinite(seconds_left) else -1.0,
            )
        finally:
            self.seconds += time.perf_counter() - begun

    def resync(self) -> None:
        """Recompute the images."""
        self.run.resync()
        self.synced = self.passes

    def record(self, known: Certificate | None = None) -> None:
        """Certificate, unless it is known, and history at the current point; the best of every output is kept."""
        with np.errstate(over="ignore", invalid="ignore"):
            self.current = c = self._certified() if known is None else known
            error = c.error
        self.errors.append((self.passes, error))
        self.append(c)
        self.ending.see(self)
        if self.best is None:
            self.best, self.best_errors = self.point, c.errors
        elif (better := c.errors < self.best_errors).any():
            self.best = self.point if better.all() else np.where(better, self.point, self.best)
            self.best_errors = np.minimum(self.best_errors, c.errors)

    def _certified(self) -> Certificate:
        """At the current point, from the images of the run, unless these belong to a point outside of the domain.

        On logistic losses, momentum that is kept when the weights change may lead there.
        """
        found = self.objective.certify_run(self.run, self.g)
        if (
            self.schedule.plan.accelerated
            and self.schedule.renew is not None
            and self.objective.coordinates.shape.logistic
        ):
            beyond = np.abs(self.run.point(inside=False) - self.point).max()
            if beyond > OUTSIDE * np.abs(self.point).max():
                return self.objective.certify(self.point)
        return found

    def append(self, c: Certificate) -> None:
        """A row of the history."""
        self.rows.append((self.iterations, self.passes, self.seconds, c.value, c.gap, c.primal, self.restarts))

    def progress(self) -> Progress:
        """What a callback sees."""
        rate, error = self.schedule.constants.rate_per_pass, self.current.error
        left = math.nan
        if rate is not None and 0 < rate < 1 and error > 0:
            finite = self.tol > 0 and error < math.inf
            left = max((math.log(self.tol) - math.log(error)) / math.log(rate), 0.0) if finite else math.inf
        value, gap, scale = map(self.objective.scalar, (self.current.value, self.current.gap, self.current.scale))
        state = (self.iterations, self.passes, self.seconds, value, gap, scale, self.restarts, left)
        return Progress(*state, self.solution)

    def solution(self) -> FloatArray:
        """What the user wants of the current point."""
        w = self.objective.solution(self.run.image())
        return self.objective.shaped(self.point.copy() if w is None else w)

    def storage(self) -> str:
        """How the matrix was stored, and every copy that was made of it."""
        packed = "; rows packed beside the coordinates for speed" if self.packed else ""
        return self.objective.rows.storage + packed

    def result(self, status: Status) -> Result:
        """The best point with its certificate, recomputed from the point, and from better weights if it has some."""
        objective = self.objective
        assert self.best is not None
        found = self.ending.found or Found(self.best, *objective.exact(self.best))
        return result_of(
            objective,
            found,
            status,
            work=(self.iterations, self.passes, self.seconds),
            rows=self.rows,
            constants=self.schedule.constants,
            method=self.schedule.description,
            storage=self.storage(),
            last=self.run.point(),
        )


def start_of(objective: Objective, x: FloatArray, method: str, begun: float) -> Result:
    """The result of a run that Ctrl-C ended before its first step, at its start x."""
    found = Found(x, *objective.exact(x))
    c, work = found.certificate, (0, 0.0, time.perf_counter() - begun)
    return result_of(
        objective,
        found,
        Status.INTERRUPTED,
        work=work,
        rows=[(*work, c.value, c.gap, c.primal, 0)],
        constants=Constants(math.nan, math.nan, math.nan, math.nan, math.nan),  # not known yet
        method=method,
        storage=objective.rows.storage,
        last=x,
    )


def result_of(
    objective: Objective,
    found: Found,
    status: Status,
    *,
    work: tuple[int, float, float],
    rows: list[tuple[Any, ...]],
    constants: Constants,
    method: str,
    storage: str,
    last: FloatArray,
) -> Result:
    """A point as a `Result`, with the work (iterations, passes, seconds), the records and the last point of its run."""
    x, certificate = found.x, found.certificate
    w = objective.solution(found.image) if found.w is None else found.w
    y = objective.dual_variables(x, found.image, certificate)
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    if objective.flat:
        columns = [column[:, 0] if column.ndim == 2 else column for column in columns]
    iterations, passes, seconds = work
    return Result(
        x=objective.shaped(x if w is None else w),
        point=objective.shaped(x),
        last=objective.shaped(last),
        value=objective.scalar(certificate.value),
        gap=objective.scalar(certificate.gap),
        primal=objective.scalar(certificate.primal),
        scale=objective.scalar(certificate.scale),
        status=status,
        iterations=iterations,
        passes=passes,
        seconds=seconds,
        history=History(*columns),
        constants=constants,
        method=method,
        certificate=objective.certificate_name,
        storage=storage,
        y=None if y is None else objective.shaped(y),
    )
