"""Some samples in this process: products with their rows, and sums over them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from coordwise.fitting.weighted import Gram
from coordwise.losses import Loss
from coordwise.rows import Rows
from coordwise.samples.appended import with_column
from coordwise.samples.base import Sizes
from coordwise.validation import FloatArray

__all__ = ["Block", "Rowless"]

FEW_FAR = 0.1  # of sparse columns that are far from 0: as dense ones beside the others, else all of them are dense
AT_ONCE = 8192  # rows that are dense, and shifted, at a time


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
    finite : bool
        Whether the entries of A are known to be finite (`coordwise.rows.Rows`).
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
        finite: bool = False,
    ) -> None:
        self.b, self.s, self.constant, self.threads = np.ascontiguousarray(b), s, constant, threads
        if rows is None:
            stored = _stored(A)
            rows = Rows(A, stored, threads=threads, finite=finite), stored == "rows"
        self.rows, self.by_rows = rows
        self.m, self.outputs = self.b.shape

    def __getstate__(self) -> dict[str, Any]:
        return {
            name: value for name, value in vars(self).items() if name not in ("sizes", "_sparse_rows", "_by_sample")
        }

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

    def by_sample(self, column: float = 0.0) -> Rows:
        """The rows as coordinates of a dual, each with `column`, or else the constant, as its last entry.

        Made once for as long as the block lives, unless it is the rows themselves.
        """
        column = column or float(self.constant)
        known: tuple[float, Rows] | None = vars(self).get("_by_sample")
        if known is None or known[0] != column:
            known = self._by_sample = column, _by_sample(self.rows, self.by_rows, column)
        return known[1]

    def terms(self, loss: Loss, k: int | None = None) -> Any:
        """s_i phi(.; b_i), of one output or of all: `Terms`, or those of a coupled loss."""
        b = self.b if k is None or self.outputs == 1 else np.ascontiguousarray(self.b[:, k : k + 1])
        return loss.terms(1.0, b, self.s, self.threads)

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

    def gram(
        self,
        h: FloatArray,
        *,
        columns: NDArray[np.intp] | None = None,
        shift: FloatArray | None = None,
        beside: FloatArray | None = None,
    ) -> FloatArray:
        """C' diag(h) C, h of shape (m,), where C is A, or some of its columns, less `shift`, and the columns `beside`.

        The constant, if there is one, stands between these.
        """
        found = self._gram(h, columns, shift, beside)
        if self.constant not in (0, 1):
            place = len(columns) if columns is not None else self.rows.width if self.by_rows else self.rows.count
            found[place] *= self.constant
            found[:, place] *= self.constant
        return found

    def _gram(
        self, h: FloatArray, columns: NDArray[np.intp] | None, shift: FloatArray | None, beside: FloatArray | None
    ) -> FloatArray:
        """`gram` for a constant of 1."""
        constant = bool(self.constant)
        h = np.ascontiguousarray(h)
        A, rows = self._columns(columns)
        far = np.empty(0, np.intp) if shift is None else np.flatnonzero(shift)
        if shift is None or not len(far):
            return Gram(A, constant, self.threads, rows)(h, beside)
        d, more = A.shape[1], constant + (0 if beside is None else beside.shape[1])
        if sp.issparse(A) and len(far) <= FEW_FAR * d:  # these beside the others
            moved = np.asarray(A[:, far].toarray(), np.float64) - shift[far]
            moved = moved if beside is None else np.hstack([beside, moved])
            places = np.arange(d + more)
            places[far] = d + more + np.arange(len(far))
            return Gram(A, constant, self.threads, rows)(h, moved)[np.ix_(places, places)]
        found = np.zeros((d + more, d + more))
        for first in range(0, self.m, AT_ONCE):
            some = slice(first, first + AT_ONCE)
            part = np.asarray(A[some].toarray() if sp.issparse(A) else A[some], np.float64) - shift
            found += Gram(part, constant, self.threads)(h[some], None if beside is None else beside[some])
        return found

    @cached_property
    def _sparse_rows(self) -> Rows:
        """Sparse data by rows."""
        return self.rows if self.by_rows else self.rows.turned("rows", self.threads)

    def _columns(self, columns: NDArray[np.intp] | None) -> tuple[Any, Callable[[Any], Rows] | None]:
        """A, or some of its columns, dense or by sparse rows; and as it has been prepared for the kernel, if it has."""
        dense = self.rows.dense
        if dense is not None:
            A = dense if self.by_rows else dense.T
            if columns is not None:
                return A[:, columns], None
            return A, (lambda _: self.rows) if self.by_rows else None
        rows = self._sparse_rows
        if columns is not None:
            picked = rows.picked(columns, self.threads)
            return sp.csr_array(picked, shape=(self.m, len(columns)), copy=False), None
        return sp.csr_array(rows.arrays, shape=(self.m, rows.width), copy=False), lambda _: rows


class Rowless(Block):
    """The targets and weights of some samples, for visits that do not look at rows (`samples.base.rowless`)."""

    def __init__(self, b: FloatArray, s: FloatArray | None, *, threads: int = 1) -> None:
        self.b, self.s, self.threads = np.ascontiguousarray(b), s, threads
        self.m, self.outputs = self.b.shape


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
