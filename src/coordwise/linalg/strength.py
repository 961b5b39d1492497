"""The strong convexity of (1/2) |A'y|^2 on the range of A: the smallest non-zero eigenvalue of A'W^-1 A.

It is computed where that costs little: the smaller side of A is short, so that a Gram matrix and its eigenvalues take
the time of a few passes. Elsewhere adaptive restarts do without it.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from coordwise.rows import Rows
from coordwise.validation import FloatArray

__all__ = ["cheap_strength"]

SHORT = 300  # of the smaller side
WORK = 1e8  # multiplications for the Gram matrix
SMALLEST = 1e-8  # of the largest eigenvalue: below this rank is a matter of rounding, and restarts do better


def cheap_strength(rows: Rows, weights: FloatArray) -> tuple[float, int] | None:
    """The smallest non-zero eigenvalue of A' diag(1/weights) A, and the rank; None if not cheap, or not certain."""
    short = min(rows.count, rows.width)
    if short > SHORT or rows.nnz * short > WORK:
        return None
    scale = np.divide(1.0, np.sqrt(weights), out=np.zeros_like(weights), where=weights > 0)
    if rows.dense is not None:
        B = rows.dense * scale[:, None]
        gram = B.T @ B if rows.width <= rows.count else B @ B.T
    else:
        values, places, starts = rows.arrays
        B = sp.diags_array(scale) @ sp.csr_array((values, places, starts), shape=(rows.count, rows.width))
        gram = np.asarray((B.T @ B if rows.width <= rows.count else B @ B.T).todense(), float)
    values = np.linalg.eigvalsh(gram)
    top = values[-1]
    positive = values[values > 1e-13 * top * max(rows.count, rows.width)]
    if not top > 0 or positive[0] < SMALLEST * top:
        return None
    return float(positive[0]), len(positive)
