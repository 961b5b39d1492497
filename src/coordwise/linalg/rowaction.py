"""Ax = b one row at a time: randomized Kaczmarz, ACDM and NU_ACDM (section 2, Theorems 2.1 to 2.3)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from coordwise.interrupts import Interrupted
from coordwise.linalg.consistency import Watch, about_zero_rows, without_zero_rows
from coordwise.linalg.parallel import about_parallel_rows
from coordwise.linalg.products import Products
from coordwise.linalg.request import Limits, Request, answer, matrix_of, norms, rank_note, request_of
from coordwise.linalg.strength import cheap_strength
from coordwise.methods import ACDM, NUACDM, RCDM, Kaczmarz, Method
from coordwise.objectives import LinearSystem, Objective
from coordwise.recording import Progress, start_of
from coordwise.results import Result, Status
from coordwise.rows import Rows
from coordwise.schedules import power
from coordwise.solve import solve as drive
from coordwise.validation import FloatArray, check_choice

__all__ = ["acdm", "kaczmarz", "nuacdm", "run_objective", "run_rows"]

Callback = Callable[[FloatArray], object]
Sigma = float | Literal["adaptive"] | None
Scaling = Literal["rows"] | None


def kaczmarz(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    callback: Callback | None = None,
    random_state: Any = None,
    scaling: Scaling = None,
    time_limit: float | None = None,
    n_jobs: int = 1,
    full_output: bool = False,
) -> Any:
    """Solve Ax = b by randomized Kaczmarz:   x += (b_i - <a_i, x>)/|a_i|^2 a_i,   p_i ~ |a_i|^2.

    Stops when |b - Ax| <= max(rtol |b|, atol) for every right-hand side, checked at the x returned. The iterates stay
    in x0 + the span of the rows: the solution found is the one nearest to x0, that of smallest norm by default.

    Parameters
    ----------
    A : array or scipy sparse matrix, shape (m, n)
        float32 or float64; read-only and memory-mapped arrays too. Used in place if its rows are contiguous (CSR,
        C order), else copied once. Zero rows are left out.
    b : array of shape (m,) or (m, K)
        Several right-hand sides are solved at once: a row is read once for all of them.
    x0 : array of shape (n,) or (n, K), optional
        Where to start; zeros by default.
    rtol, atol : float, default 1e-5 and 0
    maxiter : int, optional
        Limit on passes over A, a pass being as many entries of A as it stores: the work of one iteration of
        `scipy.sparse.linalg.lsqr`, not one row. By default 10 n, and at least 1000.
    callback : callable, optional
        ``callback(xk)`` after every pass with a copy of the current x; return True to stop.
    random_state : int, Generator, RandomState or None, default None
        An int gives the same result every time.
    scaling : None or "rows"
        None: the method as published. "rows": every equation is divided by the norm of its row first, which a
        consistent system allows and which often pays where norms differ much. The stopping inequality stays that of the
        system as given, and nothing is copied.
    time_limit : float, optional
        Seconds.
    n_jobs : int, default 1
        Threads over right-hand sides.
    full_output : bool, default False
        Return a `coordwise.Result` in place of the pair.

    Returns
    -------
    x : ndarray of shape (n,) or (n, K)
    info : int
        0 if the inequality holds at x. Otherwise x is the best point met, and info says why: the number of passes made
        (at least 1) if a limit or the callback ended them; -1 if the system certainly has no solution; -2 if rounding
        or a bad condition stalled the iteration; -3 if it left the range of floating-point numbers.

    With `full_output`, a `Result`: `x` is the solution, which is x0 + A'y with the multipliers `y`, `gap` is |b - Ax|,
    `scale` is max(rtol |b|, atol), `status` says why it ended, `notes` what was done on the way, `history` has the
    course.

    Raises
    ------
    TypeError, ValueError
        Naming the argument, what was wrong and what would work; a LinearOperator is refused, since rows are needed.
    coordwise.Interrupted
        On Ctrl-C: a KeyboardInterrupt with the best point so far, a `coordwise.Result`, as its `result`.

    Notes
    -----
    A system without a solution ends with the status "inconsistent" where that is certain up to rounding
    (`coordwise.linalg.consistency`), and with "stalled" where a solution would have to be ten thousand times as large
    as what least squares have led to. Rows that are multiples of others, and those of them that contradict each other,
    are reported in `notes` for up to 5,000 rows and a million entries; a rank below the smaller side is reported where
    it is known (by `acdm` and `nuacdm` where they compute sigma, by `solve` where it factorises A), and does no harm
    elsewhere. After T rows,
    E|x - x*|^2 <= (1 - 1/(|A^-1|^2 |A|_F^2))^T |x_0 - x*|^2 (Theorem 2.1).

    Examples
    --------
    >>> import numpy as np
    >>> from coordwise import linalg
    >>> A = np.array([[2.0, 1.0], [1.0, 3.0], [1.0, -1.0]])
    >>> x, info = linalg.kaczmarz(A, A @ [1.0, 2.0], rtol=1e-10, random_state=0)
    >>> info, x.round(6).tolist()
    (0, [1.0, 2.0])
    """
    limits = Limits(rtol, atol, maxiter, callback, random_state, time_limit, n_jobs)
    result = _solved(A, b, x0, limits, scaling, lambda beta, _: RCDM(beta=beta) if beta else Kaczmarz(), "adaptive")
    return answer(replace(result, method=f"kaczmarz(scaling={scaling})"), full_output)


def acdm(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    callback: Callback | None = None,
    random_state: Any = None,
    sigma: Sigma = None,
    scaling: Scaling = None,
    time_limit: float | None = None,
    n_jobs: int = 1,
    full_output: bool = False,
) -> Any:
    """Solve Ax = b by ACDM (Lee and Sidford): accelerated row action with p_i ~ max(|a_i|^2, |A|_F^2/m).

    Stops when |b - Ax| <= max(rtol |b|, atol) for every right-hand side, checked at the x returned. Needs
    O(sqrt(m) |A^-1| |A|_F log(1/eps)) rows (Theorem 2.2). The constants are those of
    ``ACDM(constants="tight")``, which are safe for every matrix.

    Parameters
    ----------
    A, b, x0, rtol, atol, maxiter, callback, random_state, scaling, time_limit, n_jobs, full_output
        As in `kaczmarz`.
    sigma : float, "adaptive" or None
        As in `nuacdm`.

    Returns
    -------
    (x, info) or Result
        As in `kaczmarz`.
    """
    limits = Limits(rtol, atol, maxiter, callback, random_state, time_limit, n_jobs)
    ACDM(sigma=sigma)  # refuses what is no sigma before anything else is done
    result = _solved(
        A, b, x0, limits, scaling, lambda beta, sigma: ACDM(beta=beta, sigma=sigma, constants="tight"), sigma
    )
    return answer(result, full_output)


def nuacdm(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    callback: Callback | None = None,
    random_state: Any = None,
    sigma: Sigma = None,
    scaling: Scaling = None,
    time_limit: float | None = None,
    n_jobs: int = 1,
    full_output: bool = False,
) -> Any:
    """Solve Ax = b by NU_ACDM: accelerated row action with p_i ~ |a_i|.

    Stops when |b - Ax| <= max(rtol |b|, atol) for every right-hand side, checked at the x returned. Needs
    O(|A^-1| |A|_{2,1} log(1/eps)) rows, |A|_{2,1} = sum_i |a_i| (Theorem 2.3): never more than ACDM, and fewer the more
    the rows differ in norm.

    Parameters
    ----------
    A, b, x0, rtol, atol, maxiter, callback, random_state, scaling, time_limit, n_jobs, full_output
        As in `kaczmarz`.
    sigma : float, "adaptive" or None
        The smallest non-zero eigenvalue of A'A (with scaling="rows": of A'A for rows of norm 1). None: computed where
        one side of A is so short that it costs no more than a few passes, else "adaptive": momentum that restarts each
        time the residual has fallen by a factor e^2, which needs no sigma.

    Returns
    -------
    (x, info) or Result
        As in `kaczmarz`.
    """
    limits = Limits(rtol, atol, maxiter, callback, random_state, time_limit, n_jobs)
    NUACDM(sigma=sigma)  # refuses what is no sigma before anything else is done
    result = _solved(A, b, x0, limits, scaling, lambda beta, sigma: NUACDM(beta=beta, sigma=sigma), sigma)
    return answer(result, full_output)


def _solved(
    A: Any, b: Any, x0: Any, limits: Limits, scaling: object, method: Callable[[float, Sigma], Method], sigma: Sigma
) -> Result:
    """Checks, then the method; rows divided by their norms are the norm weights L^beta with beta = 1."""
    if scaling is not None:
        check_choice("scaling", scaling, ("rows",))
    beta = 0.0 if scaling is None else 1.0
    rows, _ = matrix_of(A, "rows")
    request = request_of((rows.count, rows.width), b, x0, limits)
    return run_rows(rows, request, method, beta, sigma)


def run_rows(
    rows: Rows, request: Request, method: Callable[[float, Sigma], Method], beta: float, sigma: Sigma
) -> Result:
    """Row action by the driver, watched for systems without a solution; sigma = None is computed where cheap."""
    goal = request.residual_goal
    request, missing, notes = without_zero_rows(request, rows.norms2())
    center = None if request.x0 is None else request.shaped(request.x0)
    objective = LinearSystem(rows, request.shaped(request.b), center=center, scale=goal)
    begun = time.perf_counter()
    try:
        result = _watched(objective, rows, request, method, beta, sigma, notes)
    except KeyboardInterrupt:  # outside of the run
        result = start_of(objective, objective.start(None), "row action", begun)
    if missing.any():
        gap = objective.scalar(np.hypot(result.gap, missing))
        result = replace(result, gap=gap, status=about_zero_rows(result.status))
    return replace(result, notes=tuple(notes))


def _watched(
    objective: LinearSystem,
    rows: Rows,
    request: Request,
    method: Callable[[float, Sigma], Method],
    beta: float,
    sigma: Sigma,
    notes: list[str],
) -> Result:
    """The run; what is found out on the way is added to the notes."""
    norms2, goal = objective.curvature, objective.scale
    weights = None
    if beta:
        weights = np.divide(1.0, norms2, out=np.zeros_like(norms2), where=norms2 > 0)
    shift = request.b if request.x0 is None else request.b - rows.dots(request.x0)
    products = Products(rows, True)
    watch = Watch(products, shift, goal, weights)
    if beta:
        notes.append("rows scaled to norm 1")
    notes += about_parallel_rows(products, norms2, request.b, goal)
    if sigma is None:
        sigma = "adaptive"
        if (known := cheap_strength(rows, power(norms2, beta))) is not None:
            sigma, rank = known
            notes += rank_note(rank, min(rows.count, rows.width))
    # A system whose singular values are all alike needs 2 n log(|b|/goal) rows, any other more. Where they are a small
    # part of all rows, it is looked at after as many and a tenth, and a compact copy of all rows would not pay.
    folds = float(np.log(np.maximum(norms(request.b) / goal, np.e)).max())
    every = min(1.0, max(2.2 * folds * rows.width / rows.count, 0.02))
    if every < 1.0:
        objective.packs = False
    result = run_objective(objective, request, method(beta, sigma), watch, every)
    if watch.verdict and result.status is not Status.INTERRUPTED:
        notes.append(watch.note)
        result = replace(result, status=watch.verdict)
    return result


def run_objective(
    objective: Objective, request: Request, method: Method, watch: Watch | None = None, every: float = 1.0
) -> Result:
    """`coordwise.solve` with the request's limits; `objective.scale` is the goal itself, so tol = 1.

    After Ctrl-C the result has the status "interrupted": `answer` raises it.
    """

    def callback(progress: Progress) -> bool:
        asked = False
        if request.callback is not None and progress.passes > 0:  # not where it begins, as in scipy
            asked = request.callback(progress.solution()) is True
        return asked or (watch is not None and watch(progress))

    try:
        return drive(
            objective,
            method,
            tol=1.0,
            max_passes=request.maxiter,
            time_limit=request.time_limit,
            random_state=request.seed,
            x0=None if request.x0 is None or isinstance(objective, LinearSystem) else request.shaped(request.x0),
            callback=callback,
            record_every=every if request.callback is None else 1.0,
            record_growth=1.0 if request.callback is None else 0.0,
            n_jobs=request.n_jobs,
        )
    except Interrupted as stop:
        result: Result = stop.result
        return result
