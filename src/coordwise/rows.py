"""The data matrix seen by coordinate: rows for dual problems and linear systems, columns for primal ones."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from coordwise.kernels import (
    NO_PACKING,
    PACK_AS_IT_IS,
    PACK_IN_SINGLE,
    Matrix,
    fits_single,
    inspect_sparse,
    survey,
)
from coordwise.validation import LARGEST, SMALLEST, FloatArray, check_range, check_unmasked, remedy

LARGEST_PACKED = 2**35  # bytes; more is not copied for speed
WIDE = 64  # rows from where BLAS has their norms sooner than the core
LARGEST_MAPPED = 2**30  # nor is more than this of a memory-mapped file, which may be one because it is large


class Rows(Matrix):
    """A checked matrix whose i-th row (or column) is contiguous.

    Parameters
    ----------
    A : array or scipy sparse array or matrix, shape (rows, columns)
        float32 and float64, C or Fortran order, CSR or CSC, int32 or int64 indices, read-only and memory-mapped arrays
        are used in place whenever the wanted direction is the contiguous one, entries within it in any order. Anything
        else is copied, once.
    by : {"rows", "columns"}
        Which direction the coordinates run in.
    argument : str
        What to call `A` in errors.
    threads : int
        For the checks.
    finite : bool
        Whether the entries are known to be finite and in range, as those of a data folder are, so that nothing has to
        read them.

    Attributes
    ----------
    count, width : int
        Number of coordinates and length of each b_i.
    nnz : int
        Stored entries; all of them for a dense matrix.
    storage : str
        The storage in words, with the reason if a copy was made.
    copied : bool
        Whether a copy of `A` was made here.
    packing : int
        Whether a run may make a compact copy of its own beside the coordinates (`coordwise.kernels`); not of a
        memory-mapped matrix of more than 1 GiB.

    Notes
    -----
    Arrays that are used in place must not change while the object is in use.

    Raises
    ------
    TypeError
        If `A` is not a matrix of real numbers.
    ValueError
        If `A` is not two-dimensional, has no rows or columns, holds NaN or infinity, or has inconsistent index arrays.
    """

    def __init__(
        self,
        A: Any,
        by: Literal["rows", "columns"] = "rows",
        *,
        argument: str = "A",
        threads: int = 1,
        finite: bool = False,
    ) -> None:
        reasons: list[str] = []
        if sp.issparse(A):
            try:  # the core looks at the arrays itself, and refuses what is wrong or has duplicates
                values, indices, indptr, width = _as_they_are(A, by)
                super().__init__(values, indices, indptr, width=width, threads=threads)
            except ValueError:
                values, indices, indptr, width = _sparse(A, by, argument, reasons)
                super().__init__(values, indices, indptr, width=width, threads=threads)
            kind = f"sparse {by}, {values.dtype}, {indices.dtype} indices"
        else:
            values = _dense(A, by, argument, reasons)
            super().__init__(values)
            kind = f"dense {by}, {values.dtype}"
        if not finite:
            self._norms2 = self._computed_norms2(threads)
            _check_finite(values, self._norms2, self.width, argument)
        self.nnz = int(values.size)
        self._note(kind, reasons)

    def _note(self, kind: str, reasons: list[str]) -> None:
        self.copied, self._reasons = bool(reasons), reasons
        self.storage = f"{kind}; copied once: {', '.join(reasons)}" if reasons else f"{kind}; used in place"

    @cached_property
    def packing(self) -> int:
        """See the class."""
        if self._sparse_width is None or self.copied:  # one copy is enough
            return NO_PACKING
        return _packing(self._arrays[0], self._arrays[1], self.count)

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """The dense array; or values, indices and where each coordinate starts."""
        return self._arrays

    @property
    def dense(self) -> NDArray[Any] | None:
        """The matrix itself, coordinates as rows, if it is dense."""
        return self._arrays[0] if self._sparse_width is None else None

    def norms2(self, weights: FloatArray | None = None, threads: int = 1) -> FloatArray:
        """sum_j weights_j b_ij^2 for every i; without weights they are computed once, by the check if there was one."""
        if weights is not None:
            return super().norms2(weights, threads)
        return self._norms2.copy()

    @cached_property
    def _norms2(self) -> FloatArray:
        return self._computed_norms2(1)

    def _computed_norms2(self, threads: int) -> FloatArray:
        dense = self.dense
        if dense is None or dense.dtype != np.float64 or self.width < WIDE:
            return super().norms2(None, threads)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.matmul(dense[:, None, :], dense[:, :, None])[:, 0, 0]  # by BLAS

    def turned(self, by: Literal["rows", "columns"], threads: int = 1) -> Rows:
        """The same sparse matrix by columns if this is by rows, and the other way round; `by` says which it becomes."""
        arrays = self.transposed(threads)
        found = Rows(sp.csr_array(arrays, shape=(self.width, self.count), copy=False), threads=threads)
        formats = ("csr", "csc") if by == "columns" else ("csc", "csr")
        kind = f"sparse {by}, {arrays[0].dtype}, {arrays[1].dtype} indices"
        found._note(kind, [*self._reasons, "{} converted to {}".format(*formats)])
        return found

    def part(self, chosen: NDArray[np.intp]) -> Rows:
        """The given coordinates alone, copied."""
        if self._sparse_width is None:
            return Rows(self._arrays[0][chosen])
        whole = sp.csr_array(self._arrays, shape=(self.count, self.width), copy=False)
        return Rows(whole[chosen])

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """Stored entries of each coordinate."""
        if self._sparse_width is None:
            return np.full(self.count, self.width, np.int64)
        return np.diff(self._arrays[2]).astype(np.int64, copy=False)


def _packing(values: NDArray[Any], indices: NDArray[Any], count: int) -> int:
    """How a run may copy the rows beside its coordinates; not at all if they are few, or too many for memory."""
    most = LARGEST_MAPPED if is_mapped(values) or is_mapped(indices) else LARGEST_PACKED
    size = values.nbytes + indices.nbytes + 80 * count
    if indices.dtype != np.int32 or len(values) < 50_000 or size > most:
        return NO_PACKING
    return PACK_IN_SINGLE if fits_single(values) else PACK_AS_IT_IS


def is_mapped(array: Any) -> bool:
    """Whether an array, or what it is a view of, lies in a memory-mapped file."""
    while array is not None:
        if isinstance(array, np.memmap):
            return True
        array = getattr(array, "base", None)
    return False


def as_matrix(A: Any, argument: str) -> Any:
    """A as it is if it has rows and columns, lists as an array; refused if it is not a matrix or is empty."""
    given = type(A).__name__
    if callable(getattr(A, "samples", None)):
        raise TypeError(
            f"{argument} is a {given}, and must be in memory here; estimators, ERM and linalg.lstsq take it."
        )
    if not sp.issparse(A):
        try:
            A = np.asanyarray(A)
        except ValueError as error:
            raise TypeError(f"{argument} must be a numerical matrix ({error}).") from None
        if A.dtype == object:
            raise TypeError(
                f"{argument} must be a matrix of numbers, but {given} holds strings, mixed types or objects; encode "
                "such columns and pass a float array (`.to_numpy(float)` for a frame)."
            )
    _check_shape(A.shape, argument)
    return A


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
    _check_kind(values.dtype, argument)
    reasons.append(f"{values.dtype} converted to float64")
    with np.errstate(over="ignore"):  # a long double too large becomes infinite, which is refused
        return values.astype(np.float64)


def _check_kind(dtype: np.dtype[Any], argument: str) -> None:
    if dtype.kind not in "biuf":
        raise TypeError(f"{argument} must hold real numbers, not dtype {dtype}; {remedy(dtype)}")


def _check_finite(values: NDArray[Any], norms2: FloatArray, width: int, argument: str) -> None:
    """NaN, infinity and entries of extreme size show in the norms; only then they are looked for."""
    most = float(norms2.max())
    if width * SMALLEST**2 < most < LARGEST**2:
        return
    at, largest = survey(values.reshape(-1))
    if at >= 0:
        raise ValueError(
            f"{argument} holds NaN or infinity (first at stored entry {at}); remove or impute such entries first."
        )
    check_range(argument, largest)


def _dense(A: Any, by: str, argument: str, reasons: list[str]) -> NDArray[Any]:
    A = as_matrix(A, argument)
    check_unmasked(argument, A)
    array = _usable(np.asarray(A), argument, reasons)
    if by == "columns":
        array = array.T
    if not array.flags.c_contiguous:
        if not reasons:
            reasons.append(f"{by} were not contiguous")
        array = np.ascontiguousarray(array)
    if not array.flags.aligned:
        reasons.append("unaligned")
        array = array.copy()
    return array


Arrays = tuple[NDArray[Any], NDArray[Any], NDArray[Any], int]


def _as_they_are(A: Any, by: str) -> Arrays:
    """Values, indices, starts and width of a matrix in the wanted format; ValueError if they have to be converted."""
    rows = by == "rows"
    if A.format != ("csr" if rows else "csc") or 0 in A.shape:
        raise ValueError
    values, indices, indptr = arrays = A.data, A.indices, A.indptr
    count, width = A.shape if rows else A.shape[::-1]
    kinds = indices.dtype == indptr.dtype and indices.dtype in (np.int32, np.int64)
    plain = kinds and values.dtype in (np.float32, np.float64) and all(a.dtype.isnative for a in arrays)
    if not plain or not all(a.ndim == 1 and a.flags.c_contiguous and a.flags.aligned for a in arrays):
        raise ValueError
    if len(indptr) != count + 1 or not len(values) == len(indices) == indptr[-1]:
        raise ValueError
    return values, indices, indptr, width


def _sparse(A: Any, by: str, argument: str, reasons: list[str]) -> Arrays:
    _check_shape(A.shape, argument)
    wanted = "csr" if by == "rows" else "csc"
    _check_kind(A.dtype, argument)
    canonical = _check_entries(A, argument)
    if A.format != wanted:
        reasons.append(f"{A.format} converted to {wanted}")
        A = (A if A.format in ("csr", "csc") else _coo(A, argument)).asformat(wanted)
        canonical = False
    indices, indptr = _index_arrays(A)
    width = A.shape[1] if by == "rows" else A.shape[0]
    if not canonical:  # or not known
        _, canonical = inspect_sparse(indices, indptr, width)
    if not canonical:
        reasons.append("unsorted or duplicate entries summed")
        native = A.data.astype(A.data.dtype.newbyteorder("="))
        A = type(A)((native, indices.copy(), indptr.copy()), shape=A.shape)
        A.sum_duplicates()
        indices, indptr = _index_arrays(A)
    values = _usable(A.data[: indptr[-1]], argument, reasons)
    plain = np.require(values, requirements=["C", "A"])
    if not reasons and (plain is not values or indices is not A.indices or indptr is not A.indptr):
        reasons.append("index arrays of two types, or arrays not contiguous")
    return plain, indices[: indptr[-1]], indptr, width


def _index_arrays(A: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Index arrays of one integer type, int32 if both are."""
    kind = np.int32 if A.indices.dtype == np.int32 and A.indptr.dtype == np.int32 else np.int64
    return np.require(A.indices, kind, ["C", "A"]), np.require(A.indptr, kind, ["C", "A"])


def _check_entries(A: Any, argument: str) -> bool:
    """Before any conversion: scipy trusts the arrays it converts, and reads or writes outside them if wrong.

    Returns whether the index arrays are known to be in order.
    """
    wrong, canonical = "", False
    if A.format in ("csr", "csc", "bsr"):
        wrong, canonical = _wrong_indices(A)
    elif A.format == "dia" and len(A.offsets) != len(A.data):
        wrong = "data and offsets differ in length"
    if wrong:
        raise _broken(A, argument, wrong)
    return canonical


def _wrong_indices(A: Any) -> tuple[str, bool]:
    arrays = A.indices, A.indptr
    if any(a.ndim != 1 or a.dtype.kind not in "iu" for a in arrays):
        return "indices and indptr must be one-dimensional arrays of integers", False
    height, width = A.blocksize if A.format == "bsr" else (1, 1)
    major, minor = A.shape[0] // height, A.shape[1] // width
    if A.format == "csc":
        major, minor = minor, major
    indices, indptr = _index_arrays(A)
    if len(indptr) != major + 1:
        return f"indptr has {len(indptr)} entries, not {major + 1}", False
    if A.data.shape[: 1 if A.format == "bsr" else None] != indices.shape:
        return "data and indices differ in length", False
    return inspect_sparse(indices, indptr, minor)


def _coo(A: Any, argument: str) -> Any:
    """Formats other than CSR and CSC go through COO, whose constructor checks the indices."""
    try:
        coo = A.tocoo(copy=False)
        return sp.coo_array((coo.data, (coo.row, coo.col)), shape=A.shape)
    except (IndexError, ValueError) as error:
        raise _broken(A, argument, str(error)) from None


def _broken(A: Any, argument: str, wrong: str) -> ValueError:
    return ValueError(f"{argument} is not a valid {A.format.upper()} matrix: {wrong}. Rebuild it from its entries.")
