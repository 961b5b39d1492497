"""Penalties r(w): l1 and l2 norms, together or alone, with or without the constraint w >= 0; by name, or as objects."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coordwise.custom import CustomPenalty, SeparablePenalty
from coordwise.group_penalties import GroupL1
from coordwise.kernels import Shape, Terms
from coordwise.validation import FloatArray, check_choice, check_number

__all__ = ["L1", "L2", "PENALTIES", "CustomPenalty", "ElasticNet", "GroupL1", "Penalty", "get_penalty"]


@dataclass(frozen=True)
class ElasticNet:
    """r(w) = l1 |w|_1 + (l2/2) |w|^2, over w >= 0 if `positive`.

    r*(v) = sum_j max(|v_j| - l1, 0)^2 / (2 l2); with l2 = 0, 0 where |v_j| <= l1 and inf elsewhere. With `positive`,
    |v_j| is replaced by max(v_j, 0).
    """

    name: ClassVar[str] = "elastic_net"
    l1: float
    l2: float
    positive: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "l1", check_number("l1", self.l1, low=0))
        object.__setattr__(self, "l2", check_number("l2", self.l2, low=0))
        if not isinstance(self.positive, (bool, np.bool_)):
            raise TypeError(f"positive must be True or False, not {type(self.positive).__name__}.")
        if self.l1 == 0 and self.l2 == 0:
            raise ValueError("the penalty is zero (l1=0 and l2=0); give a positive l1 or l2.")

    @property
    def quadratic(self) -> bool:
        """Whether r is (l2/2) |w|^2."""
        return self.l1 == 0 and not self.positive

    def terms(self) -> Terms:
        """The terms of the coordinates of a primal."""
        return Terms(self.shape, 1.0, None, None)

    def dual_terms(self, n: float) -> Terms:
        """r*(-v/n) as a function of v (l2 > 0)."""
        return Terms(self.dual_shape(n), 1.0, None, None)

    @property
    def shape(self) -> Shape:
        """The coordinate term of the primal, r_j(w_j), in the form of a conjugate."""
        return Shape(quad=self.l2, kink=self.l1, lower=0.0 if self.positive else -np.inf)

    def dual_shape(self, n: float) -> Shape:
        """r*(-v/n) as a function of v_j, in the form whose value and derivative the kernel takes (l2 > 0)."""
        return Shape(quad=self.l2 * n**2, kink=self.l1 * n, upper=0.0 if self.positive else np.inf)

    def value(self, w: FloatArray) -> FloatArray:
        """r(w), summed over the first axis."""
        value = _squares(math.sqrt(self.l2) * w) / 2
        if self.l1 > 0:
            value = value + self.l1 * np.abs(w).sum(0)
        return np.where((w < 0).any(0), np.inf, value) if self.positive else value

    def conjugate(self, v: FloatArray) -> FloatArray:
        """r*(v), summed over the first axis."""
        if self.l1 == 0 and not self.positive:
            return _squares(v / math.sqrt(self.l2)) / 2  # the squares alone might underflow
        excess = np.maximum((v if self.positive else np.abs(v)) - self.l1, 0)
        if self.l2 == 0:
            return np.where((excess > 0).any(0), np.inf, 0.0)
        return _squares(excess / math.sqrt(self.l2)) / 2

    def conjugate_gradient(self, v: FloatArray) -> FloatArray:
        """The w that attains r*(v) = <v, w> - r(w); l2 > 0."""
        if self.l2 == 0:
            raise ValueError("conjugate_gradient needs l2 > 0: without it r* is not differentiable.")
        if self.l1 == 0 and not self.positive:
            return v / self.l2
        size = np.maximum(np.abs(v) - self.l1, 0) / self.l2
        return np.where(v > 0, size, 0.0) if self.positive else np.copysign(size, v)

    def smoothed(self, l2: float) -> ElasticNet:
        """r(w) + (l2/2) |w|^2."""
        return ElasticNet(self.l1, self.l2 + l2, self.positive)


class L2(ElasticNet):
    """r(w) = (lam/2) |w|^2."""

    name: ClassVar[str] = "l2"

    def __init__(self, lam: float, positive: bool = False) -> None:
        super().__init__(0.0, check_number("lam", lam, low=0, strictly=True), positive)

    def __repr__(self) -> str:
        return f"L2(lam={self.l2!r}{', positive=True' * self.positive})"


class L1(ElasticNet):
    """r(w) = lam |w|_1."""

    name: ClassVar[str] = "l1"

    def __init__(self, lam: float, positive: bool = False) -> None:
        super().__init__(check_number("lam", lam, low=0, strictly=True), 0.0, positive)

    def __repr__(self) -> str:
        return f"L1(lam={self.l1!r}{', positive=True' * self.positive})"


Penalty = ElasticNet | GroupL1 | SeparablePenalty
PENALTIES = ("l2", "l1", "elastic_net")


def get_penalty(
    penalty: str | Penalty | CustomPenalty, lam: float | None, l1_ratio: float | None, positive: bool
) -> Penalty:
    """A penalty by name: l2 and l1 with weight lam; elastic_net as lam (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|^2)."""
    if isinstance(penalty, CustomPenalty):
        penalty = SeparablePenalty(penalty)
    if isinstance(penalty, Penalty):
        if lam is not None or l1_ratio is not None or positive:
            raise ValueError("lam, l1_ratio and positive belong to a penalty given by name; this one is an object.")
        return penalty
    name = check_choice("penalty", penalty, PENALTIES)
    if lam is None:
        raise ValueError(f"penalty={name!r} needs lam, the weight of the penalty; give lam > 0.")
    lam = check_number("lam", lam, low=0, strictly=True)
    if name != "elastic_net":
        if l1_ratio is not None:
            raise ValueError(f"l1_ratio has no meaning for penalty={name!r}; use penalty='elastic_net'.")
        return L2(lam, positive) if name == "l2" else L1(lam, positive)
    if l1_ratio is None:
        raise ValueError("penalty='elastic_net' needs l1_ratio in [0, 1]: the share of lam on |w|_1.")
    ratio = check_number("l1_ratio", l1_ratio, low=0, high=1)
    return ElasticNet(lam * ratio, lam * (1 - ratio), positive)


def _squares(v: FloatArray) -> FloatArray:
    """Sums of squares over the first axis, without a temporary array."""
    return np.einsum("i...,i...->...", v, v)
