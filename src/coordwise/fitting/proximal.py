"""Proximal Newton steps for smooth losses with any penalty: quadratic models, minimised by coordinate descent."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from coordwise.fitting.model import Candidate, LinearModel
from coordwise.fitting.newton import SHORT, majorant
from coordwise.fitting.quadratic import Columns, Quadratic
from coordwise.interrupts import Interrupted
from coordwise.lines import halved
from coordwise.methods import Method
from coordwise.recording import Progress, worth_recording
from coordwise.results import Result, Status
from coordwise.solve import solve
from coordwise.validation import FloatArray

__all__ = ["Descent", "proximal_newton"]

MODEL = 0.3  # what a model's gap is reduced to, relative to where its minimisation starts
STEPS = 100
FLAT = 1e-2  # curvature that a linear piece of the loss gets in a model, relative to the largest
DAMP = 1e-9  # curvature of every sample at least, relative to the largest: far out a logistic loss has none


@dataclass
class Descent:
    """Coordinate descent on quadratic models, within limits, and what it has cost."""

    method: str | Method = "auto"
    a_pass: float = 1.0  # entries
    most: float = np.inf  # entries
    until: float = np.inf  # time.perf_counter()
    random_state: Any = 0
    callback: Callable[[Progress], object] | None = None
    watched: bool = False  # whether the callback is called within runs, because there may be only one
    ended: Status | None = None  # if the callback ended it
    entries: float = 0.0
    results: list[Result] = field(default_factory=list)

    @property
    def spent(self) -> bool:
        """Whether a limit is reached."""
        return self.ended is not None or self.entries >= self.most or time.perf_counter() >= self.until

    @property
    def passes(self) -> float:
        """Over all features."""
        return self.entries / self.a_pass

    def minimise(self, objective: Quadratic, x0: FloatArray, goal: float, every: float = 1.0) -> FloatArray:
        """The minimiser to a gap of `goal`, as far as the limits allow, with a record `every` so many passes."""
        left = (self.most - self.entries) / max(objective.rows.nnz, 1)
        if left <= 0:
            return x0
        at_zero, callback = objective.value_at_zero, self.callback if self.watched else None

        def watch(progress: Progress) -> object:
            assert callback is not None
            here = progress.passes * objective.rows.nnz / self.a_pass
            return callback(replace(progress, passes=self.passes + here))

        try:
            result = solve(
                objective,
                self.method,
                tol=max(goal / at_zero, 1e-15) if at_zero > 0 else 1.0,
                max_passes=left,
                time_limit=None if np.isinf(self.until) else max(self.until - time.perf_counter(), 0.0),
                x0=x0,
                random_state=self.random_state,
                callback=None if callback is None else watch,
                record_every=every,
            )
        except Interrupted as stop:
            self.note(stop.result, objective)
            raise
        self.note(result, objective)
        if result.status is Status.STOPPED:
            self.ended = result.status
        return np.asarray(result.point)

    def note(self, result: Result, objective: Quadratic) -> None:
        """One more run, and its cost."""
        self.results.append(result)
        self.entries += result.passes * objective.rows.nnz


def proximal_newton(model: LinearModel, start: Candidate, goal: float, descent: Descent) -> Candidate:
    """Minimise P(w, c) for a model with one output until its gap is <= goal, as far as the descent's limits allow.

    For the squared loss the model is the problem itself, and one step is enough. `Interrupted` has the best candidate.
    """
    best = start
    try:
        for found in _candidates(model, start, goal, descent):
            best = found
    except KeyboardInterrupt as stop:
        if isinstance(stop, Interrupted):  # in a run of coordinate descent
            best = model.from_primal(stop.result.point[:, None]).better(best)
        raise Interrupted(result=best) from None
    return best


def _candidates(model: LinearModel, start: Candidate, goal: float, descent: Descent) -> Iterator[Candidate]:
    """The best candidate so far after every step."""
    columns, everything = model.columns, slice(None)
    best = start
    if model.loss.name == "squared":
        h = np.ones(model.n) if model.weights is None else model.weights
        quadratic = Quadratic(columns, everything, h, model.b[:, 0], model.total, model.penalty, model.intercept)
        w = descent.minimise(quadratic, start.w[:, 0], goal, worth_recording(quadratic.rows))
        yield model.from_primal(w[:, None]).better(best)
        return
    w, c = start.w[:, 0], float(start.c[0])
    aim, last = MODEL, start
    for _ in range(STEPS):
        if best.gap[0] <= goal or descent.spent:
            break
        before = descent.entries
        w, c = _step(model, columns, w, c, aim, descent)
        found = model.from_primal(w[:, None])
        c = float(found.c[0])
        if not found.value[0] < last.value[0] and aim < 1e-8:
            break  # all that rounding allows
        if descent.entries - before <= 2 * max(columns.nnz, 1) or not found.value[0] < last.value[0]:
            aim /= 4  # models are good enough to be solved more accurately
        best, last = found.better(best), found
        yield best


def _step(
    model: LinearModel, columns: Columns, w: FloatArray, c: float, aim: float, descent: Descent
) -> tuple[FloatArray, float]:
    """One step with a line search."""
    b, total, penalty = model.b[:, 0], model.total, model.penalty
    s: Any = 1.0 if model.weights is None else model.weights
    product = model.problem.product
    t = product(w[:, None])[:, 0] + c
    y = model.loss.derivative(t, b, s)

    def search(h: FloatArray) -> tuple[float, float, FloatArray, float]:
        """(value, length, w, c) after the step with these curvatures of the loss, halved until it descends."""
        z = t - np.divide(y, h, out=np.zeros_like(y), where=h > 0)
        quadratic = Quadratic(columns, slice(None), h, z, total, penalty, model.intercept)
        x = descent.minimise(quadratic, w, aim * float(quadratic.certify(w[:, None]).gap[0]))
        shift = quadratic.intercept(x) - c if model.intercept else 0.0
        step = x - w
        move = product(step[:, None])[:, 0] + shift

        def penalised(length: float) -> float:
            return float(penalty.value((w + length * step)[:, None])[0])

        def value(length: float) -> float:
            return float(model.loss.value(t + length * move, b, s).sum() / total + penalised(length))

        slope = min(float(y @ move) / total + penalised(1.0) - penalised(0.0), 0.0)
        length, there = halved(value, value(0.0), slope)
        return there, length, w + length * step, c + length * shift

    largest = model.loss.smoothness * s
    h = np.asarray(model.loss.second_derivative(t, b, s), np.float64)
    h = np.where((h <= 0) & (y != 0), FLAT * largest, np.maximum(h, DAMP * largest))
    reached, length, new_w, new_c = search(h)
    if length < SHORT:
        other, _, other_w, other_c = search(majorant(model, t, y, b, s))
        if other < reached or not np.isfinite(reached):
            return other_w, other_c
    return new_w, new_c
