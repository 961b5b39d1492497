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
WIDE = 1000  # columns of a dense matrix from where BLAS is as fast as the core, and takes less memory
BLOCK = 4096  # rows of such a matrix


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
        if sp.issparse(A) or self.d <= WIDE:
            self.rows = Rows(A, "rows") if rows is None else rows("rows")

    def __call__(self, weights: FloatArray, beside: FloatArray | None = None) -> FloatArray:
        """C' diag(weights) C, where C is A, a column of ones if there is an intercept, and the columns `beside`."""
        more = np.empty((len(weights), 0)) if beside is None else beside
        if self.intercept:
            more = np.column_stack([np.ones(len(weights)), more])
        if self.rows is not None:
            return self.rows.gram(np.ascontiguousarray(weights), self.threads, np.ascontiguousarray(more))
        gram = np.zeros((self.d + more.shape[1],) * 2)
        used = np.flatnonzero(weights)
        for first in range(0, len(used), BLOCK):
            which = used[first : first + BLOCK]
            part = np.column_stack([np.asarray(self.A[which], np.float64), more[which]])
            gram += part.T @ (weights[which, None] * part)
        return gram
