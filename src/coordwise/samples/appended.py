"""A constant column that is stored, for steps that need an intercept to be a feature like the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["with_column"]


def with_column(A: Any, value: float) -> Any:
    """[A value]: a constant column appended, one copy."""
    n, d = A.shape
    if not sp.issparse(A):
        return np.column_stack([A, np.full(n, value, A.dtype)])
    A = sp.csr_array(A)
    A.sum_duplicates()
    counts = np.diff(A.indptr)
    kind = A.indptr.dtype
    indptr = np.concatenate([[0], np.cumsum(counts + 1)]).astype(kind)
    last = indptr[1:] - 1
    own = np.ones(indptr[-1], bool)
    own[last] = False
    data, indices = np.empty(indptr[-1], A.dtype), np.empty(indptr[-1], A.indices.dtype)
    data[own], indices[own] = A.data, A.indices
    data[last], indices[last] = value, d
    return sp.csr_array((data, indices, indptr), shape=(n, d + 1))
