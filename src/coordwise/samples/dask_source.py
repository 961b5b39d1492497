"""Dask collections, delayed values, futures and paths as a source."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import dask
import numpy as np
import scipy.sparse as sp
from dask.base import is_dask_collection
from dask.delayed import Delayed
from distributed import Client, Future

from coordwise.datasets.folder import Folder
from coordwise.samples.cluster import PATIENCE, TRIES
from coordwise.samples.dask import Dask, current
from coordwise.samples.here import Here
from coordwise.samples.parted import Parted
from coordwise.samples.source import Source

__all__ = ["DaskSource"]

WANTED = (
    "a dask array or dataframe, a list of delayed values or futures of (X, y) or (X, y, s), or a list of paths of data "
    "folders"
)


class DaskSource(Parted):
    """Samples on the workers of a Dask cluster, as a source for estimators and `coordwise.ERM`.

    Rows stay where Dask has loaded them, one partition for every chunk of rows.

    Parameters
    ----------
    X : dask array or dask dataframe; or a list
        An array has dense blocks or blocks of scipy.sparse. A list holds delayed values or futures of (X, y) or
        (X, y, s), or paths of data folders (`coordwise.datasets.Folder`) that workers open themselves.
    y : dask array, dataframe or series
        Its chunks are those of X along rows, or can be made so. None for lists.
    sample_weight : dask array or series, optional
        Likewise.
    client : distributed.Client, optional
        The current one by default.
    patience : float
        Seconds without a sign of life from the workers, after which samples count as lost.
    tries : int
        Times that a round is repeated whose tasks or inputs were lost with their workers.

    Raises
    ------
    TypeError, ValueError
        If X and y are not of these kinds or do not fit together, or there is no client.
    coordwise.samples.base.RowsLost
        If the cluster is lost or silent.
    """

    def __init__(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        client: Client | None = None,
        patience: float = PATIENCE,
        tries: int = TRIES,
    ) -> None:
        self.client = current(client)
        parts = _listed(X, y, sample_weight) if isinstance(X, (list, tuple)) else _collected(X, y, sample_weight)
        super().__init__(Dask(self.client), self.client.compute(parts, sync=False), patience=patience, tries=tries)


def _listed(X: Sequence[Any], y: Any, sample_weight: Any) -> list[Delayed]:
    """A part for every item of a list."""
    if y is not None or sample_weight is not None:
        raise TypeError("X is a list, whose items have their own targets and weights; leave y and sample_weight out.")
    makers = {Delayed: _given, Future: _given, str: _opened, os.PathLike: _opened}
    found = []
    for item in X:
        maker = next((maker for kind, maker in makers.items() if isinstance(item, kind)), None)
        if maker is None:
            raise TypeError(f"X holds a {type(item).__name__}; it must be {WANTED}.")
        found.append(dask.delayed(maker, pure=False)(os.fspath(item) if maker is _opened else item))
    return found


def _collected(X: Any, y: Any, sample_weight: Any) -> list[Delayed]:
    """A part for every chunk of rows of dask collections."""
    if not is_dask_collection(X) or isinstance(X, Delayed):
        raise TypeError(f"X is a {type(X).__name__}; it must be {WANTED}.")
    if y is None:
        raise TypeError("y is missing; give the targets as a dask array or series.")
    beside = {"y": y} if sample_weight is None else {"y": y, "sample_weight": sample_weight}
    rows = _blocks("X", X)
    columns = []
    for name, values in beside.items():
        if not is_dask_collection(values) or isinstance(values, Delayed):
            raise TypeError(f"{name} is a {type(values).__name__}; beside a dask X it must be a dask array or series.")
        columns.append(_blocks(name, _chunked_like(X, name, values)))
        if len(columns[-1]) != len(rows):
            raise ValueError(
                f"{name} has {len(columns[-1])} chunks of rows where X has {len(rows)}, of unknown lengths; "
                "repartition them alike."
            )
    part = dask.delayed(_joined, pure=False)
    return [part(*blocks) for blocks in zip(rows, *columns, strict=True)]


def _blocks(name: str, values: Any) -> list[list[Delayed]]:
    """For every chunk of rows its blocks, from left to right."""
    if not hasattr(values, "to_delayed"):
        raise TypeError(f"{name} is a {type(values).__name__}; it must be {WANTED}.")
    blocks = values.to_delayed()
    if isinstance(blocks, np.ndarray):
        return [list(row) for row in blocks.reshape(len(blocks), -1)] if blocks.size else []
    return [[block] for block in blocks]


def _chunked_like(X: Any, name: str, values: Any) -> Any:
    """Values with the chunks of rows that X has, where both can be known."""
    if not hasattr(values, "chunks") or not hasattr(X, "chunks"):
        return values
    if values.ndim not in (1, 2):
        raise ValueError(f"{name} has {values.ndim} dimensions; it must have 1, or 2 for several targets.")
    if len(values.chunks[0]) != len(X.chunks[0]):
        X, values = _resolved(X), _resolved(values)
    mine, wanted = values.chunks[0], X.chunks[0]
    if np.isnan(mine).any() or np.isnan(wanted).any() or mine == wanted:
        return values  # the workers compare them
    if sum(mine) != sum(wanted):
        raise ValueError(f"{name} has {sum(mine)} rows where X has {sum(wanted)}.")
    return values.rechunk({0: wanted})


def _resolved(values: Any) -> Any:
    """An array whose chunk sizes are known, found by computing it where they are not."""
    return values.copy().compute_chunk_sizes() if np.isnan(values.chunks[0]).any() else values


def _joined(X: list[Any], y: list[Any], s: list[Any] | None = None) -> Here:
    """A part of blocks that lie side by side."""
    return Here(_beside(X), _beside(y), None if s is None else _beside(s))


def _beside(blocks: list[Any]) -> Any:
    if len(blocks) == 1:
        return blocks[0]
    return sp.hstack(blocks, format="csr") if any(sp.issparse(one) for one in blocks) else np.hstack(blocks)


def _given(rows: Any) -> Here:
    """A part of what somebody's function returned."""
    if not isinstance(rows, (tuple, list)) or len(rows) not in (2, 3):
        raise TypeError(f"an item of X is a {type(rows).__name__}; it must be (X, y) or (X, y, s).")
    return Here(*rows)


def _opened(path: str) -> Source:
    """A folder, opened by a worker."""
    return Folder(path)
