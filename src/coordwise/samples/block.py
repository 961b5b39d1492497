"""Some samples in this process: products with their rows, and sums over them."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from coordwise.kernels import Terms
from coordwise.losses import Loss
from coordwise.rows import Rows
from coordwise.samples.appended import with_column
from coordwise.samples.base import Sizes
from coordwise.validation import FloatArray

__all__ = ["Block"]


class Block:
    """Rows a_i (m x d) with targets b_i (m x K) and weights s_i (None: ones), which are never written to.

    With `constant`, every row has a last entry of 1 that is not stored: the feature of an intercept.

    Parameters
    ----------
    A : array or scipy sparse array, shape (m, d)
    b : array of shape (m, K)
    s : array of shape (m,), optional
    constant : bool
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
        constant: bool = False,
        rows: tuple[Rows, bool] | None = None,
        threads: int = 1,
    ) -> None:
        self.b, self.s, self.constant, self.threads = np.ascontiguousarray(b), s, constant, threads
        stored = _stored(A)
        self.rows, self.by_rows = (Rows(A, stored, threads=threads), stored == "rows") if rows is None else rows
        self.m, self.outputs = self.b.shape

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("sizes", "_by_sample")}

    @cached_property
    def sizes(self) -> Sizes:
        """See `Sizes`; the constant is a feature without stored entries."""
        d = (self.rows.width if self.by_rows else self.rows.count) + self.constant
        weights = np.ones(self.m) if self.s is None else self.s
        squares = self.rows.norms2() @ weights if self.by_rows else float(self.rows.norms2(weights).sum())
        return Sizes(self.m, d, self.outputs, self.rows.nnz, float(weights.sum()), float(squares))

    def by_sample(self, column: float = 0.0) -> Rows:
        """The rows as coordinates of a dual, each with `column` as its last entry unless that is 0.

        Made once for as long as the block lives, unless it is the rows themselves.
        """
        known: tuple[float, Rows] | None = vars(self).get("_by_sample")
        if known is None or known[0] != column:
            known = self._by_sample = column, _by_sample(self.rows, self.by_rows, column)
        return known[1]

    def terms(self, loss: Loss, k: int | None = None) -> Terms:
        """s_i phi(.; b_i), of one output or of all."""
        b = self.b if k is None or self.outputs == 1 else np.ascontiguousarray(self.b[:, k : k + 1])
        return Terms(loss.shape, 1.0, b, self.s, self.threads)

    def product(self, w: FloatArray) -> FloatArray:
        """A w for w of shape (d, K)."""
        stored = np.ascontiguousarray(w[:-1] if self.constant else w)
        t = self.rows.dots(stored, self.threads) if self.by_rows else self.rows.combine(stored, self.threads)
        if self.constant:
            t += w[-1]
        return t

    def adjoint(self, y: FloatArray) -> FloatArray:
        """A'y for y of shape (m, K)."""
        y = np.ascontiguousarray(y)
        u = self.rows.combine(y, self.threads) if self.by_rows else self.rows.dots(y, self.threads)
        return np.vstack([u, y.sum(axis=0)]) if self.constant else u

    def squares(self, h: FloatArray) -> FloatArray:
        """sum_i h_ik a_ij^2 for every feature j and output k."""
        each = self.rows.squares if self.by_rows else self.rows.norms2
        found = np.stack([each(np.ascontiguousarray(column), self.threads) for column in h.T], axis=1)
        return np.vstack([found, h.sum(axis=0)]) if self.constant else found


def _by_sample(rows: Rows, by_rows: bool, column: float) -> Rows:
    if not by_rows:
        rows = rows.turned("rows") if rows.dense is None else Rows(np.ascontiguousarray(rows.dense.T))
    if column == 0:
        return rows
    dense = rows.dense
    given = sp.csr_array(rows.arrays, shape=(rows.count, rows.width), copy=False) if dense is None else dense
    return Rows(with_column(given, column))


def _stored(A: Any) -> Literal["rows", "columns"]:
    """The direction in which the entries of A lie one after the other."""
    if sp.issparse(A):
        return "columns" if A.format == "csc" else "rows"
    return "columns" if A.flags.f_contiguous and not A.flags.c_contiguous else "rows"
