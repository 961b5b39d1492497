"""Ax = b for a symmetric positive definite A, on (1/2) <x, Ax> - <b, x> itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from coordwise.linalg.conjugate import Iterate, cg
from coordwise.linalg.following import Ending, follow, result_of
from coordwise.linalg.products import Products
from coordwise.linalg.request import Limits, Request, answer, matrix_of, norms, request_of
from coordwise.linalg.rowaction import Sigma, run_objective
from coordwise.methods import ACDM, NUACDM, SDCA, Method
from coordwise.objectives import SymmetricSystem
from coordwise.results import Result, Status
from coordwise.validation import FloatArray, check_choice

__all__ = ["spd_solve"]

EVEN = 2.0  # a diagonal within this factor is not worth dividing by
FEW = 20_000  # entries up to which A is looked at before anything else is done
SEVERAL = 16  # products of cg that two more for the question whether A is symmetric are little to
METHODS = ("auto", "nuacdm", "acdm", "gauss_seidel", "cg")


def spd_solve(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    callback: Callable[[FloatArray], object] | None = None,
    random_state: Any = None,
    method: str = "auto",
    beta: float = 0.0,
    sigma: Sigma = None,
    time_limit: float | None = None,
    n_jobs: int = 1,
    full_output: bool = False,
) -> Any:
    """Solve Ax = b for a symmetric positive definite A: minimise over x   (1/2) <x, Ax> - <b, x>,   L_i = a_ii.

    Stops when |b - Ax| <= max(rtol |b|, atol) for every right-hand side, checked at the x returned.

    Parameters
    ----------
    A : array or scipy sparse matrix, shape (n, n)
        Symmetric, with a positive diagonal. It may be singular if the system has a solution (a graph Laplacian, say).
    b : array of shape (n,) or (n, K)
    x0 : array of shape (n,) or (n, K), optional
    rtol, atol, maxiter, callback, random_state, time_limit, n_jobs, full_output
        As in `kaczmarz`.
    method : {"auto", "nuacdm", "acdm", "gauss_seidel", "cg"}
        Coordinate steps with p_i ~ a_ii^((1-beta)/2), accelerated; the same with Lee and Sidford's sampling; exact
        coordinate steps in random permutations; or conjugate gradients with the diagonal as preconditioner. "auto" is
        cg: its steps adapt to the whole spectrum, and where it was measured it was never slower.
    beta : float in [0, 1], default 0
        For nuacdm and acdm: the norm in which sigma is meant, weights a_ii^beta.
    sigma : float, "adaptive" or None
        The smallest eigenvalue of A (in that norm). None or "adaptive": restarts that do without it.

    Returns
    -------
    (x, info) or Result
        As in `kaczmarz`.

    Raises
    ------
    TypeError, ValueError
        Naming the argument, what was wrong and what would work: A that is not square, not symmetric, or with a diagonal
        entry that is not positive.
    coordwise.Interrupted
        On Ctrl-C, as from `kaczmarz`.

    Notes
    -----
    Whether A is symmetric costs two products to see. With cg and a large A that is done after 16 steps, or where fewer
    did not lead to a solution: an x that meets the inequality is a solution in any case.

    An A that is indefinite in spite of its diagonal ends with the status "diverged" (or "stalled").

    Examples
    --------
    >>> import numpy as np
    >>> from coordwise import linalg
    >>> A = np.array([[4.0, 1.0], [1.0, 3.0]])
    >>> x, info = linalg.spd_solve(A, A @ [1.0, 2.0], rtol=1e-12)
    >>> info, x.round(6).tolist()
    (0, [1.0, 2.0])
    """
    method = check_choice("method", method, METHODS)
    steps: dict[str, Method] = {
        "nuacdm": NUACDM(beta=beta, sigma=sigma),
        "acdm": ACDM(beta=beta, sigma=sigma, constants="tight"),
        "gauss_seidel": SDCA(),
    }
    rows, _ = matrix_of(A, "either")
    limits = Limits(rtol, atol, maxiter, callback, random_state, time_limit, n_jobs)
    request = request_of((rows.count, rows.width), b, x0, limits)
    by_cg = method not in steps
    objective = SymmetricSystem(
        A, request.shaped(request.b), rows=rows, symmetric=by_cg and rows.nnz > FEW, scale=request.residual_goal
    )
    return answer(
        _conjugate(objective, request) if by_cg else run_objective(objective, request, steps[method]), full_output
    )


def _conjugate(objective: SymmetricSystem, request: Request) -> Result:
    products, b = Products(objective.rows, True), request.b
    diagonal = objective.curvature
    even = bool(diagonal.max() <= EVEN * diagonal.min())
    inverse = None if even else 1 / diagonal

    def steps(x: FloatArray) -> Iterator[Iterate]:
        return cg(products.forward, b, x, inverse)

    residual = b

    def exact(x: FloatArray) -> FloatArray:
        nonlocal residual
        residual = b - products.forward(x)
        return norms(residual)

    def judge(now: Iterate) -> Status | None:
        if ending.iterations == SEVERAL:
            objective.check_symmetric()
        return None if now.moving else Status.DIVERGED

    ending = Ending.now()
    ending.x = request.start(objective.rows.count)

    def finished() -> Result:
        return result_of(
            ending,
            request,
            gap=ending.gap if ending.status is Status.CONVERGED else exact(ending.x),
            goal=request.residual_goal,
            value=-(ending.x * (b + residual)).sum(0) / 2,  # Ax = b - residual
            L=diagonal,
            method="cg" if even else "cg(preconditioner=diagonal)",
            certificate=objective.certificate_name,
            storage=objective.rows.storage,
            notes=() if even else ("the diagonal of A as preconditioner",),
        )

    try:
        follow(steps, ending.x, exact, request, objective.scale, ending=ending, size=norms(b), judge=judge)
        if ending.status not in (Status.CONVERGED, Status.INTERRUPTED):
            objective.check_symmetric()
        return finished()
    except KeyboardInterrupt:
        ending.status = Status.INTERRUPTED
        return finished()
