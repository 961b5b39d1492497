"""Terms that differ from place to place, with the interface of `coordwise.kernels.Terms`, and runs on them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coordwise import kernels
from coordwise.kernels import Matrix, Plan, Run, Shape, Terms
from coordwise.validation import FloatArray

__all__ = ["MixedTerms", "Summary", "VariedRun", "VariedTerms"]


@dataclass(frozen=True)
class Summary(Shape):
    """What is common to the shapes of several conjugates: the least that each of them has."""

    least_curvature: float = 0.0
    all_differentiable: bool = False
    any_corners: bool = True
    any_bounded: bool = True

    @classmethod
    def of(cls, shapes: tuple[Shape, ...]) -> Summary:
        """Of shapes that are known."""
        return cls(
            least_curvature=min(shape.curvature for shape in shapes),
            all_differentiable=all(shape.differentiable for shape in shapes),
            any_corners=any(shape.corners for shape in shapes),
            any_bounded=any(shape.bounded for shape in shapes),
        )

    @property
    def differentiable(self) -> bool:
        """See `Shape.differentiable`."""
        return self.all_differentiable

    @property
    def corners(self) -> bool:
        """See `Shape.corners`."""
        return self.any_corners

    @property
    def bounded(self) -> bool:
        """See `Shape.bounded`."""
        return self.any_bounded

    @property
    def curvature(self) -> float:
        """See `Shape.curvature`."""
        return self.least_curvature


@dataclass(frozen=True)
class VariedTerms(Terms):
    """Base of terms that the kernel does not know; they enter runs by `VariedRun`, and `shape` is a `Summary`.

    Subclasses give `derivative`, `value`, `conjugate`, `gaps`, `bounds`, `in_corner`, `smoothness`, `curvatures` and
    `given`.
    """

    @property
    @abstractmethod
    def curvatures(self) -> float | FloatArray:
        """Largest curvature of scale * (s_i phi)^* where it is differentiable, its strong convexity if it has one."""

    @abstractmethod
    def gaps(self, x: FloatArray, g: FloatArray, which: NDArray[np.bool_]) -> FloatArray:
        """See `Terms.fenchel_young`."""

    @property
    @abstractmethod
    def given(self) -> Any:
        """The terms as the core takes them: kinds, codes, centres and weights, or an object that it calls."""

    def fenchel_young(self, x: FloatArray, g: FloatArray, which: NDArray[np.bool_]) -> FloatArray:
        """See `Terms.fenchel_young`."""
        return self.gaps(x, g, which)

    def sums(self, rows: Matrix, x: FloatArray, omega: FloatArray, threads: int = 1) -> dict[str, FloatArray]:
        """See `Terms.sums`."""
        return self.sums_at(x, rows.dots(omega, threads))

    def sums_at(self, x: FloatArray, g: FloatArray) -> dict[str, FloatArray]:
        """The same for products g that are known."""
        everywhere = np.ones(len(x), np.bool_)
        return {
            "value": self.conjugate(x),
            "conjugate": self.value(-g / self.scale),
            "fenchel_young": self.fenchel_young(x, g, everywhere),
            "gradient2": np.full(x.shape[1], np.nan),
            "lowest": np.minimum(g.min(0), 0.0),
            "highest": np.maximum(g.max(0), 0.0),
        }


@dataclass(frozen=True)
class MixedTerms(VariedTerms):
    """Terms of a few shapes, `codes` telling which one stands at i."""

    shapes: tuple[Shape, ...] = ()
    codes: NDArray[np.uint8] | None = None

    @cached_property
    def parts(self) -> list[tuple[NDArray[np.intp], Terms]]:
        """The places of each shape that occurs, with the terms there."""
        found = []
        for code, shape in enumerate(self.shapes):
            which = np.flatnonzero(self.codes == code)
            if len(which):
                centers = None if self.centers is None else self.centers[which]
                weights = None if self.weights is None else self.weights[which]
                found.append((which, Terms(shape, self.scale, centers, weights, self.threads)))
        return found

    def _spread(self, of: Callable[[NDArray[np.intp], Terms], Any], like: FloatArray, kind: Any = np.float64) -> Any:
        out = np.empty(like.shape, kind)
        for which, terms in self.parts:
            out[which] = of(which, terms)
        return out

    def _total(self, of: Callable[[NDArray[np.intp], Terms], Any]) -> Any:
        return sum(of(which, terms) for which, terms in self.parts)

    def derivative(self, t: FloatArray) -> FloatArray:
        """See `Terms.derivative`."""
        return self._spread(lambda which, terms: terms.derivative(t[which]), t)

    def second_derivative(self, t: FloatArray) -> FloatArray:
        """See `Terms.second_derivative`."""
        return self._spread(lambda which, terms: terms.second_derivative(t[which]), t)

    def value(self, t: FloatArray) -> FloatArray:
        """See `Terms.value`."""
        return self._total(lambda which, terms: terms.value(t[which]))

    def conjugate(self, y: FloatArray) -> FloatArray:
        """See `Terms.conjugate`."""
        return self._total(lambda which, terms: terms.conjugate(y[which]))

    def gaps(self, x: FloatArray, g: FloatArray, which: NDArray[np.bool_]) -> FloatArray:
        """See `Terms.fenchel_young`."""
        return self._total(lambda at, terms: terms.fenchel_young(x[at], g[at], which[at]))

    def bounds(self, shape: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
        """See `Terms.bounds`."""
        low, high = np.empty(shape), np.empty(shape)
        for which, terms in self.parts:
            low[which], high[which] = terms.bounds((len(which), shape[1]))
        return low, high

    def in_corner(self, y: FloatArray) -> NDArray[np.bool_]:
        """See `Terms.in_corner`."""
        return self._spread(lambda which, terms: terms.in_corner(y[which]), y, np.bool_)

    def prox(self, i: int, k: int, rhs: float, kappa: float) -> float:
        """See `Terms.prox`."""
        assert self.codes is not None
        kind = self.shapes[self.codes[i]]
        return Terms(kind, self.scale, self.centers, self.weights).prox(i, k, rhs, kappa)

    @property
    def smoothness(self) -> FloatArray:
        """See `Terms.smoothness`."""
        return self._spread(lambda which, terms: terms.smoothness, np.empty(len(self.codes)))  # type: ignore[arg-type]

    @property
    def curvatures(self) -> FloatArray:
        """See `VariedTerms.curvatures`."""
        assert self.codes is not None
        quad = np.array([4.0 if shape.logistic else shape.quad for shape in self.shapes])[self.codes]
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.scale * quad if self.weights is None else _divided(self.scale * quad, self.weights)

    @property
    def given(self) -> Any:
        """See `VariedTerms.given`."""
        cores = [Terms(shape, self.scale, None, None).core for shape in self.shapes]
        return cores, self.codes, self.centers, self.weights


def _divided(values: FloatArray, weights: FloatArray) -> FloatArray:
    """values/weights, infinite for weights of 0."""
    return np.where(weights > 0, values / np.where(weights > 0, weights, 1.0), np.inf)


class VariedRun(Run):
    """`coordwise.kernels.Run` where the terms of the coordinates, or those of G, are `VariedTerms`."""

    def __init__(
        self,
        matrix: Matrix,
        coordinates: Terms,
        smooth: float | Terms,
        plan: Plan,
        *,
        cells: NDArray[np.uint32] | None,
        members: NDArray[np.uint32] | None,
        seed: int,
        x0: FloatArray,
        image0: FloatArray | None,
    ) -> None:
        self._matrix, self._terms = matrix, coordinates
        self._outputs, self.seed, self.packed = x0.shape[1], seed, False
        self._core = kernels.start_mixed(
            matrix,
            coordinates=_given(coordinates),
            gain=None if isinstance(smooth, Terms) else smooth,
            image=_given(smooth) if isinstance(smooth, Terms) else None,
            cells=cells,
            members=members,
            seed=seed,
            x0=x0,
            image0=image0,
            **vars(plan),
        )

    def point(self, *, inside: bool = True) -> FloatArray:
        """See `Run.point`."""
        out = np.empty((self._matrix.count, self._outputs))
        self._core.point(out)
        return self._terms.clip(out) if inside else out

    def sums(self, omega: FloatArray, g: FloatArray | None = None) -> dict[str, FloatArray]:
        """See `Run.sums`."""
        products = self._matrix.dots(omega)
        if g is not None:
            g[:] = products
        if isinstance(self._terms, VariedTerms):
            return self._terms.sums_at(self.point(), products)
        return self._terms.sums(self._matrix, self.point(), omega)


def _given(terms: Terms) -> Any:
    """Terms as the core takes them."""
    return terms.given if isinstance(terms, VariedTerms) else ([terms.core], None, terms.centers, terms.weights)
