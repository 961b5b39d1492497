"""What a caller asks for, checked (matrix, right-hand sides, start, tolerances, limits), and what goes back to him."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp

from coordwise.objectives import targets
from coordwise.results import Result, Status
from coordwise.rows import Rows
from coordwise.solve import interrupted
from coordwise.validation import FloatArray, check_array, check_callable, check_count, check_number, seed_of

__all__ = ["Limits", "Request", "answer", "matrix_of", "norms", "rank_note", "request_of"]

SMALLEST_GOAL = 1e-200  # for rtol = atol = 0: met by a residual of exactly 0 alone; gap/goal stays finite


class Limits(NamedTuple):
    """When to stop, whom to tell, and with how much: arguments that all functions share, as they were given."""

    rtol: float
    atol: float
    maxiter: int | None
    callback: Callable[[FloatArray], object] | None
    random_state: Any
    time_limit: float | None
    n_jobs: int


@dataclass(frozen=True)
class Request:
    """Everything but A: b as m x K, the start as n x K (None: zeros), and when to stop."""

    b: FloatArray
    flat: bool
    x0: FloatArray | None
    rtol: float
    atol: float
    maxiter: int
    callback: Callable[[FloatArray], object] | None
    seed: int
    time_limit: float | None
    n_jobs: int

    @property
    def outputs(self) -> int:
        """K."""
        return self.b.shape[1]

    def goal(self, norms: FloatArray) -> FloatArray:
        """max(rtol * norm, atol) for every right-hand side."""
        return np.maximum(np.maximum(self.rtol * norms, self.atol), SMALLEST_GOAL)

    @property
    def residual_goal(self) -> FloatArray:
        """max(rtol |b|, atol)."""
        return self.goal(norms(self.b))

    def start(self, n: int) -> FloatArray:
        """The start as an array of the caller's own."""
        return np.zeros((n, self.outputs)) if self.x0 is None else self.x0.copy()

    def shaped(self, x: FloatArray) -> FloatArray:
        """x in the dimensions of b."""
        return x[:, 0] if self.flat else x

    def show(self, x: FloatArray) -> bool:
        """Call the callback with a copy of x (n x K); whether it returned True itself."""
        return self.callback is not None and self.callback(self.shaped(x.copy())) is True


def norms(columns: FloatArray) -> FloatArray:
    """The norm of every column."""
    if columns.shape[1] == 1:
        return np.sqrt(np.array([columns[:, 0] @ columns[:, 0]]))
    return np.sqrt(np.einsum("ik,ik->k", columns, columns))


def matrix_of(A: Any, by: Literal["rows", "columns", "either"]) -> tuple[Rows, bool]:
    """A checked, by rows, by columns, or as it is stored; and whether it came out by rows."""
    if not sp.issparse(A) and not isinstance(A, np.ndarray) and (hasattr(A, "matvec") or hasattr(A, "rmatvec")):
        raise TypeError(
            f"A is a {type(A).__name__}, which only multiplies vectors; the methods here read single rows of A. Pass a "
            "dense array or a scipy sparse matrix, or use scipy.sparse.linalg.lsqr, which needs products alone."
        )
    if by == "either":
        by_columns = getattr(A, "format", None) == "csc" or (
            isinstance(A, np.ndarray) and A.ndim == 2 and A.flags.f_contiguous and not A.flags.c_contiguous
        )
        by = "columns" if by_columns else "rows"
    return Rows(A, by), by == "rows"


def request_of(shape: tuple[int, int], b: Any, x0: Any, limits: Limits) -> Request:
    """The arguments of the public functions, checked against a matrix of this shape."""
    m, n = shape
    columns, flat = targets(b, m, "rows of A")
    start = None
    if x0 is not None:
        start = check_array("x0", x0, (n,) if flat else (n, columns.shape[1])).reshape(n, -1).copy()
        start[:, norms(columns) == 0] = 0.0  # b = 0 has the solution 0, whatever the start
    check_callable("callback", limits.callback)
    maxiter, seconds = limits.maxiter, limits.time_limit
    return Request(
        b=columns,
        flat=flat,
        x0=start,
        rtol=check_number("rtol", limits.rtol, low=0),
        atol=check_number("atol", limits.atol, low=0),
        maxiter=max(1000, 10 * n) if maxiter is None else check_count("maxiter", maxiter, low=1),
        callback=limits.callback,
        seed=seed_of(limits.random_state),
        time_limit=None if seconds is None else check_number("time_limit", seconds, low=0, infinite=True),
        n_jobs=limits.n_jobs,
    )


INFO = {Status.CONVERGED: 0, Status.INCONSISTENT: -1, Status.STALLED: -2, Status.DIVERGED: -3}


def answer(result: Result, full_output: bool) -> Any:
    """(x, info) as scipy returns it, or the whole result; of what Ctrl-C has ended, an exception."""
    if result.status is Status.INTERRUPTED:
        raise interrupted(result)
    if full_output:
        return result
    return result.x, INFO.get(result.status, max(1, math.ceil(result.passes)))


def rank_note(rank: int, short: int) -> tuple[str, ...]:
    """A rank below the smaller side, in words."""
    return (f"rank {rank} of at most {short}",) if rank < short else ()
