"""What a conversion asks of a source: a description that recognises it, and its rows in parts."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from coordwise.datasets.mapped import give_back, raw

__all__ = [
    "BeginAgain",
    "Part",
    "Source",
    "file_identity",
    "gathered",
    "identity_of",
    "rows_of",
    "size_of",
    "sliced",
    "sparse_ranges",
]

State = dict[str, Any]


@dataclass(frozen=True)
class Part:
    """Some consecutive rows: X (CSR or dense), targets and weights (or None).

    `state` is what the source needs to go on after them, as JSON; `done` the bytes of the source that were read.
    """

    X: Any
    y: Any = None
    s: Any = None
    state: State = field(default_factory=dict)
    done: int = 0


class Source(Protocol):
    """Rows in parts.

    Attributes
    ----------
    identity : dict or None
        Describes the source: the same description, the same rows. None if it cannot be recognised.
    total : int or None
        Its bytes, for the progress.
    columns : int or None
        Number of columns, if it is known before the end.
    feature_names : sequence of str or None
    levels : dict
        See `Manifest`.
    """

    identity: dict[str, Any] | None
    total: int | None
    columns: int | None
    feature_names: tuple[str, ...] | None
    levels: dict[str, list[str]]

    def parts(self, after: State | None, size: int) -> Iterator[Part]:
        """Parts of about `size` bytes, from the beginning or after the part with a given state."""


class BeginAgain(Exception):
    """The parts so far were read in another way than the source turns out to need; `source` reads it right."""

    def __init__(self, source: Source) -> None:
        super().__init__("the conversion has to begin again")
        self.source = source


def file_identity(path: Path) -> dict[str, Any]:
    """Name, size and time of modification of a file."""
    status = path.stat()
    return {"file": path.name, "bytes": status.st_size, "modified": status.st_mtime_ns}


def identity_of(A: Any) -> dict[str, Any]:
    """Shape, type and checksum of an array or a sparse matrix in memory."""
    arrays = (A.data, A.indices, A.indptr) if sp.issparse(A) else (A,)
    crc = 0
    for array in arrays:
        step = max(1, (1 << 24) // max(1, array[:1].nbytes))
        for first in range(0, len(array), step):
            piece = np.ascontiguousarray(array[first : first + step])
            crc = zlib.crc32(raw(piece), crc)
        give_back(array)
    return {"shape": list(A.shape), "dtype": str(A.dtype), "crc32": crc}


def size_of(X: Any) -> int:
    """Bytes of a matrix as it will be stored."""
    return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) if sp.issparse(X) else int(X.nbytes)


def sliced(X: Any, first: int, size: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows of a CSR or dense matrix, from row `first` on, of about `size` bytes each."""
    n = X.shape[0]
    if not sp.issparse(X):
        step = max(1, size // max(1, X.shape[1] * X.dtype.itemsize))
        yield from ((begin, min(begin + step, n)) for begin in range(first, n, step))
        return
    yield from sparse_ranges(X.indptr, X.data.itemsize + X.indices.itemsize, first, size)


def sparse_ranges(indptr: NDArray[Any], entry: int, first: int, size: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows with about `size` bytes each, from row `first` on, an entry having `entry` bytes.

    Each is the longest with (indptr[end] - indptr[begin]) entry + (end - begin) row <= size, and one row at least.
    """
    n, row = len(indptr) - 1, indptr.itemsize
    while first < n:
        low, high = first + 1, n
        while low < high:
            middle = (low + high + 1) // 2
            fits = (int(indptr[middle]) - int(indptr[first])) * entry + (middle - first) * row <= size
            low, high = (middle, high) if fits else (low, middle - 1)
        yield first, low
        first = low


def rows_of(X: Any, begin: int, end: int) -> Any:
    """Rows of a CSR or dense matrix, without a copy."""
    if not sp.issparse(X):
        return X[begin:end]
    first, last = int(X.indptr[begin]), int(X.indptr[end])
    starts: NDArray[Any] = X.indptr[begin : end + 1] - X.indptr[begin]
    return sp.csr_array((X.data[first:last], X.indices[first:last], starts), shape=(end - begin, X.shape[1]))


def gathered(parts: Iterable[Part], size: int) -> Iterator[Part]:
    """Parts joined until they have about `size` bytes; one that is much larger is cut.

    A joined part has the state of its last, and the pieces of one that is cut have no state but the last.
    """
    held: list[Part] = []
    bytes_ = 0
    for part in parts:
        held.append(part)
        bytes_ += size_of(part.X)
        if bytes_ >= size:
            yield from _cut(_joined(held), size)
            held, bytes_ = [], 0
    if held:
        yield from _cut(_joined(held), size)


def _cut(part: Part, size: int) -> Iterator[Part]:
    if size_of(part.X) < 2 * size:
        yield part
        return
    ranges = list(sliced(part.X, 0, size))
    for begin, end in ranges:
        y, s = (None if a is None else a[begin:end] for a in (part.y, part.s))
        yield Part(rows_of(part.X, begin, end), y, s, part.state if end == ranges[-1][1] else {}, part.done)


def _joined(parts: list[Part]) -> Part:
    if len(parts) == 1:
        return parts[0]
    X = [part.X for part in parts]
    if sp.issparse(X[0]):
        whole = _stacked(X)
    else:
        if len({x.shape[1] for x in X}) > 1:
            widths = sorted({x.shape[1] for x in X})
            raise ValueError(f"the batches have {' and '.join(map(str, widths))} columns; all must have the same.")
        whole = np.concatenate(X)
    y, s = (None if a[0] is None else np.concatenate(a) for a in ([p.y for p in parts], [p.s for p in parts]))
    return Part(whole, y, s, parts[-1].state, parts[-1].done)


def _stacked(X: list[Any]) -> Any:
    """CSR matrices below each other, of as many columns as the widest."""
    starts = np.cumsum([0, *(x.nnz for x in X)])
    indptr = np.concatenate([[0], *(x.indptr[1:] + start for x, start in zip(X, starts, strict=False))])
    arrays = np.concatenate([x.data for x in X]), np.concatenate([x.indices for x in X]), indptr
    return sp.csr_array(arrays, shape=(sum(x.shape[0] for x in X), max(x.shape[1] for x in X)))
