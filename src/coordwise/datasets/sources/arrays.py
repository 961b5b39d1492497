"""Rows from matrices that are there at once: numpy arrays (memory-mapped ones, too) and scipy's sparse matrices."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from coordwise.datasets.mapped import give_back
from coordwise.datasets.sources.base import Part, State, file_identity, identity_of, rows_of, size_of, sliced
from coordwise.validation import check_array, check_unmasked

__all__ = ["MatrixSource", "beside", "checked_matrix"]


class MatrixSource:
    """Rows of a CSR or dense matrix, with targets and weights beside it."""

    feature_names: tuple[str, ...] | None = None

    def __init__(self, X: Any, y: Any, s: Any, identity: dict[str, Any] | None = None) -> None:
        self.X, self.y, self.s = checked_matrix(X), y, s
        self.identity: dict[str, Any] | None = identity or {"matrix": identity_of(self.X)}
        self.total: int | None = size_of(self.X)
        self.columns: int | None = int(self.X.shape[1])
        self.rows = int(self.X.shape[0])
        self.levels: dict[str, list[str]] = {}

    def parts(self, after: State | None, size: int) -> Iterator[Part]:
        """See `Source.parts`."""
        n = self.X.shape[0]
        for begin, end in sliced(self.X, int(after["rows"]) if after else 0, size):
            y, s = (None if a is None else a[begin:end] for a in (self.y, self.s))
            done = int(self.total or 0) * end // n
            yield Part(rows_of(self.X, begin, end), y, s, {"rows": end}, done)
            for array in (self.X.data, self.X.indices) if sp.issparse(self.X) else (self.X,):
                give_back(array)


def checked_matrix(X: Any, argument: str = "source") -> Any:
    """CSR, or an array with two axes, of float32 or float64."""
    check_unmasked(argument, X)
    X = X.asformat("csr") if sp.issparse(X) else np.asanyarray(X)
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"{argument} has shape {X.shape}; it must have two axes, and rows and columns.")
    if X.dtype.kind not in "biuf":
        raise TypeError(f"{argument} must hold real numbers, not {X.dtype}.")
    return X


def beside(argument: str, given: Any, n: int | None) -> tuple[Any, Any]:
    """Targets or weights given as an array or the path of a .npy file, and what recognises them."""
    if given is None:
        return None, None
    identity: Any
    if isinstance(given, (str, Path)):
        path = Path(given).expanduser()
        if path.suffix != ".npy" or not path.is_file():
            raise ValueError(
                f"{argument}={str(given)!r} is not a .npy file; this source has no named columns, so give an array or "
                "the path of a .npy file."
            )
        array = check_array(argument, np.load(path, allow_pickle=False))
        identity = file_identity(path)
    else:
        array = check_array(argument, given)
        identity = identity_of(array)
    if array.ndim not in (1, 2) or (argument == "weight" and array.ndim != 1):
        raise ValueError(f"{argument} has shape {array.shape}; it must have one entry per row.")
    if n is not None and len(array) != n:
        raise ValueError(f"{argument} has {len(array)} entries, but source has {n} rows.")
    return array, identity
