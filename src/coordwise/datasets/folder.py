"""A data folder that is there: its chunks, mapped one after the other, and the samples that solvers visit."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from coordwise.datasets.manifest import Chunk, read
from coordwise.datasets.mapped import Watch, forget_file, give_back, memory_size
from coordwise.samples import Block, Chunks
from coordwise.samples.base import RowsLost, Sizes
from coordwise.samples.block import Rowless
from coordwise.samples.moved import moved
from coordwise.samples.source import Targets, Weights
from coordwise.validation import FloatArray, check_array, check_callable, check_count

__all__ = ["Folder", "Rows"]

MOST_LABELS = 100_000  # distinct targets; more are numbers rather than classes
HEAD = 4096  # rows that tell where features and targets lie


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
    weighted : bool
        Whether there are sample weights.
    target_shape : tuple of int, or None
        () for one target per sample, (K,) for K; None without targets.

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
        self._y: FloatArray | None = None
        self._s: FloatArray | None = None
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
    def weighted(self) -> bool:
        """See the class."""
        return self._s is not None or self.manifest.weighted

    @property
    def target_shape(self) -> tuple[int, ...] | None:
        """See the class."""
        return self.manifest.target_shape if self._y is None else self._y.shape[1:]

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
        y, s = self._targets(k), self._weights(k)
        if manifest.storage == "dense":
            return Rows(self._watch.map(chunk.files["dense"], (m, d), (manifest.dtype,)), y, s)
        values = self._watch.map(chunk.files["values"], (chunk.nnz,), (manifest.dtype,))
        indices = self._watch.map(chunk.files["indices"], (chunk.nnz,), ("int32", "int64"))
        indptr = self._watch.map(chunk.files["indptr"], (m + 1,), (indices.dtype.name,))
        X = sp.csr_array((values, indices, indptr), shape=(m, d), copy=False)
        X.has_sorted_indices = X.has_canonical_format = True
        return Rows(X, y, s)

    def _targets(self, k: int) -> FloatArray | None:
        """The targets of the k-th chunk."""
        if self._y is not None:
            return self._y[self._starts[k] : self._starts[k + 1]]
        if self.manifest.target_shape is None:
            return None
        chunk = self.chunks[k]
        return self._watch.map(chunk.files["targets"], (chunk.rows, *self.manifest.target_shape), ("float64",))

    def _weights(self, k: int) -> FloatArray | None:
        """The weights of the k-th chunk."""
        if self._s is not None:
            return self._s[self._starts[k] : self._starts[k + 1]]
        chunk = self.chunks[k]
        return self._watch.map(chunk.files["weights"], (chunk.rows,), ("float64",)) if self.weighted else None

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
        shape = self._needed()
        found = np.empty((self.shape[0], *shape))
        for k in range(len(self)):
            found[self._starts[k] : self._starts[k + 1]] = self._targets(k)
        return found

    def _needed(self) -> tuple[int, ...]:
        """The shape of the targets of a sample."""
        if self.target_shape is None:
            raise ValueError(
                f"{self.path} holds no targets; give the argument target when it is converted, or pass y as an array "
                "beside it."
            )
        return self.target_shape

    def labels(self) -> tuple[FloatArray, FloatArray]:
        """The distinct targets, ascending, and the sum of the weights of the samples with each (counts without)."""
        if self._needed() != ():
            raise ValueError(f"{self.path} holds {self.target_shape} targets per sample; classes need one.")
        found: dict[float, float] = {}
        for k in range(len(self)):
            y = self._targets(k)
            assert y is not None
            values, codes = np.unique(y, return_inverse=True)
            for value, weight in zip(values, np.bincount(codes, self._weights(k), len(values)), strict=True):
                found[float(value)] = found.get(float(value), 0.0) + float(weight)
            if len(found) > MOST_LABELS:
                raise ValueError(f"{self.path} holds more than {MOST_LABELS} distinct targets, too many for classes.")
        labels = sorted(found)
        return np.array(labels), np.array([found[label] for label in labels])

    def beside(self, y: Any = None, s: Any = None) -> Folder:
        """The same samples with targets or weights of your own, which stay in memory, in place of those in the folder.

        Parameters
        ----------
        y : array of shape (n,) or (n, K), optional
        s : array of shape (n,), optional
            At least 0, and not all of them 0.

        Returns
        -------
        Folder
        """
        other, n = copy.copy(self), self.shape[0]
        if y is not None:
            other._y = _table("y", y, n)
        if s is not None:
            other._s = check_array("sample_weight", s, (n,))
            if np.any(other._s < 0) or not np.any(other._s > 0):
                raise ValueError("sample_weight must be at least 0, with at least one positive entry.")
        return other

    def head(self) -> Rows:
        """Some first rows, in memory."""
        rows = self.chunk(0)
        X, y, s = (None if part is None else part[:HEAD].copy() for part in rows)
        self.release(0, rows)
        return Rows(X, y, s)

    def samples(
        self,
        targets: Targets | FloatArray | None = None,
        *,
        weights: Weights | None = None,
        constant: bool | float = False,
        threads: int = 1,
        shift: FloatArray | None = None,
    ) -> Chunks:
        """The samples as solvers visit them, two chunks in memory at a time.

        Parameters
        ----------
        targets : array of shape (n,) or (n, K), or callable, optional
            In place of those in the folder; a callable makes them of a chunk's own, as in
            ``lambda y: np.where(y == 2, 1.0, -1.0)`` for a loss of two classes.
        weights : callable, optional
            Makes the weights of a chunk of its targets and weights (None without), as in
            ``lambda y, s: np.where(y == 2, 5.0, 1.0)``. Then one visit finds the sums that the folder knows of its own.
        constant : bool or float
            Whether every row ends with a 1, or another number, that is not stored: the feature of an intercept.
        threads : int
            For products and sums.
        shift : array of shape (d,), optional
            Taken off the features of every row, in a copy of the chunk that is visited.

        Returns
        -------
        coordwise.samples.Chunks
            Whose visits raise `coordwise.samples.base.RowsLost` if a file is missing, truncated or was changed.
        """
        threads = check_count("threads", threads, low=1)
        check_callable("weights", weights)
        if targets is not None and not callable(targets):
            own = self.beside(_table("targets", targets, self.shape[0]))
            return own.samples(weights=weights, constant=constant, threads=threads, shift=shift)
        self._needed()
        loads = [_Load(self, k, targets, weights, constant, threads, shift) for k in range(len(self.chunks))]
        if weights is not None or shift is not None or self._s is not None:
            return Chunks(loads)
        outputs = loads[0].targets_of(self._targets(0)).shape[1]
        n, d = self.shape
        weight, squares = (sum(getattr(chunk, name) for chunk in self.chunks) for name in ("weight", "squares"))
        return Chunks(loads, Sizes(n, d + bool(constant), outputs, self.nnz, weight, squares))


@dataclass(frozen=True)
class _Load:
    """Maps a chunk and makes a block of it, which reads all of it."""

    folder: Folder
    k: int
    targets: Targets | None
    weights: Weights | None
    constant: bool | float
    threads: int
    shift: FloatArray | None

    def __call__(self) -> Block:
        if len(self.folder) > 2:  # two are in use: this one, and the one before it
            self.folder.forget((self.k - 2) % len(self.folder))
        try:
            rows = self.folder.chunk(self.k)
        except (OSError, ValueError) as error:
            raise RowsLost(f"{error}") from error
        X = rows.X if self.shift is None else moved(rows.X, self.shift)
        s = rows.s if self.weights is None else self.weights_of(rows.y, rows.s)
        return Block(X, self.targets_of(rows.y), s, constant=self.constant, threads=self.threads)

    def rowless(self) -> Rowless:
        """The block without its rows, which stay on the disk."""
        try:
            y, s = self.folder._targets(self.k), self.folder._weights(self.k)
        except (OSError, ValueError) as error:
            raise RowsLost(f"{error}") from error
        s = s if self.weights is None else self.weights_of(y, s)
        return Rowless(self.targets_of(y), s, threads=self.threads)

    def targets_of(self, own: FloatArray | None) -> FloatArray:
        """The targets of this chunk, with a column per output."""
        assert own is not None
        found = own
        if self.targets is not None:
            found = check_array("targets(y)", self.targets(own))
            if found.ndim not in (1, 2) or len(found) != len(own):
                raise ValueError(f"targets(y) has shape {found.shape}; it must have a row for each of those of y.")
        return found.reshape(len(found), -1)

    def weights_of(self, y: FloatArray | None, s: FloatArray | None) -> FloatArray:
        """The weights of this chunk."""
        assert y is not None
        assert self.weights is not None
        found = check_array("weights(y, s)", self.weights(y, s), (len(y),))
        if np.any(found < 0):
            raise ValueError("weights(y, s) has negative entries; they must be at least 0.")
        return found


def _table(argument: str, y: Any, n: int) -> FloatArray:
    """Targets that were passed, with a row for every sample."""
    found = check_array(argument, y)
    if found.ndim not in (1, 2) or len(found) != n:
        raise ValueError(f"{argument} has shape {found.shape}; it must have shape ({n},) or ({n}, K).")
    return found
