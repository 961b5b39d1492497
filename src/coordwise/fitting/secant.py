"""Zeros of functions whose values are known up to an error: the intercept beside a penalty that needs the features."""

from __future__ import annotations

from typing import Any

import numpy as np

from coordwise.validation import FloatArray

__all__ = ["Secant"]


class Secant:
    """Zeros of increasing functions, one per output: secant steps that do not leap, halving where they do not help."""

    def __init__(self, count: int) -> None:
        self.low, self.high = np.full(count, -np.inf), np.full(count, np.inf)
        self.last: tuple[FloatArray, FloatArray] | None = None
        self.widths: list[FloatArray] = []

    def next(self, c: FloatArray, slope: FloatArray, block: FloatArray, noise: FloatArray) -> tuple[FloatArray, Any]:
        """The next point, and whether the slopes must be known better.

        `block` minimises with all else fixed; `noise` bounds the error of the slopes.
        """
        sure = np.abs(slope) > noise
        self.low = np.where(sure & (slope < 0), np.maximum(self.low, c), self.low)
        self.high = np.where(sure & (slope > 0), np.minimum(self.high, c), self.high)
        width = self.high - self.low
        step = block
        if self.last is not None:
            before, was = self.last
            with np.errstate(divide="ignore", invalid="ignore"):
                secant = c - slope * (c - before) / (slope - was)
            reach = 10 * np.maximum(np.abs(c - before), np.abs(block - c))
            step = np.where(np.isnan(secant), block, np.clip(secant, c - reach, c + reach))
        with np.errstate(invalid="ignore"):
            middle = np.where(np.isfinite(width), self.low + width / 2, block)
            slow = len(self.widths) >= 2 and width > self.widths[-2] / 2
        step = np.where((step > self.low) & (step < self.high) & ~np.asarray(slow), step, middle)
        stuck = False if self.last is None else ~sure & (np.abs(slope) > np.abs(self.last[1]) / 2)
        step = np.where(stuck, block, step)
        self.last = c, slope
        self.widths.append(width)
        still = np.abs(step - c) <= 1e-13 * np.maximum(np.abs(c), 1.0)
        return step, stuck | still
