"""Rows from an iterator of (X, y) or (X, y, s) batches, or of matrices alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from coordwise.datasets.sources.arrays import checked_matrix
from coordwise.datasets.sources.base import Part, State, gathered
from coordwise.validation import check_array

__all__ = ["BatchSource"]


class BatchSource:
    """Batches of any size, in order; they are never recognised, so a conversion always begins anew."""

    identity: dict[str, Any] | None = None
    total: int | None = None
    feature_names: tuple[str, ...] | None = None

    def __init__(self, source: Iterable[Any] | Callable[[], Iterable[Any]]) -> None:
        self.source = source
        self.columns: int | None = None
        self.levels: dict[str, list[str]] = {}

    def parts(self, after: State | None, size: int) -> Iterator[Part]:
        """See `Source.parts`."""
        assert after is None
        found = self.source() if callable(self.source) else self.source
        if not isinstance(found, Iterable):
            raise TypeError(f"source() must return an iterable of batches, not {type(found).__name__}.")
        yield from gathered(self._checked(found), size)

    def _checked(self, batches: Iterable[Any]) -> Iterator[Part]:
        kinds: set[tuple[bool, bool, bool]] = set()
        done = 0
        for k, batch in enumerate(batches):
            X, y, s = _unpacked(batch, k)
            name = f"X of batch {k}"
            X = checked_matrix(X, name)
            if self.columns is not None and X.shape[1] != self.columns:
                raise ValueError(f"{name} has {X.shape[1]} columns, and those before it {self.columns}.")
            self.columns = int(X.shape[1])
            kinds.add((sp.issparse(X), y is None, s is None))
            if len(kinds) > 1:
                raise ValueError(
                    f"batch {k} is of another kind than those before it; all must be sparse or all dense, and all "
                    "have targets and weights, or none."
                )
            y, s = (_along(name, a, X.shape[0], k) for name, a in (("y", y), ("s", s)))
            done += X.data.nbytes
            yield Part(X, y, s, {}, done)


def _unpacked(batch: Any, k: int) -> tuple[Any, Any, Any]:
    if sp.issparse(batch) or isinstance(batch, np.ndarray):
        return batch, None, None
    if isinstance(batch, (tuple, list)) and len(batch) in (1, 2, 3):
        return (*batch, *(None,) * (3 - len(batch)))
    raise TypeError(f"batch {k} is a {type(batch).__name__}; it must be (X, y), (X, y, s) or X.")


def _along(name: str, a: Any, m: int, k: int) -> Any:
    if a is None:
        return None
    found = check_array(f"{name} of batch {k}", a)
    if found.ndim not in (1, 2) or len(found) != m:
        raise ValueError(f"{name} of batch {k} has shape {found.shape}, and X has {m} rows.")
    return found
