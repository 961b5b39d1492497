"""Objectives: the one composite shape, linear systems and least squares. ERM is in `coordwise.erm`.

Everything the library solves is, for each of K outputs,

    minimise over x in R^N    F(x) = G(Bx) + sum_i h_i(x_i),

with B known by coordinate (b_i contiguous), G separable and smooth, h_i one-dimensional and convex, or a function of a
block of coordinates (`coordwise.group_erm`). The coordinate gradient of the smooth part is <b_i, G'(v)> at v = Bx, its
smoothness sum_j M_j b_ij^2 with G_j'' <= M_j. Fenchel duality gives one certificate for all of them: with omega = G'(v)
and g_i = <b_i, omega>,

    F(x) - min F  <=  sum_i [ h_i(x_i) + h_i*(-g_i) + x_i g_i ].
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coordwise.kernels import Blocks, Run, Shape, Terms
from coordwise.plane import Plane
from coordwise.results import Certificate
from coordwise.rows import Rows
from coordwise.validation import FloatArray, check_array, check_number, check_range
from coordwise.varied import VariedTerms

__all__ = [
    "LeastSquares",
    "LinearSystem",
    "Local",
    "Look",
    "Objective",
    "Sums",
    "SymmetricSystem",
    "held_at_zero",
    "over_outputs",
    "targets",
]

Sums = Callable[[FloatArray], dict[str, FloatArray]]


class Look(NamedTuple):
    """What is seen of a run at a record.

    `g` are the products <b_i, omega> (N x K), `rate` is how much of the certified error's logarithm the last passes
    took off, per pass, or are about to (`Log.speed`), `left` how much of it is left to the tolerance, `lost` whether
    the error fell by less than the schedule promised (`coordwise.pace`), and `restarted` whether the momentum begins
    anew.
    """

    x: FloatArray
    g: FloatArray
    certificate: Certificate
    rate: float
    left: float
    lost: bool
    restarted: bool


class Local(NamedTuple):
    """Curvatures of the terms near a point, infinite for terms that hold their coordinates in a corner, `places`."""

    weights: FloatArray
    places: FloatArray | None


class Objective(ABC):
    """G(Bx) + sum_i h_i(x_i) with its certificate.

    Attributes
    ----------
    rows : Rows
        B by coordinate.
    coordinates : Terms
        h_i, as scaled conjugates.
    smooth : float, Terms or None
        G(v) = (smooth/2) |v|^2, or a separable G. None: B is symmetric and G(Bx) = <x, Bx>/2.
    image0 : ndarray or None
        Added to Bx before G is applied.
    minus_last : bool
        G(v) = (smooth/2) (|v|^2 - 2 v_last^2) instead: centred columns that are not stored so (`coordwise.fitting`).
    blocks : Blocks or None
        Coordinates that steps take together, with their terms; None: one at a time.
    outputs : int
        K.
    certificate_name : str
        What the gap is.
    threads : int
        For products with all rows; `solve` works with a copy that has its own.
    """

    rows: Rows
    coordinates: Terms
    smooth: float | Terms | None
    image0: FloatArray | None = None
    minus_last = False
    blocks: Blocks | None = None
    outputs: int
    flat: bool
    certificate_name: str
    threads = 1
    packs = True  # whether runs may copy the rows beside the coordinates
    strong: FloatArray | None = None  # G(Bx) is known to hold sum_i strong_i x_i^2/2 (`coordwise.regularized`)
    image_decides = False  # whether gap and solution come from the image alone, however the point came to it
    sigma_is_tight = True  # whether the terms' strong convexity is about all there is (else G may have far more)
    gap_power = 1.0  # the gap goes like this power of what the value has still to fall
    at_start: Certificate | None = None  # of the default start, if it is known before a run and there is no `plane`

    @abstractmethod
    def certificate(self, image: FloatArray, sums: Sums) -> Certificate:
        """The certificate at a point with image v = Bx (+ image0); `sums(omega)` are the coordinates' sums there."""

    @abstractmethod
    def solution(self, image: FloatArray) -> FloatArray | None:
        """The point the user wants, from the image; None if that is x itself."""

    def dual_variables(self, x: FloatArray, image: FloatArray, certificate: Certificate) -> FloatArray | None:
        """The dual variables (n x K) that a certificate belongs to, or multipliers, of x with this image, if any."""
        return None

    def __repr__(self) -> str:
        outputs = "" if self.flat else f", {self.outputs} outputs"
        return f"<{type(self).__name__}: {self.rows.count} coordinates{outputs}; {self.rows.storage}>"

    @property
    def count(self) -> int:
        """Number of coordinates that steps draw from, or of blocks of them."""
        return self.rows.count

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Entries that a step touches, for each of them."""
        return self.rows.lengths

    def coordinates_of(self, drawn: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which coordinates belong to some of those that are drawn."""
        return drawn

    @property
    def curvature(self) -> FloatArray:
        """The coordinate smoothness of G(Bx) alone: sum_j M_j b_ij^2, or b_ii for a symmetric B."""
        if self.smooth is None:
            raise NotImplementedError("an objective with a symmetric B knows its diagonal")
        if not isinstance(self.smooth, Terms):
            signs = None
            if self.minus_last:
                signs = np.ones(self.rows.width)
                signs[-1] = -1.0
            norms = self.rows.norms2(signs)
            norms *= self.smooth
            return np.maximum(norms, 0.0, out=norms)
        terms = self.smooth
        if isinstance(terms, VariedTerms):
            return self.rows.norms2(np.broadcast_to(terms.smoothness, self.rows.width).copy())
        norms = self.rows.norms2(terms.weights)
        norms *= terms.scale / terms.shape.curvature
        return norms

    @property
    def term_curvature(self) -> FloatArray:
        """quad/s_i: the largest curvature of h_i where it is differentiable, its strong convexity if it has one."""
        terms = self.coordinates
        if isinstance(terms, VariedTerms):
            return np.broadcast_to(terms.curvatures, self.rows.count)
        quad = 4.0 if terms.shape.logistic else terms.shape.quad
        if terms.weights is None:
            return np.broadcast_to(terms.scale * quad, self.count)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(terms.weights > 0, terms.scale * quad / terms.weights, np.inf)

    def local_curvature(self, look: Look, slack: float, doubt: float) -> Local | None:
        """The terms' curvature where the run is (`coordwise.curvature`); None where it is the same everywhere.

        It is made smaller by `slack`, and coordinates are held while the part `doubt` of what may happen does not move
        them: all of it with doubt = 1.
        """
        return None

    def gap_of(self, look: Look, which: NDArray[np.bool_]) -> FloatArray:
        """The part of the gap, sum_i [h_i(x_i) + h_i*(-g_i) + x_i g_i], that some coordinates make up."""
        return self.coordinates.fenchel_young(look.x, look.g, which)

    def image(self, x: FloatArray) -> FloatArray:
        """Bx (+ image0)."""
        v = self.rows.combine(x, self.threads)
        return v if self.image0 is None else v + self.image0

    def exact(self, x: FloatArray) -> tuple[FloatArray, Certificate]:
        """Image and certificate of x (N x K), computed from nothing but x."""
        image = self.image(x)
        return image, self.certificate(image, lambda omega: self.coordinates.sums(self.rows, x, omega, self.threads))

    def confirmed(self, x: FloatArray, image: FloatArray, found: Certificate) -> tuple[FloatArray, Certificate]:
        """`exact` for a run's point x, given the image that the run keeps, with its rounding, and what it certified."""
        return self.exact(x)

    def plane(self) -> Plane | None:
        """For better primal points than those that a run's points lead to; None where there is no such thing."""
        return None

    def beside(self, primal: FloatArray, x: FloatArray) -> tuple[FloatArray, Certificate]:
        """Image and certificate of x beside a primal point of that value; for objectives that have a plane."""
        raise NotImplementedError

    def certify_run(self, run: Run, g: FloatArray | None = None) -> Certificate:
        """The certificate at a run's current point, from the images it keeps; g (N x K) receives <b_i, omega>."""
        return self.certificate(run.image(), lambda omega: run.sums(omega, g))

    def certify(self, x: FloatArray) -> Certificate:
        """The certificate at x (N x K), computed from nothing but x."""
        return self.exact(x)[1]

    def start(self, x0: Any) -> FloatArray:
        """x0 (zeros by default) as N x K, moved to the nearest point of the domain."""
        n, k = self.rows.count, self.outputs
        if x0 is None:
            return np.zeros((n, k))
        try:
            x = check_array("x0", x0, (n,) if self.flat else (n, k)).reshape(n, k)
        except ValueError as error:
            raise ValueError(
                f"{error} It is a point in coordinate space, such as a previous result's `point`."
            ) from None
        return self.coordinates.clip(x)

    def shaped(self, x: FloatArray) -> FloatArray:
        """An array with outputs as last axis, in the user's dimensions."""
        return x[:, 0] if self.flat else x

    def scalar(self, values: FloatArray) -> Any:
        """One number per output; a float where the user gave one output as a vector."""
        return float(values[0]) if self.flat else values


def over_outputs(reduce: Callable[..., Any], table: NDArray[Any]) -> NDArray[Any]:
    """One number for every coordinate (N) of those of its outputs (N x K); NumPy takes its time for K = 1."""
    return table[:, 0] if table.shape[1] == 1 else reduce(table, axis=1)


def held_at_zero(objective: Objective, look: Look, doubt: float) -> Local | None:
    """Features at 0 are held while their slopes |g_j| are less than l1, by the part `doubt` of what may happen to them.

    That is sqrt(2 L_j gap) at most: slopes are g_j = <a_j, y>/W for derivatives y of losses whose duals are strongly
    convex, so that |y - y*| is bounded by the gap. None without an l1 penalty (or w >= 0).
    """
    terms = objective.coordinates
    if not terms.shape.corners:
        return None
    curvature = objective.curvature
    far = np.sqrt(curvature)[:, None] * np.sqrt(2 * np.maximum(look.certificate.gap, 0))
    slope, away, places = terms.held(look.x, -look.g)
    held = over_outputs(np.all, (away == 0) & (slope > doubt * far))
    if held.all():  # somebody has to be drawn
        held[:] = False
    return Local(np.where(held, np.inf, np.where(curvature > 0, curvature, 1.0)), places)


class LinearSystem(Objective):
    """Ax = b by row action: minimise over y in R^m   (1/2) |A'y|^2 - <b, y>;   the solution is x = A'y (section 2).

    The certificate is the residual norm |b - Ax|; a run stops when |b - Ax| <= tol |b| for every right-hand side. The
    system must have a solution, otherwise the objective is unbounded below: use `LeastSquares`. In a result, `x` is the
    solution (of smallest norm if there are several, from the default start) and `y` the multipliers. With `center` c
    the objective is (1/2) |A'y + c|^2 - <b, y>, x = A'y + c, and the solution is the one nearest to c.

    Parameters
    ----------
    A : array or scipy sparse array, shape (m, n)
        Used in place if its rows are contiguous.
    b : array of shape (m,) or (m, K)
    center : array of shape (n,) or (n, K), optional
        Zeros by default.
    scale : array of shape (K,), optional
        What tol is relative to; |b| by default.

    Raises
    ------
    TypeError, ValueError
        As `Rows` and `check_array` describe, naming `A` or `b`.
    """

    certificate_name = "residual norm"
    image_decides = True

    def __init__(self, A: Any, b: Any, *, center: Any = None, scale: FloatArray | None = None) -> None:
        self.rows = A if isinstance(A, Rows) else Rows(A, "rows")
        b, self.flat = targets(b, self.rows.count, "rows of A")
        self.outputs = b.shape[1]
        self.smooth = 1.0
        self.coordinates = Terms(Shape(), 1.0, -b, None)
        if center is not None:
            n = self.rows.width
            self.image0 = check_array("center", center, (n,) if self.flat else (n, self.outputs)).reshape(n, -1).copy()
        self.scale = np.sqrt(np.square(b).sum(0)) if scale is None else scale

    def inconsistent(self, tol: float) -> bool:
        """Whether the right-hand sides of zero rows alone are more than tol |b|."""
        centers = self.coordinates.centers
        assert centers is not None
        zero = self.curvature == 0
        return bool(zero.any() and np.any(np.sqrt(np.square(centers[zero]).sum(0)) > tol * self.scale))

    def certificate(self, image: FloatArray, sums: Sums) -> Certificate:
        """|b - Ax| at x = image."""
        s = sums(image)
        value = s["value"] + np.square(image).sum(0) / 2
        return Certificate(value, np.sqrt(s["gradient2"]), self.scale, np.full(self.outputs, np.nan))

    def solution(self, image: FloatArray) -> FloatArray:
        """The solution x = A'y."""
        return image

    def dual_variables(self, x: FloatArray, image: FloatArray, certificate: Certificate) -> FloatArray:
        """The multipliers y."""
        return x


class LeastSquares(Objective):
    """minimise over x in R^n   (1/2) |Ax - b|^2 + (damp^2/2) |x|^2   by column action.

    The certificate is the gradient norm |A'(Ax - b) + damp^2 x|; a run stops when it is <= tol |A'b|. Where several x
    are solutions (damp = 0 and dependent columns), the one found depends on the start and is not that of smallest norm.

    Parameters
    ----------
    A : array or scipy sparse array, shape (m, n)
        Used in place if its columns are contiguous (CSC, Fortran order).
    b : array of shape (m,) or (m, K)
    damp : float, default 0
    scale : array of shape (K,), optional
        What tol is relative to; |A'b| by default.
    """

    certificate_name = "gradient norm"
    sigma_is_tight = False

    def __init__(self, A: Any, b: Any, *, damp: float = 0.0, scale: FloatArray | None = None) -> None:
        self.rows = A if isinstance(A, Rows) else Rows(A, "columns")
        b, self.flat = targets(b, self.rows.width, "rows of A")
        self.outputs = b.shape[1]
        self.damp = check_number("damp", damp, low=0)
        self.smooth = 1.0
        self.image0 = -b
        self.coordinates = Terms(Shape(quad=self.damp**2), 1.0, None, None)
        self.scale = np.sqrt(np.square(self.rows.dots(b)).sum(0)) if scale is None else scale

    def certificate(self, image: FloatArray, sums: Sums) -> Certificate:
        """|A'(Ax - b) + damp^2 x| at image = Ax - b."""
        s = sums(image)
        value = s["value"] + np.square(image).sum(0) / 2
        return Certificate(value, np.sqrt(s["gradient2"]), self.scale, np.full(self.outputs, np.nan))

    def solution(self, image: FloatArray) -> None:
        """None: it is x itself."""
        return None


class SymmetricSystem(Objective):
    """Ax = b for a symmetric positive (semi)definite A: minimise over x   (1/2) <x, Ax> - <b, x>,   L_i = a_ii.

    The certificate is the residual norm |b - Ax|; a run stops when |b - Ax| <= tol |b| for every right-hand side. A
    coordinate's gradient is read off the image Ax, and a step adds a multiple of one row to it.

    Parameters
    ----------
    A : array or scipy sparse array, shape (n, n)
        Used in place if its rows or its columns are contiguous.
    b : array of shape (n,) or (n, K)
    rows : Rows, optional
        A by rows or columns, if it has been checked already.
    symmetric : bool, default False
        Whether A is known to be symmetric, or to be looked at later (`check_symmetric`): that costs two products.
    scale : array of shape (K,), optional
        What tol is relative to; |b| by default.

    Raises
    ------
    ValueError
        If A is not square, not symmetric, or has a diagonal entry that is not positive.
    """

    certificate_name = "residual norm"
    smooth = None

    def __init__(
        self,
        A: Any,
        b: Any,
        *,
        rows: Rows | None = None,
        symmetric: bool = False,
        scale: FloatArray | None = None,
    ) -> None:
        fortran = getattr(A, "format", None) == "csc" or (isinstance(A, np.ndarray) and A.flags.f_contiguous)
        self.rows = Rows(A, "columns" if fortran else "rows") if rows is None else rows
        n = self.rows.count
        if self.rows.width != n:
            raise ValueError(f"A has shape {np.shape(A)}; it must be square. Use LinearSystem or LeastSquares.")
        b, self.flat = targets(b, n, "rows of A")
        self.outputs = b.shape[1]
        self.coordinates = Terms(Shape(), 1.0, -b, None)
        self.scale = np.sqrt(np.square(b).sum(0)) if scale is None else scale
        if not symmetric:
            self.check_symmetric()
        self._diagonal: FloatArray = np.array((A if hasattr(A, "diagonal") else np.asarray(A)).diagonal(), float)
        if not np.all(self._diagonal > 0):
            i = int(np.argmin(self._diagonal > 0))
            raise ValueError(
                f"A is not positive definite: its diagonal entry {i} is {self._diagonal[i]:g}. Use LinearSystem(A, b), "
                "or leave out rows and columns that are zero."
            )

    def check_symmetric(self) -> None:
        """Refuse an A that is not symmetric: Av = A'v for a random v, up to rounding, has probability zero then."""
        v = np.random.default_rng(0).random((self.rows.count, 1))
        one, other = self.rows.dots(v), self.rows.combine(v)
        if np.abs(one - other).max() > 1e-6 * max(np.abs(one).max(), np.abs(other).max()):
            raise ValueError("A is not symmetric; use LinearSystem(A, b), or symmetrise it as (A + A.T)/2.")

    @property
    def curvature(self) -> FloatArray:
        """The diagonal of A."""
        return self._diagonal.copy()

    def certificate(self, image: FloatArray, sums: Sums) -> Certificate:
        """|b - Ax| at image = Ax; the value needs the point as well (`exact`, `certify_run`)."""
        assert self.coordinates.centers is not None
        residual = np.sqrt(np.square(image + self.coordinates.centers).sum(0))
        unknown = np.full(self.outputs, np.nan)
        return Certificate(unknown, residual, self.scale, unknown)

    def exact(self, x: FloatArray) -> tuple[FloatArray, Certificate]:
        """See `Objective.exact`."""
        image = self.image(x)
        return image, self._at(x, image)

    def certify_run(self, run: Run, g: FloatArray | None = None) -> Certificate:
        """See `Objective.certify_run`."""
        return self._at(run.point(), run.image())

    def _at(self, x: FloatArray, image: FloatArray) -> Certificate:
        assert self.coordinates.centers is not None
        found = self.certificate(image, lambda omega: {})
        return replace(found, value=(x * (image / 2 + self.coordinates.centers)).sum(0))

    def solution(self, image: FloatArray) -> None:
        """None: it is x itself."""
        return None


def targets(b: Any, count: int, what: str, argument: str = "b") -> tuple[FloatArray, bool]:
    """b as (count, K), and whether it was one-dimensional."""
    array = check_array(argument, b)
    if array.ndim not in (1, 2) or array.shape[0] != count:
        raise ValueError(
            f"{argument} has shape {array.shape}; with {count} {what} it must have shape ({count},) or ({count}, K)."
        )
    if array.ndim == 2 and array.shape[1] == 0:
        raise ValueError(f"{argument} has no columns; give at least one output.")
    columns = array[:, None] if array.ndim == 1 else array
    for k, column in enumerate(columns.T):
        check_range(argument if columns.shape[1] == 1 else f"{argument}[:, {k}]", column)
    return columns.copy(), array.ndim == 1  # the caller may change his
