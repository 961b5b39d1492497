"""The data matrix seen by coordinate: rows for dual problems and linear systems, columns for primal ones."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from coordwise.kernels import Matrix, first_not_finite, inspect_sparse


class Rows(Matrix):
    """A checked matrix whose i-th row (or column) is contiguous.

    Parameters
    ----------
    A : array or scipy sparse array or matrix, shape (rows, columns)
        float32 and float64, C or Fortran order, CSR or CSC, int32 or int64 indices, read-only and memory-mapped arrays
        are used in place whenever the wanted direction is the contiguous one. Anything else is copied, once.
    by : {"rows", "columns"}
        Which direction the coordinates run in.
    argument : str
        What to call `A` in errors.

    Attributes
    ----------
    count, width : int
        Number of coordinates and length of each b_i.
    nnz : int
        Stored entries; all of them for a dense matrix.
    lengths : ndarray of int64
        Stored entries of each coordinate.
    storage : str
        The storage in words, with the reason if a copy was made.
    copied : bool
        Whether a copy of `A` was made.

    Raises
    ------
    TypeError
        If `A` is not a matrix of real numbers.
    ValueError
        If `A` is not two-dimensional, has no rows or columns, holds NaN or infinity, or has inconsistent index arrays.
    """

    def __init__(self, A: Any, by: Literal["rows", "columns"] = "rows", *, argument: str = "A") -> None:
        reasons: list[str] = []
        if sp.issparse(A):
            values, indices, indptr, width = _sparse(A, by, argument, reasons)
            super().__init__(values, indices, indptr, width=width)
            self.lengths = np.diff(indptr).astype(np.int64)
            kind = f"sparse {by}, {values.dtype}, {indices.dtype} indices"
        else:
            values = _dense(A, by, argument, reasons)
            super().__init__(values)
            self.lengths = np.full(self.count, self.width, np.int64)
            kind = f"dense {by}, {values.dtype}"
        self.nnz = int(self.lengths.sum())
        self.copied = bool(reasons)
        self.storage = f"{kind}; copied once: {', '.join(reasons)}" if reasons else f"{kind}; used in place"


def _check_shape(shape: tuple[int, ...], argument: str) -> None:
    if len(shape) != 2:
        raise ValueError(
            f"{argument} must be two-dimensional (rows are samples), but it has {len(shape)} dimension(s)."
        )
    if shape[0] == 0 or shape[1] == 0:
        raise ValueError(f"{argument} is empty: its shape is {shape}; at least one row and one column are needed.")


def _usable(values: NDArray[Any], argument: str, reasons: list[str]) -> NDArray[Any]:
    """The values as native float32 or float64."""
    if values.dtype in (np.float32, np.float64) and values.dtype.isnative:
        return values
    if values.dtype.kind not in "biuf":
        raise TypeError(f"{argument} must hold real numbers, not dtype {values.dtype}; convert it to float64.")
    reasons.append(f"{values.dtype} converted to float64")
    return values.astype(np.float64)


def _check_finite(values: NDArray[Any], argument: str) -> None:
    at = first_not_finite(values)
    if at >= 0:
        raise ValueError(
            f"{argument} holds NaN or infinity (first at stored entry {at}); remove or impute such entries first."
        )


def _dense(A: Any, by: str, argument: str, reasons: list[str]) -> NDArray[Any]:
    try:
        array = np.asarray(A)
    except ValueError as error:
        raise TypeError(f"{argument} must be a numerical matrix ({error}).") from None
    if array.dtype == object:
        raise TypeError(f"{argument} must be a numerical matrix, not {type(A).__name__} of Python objects.")
    _check_shape(array.shape, argument)
    array = _usable(array, argument, reasons)
    if by == "columns":
        array = array.T
    if not array.flags.c_contiguous:
        if not reasons:
            reasons.append(f"{by} were not contiguous")
        array = np.ascontiguousarray(array)
    if not array.flags.aligned:
        reasons.append("unaligned")
        array = array.copy()
    _check_finite(array.reshape(-1), argument)
    return array


def _sparse(A: Any, by: str, argument: str, reasons: list[str]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], int]:
    _check_shape(A.shape, argument)
    wanted = "csr" if by == "rows" else "csc"
    if A.format in ("csr", "csc"):  # before any conversion: scipy trusts the index arrays it converts
        _check_indices(A, argument)
    if A.format != wanted:
        reasons.append(f"{A.format} converted to {wanted}")
        A = A.asformat(wanted)
    indices, indptr = _index_arrays(A)
    width = A.shape[1] if by == "rows" else A.shape[0]
    _, canonical = inspect_sparse(indices, indptr, width)
    if not canonical:
        reasons.append("unsorted or duplicate entries summed")
        A = A.copy()
        A.sum_duplicates()
        indices, indptr = _index_arrays(A)
    values = _usable(np.ascontiguousarray(A.data[: indptr[-1]]), argument, reasons)
    _check_finite(values, argument)
    return values, indices[: indptr[-1]], indptr, width


def _index_arrays(A: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Index arrays of one integer type, int32 if both are."""
    kind = np.int32 if A.indices.dtype == np.int32 and A.indptr.dtype == np.int32 else np.int64
    return np.ascontiguousarray(A.indices, kind), np.ascontiguousarray(A.indptr, kind)


def _check_indices(A: Any, argument: str) -> None:
    indices, indptr = _index_arrays(A)
    major, minor = A.shape if A.format == "csr" else A.shape[::-1]
    wrong = f"indptr has {len(indptr)} entries, not {major + 1}" if len(indptr) != major + 1 else ""
    wrong = wrong or ("data and indices differ in length" if len(A.data) != len(indices) else "")
    wrong = wrong or inspect_sparse(indices, indptr, minor)[0]
    if wrong:
        raise ValueError(f"{argument} is not a valid {A.format.upper()} matrix: {wrong}. Rebuild it from its entries.")
