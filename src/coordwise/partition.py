"""Blocks of coordinates: which are together, sums over them, and their smoothness."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coordwise.kernels import Matrix
from coordwise.validation import FloatArray

__all__ = ["Partition", "check_groups", "largest_eigenvalues"]

AT_ONCE = 1 << 22  # entries of Gram matrices that are in memory at one time


@dataclass(frozen=True, eq=False)
class Partition:
    """Block b has the coordinates order[starts[b]:starts[b + 1]], in ascending order; `of` is each one's block."""

    starts: NDArray[np.uint32]
    order: NDArray[np.uint32]
    of: NDArray[np.intp]

    @classmethod
    def by(cls, labels: NDArray[np.intp]) -> Partition:
        """Coordinates with the same label; labels are 0 .. count - 1, each of which occurs."""
        starts = np.concatenate(([0], np.cumsum(np.bincount(labels)))).astype(np.uint32)
        return cls(starts, np.argsort(labels, kind="stable").astype(np.uint32), labels)

    @property
    def count(self) -> int:
        """Number of blocks."""
        return len(self.starts) - 1

    @property
    def sizes(self) -> NDArray[np.intp]:
        """Coordinates of each block."""
        starts = self.starts.astype(np.intp)
        return starts[1:] - starts[:-1]

    def sums(self, values: NDArray[Any]) -> NDArray[Any]:
        """Sums over the coordinates of each block, along the first axis."""
        return np.add.reduceat(values[self.order], self.starts[:-1].astype(np.intp), axis=0)

    def members(self) -> Iterator[tuple[NDArray[np.intp], NDArray[np.uint32]]]:
        """Blocks of one size (count) and their coordinates (count x size), a bounded number at a time."""
        sizes = self.sizes
        for size in np.unique(sizes):
            which = np.flatnonzero(sizes == size)
            for part in np.array_split(which, -(-len(which) * size**2 // AT_ONCE)):
                yield part, self.order[self.starts[part].astype(np.intp)[:, None] + np.arange(size)]


def largest_eigenvalues(
    rows: Matrix, partition: Partition, weights: FloatArray | None, norms2: FloatArray, threads: int = 1
) -> FloatArray:
    """Of sum_j weights_j c_j c_j' for each block, c_j the entries at j of its b_i; not below them by rounding.

    `norms2` are the diagonals, sum_j weights_j b_ij^2, whose sum over a block is never less.
    """
    found = np.empty(partition.count)
    for which, members in partition.members():
        size = members.shape[1]
        trace = norms2[members].sum(1)
        if size > 1:
            grams = rows.block_grams(members, weights, threads)
            found[which] = np.minimum(np.linalg.eigvalsh(grams)[:, -1] * (1 + 1e-14 * size), trace)
        else:
            found[which] = trace
    return found


def check_groups(argument: str, groups: object) -> NDArray[np.intp]:
    """Return `groups` as integers, one per coordinate, that are 0 .. count - 1 without gaps."""
    try:
        given = np.asarray(groups)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{argument} must be an array of integers, one per feature ({error}).") from None
    if given.dtype.kind not in "iuf" or np.ma.is_masked(groups):
        raise TypeError(f"{argument} must be an array of integers, one per feature, not of dtype {given.dtype}.")
    if given.ndim != 1 or given.size == 0:
        raise ValueError(
            f"{argument} has shape {given.shape}; it must have one integer per feature: shape (d,), d > 0."
        )
    whole = np.isfinite(given) & (given == np.floor(given))
    if not np.all(whole):
        at = int(np.argmin(whole))
        raise ValueError(
            f"{argument} holds {given[at]} at index {at}; it must hold integers, the group of each feature."
        )
    if given.min() < 0:
        raise ValueError(f"{argument} holds {given.min()}; groups are numbered 0, 1, 2, ...")
    present = np.unique(given)
    if present[-1] != len(present) - 1:
        empty = int(np.argmax(present != np.arange(len(present))))
        raise ValueError(
            f"{argument} leaves group {empty} empty: no feature belongs to it. Number the groups 0, 1, 2, ... without "
            f"gaps, as np.unique({argument}, return_inverse=True)[1] does."
        )
    labels: NDArray[np.intp] = given.astype(np.intp)
    return labels
