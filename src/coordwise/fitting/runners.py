"""One function per formulation: how it is run within limits, and the loop around it that makes the intercept exact."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from coordwise.blas import one_blas_thread
from coordwise.fitting.by_oracle import newton_cg, oracle_of, passes_of
from coordwise.fitting.dual import WithIntercept
from coordwise.fitting.gram import gram_solution
from coordwise.fitting.interior import interior
from coordwise.fitting.krylov import krylov
from coordwise.fitting.model import Candidate, LinearModel
from coordwise.fitting.newton import FEW, newton
from coordwise.fitting.proximal import Descent
from coordwise.fitting.rough import Rough, rough_start
from coordwise.fitting.secant import Secant
from coordwise.fitting.semismooth import Semismooth, has_straight_parts
from coordwise.fitting.strategies import passes_of_a_step
from coordwise.fitting.trial import while_falling
from coordwise.fitting.unpenalised import nonnegative, unpenalised
from coordwise.fitting.working import working_sets
from coordwise.interrupts import Interrupted
from coordwise.methods import Method
from coordwise.recording import Progress, says_stop, worth_recording
from coordwise.results import Certificate, Result, Status
from coordwise.solve import solve
from coordwise.validation import FloatArray, seed_of

__all__ = [
    "RUNNERS",
    "Options",
    "Outcome",
    "Runner",
    "follow",
    "run_dual",
    "run_gram",
    "run_interior",
    "run_newton",
    "run_newton_cg",
    "run_primal",
    "run_working_set",
]

SHORT = 15  # passes over the samples after a round of semismooth Newton steps: more tell that it ended too early
ENOUGH = 0.3  # of its gap before: what is left after a round, unless rounds are of no use


class Kept:
    """The best candidate of a fit so far, and what it took: what is left of it after Ctrl-C or a time limit."""

    def __init__(self) -> None:
        self.found: Candidate | None = None
        self.passes = 0.0
        self.results: list[Result] = []
        self.strategy = ""

    def see(self, found: Candidate, passes: float) -> None:
        """A new candidate, after so many more passes."""
        best = self.found
        self.found = found if best is None or np.all(found.gap <= best.gap) else found.better(best)
        self.passes += passes

    def best(self, model: LinearModel, start: Candidate | None) -> Candidate:
        """The best candidate; that of the start, or zeros, if there was none yet."""
        if self.found is not None or start is None:
            return model.nothing if self.found is None else self.found
        return model.from_primal(start.w, start.c).better(model.recertified(start)).better(model.nothing)


@dataclass(frozen=True)
class Options:
    """What `fit` was asked for; `limit` is when time is up, `kept` the best that has been found."""

    tol: float
    max_passes: float
    limit: float
    method: str | Method
    random_state: Any
    start: Candidate | None
    callback: Callable[[Progress], object] | None
    n_jobs: int
    kept: Kept = field(default_factory=Kept)

    @property
    def threads(self) -> int:
        """How many n_jobs allows."""
        return (os.cpu_count() or 1) if self.n_jobs == -1 else self.n_jobs


@dataclass(frozen=True)
class Outcome:
    """What a formulation found, and what it took."""

    found: Candidate
    status: Status
    results: list[Result]  # of runs over all coordinates, or over working sets
    steps: int = 0  # of Newton's method or refinement, each a pass
    part: float | None = None  # passes of the runs, where they were not over all coordinates of this model
    strategy: str = ""  # if it is not the one that was begun with

    @property
    def passes(self) -> float:
        """Of runs and steps together."""
        runs = sum(result.passes for result in self.results) if self.part is None else self.part
        return float(runs) + self.steps


def _met(model: LinearModel, found: Candidate, tol: float) -> bool:
    return bool(np.all(found.gap <= np.where(model.scale > 0, tol * model.scale, tol**2)))


def run_gram(model: LinearModel, options: Options, before: int = 0) -> Outcome:
    """One Gram matrix, after some steps `before` that a callback has seen."""
    late = None if np.isinf(options.limit) else lambda: time.perf_counter() > options.limit
    none = model.penalty.l1 == 0 and model.penalty.l2 == 0
    plain = model.penalty.l1 == 0 and not model.penalty.positive
    if none:
        found, steps = nonnegative(model, most=options.max_passes, late=late)
    else:
        try:
            found, steps = gram_solution(model, options.tol, options.start, most=options.max_passes, late=late)
        except (np.linalg.LinAlgError, MemoryError):  # positive definite but for rounding; or too large
            if not plain:
                raise
            return run_krylov(model, options)
    options.kept.see(found, steps)
    asked = options.callback is not None and says_stop(options.callback(_progress(model, found, before + steps)))
    if _met(model, found, options.tol):
        return Outcome(found, Status.CONVERGED, [], steps)
    if asked or time.perf_counter() > options.limit:
        return Outcome(found, Status.STOPPED if asked else Status.TIME_LIMIT, [], steps)
    if none or steps >= options.max_passes:
        return Outcome(found, Status.MAX_PASSES, [], steps)
    # A Gram matrix squares the condition number: finish on the data themselves.
    finish = (run_newton if model.d <= min(FEW, model.n) else run_krylov) if plain else run_working_set
    better = finish(model, replace(options, start=found, max_passes=options.max_passes - steps))
    return replace(better, found=better.found.better(found), steps=better.steps + steps)


def follow(
    model: LinearModel,
    options: Options,
    rounds: Iterator[Candidate],
    most: float = np.inf,
    passes: Callable[[], float] | None = None,
) -> Outcome:
    """Round after round, until it has converged or something else ends it.

    Each is a pass, unless `passes` says how many there were.
    """
    before = 0.0 if passes is None else passes()
    found, steps, status = next(rounds), 0, Status.MAX_PASSES
    spent = 0.0 if passes is None else passes()
    options.kept.see(found, spent - before)
    while not _met(model, found, options.tol) and steps < most:
        if time.perf_counter() > options.limit:
            status = Status.TIME_LIMIT
            break
        if (better := next(rounds, None)) is None:
            break
        found, steps, before = better, steps + 1, spent
        spent = steps if passes is None else passes()
        options.kept.see(found, spent - before)
        if options.callback is not None and says_stop(options.callback(_progress(model, found, spent))):
            status = Status.STOPPED
            break
    return Outcome(found, Status.CONVERGED if _met(model, found, options.tol) else status, [], steps)


def run_newton(model: LinearModel, options: Options) -> Outcome:
    """Newton's method; over the samples where that leads nowhere."""
    if model.penalty.l2 == 0:
        outcome = follow(model, options, unpenalised(model, options.tol, most=options.max_passes, start=options.start))
        gone = np.isinf(outcome.found.gap) & (outcome.found.value <= np.finfo(float).eps * model.scale)
        return replace(outcome, status=Status.DIVERGED) if gone.any() else outcome
    rough = Rough() if options.start is not None else rough_start(model, seed_of(options.random_state))
    steps = newton(model, options.tol, start=options.start, w=rough.w, t=rough.t)
    most = min(options.max_passes, 200)
    if not (has_straight_parts(model) and model.loss.shape.mirrored):
        return replace(follow(model, options, steps, most), part=rough.passes)
    first = follow(model, options, while_falling(model, steps, options.tol), most)
    if first.status is not Status.MAX_PASSES or first.steps >= most:
        return replace(first, part=rough.passes)
    # Samples bend and unbend from step to step, as they do where they can be separated: that is easy for the dual.
    allowed = min(options.max_passes - first.steps, (most - first.steps) * passes_of_a_step(model))
    second = run_dual(model, replace(options, start=first.found, max_passes=allowed))
    found, spent = second.found.better(first.found), rough.passes + second.passes
    left = min(most, options.max_passes - second.passes) - first.steps
    if second.status is not Status.MAX_PASSES or left <= 0:
        why = f"dual: {first.steps} steps of Newton's method led nowhere"
        return replace(second, found=found, steps=first.steps, part=spent, strategy=why)
    last = follow(model, options, newton(model, options.tol, start=found), left)
    return replace(last, steps=first.steps + last.steps, part=spent)


def run_newton_cg(model: LinearModel, options: Options) -> Outcome:
    """Newton's method by conjugate gradients."""
    oracle = oracle_of(model, options.limit, options.max_passes)
    rounds = newton_cg(model, options.tol, oracle, options.start)
    outcome = follow(model, options, rounds, passes=lambda: passes_of(oracle))
    outcome = replace(outcome, part=passes_of(oracle) - outcome.steps)
    left = options.max_passes - passes_of(oracle)
    return outcome if left <= 0 else _finished(model, options, outcome)


def run_interior(model: LinearModel, options: Options) -> Outcome:
    """Interior-point steps."""
    rough = Rough() if options.start is not None else rough_start(model, seed_of(options.random_state))
    steps = interior(model, options.tol, start=options.start, w=rough.w)
    outcome = follow(model, options, steps, min(options.max_passes, 200))
    return _finished(model, options, replace(outcome, part=rough.passes))


def run_krylov(model: LinearModel, options: Options) -> Outcome:
    steps: list[int] = []
    rounds = krylov(model, options.tol, start=options.start, steps=steps, most=options.max_passes)
    outcome = follow(model, options, rounds, passes=lambda: sum(steps))
    return _finished(model, options, replace(outcome, steps=sum(steps), part=0.0))


def run_semismooth(model: LinearModel, options: Options) -> Outcome:
    method = Semismooth(model, seed_of(options.random_state))
    found, results = options.start, list[Result]()

    def spent() -> float:
        return method.passes + sum(result.passes for result in results)

    slow, before = False, np.full(model.outputs, np.inf)
    while True:
        with one_blas_thread():
            most = options.max_passes - sum(result.passes for result in results)
            outcome = follow(model, options, method.round(found, options.tol, most))
        found, left = outcome.found, options.max_passes - spent()
        if outcome.status is not Status.MAX_PASSES or left <= 0:
            break
        slow = slow or method.hopeless
        begin = found if method.hopeless else replace(found, c=method.center)
        outcome = run_dual(model, replace(options, start=begin, max_passes=left if slow else min(SHORT, left)))
        results += outcome.results
        if outcome.status is Status.MAX_PASSES:  # its y beside the better w
            outcome = replace(outcome, found=outcome.found.better(model.recertified(replace(found, y=outcome.found.y))))
        found = outcome.found.better(found)
        if _met(model, found, options.tol):
            outcome = replace(outcome, status=Status.CONVERGED)
        if outcome.status is not Status.MAX_PASSES or spent() >= options.max_passes:
            break
        active = found.gap > options.tol * model.scale
        slow = bool(np.any(active & (found.gap > ENOUGH * before)))
        before = found.gap
    return Outcome(found, outcome.status, results, part=spent())


def _finished(model: LinearModel, options: Options, first: Outcome) -> Outcome:
    """Steps over the samples after those that rounding errors ended, if any are allowed."""
    left = options.max_passes - first.steps
    if first.status is not Status.MAX_PASSES or left <= 0:
        return first
    better = run_dual(model, replace(options, start=first.found, max_passes=left))
    found = better.found.better(first.found)
    return replace(better, found=found, steps=first.steps, part=better.passes + (first.part or 0.0))


def run_working_set(model: LinearModel, options: Options, many: bool = False) -> Outcome:
    """Working sets of features, the first of them being all if they are known to be `many`."""
    nnz = max(model.columns.nnz, 1)
    most = options.max_passes * nnz
    descent = Descent(options.method, nnz, most, options.limit, options.random_state, options.callback)
    rounds = working_sets(model, options.tol, descent, start=options.start, many=many)
    before = options.kept.passes
    try:
        outcome = follow(model, options, rounds, passes=lambda: descent.passes)
    except KeyboardInterrupt as stop:
        if isinstance(stop, Interrupted) and isinstance(stop.result, Candidate):
            options.kept.see(stop.result, 0.0)
        options.kept.passes = before + descent.passes
        options.kept.results += descent.results
        raise
    if outcome.status is Status.MAX_PASSES and descent.ended is not None:
        outcome = replace(outcome, status=descent.ended)
    elif outcome.status is Status.MAX_PASSES and time.perf_counter() > options.limit:
        outcome = replace(outcome, status=Status.TIME_LIMIT)
    return replace(outcome, results=descent.results, part=descent.passes)


def _progress(model: LinearModel, found: Candidate, passes: float) -> Progress:
    return Progress(int(passes), float(passes), 0.0, found.value, found.gap, model.scale, 0, np.nan, lambda: found.w)


def run_dual(model: LinearModel, options: Options) -> Outcome:
    """Coordinates are samples."""
    if not model.intercept:
        objective: Any = model.problem.dual()
        objective.any_weights = True
        y = None if options.start is None else options.start.y
        result, found = _solve(model, objective, options, [], y, options.tol, lambda result: _candidate(model, result))
        return Outcome(found, result.status, [result])
    center = model.best_intercept(np.zeros((model.n, model.outputs))) if options.start is None else options.start.c
    far = 1e6 * max(1.0, float(np.max(np.abs(model.b))))
    center = np.clip(center, -far, far)
    objective = WithIntercept.of(model, center)
    y = None if options.start is None else options.start.y
    results: list[Result] = []
    best: Candidate | None = None
    tol = options.tol / 2
    for _ in range(100):
        result, found = _solve(
            model,
            objective,
            options,
            results,
            y,
            tol,
            lambda result: model.from_dual(result.point.reshape(model.n, -1)),
        )
        results.append(result)
        y, best = result.point.reshape(model.n, -1), found.better(best)
        if _met(model, best, options.tol):
            return Outcome(best, Status.CONVERGED, results)
        if result.status is not Status.CONVERGED:
            return Outcome(best, result.status, results)
        moved = np.atleast_1d(result.x[-1]) * objective.column
        still = np.abs(moved - center) <= 1e-12 * np.maximum(np.abs(moved), 1.0)
        if np.all(still) or result.iterations == 0:
            tol /= 10
        center = moved
        objective.move(center)
    assert best is not None
    return Outcome(best, Status.MAX_PASSES, results)


def run_primal(model: LinearModel, options: Options, known: FloatArray | None = None) -> Outcome:
    """Coordinates are features; dual variables that are `known` may be better than those that weights lead to."""
    results: list[Result] = []
    w = None if options.start is None else options.start.w
    if not model.intercept:
        objective = model.problem.primal()
        if known is not None:
            y, value = model.dual_of(known)
            objective.learn(y[:, 0] if objective.flat else y, value)
        if w is None:
            begin = model.certified_at_zero[0]
            objective.at_start = Certificate(begin.value, begin.gap, model.scale, begin.value)
        result, found = _solve(model, objective, options, [], w, options.tol, lambda result: _candidate(model, result))
        return Outcome(found, result.status, [result])
    c = model.best_intercept(np.zeros((model.n, model.outputs))) if options.start is None else options.start.c
    best: Candidate | None = None
    search = Secant(model.outputs)
    tol = options.tol / 2
    for _ in range(100):
        objective = model.problem.primal(offset=c)
        result, found = _solve(
            model,
            objective,
            options,
            results,
            w,
            tol,
            lambda result: model.from_primal(result.point.reshape(model.d, -1)),
        )
        results.append(result)
        w = result.point.reshape(model.d, -1)
        best = found.better(best)
        if _met(model, best, options.tol):
            return Outcome(best, Status.CONVERGED, results)
        if result.status is not Status.CONVERGED:
            return Outcome(best, result.status, results)
        t = model.scores(w, c)
        slope = model.loss.derivative(t, model.b, model.s).sum(0) / model.total
        noise = np.sqrt(2 * model.loss.smoothness * np.atleast_1d(result.gap))
        c, blurred = search.next(c, slope, found.c, noise)
        if np.any(blurred & (best.gap > options.tol * model.scale)):
            tol = max(tol / 10, min(tol, 1e-14))
    assert best is not None
    return Outcome(best, Status.MAX_PASSES, results)


def _candidate(model: LinearModel, result: Result) -> Candidate:
    """Of a run without an intercept, whose value and gap were computed from w and its dual variables alone."""
    assert result.y is not None
    w, y = result.x.reshape(model.d, -1), result.y.reshape(model.n, -1)
    return Candidate(w, np.zeros(model.outputs), y, np.atleast_1d(result.primal), np.atleast_1d(result.gap))


def _solve(
    model: LinearModel,
    objective: Any,
    options: Options,
    before: list[Result],
    x0: Any,
    tol: float,
    certified: Callable[[Result], Candidate],
) -> tuple[Result, Candidate]:
    """A run from x0 within the limits that runs `before` have left, and its point `certified` for the model."""
    spent = sum(result.passes for result in before)
    left = None if np.isinf(options.limit) else max(options.limit - time.perf_counter(), 0.0)

    def see(result: Result) -> Candidate:
        options.kept.results.append(result)
        found = certified(result)
        options.kept.see(found, result.passes)
        return found

    try:
        result = solve(
            objective,
            options.method,
            tol=tol,
            max_passes=max(options.max_passes - spent, 1e-3),
            time_limit=left,
            random_state=options.random_state,
            x0=None
            if x0 is None
            else np.asarray(x0).reshape(objective.rows.count if objective.flat else (-1, model.outputs)),
            callback=options.callback,
            record_every=worth_recording(objective.rows),
            n_jobs=options.n_jobs,
        )
    except Interrupted as stop:
        see(stop.result)
        raise
    return result, see(result)


Runner = Callable[[LinearModel, Options], Outcome]

RUNNERS: dict[str, Runner] = {
    "gram": run_gram,
    "newton": run_newton,
    "newton_cg": run_newton_cg,
    "interior": run_interior,
    "dual": run_dual,
    "krylov": run_krylov,
    "semismooth": run_semismooth,
    "primal": run_primal,
    "working_set": run_working_set,
}
