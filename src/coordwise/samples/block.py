"""Some samples in this process: products with their rows, and sums over them."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from coordwise.kernels import Terms
from coordwise.losses import Loss
from coordwise.rows import Rows
from coordwise.samples.base import Sizes
from coordwise.validation import FloatArray

__all__ = ["Block"]


class Block:
    """Rows a_i (m x d) with targets b_i (m x K) and weights s_i (None: ones), which are never written to.

    With `constant`, every row has a last entry, 1 or the number given, that is not stored: the feature of an intercept.

    Parameters
    ----------
    A : array or scipy sparse array, shape (m, d)
    b : array of shape (m, K)
    s : array of shape (m,), optional
    constant : bool or float
    rows : (Rows, bool), optional
        A as it has been prepared already, and whether it is by rows.
    threads : int
        For products and sums.
    """

    def __init__(
        self,
        A: Any,
        b: FloatArray,
        s: FloatArray | None = None,
        *,
        constant: bool | float = False,
        rows: tuple[Rows, bool] | None = None,
        threads: int = 1,
    ) -> None:
        self.b, self.s, self.constant, self.threads = np.ascontiguousarray(b), s, constant, threads
        stored = _stored(A)
        self.rows, self.by_rows = (Rows(A, stored, threads=threads), stored == "rows") if rows is None else rows
        self.m, self.outputs = self.b.shape

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "sizes"}

    def __sizeof__(self) -> int:
        """Bytes of the arrays, by which schedulers of a cluster judge what it would take to move them."""
        return int(sum(array.nbytes for array in (*self.rows.arrays, self.b, self.s) if array is not None))

    @cached_property
    def sizes(self) -> Sizes:
        """See `Sizes`; the constant is a feature without stored entries."""
        d = (self.rows.width if self.by_rows else self.rows.count) + bool(self.constant)
        weights = np.ones(self.m) if self.s is None else self.s
        squares = self.rows.norms2() @ weights if self.by_rows else float(self.rows.norms2(weights).sum())
        return Sizes(self.m, d, self.outputs, self.rows.nnz, float(weights.sum()), float(squares))

    def terms(self, loss: Loss, k: int | None = None) -> Terms:
        """s_i phi(.; b_i), of one output or of all."""
        b = self.b if k is None or self.outputs == 1 else np.ascontiguousarray(self.b[:, k : k + 1])
        return Terms(loss.shape, 1.0, b, self.s, self.threads)

    def product(self, w: FloatArray) -> FloatArray:
        """A w for w of shape (d, K)."""
        stored = np.ascontiguousarray(w[:-1] if self.constant else w)
        t = self.rows.dots(stored, self.threads) if self.by_rows else self.rows.combine(stored, self.threads)
        if self.constant:
            t += self.constant * w[-1]
        return t

    def adjoint(self, y: FloatArray) -> FloatArray:
        """A'y for y of shape (m, K)."""
        y = np.ascontiguousarray(y)
        u = self.rows.combine(y, self.threads) if self.by_rows else self.rows.dots(y, self.threads)
        return np.vstack([u, self.constant * y.sum(axis=0)]) if self.constant else u

    def squares(self, h: FloatArray) -> FloatArray:
        """sum_i h_ik a_ij^2 for every feature j and output k."""
        each = self.rows.squares if self.by_rows else self.rows.norms2
        found = np.stack([each(np.ascontiguousarray(column), self.threads) for column in h.T], axis=1)
        return np.vstack([found, self.constant**2 * h.sum(axis=0)]) if self.constant else found


def _stored(A: Any) -> Literal["rows", "columns"]:
    """The direction in which the entries of A lie one after the other."""
    if sp.issparse(A):
        return "columns" if A.format == "csc" else "rows"
    return "columns" if A.flags.f_contiguous and not A.flags.c_contiguous else "rows"
