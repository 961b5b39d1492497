"""Data less their means, in two passes, so that features far from 0 keep their digits."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from coordwise.validation import FloatArray

__all__ = ["Centered"]


class Centered:
    """A - 1 mean', the means weighted by s; `A - rest` of what is kept as A is centered, `rest` being small or 0.

    Dense data are centered themselves, and once more by the means of what is left, since the first means carry the
    rounding of their size. Sparse data stay sparse: only columns whose mean is larger than their spread, more than
    half of whose entries are not 0, are replaced by what is left of them; for others products with A, less those with
    `rest`, lose no digits to speak of.

    Parameters
    ----------
    A : array or sparse array of shape (n, d)
    s : ndarray of shape (n,)
        Weights.
    center : bool
        False leaves the data as they are, with means of 0.
    """

    def __init__(self, A: Any, s: FloatArray, center: bool = True) -> None:
        self.shape = A.shape
        self.sparse = sp.issparse(A)
        self.A: Any = sp.csr_array(A).astype(np.float64) if self.sparse else np.asarray(A, np.float64)
        self.mean = np.zeros(A.shape[1])
        self.rest = np.zeros(A.shape[1])
        if not center:
            return
        total = float(s.sum())
        self.mean = np.asarray(s @ self.A) / total
        if self.sparse:
            self._shift_columns(s, total)
            return
        self.A = self.A - self.mean
        rest = s @ self.A / total
        self.A -= rest
        self.mean = self.mean + rest

    def _shift_columns(self, s: FloatArray, total: float) -> None:
        self.rest = self.mean
        squares = np.asarray(s @ (self.A * self.A)) / total
        far = np.flatnonzero(squares < 2 * self.mean**2)
        if len(far):
            columns = sp.csc_array(self.A)
            near = np.ones(self.shape[1])
            near[far] = 0.0
            shifted = np.asarray(columns[:, far].toarray()) - self.mean[far]
            place = sp.csr_array((np.ones(len(far)), (np.arange(len(far)), far)), shape=(len(far), self.shape[1]))
            self.A = sp.csr_array(columns @ sp.diags_array(near) + sp.csr_array(shifted) @ place)
            self.rest = np.asarray(s @ self.A) / total
            self.mean = self.rest + (1 - near) * self.mean

    def dense(self, rows: slice = slice(None)) -> FloatArray:
        """Rows as a dense array of their own."""
        found: FloatArray = self.A[rows].toarray() if self.sparse else self.A[rows]
        return found - self.rest
