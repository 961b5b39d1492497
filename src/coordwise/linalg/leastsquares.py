"""Least squares: min (1/2) |Ax - b|^2 + (damp^2/2) |x|^2 by columns, by rows, by conjugate gradients or by QR."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from coordwise.kernels import Run, Shape, Terms
from coordwise.linalg.conjugate import cgls
from coordwise.linalg.direct import factorised
from coordwise.linalg.elsewhere import ProductsElsewhere
from coordwise.linalg.following import Ending, follow, result_of
from coordwise.linalg.products import Products
from coordwise.linalg.request import Limits, Request, answer, matrix_of, norms, rank_note, request_of
from coordwise.linalg.rowaction import run_objective
from coordwise.methods import NUACDM, Auto
from coordwise.objectives import LeastSquares, LinearSystem, Objective, Sums
from coordwise.results import Certificate, Result, Status
from coordwise.rows import Rows
from coordwise.samples.source import is_source
from coordwise.validation import FloatArray, check_choice, check_number

__all__ = ["lstsq"]

METHODS = ("auto", "columns", "rows", "cgls", "direct")
UNEVEN = 30.0  # columns by coordinate steps, which do not mind, where their norms differ by more than this
SHORT = 128  # sides up to which a dense matrix is factorised


def lstsq(
    A: Any,
    b: Any = None,
    damp: float = 0.0,
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
    """Minimise over x   (1/2) |Ax - b|^2 + (damp^2/2) |x|^2,   whether or not Ax = b has a solution.

    Stops when |A'(b - Ax) - damp^2 x| <= max(rtol |A'b|, atol) for every right-hand side, checked at the x returned.

    Parameters
    ----------
    A : array or scipy sparse matrix, shape (m, n)
        As in `kaczmarz`. "columns" works on contiguous columns (CSC, Fortran order), "rows" on rows and, with damp = 0,
        on columns as well; what is missing is copied once. Or a source, such as a `coordwise.datasets.Folder`, which
        "cgls" reads twice in every step; its sample weights are left out.
    b : array of shape (m,) or (m, K)
        None for the targets that a source has.
    damp : float, default 0
    x0 : array of shape (n,) or (n, K), optional
        Where to start. "rows" with damp > 0 starts from the multipliers, at zero, in any case.
    rtol, atol, maxiter, callback, random_state, time_limit, n_jobs, full_output
        As in `kaczmarz`.
    method : {"auto", "columns", "rows", "cgls", "direct"}
        * "columns": accelerated coordinate descent over the entries of x (NU_ACDM, restarts), which does not mind how
          columns are scaled.
        * "rows": with damp > 0 accelerated row action on the dual, x = A'y / damp^2. With damp = 0 extended Kaczmarz,
          its two halves one after the other and both accelerated: column steps remove the part of b outside the range
          of A, row steps solve the consistent system that is left.
        * "cgls": conjugate gradients on the normal equations.
        * "direct": QR with column pivoting, for a dense A.
        * "auto": direct where a dense A has a side of at most 128; columns where their norms differ by a factor of more
          than 30; else cgls. `Result.notes` says why.

    Returns
    -------
    (x, info) or Result
        As in `kaczmarz`, with `gap` the norm of the gradient. Where damp = 0 and several x are minimisers (dependent
        columns), "rows", "cgls" and "direct" give the one nearest to x0, that of smallest norm by default; "columns"
        gives one that depends on the start. The residual does not depend on that. "direct" reports a rank below the
        smaller side in `notes`; the others do not know it.

    Raises
    ------
    TypeError, ValueError
        Naming the argument, what was wrong and what would work.
    coordwise.Interrupted
        On Ctrl-C, as from `kaczmarz`.

    Notes
    -----
    The mean of the last half of plain Kaczmarz iterates tends to the least-squares solution as well, from rows alone,
    but its error falls as 1/sqrt(rows). With noise of a tenth of |b| and 250 equations per unknown it was ahead of
    "cgls" to a gradient of 3e-2, and behind from 1e-2 on: it is not offered.

    Examples
    --------
    >>> import numpy as np
    >>> from coordwise import linalg
    >>> A = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> x, info = linalg.lstsq(A, [1.0, 2.0, 4.0], rtol=1e-12)
    >>> info, x.round(6).tolist()
    (0, [0.833333, 1.5])
    """
    method = check_choice("method", method, METHODS)
    damp = check_number("damp", damp, low=0)
    if is_source(A):
        given = Limits(rtol, atol, maxiter, callback, random_state, time_limit, n_jobs)
        return _elsewhere(A, b, damp, x0, given, method, full_output)
    ending = Ending.now()
    matrix, by_rows = matrix_of(A, {"columns": "columns", "rows": "rows"}.get(method, "either"))  # type: ignore[arg-type]
    products = Products(matrix, by_rows)
    limits = Limits(rtol, atol, maxiter, callback, random_state, time_limit, n_jobs)
    request = request_of(products.shape, b, x0, limits)
    if method == "direct" and products.dense is None:
        raise ValueError("method='direct' factorises a dense A; pass A.toarray(), or method='auto' or 'cgls'.")
    problem = Problem(products, request, damp, ending)
    notes: list[str] = []
    try:
        if method == "auto":
            method, reason = problem.choice()
            notes.append(f"{method}: {reason}")
        result: Result = {
            "columns": problem.columns,
            "rows": problem.rows,
            "cgls": problem.conjugate,
            "direct": problem.direct,
        }[method]()
    except KeyboardInterrupt:  # outside of the iterations
        ending.status = Status.INTERRUPTED
        result = problem.result(method)
    if request.x0 is not None and not result.converged:
        result = problem.none_worse_than_start(result, request.x0)
    return answer(replace(result, notes=(*notes, *result.notes)), full_output)


def _elsewhere(A: Any, b: Any, damp: float, x0: Any, limits: Limits, method: str, full_output: bool) -> Any:
    """`lstsq` on a source."""
    if method not in ("auto", "cgls"):
        raise TypeError(f"method={method!r} needs A in memory; for one that is elsewhere use 'auto' or 'cgls'.")
    if b is None:
        if A.target_shape is None:
            raise ValueError(f"b is missing: {A!r} holds no targets. Pass an array of {A.shape[0]} rows.")
        b = np.concatenate([np.array(rows[1]) for rows in A])
    ending, request = Ending.now(), request_of(A.shape, b, x0, limits)
    source = A if A.target_shape is not None else A.beside(b)
    problem = Problem(ProductsElsewhere(source, limits.n_jobs), request, damp, ending)
    try:
        result = problem.conjugate()
    except KeyboardInterrupt:  # outside of the iterations
        ending.status = Status.INTERRUPTED
        result = problem.result("cgls")
    if request.x0 is not None and not result.converged:
        result = problem.none_worse_than_start(result, request.x0)
    return answer(replace(result, notes=("cgls: A is elsewhere", *result.notes)), full_output)


class Problem:
    """One least-squares problem and the ways to solve it."""

    def __init__(self, products: Any, request: Request, damp: float, ending: Ending) -> None:
        self.products, self.request, self.damp, self.ending = products, request, damp, ending
        ending.x = request.start(products.shape[1])
        self.size = norms(products.backward(request.b))
        self.goal = request.goal(self.size)

    def choice(self) -> tuple[str, str]:
        """Method and reason."""
        products = self.products
        if products.dense is not None and min(products.shape) <= SHORT:
            return "direct", f"dense, with a side of {min(products.shape)}"
        norms2 = products.column_norms2()
        positive = norms2[norms2 > 0]
        spread = np.sqrt(positive.max() / positive.min()) if len(positive) else 1.0
        if spread > UNEVEN:
            return "columns", f"column norms differ by a factor {spread:.3g}"
        return "cgls", "columns of about the same norm, and more than a factorisation is made for"

    def gradient(self, x: FloatArray) -> FloatArray:
        """|A'(b - Ax) - damp^2 x|."""
        return norms(self.products.backward(self.request.b - self.products.forward(x)) - self.damp**2 * x)

    def none_worse_than_start(self, result: Result, x0: FloatArray) -> Result:
        """The start in place of columns of x whose gradients are larger: some methods begin elsewhere, or nowhere."""
        x, gap, at_start = result.w.reshape(x0.shape), np.atleast_1d(result.gap), self.gradient(x0)
        worse = gap > at_start
        if not worse.any():
            return result
        x, gap = np.where(worse, x0, x), np.where(worse, at_start, gap)
        value = self.objective(x)
        met = np.all(gap <= self.goal) and result.status is not Status.INTERRUPTED
        return replace(
            result,
            x=self.request.shaped(x),
            point=self.request.shaped(x),
            gap=float(gap[0]) if self.request.flat else gap,
            value=float(value[0]) if self.request.flat else value,
            status=Status.CONVERGED if met else result.status,
        )

    def objective(self, x: FloatArray) -> FloatArray:
        """(1/2) |Ax - b|^2 + (damp^2/2) |x|^2."""
        residual = self.request.b - self.products.forward(x)
        return np.square(norms(residual)) / 2 + self.damp**2 / 2 * np.square(norms(x))

    def columns(self) -> Result:
        """Coordinate descent over x."""
        objective = LeastSquares(
            self.products.columns(), self.request.shaped(self.request.b), damp=self.damp, scale=self.goal
        )
        return run_objective(objective, self.request, Auto())

    def rows(self) -> Result:
        """The dual, or extended Kaczmarz."""
        request, rows = self.request, self.products.rows()
        if self.damp:
            dual = DampedDual(rows, request.shaped(request.b), self.damp, self.goal)
            return run_objective(dual, replace(request, x0=None), NUACDM())
        objective = LeastSquares(self.products.columns(), request.shaped(request.b), scale=self.goal / 2)
        first = run_objective(objective, replace(request, x0=None), Auto())
        if not first.converged:
            return replace(first, notes=("extended Kaczmarz ended in its column half",))
        self.ending.x = first.x.reshape(-1, request.outputs)
        image = self.products.forward(self.ending.x)
        system = LinearSystem(
            rows,
            request.shaped(image),
            center=None if request.x0 is None else request.shaped(request.x0),
            # |A'(b - Ax)| <= goal/2 + |A| |A first - A x|
            scale=self.goal / (2 * max(float(np.sqrt(rows.norms2().sum())), 1e-300)),
        )
        left = max(request.maxiter - int(first.passes), 1)
        second = run_objective(system, replace(request, maxiter=left), NUACDM(beta=1.0, sigma="adaptive"))
        x = second.x.reshape(-1, request.outputs)
        gap = self.gradient(x)
        status = second.status
        if status is Status.INTERRUPTED:
            if np.max(np.asarray(first.gap) / self.goal) < np.max(gap / self.goal):
                x, gap = self.ending.x, self.gradient(self.ending.x)
        elif np.all(gap <= self.goal):
            status = Status.CONVERGED
        return replace(
            second,
            x=request.shaped(x),
            gap=objective.scalar(gap),
            scale=objective.scalar(self.goal),
            value=objective.scalar(np.square(norms(request.b - self.products.forward(x))) / 2),
            status=status,
            iterations=first.iterations + second.iterations,
            passes=first.passes + second.passes,
            seconds=first.seconds + second.seconds,
            certificate="gradient norm",
            method=f"extended kaczmarz: {first.method}, then {second.method}",
            notes=(
                f"column half {first.passes:.1f} passes, row half {second.passes:.1f}; the history is the row half's "
                "residual",
            ),
        )

    def conjugate(self) -> Result:
        """CGLS."""
        products, request = self.products, self.request
        follow(
            lambda x: cgls(products, request.b, x, damp=self.damp),
            self.ending.x,
            self.gradient,
            request,
            self.goal,
            ending=self.ending,
            size=self.size,
            by_slope=True,
        )
        return self.result("cgls")

    def direct(self) -> Result:
        """QR."""
        assert self.products.dense is not None
        ending = self.ending
        dense, short = self.products.dense, min(self.products.shape)
        ending.x, rank = factorised(dense, self.request.b, self.request.x0, weights=None, damp=self.damp)
        ending.gap = self.gradient(ending.x)
        ending.passes = short / 12
        ending.record(ending.gap)
        ending.status = Status.CONVERGED if np.all(ending.gap <= self.goal) else Status.STALLED
        return replace(self.result("direct (QR)"), notes=rank_note(rank, short))

    def result(self, method: str) -> Result:
        """Of what was not done by the kernel."""
        x, request = self.ending.x, self.request
        return result_of(
            self.ending,
            request,
            gap=self.gradient(x),
            goal=self.goal,
            value=self.objective(x),
            L=self.products.column_norms2(),
            method=method,
            certificate="gradient norm",
            storage=self.products.matrix.storage,
            notes=(),
        )


class DampedDual(Objective):
    """minimise over y in R^m   (1/2) |A'y|^2/damp^2 + (1/2) |y|^2 - <b, y>;   x = A'y/damp^2, and sigma = 1.

    The certificate is the norm of the primal gradient, |A'(b - Ax) - damp^2 x| = |A'(b - Ax - y)|.
    """

    certificate_name = "gradient norm"

    def __init__(self, A: Rows, b: FloatArray, damp: float, scale: FloatArray) -> None:
        self.rows, self.damp = A, damp
        self.flat = b.ndim == 1
        self.b = b.reshape(A.count, -1)
        self.outputs = self.b.shape[1]
        self.smooth = 1 / damp**2
        self.coordinates = Terms(Shape(quad=1.0), 1.0, -self.b, None)
        self.scale = scale

    def certificate(self, image: FloatArray, sums: Sums) -> Certificate:
        """|A| |b - Ax - y|, an upper bound; `exact` and `certify_run` have the norm itself."""
        found = sums(image / self.damp**2)
        bound = np.sqrt(self.rows.norms2().sum() * found["gradient2"])
        value = found["value"] + np.square(image).sum(0) / (2 * self.damp**2)
        return Certificate(value, bound, self.scale, np.full(self.outputs, np.nan))

    def exact(self, x: FloatArray) -> tuple[FloatArray, Certificate]:
        """See `Objective.exact`."""
        image = self.image(x)
        return image, self._at(x, image)

    def certify_run(self, run: Run, g: FloatArray | None = None) -> Certificate:
        """See `Objective.certify_run`."""
        return self._at(run.point(), run.image())

    def _at(self, y: FloatArray, image: FloatArray) -> Certificate:
        left = self.b - self.rows.dots(image / self.damp**2)
        gap = norms(self.rows.combine(left) - image)
        value = (y * (y / 2 - self.b)).sum(0) + np.square(image).sum(0) / (2 * self.damp**2)
        return Certificate(value, gap, self.scale, np.full(self.outputs, np.nan))

    def solution(self, image: FloatArray) -> FloatArray:
        """x = A'y/damp^2."""
        return image / self.damp**2
