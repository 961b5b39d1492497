"""Any coordinate-smooth function given by callables: in Python step by step as the paper writes it, or compiled."""

from __future__ import annotations

import numbers
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from coordwise.callables import Descent, Functions
from coordwise.interrupts import Interrupted
from coordwise.methods import APPROX, NUACDM, Auto, Method, NUACDMns, get_method
from coordwise.recording import says_stop
from coordwise.recursions import Recursion
from coordwise.results import Status
from coordwise.validation import FloatArray, check_array, check_callable, check_count, check_number, seed_of

__all__ = ["Minimum", "minimize"]

APART = 1000  # iterations between two checks at least, of compiled functions: a check would cost more than few steps


@dataclass(frozen=True, eq=False)
class Minimum:
    """The outcome of `minimize`.

    `error` is sqrt(sum_i L_i (x_i - prox_i(x_i - g_i/L_i))^2), sqrt(sum_i g_i^2/L_i) without a prox: the norm of the
    step that one round over all coordinates would take. With a known sigma and no prox,
    `bound` = error^2 max_i(L_i/w_i) / (2 sigma) is a certified bound of f(x) - min f, else nan. `history` has columns
    iterations, value, error: a row for every check. `x` is the checked point with the smallest error, `last` the one
    where the iterations ended.
    """

    x: FloatArray
    last: FloatArray
    value: float
    error: float
    bound: float
    status: Status
    iterations: int
    seconds: float
    history: FloatArray
    method: str

    @property
    def converged(self) -> bool:
        """Whether the stopping inequality holds."""
        return self.status is Status.CONVERGED

    @property
    def message(self) -> str:
        """One line: status, error and work."""
        return f"{self.status.value}: error {self.error:.3g} after {self.iterations} iterations ({self.seconds:.3g} s)."

    def __repr__(self) -> str:
        return f"<coordwise Minimum, x of shape {self.x.shape}, {self.method}; {self.message}>"


def minimize(
    value: Any,
    partial: Any,
    L: Any,
    x0: Any,
    *,
    B: Any = None,
    reads: Any = None,
    sigma: float | None = None,
    method: str | Method = "nu_acdm_ns",
    prox: Any = None,
    tol: float = 1e-8,
    max_iterations: int | None = None,
    check_every: int | None = None,
    time_limit: float | None = None,
    random_state: Any = 0,
    callback: Callable[[FloatArray], object] | None = None,
) -> Minimum:
    """Minimise f(x) + sum_i psi_i(x_i) for a convex f that is L_i-smooth in coordinate i, equation (1.1).

    Stops when error(x) <= tol * error(x0), with error(x) = sqrt(sum_i L_i (x_i - prox_i(x_i - g_i/L_i, 1/L_i))^2) and
    g = grad f(x), checked every `check_every` iterations at the returned point.

    Parameters
    ----------
    value : callable, x -> float
        f(x) + psi(x); recorded, not used by the method.
    partial : callable, (i, x) -> float
        The i-th partial derivative of f. With `B`: (i, x_i, v) -> float, where v = Bx.
    L : array of shape (n,)
        Coordinate smoothness: |partial(i, x + d e_i) - partial(i, x)| <= L_i |d|. Positive.
    x0 : array of shape (n,)
    B : array or scipy sparse array of shape (m, n), optional
        For f(x) = G(Bx) + sum_i h_i(x_i). A compiled `partial` may read v_j only where column i of B has an entry.
    reads : scipy sparse array of shape (n, n), optional
        Its entries (i, j) are the x_j that a compiled partial(i, x) reads, x_i included; other entries of x are out of
        date when it is called. All of x by default. Functions in Python are always given all of x.
    sigma : float, optional
        Strong convexity of f in the norm sum_i L_i^beta x_i^2 (beta = 1 for apcg); nu_acdm, acdm and apcg need it.
    method : str or Method, default "nu_acdm_ns"
        nu_acdm, nu_acdm_ns, acdm, acdm_ns, apcg, approx or rcdm; auto is nu_acdm with a sigma and nu_acdm_ns without.
        A sigma in the method object counts if `sigma` is None. With a prox and without sigma the accelerated methods
        fall like 1/k^2 however convex f is, so give a sigma where one is known, or use rcdm.
    prox : callable, (i, t, theta) -> float, optional
        argmin over y of psi_i(y) + (y - t)^2/(2 theta). Compiled if `partial` is.
    tol : float, default 1e-8
    max_iterations : int, optional
        1000 n by default. With ``tol=0`` exactly so many are made, unless the error is exactly 0, and `Minimum.last` is
        the y_T of the algorithms.
    check_every : int, optional
        Iterations between two checks, each of which takes n partial derivatives, a value and a call of `callback`: n by
        default, but at least 1000 for a compiled `partial`.
    time_limit : float, optional
        Seconds, after the first check; looked at between iterations. Of functions in Python no check is made after the
        limit: `x` is the best point that was checked before it.
    random_state : int, Generator, RandomState or None, default 0
    callback : callable, optional
        Called with x at every check; return True to stop.

    Returns
    -------
    Minimum

    Raises
    ------
    TypeError, ValueError
        Naming the argument, what was wrong and what would work.
    Interrupted
        On Ctrl-C: a KeyboardInterrupt with the best x so far, a `Minimum`, as its `result`.

    Notes
    -----
    Functions may be compiled: `scipy.LowLevelCallable`, functions that numba's ``@cfunc`` made, or function pointers of
    ctypes with ``restype`` and ``argtypes``. Their signatures in C, `user_data` being optional:

        double partial(int64_t i, const double* x, void* user_data)
        double partial(int64_t i, double x_i, const double* v, void* user_data)    with B
        double prox(int64_t i, double t, double theta, void* user_data)
        double value(int64_t n, const double* x, void* user_data)

    The loop then runs in C++ without the GIL, draws the same coordinates as in Python, and keeps two vectors of which a
    step changes one entry (section 5, Remark 5.2). Beside the call, a step costs

    - with `B`: O(entries in column i), the images of both vectors being kept as well;
    - with `reads`: O(entries in row i of it);
    - else O(n), because x has to be formed (O(1) with method="rcdm").

    Functions in Python cost O(n) NumPy work a step, and a product with B where there is one: some 10 microseconds even
    for small n. Between two calls of compiled functions, time limits are looked at about every millisecond, and Ctrl-C
    20 times a second. Compiled functions must not raise; a NaN ends the run with the status "diverged". Problems with
    the structure of `coordwise.solve` are better solved there, with a certificate.

    Examples
    --------
    >>> import numpy as np, coordwise as cw
    >>> H = np.array([[2.0, 0.5], [0.5, 30.0]]); c = np.array([1.0, 3.0])
    >>> found = cw.minimize(lambda x: x @ H @ x / 2 - c @ x, lambda i, x: H[i] @ x - c[i], np.diag(H), np.zeros(2))
    >>> bool(np.allclose(found.x, np.linalg.solve(H, c), atol=1e-6))
    True

    The same, compiled by numba::

        @numba.cfunc("float64(int64, CPointer(float64))")
        def partial(i, x):
            return H[i, 0] * x[0] + H[i, 1] * x[1] - c[i]

        found = cw.minimize(value, partial, np.diag(H), np.zeros(2))
    """
    L = check_array("L", L, (None,))
    if len(L) == 0 or np.any(L <= 0):
        raise ValueError("L must hold one positive smoothness constant per coordinate.")
    n = len(L)
    functions = Functions.of(value, partial, prox, B, reads, n)
    check_callable("callback", callback)
    x = check_array("x0", x0, (None,)).copy()
    if len(x) != n:
        raise ValueError(f"L has length {n} and x0 length {len(x)}; both must hold one number per coordinate.")
    tol = check_number("tol", tol, low=0)
    most = 1000 * n if max_iterations is None else check_count("max_iterations", max_iterations)
    every = max(n, APART if functions.are_compiled else 1)
    every = every if check_every is None else check_count("check_every", check_every, low=1)
    limit = np.inf if time_limit is None else check_number("time_limit", time_limit, low=0, infinite=True)
    seed = seed_of(random_state)
    chosen, sigma = _method_of(method, sigma)
    recursion = Recursion.of(chosen, L, sigma, prox is not None)
    certified = sigma is not None and prox is None and not isinstance(chosen, APPROX)
    # f(x) - min f <= (1/(2 sigma)) sum_i g_i^2/w_i <= max_i(L_i/w_i) error^2/(2 sigma)
    factor = float(np.max(L / recursion.weights)) / (2 * sigma) if certified and sigma else np.nan

    log = _Log(functions, functions.descent(recursion, x, seed), chosen.describe(), factor, x)
    run, status = log.run, None
    try:
        first = log.record(x)
        if first == 0:  # the start is optimal already
            status = Status.CONVERGED
        while status is None:
            left = max(limit - log.elapsed, 0.0)
            run.advance(min(every, most - run.steps), left if np.isfinite(left) else -1.0)
            late = log.elapsed >= limit
            if late and not functions.are_compiled:  # a check takes as long as n iterations
                status = Status.TIME_LIMIT
                break
            x = run.point()
            error = log.record(x)
            if error <= tol * first:
                status = Status.CONVERGED
            elif not np.isfinite(error):
                status = Status.DIVERGED
            elif callback is not None and says_stop(callback(x)):
                status = Status.STOPPED
            elif run.steps >= most:
                status = Status.MAX_ITERATIONS
            elif late:
                status = Status.TIME_LIMIT
        return log.result(status)
    except KeyboardInterrupt:
        minimum = log.result(Status.INTERRUPTED)
        raise Interrupted.at(minimum, "error", minimum.error, f"{minimum.iterations} iterations") from None


class _Log:
    """Clock, history and best point of a run; `factor` times the square of the error is the bound."""

    def __init__(self, functions: Functions, run: Descent, method: str, factor: float, x0: FloatArray) -> None:
        self.functions, self.run, self.method, self.factor = functions, run, method, factor
        self.begun = time.perf_counter()
        self.best, self.error = x0, np.nan  # nan: not known yet
        self.rows: list[tuple[int, float, float]] = []

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return time.perf_counter() - self.begun

    def record(self, x: FloatArray) -> float:
        """The error at x, for the history; the best point so far is kept."""
        error = self.run.error(x)
        self.rows.append((self.run.steps, float(self.functions.value(x)), error))
        if len(self.rows) == 1 or error < self.error:
            self.best, self.error = x, error
        return error

    def result(self, status: Status) -> Minimum:
        """The best point."""
        error = self.run.error(self.best) if np.isnan(self.error) else self.error
        value = float(self.functions.value(self.best))
        return Minimum(
            x=self.best,
            last=self.run.point(),
            value=value,
            error=error,
            bound=self.factor * error**2,
            status=status,
            iterations=self.run.steps,
            seconds=self.elapsed,
            history=np.array(self.rows or [(0, value, error)], dtype=np.float64),
            method=self.method,
        )


def _method_of(method: str | Method, sigma: float | None) -> tuple[Method, float | None]:
    """The method, and the strong convexity given with it or beside it."""
    chosen = get_method(method)
    if sigma is None and isinstance(own := getattr(chosen, "sigma", None), numbers.Real):
        sigma = float(own)
    if sigma is not None:
        sigma = check_number("sigma", sigma, low=0, strictly=True)
    if isinstance(chosen, Auto):
        chosen = NUACDM() if sigma is not None else NUACDMns()
    return chosen, sigma
