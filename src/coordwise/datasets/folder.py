"""A data folder that is there: its chunks, mapped one after the other, and the samples that solvers visit."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from coordwise.datasets.manifest import Chunk, read
from coordwise.datasets.mapped import Watch, forget_file, give_back, memory_size
from coordwise.samples import Block, Chunks
from coordwise.samples.base import Sizes
from coordwise.validation import FloatArray, check_array, check_count

__all__ = ["Folder", "Rows"]

Targets = Callable[[FloatArray], FloatArray]


class Rows(NamedTuple):
    """Some consecutive rows: X (CSR or dense), their targets and weights, or None where there are none."""

    X: Any
    y: FloatArray | None
    s: FloatArray | None


class Folder:
    """Samples in a folder on disk, larger than memory if need be (docs/data-folder.md says what is in the files).

    Iteration gives `Rows` (X, y, s), one chunk after the other, as read-only memory-mapped arrays. When the next chunk
    is asked for, the pages of the last one are given back, so that about one chunk is in memory.

    Parameters
    ----------
    path : path
        The folder.
    keep : int, optional
        Bytes of the first chunks that the system may keep in its cache from one pass to the next; by default half of
        the memory. It is asked to drop the chunks after these, which a pass over everything would push out anyway,
        and with them all that is cached for others.

    Attributes
    ----------
    path : Path
    shape : (int, int)
    nnz : int
        Stored entries; all of them for dense chunks.
    dtype : numpy.dtype
        float32 or float64, as in the source.
    chunks : tuple of Chunk
        Rows, entries, files and checksums of every chunk.
    feature_names : tuple of str, or None
    levels : dict of lists of str
        The values of every categorical column, in the order of its one-hot features.

    Raises
    ------
    FileNotFoundError
        If there is no such folder, or a file is missing.
    ValueError
        If the version is newer than this library, or a file is truncated; and, when a chunk is read, if its checksum
        is wrong.
    """

    def __init__(self, path: str | os.PathLike[str], *, keep: int | None = None) -> None:
        self.path = Path(path).expanduser()
        self.manifest = read(self.path)
        self.keep = memory_size() // 2 if keep is None else check_count("keep", keep)
        self._watch = Watch(self.path)
        for chunk in self.chunks:
            for file in chunk.files.values():
                self._watch.sized(file)
        self._starts = np.cumsum([0, *(chunk.rows for chunk in self.chunks)])
        self._ends = np.cumsum([chunk.bytes for chunk in self.chunks])

    def __repr__(self) -> str:
        n, d = self.shape
        return (
            f"Folder({str(self.path)!r}: {n:,} x {d:,}, {self.nnz:,} entries, {self.dtype} "
            f"{self.manifest.storage}, {len(self.chunks)} chunks)"
        )

    @property
    def shape(self) -> tuple[int, int]:
        """See the class."""
        return self.manifest.shape

    @property
    def nnz(self) -> int:
        """See the class."""
        return self.manifest.nnz

    @property
    def dtype(self) -> np.dtype[Any]:
        """See the class."""
        return np.dtype(self.manifest.dtype)

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        """See the class."""
        return self.manifest.chunks

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """See the class."""
        return self.manifest.feature_names

    @property
    def levels(self) -> dict[str, list[str]]:
        """See the class."""
        return self.manifest.levels

    @property
    def bytes(self) -> int:
        """Of all chunks on disk."""
        return sum(chunk.bytes for chunk in self.chunks)

    def __len__(self) -> int:
        return len(self.chunks)

    def __iter__(self) -> Iterator[Rows]:
        for k in range(len(self.chunks)):
            rows = self.chunk(k)
            yield rows
            self.release(k, rows)
            del rows

    def chunk(self, k: int) -> Rows:
        """The k-th chunk, mapped now; its checksums are compared the first time."""
        chunk, manifest = self.chunks[k], self.manifest
        m, d = chunk.rows, self.shape[1]
        y = s = None
        if manifest.target_shape is not None:
            y = self._watch.map(chunk.files["targets"], (m, *manifest.target_shape), ("float64",))
        if manifest.weighted:
            s = self._watch.map(chunk.files["weights"], (m,), ("float64",))
        if manifest.storage == "dense":
            return Rows(self._watch.map(chunk.files["dense"], (m, d), (manifest.dtype,)), y, s)
        values = self._watch.map(chunk.files["values"], (chunk.nnz,), (manifest.dtype,))
        indices = self._watch.map(chunk.files["indices"], (chunk.nnz,), ("int32", "int64"))
        indptr = self._watch.map(chunk.files["indptr"], (m + 1,), (indices.dtype.name,))
        X = sp.csr_array((values, indices, indptr), shape=(m, d), copy=False)
        X.has_sorted_indices = X.has_canonical_format = True
        return Rows(X, y, s)

    def release(self, k: int, rows: Rows) -> None:
        """Give back the pages of a chunk that has been visited."""
        X = rows.X
        for array in (*((X.data, X.indices, X.indptr) if sp.issparse(X) else (X,)), rows.y, rows.s):
            give_back(array)
        self.forget(k)

    def forget(self, k: int) -> None:
        """Let the system drop its copy of a chunk, unless it is among the first `keep` bytes."""
        if self._ends[k] > self.keep:
            for file in self.chunks[k].files.values():
                forget_file(self.path / file.name)

    def check(self) -> None:
        """Compare the checksums of all files; ValueError names the first that was changed."""
        for k, chunk in enumerate(self.chunks):
            for file in chunk.files.values():
                self._watch.check(file)
            self.forget(k)

    def targets(self) -> FloatArray:
        """All targets, in memory."""
        if self.manifest.target_shape is None:
            raise ValueError(f"{self.path} holds no targets; give the argument target when it is converted.")
        found = np.empty((self.shape[0], *self.manifest.target_shape))
        for k, chunk in enumerate(self.chunks):
            shape = (chunk.rows, *self.manifest.target_shape)
            found[self._starts[k] : self._starts[k + 1]] = self._watch.map(chunk.files["targets"], shape, ("float64",))
        return found

    def samples(
        self, targets: FloatArray | Targets | None = None, *, constant: bool = False, threads: int = 1
    ) -> Chunks:
        """The samples as solvers visit them, two chunks in memory at a time.

        Parameters
        ----------
        targets : array of shape (n,) or (n, K), or callable, optional
            In place of those in the folder; a callable makes them of a chunk's own, as in
            ``lambda y: np.where(y == 2, 1.0, -1.0)`` for a loss of two classes.
        constant : bool
            Whether every row ends with a 1 that is not stored: the feature of an intercept.
        threads : int
            For products and sums.

        Returns
        -------
        coordwise.samples.Chunks
        """
        threads = check_count("threads", threads, low=1)
        if targets is not None and not callable(targets):
            targets = check_array("targets", targets)
            if targets.ndim not in (1, 2) or len(targets) != self.shape[0]:
                n = self.shape[0]
                raise ValueError(f"targets has shape {targets.shape}; it must have shape ({n},) or ({n}, K).")
        elif self.manifest.target_shape is None:
            raise ValueError(f"{self.path} holds no targets; pass them as the argument targets.")
        loads = [_Load(self, k, targets, constant, threads) for k in range(len(self.chunks))]
        first = loads[0].targets_of(self._first_targets())
        n, d = self.shape
        weight, squares = (sum(getattr(chunk, name) for chunk in self.chunks) for name in ("weight", "squares"))
        return Chunks(loads, Sizes(n, d + constant, first.shape[1], self.nnz, weight, squares))

    def _first_targets(self) -> FloatArray | None:
        shape, chunk = self.manifest.target_shape, self.chunks[0]
        if shape is None:
            return None
        return self._watch.map(chunk.files["targets"], (chunk.rows, *shape), ("float64",))


@dataclass(frozen=True)
class _Load:
    """Maps a chunk and makes a block of it, which reads all of it."""

    folder: Folder
    k: int
    targets: FloatArray | Targets | None
    constant: bool
    threads: int

    def __call__(self) -> Block:
        if len(self.folder) > 2:  # two are in use: this one, and the one before it
            self.folder.forget((self.k - 2) % len(self.folder))
        rows = self.folder.chunk(self.k)
        return Block(rows.X, self.targets_of(rows.y), rows.s, constant=self.constant, threads=self.threads)

    def targets_of(self, own: FloatArray | None) -> FloatArray:
        """The targets of this chunk, with a column per output."""
        if callable(self.targets):
            if own is None:
                raise ValueError(f"{self.folder.path} holds no targets for the callable targets; pass an array.")
            found = check_array("targets(y)", self.targets(own))
            if found.ndim not in (1, 2) or len(found) != len(own):
                raise ValueError(f"targets(y) has shape {found.shape}; it must have a row for each of those of y.")
        elif self.targets is not None:
            found = self.targets[self.folder._starts[self.k] : self.folder._starts[self.k + 1]]
        else:
            assert own is not None
            found = own
        return found.reshape(len(found), -1)
