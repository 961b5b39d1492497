"""Least squares on data that come in batches: exact, by second moments about the means that are added up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from coordwise.fitting.centering import Centered
from coordwise.validation import FloatArray

__all__ = ["MOST_FEATURES", "Batches"]

MOST_FEATURES = 10_000  # whose products with each other are kept: 0.8 GB


@dataclass(frozen=True, eq=False)
class Batches:
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
    def of(cls, X: Any, targets: FloatArray, weights: FloatArray | None, *, center: bool) -> Batches:
        """Of one batch; without `center` the means are 0."""
        s = np.ones(len(targets)) if weights is None else weights
        data, total = Centered(X, s, center), float(s.sum())
        level = s @ targets / total if center and total > 0 else np.zeros(targets.shape[1])
        b = targets - level
        weighted = data.A.multiply(s[:, None]).tocsr() if data.sparse else data.A * s[:, None]
        product = data.A.T @ weighted
        gram = np.asarray(product.toarray() if data.sparse else product) - total * np.outer(data.rest, data.rest)
        cross = np.asarray(weighted.T @ b) - np.outer(data.rest, s @ b)
        return cls(len(targets), 1, total, data.mean, level, gram, cross, s @ b**2)

    def __add__(self, other: Batches) -> Batches:
        """Both together; sums about two means become sums about the common one without loss of digits."""
        total = self.total + other.total
        apart, away = other.mean - self.mean, other.level - self.level
        share = other.total / total if total > 0 else 0.0
        weight = self.total * share
        return Batches(
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
        """Weights (d x K), intercepts, and P(w, c) - min P for P with the losses' mean and (alpha/W/2) |w|^2.

        Of several solutions without a penalty those of smallest |w|.
        """
        w, gap = np.empty_like(self.cross), np.empty(len(alphas))
        for alpha in np.unique(alphas):
            which = alphas == alpha
            w[:, which], gap[which] = self._solved(float(alpha), self.cross[:, which])
        return w, self.level - self.mean @ w, gap

    def _solved(self, alpha: float, cross: FloatArray) -> tuple[FloatArray, FloatArray]:
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
        return w, np.maximum((left * solve(left)).sum(axis=0), 0.0) / (2 * self.total)


def _check_pivots(factor: FloatArray, hessian: FloatArray) -> None:
    """LinAlgError where a pivot is rounding, so that columns depend on each other."""
    if np.any(np.diag(factor) ** 2 <= 1e-12 * np.diag(hessian)):
        raise np.linalg.LinAlgError
