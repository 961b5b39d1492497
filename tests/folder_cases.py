"""Data for data folders, and what is in all chunks of one together."""

import numpy as np
import scipy.sparse as sp

SMALL = 4000  # bytes of a chunk: the data below have several


def problem(seed=0, n=400, d=30, dtype=np.float64):
    rng = np.random.default_rng(seed)
    A = sp.csr_array(sp.random_array((n, d), density=0.2, rng=rng, format="csr"), dtype=dtype)
    y = np.where(A @ rng.standard_normal(d) + 0.3 * rng.standard_normal(n) > 0, 1.0, -1.0)
    return A, y, rng.uniform(0.5, 2, n)


def whole(folder):
    """X, y and s of all chunks together."""
    X, y, s = zip(*folder, strict=True)
    assert len(X) == len(folder)
    joined = sp.vstack(X, format="csr") if sp.issparse(X[0]) else np.vstack(X)
    return joined, None if y[0] is None else np.concatenate(y), None if s[0] is None else np.concatenate(s)


def assert_same(X, A):
    assert X.shape == A.shape
    assert X.dtype == A.dtype
    assert sp.issparse(X) == sp.issparse(A)
    if sp.issparse(A):
        for name in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(X, name), getattr(A, name))
    else:
        np.testing.assert_array_equal(X, A)
