"""Products with a matrix that is elsewhere, such as in a data folder."""

from __future__ import annotations

from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np

from coordwise import visits
from coordwise.samples.block import Block
from coordwise.samples.source import Source
from coordwise.validation import FloatArray

__all__ = ["ProductsElsewhere"]


class ProductsElsewhere:
    """What `Products` offers to conjugate gradients, by visits; vectors with an entry per row are in memory.

    Parameters
    ----------
    source : Source
    threads : int
    """

    dense = None
    matrix = SimpleNamespace(storage="elsewhere")

    def __init__(self, source: Source, threads: int) -> None:
        self.shape = source.shape
        self.samples = source.samples(threads=threads)

    @cached_property
    def _known(self) -> tuple[tuple[Any, ...], FloatArray]:
        """Zeros of each block, which tell how many rows it has, and the squared norms of the columns: one visit."""
        blocks, (squares,) = self.samples.visit(column_squares)
        return blocks, squares

    def column_norms2(self) -> FloatArray:
        """Squared norms of the columns."""
        return self._known[1]

    def forward(self, x: FloatArray) -> FloatArray:
        """A x for x of shape (n, K)."""
        return np.concatenate(self.samples.visit(visits.product, w=x)[0])

    def backward(self, y: FloatArray) -> FloatArray:
        """A'y for y of shape (m, K)."""
        ends = np.cumsum([len(block) for block in self._known[0]])
        parts = tuple(np.split(y, ends[:-1]))
        return np.asarray(self.samples.visit(adjoint, parts)[1][0])


def column_squares(block: Block) -> tuple[Any, list[FloatArray]]:
    """A visit: keep zeros; the squared norms of the columns."""
    return np.zeros(block.m), [block.squares(np.ones((block.m, 1)))[:, 0]]


def adjoint(block: Block, y: FloatArray) -> tuple[Any, list[FloatArray]]:
    """A visit: A'y."""
    return None, [block.adjoint(y)]
