"""Features and targets far from 0, moved near it. With a free intercept this changes nothing but rounding.

The model (w, c) of A - 1 shift' and b - level is (w, c + level - <shift, w>) of A and b, and its duality gap is the
same. What a shift does is that squares and products of numbers that differ in their last digits keep these digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from coordwise.losses import Loss
from coordwise.samples.moved import moved
from coordwise.validation import FloatArray

__all__ = ["FAR", "Offsets", "near_zero", "shift_of"]

FAR = 64.0  # |mean| over spread: squares lose a relative FAR^2 eps = 9e-13, more than the finest tolerances allow
ROWS = 256  # that tell where features lie


@dataclass(frozen=True, eq=False)
class Offsets:
    """What was taken off: `shift` (d) of the features, None if nothing was, and `level` (K, or 1) of the targets."""

    shift: FloatArray | None
    level: FloatArray

    def restored(self, w: FloatArray, c: FloatArray) -> FloatArray:
        """The intercepts (K) for the data as they were, of weights w (d x K) and intercepts c of the data moved."""
        return c + self.level - (0.0 if self.shift is None else self.shift @ w)

    def removed(self, w: FloatArray, c: FloatArray) -> FloatArray:
        """The inverse of `restored`."""
        return c - self.level + (0.0 if self.shift is None else self.shift @ w)

    @classmethod
    def none(cls) -> Offsets:
        """Of data that stay as they are."""
        return cls(None, np.zeros(1))


def near_zero(X: Any, targets: FloatArray, weights: FloatArray | None, loss: Loss) -> tuple[Any, FloatArray, Offsets]:
    """X and targets (n x K) moved near 0, for a model with a free intercept.

    Only features whose mean is `FAR` times their spread are moved, by one of their own values: differences of numbers
    that are within a factor two of each other have no rounding, and constant features become exactly 0. Where there
    are none X is returned as it is; otherwise it is copied.

    The targets of losses of differences are moved in any case, by their mean (squared loss) or median: P(0, 0), which
    tolerances are relative to, then does not grow with their offset.
    """
    level = np.zeros(targets.shape[1])
    if not loss.classification:
        used = targets if weights is None else targets[weights > 0]
        squared = loss.name == "squared"
        level = np.average(targets, axis=0, weights=weights) if squared else np.median(used, axis=0)
        level = np.where(np.all(targets == targets[:1], axis=0), targets[0], level)  # without the rounding of sums
        targets = targets - level
    shift = shift_of(X)
    return X if shift is None else moved(X, shift), targets, Offsets(shift, level)


def shift_of(X: Any) -> FloatArray | None:
    """How much to take off the columns of X that lie far from 0, and 0 for the others; None if there are none."""
    which, some = _candidates(X)
    if not len(which):
        return None
    means, spreads = some.mean(axis=0), some.std(axis=0)
    usual = float(np.median(spreads[spreads > 0])) if np.any(spreads > 0) else np.inf
    spreads[spreads == 0] = usual  # constant features matter where they are far larger than others
    far = np.flatnonzero(np.abs(means) > FAR * spreads)
    if not len(far):
        return None
    nearest = np.argmin(np.abs(some[:, far] - means[far]), axis=0)
    shift = np.zeros(X.shape[1])
    shift[which[far]] = some[nearest, far]
    return shift


def _candidates(X: Any) -> tuple[Any, FloatArray]:
    """The columns that may lie far from 0, and evenly spaced rows of these as a dense array.

    Of sparse data they are those without zeros, or with next to none: if a share p of a column is 0, then
    mean^2 <= spread^2 (1 - p)/p, so that FAR^2 allows a share of 1/FAR^2.
    """
    step = max(X.shape[0] // ROWS, 1)
    if not sp.issparse(X):
        return np.arange(X.shape[1]), np.asarray(X[::step], np.float64)
    by_rows = X.format == "csr"
    some = sp.csr_array(X)[::step] if by_rows else X
    counts = np.bincount(some.indices, minlength=X.shape[1]) if by_rows else np.diff(some.indptr)
    which = np.flatnonzero(counts >= some.shape[0] * (1 - 1 / FAR**2) - 1)
    columns = some[:, which].toarray().astype(np.float64)
    return which, columns if by_rows else columns[::step]
