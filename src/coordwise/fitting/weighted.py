"""Weighted Gram matrices of the data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from coordwise.rows import Rows
from coordwise.validation import FloatArray

__all__ = ["Gram"]

DENSE = 0.3  # share of entries above which a sparse matrix is cheaper as a dense one
BLOCK = 4096  # rows of a dense matrix


class Gram:
    """Weighted Gram matrices A'DA, with a column of ones appended for the intercept.

    Sparse rows go through the compiled kernel, dense ones through BLAS; both release the GIL.
    """

    def __init__(
        self, A: Any, intercept: bool, threads: int = 1, rows: Callable[[Literal["rows"]], Rows] | None = None
    ) -> None:
        n, d = A.shape
        self.intercept, self.threads = intercept, threads
        sparse = sp.issparse(A)
        if sparse and A.nnz > DENSE * n * d and n * d <= 2**27:  # BLAS is faster, and the copy small
            A, sparse = A.toarray(), False
        self.rows = (Rows(A, "rows") if rows is None else rows("rows")) if sparse else None
        self.A: Any = None if sparse else np.ascontiguousarray(A, dtype=np.float64)

    def __call__(self, weights: FloatArray) -> FloatArray:
        """[A 1]' diag(weights) [A 1], or A' diag(weights) A."""
        if self.rows is not None:
            gram = self.rows.gram(np.ascontiguousarray(weights), self.threads)
            sums = self.rows.combine(np.ascontiguousarray(weights[:, None]))[:, 0] if self.intercept else None
        else:
            gram, sums = self._dense(weights)
        if sums is None or not self.intercept:
            return gram
        return np.block([[gram, sums[:, None]], [sums[None, :], np.array([[weights.sum()]])]])

    def _dense(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """By blocks of rows that fit into a cache, unless all weigh the same."""
        if weights[0] > 0 and np.all(weights == weights[0]):
            return weights[0] * (self.A.T @ self.A), weights[0] * self.A.sum(0) if self.intercept else np.zeros(0)
        gram = np.zeros((self.A.shape[1],) * 2)
        sums = np.zeros(self.A.shape[1])
        used = np.flatnonzero(weights)
        positive = bool(np.all(weights >= 0))
        for first in range(0, len(used), BLOCK):
            which = used[first : first + BLOCK]
            whole = which[-1] - which[0] == len(which) - 1
            part = self.A[which[0] : which[-1] + 1] if whole else self.A[which]
            s = weights[which]
            if positive:  # half the work
                root = np.sqrt(s)[:, None] * part
                gram += root.T @ root
            else:
                gram += part.T @ (s[:, None] * part)
            if self.intercept:
                sums += s @ part
        return gram, sums
