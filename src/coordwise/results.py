"""What a solve returns: Result, its History, Constants and Status."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from coordwise.validation import FloatArray


class Status(enum.StrEnum):
    """Why a run ended; `help` says what to do about it."""

    CONVERGED = "converged"
    MAX_PASSES = "max_passes"
    MAX_ITERATIONS = "max_iterations"
    TIME_LIMIT = "time_limit"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"
    DIVERGED = "diverged"
    INCONSISTENT = "inconsistent"
    STALLED = "stalled"

    @property
    def help(self) -> str:
        """One sentence for the user."""
        return _HELP[self]


_HELP = {
    Status.CONVERGED: "The stopping inequality holds at the returned point.",
    Status.MAX_PASSES: "The limit on passes came first; raise it or loosen tol. Stronger regularisation converges "
    "faster; a linear system without a solution never does (use LeastSquares).",
    Status.MAX_ITERATIONS: "The number of steps that was asked for has been taken; `last` is the point after them.",
    Status.TIME_LIMIT: "The time limit came first; raise it or loosen tol. Stronger regularisation converges faster; a "
    "linear system without a solution never does (use LeastSquares).",
    Status.STOPPED: "The callback asked to stop.",
    Status.INTERRUPTED: "Ctrl-C ended the run; this is the best point so far.",
    Status.DIVERGED: "The certificate left the range of floating-point numbers; the best point so far is returned. "
    "Rescale A and b.",
    Status.INCONSISTENT: "The system has no solution to this tolerance (a zero row with a non-zero right-hand side, "
    "equations that contradict each other). Use LeastSquares, or coordwise.linalg.lstsq.",
    Status.STALLED: "The certificate no longer falls, because of rounding or of a bad condition; loosen the tolerance, "
    "or rescale A.",
}


@dataclass(frozen=True, eq=False)
class Certificate:
    """How good a point is, per output.

    `gap` is the certified quantity (duality gap, residual norm or gradient norm: see the objective), and the point
    meets tol when gap <= tol * scale for every output. `value` is the objective at the point, `primal` the primal value
    P(w) where there is one (else nan). For a `PrimalERM` the gap is that of dual variables which are `share` times the
    derivatives of the losses, or known ones (nan).
    """

    value: FloatArray
    gap: FloatArray
    scale: FloatArray
    primal: FloatArray
    share: FloatArray | None = None

    def meets(self, tol: float) -> bool:
        """Whether gap <= tol * scale for every output; gap <= tol^2 where the scale is 0 (and 0 is a solution)."""
        return bool(np.all(self.gap <= np.where(self.scale > 0, tol * self.scale, tol**2)))

    @cached_property
    def errors(self) -> FloatArray:
        """gap / scale of every output (nan counts as inf); outputs of scale 0 count with their gap."""
        with np.errstate(invalid="ignore"):
            ratio = self.gap / np.where(self.scale > 0, self.scale, 1.0)
        return np.where(np.isnan(ratio), np.inf, ratio)

    @property
    def error(self) -> float:
        """The largest of `errors`."""
        return float(np.max(self.errors))


@dataclass(frozen=True, eq=False)
class History:
    """One row per record. With K outputs, `value`, `gap` and `primal` have shape (records, K), else (records,).

    `passes` is entries touched / nnz(A); `seconds` leaves out the time spent measuring; `restarts` counts the restarts
    of the momentum so far.
    """

    iterations: FloatArray
    passes: FloatArray
    seconds: FloatArray
    value: FloatArray
    gap: FloatArray
    primal: FloatArray
    restarts: FloatArray

    def __len__(self) -> int:
        return len(self.iterations)

    def __repr__(self) -> str:
        return f"<History of {len(self)} records up to pass {self.passes[-1]:.1f}>"


@dataclass(frozen=True)
class Constants:
    """The quantities of the theory that a run used, of groups where steps take groups; None where a method has none.

    `rate_per_pass` is the factor by which theory bounds the error of one pass, (1 - tau)^(iterations per pass) for the
    accelerated strongly convex methods. `speedup` is sqrt(n sum_i L_i/w_i) / sum_i sqrt(L_i/w_i): Table 2.
    """

    L_min: float
    L_mean: float
    L_max: float
    L_sum: float
    iterations_per_pass: float
    S: float | None = None
    Theta: float | None = None
    sigma: float | None = None
    tau: float | None = None
    rate_per_pass: float | None = None
    speedup: float | None = None


@dataclass(frozen=True, eq=False)
class Result:
    """The outcome of `coordwise.solve`.

    Attributes
    ----------
    x : ndarray
        What was asked for: the weights of a model, the solution of a system. `w` is another name of it.
    y : ndarray or None
        The dual variables that `gap` belongs to (empirical risk minimisation), or the multipliers, x = A'y
        (`LinearSystem`); None where there are none.
    point : ndarray
        The same point in the coordinates of the run, as `coordwise.solve` takes it for ``x0``: y for a dual objective
        and for `LinearSystem`, x for a primal one, `LeastSquares` and `SymmetricSystem`, and where `coordwise.linalg`
        took another way than coordinate steps.
    last : ndarray
        Where the steps ended, in the coordinates of `point`: y_T of the algorithms after T = `iterations` steps. It may
        differ from `point`, the best point that was recorded. Where `coordwise.linalg` took another way it is `point`.
    value : float or ndarray of shape (K,)
        Objective at `point`: D(y) for a dual run, P(w) for a primal one.
    gap : float or ndarray of shape (K,)
        The certified quantity that stopping looks at; `certificate` names it.
    primal : float or ndarray of shape (K,)
        P(w) for empirical risk minimisation, else nan.
    scale : float or ndarray of shape (K,)
        The run converged when gap <= tol * scale: P(0), |b| or |A'b|.
    status : Status
        Compares equal to its name, as in ``res.status == "converged"``; ``res.status.help`` says what to do.
    iterations, passes, seconds : int, float, float
        Steps taken; entries touched / nnz(A); time without measuring.
    history : History
    constants : Constants
    method : str
        The method that ran, with its parameters.
    certificate : str
        "duality gap", "residual norm" or "gradient norm".
    storage : str
        How the matrix was stored, and whether a copy was made.
    notes : tuple of str
        What was found out or done on the way (rows scaled, a method chosen and why).
    """

    x: FloatArray
    point: FloatArray = field(repr=False)
    last: FloatArray = field(repr=False)
    value: float | FloatArray
    gap: float | FloatArray
    primal: float | FloatArray
    scale: float | FloatArray
    status: Status
    iterations: int
    passes: float
    seconds: float
    history: History = field(repr=False)
    constants: Constants = field(repr=False)
    method: str
    certificate: str
    storage: str = field(repr=False)
    notes: tuple[str, ...] = ()
    y: FloatArray | None = field(default=None, repr=False)

    @property
    def w(self) -> FloatArray:
        """`x`, by the name that the weights of a model have."""
        return self.x

    @property
    def converged(self) -> bool:
        """Whether the stopping inequality holds."""
        return self.status is Status.CONVERGED

    @property
    def success(self) -> bool:
        """The same, under the name scipy gives it."""
        return self.converged

    @property
    def message(self) -> str:
        """One line: status, certificate, work, and what to do next."""
        gap = float(np.max(self.gap))
        return (
            f"{self.status.value}: {self.certificate} {gap:.3g} after {self.passes:.1f} passes "
            f"({self.iterations} iterations, {self.seconds:.3g} s). {self.status.help}"
        )

    def __repr__(self) -> str:
        shape = "x".join(map(str, self.x.shape))
        return f"<coordwise Result, x of shape {shape}, {self.method}; {self.message}>"
