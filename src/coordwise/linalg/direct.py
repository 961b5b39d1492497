"""Small dense problems by a factorisation: QR with column pivoting, which finds the rank and the shortest solution."""

from __future__ import annotations

import numpy as np

from coordwise.validation import FloatArray

__all__ = ["factorised"]


def factorised(
    A: FloatArray, b: FloatArray, x0: FloatArray | None, *, weights: FloatArray | None, damp: float = 0.0
) -> tuple[FloatArray, int]:
    """The minimiser of |W(Ax - b)|^2 + damp^2 |x|^2 nearest to x0 (for damp = 0), W^2 = diag(weights); and the rank."""
    import scipy.linalg

    A = np.asarray(A, np.float64)
    right = b if x0 is None or damp else b - A @ x0
    if weights is not None:
        root = np.sqrt(weights)[:, None]
        A, right = root * A, root * right
    if damp:
        n = A.shape[1]
        A, right = np.vstack([A, damp * np.eye(n)]), np.vstack([right, np.zeros((n, b.shape[1]))])
    cond = np.finfo(float).eps * max(A.shape)
    x, _, rank, _ = scipy.linalg.lstsq(A, right, cond, lapack_driver="gelsy", check_finite=False)
    return x if x0 is None or damp else x + x0, int(rank)
