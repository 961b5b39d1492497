"""Which kind of source an argument is."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from coordwise.datasets.sources.annotated import AnnotatedSource
from coordwise.datasets.sources.archives import of_archive
from coordwise.datasets.sources.arrays import MatrixSource, beside, checked_matrix
from coordwise.datasets.sources.base import Source, file_identity
from coordwise.datasets.sources.batches import BatchSource
from coordwise.datasets.sources.tables import TABLES, table
from coordwise.datasets.sources.text import SvmlightSource

__all__ = ["Request", "choose"]

PACKED = (".gz", ".bz2", ".xz")


@dataclass(frozen=True)
class Request:
    """Which columns are not features, as they were given."""

    target: Any = None
    weight: Any = None
    categorical: tuple[str, ...] = ()


def choose(source: Any, request: Request) -> Source:
    """The source that reads an argument; ValueError or TypeError if there is none, or the request does not suit it."""
    if isinstance(source, (str, os.PathLike)):
        return _file(Path(source).expanduser(), request)
    if sp.issparse(source) or isinstance(source, np.ndarray):
        return _matrix(checked_matrix(source), request, None)
    if hasattr(source, "columns"):
        raise TypeError(f"source is a {type(source).__name__}; write it to a Parquet file, or give its numbers alone.")
    if isinstance(source, (list, dict, set, bytes)) or not (callable(source) or isinstance(source, Iterable)):
        raise TypeError(
            "source must be a path, a numpy array, a scipy sparse matrix, or an iterator of (X, y) batches (or a "
            f"callable that returns one), not {type(source).__name__}."
        )
    _refuse_columns("an iterator", request, with_target=False)
    return BatchSource(source)


def _matrix(X: Any, request: Request, identity: dict[str, Any] | None) -> Source:
    _refuse_columns("a matrix", request, with_target=True)
    n = X.shape[0]
    (y, target), (s, weight) = beside("target", request.target, n), beside("weight", request.weight, n)
    source = MatrixSource(X, y, s, identity)
    source.identity = {**(source.identity or {}), "target": target, "weight": weight}
    return source


def _file(path: Path, request: Request) -> Source:
    if not path.is_file():
        reason = "is a folder, not a file" if path.is_dir() else "does not exist"
        raise FileNotFoundError(f"source={str(path)!r} {reason}.")
    parts = [part.lower() for part in path.suffixes[-2:]]
    suffix = "".join(parts) if parts and parts[-1] in PACKED else "".join(parts[-1:])
    if suffix in TABLES:
        return table(path, request.target, request.weight, request.categorical)
    if suffix == ".h5ad":
        return _annotated(path, request)
    if suffix == ".npy":
        return _matrix(checked_matrix(_mapped(path), path.name), request, file_identity(path))
    if suffix == ".npz":
        return _archive(path, request)
    if suffix in (".mtx", ".mtx.gz", ".mtx.bz2"):
        return _matrix(_matrix_market(path), request, file_identity(path))
    if suffix.startswith((".csv", ".mtx", ".npy", ".npz", ".parquet", ".arrow", ".feather", ".h5ad")):
        raise ValueError(f"{path.name} is compressed in a way that is not read for its kind; decompress it first.")
    _refuse_columns("an svmlight file", request, with_target=False)
    return SvmlightSource(path)


def _annotated(path: Path, request: Request) -> Source:
    """Targets and weights are named columns."""
    _refuse_columns("a matrix", request, with_target=True)
    for argument, name in (("target", request.target), ("weight", request.weight)):
        if name is not None and not isinstance(name, str):
            raise TypeError(f"{argument} must be the name of an observation of {path.name}, not {type(name).__name__}.")
    return AnnotatedSource(path, request.target, request.weight)


def _archive(path: Path, request: Request) -> Source:
    """Targets and weights are arrays of the file, if they are given by name, and otherwise arrays beside it."""
    _refuse_columns("a matrix", request, with_target=True)
    given = {"target": request.target, "weight": request.weight}
    named = {k: v for k, v in given.items() if isinstance(v, str) and not v.endswith(".npy")}
    outside = {k: beside(k, None if k in named else v, None) for k, v in given.items()}
    source = of_archive(path, named.get("target"), named.get("weight"), outside["target"][0], outside["weight"][0])
    for argument, (array, _) in outside.items():
        if array is not None and len(array) != source.rows:
            raise ValueError(f"{argument} has {len(array)} entries, but source has {source.rows} rows.")
    source.identity = {**(source.identity or {}), **{k: named.get(k, outside[k][1]) for k in given}}
    return source


def _matrix_market(path: Path) -> Any:
    """Its entries may come in any order, so they are all read into memory."""
    from scipy.io import mmread

    try:
        found = mmread(path)
    except (ValueError, OSError, EOFError) as error:
        raise ValueError(f"{path.name} cannot be read as a Matrix Market file: {error}.") from None
    return checked_matrix(found, path.name)


def _mapped(path: Path) -> Any:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path.name} cannot be read as a .npy file: {error}.") from None


def _refuse_columns(kind: str, request: Request, *, with_target: bool) -> None:
    if request.categorical:
        raise ValueError(f"categorical={list(request.categorical)} names columns, and {kind} has none that have names.")
    if not with_target and (request.target is not None or request.weight is not None):
        raise ValueError(f"target and weight are part of {kind}: (X, y) or (X, y, s); leave the arguments out.")
