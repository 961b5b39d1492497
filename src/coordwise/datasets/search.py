"""Datasets by name: from a folder, the cache, the LIBSVM site, or generated."""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import scipy.sparse as sp

from coordwise.datasets import cache
from coordwise.datasets.catalogue import CATALOGUE, Entry, get_entry
from coordwise.datasets.dataset import Dataset, Source, fingerprint
from coordwise.datasets.download import DownloadError, Progress, address, fetch_file, shown
from coordwise.datasets.standins import stand_in as generate
from coordwise.datasets.svmlight import parse
from coordwise.validation import FloatArray, check_callable, check_count


def load(
    name: str,
    *,
    folder: str | os.PathLike[str] | None = None,
    download: bool = True,
    stand_in: bool = True,
    mmap: bool = True,
    progress: Progress | None = None,
) -> Dataset:
    """One of the paper's datasets: "news20", "w8a" or "covtype", with labels +1 and -1.

    Looked for in `folder`, or else in the folder that the environment variable COORDWISE_DATA names, in the cache, on
    the LIBSVM site, and last generated. What is read or downloaded is kept in the cache. Only data whose content is
    that of the original pass for it (`Dataset.fingerprint`).

    Parameters
    ----------
    name : {"news20", "w8a", "covtype"}
        Which one.
    folder : path, optional
        Holds it as svmlight text, under the LIBSVM site's file name or the ones `Entry.files` lists; nothing else is
        tried then.
    download : bool
        Whether the LIBSVM site may be asked, or the address in COORDWISE_MIRROR (`pip install ".[data]"`).
    stand_in : bool
        Whether a generated stand-in will do (`Dataset.real` is False then, and `Dataset.origin` says why).
    mmap : bool
        Leave the matrix in the cache's files, read-only, instead of copying it into memory.
    progress : callable, optional
        Called with "downloading" or "reading", the bytes done so far, and the bytes in all or None.

    Returns
    -------
    Dataset

    Raises
    ------
    FileNotFoundError
        If `folder` is given and does not have it, or if it is nowhere and stand_in=False.
    DownloadError
        If it is nowhere else, cannot be downloaded or arrives with other content, and stand_in=False.
    ValueError
        If a file in a folder has other content than it should.
    """
    entry = get_entry(name)
    check_callable("progress", progress)
    found = _in_folder(entry, folder)
    if found is not None:
        return _dataset(entry, _read_file(entry, found, mmap, progress), Source.FOLDER, found.name)
    kept = _in_cache(entry, mmap)
    if kept is not None:
        return _dataset(entry, kept, Source.CACHE, kept.meta.origin)
    reason = "it is not at hand"
    if download:
        try:
            kept = _download(entry, mmap, progress)
            return _dataset(entry, kept, Source.DOWNLOAD, kept.meta.origin)
        except DownloadError as error:
            if not stand_in:
                raise DownloadError(f"{name} is not at hand, and {str(error).rstrip('.')}. {_help(entry)}") from None
            reason = str(error)
    if not stand_in:
        raise FileNotFoundError(f"{name} is not at hand. {_help(entry)}")
    return generate(name, reason=reason)


def load_file(
    path: str | os.PathLike[str],
    *,
    n_features: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
    mmap: bool = True,
) -> tuple[sp.csr_array, FloatArray]:
    """As `read_svmlight`, and kept in the cache: the second time, the matrix is mapped into memory instead of read.

    The entry is made anew when the file changes in place, size or time of modification.

    Parameters
    ----------
    path : path
        An svmlight file, plain or compressed.
    n_features, zero_based
        As for `read_svmlight`.
    mmap : bool
        Leave the matrix in the cache's files, read-only, instead of copying it into memory.

    Returns
    -------
    A : scipy.sparse.csr_array
    labels : ndarray
    """
    file = Path(path).expanduser().resolve()
    columns = None if n_features is None else check_count("n_features", n_features, low=1)
    label = "file-" + "".join(c if c.isalnum() or c in "._-" else "_" for c in file.name)[:64]
    key = cache.key_of(label, file, folder=str(file.parent), n_features=columns, zero_based=str(zero_based))
    kept = cache.fetch(key, mmap=mmap)
    if kept is None:
        A, labels = parse(file, n_features=n_features, zero_based=zero_based)
        kept = cache.keep(key, _described(label, file.name, A, labels), mmap=mmap)
    return kept.A, kept.labels


@dataclass(frozen=True)
class Availability:
    """Where a dataset would come from without a download; `source` is None if from nowhere."""

    name: str
    n: int
    d: int
    nnz: int
    source: Source | None
    origin: str


def available(folder: str | os.PathLike[str] | None = None) -> list[Availability]:
    """What is at hand of every dataset, in `folder` (or the one COORDWISE_DATA names) or in the cache."""
    given = None if folder is None else _checked(folder)
    rows = []
    for entry in CATALOGUE.values():
        file = entry.find(given) if given is not None else _in_folder(entry, None)
        kept = next((meta for _, meta in cache.entries(entry.name) if meta.fingerprint == entry.fingerprint), None)
        if file is not None:
            source, origin = Source.FOLDER, file.name
        elif kept is not None and folder is None:
            source, origin = Source.CACHE, kept.origin
        else:
            source, origin = None, ""
        rows.append(Availability(entry.name, entry.n, entry.d, entry.nnz, source, origin))
    return rows


def _checked(folder: str | os.PathLike[str]) -> Path:
    path = Path(folder).expanduser()
    if not path.is_dir():
        raise FileNotFoundError(f"folder={str(folder)!r} is not a folder; give the one with the svmlight files.")
    return path


def _in_folder(entry: Entry, folder: str | os.PathLike[str] | None) -> Path | None:
    """The file in the folder asked for (refused if it is not there) or in the one of the environment."""
    if folder is None:
        set_up = os.environ.get("COORDWISE_DATA")
        if set_up and not Path(set_up).expanduser().is_dir():
            warnings.warn(f"COORDWISE_DATA={set_up!r} is not a folder; it is ignored.", stacklevel=3)
        return entry.find(Path(set_up).expanduser()) if set_up else None
    file = entry.find(_checked(folder))
    if file is None:
        raise FileNotFoundError(
            f"folder={str(folder)!r} does not hold {entry.name}; it would be found there as {_names(entry)}."
        )
    return file


def _in_cache(entry: Entry, mmap: bool) -> cache.Kept | None:
    for key, meta in cache.entries(entry.name):
        if meta.fingerprint == entry.fingerprint and (kept := cache.fetch(key, mmap=mmap)) is not None:
            return kept
    return None


def _read_file(
    entry: Entry, file: Path, mmap: bool, progress: Progress | None, origin: str | None = None
) -> cache.Kept:
    """A file by way of the cache; refused if it holds something else."""
    key = cache.key_of(entry.name, file)
    kept = cache.fetch(key, mmap=mmap)
    if kept is not None and kept.meta.fingerprint == entry.fingerprint:
        return kept
    size = file.stat().st_size
    report = None if progress is None else lambda done: progress("reading", done, size)
    A, labels = parse(file, n_features=entry.d, zero_based=False, report=report)
    kept = _described(entry.name, origin or file.name, A, labels)
    if kept.meta.fingerprint != entry.fingerprint:
        counts = f"{A.shape[0]:,} rows and {A.nnz:,} entries"
        expected = f"{entry.n:,} rows and {entry.nnz:,} entries"
        raise ValueError(
            f"{file.name} is not {entry.name}: it has {counts}, "
            f"{'but other content' if counts == expected else f'not {expected}'}. "
            "coordwise.datasets.load_file reads files of any content."
        )
    return cache.keep(key, kept, mmap=mmap)


def _download(entry: Entry, mmap: bool, progress: Progress | None) -> cache.Kept:
    url = address(entry.remote)
    folder = Path(tempfile.mkdtemp(prefix="coordwise-"))
    try:
        file = fetch_file(url, folder, progress)
        return _read_file(entry, file, mmap, progress, origin=shown(url))
    except ValueError as error:
        raise DownloadError(f"what {shown(url)} sent is not {entry.name}, and was deleted: {error}") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _described(label: str, origin: str, A: sp.csr_array, labels: FloatArray) -> cache.Kept:
    meta = cache.Meta(label, origin, fingerprint(A, labels), (A.shape[0], A.shape[1]), A.nnz)
    return cache.Kept(A, labels, meta)


def _dataset(entry: Entry, kept: cache.Kept, source: Source, origin: str) -> Dataset:
    labels = entry.labels(kept.labels)
    return Dataset(entry.name, kept.A, labels, kept.labels, source, origin, kept.meta.fingerprint)


def _names(entry: Entry) -> str:
    usual = [f"{stem}{suffix}" for stem, suffix in zip(entry.stems, (".xz", ".bz2"), strict=True)]
    return f"{' or '.join(usual)} (also uncompressed, or compressed by xz, bzip2 or gzip)"


def _help(entry: Entry) -> str:
    return f"Fetch {shown(address(entry.remote))} by other means, and let COORDWISE_DATA name its folder."
