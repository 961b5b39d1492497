"""A source in parts: each a source of its own on a worker, rows in its memory or a folder on its disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from coordwise.samples.base import Samples
from coordwise.samples.cluster import PATIENCE, TRIES, Cluster, reduced
from coordwise.samples.source import Source, Targets, Weights
from coordwise.samples.transport import Call, Handle, Transport
from coordwise.validation import FloatArray

__all__ = ["Parted"]

MOST_LABELS = 10_000  # distinct targets from where they are no classes


class Parted:
    """A `Source` whose rows are on the workers of a cluster, where they stay.

    Parameters
    ----------
    transport : Transport
    parts : sequence of handles
        Of sources, in the order of the rows. Some may have no rows.
    patience, tries : float, int
        See `Cluster`.

    Raises
    ------
    ValueError
        If parts do not fit together, or none has rows.
    RowsLost
        If workers are lost, or silent for too long.
    """

    def __init__(
        self, transport: Transport, parts: Sequence[Handle], *, patience: float = PATIENCE, tries: int = TRIES
    ) -> None:
        if not parts:
            raise ValueError("X has no partitions; there must be at least one.")
        self.transport, self.parts, self.patience, self.tries = transport, tuple(parts), patience, tries
        self._facts: _Facts = self._reduced(_facts, _agreed)
        self.parts = tuple(part for part, rows in zip(self.parts, self._facts.rows, strict=True) if rows)
        if not self.parts:
            raise ValueError("all partitions of X are empty; there must be at least one sample.")

    def __repr__(self) -> str:
        n, d = self.shape
        return f"{type(self).__name__}({n:,} x {d:,} in {len(self.parts)} partitions)"

    def _reduced(self, function: Any, combine: Any) -> Any:
        return reduced(self.transport, self.parts, function, combine, patience=self.patience, tries=self.tries)

    @property
    def shape(self) -> tuple[int, int]:
        """See `Source`."""
        return sum(self._facts.rows), self._facts.d

    @property
    def dtype(self) -> np.dtype[Any]:
        """See `Source`."""
        return np.dtype(self._facts.dtype)

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """See `Source`."""
        return self._facts.names

    @property
    def weighted(self) -> bool:
        """See `Source`."""
        return self._facts.weighted

    @property
    def target_shape(self) -> tuple[int, ...] | None:
        """See `Source`."""
        return self._facts.target_shape

    def labels(self) -> tuple[FloatArray, FloatArray]:
        """See `Source`: one round."""
        values, sums = self._reduced(_labels, _merged)
        return values, sums

    def head(self) -> tuple[Any, FloatArray, FloatArray | None]:
        """See `Source`: one round, in which some rows of the first part come here."""
        return reduced(self.transport, self.parts[:1], _head, _first, patience=self.patience, tries=self.tries)

    def samples(
        self,
        targets: Targets | None = None,
        *,
        weights: Weights | None = None,
        constant: bool | float = False,
        threads: int = 1,
        shift: FloatArray | None = None,
    ) -> Cluster:
        """See `Source`."""
        view = _View(targets, weights, {"constant": constant, "threads": threads}, shift)
        handles = self.transport.submit([Call(_viewed, (part, view), near=part) for part in self.parts])
        return Cluster(self.transport, handles, patience=self.patience, tries=self.tries)


@dataclass(frozen=True)
class _View:
    """The arguments of `Source.samples`."""

    targets: Targets | None
    weights: Weights | None
    options: dict[str, Any]
    shift: FloatArray | None


class _Facts(NamedTuple):
    """What is known of a part, or of all."""

    rows: tuple[int, ...]  # of each
    d: int
    dtype: str
    target_shape: tuple[int, ...] | None
    weighted: bool
    names: tuple[str, ...] | None


def _viewed(part: Source, view: _View) -> Samples:
    options = view.options if view.shift is None else {**view.options, "shift": view.shift}
    return part.samples(view.targets, weights=view.weights, **options)


def _facts(part: Source) -> _Facts:
    (n, d), dtype = part.shape, part.dtype.name
    return _Facts((n,), d, dtype, part.target_shape, part.weighted, part.feature_names)


def _agreed(parts: list[_Facts]) -> _Facts:
    """The facts of two parts together."""
    one, other = parts
    for name, words in (("d", "numbers of features"), ("target_shape", "shapes of y"), ("names", "names of features")):
        if getattr(one, name) != getattr(other, name):
            raise ValueError(f"partitions have different {words}: {getattr(one, name)!r} and {getattr(other, name)!r}.")
    if one.weighted != other.weighted:
        raise ValueError("some partitions have sample weights and others have none; give weights to all or to none.")
    dtypes = [part.dtype for part in parts if any(part.rows)] or [one.dtype]
    return one._replace(rows=one.rows + other.rows, dtype=np.result_type(*dtypes).name)


def _labels(part: Source) -> tuple[FloatArray, FloatArray]:
    return part.labels()


def _merged(parts: list[tuple[FloatArray, FloatArray]]) -> tuple[FloatArray, FloatArray]:
    """The labels of two parts together."""
    values, codes = np.unique(np.concatenate([values for values, _ in parts]), return_inverse=True)
    if len(values) > MOST_LABELS:
        raise ValueError(f"y holds more than {MOST_LABELS} distinct targets, too many for classes.")
    return values, np.bincount(codes, np.concatenate([sums for _, sums in parts]), len(values)).astype(float)


def _head(part: Any) -> Any:
    return tuple(part.head())


def _first(parts: list[Any]) -> Any:
    return parts[0]
