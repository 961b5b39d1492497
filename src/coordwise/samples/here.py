"""Some rows with their targets in memory, as a source: what a worker holds of samples on a cluster."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from coordwise.rows import Rows
from coordwise.samples.block import Block
from coordwise.samples.memory import Memory
from coordwise.samples.moved import moved
from coordwise.samples.source import Targets, Weights
from coordwise.validation import FloatArray, check_array

__all__ = ["Here"]

HEAD = 2048  # rows that tell where features and targets lie


class Here:
    """A `Source` of arrays in this process, which may have no rows.

    Parameters
    ----------
    X : array, scipy sparse array or matrix, or pandas DataFrame of numbers, shape (m, d)
        float32 stays float32; every other type becomes float64.
    y : array of shape (m,) or (m, K)
    s : array of shape (m,), optional
        Weights, at least 0.

    Raises
    ------
    TypeError, ValueError
        If these are not real numbers, or their lengths differ.
    """

    def __init__(self, X: Any, y: Any, s: Any = None) -> None:
        self.feature_names = tuple(str(name) for name in X.columns) if hasattr(X, "columns") else None
        self.X = _matrix(X)
        self.y = check_array("y", y)
        if self.y.ndim == 2 and self.y.shape[1] == 1 and hasattr(y, "columns"):
            self.y = self.y[:, 0]  # a table of one column
        m = self.X.shape[0]
        if self.y.ndim not in (1, 2) or len(self.y) != m:
            raise ValueError(
                f"y has shape {self.y.shape} where X has {m} rows; they must have chunks of the same lengths."
            )
        self.s = None if s is None else check_array("sample_weight", s, (m,))
        if self.s is not None and np.any(self.s < 0):
            raise ValueError("sample_weight has negative entries; they must be at least 0.")

    def __sizeof__(self) -> int:
        """Bytes of the arrays, by which schedulers judge what it would take to move them."""
        X = self.X
        arrays = (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,)
        return int(sum(array.nbytes for array in (*arrays, self.y, self.s) if array is not None))

    @property
    def shape(self) -> tuple[int, int]:
        """See `Source`."""
        return self.X.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """See `Source`."""
        return self.X.dtype

    @property
    def weighted(self) -> bool:
        """See `Source`."""
        return self.s is not None

    @property
    def target_shape(self) -> tuple[int, ...]:
        """See `Source`."""
        return self.y.shape[1:]

    def labels(self) -> tuple[FloatArray, FloatArray]:
        """See `Source`."""
        if self.y.ndim == 2:
            raise ValueError(f"y has {self.y.shape[1]} columns; classes need one.")
        values, codes = np.unique(self.y, return_inverse=True)
        return values, np.bincount(codes, self.s, len(values)).astype(float)

    def head(self) -> tuple[Any, FloatArray, FloatArray | None]:
        """See `Source`."""
        return self.X[:HEAD], self.y[:HEAD], None if self.s is None else self.s[:HEAD]

    def samples(
        self,
        targets: Targets | None = None,
        *,
        weights: Weights | None = None,
        constant: bool | float = False,
        threads: int = 1,
        shift: FloatArray | None = None,
    ) -> Memory:
        """See `Source`. There must be a row."""
        b = self.y if targets is None else check_array("targets(y)", targets(self.y))
        m = len(self.y)
        if b.ndim not in (1, 2) or len(b) != m:
            raise ValueError(f"targets(y) has shape {b.shape}; it must have a row for each of those of y.")
        s = self.s if weights is None else check_array("weights(y, s)", weights(self.y, self.s), (m,))
        X = self.X if shift is None else moved(self.X, shift)
        rows = Rows(X, "rows", argument="X", threads=threads), True
        return Memory(Block(X, b.reshape(m, -1), s, constant=constant, rows=rows, threads=threads))


def _matrix(X: Any) -> Any:
    """X as rows of floating point numbers: CSR, or an array in C order."""
    if sp.issparse(X):
        return sp.csr_array(X, dtype=_type(X.dtype))
    if hasattr(X, "columns"):
        try:
            X = X.to_numpy(dtype=np.float32 if (X.dtypes == np.float32).all() else np.float64)
        except (TypeError, ValueError) as error:
            raise TypeError(f"X has columns that are not numbers ({error}); encode or drop them.") from None
    X = np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"X has parts of shape {X.shape}; they must have two dimensions.")
    if X.dtype.kind not in "biuf":
        raise TypeError(f"X has dtype {X.dtype}; it must hold real numbers.")
    return np.ascontiguousarray(X, _type(X.dtype))


def _type(dtype: Any) -> Any:
    return np.float32 if dtype == np.float32 else np.float64
