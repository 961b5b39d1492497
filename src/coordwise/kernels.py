"""The compiled core seen from Python; the only module that imports it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coordwise import _core
from coordwise.validation import FloatArray

NO_LIMIT = 2**62
SUMS = ("value", "conjugate", "fenchel_young", "gradient2", "lowest", "highest")
LARGE = 1 << 20  # bytes: arrays that are worth keeping their memory for


def empty(shape: tuple[int, ...], dtype: Any = np.float64) -> NDArray[Any]:
    """As ``np.empty`` for numbers of 4 or 8 bytes, in memory of large arrays that are gone (`core/pool.hpp`).

    New pages cost more than most uses of them. The array is a view of one of as many entries: scipy copies views of
    larger ones.
    """
    count, size = math.prod(shape), np.dtype(dtype).itemsize
    assert size in (4, 8)
    if count * size < LARGE:
        return np.empty(shape, dtype)
    memory: NDArray[Any] = (_core.memory4 if size == 4 else _core.memory8)(count)
    return memory.view(dtype).reshape(shape)


@dataclass(frozen=True)
class Shape:
    """A one-dimensional convex function given by its conjugate (`core/term.hpp`).

        phi*(y) = c y + kink |y| + quad/2 max(|y| - dead, 0)^2   for lower <= y <= upper,

    with c the centre (the label, say); `mirrored` reflects the interval for c < 0. `logistic` stands for the conjugate
    of log(1 + exp(-c t)) instead.
    """

    quad: float = 0.0
    kink: float = 0.0
    dead: float = 0.0
    lower: float = -np.inf
    upper: float = np.inf
    mirrored: bool = False
    logistic: bool = False

    @property
    def differentiable(self) -> bool:
        """Whether phi* is differentiable on the whole line (with a Lipschitz derivative)."""
        return not self.logistic and self.kink == 0 and np.isinf(self.lower) and np.isinf(self.upper)

    @property
    def corners(self) -> bool:
        """Whether phi* has corners where a y may stay while t moves: a kink, or an end of its domain."""
        return not self.logistic and not self.differentiable

    @property
    def bounded(self) -> bool:
        """Whether the domain of phi* has an end."""
        return self.logistic or np.isfinite(self.lower) or np.isfinite(self.upper)

    def domain(self, center: Any, weight: Any = 1.0) -> tuple[FloatArray, FloatArray]:
        """Ends of the interval on which the conjugate of weight * phi(.; center) is finite; {0} for a weight of 0."""
        center, weight = np.asarray(center, float), np.asarray(weight, float)
        lower, upper, mirrored = (-1.0, 0.0, True) if self.logistic else (self.lower, self.upper, self.mirrored)
        flip = mirrored & (center < 0)
        low, high = np.where(flip, -upper, lower), np.where(flip, -lower, upper)
        if weight.ndim == 0 and weight == 1:
            return low, high
        with np.errstate(invalid="ignore"):  # 0 * inf, for a weight of 0
            return np.where(weight == 0, 0.0, low * weight), np.where(weight == 0, 0.0, high * weight)

    @property
    def curvature(self) -> float:
        """Strong convexity of phi* (0 if none): phi is 1/curvature-smooth."""
        if self.logistic:
            return 4.0
        return self.quad if self.dead == 0 else 0.0


@dataclass(frozen=True)
class Terms:
    """sum_i scale * s_i phi(t_i; c_i) on one side, sum_i scale * (s_i phi)^*(y_i; c_i) on the other: N x K of them."""

    shape: Shape
    scale: float
    centers: FloatArray | None  # N x K; None: zeros
    weights: FloatArray | None  # N; None: ones
    threads: int = 1  # for sums, derivatives and corners of many

    @property
    def core(self) -> Any:
        """The compiled twin."""
        s = self.shape
        return _core.Term(
            shape=int(s.logistic),
            quad=s.quad,
            kink=s.kink,
            dead=s.dead,
            lower=s.lower,
            upper=s.upper,
            mirrored=s.mirrored,
            scale=self.scale,
        )

    def derivative(self, t: FloatArray) -> FloatArray:
        """scale * s_i phi'(t_i; c_i)."""
        out = np.empty(t.shape)
        self.core.derivatives(t, self.centers, self.weights, False, self.threads, out)
        return out

    def second_derivative(self, t: FloatArray) -> FloatArray:
        """scale * s_i phi''(t_i; c_i); where phi' bends, the value of one side."""
        out = np.empty(t.shape)
        self.core.derivatives(t, self.centers, self.weights, True, self.threads, out)
        return out

    def value(self, t: FloatArray) -> FloatArray:
        """Sums over i of scale * s_i phi(t_i; c_i), one per output."""
        out = np.empty(t.shape[1])
        self.core.sums(t, self.centers, self.weights, False, self.threads, out)
        return out

    def conjugate(self, y: FloatArray) -> FloatArray:
        """Sums over i of scale * (s_i phi)^*(y_i; c_i), one per output; inf outside the domain."""
        out = np.empty(y.shape[1])
        self.core.sums(y, self.centers, self.weights, True, self.threads, out)
        return out

    def slope(self, t: FloatArray, way: FloatArray, length: float) -> float:
        """d/dl of the sum over i of scale * s_i phi(t_i + l way_i; c_i) at l = length, for one output (N x 1)."""
        out = np.empty(1)
        self.core.along(t, way, length, self.centers, self.weights, self.threads, out)
        return float(out[0])

    def slope_and_curvature(self, t: FloatArray, way: FloatArray, length: float) -> tuple[float, float]:
        """The same, and the second derivative."""
        out = np.empty(2)
        self.core.along(t, way, length, self.centers, self.weights, self.threads, out)
        return float(out[0]), float(out[1])

    def clip(self, y: FloatArray) -> FloatArray:
        """The nearest point of the conjugates' domain."""
        low, high = self.bounds(y.shape)
        return np.clip(y, low, high)

    def held(self, x: FloatArray, t: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(slope, away, there): how far t may move before the subgradient phi'(t) leaves the corner of phi* it is in.

        Corners are the ends of the domain, and 0 if phi* has a kink there. slope = 0 where phi'(t) is not in a corner;
        `there` is phi'(t), and `away` the distance of x from it.
        """
        slope, away, there = np.empty(t.shape), np.empty(t.shape), np.empty(t.shape)
        replace(self, scale=1.0).core.corners(x, t, self.centers, self.weights, self.threads, slope, away, there)
        return slope, away, there

    def fenchel_young(self, x: FloatArray, g: FloatArray, which: NDArray[np.bool_]) -> FloatArray:
        """Sums of h_i(x_i) + h_i*(-g_i) + x_i g_i over some of the coordinates, h_i being the conjugates."""
        out = np.empty(x.shape[1])
        self.core.fenchel_young(x, g, self.centers, self.weights, which, out)
        return out

    def bounds(self, shape: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
        """Ends of the conjugates' domains."""
        centers = np.broadcast_to(0.0, shape) if self.centers is None else self.centers
        return self.shape.domain(centers, 1.0 if self.weights is None else self.weights[:, None])

    def in_corner(self, y: FloatArray) -> NDArray[np.bool_]:
        """Which y_i are in a corner of their conjugates, exactly."""
        low, high = self.bounds(y.shape)
        found = (y == low) | (y == high)
        return found | (y == 0) if self.shape.kink > 0 else found

    def subgradients(self, t: FloatArray) -> FloatArray:
        """s_i phi'(t_i; c_i), in the domain of the conjugates to the last bit."""
        return replace(self, scale=1.0).derivative(t)

    def minimizers(self, count: int, outputs: int) -> FloatArray:
        """argmin of every conjugate, phi'(0) (infinite where it has none)."""
        return self.subgradients(np.zeros((count, outputs)))

    def sums(self, rows: Matrix, x: FloatArray, omega: FloatArray, threads: int = 1) -> dict[str, FloatArray]:
        """`Matrix.sums` of the rows for these terms."""
        return rows.sums(self, x, omega, threads)

    @property
    def smoothness(self) -> float | FloatArray:
        """Lipschitz constants of the derivatives of scale * s_i phi."""
        return self.scale / self.shape.curvature * (1.0 if self.weights is None else self.weights)

    def prox(self, i: int, k: int, rhs: float, kappa: float) -> float:
        """argmin over y of h(y) + kappa/2 y^2 - rhs y, with h = scale * (s_i phi)^* of output k."""
        center = 0.0 if self.centers is None else float(self.centers[i, k])
        weight = 1.0 if self.weights is None else float(self.weights[i])
        return float(self.core.prox(rhs, kappa, center, weight))


class Matrix:
    """B by coordinate: b_i contiguous. Arrays must be what `coordwise.rows` prepared."""

    def __init__(self, *arrays: NDArray[Any], width: int | None = None, threads: int = 1) -> None:
        self._arrays, self._sparse_width = arrays, width
        self._core = self._build(threads)
        self.count: int = self._core.count
        self.width: int = self._core.width

    def _build(self, threads: int = 1) -> Any:
        width = self._sparse_width
        return _core.dense(self._arrays[0]) if width is None else _core.sparse(*self._arrays, width, threads)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_core"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._core = self._build()

    def norms2(self, weights: FloatArray | None = None, threads: int = 1) -> FloatArray:
        """sum_j weights_j b_ij^2 for every i."""
        out = np.empty(self.count)
        self._core.norms2(weights, threads, out)
        return out

    def squares(self, weights: FloatArray | None = None, threads: int = 1) -> FloatArray:
        """sum_i weights_i b_ij^2 for every j: the squared norms in the other direction."""
        out = np.empty(self.width)
        self._core.squares(weights, threads, out)
        return out

    def gram(self, weights: FloatArray, threads: int = 1, beside: FloatArray | None = None) -> FloatArray:
        """sum_i weights_i c_i c_i', where c_i is b_i with row i of `beside` appended."""
        size = self.width + (0 if beside is None else beside.shape[1])
        out = empty((size, size))
        self._core.gram(weights, beside, threads, 0.0, None, out)
        return out

    def gram_of_most(
        self, weights: FloatArray, little: float, threads: int = 1, beside: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """`gram` without the rows of a sparse matrix whose weight is below `little`, and what its diagonal lost."""
        size = self.width + (0 if beside is None else beside.shape[1])
        out, lost = empty((size, size)), np.empty(size)
        self._core.gram(weights, beside, threads, little, lost, out)
        return out, lost

    def block_grams(
        self, members: NDArray[np.uint32], weights: FloatArray | None = None, threads: int = 1
    ) -> FloatArray:
        """sum_j weights_j c_j c_j' for count x size coordinates, c_j being the entries at j of a block's b_i."""
        count, size = members.shape
        out = np.empty((count, size, size))
        self._core.block_grams(members, weights, threads, out)
        return out

    def transposed(self, threads: int = 1) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Values, indices and starts of a sparse matrix by columns, entries in order."""
        entries, kind, index = len(self._arrays[0]), self._arrays[0].dtype, self._arrays[-1].dtype
        out = empty((entries,), kind), empty((entries,), index), empty((self.width + 1,), index)
        self._core.transposed(threads, *out)
        return out

    def picked(self, columns: NDArray[Any], threads: int = 1) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Values, indices and starts of some columns of a sparse matrix (different ones), in the order given."""
        places = np.full(self.width, -1, self._arrays[-1].dtype)
        places[columns] = np.arange(len(columns))
        return self._core.picked(places, threads)

    def dots(self, vectors: FloatArray, threads: int = 1) -> FloatArray:
        """<b_i, vectors_k> for every i and k."""
        out = np.empty((self.count, vectors.shape[1]))
        self._core.dots(vectors, threads, out)
        return out

    def combine(self, x: FloatArray, threads: int = 1) -> FloatArray:
        """B x = sum_i b_i x_ik."""
        out = np.zeros((self.width, x.shape[1]))
        self._core.combine(x, threads, out)
        return out

    def sums(self, terms: Terms, x: FloatArray, omega: FloatArray, threads: int = 1) -> dict[str, FloatArray]:
        """Fenchel-Young sums of the coordinates at x, with g_i = <b_i, omega> (see `core/engine.hpp`)."""
        out = np.empty((x.shape[1], len(SUMS)))
        self._core.certificate(terms.core, terms.centers, terms.weights, x, omega, threads, out)
        return dict(zip(SUMS, out.T, strict=True))


@dataclass(frozen=True)
class Plan:
    """One method on one objective, in the kernel's terms (`core/engine.hpp` says what each field does)."""

    accelerated: bool
    prox: bool
    step: FloatArray
    theta: FloatArray | None = None
    move: FloatArray | None = None
    rule: int = 0
    tau: float = 1.0
    drift: float = 0.0
    theta_scale: float = 1.0
    couple: float = 1.0
    fold_below: float = 1e-60


@dataclass(frozen=True, eq=False)
class Blocks:
    """Coordinates that a step takes together: block b has order[starts[b]:starts[b + 1]] (`core/blocks.hpp`).

    Its term is kinks_b |x_b|_2 + feature_kink |x_b|_1 + quad/2 |x_b|^2 with the quad of the coordinates' shape.
    """

    starts: NDArray[np.uint32]
    order: NDArray[np.uint32]
    kinks: FloatArray
    feature_kink: float


MOST_IN_BLOCK = 64  # coordinates

# Whether a run copies the rows next to their coordinates, and in which precision (`core/store.hpp`).
NO_PACKING, PACK_AS_IT_IS, PACK_IN_SINGLE = range(3)
CONSTANT, VANISHING, RECURRENT = range(3)


class Run:
    """Steps of a plan on G(Bx) + sum_i h_i(x_i), and the point they have reached; `smooth` as in `Objective`.

    It begins at x0, whose image B x0 (plus image0) is computed unless it is `known`. With `blocks` of coordinates, the
    plan's arrays, `cells` and `members` are theirs; such a run knows no sums.
    """

    def __init__(
        self,
        matrix: Matrix,
        coordinates: Terms,
        smooth: float | Terms | None,
        plan: Plan,
        *,
        cells: NDArray[np.uint32] | None,
        members: NDArray[np.uint32] | None = None,
        seed: int,
        x0: FloatArray,
        image0: FloatArray | None = None,
        known: FloatArray | None = None,
        minus_last: bool = False,
        threads: int = 1,
        pack: int = 0,
        blocks: Blocks | None = None,
    ) -> None:
        self._matrix = matrix
        self._outputs, self.seed, self.packed = x0.shape[1], seed, pack != NO_PACKING
        self._core = _core.start(
            matrix=matrix._core,
            outputs=self._outputs,
            threads=threads,
            coordinate=coordinates.core,
            centers=coordinates.centers,
            weights=coordinates.weights,
            gain=None if isinstance(smooth, Terms) else smooth,
            minus_last=minus_last,
            image=smooth.core if isinstance(smooth, Terms) else None,
            image_centers=smooth.centers if isinstance(smooth, Terms) else None,
            image_weights=smooth.weights if isinstance(smooth, Terms) else None,
            cells=cells,
            members=members,
            seed=seed,
            x0=x0,
            image0=image0,
            known=known,
            pack=pack,
            block_starts=None if blocks is None else blocks.starts,
            block_order=None if blocks is None else blocks.order,
            block_kinks=None if blocks is None else blocks.kinks,
            feature_kink=0.0 if blocks is None else blocks.feature_kink,
            **vars(plan),
        )

    def advance(self, *, steps: int = NO_LIMIT, entries: int = NO_LIMIT, seconds: float = -1.0) -> None:
        """Run until one of the limits; negative seconds mean none. Ctrl-C raises between blocks of steps."""
        self._core.run(steps, entries, seconds)

    def restart(self) -> None:
        """Forget the momentum: z = y."""
        self._core.restart()

    def replan(self, plan: Plan, cells: NDArray[np.uint32] | None, members: NDArray[np.uint32] | None = None) -> None:
        """Go on from the same y and z with another plan, accelerated if the first one was, and other probabilities.

        A plan with the rule VANISHING goes on from y alone, one with RECURRENT after another of that kind with its tau.
        """
        self._core.replan(cells=cells, members=members, seed=self.seed, **vars(plan))

    def settle(self, which: NDArray[np.uint32], x: FloatArray) -> None:
        """Put the coordinates `which` of y and z where x (N x K) has them."""
        self._core.settle(which, x)

    def resync(self) -> None:
        """Recompute the images from the coordinates, which removes accumulated rounding."""
        self._core.resync()

    @property
    def steps(self) -> int:
        """Steps taken."""
        return int(self._core.steps)

    @property
    def entries(self) -> int:
        """Entries of B touched."""
        return int(self._core.entries)

    def point(self, *, inside: bool = True) -> FloatArray:
        """The current point, N x K, put into the domain of the terms, or (not `inside`) as the images have it."""
        out = np.empty((self._matrix.count, self._outputs))
        self._core.point(out, inside)
        return out

    def image(self) -> FloatArray:
        """B x (plus image0) at the current point, m x K."""
        out = np.empty((self._matrix.width, self._outputs))
        self._core.image(out)
        return out

    def sums(self, omega: FloatArray, g: FloatArray | None = None) -> dict[str, FloatArray]:
        """As `Matrix.sums`, at the current point; g (N x K), if given, receives the products <b_i, omega>."""
        out = np.empty((self._outputs, len(SUMS)))
        self._core.certificate(omega if omega.any() else None, out, g)  # at 0, where most runs begin, without products
        return dict(zip(SUMS, out.T, strict=True))


class FunctionRun:
    """Steps of a plan on compiled functions; `reads` are places and starts, the matrix is B by columns.

    Functions are given by (address, user data, whether they take it), and have to stay in memory. `step` of a plain
    plan is 1/L here, with and without a prox.
    """

    def __init__(
        self,
        partial: tuple[int, int, bool],
        prox: tuple[int, int, bool] | None,
        plan: Plan,
        *,
        matrix: Matrix | None,
        reads: tuple[NDArray[np.int64], NDArray[np.int64]] | None,
        L: FloatArray,
        x0: FloatArray,
        cells: NDArray[np.uint32],
        seed: int,
    ) -> None:
        constants = {name: value for name, value in vars(plan).items() if name not in ("prox", "move")}
        self._count = len(L)
        self._core = _core.start_functions(
            partial=partial,
            prox=prox,
            matrix=None if matrix is None else matrix._core,
            reads=reads,
            L=L,
            x0=x0,
            cells=cells,
            seed=seed,
            **constants,
        )

    def advance(self, steps: int, seconds: float) -> None:
        """Run so many steps, or so long (negative: no limit), without the GIL. Ctrl-C raises."""
        self._core.run(steps, seconds)

    @property
    def steps(self) -> int:
        """Steps taken."""
        return int(self._core.steps)

    def point(self) -> FloatArray:
        """The current point."""
        out = np.empty(self._count)
        self._core.point(out)
        return out

    def error(self, x: FloatArray) -> float:
        """`coordwise.minimize.Minimum.error` at x."""
        return float(self._core.error(x))


def start_mixed(matrix: Matrix, **problem: Any) -> Any:
    """A run on terms that differ from place to place (`coordwise.varied`)."""
    return _core.start_mixed(matrix=matrix._core, **problem)


def capsule(given: Any) -> tuple[str, int, int]:
    """Name, address and context of a capsule: signature, function and user data of a scipy.LowLevelCallable."""
    return _core.capsule(given)


def value_at(function: tuple[int, int, bool], x: FloatArray) -> float:
    """A compiled function of (n, x) at x."""
    return float(_core.value_at(function, x))


def end_threads() -> None:
    """Other threads in the core stay there from now on, since the interpreter ends (`core/bind/gil.hpp`)."""
    _core.end_threads()


def alias_cells(p: FloatArray) -> NDArray[np.uint32]:
    """Alias table of a distribution: threshold (out of 2^32) and alias of every cell."""
    out = np.empty((len(p), 2), np.uint32)
    _core.alias_cells(p, out)
    return out


def draw(
    seed: int, cells: NDArray[np.uint32] | None, n: int, count: int, members: NDArray[np.uint32] | None = None
) -> NDArray[np.uint32]:
    """The first `count` indices of a stream; cells=None gives random permutations of 0..n-1, or of some of them."""
    out = np.empty(count, np.uint32)
    _core.draw(seed, cells, n, members, out)
    return out


def inspect_sparse(indices: NDArray[Any], indptr: NDArray[Any], width: int) -> tuple[str, bool]:
    """What is wrong with the index arrays ("" if nothing), and whether every row is strictly increasing."""
    wrong, canonical = _core.inspect(indices, indptr, width)
    return str(wrong), bool(canonical)


def fits_single(values: NDArray[Any]) -> bool:
    """Whether float32 holds every value of a flat array exactly."""
    return values.dtype == np.float32 or bool(_core.fits_single(values))


def survey(values: NDArray[Any]) -> tuple[int, float]:
    """Position of the first NaN or infinity in a flat array (or -1), and the largest modulus."""
    bad, largest = _core.survey(values)
    return int(bad), float(largest)


class SvmlightParser:
    """svmlight text in blocks of bytes to the arrays of a CSR matrix (`core/svmlight.hpp`); the GIL is released.

    Indices outside lowest..highest are refused, as is everything that is not svmlight text: ValueError with the number
    of the line and the reason. After that, and after `finish`, the parser is of no more use.
    """

    def __init__(self, *, lowest: int, highest: int) -> None:
        self._core = _core.SvmlightParser(lowest, highest)

    def feed(self, block: bytes) -> None:
        """Parse a block; it may begin and end anywhere in a line."""
        self._core.feed(block)

    def finish(self) -> tuple[FloatArray, NDArray[Any], NDArray[np.int64], FloatArray, int, int]:
        """Values, indices as written (int32 if they fit), indptr, labels, and the smallest and largest index written.

        If there are none, the smallest is 2^63 - 1 and the largest -1.
        """
        return self._core.finish()
