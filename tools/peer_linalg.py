"""Stand-ins for solvers of scipy.sparse.linalg: coordwise.linalg behind their signatures.

| scipy | coordwise |
|---|---|
| cg | `spd_solve` |
| lgmres | `solve` |
| minres | `solve(method="cgls")` |
| lsqr, lsmr | `lstsq` |

The other solvers stay scipy's: what their tests ask of a solution is asked of these three as well. Preconditioners
choose an algorithm, not a solution, and have no effect; ``x0="Mb"`` is the start Mb for the preconditioner M, which is
b without one. Operators that only multiply vectors are multiplied out, since coordwise reads rows.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse.linalg
import scipy.sparse.linalg._isolve as isolve

from coordwise import linalg

__all__ = ["install", "used"]

used: list[str] = []  # the functions that were called, for the record of the test that runs
SYSTEMS: dict[str, Callable[..., Any]] = {
    "cg": linalg.spd_solve,
    "lgmres": linalg.solve,
    "minres": functools.partial(linalg.solve, method="cgls"),
}


def install() -> None:
    """Put the stand-ins where scipy's tests import from."""
    found = {name: _system(name, ours) for name, ours in SYSTEMS.items()} | {"lsqr": _lsqr, "lsmr": _lsmr}
    for name, function in found.items():
        for module in (scipy.sparse.linalg, isolve):
            setattr(module, name, function)


def _system(name: str, ours: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the name and the signature of scipy's that calls ours."""

    @functools.wraps(getattr(isolve, name))
    def solve(A: Any, b: Any, x0: Any = None, **options: Any) -> Any:
        used.append(name)
        kept = {key: options[key] for key in ("rtol", "atol", "maxiter", "callback") if key in options}
        start = np.asarray(b) if isinstance(x0, str) and x0 == "Mb" else x0
        return ours(_entries(A), b, start, random_state=0, **kept)

    return solve


def _entries(A: Any) -> Any:
    """A matrix for an operator."""
    return A @ np.eye(A.shape[1]) if isinstance(A, scipy.sparse.linalg.LinearOperator) else A


def _least_squares(A: Any, b: Any, damp: float, rtol: float, x0: Any, maxiter: int | None) -> Any:
    """x, whether it solves the system, the passes, and the norms of both residuals."""
    A = A if scipy.sparse.issparse(A) else np.atleast_2d(_entries(A))
    b = np.atleast_1d(np.squeeze(b))
    found = linalg.lstsq(A, b, damp, x0=x0, rtol=rtol, maxiter=maxiter, random_state=0, full_output=True)
    residual = b - A @ found.w
    solves = np.linalg.norm(residual) <= 10 * rtol * np.linalg.norm(b)
    slope = A.T @ residual - damp**2 * found.w
    return found.w, 1 if solves else 2, int(np.ceil(found.passes)), np.linalg.norm(residual), np.linalg.norm(slope)


def _lsqr(
    A: Any,
    b: Any,
    damp: float = 0.0,
    atol: float = 1e-6,
    btol: float = 1e-6,
    conlim: float = 1e8,
    iter_lim: int | None = None,
    show: bool = False,
    calc_var: bool = False,
    x0: Any = None,
) -> Any:
    used.append("lsqr")
    x, why, passes, residual, slope = _least_squares(A, b, damp, min(atol, btol) / 100, x0, iter_lim)
    return x, why, passes, residual, residual, np.nan, np.nan, slope, np.linalg.norm(x), np.nan


def _lsmr(
    A: Any,
    b: Any,
    damp: float = 0.0,
    atol: float = 1e-6,
    btol: float = 1e-6,
    conlim: float = 1e8,
    maxiter: int | None = None,
    show: bool = False,
    x0: Any = None,
) -> Any:
    used.append("lsmr")
    x, why, passes, residual, slope = _least_squares(A, b, damp, min(atol, btol) / 100, x0, maxiter)
    return x, why, passes, residual, slope, np.nan, np.nan, np.linalg.norm(x)
