"""Second moments of data: sums over samples, so those of a fold's complement are a difference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np

from coordwise.fitting.model import LinearModel
from coordwise.fitting.weighted import Gram
from coordwise.rows import Rows
from coordwise.validation import FloatArray

__all__ = ["Moments"]

FEW_TARGETS = 8  # that are columns of the Gram matrix, where their products with each other are of no use


@dataclass(frozen=True, eq=False)
class Moments:
    """A'SA, A'S1, A'Sb, 1'S1, 1'Sb of the samples A, targets b and weights S."""

    gram: FloatArray
    sums: FloatArray
    cross: FloatArray
    total: float
    targets: FloatArray

    @staticmethod
    def of(
        A: Any,
        b: FloatArray,
        weights: FloatArray | None,
        *,
        sums: bool = True,
        threads: int = 1,
        rows: Callable[[Literal["rows"]], Rows] | None = None,
    ) -> Moments:
        """Of a sparse or dense matrix, targets (n x K) and weights or None; A'S1 stays 0 unless it is asked for."""
        s = np.ones(len(b)) if weights is None else weights
        d = A.shape[1]
        few = b.shape[1] <= FEW_TARGETS
        table = Gram(A, sums, threads, rows)(s, b if few else None)
        cross = table[:d, d + sums :] if few else np.asarray(A.T @ (s[:, None] * b), np.float64)
        means = table[:d, d] if sums else np.zeros(d)
        return Moments(table[:d, :d], means, cross, float(s.sum()), s @ b)

    def __add__(self, other: Moments) -> Moments:
        return Moments(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def without(self, other: Moments) -> Moments | None:
        """The difference; None where it would lose digits, since what is taken away is far larger than what is left."""
        size = np.diagonal(self.gram)
        left = size - np.diagonal(other.gram)
        gone = left <= 1e-12 * size  # features that only the other samples have: 0, and not what rounding leaves
        if np.any(~gone & (left < 1e-5 * size)) or self.total - other.total < 1e-5 * self.total:
            return None
        gram, sums, cross = self.gram - other.gram, self.sums - other.sums, self.cross - other.cross
        gram[gone], gram[:, gone], sums[gone], cross[gone] = 0.0, 0.0, 0.0, 0.0
        return Moments(gram, sums, cross, self.total - other.total, self.targets - other.targets)

    def share(self, model: LinearModel) -> None:
        """Give a model of these samples its moments, in the form in which `coordwise.fitting.gram` keeps them."""
        G, moments = self.gram / self.total, self.cross / self.total
        shift, means = np.zeros(model.d), np.zeros(model.outputs)
        if model.intercept:
            shift, means = self.sums / self.total, self.targets / self.total
            G -= np.outer(shift, shift)
            moments = moments - np.outer(shift, means)
        model.shared["moments"] = G, moments, shift, means
