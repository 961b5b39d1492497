"""Features from which a number each is taken off."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from coordwise.validation import FloatArray

__all__ = ["moved"]


def moved(X: Any, shift: FloatArray) -> Any:
    """X - 1 shift', in a copy with X's type and format. Of sparse X only the columns whose shift is not 0 fill up."""
    by = shift.astype(X.dtype)
    if not sp.issparse(X):
        return X - by
    far = np.flatnonzero(shift)
    columns = sp.csc_array(X)
    near = np.ones(X.shape[1], X.dtype)
    near[far] = 0
    full = sp.csc_array(columns[:, far].toarray() - by[far])
    place = sp.csr_array((np.ones(len(far), X.dtype), (np.arange(len(far)), far)), shape=(len(far), X.shape[1]))
    return (columns @ sp.diags_array(near) + full @ place).asformat(X.format)
