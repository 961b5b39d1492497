"""Weighted Gram matrices of the data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from coordwise.rows import Rows
from coordwise.validation import FloatArray

__all__ = ["Changing", "Gram", "Most", "by_kernel"]

DENSE = 0.3  # share of entries above which a sparse matrix is cheaper as a dense one
NARROW, WIDE = 128, 1000  # columns of a dense matrix: up to where the kernel is faster, with one thread or with several
BLOCK = 4096  # rows of a dense matrix that BLAS gets at once
SOME = 0.5  # of the samples with a weight: if no more than these have another one than before, only they are looked at
LOST = 0.1  # of what a column had: if less than this is left, it has more rounding errors than one that is made anew
LITTLE, LESS = 1e-5, 1e-2  # of the largest weight: below it a sample is left out; times that if it was too much
TOLERATED = 0.01  # of what the diagonal has: what it may lose by that
MISSED = 0.1  # of the curvature of a step: what it may have missed


class Gram:
    """Weighted Gram matrices A'DA, with a column of ones appended for the intercept.

    They are made by the compiled kernel, those of wide dense matrices by BLAS; both release the GIL.
    """

    def __init__(
        self, A: Any, intercept: bool, threads: int = 1, rows: Callable[[Literal["rows"]], Rows] | None = None
    ) -> None:
        n, self.d = A.shape
        self.intercept, self.threads = intercept, threads
        if sp.issparse(A) and A.nnz > DENSE * n * self.d and n * self.d <= 2**27:  # faster, and the copy small
            A, rows = A.toarray(), None
        self.rows, self.A = None, A
        if by_kernel(A, threads):
            self.rows = Rows(A, "rows") if rows is None else rows("rows")

    def __call__(self, weights: FloatArray, beside: FloatArray | None = None) -> FloatArray:
        """C' diag(weights) C, where C is A, a column of ones if there is an intercept, and the columns `beside`."""
        more = self._more(len(weights), beside)
        if self.rows is not None:
            return self.rows.gram(np.ascontiguousarray(weights), self.threads, more)
        return self._by_blas(weights, more)

    def of_most(self, weights: FloatArray, little: float) -> tuple[FloatArray, FloatArray] | None:
        """The matrix without samples of a weight below `little`, and what its diagonal lost; None for dense data."""
        if self.rows is None or self.rows.dense is not None:
            return None
        more = self._more(len(weights), None)
        return self.rows.gram_of_most(np.ascontiguousarray(weights), little, self.threads, more)

    def _more(self, n: int, beside: FloatArray | None) -> FloatArray | None:
        columns = [np.ones((n, 1))] if self.intercept else []
        columns += [] if beside is None else [beside]
        return np.ascontiguousarray(np.hstack(columns)) if columns else None

    def _by_blas(self, weights: FloatArray, more: FloatArray | None) -> FloatArray:
        """By blocks of rows that fit into a cache."""
        size = self.d + (0 if more is None else more.shape[1])
        gram = np.zeros((size, size))
        used = np.flatnonzero(weights)
        positive = bool(np.all(weights >= 0))
        for first in range(0, len(used), BLOCK):
            which = used[first : first + BLOCK]
            whole = which[-1] - which[0] == len(which) - 1
            rows: Any = slice(which[0], which[-1] + 1) if whole else which
            part = np.asarray(self.A[rows], np.float64)
            part = part if more is None else np.hstack([part, more[rows]])
            s = weights[rows, None]
            if positive:  # half the work
                root = np.sqrt(s) * part
                gram += root.T @ root
            else:
                gram += part.T @ (s * part)
        return gram


class Changing:
    """Weighted Gram matrices one after the other, each from the last one and the samples whose weights are others now.

    On losses with straight parts the curvatures change at the samples that a step leads across a bend, and these are
    ever fewer. What is taken away leaves rounding errors behind: where these would matter, the matrix is made anew.
    """

    def __init__(self, gram: Gram) -> None:
        self.gram = gram
        self._weights: FloatArray | None = None
        self._matrix = self._size = np.zeros(0)  # and the most that its diagonal was

    def __call__(self, weights: FloatArray) -> FloatArray:
        """A matrix of its own, as that of `Gram`."""
        if not self._changed(weights):
            self._matrix = self.gram(weights)
            self._size = np.diagonal(self._matrix).copy()
        self._weights = weights.copy()
        return self._matrix.copy()

    def _changed(self, weights: FloatArray) -> bool:
        if self._weights is None:
            return False
        change = weights - self._weights
        if np.count_nonzero(change) > SOME * np.count_nonzero(weights):
            return False
        self._matrix += self.gram(change)
        left = np.diagonal(self._matrix)
        self._size = np.maximum(self._size, left)
        return bool(np.all(left >= LOST * self._size))


class Most:
    """Weighted Gram matrices of the samples that matter.

    On logistic losses the samples that are far on the right side have next to no curvature, and those with many entries
    are there first: without those of less than `LITTLE` of the largest, a tenth to a quarter of the products are left
    on w8a. They are left out as long as no entry of the diagonal, to which l2 W is added, loses more than `TOLERATED`;
    else they are taken after all, and fewer are left out the next time. A direction may lose more than that, which only
    a step along it can tell (`missed`).
    """

    def __init__(self, gram: Gram, l2: float) -> None:
        self.gram, self.little = gram, LITTLE
        self.shift = np.full(gram.d + gram.intercept, l2)
        self.shift[gram.d :] = 0.0  # an intercept has no penalty

    def __call__(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The matrix, and the weights that it was made of: 0 for samples that were left out."""
        little = self.little * float(weights.max())
        found = self.gram.of_most(weights, little)
        if found is None:
            return self.gram(weights), weights
        matrix, lost = found
        if not lost.any():
            return matrix, weights
        if np.all(lost <= TOLERATED * (np.diagonal(matrix) + self.shift)):
            return matrix, np.where(weights < little, 0.0, weights)
        self.little *= LESS
        return matrix + self.gram(np.where(weights < little, weights, 0.0)), weights

    def missed(self, weights: FloatArray, used: FloatArray, move: FloatArray, slope: float) -> bool:
        """Whether a step was too long for want of the samples that were left out: their part of its curvature, with
        scores that change by `move`, is more than a share of `slope`, which is the curvature that the step knows of.

        Then fewer are left out from now on.
        """
        if used is weights:
            return False
        with np.errstate(over="ignore", invalid="ignore"):  # then it was much too long
            short = bool((weights - used) @ move**2 <= MISSED * slope)
        if not short:
            self.little *= LESS
        return not short


def by_kernel(A: Any, threads: int) -> bool:
    """Whether Gram matrices of A are made by the compiled kernel with so many threads, not by BLAS with its own."""
    return sp.issparse(A) or A.shape[1] <= (WIDE if threads > 1 else NARROW)
