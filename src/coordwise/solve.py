"""The driver: the only loop around the kernel."""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from coordwise.interrupts import Interrupted
from coordwise.methods import NUACDM, Method, get_method
from coordwise.objectives import LinearSystem, Objective
from coordwise.recording import Log, Progress, says_stop, start_of
from coordwise.regularized import Regularized
from coordwise.restarts import Restarts
from coordwise.results import Result, Status
from coordwise.starting import settle, start
from coordwise.validation import check_callable, check_count, check_number, seed_of

__all__ = ["interrupted", "solve"]


def solve(
    objective: Objective,
    method: str | Method = "auto",
    *,
    tol: float = 1e-8,
    max_passes: float = 1000,
    max_iterations: int | None = None,
    time_limit: float | None = None,
    random_state: Any = 0,
    x0: Any = None,
    callback: Callable[[Progress], object] | None = None,
    record_every: float = 1.0,
    record_growth: float = 0.5,
    n_jobs: int = 1,
) -> Result:
    """Minimise F(x) = G(Bx) + sum_i h_i(x_i) by randomized coordinate descent, with a certificate.

    Stops when gap <= tol * scale for every output, checked at the returned point from that point alone. For empirical
    risk minimisation gap is the duality gap P(w) + D(y) and scale = P(0); for `LinearSystem` and
    `SymmetricSystem` |b - Ax| and |b|; for `LeastSquares` |A'(Ax - b) + damp^2 x| and |A'b|.

    Parameters
    ----------
    objective : Objective
        ``ERM(...).dual()``, ``ERM(...).primal()``, ``LinearSystem(A, b)``, ``LeastSquares(A, b)``,
        ``SymmetricSystem(A, b)``. Or ``ERM(source, ...)`` on samples that are elsewhere: then `method` is "auto" or the
        name of a solver, x0 are weights, and options of coordinate steps have no effect.
    method : str or Method, default "auto"
        auto, nu_acdm, nu_acdm_ns, acdm, acdm_ns, apcg, approx, rcdm, kaczmarz, sdca; or an object such as
        ``NUACDM(beta=0.5)``, or ``Regularized(ACDM())`` where there is no strong convexity.
    tol : float, default 1e-8
    max_passes : float, default 1000
        Limit on entries touched / nnz(A).
    max_iterations : int, optional
        Limit on steps. With ``tol=0`` a run takes exactly so many (unless ``max_passes`` or ``time_limit`` come first,
        or its certificate is exactly 0), and ``Result.last`` is the y_T of the algorithms.
    time_limit : float, optional
        Limit on seconds of wall time, measuring included.
    random_state : int, Generator, RandomState or None, default 0
        Same seed, same result, bit for bit, on one machine; None draws a fresh seed.
    x0 : array of shape (N,) or (N, K), optional
        Start in coordinate space, a previous ``Result.point`` for instance. Zeros by default; moved into the domain.
    callback : callable, optional
        Called with a `Progress` at every record; return True to stop.
    record_every : float, default 1.0
        Passes between records (certificate, history, callback) at the beginning of the run.
    record_growth : float, default 0.5
        Later records are up to record_growth * passes apart, so that certificates stay a small share of the work, but
        no further than where the rate since an earlier one, extrapolated, meets tol. 0 keeps them evenly spaced, for
        plots.
    n_jobs : int, default 1
        Threads over groups of outputs, and what these leave over the coordinates of a certificate; for products with
        all of A, too. -1 for one per processor. Steps on one output use one thread. Results with different n_jobs agree
        up to rounding.

    Returns
    -------
    Result
        Where it converged, or else the best point recorded.

    Raises
    ------
    TypeError, ValueError
        Naming the argument, what was wrong and what would work; a method that needs what the objective lacks says so.
    Interrupted
        On Ctrl-C: a KeyboardInterrupt with the best point so far, a `Result`, as its `result`.
    """
    if hasattr(objective, "solved"):  # a `SourceERM`
        found: Result = objective.solved(
            method,
            tol=tol,
            max_passes=max_passes,
            time_limit=time_limit,
            x0=x0,
            callback=callback,
            n_jobs=n_jobs,
        )
        return found
    if not isinstance(objective, Objective):
        hint = "; call .dual() or .primal() on it first" if hasattr(objective, "dual") else ""
        hint = "; call it, as in problem.dual()" if callable(objective) else hint
        raise TypeError(f"objective must be a coordwise objective, not {type(objective).__name__}{hint}.")
    tol = check_number("tol", tol, low=0)
    max_passes = check_number("max_passes", max_passes, low=0, strictly=True, infinite=True)
    most = np.inf if max_iterations is None else check_count("max_iterations", max_iterations)
    limit = np.inf if time_limit is None else check_number("time_limit", time_limit, low=0, infinite=True)
    every = check_number("record_every", record_every, low=0, strictly=True)
    growth = check_number("record_growth", record_growth, low=0)
    threads = (os.cpu_count() or 1) if n_jobs == -1 else check_count("n_jobs", n_jobs, low=1)
    check_callable("callback", callback)
    seed = seed_of(random_state)

    begun = time.perf_counter()
    objective = copy.copy(objective)  # the caller's stays as it is
    objective.threads = threads
    inconsistent = isinstance(objective, LinearSystem) and objective.inconsistent(tol)
    if isinstance(method, Regularized) and not inconsistent:
        return method.solve(
            objective,
            solve,
            tol=tol,
            max_passes=max_passes,
            max_iterations=max_iterations,
            time_limit=None if np.isinf(limit) else limit,
            random_state=seed,
            x0=x0,
            callback=callback,
            record_every=every,
            record_growth=growth,
            n_jobs=n_jobs,
        )
    log: Log | None = None
    try:
        chosen = NUACDM() if isinstance(method, Regularized) else get_method(method)
        schedule = chosen.schedule(objective)
        x = objective.start(x0)
        settle(objective, schedule, x)
        run = start(objective, schedule, seed, x, threads)
        schedule = schedule.without_arrays()  # the run has taken over x and the arrays
        del x
        log = Log(objective, schedule, run, tol=tol, every=every, growth=growth, begun=begun, threads=threads)
        restarts = Restarts()
        status = Status.INCONSISTENT if inconsistent else None
        log.record(objective.at_start if x0 is None else None)
        while status is None:
            asked = callback is not None and says_stop(callback(log.progress()))
            late = log.elapsed >= limit
            over = log.passes >= max_passes or log.iterations >= most
            if log.ending.met(log, last=late or over):
                status = Status.CONVERGED
            elif not np.isfinite(log.current.error):
                status = Status.DIVERGED
            elif asked:
                status = Status.STOPPED
            elif over:
                status = Status.MAX_PASSES if log.passes >= max_passes else Status.MAX_ITERATIONS
            elif late:
                status = Status.TIME_LIMIT
            else:
                if log.schedule.restarts and restarts.due(log.current.error, log.rising):
                    log.restart()
                log.adapt()
                log.advance(max_passes, most, limit - log.elapsed)
                log.record()
        return log.result(status)
    except KeyboardInterrupt:
        if log is None:
            result = start_of(objective, objective.start(x0), str(method), begun)
        else:
            log.record()
            result = log.result(Status.INTERRUPTED)
        raise interrupted(result) from None


def interrupted(result: Result) -> Interrupted:
    """What Ctrl-C raises where a `Result` is as far as a call came."""
    return Interrupted.at(result, result.certificate, result.gap, f"{result.passes:.1f} passes")
