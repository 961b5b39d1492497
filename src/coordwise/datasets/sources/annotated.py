"""Rows from .h5ad files (cells by genes) by anndata, some rows at a time."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from coordwise.datasets.sources.base import Part, State, file_identity, gathered
from coordwise.extras import require

__all__ = ["AnnotatedSource"]

READ = 1 << 24  # bytes that are read at a time


class AnnotatedSource:
    """Rows of the matrix X of an .h5ad file; targets and weights are columns of its table of observations.

    A column of labels becomes the numbers 0, 1, ... in the order of the labels, which `levels` keeps. X is read some
    rows at a time if it is dense or stored by rows (CSR); one stored by columns (CSC) is read into memory.
    """

    def __init__(self, path: Path, target: str | None, weight: str | None) -> None:
        require("anndata", extra="h5ad", wanted_by=f"reading {path.name}")
        import anndata

        self.path = path
        self.identity: dict[str, Any] | None = {**file_identity(path), "target": target, "weight": weight}
        self.total: int | None = path.stat().st_size
        self.levels: dict[str, list[str]] = {}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of names that occur twice, which is no fault here
                self.file = anndata.read_h5ad(path, backed="r")
        except Exception as error:  # HDF5's errors have no common base
            raise ValueError(f"{path.name} cannot be read as an .h5ad file: {error}.") from None
        if self.file.X is None:
            raise ValueError(f"{path.name} has no matrix X.")
        self.rows, columns = (int(size) for size in self.file.shape)
        if 0 in (self.rows, columns):
            raise ValueError(f"X of {path.name} has shape {(self.rows, columns)}; it must have rows and columns.")
        self.columns: int | None = columns
        self.feature_names: tuple[str, ...] | None = tuple(str(name) for name in self.file.var_names)
        self.y, self.s = (self._column(*given) for given in (("target", target), ("weight", weight)))

    def _column(self, argument: str, name: str | None) -> NDArray[np.float64] | None:
        """A column of the observations as numbers."""
        if name is None:
            return None
        table = self.file.obs
        if name not in table.columns:
            shown = ", ".join(str(column) for column in table.columns[:20]) or "none"
            raise ValueError(f"{argument}: the observations of {self.path.name} have no column {name!r}; has: {shown}.")
        column = table[name]
        if missing := int(column.isna().sum()):
            raise ValueError(f"column {name!r} of {self.path.name} has {missing} missing values; remove these rows.")
        if column.dtype.kind in "biuf":
            return np.asarray(column, np.float64)
        if argument == "weight":
            raise ValueError(f"weight: column {name!r} of {self.path.name} holds {column.dtype}, which is no number.")
        labels, codes = np.unique(np.asarray(column, str), return_inverse=True)
        self.levels[name] = [str(label) for label in labels]
        return codes.astype(np.float64)

    def parts(self, after: State | None, size: int) -> Iterator[Part]:
        """See `Source.parts`."""
        return gathered(self._parts(int(after["rows"]) if after else 0), size)

    def _parts(self, first: int) -> Iterator[Part]:
        X, total = self.file.X, int(self.total or 0)
        if getattr(X, "format", "csr") == "csc":
            X = sp.csr_array(X.to_memory())
        step = max(1, READ * self.rows // max(total, 1))
        for begin in range(first, self.rows, step):
            end = min(begin + step, self.rows)
            some: Any = X[begin:end]
            some = sp.csr_array(some) if sp.issparse(some) else np.asarray(some)
            if some.dtype.kind not in "biuf":
                raise TypeError(f"X of {self.path.name} must hold real numbers, not {some.dtype}.")
            y, s = (None if a is None else a[begin:end] for a in (self.y, self.s))
            yield Part(some, y, s, {"rows": end}, total * end // self.rows)
