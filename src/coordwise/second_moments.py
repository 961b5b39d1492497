"""Second moments of samples about their means: what least squares has to know of them, in parts that are added up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from coordwise import visits
from coordwise.samples.block import Block
from coordwise.validation import FloatArray

__all__ = ["MOST_FEATURES", "SecondMoments", "far_from_0"]

EPS = float(np.finfo(float).eps)
MOST_FEATURES = 10_000  # whose products with each other are kept: 0.8 GB


@dataclass(frozen=True, eq=False)
class SecondMoments:
    """Weights W, means, and the sums of products of the features and targets, less their means, with each other."""

    samples: int
    batches: int
    total: float
    mean: FloatArray
    level: FloatArray
    gram: FloatArray
    cross: FloatArray
    squares: FloatArray

    @classmethod
    def of(cls, X: Any, targets: FloatArray, weights: FloatArray | None, *, center: bool) -> SecondMoments:
        """Of one batch; without `center` the means are 0."""
        block = Block(X, targets, weights)
        shift, level = np.zeros(block.sizes.d), np.zeros(block.outputs)
        if center:
            shift, level = far_from_0(block.sizes.total, *visits.first_moments(block)[1])
        sums = visits.second_moments(block, shift=shift, level=level)[1]
        return cls.about(block.m, block.sizes.total, shift, level, sums, center=center)

    @classmethod
    def about(
        cls,
        samples: int,
        total: float,
        shift: FloatArray,
        level: FloatArray,
        sums: list[FloatArray],
        *,
        center: bool,
    ) -> SecondMoments:
        """Of the sums that `visits.second_moments` returns for this shift and level.

        With `center` they become sums about the means; as far as the means are near the shift, no digits are lost.
        """
        gram, first, cross, first_targets, squares = sums
        if not center or total == 0:
            return cls(samples, 1, total, shift, level, gram, cross, squares)
        rest, left = first / total, first_targets / total
        return cls(
            samples,
            1,
            total,
            shift + rest,
            level + left,
            gram - total * np.outer(rest, rest),
            cross - np.outer(rest, first_targets),
            squares - total * left**2,
        )

    def __add__(self, other: SecondMoments) -> SecondMoments:
        """Both together; sums about two means become sums about the common one without loss of digits."""
        total = self.total + other.total
        apart, away = other.mean - self.mean, other.level - self.level
        share = other.total / total if total > 0 else 0.0
        weight = self.total * share
        return SecondMoments(
            self.samples + other.samples,
            self.batches + other.batches,
            total,
            self.mean + share * apart,
            self.level + share * away,
            self.gram + other.gram + weight * np.outer(apart, apart),
            self.cross + other.cross + weight * np.outer(apart, away),
            self.squares + other.squares + weight * away**2,
        )

    def ridge(self, alphas: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Weights (d x K), intercepts, and a bound of P(w, c) - min P, P being the mean loss and (alpha/W/2) |w|^2.

        The bound allows for the rounding of the moments. Of several solutions without a penalty the weights are those
        of smallest |w|, and the bound is P(0), since the moments do not tell features that depend on each other from
        features that nearly do.
        """
        w, gap = np.empty_like(self.cross), np.empty(len(alphas))
        for alpha in np.unique(alphas):
            which = alphas == alpha
            w[:, which], gap[which] = self._solved(float(alpha), self.cross[:, which], self.squares[which])
        return w, self.level - self.mean @ w, gap

    def _solved(self, alpha: float, cross: FloatArray, squares: FloatArray) -> tuple[FloatArray, FloatArray]:
        hessian = self.gram + alpha * np.eye(len(self.gram))
        try:
            factor = scipy.linalg.cho_factor(hessian)
            if alpha == 0:
                _check_pivots(factor[0], hessian)

            def solve(b: FloatArray) -> FloatArray:
                return scipy.linalg.cho_solve(factor, b)
        except np.linalg.LinAlgError:
            inverse = scipy.linalg.pinvh(hessian)

            def solve(b: FloatArray) -> FloatArray:
                return inverse @ b

        w = solve(cross)
        w += solve(cross - hessian @ w)
        left = cross - hessian @ w
        gap = np.maximum((left * solve(left)).sum(axis=0), 0.0) + _hidden(alpha, hessian, w, cross)
        return w, np.minimum(gap, squares) / (2 * self.total)  # P(0) is more than P(w), and no loss is negative


def _hidden(alpha: float, hessian: FloatArray, w: FloatArray, cross: FloatArray) -> FloatArray:
    """What the rounding of the moments may hide of twice the gap: |delta|^2 over the least curvature.

    The curvature is alpha, or without a penalty an eigenvalue. Where one is 0 up to rounding the moments cannot tell
    features that depend on each other from features that nearly do, and anything may be hidden.
    """
    unit = 1 / np.sqrt(np.where(np.diag(hessian) > 0, np.diag(hessian), 1.0))
    delta = EPS * unit[:, None] * (np.abs(hessian) @ np.abs(w) + np.abs(cross))
    if alpha > 0:
        return np.asarray((delta**2 / (alpha * unit[:, None] ** 2)).sum(axis=0))
    seen = np.diag(hessian) > 0  # a feature that is 0 everywhere has nothing to hide
    values = scipy.linalg.eigvalsh((hessian * unit * unit[:, None])[np.ix_(seen, seen)]) if seen.any() else np.ones(1)
    if values[0] <= len(values) * EPS * values[-1]:
        return np.full(w.shape[1], np.inf)
    return np.asarray((delta**2).sum(axis=0) / values[0])


def far_from_0(
    total: float, sums: FloatArray, squares: FloatArray, targets: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The shift of the features and of the targets about which second moments lose no digits.

    Features whose mean is smaller than their spread stay as they are, so that sparse ones stay sparse.
    """
    if total == 0:
        return np.zeros_like(sums), np.zeros_like(targets)
    mean = sums / total
    return np.where(squares < 2 * total * mean**2, mean, 0.0), targets / total


def _check_pivots(factor: FloatArray, hessian: FloatArray) -> None:
    """LinAlgError where a pivot is rounding, so that columns depend on each other."""
    if np.any(np.diag(factor) ** 2 <= 1e-12 * np.diag(hessian)):
        raise np.linalg.LinAlgError
