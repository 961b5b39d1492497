"""Matrices read once, kept as memory-mapped arrays in the user's cache.

An entry is a folder with four .npy files and meta.json. It is written under another name and renamed when complete, so
it is there in whole or not at all, also with several writers. What is damaged is noticed and removed; the values are
checked where they are copied into memory, not where they are mapped.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from coordwise.datasets.dataset import fingerprint
from coordwise.kernels import inspect_sparse
from coordwise.validation import FloatArray

FORMAT = 1
ARRAYS = ("data", "indices", "indptr", "labels")
UNFINISHED = ".unfinished-"
DAY = 86_400.0
BROKEN = (OSError, ValueError, TypeError, KeyError, EOFError)  # what reading a damaged entry may raise


class CacheWarning(RuntimeWarning):
    """Nothing could be kept in the cache."""


@dataclass(frozen=True)
class Meta:
    """What an entry says about itself; `label` is a dataset's name, or that of a file."""

    label: str
    origin: str
    fingerprint: str
    shape: tuple[int, int]
    nnz: int
    format: int = FORMAT


@dataclass(frozen=True)
class Kept:
    """A matrix and its labels, from the cache or on their way into it."""

    A: sp.csr_array
    labels: FloatArray
    meta: Meta


def cache_folder() -> Path:
    """COORDWISE_CACHE, or the folder `coordwise` where the system keeps a user's caches. It may be deleted any time."""
    if chosen := os.environ.get("COORDWISE_CACHE"):
        return Path(chosen).expanduser()
    try:
        from platformdirs import user_cache_path
    except ImportError:
        return _user_cache()
    return user_cache_path("coordwise", appauthor=False)


def _user_cache() -> Path:
    """What platformdirs would say."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "coordwise" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "coordwise"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "coordwise"


def key_of(label: str, file: Path, **options: Any) -> str:
    """The name of a file's entry: it changes with the file's name, size and time, and with how it is read."""
    status = file.stat()
    facts = [FORMAT, file.name, status.st_size, status.st_mtime_ns, sorted(options.items())]
    return f"{label}-{hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]}"


def fetch(key: str, *, mmap: bool) -> Kept | None:
    """An entry, or None if there is none; one that is damaged is removed."""
    folder = cache_folder() / key
    if not folder.is_dir():
        return None
    try:
        return _open(folder, mmap)
    except BROKEN:
        shutil.rmtree(folder, ignore_errors=True)
        return None


def entries(label: str) -> Iterator[tuple[str, Meta]]:
    """Keys and descriptions of the entries with a label."""
    try:
        folders = sorted(cache_folder().glob(f"{label}-*"))
    except OSError:
        return
    for folder in folders:
        try:
            meta = _meta(folder)
        except BROKEN:
            continue
        if meta.label == label:
            yield folder.name, meta


def keep(key: str, kept: Kept, *, mmap: bool) -> Kept:
    """Write an entry and return it (as it is in the cache if `mmap`); without it, and a warning, if that fails."""
    cache = cache_folder()
    try:
        cache.mkdir(parents=True, exist_ok=True)
        _sweep(cache)
        unfinished = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=cache))
        try:
            _write(unfinished, kept)
            _publish(unfinished, cache / key)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        warnings.warn(
            f"{kept.meta.label} is not kept in the cache, which cannot be written ({reason}); COORDWISE_CACHE names "
            "another folder.",
            CacheWarning,
            stacklevel=2,
        )
        return kept
    return (fetch(key, mmap=True) if mmap else None) or kept


def _publish(unfinished: Path, final: Path) -> None:
    try:
        unfinished.rename(final)
    except OSError:
        if not final.is_dir():
            raise
        # Another process was faster; its entry is as good.


def _write(folder: Path, kept: Kept) -> None:
    A = kept.A
    for name, array in zip(ARRAYS, (A.data, A.indices, A.indptr, kept.labels), strict=True):
        np.save(folder / f"{name}.npy", array)
    (folder / "meta.json").write_text(json.dumps(asdict(kept.meta), indent=1))


def _meta(folder: Path) -> Meta:
    found = json.loads((folder / "meta.json").read_text())
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise ValueError("not an entry of this format")
    rows, columns = found.pop("shape")
    return Meta(shape=(int(rows), int(columns)), **found)


def _open(folder: Path, mmap: bool) -> Kept:
    """An entry whose arrays fit together; ValueError if they do not."""
    meta = _meta(folder)
    data, indices, indptr = (np.load(folder / f"{name}.npy", mmap_mode="r" if mmap else None) for name in ARRAYS[:3])
    labels = np.load(folder / "labels.npy")
    rows, columns = meta.shape
    fits = (
        data.shape == indices.shape == (meta.nnz,)
        and indptr.shape == (rows + 1,)
        and labels.shape == (rows,)
        and data.dtype == labels.dtype == np.float64
        and indices.dtype == indptr.dtype
        and indices.dtype in (np.int32, np.int64)
        and indptr[-1] == meta.nnz
    )
    if not fits:
        raise ValueError("arrays do not fit together")
    wrong, canonical = inspect_sparse(indices, indptr, columns)
    if wrong or not canonical:
        raise ValueError(wrong or "rows are not ordered")
    A = sp.csr_array((data, indices, indptr), shape=meta.shape)
    A.has_sorted_indices = A.has_canonical_format = True
    if not mmap and fingerprint(A, labels) != meta.fingerprint:  # all of it is read anyway
        raise ValueError("the values are not those that were kept")
    return Kept(A, labels, meta)


def _sweep(cache: Path) -> None:
    """Remove what writers that were killed left behind more than a day ago."""
    for folder in cache.glob(f"{UNFINISHED}*"):
        try:
            if time.time() - folder.stat().st_mtime > DAY:
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue
