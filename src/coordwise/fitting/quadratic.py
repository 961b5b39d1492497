"""Weighted least squares with an l1 penalty on some of the features, the intercept projected out."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from coordwise.erm import gap_power, shrink
from coordwise.kernels import Terms
from coordwise.objectives import Local, Look, Objective, Sums, held_at_zero
from coordwise.penalties import ElasticNet
from coordwise.results import Certificate
from coordwise.rows import Rows
from coordwise.validation import FloatArray

__all__ = ["Columns", "Quadratic"]

OFTEN = 8  # times that columns are picked out of the rows
BLOCK = 64  # dense rows that are turned into columns at once


class Columns:
    """Columns of a matrix, to be taken some at a time with rows weighted and centred.

    Sparse rows, if they are prepared, are transposed only once columns were taken from them a few times: that costs as
    much as some passes.
    """

    def __init__(self, A: Any, rows: Rows | None = None, threads: int = 1) -> None:
        self.n, self.d = A.shape
        self._given, self._rows, self._threads = A, rows if sp.issparse(A) else None, threads
        self._taken = 0

    @property
    def nnz(self) -> int:
        """Stored entries."""
        if self._rows is not None:
            return self._rows.nnz
        return int(self.A.nnz if sp.issparse(self.A) else self.A.size)

    @cached_property
    def A(self) -> Any:
        """All of them."""
        if not sp.issparse(self._given):
            return np.asarray(self._given)
        if self._rows is not None:
            return sp.csc_array(self._rows.transposed(self._threads), shape=(self.n, self.d), copy=False)
        table = sp.csc_array(self._given)
        table.sum_duplicates()
        return table

    def part(self, which: Any) -> Any:
        """Some of them, sparse ones by rows or by columns."""
        if self._rows is None or "A" in self.__dict__ or self._taken >= OFTEN or len(which) > self.d // 8:
            return self.A[:, which]
        self._taken += 1
        return sp.csr_array(self._rows.picked(which, self._threads), shape=(self.n, len(which)), copy=False)

    def norms(self, s: FloatArray | None, center: bool) -> FloatArray:
        """Norms of the columns with rows weighted by s, centred or not."""
        ones = np.ones(self.n) if s is None else s
        if self._rows is not None:
            squares = self._rows.squares(s, self._threads)
        elif sp.issparse(self.A):
            squares = Rows(self.A, "columns").norms2(s)
        else:
            squares = np.einsum("ij,ij,i->j", self.A, self.A, ones)
        if center:
            sums = self._rows.combine(ones[:, None])[:, 0] if self._rows is not None else self.A.T @ ones
            squares = squares - sums**2 / ones.sum()
        return np.sqrt(np.maximum(squares, 0.0))

    def take(self, which: Any, h: FloatArray, center: bool) -> tuple[Any, FloatArray, bool]:
        """(B, means, minus_last): columns of diag(sqrt(h)) A as rows of B, centred in the metric h, and their h-means.

        Dense columns are centred as they are. Sparse ones get one more entry, <e, column> with e = sqrt(h/sum h), whose
        square is to be subtracted (`Objective.minus_last`).
        """
        root, total = np.sqrt(h), h.sum()
        if not sp.issparse(self.A):
            table = _turned(self.A[:, which])
            means = table @ h / total if center else np.zeros(len(table))
            if center:
                table -= means[:, None]
            if np.any(root != 1):
                table *= root
            return table, means, False
        part = self.A[:, which]
        sums = part.T @ h if center else np.zeros(part.shape[1])
        data = part.data * root[part.indices]
        if not center:
            return sp.csr_array((data, part.indices, part.indptr), shape=part.shape[::-1]), sums, False
        count = part.shape[1]
        indptr = part.indptr + np.arange(count + 1, dtype=part.indptr.dtype)
        last = indptr[1:] - 1
        own = np.ones(indptr[-1], bool)
        own[last] = False
        values, places = np.empty(indptr[-1]), np.empty(indptr[-1], part.indices.dtype)
        values[own], places[own] = data, part.indices
        values[last], places[last] = sums / np.sqrt(total), self.n
        return sp.csr_array((values, places, indptr), shape=(count, self.n + 1)), sums / total, True


def _turned(A: FloatArray) -> FloatArray:
    """A copy of A' by rows, some rows of A at a time, which stay in a cache."""
    table = np.empty(A.shape[::-1])
    for first in range(0, len(A), BLOCK):
        table[:, first : first + BLOCK] = A[first : first + BLOCK].T
    return table


class Quadratic(Objective):
    r"""minimise over w   (1/(2W)) sum_i h_i (<a_i, w> + c - z_i)^2 + r(w),   c the best intercept (or 0).

    With B the columns as `Columns.take` gives them, this is |Bw - u|^2/(2W) + r(w), u the targets treated alike. A run
    stops when its duality gap is at most tol times the value at 0.

    Parameters
    ----------
    columns : Columns
    which : array of int
        The features; others have weight 0.
    h, z : ndarray of shape (n,)
        h >= 0 with a positive sum.
    total : float
        W.
    penalty : ElasticNet
    center : bool
        Whether there is an intercept.
    """

    certificate_name = "duality gap"
    sigma_is_tight = False

    def __init__(
        self,
        columns: Columns,
        which: Any,
        h: FloatArray,
        z: FloatArray,
        total: float,
        penalty: ElasticNet,
        center: bool,
    ) -> None:
        B, self.means, self.minus_last = columns.take(which, h, center)
        self.rows = Rows(B, "rows")
        self.penalty, self.center = penalty, center
        self.gap_power = gap_power(penalty)
        self.outputs, self.flat = 1, True
        self.coordinates = Terms(penalty.shape, 1.0, None, None)
        self.smooth = self.gain = 1 / total
        self.target = float(h @ z / h.sum()) if center else 0.0
        u = np.sqrt(h) * (z - self.target)
        self.u = np.append(u, 0.0) if self.minus_last else u
        self.image0 = -self.u[:, None]
        self.value_at_zero = self.gain / 2 * float(u @ u)
        self._at_zero = np.array([self.value_at_zero])

    def certificate(self, image: FloatArray, sums: Sums) -> Certificate:
        """P + D at 0, or at the residual, scaled into the domain of r* by the best factor for l1 alone."""
        omega = self.gain * image
        if self.minus_last:
            omega[-1] *= -1
        s = sums(omega)
        square = np.einsum("ik,ik->k", image, omega)  # gain times the squared norm of the residual
        value = square / 2 + s["value"]
        if self.penalty.l2 > 0:
            return Certificate(value, np.minimum(s["fenchel_young"], value), self._at_zero, value)  # D(0) = 0
        most = shrink(self.penalty, s["lowest"], s["highest"])
        slope = self.u @ omega  # D(factor * residual) = factor^2/2 * square + factor * slope
        factor = np.clip(-slope / np.where(square > 0, square, 1.0), 0.0, most)
        gap = value + factor**2 / 2 * square + factor * slope
        return Certificate(value, np.maximum(gap, 0.0), self._at_zero, value)

    @cached_property
    def curvature(self) -> FloatArray:
        """See `Objective.curvature`."""
        return super().curvature

    def local_curvature(self, look: Look, slack: float, doubt: float) -> Local | None:
        """See `held_at_zero`."""
        return held_at_zero(self, look, doubt)

    def solution(self, image: FloatArray) -> None:
        """None: it is x itself."""
        return None

    def intercept(self, w: FloatArray) -> float:
        """c for the weights of the features."""
        return self.target - float(self.means @ w) if self.center else 0.0
