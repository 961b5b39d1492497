"""A method that may be enough first, before the one that was chosen or in its place."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from coordwise.blas import one_blas_thread
from coordwise.fitting.krylov import FIRST, GRAM, TOGETHER, krylov
from coordwise.fitting.model import Candidate, LinearModel
from coordwise.fitting.runners import (
    Options,
    Outcome,
    Runner,
    follow,
    run_dual,
    run_gram,
    run_interior,
    run_newton,
    run_primal,
    run_working_set,
)
from coordwise.fitting.smooth_part import smooth_part
from coordwise.fitting.strategies import may_be_newton, passes_of_newton
from coordwise.fitting.trial import Trial
from coordwise.recording import Progress
from coordwise.results import Status

__all__ = ["TRIALS"]

Callback = Callable[[Progress], object]

LOOKS = (6, 12)  # passes over the samples after which it is judged whether Newton's method is to take over


def _krylov_first(model: LinearModel, options: Options) -> Outcome:
    """Steps over Krylov spaces, as long as they promise to cost less than a Gram matrix, or no time is left for one."""
    if options.max_passes <= FIRST:  # a Gram matrix is one pass
        return run_gram(model, options)
    begun = time.perf_counter()
    steps: list[int] = []
    enough = min(model.n, model.d) / (GRAM * max(1.0, model.outputs / TOGETHER))
    threads, model.problem.threads = model.problem.threads, options.threads
    with one_blas_thread():
        rounds = krylov(model, options.tol, start=options.start, steps=steps, first=FIRST, most=options.max_passes - 1)
        best = next(rounds)

        def further() -> Outcome:
            return follow(model, options, itertools.chain([best], rounds), 1, lambda: sum(steps))

        before = _relative(model, best)
        first = further()
        while first.status is Status.MAX_PASSES and first.steps > 0:
            best, error = first.found, _relative(model, first.found)
            fallen = math.log(before / error) if 0 < error < before else 0.0
            away = math.log(max(error, 1e-300) / max(options.tol, 1e-300))
            dear = fallen == 0 or sum(steps) + away / fallen * steps[-1] > enough
            a_step = (time.perf_counter() - begun) / sum(steps)
            if dear and time.perf_counter() + enough * a_step <= options.limit:
                break
            before = error
            first = further()
    model.problem.threads = threads
    if first.status is not Status.MAX_PASSES:
        cheaper = " cost less than a Gram matrix" if first.status is Status.CONVERGED else ""
        why = f"{sum(steps)} steps over Krylov spaces{cheaper}"
        return replace(first, steps=sum(steps), part=0.0, strategy=f"krylov: {why}")
    outcome = run_gram(model, replace(options, max_passes=options.max_passes - sum(steps)), sum(steps))
    return replace(outcome, found=outcome.found.better(first.found), steps=outcome.steps + sum(steps))


def _relative(model: LinearModel, found: Candidate) -> float:
    """The largest gap in units of P(0, 0), 1 at most."""
    return min(float(np.max(found.gap / np.maximum(model.scale, 1e-300))), 1.0)


def _dual_first(model: LinearModel, options: Options) -> Outcome:
    """Steps over the samples, as long as they promise to cost less than a method with Gram matrices."""
    if may_be_newton(model):
        left = options.max_passes - LOOKS[1]
        if left <= 0:
            return replace(run_newton(model, options), strategy=f"newton: {options.max_passes:g} passes are allowed")
        name, other = "newton", run_newton
        trial = Trial(options.tol, options.callback, LOOKS, min(passes_of_newton(model, options.tol), left))
    else:
        name, other, trial = "interior", run_interior, Trial(options.tol, options.callback)
    first = run_dual(model, replace(options, callback=trial))
    if not trial.why or first.status is not Status.STOPPED:
        return first
    outcome = other(model, replace(options, max_passes=max(options.max_passes - first.passes, 1e-3)))
    return replace(
        outcome,
        found=outcome.found.better(first.found),
        part=(outcome.part or 0.0) + first.passes,
        strategy=f"{name}: {trial.why}",
    )


def _smooth_first(model: LinearModel, options: Options) -> Outcome:
    """Steps over the features after some for the smooth part alone, unless these are enough."""
    steps: list[int] = []
    rounds = smooth_part(model, options.tol, steps=steps, most=options.max_passes)
    first = follow(model, options, rounds, passes=lambda: sum(steps))
    spent = sum(steps)
    left, taken = options.max_passes - spent, f"{spent} steps for the smooth part"
    if first.status is not Status.MAX_PASSES or left <= 0:
        why = ", beside which the l1 penalty is small" if first.status is Status.CONVERGED else ""
        return replace(first, steps=spent, part=0.0, strategy=f"krylov: {taken}{why}")
    options = replace(options, start=first.found, max_passes=left, callback=_counted(options.callback, spent))
    name = "working_set" if model.intercept else "primal"
    strategy = f"{name}: coordinates are all features, after {taken}"
    if model.intercept:
        second = run_working_set(model, options, many=True)
    else:
        second = run_primal(model, options, first.found.y)
    found = second.found.better(first.found)
    return replace(second, found=found, steps=spent, part=second.passes, strategy=strategy)


def _counted(callback: Callback | None, before: int) -> Callback | None:
    """A callback that counts passes from those that were taken before."""
    if callback is None:
        return None
    return lambda progress: callback(replace(progress, passes=progress.passes + before))


TRIALS: dict[str, Runner] = {
    "gram": _krylov_first,
    "dual": _dual_first,
    "primal": _smooth_first,
    "working_set": _smooth_first,
}
