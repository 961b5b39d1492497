"""Fitting a linear model: a formulation is chosen and run, and what it found becomes a `Fit`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from coordwise.blas import one_blas_thread, one_scipy_thread
from coordwise.deadlines import TimeUp, within
from coordwise.fitting.model import Candidate, LinearModel
from coordwise.fitting.newton import FEW
from coordwise.fitting.probe import budget, with_probe
from coordwise.fitting.rounding import with_rounding
from coordwise.fitting.runners import RUNNERS, Options
from coordwise.fitting.strategies import (
    STRATEGIES,
    check_applies,
    choose,
    may_be_interior,
    may_be_krylov,
    may_be_newton,
    may_be_smooth,
)
from coordwise.fitting.trials import TRIALS
from coordwise.fitting.weighted import by_kernel
from coordwise.interrupts import Interrupted
from coordwise.methods import Method
from coordwise.recording import Progress
from coordwise.results import Status
from coordwise.validation import FloatArray, check_choice

__all__ = ["Fit", "fit"]


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted model with its certificate: gap <= tol * scale for every output if it converged."""

    w: FloatArray
    c: FloatArray
    y: FloatArray
    value: FloatArray
    gap: FloatArray
    scale: FloatArray
    status: Status
    passes: float
    iterations: int
    seconds: float
    strategy: str
    results: tuple[Any, ...]  # Result of the kernel, or Outcome of the oracle

    @classmethod
    def of(
        cls,
        found: Candidate,
        scale: FloatArray,
        status: Status,
        begun: float,
        passes: float,
        strategy: str,
        results: Any = (),
        steps: int | None = None,
    ) -> Fit:
        """A candidate, and what it took since the time `begun`."""
        state = (found.w, found.c, found.y, found.value, found.gap, scale, status, float(passes))
        steps = int(passes) if steps is None else steps
        return cls(*state, steps, time.perf_counter() - begun, strategy, tuple(results))

    @property
    def interruption(self) -> Interrupted:
        """What Ctrl-C raises with this fit."""
        return Interrupted.at(self, "duality gap", self.gap, f"{self.passes:.1f} passes")

    @property
    def candidate(self) -> Candidate:
        """The solution alone, to start another fit from."""
        return Candidate(self.w, self.c, self.y, self.value, self.gap)

    @property
    def converged(self) -> bool:
        """Whether the stopping inequality holds."""
        return self.status is Status.CONVERGED


def fit(
    model: LinearModel,
    *,
    tol: float,
    max_passes: float = 1000,
    time_limit: float | None = None,
    method: str | Method = "auto",
    strategy: str = "auto",
    random_state: Any = 0,
    start: Candidate | None = None,
    callback: Callable[[Progress], object] | None = None,
    n_jobs: int = 1,
    alone: bool = True,
) -> Fit:
    """Minimise P(w, c) until P(w, c) + D(y) <= tol * P(0, 0) for every output, checked at the result.

    "gram", "newton" and "interior" work in the space of the features with dense Gram matrices, "newton_cg" there by
    products with the data alone (conjugate gradients), "dual" over the samples,
    "primal" over the features, "working_set" over working sets of them, "krylov" by conjugate gradients for ridge
    regression, "semismooth" by Newton steps over all features and dense matrices of some samples; "auto" takes the
    cheapest that applies, and leaves the samples for "interior" or "newton", or Krylov spaces for "gram", if the first
    passes or steps show that this is cheaper; elastic nets over all features may begin, and end, with Krylov spaces for
    their smooth part. What was chosen, and why, is in `Fit.strategy`. Unless it is `alone`,
    other fits of a path will use the same Gram matrix, and one of few features or samples is made at once.

    Raises
    ------
    ValueError
        For a strategy that does not apply, with the reason and those that do; and for a loss with a kink beside a
        penalty without an l2 part, or beside an intercept and an l1 penalty or w >= 0, where none does.
    Interrupted
        On Ctrl-C: a KeyboardInterrupt with the best point so far, a `Fit`, as its `result`.
    """
    begun = time.perf_counter()
    limit = np.inf if time_limit is None else begun + time_limit
    options = Options(tol, max_passes, limit, method, random_state, start, None, n_jobs)
    kept = options.kept

    def left(status: Status) -> Fit:
        found = _certified(model, kept.best(model, start), tol, status)
        why = f"{kept.strategy or strategy}; {status.value}"
        return Fit.of(*found, begun, kept.passes, why, kept.results)

    try:
        return within(limit, lambda ask: _fit(model, replace(options, callback=ask), strategy, alone, begun), callback)
    except TimeUp:
        return left(Status.TIME_LIMIT)
    except KeyboardInterrupt:
        raise left(Status.INTERRUPTED).interruption from None


def _fit(model: LinearModel, options: Options, strategy: str, alone: bool, begun: float) -> Fit:
    model = model.penalised(model.penalty)  # a copy of the problem, so that the caller's keeps its own threads
    model.problem.threads = options.threads
    name, why, tol, start = strategy, "as asked", options.tol, options.start
    with one_blas_thread():  # one that helped with a product would spin beside the kernels for a tenth of a second
        if check_choice("strategy", strategy, STRATEGIES) == "auto":
            name, why = choose(model, tol)
        check_applies(model, name)
        tried = strategy == "auto" and _may_be_other(model, name, tol, start)
        probe = budget(model, name, tol) if strategy == "auto" else None
    options.kept.strategy = f"{name}: {why}"
    shared = not alone and min(model.n, model.d) <= FEW
    there = ("moments" if model.n >= model.d else "kernel") in model.shared
    tried = tried and not (name == "gram" and (shared or there))
    by_blas = not sp.issparse(model.A) and (name in ("gram", "newton", "interior") or (name == "dual" and tried))
    by_blas = by_blas and not (model.d <= min(FEW, model.n) and by_kernel(model.A, options.threads))
    if by_blas:  # its threads and ours would be in each other's way: they spin
        model.problem.threads = 1
    with one_scipy_thread(min(model.n, model.d)) if by_blas else one_blas_thread():
        runner = (TRIALS if tried else RUNNERS)[name]
        outcome = (runner if probe is None else with_probe(runner, probe))(model, options)
    return Fit.of(
        *_certified(model, outcome.found, tol, outcome.status),
        begun,
        outcome.passes,
        outcome.strategy or options.kept.strategy,
        outcome.results,
        outcome.steps or sum(result.iterations for result in outcome.results),
    )


def _certified(
    model: LinearModel, found: Candidate, tol: float, status: Status
) -> tuple[Candidate, FloatArray, Status]:
    """What is returned of the best candidate: a gap that allows for its rounding, the scale, and why the fit ended."""
    converged = status is Status.CONVERGED
    goal = np.where(model.scale > 0, tol * model.scale, tol**2)
    if not (converged and np.all(found.value <= model.scale)):
        found = model.none_worse_than_zeros(found)
    found = with_rounding(model, found, goal, converged)
    if np.all(found.gap <= goal) and status is not Status.INTERRUPTED:
        status = Status.CONVERGED
    elif converged:
        status = Status.STALLED
    return found, model.scale, status


def _may_be_other(model: LinearModel, name: str, tol: float, start: Candidate | None) -> bool:
    """Whether another method may turn out to be cheaper than the one that was chosen, or to be a better beginning."""
    if name == "dual":
        return may_be_interior(model) or may_be_newton(model)
    if name == "gram":
        return may_be_krylov(model)
    return name in ("primal", "working_set") and start is None and may_be_smooth(model, tol)
