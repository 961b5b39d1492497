"""Data of any kind to a data folder, in memory that does not grow with the data."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from coordwise.datasets.cache import cache_folder
from coordwise.datasets.download import Progress
from coordwise.datasets.folder import Folder
from coordwise.datasets.manifest import VERSION, is_folder
from coordwise.datasets.sources import BeginAgain, Request, Source, choose
from coordwise.datasets.writing import Writer, partial_of
from coordwise.validation import check_callable, check_count

__all__ = ["CHUNK_BYTES", "convert", "open"]

CHUNK_BYTES = 1 << 26


def convert(
    source: Any,
    to: str | os.PathLike[str],
    *,
    target: Any = None,
    weight: Any = None,
    categorical: Sequence[str] = (),
    chunk_bytes: int = CHUNK_BYTES,
    progress: Progress | None = None,
) -> Folder:
    """Write a data folder (docs/data-folder.md), which may be larger than memory, as its source may be.

    Chunks are added to `TO.partial`, which gets its name when all are there. A conversion that has been interrupted
    goes on from the last chunk that is complete when the same call is made again, unless the source is an iterator or
    has changed; then it begins anew. If `to` is there already, from the same conversion, it is opened.

    Parameters
    ----------
    source : path, array, scipy sparse matrix, iterator or callable
        An svmlight file (plain, or compressed by xz, bzip2 or gzip); .npz (of `scipy.sparse.save_npz`, or of
        `numpy.savez` with the features as X); .npy; .mtx (Matrix Market, read into memory at once); .csv, .parquet,
        .arrow or .feather (``pip install ".[arrow]"``); a matrix; an iterator of (X, y) or (X, y, s) batches,
        all sparse or all dense, or a callable that returns one.
    to : path
        The folder to write.
    target : str, array or path, optional
        The column with the targets (tables, .npz), an array with a row per sample, or a .npy file with one. svmlight
        files and batches have targets of their own.
    weight : str, array or path, optional
        The same for sample weights, which are >= 0.
    categorical : sequence of str
        Columns of a table that become one feature (1 or 0) per value.
    chunk_bytes : int
        About how large the matrix of a chunk is. Two chunks are in memory when solvers visit the data.
    progress : callable, optional
        Called with "converting", the bytes of the source done so far, and the bytes in all or None.

    Returns
    -------
    Folder

    Raises
    ------
    ValueError
        If the data cannot be read, or hold NaN, infinity or missing values.
    FileExistsError
        If `to` is there and holds something else, or another process is writing it.
    OSError
        If the disk is full, say; the chunks that are complete are kept.
    """
    check_callable("progress", progress)
    size = check_count("chunk_bytes", chunk_bytes, low=1)
    if isinstance(categorical, str):
        raise TypeError(f"categorical={categorical!r} is a string; give a list of column names.")
    found = choose(source, Request(target, weight, tuple(categorical)))
    return _written(found, Path(to).expanduser(), size, progress)


def open(
    source: Any,
    to: str | os.PathLike[str] | None = None,
    *,
    target: Any = None,
    weight: Any = None,
    categorical: Sequence[str] = (),
    chunk_bytes: int = CHUNK_BYTES,
    progress: Progress | None = None,
) -> Folder:
    """A data folder, or whatever `convert` reads as one: converted the first time, opened afterwards.

    Parameters
    ----------
    source
        A data folder, which is opened as it is; otherwise see `convert`.
    to : path, optional
        The folder to write; by default one in the cache (`coordwise.datasets.cache_folder`), which changes with the
        source's name, size and time of modification and with the options.
    target, weight, categorical, chunk_bytes, progress
        See `convert`.

    Returns
    -------
    Folder
    """
    if isinstance(source, (str, os.PathLike)) and is_folder(Path(source).expanduser()):
        return Folder(source)
    check_callable("progress", progress)
    size = check_count("chunk_bytes", chunk_bytes, low=1)
    if isinstance(categorical, str):
        raise TypeError(f"categorical={categorical!r} is a string; give a list of column names.")
    found = choose(source, Request(target, weight, tuple(categorical)))
    return _written(found, _in_cache(found, size) if to is None else Path(to).expanduser(), size, progress)


def _identity(source: Source, size: int) -> dict[str, Any] | None:
    """The description of a conversion, as it is after a round trip through JSON."""
    if source.identity is None:
        return None
    return dict(json.loads(json.dumps({**source.identity, "chunk_bytes": size, "version": VERSION})))


def _in_cache(source: Source, size: int) -> Path:
    identity = _identity(source, size)
    if identity is None:
        raise ValueError("to is missing; an iterator cannot be recognised in the cache, so name the folder to write.")
    name = "".join(c if c.isalnum() or c in "._-" else "_" for c in str(identity.get("file", "matrix")))[:64]
    key = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]
    return cache_folder() / f"folder-{name}-{key}"


def _written(source: Source, to: Path, size: int, progress: Progress | None) -> Folder:
    identity = _identity(source, size)
    if to.exists() and not (to.is_dir() and not any(to.iterdir())):
        return _there(to, identity)
    try:
        with Writer(to, identity) as writer:
            while True:
                try:
                    _fill(writer, source, size, progress)
                    break
                except BeginAgain as again:
                    source = again.source
                    writer.restart(identity)
            writer.publish(source.columns, source.feature_names, source.levels)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        kept = f"{partial_of(to)} keeps the chunks that are complete, and the same conversion goes on from there"
        lost = "the conversion of an iterator has to begin anew"
        raise OSError(error.errno, f"the disk is full; {lost if identity is None else kept}") from error
    return Folder(to)


def _fill(writer: Writer, source: Source, size: int, progress: Progress | None) -> None:
    for part in source.parts(writer.state, size):
        writer.add(part)
        if progress is not None:
            progress("converting", part.done, source.total)


def _there(to: Path, identity: dict[str, Any] | None) -> Folder:
    """What is there already, if it is the same."""
    if is_folder(to):
        folder = Folder(to)
        if identity is not None and folder.manifest.source == identity:
            return folder
        raise FileExistsError(
            f"{to} is there, and was written from something else; name another folder, remove it, or open it as it is "
            "with coordwise.datasets.open."
        )
    raise FileExistsError(f"{to} is there, and is not a data folder; name another one.")
