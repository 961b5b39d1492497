"""Products with A and A', for a matrix stored by rows or by columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from coordwise.rows import Rows
from coordwise.validation import FloatArray

__all__ = ["Products"]


class Products:
    """Ax and A'u for n x K and m x K arrays; BLAS for dense float64, the core for everything else."""

    def __init__(self, matrix: Rows, by_rows: bool) -> None:
        self.matrix, self.by_rows = matrix, by_rows
        self.shape = (matrix.count, matrix.width) if by_rows else (matrix.width, matrix.count)
        stored: Any = matrix.dense
        self.dense: FloatArray | None = None
        if stored is not None:
            stored = stored if by_rows else stored.T
            self.dense = stored
        self._blas = self.dense if self.dense is not None and self.dense.dtype == np.float64 else None

    def forward(self, x: FloatArray) -> FloatArray:
        """Ax."""
        if self._blas is not None:
            return _times(self._blas, x)
        return self.matrix.dots(x) if self.by_rows else self.matrix.combine(x)

    def backward(self, u: FloatArray) -> FloatArray:
        """A'u."""
        if self._blas is not None:
            return _times(self._blas.T, u)
        return self.matrix.combine(u) if self.by_rows else self.matrix.dots(u)

    def rows(self) -> Rows:
        """A by rows; a copy if it is stored by columns."""
        if self.by_rows:
            return self.matrix
        if self.dense is not None:
            return Rows(self.dense)
        return Rows(sp.csc_array(self.matrix.arrays, shape=self.shape))

    def columns(self) -> Rows:
        """A by columns; a copy if it is stored by rows."""
        if not self.by_rows:
            return self.matrix
        if self.dense is not None:
            return Rows(self.dense, "columns")
        return Rows(sp.csr_array(self.matrix.arrays, shape=self.shape), "columns")

    def row_norms2(self) -> FloatArray:
        """|a_i|^2 of every row."""
        return self.matrix.norms2() if self.by_rows else self.matrix.squares()

    def column_norms2(self) -> FloatArray:
        """The squared norm of every column."""
        return self.matrix.squares() if self.by_rows else self.matrix.norms2()


def _times(A: FloatArray, x: FloatArray) -> FloatArray:
    """A @ x; one column as a vector, which BLAS has a faster routine for."""
    return (A @ x[:, 0])[:, None] if x.shape[1] == 1 else A @ x
