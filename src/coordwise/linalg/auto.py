"""`solve`: Ax = b by whatever is expected to be fastest.

Five observations decide, and the result says which:

* A consistent system may be divided by its row norms (they differ much: they are).
* With many more equations than unknowns a random sample of the equations determines x. The sample is solved, the answer
  is checked on all equations, and where it does not hold the sample grows fourfold, until it is the whole system.
* Where the rows are very many, plain Kaczmarz solves the sample: it needs about 2 n log(1/rtol) rows, whatever the
  spectrum. Elsewhere conjugate gradients on the normal equations need the fewest passes.
* Where a dozen steps of conjugate gradients come not far and |A| is ten times a typical row norm or more, as for rays
  through an image, NU_ACDM goes on: the iterations of conjugate gradients grow with |A|, its passes with the row norms.
* A short side of up to about a hundred makes a dense factorisation cheaper than any iteration; a longer one only where
  conjugate gradients have already cost as much.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from coordwise.linalg.following import Ending
from coordwise.linalg.products import Products
from coordwise.linalg.request import Limits, answer, matrix_of, request_of
from coordwise.linalg.rowaction import acdm, kaczmarz, nuacdm
from coordwise.linalg.system import System
from coordwise.validation import FloatArray, check_choice

__all__ = ["solve"]

METHODS = ("auto", "kaczmarz", "acdm", "nuacdm", "cgls", "direct")


def solve(
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
    time_limit: float | None = None,
    n_jobs: int = 1,
    full_output: bool = False,
) -> Any:
    """Solve Ax = b by the method expected to be fastest.

    Stops when |b - Ax| <= max(rtol |b|, atol) for every right-hand side, checked at the x returned. Of several
    solutions it returns the one nearest to x0, that of smallest norm by default (up to the tolerance).

    Parameters
    ----------
    A : array or scipy sparse matrix, shape (m, n)
        As in `kaczmarz`; CSC and Fortran order are used in place too, where no rows have to be picked.
    b : array of shape (m,) or (m, K)
    x0 : array of shape (n,) or (n, K), optional
    rtol, atol, maxiter, callback, random_state, time_limit, n_jobs, full_output
        As in `kaczmarz`. `callback` is called once an iteration with conjugate gradients, once a pass (of the sample)
        with Kaczmarz, and never by a factorisation.
    method : {"auto", "kaczmarz", "acdm", "nuacdm", "cgls", "direct"}
        "auto" chooses among them, on all rows or a sample of them, scaled or not;
        ``full_output=True`` has the choice in `Result.method` and the reasons in `Result.notes`.

    Returns
    -------
    (x, info) or Result
        As in `kaczmarz`. A system that certainly has no solution has info = -1 and the status "inconsistent"; x is
        then a point of least squares as far as the attempts at a solution led there. `lstsq` finds one to a tolerance.

    Raises
    ------
    TypeError, ValueError
        Naming the argument, what was wrong and what would work.
    coordwise.Interrupted
        On Ctrl-C, as from `kaczmarz`.

    Examples
    --------
    >>> import numpy as np
    >>> from coordwise import linalg
    >>> A = np.array([[2.0, 1.0], [1.0, 3.0], [1.0, -1.0]])
    >>> x, info = linalg.solve(A, A @ [1.0, 2.0], rtol=1e-10)
    >>> info, x.round(6).tolist()
    (0, [1.0, 2.0])
    """
    method = check_choice("method", method, METHODS)
    limits = Limits(rtol, atol, maxiter, callback, random_state, time_limit, n_jobs)
    if method in (rows := {"kaczmarz": kaczmarz, "acdm": acdm, "nuacdm": nuacdm}):
        return rows[method](A, b, x0, full_output=full_output, **limits._asdict())
    ending = Ending.now()
    matrix, by_rows = matrix_of(A, "either")
    products = Products(matrix, by_rows)
    if method == "direct" and products.dense is None:
        raise ValueError("method='direct' factorises a dense A; pass A.toarray(), or method='auto' or 'cgls'.")
    request = request_of(products.shape, b, x0, limits)
    return answer(System(products, request, ending).solved(method), full_output)
