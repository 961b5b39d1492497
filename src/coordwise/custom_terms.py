"""Custom losses and penalties as terms that runs and certificates take."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coordwise.custom import CustomLoss, CustomPenalty, SeparablePenalty
from coordwise.validation import FloatArray, check_number
from coordwise.varied import Summary, VariedTerms

__all__ = ["ConjugateTerms", "LossTerms", "PenaltyTerms"]

FAR = 1e12  # a step after which a proximal point is a minimiser
NEAR = 1e-12  # the length of one that leads to the nearest point of the domain
NEGATIVE = 1e-7  # of its parts: what rounding cannot make of a Fenchel-Young sum


@dataclass(frozen=True)
class LossTerms(VariedTerms):
    """scale * s_i phi(.; b_i) for a `CustomLoss`."""

    loss: Any = None

    @classmethod
    def of(cls, loss: CustomLoss, scale: float, b: FloatArray, weights: FloatArray | None) -> LossTerms:
        """With what is known of the loss."""
        check_number("smoothness", loss.smoothness, low=0, strictly=True, infinite=True)
        ends = np.broadcast_arrays(*loss.domain(b))
        bounded = bool(np.isfinite(ends).any())
        return cls(Summary(least_curvature=loss.gamma, any_bounded=bounded), scale, b, weights, loss=loss)

    @cached_property
    def _ends(self) -> tuple[FloatArray, FloatArray]:
        """Of the domains of phi*, without the weights."""
        assert self.centers is not None
        low, high = (
            np.broadcast_to(np.asarray(end, np.float64), self.centers.shape) for end in self.loss.domain(self.centers)
        )
        return low, high

    @cached_property
    def _s(self) -> FloatArray:
        """Weights as a column."""
        assert self.centers is not None
        return np.ones((len(self.centers), 1)) if self.weights is None else self.weights[:, None]

    def _called(self, function: str, at: FloatArray, b: FloatArray) -> FloatArray:
        return _element_by_element(self.loss, function, at, b)

    def derivative(self, t: FloatArray) -> FloatArray:
        """See `Terms.derivative`."""
        assert self.centers is not None
        return self.scale * self._s * self._called("derivative", t, self.centers)

    def value(self, t: FloatArray) -> FloatArray:
        """See `Terms.value`."""
        return self._values(t).sum(0)

    def conjugate(self, y: FloatArray) -> FloatArray:
        """See `Terms.conjugate`."""
        return self._conjugates(y).sum(0)

    def _values(self, t: FloatArray) -> FloatArray:
        assert self.centers is not None
        return self.scale * self._s * self._called("value", t, self.centers)

    def _conjugates(self, y: FloatArray) -> FloatArray:
        assert self.centers is not None
        s = np.where(self._s > 0, self._s, 1.0)
        found = self.scale * s * self._called("conjugate", y / s, self.centers)
        return np.where(self._s > 0, found, np.where(y == 0, 0.0, np.inf))

    def gaps(self, x: FloatArray, g: FloatArray, which: NDArray[np.bool_]) -> FloatArray:
        """See `Terms.fenchel_young`."""
        parts = self._conjugates(x), self._values(-g / self.scale), x * g
        return _sums_of(repr(self.loss), parts, which)

    def apart(self, t: FloatArray, y: FloatArray) -> FloatArray:
        """Sums of scale * (s_i phi(t_i) + (s_i phi)^*(y_i) - t_i y_i), which is 0 at derivatives y."""
        return self.gaps(y, -self.scale * t, np.ones(len(t), np.bool_))

    def bounds(self, shape: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
        """See `Terms.bounds`."""
        low, high = self._ends
        with np.errstate(invalid="ignore"):  # 0 * inf, for a weight of 0
            return np.where(self._s == 0, 0.0, low * self._s), np.where(self._s == 0, 0.0, high * self._s)

    def in_corner(self, y: FloatArray) -> NDArray[np.bool_]:
        """See `Terms.in_corner`; kinks inside the domain are not known."""
        low, high = self.bounds(y.shape)
        return (y == low) | (y == high)

    def subgradients(self, t: FloatArray) -> FloatArray:
        """See `Terms.subgradients`."""
        return self.clip(self.derivative(t) / self.scale)

    def prox(self, i: int, k: int, rhs: float, kappa: float) -> float:
        """See `Terms.prox`: by Moreau's identity from that of the loss."""
        s = float(self._s[i, 0])
        if s == 0:
            return 0.0
        assert self.centers is not None
        r, weight = rhs / self.scale, kappa / self.scale
        y = (r - float(self.loss.prox(r, weight * s, float(self.centers[i, k])))) / weight
        low, high = self._ends
        return min(max(y, float(low[i, k]) * s), float(high[i, k]) * s)

    def derivatives(self, places: NDArray[np.uint32], k: int, v: FloatArray) -> FloatArray:
        """scale * s_j phi'(v_j; b_j) at some places, of output k."""
        assert self.centers is not None
        found = self.scale * self._s[places, 0] * self._called("derivative", v, self.centers[places, k])
        return np.ascontiguousarray(found)

    @property
    def curvatures(self) -> FloatArray:
        """See `VariedTerms.curvatures`."""
        s = self._s[:, 0]
        return np.where(s > 0, self.scale * self.loss.gamma / np.where(s > 0, s, 1.0), np.inf)

    @property
    def given(self) -> Any:
        """See `VariedTerms.given`."""
        return self


@dataclass(frozen=True)
class PenaltyTerms(VariedTerms):
    """h_j = r_j for a `CustomPenalty`: r stands where losses have their conjugate."""

    penalty: Any = None

    @classmethod
    def of(cls, penalty: SeparablePenalty) -> PenaltyTerms:
        """With what is known of the penalty."""
        shape = Summary(least_curvature=penalty.l2, any_bounded=False)
        return cls(shape, 1.0, None, None, penalty=penalty.custom)

    def value(self, t: FloatArray) -> FloatArray:
        """r*(t)."""
        return _element_by_element(self.penalty, "conjugate", t).sum(0)

    def conjugate(self, y: FloatArray) -> FloatArray:
        """r(y)."""
        return _element_by_element(self.penalty, "value", y).sum(0)

    def gaps(self, x: FloatArray, g: FloatArray, which: NDArray[np.bool_]) -> FloatArray:
        """See `Terms.fenchel_young`."""
        values, conjugates = (_element_by_element(self.penalty, *at) for at in (("value", x), ("conjugate", -g)))
        return _sums_of(repr(self.penalty), (values, conjugates, x * g), which)

    def bounds(self, shape: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
        """See `Terms.bounds`: where r is finite is not known."""
        return np.full(shape, -np.inf), np.full(shape, np.inf)

    def clip(self, y: FloatArray) -> FloatArray:
        """See `Terms.clip`: where r is infinite, a proximal step so short that it is a projection."""
        inside = np.isfinite(_element_by_element(self.penalty, "value", y))
        return (
            y
            if inside.all()
            else np.where(inside, y, _element_by_element(self.penalty, "prox", y, np.full(y.shape, NEAR)))
        )

    def in_corner(self, y: FloatArray) -> NDArray[np.bool_]:
        """See `Terms.in_corner`: the proximal step puts weights to 0 exactly, and nothing else is known."""
        return y == 0

    def minimizers(self, count: int, outputs: int) -> FloatArray:
        """See `Terms.minimizers`."""
        return np.full((count, outputs), float(self.penalty.prox(0.0, FAR)))

    def prox(self, i: int, k: int, rhs: float, kappa: float) -> float:
        """See `Terms.prox`."""
        return float(self.penalty.prox(rhs / kappa, 1 / kappa))

    @property
    def curvatures(self) -> float:
        """See `VariedTerms.curvatures`."""
        return float(self.penalty.strong_convexity)

    @property
    def given(self) -> Any:
        """See `VariedTerms.given`."""
        return self


@dataclass(frozen=True)
class ConjugateTerms(VariedTerms):
    """G(v) = r*(-v/n) for a `CustomPenalty`."""

    penalty: Any = None
    n: float = 1.0

    @classmethod
    def of(cls, penalty: SeparablePenalty, n: float) -> ConjugateTerms:
        """With its smoothness 1/(n^2 strong_convexity)."""
        return cls(Summary(least_curvature=penalty.l2 * n**2), 1.0, None, None, penalty=penalty.custom, n=n)

    def derivatives(self, places: NDArray[np.uint32], k: int, v: FloatArray) -> FloatArray:
        """G_j'(v_j)."""
        return np.ascontiguousarray(_element_by_element(self.penalty, "derivative_of_conjugate", -v / self.n) / -self.n)

    def gaps(self, x: FloatArray, g: FloatArray, which: NDArray[np.bool_]) -> FloatArray:
        """Not asked of G."""
        raise NotImplementedError

    @property
    def curvatures(self) -> float:
        """Not asked of G."""
        raise NotImplementedError

    @property
    def given(self) -> Any:
        """See `VariedTerms.given`."""
        return self


def left_over(penalty: CustomPenalty, w: FloatArray, v: FloatArray) -> FloatArray:
    """r(w) + r*(v) - <v, w>, summed over the first axis: 0 where w attains r*(v)."""
    values, conjugates = (_element_by_element(penalty, *at) for at in (("value", w), ("conjugate", v)))
    return _sums_of(repr(penalty), (values, conjugates, -v * w), np.ones(len(w), np.bool_))


def _element_by_element(of: CustomLoss | CustomPenalty, function: str, *arguments: FloatArray) -> FloatArray:
    found = np.asarray(getattr(of, function)(*arguments), np.float64)
    if found.shape != arguments[0].shape:
        raise ValueError(
            f"{function} of {of!r} returned shape {found.shape} for arrays of shape {arguments[0].shape}; it must work "
            "element by element."
        )
    return found


def _sums_of(name: str, parts: tuple[FloatArray, FloatArray, FloatArray], which: NDArray[np.bool_]) -> FloatArray:
    """Sums of h(x) + h*(-g) + x g over some rows, refused where one is negative beyond rounding."""
    one, other, product = parts
    with np.errstate(invalid="ignore"):
        terms = one + other + product
        size = np.abs(one) + np.abs(other) + np.abs(product)
        wrong = np.isfinite(size) & (terms < -NEGATIVE * size)
    if wrong.any():
        raise ValueError(
            f"The formulas of {name} contradict each other: a value and a conjugate add up to less than the product of "
            "their arguments. coordwise.losses.check says which is wrong."
        )
    return np.maximum(terms[which], 0.0).sum(0)
