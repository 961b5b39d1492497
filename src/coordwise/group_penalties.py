"""Penalties over groups of features: their Euclidean norms, with l1 and squared l2 norms beside them."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from coordwise.kernels import Blocks, Shape, Terms
from coordwise.partition import Partition, check_groups
from coordwise.validation import FloatArray, check_array, check_number

__all__ = ["GroupL1"]

INSIDE = 1 - 1e-13  # so that moments recomputed with other rounding still fit


@dataclass(frozen=True, eq=False)
class GroupL1:
    """r(w) = l1 sum_g weights_g |w_g|_2 + feature_l1 |w|_1 + (l2/2) |w|^2, w_g the features of group g.

    With l2 = 0 and feature_l1 = 0 this is the group lasso, with feature_l1 > 0 the sparse group lasso. Its conjugate is

        r*(v) = sum_g max(|S(v_g)| - l1 weights_g, 0)^2 / (2 l2),   S(v)_j = sign(v_j) max(|v_j| - feature_l1, 0);

    with l2 = 0, 0 where |S(v_g)| <= l1 weights_g for every group and inf elsewhere.

    Parameters
    ----------
    l1 : float
        Weight of the groups' norms, >= 0.
    groups : array of d integers
        The group of each feature, 0 .. G - 1 without gaps; a group's features need not be neighbours. Coordinate
        descent takes groups of up to 64 features.
    l2 : float, default 0
    weights : array of shape (G,), optional
        Non-negative; by default the square roots of the groups' sizes. A weight of 0, which leaves a group without a
        norm, needs l2 > 0 or feature_l1 > 0.
    feature_l1 : float, default 0
        Weight of |w|_1.

    Raises
    ------
    TypeError, ValueError
        Naming the argument, what was wrong and what would work.

    Examples
    --------
    >>> import numpy as np, coordwise as cw
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((50, 6)); b = A[:, :2] @ [1.0, 2.0]
    >>> penalty = cw.penalties.GroupL1(0.5, groups=[0, 0, 1, 1, 2, 2])
    >>> result = cw.solve(cw.ERM(A, b, penalty=penalty).primal(), tol=1e-9)
    >>> bool(result.converged), np.flatnonzero(result.w).tolist()
    (True, [0, 1])
    """

    name: ClassVar[str] = "group_l1"
    positive: ClassVar[bool] = False
    l1: float
    groups: ArrayLike = field(repr=False)
    l2: float = 0.0
    weights: ArrayLike | None = field(default=None, repr=False)
    _: KW_ONLY
    feature_l1: float = 0.0

    def __post_init__(self) -> None:
        for name in ("l1", "l2", "feature_l1"):
            object.__setattr__(self, name, check_number(name, getattr(self, name), low=0))
        if self.l1 == self.l2 == self.feature_l1 == 0:
            raise ValueError("the penalty is zero (l1=0, l2=0 and feature_l1=0); give a positive one of them.")
        labels = check_groups("groups", self.groups)
        object.__setattr__(self, "groups", _read_only(labels.copy()))
        if self.weights is None:
            weights = np.sqrt(self.partition.sizes)
        else:
            weights = check_array("weights", self.weights, (self.partition.count,)).copy()
            if np.any(weights < 0):
                least = int(weights.argmin())
                raise ValueError(f"weights holds {weights[least]:g} at index {least}; it must be >= 0 for every group.")
        object.__setattr__(self, "weights", _read_only(weights))
        if self.l2 == self.feature_l1 == 0 and not np.all(self.kinks > 0):
            free = "l1=0" if self.l1 == 0 else f"weights holds 0 at index {int(weights.argmin())}"
            raise ValueError(f"{free}, which leaves a group without a penalty; give l2 > 0 or feature_l1 > 0 with it.")

    def __repr__(self) -> str:
        weights = np.asarray(self.weights)
        usual = np.array_equal(weights, np.sqrt(self.partition.sizes))
        parts = [f"l1={self.l1!r}", f"{self.partition.count} groups of {len(self.partition.of)} features"]
        parts += [f"{name}={value!r}" for name in ("l2", "feature_l1") if (value := getattr(self, name)) > 0]
        return f"GroupL1({', '.join(parts)}{'' if usual else ', weights given'})"

    def check_features(self, count: int, what: str) -> None:
        """ValueError unless there are groups for as many features; `what` says where these come from."""
        if len(self.partition.of) != count:
            raise ValueError(
                f"groups has length {len(self.partition.of)}, but there are {count} {what}; give the group of every "
                "feature."
            )

    @cached_property
    def partition(self) -> Partition:
        """The groups as blocks of coordinates."""
        return Partition.by(np.asarray(self.groups))

    @cached_property
    def kinks(self) -> FloatArray:
        """l1 weights_g."""
        return self.l1 * np.asarray(self.weights)

    def terms(self) -> Terms:
        """The terms of single features."""
        return Terms(self.shape, 1.0, None, None)

    @property
    def shape(self) -> Shape:
        """r along one coordinate, of the group that weighs most, in the form of a conjugate."""
        return Shape(quad=self.l2, kink=float(self.kinks.max()) + self.feature_l1)

    @property
    def blocks(self) -> Blocks:
        """r in the kernel's terms, beside the quad of `shape`."""
        return Blocks(self.partition.starts, self.partition.order, self.kinks, self.feature_l1)

    def values(self, w: FloatArray) -> FloatArray:
        """r_g(w_g) for every group: the first axis becomes that of groups."""
        value = self._column(self.kinks, w) * self._norms(w) + self.l2 / 2 * self.partition.sums(np.square(w))
        return value + self.feature_l1 * self.partition.sums(np.abs(w)) if self.feature_l1 > 0 else value

    def value(self, w: FloatArray) -> FloatArray:
        """r(w), summed over the first axis."""
        return self.values(w).sum(0)

    def conjugates(self, v: FloatArray) -> FloatArray:
        """r_g*(v_g) for every group."""
        excess = np.maximum(self._norms(self._soft(v)) - self._column(self.kinks, v), 0)
        if self.l2 == 0:
            return np.where(excess > 0, np.inf, 0.0)
        return np.square(excess / np.sqrt(self.l2)) / 2

    def conjugate(self, v: FloatArray) -> FloatArray:
        """r*(v), summed over the first axis."""
        return self.conjugates(v).sum(0)

    def conjugate_gradient(self, v: FloatArray) -> FloatArray:
        """The w that attains r*(v) = <v, w> - r(w); l2 > 0."""
        if self.l2 == 0:
            raise ValueError("conjugate_gradient needs l2 > 0: without it r* is not differentiable.")
        return self._shrunk(self._soft(v), self.kinks) / self.l2

    def prox(self, w: FloatArray, step: float) -> FloatArray:
        """Argmin over x of r(x) + |x - w|^2/(2 step)."""
        soft = np.copysign(np.maximum(np.abs(w) - step * self.feature_l1, 0), w)
        return self._shrunk(soft, step * self.kinks) / (1 + step * self.l2)

    def fenchel_young(self, w: FloatArray, v: FloatArray) -> FloatArray:
        """r_g(w_g) + r_g*(v_g) - <w_g, v_g> >= 0 for every group; 0 where v_g is a subgradient at w_g."""
        return np.maximum(self.values(w) + self.conjugates(v) - self.partition.sums(w * v), 0)

    def slack(self, v: FloatArray) -> FloatArray:
        """How far v_g may move, in the Euclidean norm, before it leaves the subgradients at 0; < 0 if it has."""
        return self._column(self.kinks, v) - self._norms(self._soft(v))

    def feasible_share(self, v: FloatArray) -> FloatArray:
        """The largest factor <= 1, per output, with which v is in the domain of r* for l2 = 0.

        That is where every |S(s v_g)| <= l1 weights_g: convex functions of s, which Newton's method from s = 1 on takes
        to the smallest of their roots from above. Without feature_l1 they are linear, and the first step is exact. Its
        next s is (l1 weights_g + feature_l1 <1, u>)/<|v_g|, u>, u the direction of S(s |v_g|): nothing is subtracted.
        """
        share, sizes, kinks = np.ones(v.shape[1:]), np.abs(v), self._column(self.kinks, v)
        for _ in range(100):
            soft = np.maximum(share * sizes - self.feature_l1, 0)
            norms = self._norms(soft)
            over = norms > kinks
            soft /= np.where(over, norms, 1.0)[self.partition.of]
            slopes = np.where(over, self.partition.sums(soft * sizes), 1.0)
            roots = np.where(over, (kinks + self.feature_l1 * self.partition.sums(soft)) / slopes, np.inf).min(0)
            if np.all(roots >= share * (1 - 1e-15)):
                return np.where(share < 1, share * INSIDE, 1.0)
            share = np.minimum(share, roots)
        return np.zeros_like(share)  # which is in the domain for certain

    def _norms(self, w: FloatArray) -> FloatArray:
        return np.sqrt(self.partition.sums(np.square(w)))

    def _soft(self, v: FloatArray) -> FloatArray:
        return np.copysign(np.maximum(np.abs(v) - self.feature_l1, 0), v) if self.feature_l1 > 0 else v

    def _shrunk(self, w: FloatArray, by: FloatArray) -> FloatArray:
        """Every w_g made shorter by by_g, or 0."""
        norms, by = self._norms(w), self._column(by, w)
        factor = np.where(norms > by, 1 - by / np.where(norms > by, norms, 1.0), 0.0)
        return w * factor[self.partition.of]

    @staticmethod
    def _column(values: FloatArray, table: FloatArray) -> FloatArray:
        """One value per group, beside sums over the groups of `table`."""
        return values.reshape(-1, *(1,) * (table.ndim - 1))


def _read_only(array: Any) -> Any:
    array.flags.writeable = False
    return array
