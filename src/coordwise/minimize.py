"""Any coordinate-smooth function given by Python callables: the slow path, step by step as the paper writes it."""

from __future__ import annotations

import numbers
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from coordwise import reference, sampling
from coordwise.methods import (
    ACDM,
    APCG,
    APPROX,
    NUACDM,
    RCDM,
    ACDMns,
    Auto,
    Method,
    NUACDMns,
    check_weights,
    get_method,
)
from coordwise.recording import says_stop
from coordwise.results import Status
from coordwise.validation import FloatArray, check_array, check_callable, check_count, check_number, seed_of

__all__ = ["Minimum", "minimize"]


@dataclass(frozen=True, eq=False)
class Minimum:
    """The outcome of `minimize`.

    `error` is sqrt(sum_i L_i (x_i - prox_i(x_i - g_i/L_i))^2), sqrt(sum_i g_i^2/L_i) without a prox: the norm of the
    step that one round over all coordinates would take. With a known sigma and no prox,
    `bound` = error^2 max_i(L_i/w_i) / (2 sigma) is a certified bound of f(x) - min f, else nan. `history` has columns
    iterations, value, error.
    """

    x: FloatArray
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
    value: Callable[[FloatArray], float],
    partial: Callable[[int, FloatArray], float],
    L: Any,
    x0: Any,
    *,
    sigma: float | None = None,
    method: str | Method = "nu_acdm_ns",
    prox: Callable[[int, float, float], float] | None = None,
    tol: float = 1e-8,
    max_iter: int | None = None,
    time_limit: float | None = None,
    random_state: Any = 0,
    callback: Callable[[FloatArray], object] | None = None,
) -> Minimum:
    """Minimise f(x) + sum_i psi_i(x_i) for a convex f that is L_i-smooth in coordinate i, equation (1.1).

    Stops when error(x) <= tol * error(x0), with error(x) = sqrt(sum_i L_i (x_i - prox_i(x_i - g_i/L_i, 1/L_i))^2) and
    g = grad f(x), checked every n iterations at the returned point. Each iteration works on full vectors, O(n);
    problems with the structure of `coordwise.solve` are far faster there.

    Parameters
    ----------
    value : callable, x -> float
        f(x) + psi(x); recorded, not used by the method.
    partial : callable, (i, x) -> float
        The i-th partial derivative of f.
    L : array of shape (n,)
        Coordinate smoothness: |partial(i, x + d e_i) - partial(i, x)| <= L_i |d|. Positive.
    x0 : array of shape (n,)
    sigma : float, optional
        Strong convexity of f in the norm sum_i L_i^beta x_i^2 (beta = 1 for apcg); nu_acdm, acdm and apcg need it.
    method : str or Method, default "nu_acdm_ns"
        nu_acdm, nu_acdm_ns, acdm, acdm_ns, apcg, approx or rcdm; auto is nu_acdm with a sigma and nu_acdm_ns without.
        A sigma in the method object counts if `sigma` is None.
    prox : callable, (i, t, theta) -> float, optional
        argmin over y of psi_i(y) + (y - t)^2/(2 theta).
    tol : float, default 1e-8
    max_iter : int, optional
        1000 n by default.
    time_limit : float, optional
        Seconds.
    random_state : int, Generator, RandomState or None, default 0
    callback : callable, optional
        Called with x every n iterations; return True to stop.

    Returns
    -------
    Minimum
        Ctrl-C ends the run with status "interrupted" and the best x so far.

    Raises
    ------
    TypeError, ValueError
        Naming the argument, what was wrong and what would work.

    Examples
    --------
    >>> import numpy as np, coordwise as cw
    >>> H = np.array([[2.0, 0.5], [0.5, 30.0]]); c = np.array([1.0, 3.0])
    >>> found = cw.minimize(lambda x: x @ H @ x / 2 - c @ x, lambda i, x: H[i] @ x - c[i], np.diag(H), np.zeros(2))
    >>> bool(np.allclose(found.x, np.linalg.solve(H, c), atol=1e-6))
    True
    """
    for argument, function in (("value", value), ("partial", partial)):
        check_callable(argument, function, optional=False)
    check_callable("prox", prox)
    check_callable("callback", callback)
    L = check_array("L", L, (None,))
    if len(L) == 0 or np.any(L <= 0):
        raise ValueError("L must hold one positive smoothness constant per coordinate.")
    x = check_array("x0", x0, L.shape).copy()
    n = len(L)
    tol = check_number("tol", tol, low=0)
    most = 1000 * n if max_iter is None else check_count("max_iter", max_iter)
    limit = np.inf if time_limit is None else check_number("time_limit", time_limit, low=0, infinite=True)
    chosen = get_method(method)
    seed = seed_of(random_state)
    if sigma is None and isinstance(own := getattr(chosen, "sigma", None), numbers.Real):
        sigma = float(own)
    if sigma is not None:
        sigma = check_number("sigma", sigma, low=0, strictly=True)
    if isinstance(chosen, Auto):
        chosen = NUACDM() if sigma is not None else NUACDMns()
    p, weights, steps = _recursion(chosen, L, sigma, partial, prox, x)

    def error(point: FloatArray) -> float:
        g = np.array([partial(i, point) for i in range(n)])
        if prox is None:
            return float(np.sqrt(np.sum(g**2 / L)))
        moved = np.array([prox(i, point[i] - g[i] / L[i], 1 / L[i]) for i in range(n)])
        return float(np.sqrt(np.sum(L * (point - moved) ** 2)))

    begun = time.perf_counter()
    cells = sampling.alias_cells(p)
    done, status = 0, None
    best, best_error = x, error(x)
    first = best_error
    history = [(0, float(value(x)), first)]
    try:
        if first == 0:  # the start is optimal already
            status = Status.CONVERGED
        run = steps(_stream(seed, cells))
        while status is None:
            for _ in range(min(n, most - done)):
                x = next(run)
                done += 1
                if done % 256 == 0 and time.perf_counter() - begun >= limit:
                    break
            now = error(x)
            history.append((done, float(value(x)), now))
            if now < best_error:
                best, best_error = x, now
            if now <= tol * first:
                status = Status.CONVERGED
            elif not np.isfinite(now):
                status = Status.DIVERGED
            elif callback is not None and says_stop(callback(x)):
                status = Status.STOPPED
            elif done >= most:
                status = Status.MAX_PASSES
            elif time.perf_counter() - begun >= limit:
                status = Status.TIME_LIMIT
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    bound = np.nan
    if sigma is not None and prox is None and not isinstance(chosen, APPROX):
        # f(x) - min f <= (1/(2 sigma)) sum_i g_i^2/w_i <= max_i(L_i/w_i) error^2/(2 sigma)
        bound = float(np.max(L / weights)) * best_error**2 / (2 * sigma)
    return Minimum(
        x=best,
        value=float(value(best)),
        error=best_error,
        bound=bound,
        status=status,
        iterations=done,
        seconds=time.perf_counter() - begun,
        history=np.array(history, dtype=np.float64),
        method=chosen.describe(),
    )


def _stream(seed: int, cells: Any) -> Iterator[int]:
    block, k = 4096, 0
    while True:
        yield from sampling.draw_weighted(seed, cells, block, first=k).tolist()
        k += block


def _recursion(method: Method, L: FloatArray, sigma: float | None, partial: Any, prox: Any, x0: FloatArray) -> Any:
    """(p, norm weights, function from an index stream to iterates) of a method."""
    n = len(L)
    beta = float(getattr(method, "beta", 0.0))
    if isinstance(method, (NUACDM, ACDM, APCG)) and sigma is None:
        raise ValueError(
            f"method={method.name!r} needs sigma, the strong convexity of f; without one use 'nu_acdm_ns'."
        )
    if isinstance(method, RCDM):
        p, weights = sampling.power_distribution(L, 1 - beta), L**beta
        return p, weights, lambda indices: reference.rcdm(partial, L, x0, indices, prox=prox)
    if isinstance(method, APCG):
        p, known = np.full(n, 1 / n), float(sigma or 0)
        return p, L, lambda indices: reference.apcg(partial, L, x0, indices, sigma=known, prox=prox)
    if isinstance(method, APPROX):
        p, weights, sigma = np.full(n, 1 / n), L, None
    elif isinstance(method, (ACDM, ACDMns)):
        p, weights = reference.acdm_probabilities(L, beta), L**beta
        sigma = sigma if isinstance(method, ACDM) else None
    elif isinstance(method, NUACDM) and method.weights is not None:
        weights = check_weights(method.weights, n)
        p = sampling.power_distribution(L / weights, 0.5)
    elif isinstance(method, (NUACDM, NUACDMns)):
        p, weights = sampling.power_distribution(L, (1 - beta) / 2), L**beta
        sigma = sigma if isinstance(method, NUACDM) else None
    else:
        raise ValueError(
            f"method={method.name!r} cannot be run on callables; use nu_acdm, nu_acdm_ns, acdm, acdm_ns, apcg, approx "
            "or rcdm."
        )

    def steps(indices: Iterator[int]) -> Iterator[FloatArray]:
        return reference.linear_coupling(partial, L, x0, indices, p=p, weights=weights, sigma=sigma, prox=prox)

    return p, weights, steps
