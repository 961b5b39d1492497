"""Rows from .npz files, read as a stream: those of `scipy.sparse.save_npz` and of `numpy.savez`."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from coordwise.datasets.sources.arrays import MatrixSource
from coordwise.datasets.sources.base import Part, State, file_identity, sparse_ranges
from coordwise.validation import check_array

__all__ = ["NpzSource", "of_archive"]


class NpyStream:
    """A .npy array that is read from its beginning, some entries of the first axis at a time."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self.file, self.name = file, name
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        self.shape, self.fortran, self.dtype = read(file)
        if self.dtype.kind not in "biufSU":
            raise ValueError(f"{name} holds {self.dtype}, not numbers")
        self.each = int(np.prod(self.shape[1:], dtype=np.int64))  # entries per step along the first axis

    def read(self, count: int) -> NDArray[Any]:
        """The next entries of the first axis."""
        size = count * self.each * self.dtype.itemsize
        found = self.file.read(size)
        if len(found) < size:
            raise ValueError(f"{self.name} is cut short")
        return np.frombuffer(found, self.dtype).reshape(count, *self.shape[1:])

    def skip(self, count: int) -> None:
        """Go on after some entries."""
        left = count * self.each * self.dtype.itemsize
        while left > 0:
            left -= len(self.file.read(min(left, 1 << 22))) or left


def of_archive(path: Path, target: Any, weight: Any, y: Any, s: Any) -> NpzSource | MatrixSource:
    """The source for a .npz file; y and s are targets and weights that do not come from it."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = {Path(name).stem for name in archive.namelist()}
            inside = {role: name for role, name in (("y", target), ("s", weight)) if isinstance(name, str)}
            if {"data", "indices", "indptr", "shape", "format"} <= names or {"data", "row", "col", "format"} <= names:
                if inside:
                    raise ValueError("a sparse matrix has no arrays beside it; give targets as an array or .npy file")
                if _all(archive, "format").item() in (b"csr", "csr"):
                    return NpzSource(path, y, s, sparse=True)
                return MatrixSource(sp.load_npz(path), y, s, file_identity(path))
            if missing := {"X", *inside.values()} - names:
                raise ValueError(f"it has no array {missing.pop()!r}, but {', '.join(sorted(names))}")
            y = _column(archive, "target", inside["y"]) if "y" in inside else y
            s = _column(archive, "weight", inside["s"]) if "s" in inside else s
            with archive.open("X.npy") as file:
                stream = NpyStream(file, "X")
                if len(stream.shape) != 2 or stream.dtype.kind not in "biuf":
                    raise ValueError(f"X holds {stream.dtype} of shape {stream.shape}, not a matrix of numbers")
                if stream.fortran:
                    return MatrixSource(_all(archive, "X"), y, s, file_identity(path))
            return NpzSource(path, y, s, sparse=False)
    except (zipfile.BadZipFile, zlib.error, ValueError, KeyError, EOFError) as error:
        raise ValueError(f"{path.name} cannot be read as a .npz file: {str(error).rstrip('.')}.") from None


class NpzSource:
    """Rows of a CSR matrix or of X in C order; of a CSR matrix, only where its rows begin is in memory."""

    feature_names: tuple[str, ...] | None = None

    def __init__(self, path: Path, y: Any, s: Any, *, sparse: bool) -> None:
        self.path, self.y, self.s, self.sparse = path, y, s, sparse
        self.identity: dict[str, Any] | None = file_identity(path)
        self.levels: dict[str, list[str]] = {}
        with zipfile.ZipFile(path) as archive:
            if sparse:
                self.shape = tuple(int(size) for size in _all(archive, "shape"))
                self.indptr = _all(archive, "indptr")
            else:
                with archive.open("X.npy") as file:
                    self.shape = NpyStream(file, "X").shape
            parts = ("data", "indices") if sparse else ("X",)
            self.total: int | None = sum(archive.getinfo(f"{name}.npy").file_size for name in parts)
        self.columns: int | None = int(self.shape[1])
        self.rows = int(self.shape[0])

    def parts(self, after: State | None, size: int) -> Iterator[Part]:
        """See `Source.parts`."""
        first = int(after["rows"]) if after else 0
        names = ("data", "indices") if self.sparse else ("X",)
        try:
            with ExitStack() as stack:
                archive = stack.enter_context(zipfile.ZipFile(self.path))
                streams = [NpyStream(stack.enter_context(archive.open(f"{name}.npy")), name) for name in names]
                for stream in streams:
                    stream.skip(int(self.indptr[first]) if self.sparse else first)
                yield from self._read(streams, first, size)
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise ValueError(f"{self.path.name} cannot be read as a .npz file: {error}.") from None

    def _read(self, streams: list[NpyStream], first: int, size: int) -> Iterator[Part]:
        n, total = self.shape[0], int(self.total or 0)
        for begin, end in self._ranges(streams, first, size):
            if self.sparse:
                starts = self.indptr[begin : end + 1] - self.indptr[begin]
                values, indices = (stream.read(int(starts[-1])) for stream in streams)
                X: Any = sp.csr_array((values, indices, starts), shape=(end - begin, self.shape[1]))
            else:
                X = streams[0].read(end - begin)
            y, s = (None if a is None else a[begin:end] for a in (self.y, self.s))
            yield Part(X, y, s, {"rows": end}, total * end // n)

    def _ranges(self, streams: list[NpyStream], first: int, size: int) -> Iterator[tuple[int, int]]:
        if not self.sparse:
            step = max(1, size // max(1, streams[0].each * streams[0].dtype.itemsize))
            return ((begin, min(begin + step, self.shape[0])) for begin in range(first, self.shape[0], step))
        return sparse_ranges(self.indptr, sum(stream.dtype.itemsize for stream in streams), first, size)


def _all(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    with archive.open(f"{name}.npy") as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def _column(archive: zipfile.ZipFile, argument: str, name: str) -> NDArray[Any]:
    return check_array(f"{argument} {name!r}", _all(archive, name))
