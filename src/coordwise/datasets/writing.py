"""A data folder on its way: chunks are added to `NAME.partial`, which is renamed when all are there.

Every chunk that is complete has a line in the journal. A conversion that was killed is begun again with the chunks
whose checksums still fit.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from coordwise.datasets.manifest import META, Chunk, File, Manifest
from coordwise.datasets.mapped import checksum, write_array
from coordwise.datasets.sources.base import Part
from coordwise.kernels import inspect_sparse, survey
from coordwise.validation import FloatArray

__all__ = ["Writer", "partial_of"]

JOURNAL = "journal.jsonl"
NARROW = np.iinfo(np.int32).max


def partial_of(to: Path) -> Path:
    """The folder that is written before it gets its name."""
    return to.with_name(to.name + ".partial")


@dataclass(frozen=True)
class Kind:
    """What all chunks must agree on."""

    storage: str
    dtype: str
    target_shape: tuple[int, ...] | None
    weighted: bool


class Writer:
    """Adds chunks to a folder that has no name yet.

    Parameters
    ----------
    to : Path
        The folder that is there in the end.
    identity : dict or None
        Recognises the conversion; None is never recognised.

    Attributes
    ----------
    state : dict or None
        Of the source after the last chunk that is there already.
    """

    def __init__(self, to: Path, identity: dict[str, Any] | None) -> None:
        self.to, self.identity = to, identity
        self.folder = partial_of(to)
        _own(self.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._journal = open(self.folder / JOURNAL, "a+b")  # noqa: SIM115 (it is open, and locked, until the end)
        try:
            _lock(self._journal, self.folder)
            self.chunks: list[Chunk] = []
            self.kind: Kind | None = None
            self.state: dict[str, Any] | None = None
            self._resume()
        except BaseException:
            self._journal.close()
            raise

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._journal.close()
        # Nobody can go on with data that were refused before they are other data, nor with what an iterator gave.
        if self.identity is None or (kind is not None and issubclass(kind, (ValueError, TypeError))):
            shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def rows(self) -> int:
        """That are there."""
        return sum(chunk.rows for chunk in self.chunks)

    def restart(self, identity: dict[str, Any] | None) -> None:
        """Begin anew, without any chunk."""
        self.identity, self.chunks, self.kind, self.state = identity, [], None, None
        self._journal.truncate(0)
        for path in self.folder.glob("*.npy"):
            path.unlink()
        self._note({"identity": self.identity})

    def add(self, part: Part) -> Chunk:
        """Write a chunk; it counts once its line is in the journal."""
        arrays = self._checked(part)
        number = f"{len(self.chunks):06d}"
        files = {role: write_array(self.folder, f"{number}.{role}.npy", array) for role, array in arrays.items()}
        chunk = _described(arrays, part.X.shape, files)
        assert self.kind is not None
        self._note({"chunk": asdict(chunk), "kind": asdict(self.kind), "state": part.state})
        self.chunks.append(chunk)
        return chunk

    def publish(
        self, columns: int | None, feature_names: tuple[str, ...] | None, levels: dict[str, list[str]]
    ) -> Manifest:
        """Write `meta.json` and rename the folder."""
        if self.kind is None or not self.chunks:
            raise ValueError("source has no rows; there must be at least one.")
        d = max(columns or 0, *(chunk.columns for chunk in self.chunks), 1)
        shape, nnz = (self.rows, d), sum(chunk.nnz for chunk in self.chunks)
        kind = self.kind
        manifest = Manifest(
            shape,
            nnz,
            kind.dtype,
            kind.storage,
            kind.target_shape,
            kind.weighted,
            tuple(self.chunks),
            self.identity,
            feature_names,
            levels,
        )
        listed = {file.name for chunk in self.chunks for file in chunk.files.values()}
        for path in self.folder.glob("*.npy"):
            if path.name not in listed:  # of a chunk that was not completed
                path.unlink()
        unfinished = self.folder / f"{META}.unfinished"
        with open(unfinished, "w", encoding="utf-8") as file:
            file.write(manifest.text)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(self.folder / META)
        self._journal.close()
        if self.to.is_dir():  # an empty one
            self.to.rmdir()
        self.folder.rename(self.to)
        (self.to / JOURNAL).unlink()
        return manifest

    def _note(self, line: dict[str, Any]) -> None:
        self._journal.write(json.dumps(line).encode() + b"\n")
        self._journal.flush()
        os.fsync(self._journal.fileno())

    def _resume(self) -> None:
        """Keep the chunks of the same conversion, up to the first that is damaged."""
        self._journal.seek(0)
        lines = self._journal.read().splitlines(keepends=True)
        try:
            same = self.identity is not None and json.loads(lines[0])["identity"] == self.identity
        except (IndexError, ValueError, KeyError, TypeError):
            same = False
        if not same:
            self.restart(self.identity)
            return
        kept, at = len(lines[0]), len(lines[0])
        found: list[Chunk] = []
        for line in lines[1:]:
            entry = _entry(line, self.folder)
            if entry is None:
                break
            chunk, said = entry
            found.append(chunk)
            at += len(line)
            if said["state"]:  # a chunk that ends inside of a part of the source cannot be gone on from
                self.state, kept = said["state"], at
                self.chunks = list(found)
                self.kind = _kind(said["kind"])
        self._journal.truncate(kept)

    def _checked(self, part: Part) -> dict[str, NDArray[Any]]:
        """The arrays of a chunk by role, finite and of the kind of those before it."""
        matrix, values = _matrix(part.X)
        arrays = dict(matrix)
        for role, given in (("targets", part.y), ("weights", part.s)):
            if given is not None:
                arrays[role] = np.ascontiguousarray(given, dtype=np.float64)
                _refuse_infinite(arrays[role], role, self.rows)
        if part.s is not None and np.any(arrays["weights"] < 0):
            at = self.rows + int(np.argmax(arrays["weights"] < 0))
            raise ValueError(f"the weight of row {at} is negative; weights must be >= 0.")
        _refuse_infinite_values(values, arrays, part.X.shape[1], self.rows)
        kind = Kind(
            "csr" if "values" in arrays else "dense",
            values.dtype.name,
            None if part.y is None else tuple(arrays["targets"].shape[1:]),
            part.s is not None,
        )
        if self.kind is not None and kind != self.kind:
            raise ValueError(f"row {self.rows} and those after it are of another kind than those before: {kind}.")
        self.kind = kind
        return arrays


def _entry(line: bytes, folder: Path) -> tuple[Chunk, dict[str, Any]] | None:
    """A line of the journal, if it is whole and the files of its chunk are as they were written."""
    try:
        said = json.loads(line)
        chunk = Chunk.of(said["chunk"])
        _kind(said["kind"]), said["state"]
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    whole = line.endswith(b"\n") and all(_intact(folder, file) for file in chunk.files.values())
    return (chunk, said) if whole else None


def _kind(said: dict[str, Any]) -> Kind:
    shape = said["target_shape"]
    return Kind(said["storage"], said["dtype"], None if shape is None else tuple(shape), bool(said["weighted"]))


def _matrix(X: Any) -> tuple[dict[str, NDArray[Any]], NDArray[Any]]:
    """Arrays of a matrix by role; CSR rows are ordered, indices narrow where they fit."""
    dtype = np.float32 if X.dtype == np.float32 else np.float64
    if not sp.issparse(X):
        dense = np.ascontiguousarray(X, dtype=dtype)
        return {"dense": dense}, dense
    wrong, canonical = inspect_sparse(X.indices, X.indptr.astype(X.indices.dtype, copy=False), X.shape[1])
    if wrong:
        raise ValueError(f"the sparse matrix of source is inconsistent: {wrong}.")
    if not canonical:
        X = X.copy()
        X.has_sorted_indices = X.has_canonical_format = False
        X.sum_duplicates()
    index = np.int32 if max(X.shape[1], X.nnz) <= NARROW else np.int64
    values = np.ascontiguousarray(X.data, dtype=dtype)
    arrays = {
        "values": values,
        "indices": np.ascontiguousarray(X.indices, dtype=index),
        "indptr": np.ascontiguousarray(X.indptr, dtype=index),
    }
    return arrays, values


def _described(arrays: dict[str, NDArray[Any]], shape: tuple[int, int], files: dict[str, File]) -> Chunk:
    s = arrays.get("weights")
    weight = float(shape[0]) if s is None else float(s.sum())
    values = arrays["dense"] if "dense" in arrays else arrays["values"]
    return Chunk(int(shape[0]), int(shape[1]), int(values.size), weight, _squares(arrays, values, s), files)


def _squares(arrays: dict[str, NDArray[Any]], values: NDArray[Any], s: FloatArray | None) -> float:
    """sum_i s_i |a_i|^2, in double precision."""
    with np.errstate(over="ignore"):  # what is too large is refused by the solvers, with its place
        if "dense" in arrays:
            norms2 = np.einsum("ij,ij->i", values, values, dtype=np.float64)
            return float(norms2.sum() if s is None else norms2 @ s)
        squares = np.square(values, dtype=np.float64)
        return float(squares.sum() if s is None else squares @ np.repeat(s, np.diff(arrays["indptr"])))


def _refuse_infinite(array: FloatArray, role: str, before: int) -> None:
    at, _ = survey(array.reshape(-1))
    if at >= 0:
        row = before + at // max(1, array[:1].size)
        raise ValueError(f"the {role} hold NaN or infinity (first in row {row}); remove or impute such rows.")


def _refuse_infinite_values(values: NDArray[Any], arrays: dict[str, NDArray[Any]], columns: int, before: int) -> None:
    at, _ = survey(values.reshape(-1))
    if at < 0:
        return
    if "dense" in arrays:
        row, column = divmod(at, columns)
    else:
        row = int(np.searchsorted(arrays["indptr"], at, side="right")) - 1
        column = int(arrays["indices"][at])
    raise ValueError(
        f"source holds NaN or infinity (first in row {before + row}, column {column}); remove or impute such entries."
    )


def _intact(folder: Path, file: File) -> bool:
    path = folder / file.name
    try:
        return path.stat().st_size == file.bytes and checksum(path) == file.crc32
    except OSError:
        return False


def _own(folder: Path) -> None:
    """Refuse a folder that no conversion has written."""
    if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not (folder / JOURNAL).is_file())):
        raise FileExistsError(f"{folder} is there, but no conversion has written it; rename or remove it.")


def _lock(file: Any, folder: Path) -> None:
    """One conversion at a time; the system ends the lock with the process."""
    try:
        import fcntl
    except ImportError:  # a system without such locks
        return
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):
            raise FileExistsError(f"{folder} is being written by another process; wait until it is done.") from None
        # A file system without locks.
