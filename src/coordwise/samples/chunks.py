"""Samples in several blocks that are visited one after the other, such as chunks of a file."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from queue import SimpleQueue
from typing import Any

from coordwise.choose.machine import CHUNKS
from coordwise.samples.base import Kept, Price, Sizes, Visitor, summed
from coordwise.samples.block import Block
from coordwise.validation import FloatArray

__all__ = ["Chunks"]

Load = Callable[[], Block]


class Chunks:
    """Blocks that are loaded when they are visited, the next one while a function works on the present one.

    At most two blocks are in memory at a time.

    Parameters
    ----------
    loads : sequence of callables
        Each returns a block, the same one every time.
    sizes : Sizes, optional
        Of all samples together; found by one visit if they are not given.
    """

    def __init__(self, loads: Sequence[Load], sizes: Sizes | None = None) -> None:
        if not loads:
            raise ValueError("loads is empty; there must be at least one block.")
        self.loads = tuple(loads)
        self.price = Price(*CHUNKS)
        self._sizes = sizes

    @property
    def sizes(self) -> Sizes:
        """See `Sizes`."""
        if self._sizes is None:
            self._sizes = together([block.sizes for block in self._blocks()])
        return self._sizes

    def visit(
        self, function: Visitor, *kept: Kept, poll: Callable[[], object] | None = None, **sent: Any
    ) -> tuple[Kept, list[FloatArray]]:
        """See `Samples.visit`."""
        found, sums = [], []
        with closing(self._blocks(rowless=getattr(function, "rowless", False))) as blocks:
            for k, block in enumerate(blocks):
                if poll is not None:
                    poll()
                own, small = function(block, *(parts[k] for parts in kept), **sent)
                found.append(own)
                sums.append(small)
                del block  # before the next one but one is loaded
        return tuple(found), summed(sums)

    def sweep(
        self,
        function: Callable[..., tuple[Any, Any]],
        *kept: Kept,
        state: Any,
        poll: Callable[[], object] | None = None,
        **sent: Any,
    ) -> tuple[Kept, Any]:
        """See `InOrder.sweep`."""
        found = []
        with closing(self._blocks()) as blocks:
            for k, block in enumerate(blocks):
                if poll is not None:
                    poll()
                own, state = function(block, *(parts[k] for parts in kept), state=state, **sent)
                found.append(own)
                del block
        return tuple(found), state

    def _blocks(self, *, rowless: bool = False) -> Generator[Block]:
        """All of them in order, one of which is loaded ahead by another thread.

        A load may have a method `rowless` that returns its block without rows.
        """
        loads = [getattr(load, "rowless", load) for load in self.loads] if rowless else self.loads
        if len(loads) == 1 or (rowless and loads[0] is not self.loads[0]):
            for load in loads:
                yield load()
            return
        wanted: SimpleQueue[Load | None] = SimpleQueue()
        loaded: SimpleQueue[Block | BaseException] = SimpleQueue()

        def work() -> None:
            while (load := wanted.get()) is not None:
                try:
                    loaded.put(load())
                except BaseException as error:  # raised where the block is wanted
                    loaded.put(error)

        threading.Thread(target=work, name="coordwise reads ahead", daemon=True).start()
        try:
            wanted.put(loads[0])
            for k in range(len(loads)):
                found = loaded.get()
                if isinstance(found, BaseException):
                    raise found
                if k + 1 < len(loads):
                    wanted.put(loads[k + 1])
                yield found
                del found
        finally:
            wanted.put(None)


def together(parts: Sequence[Sizes]) -> Sizes:
    """The sizes of all blocks together."""
    first = parts[0]
    if any((part.d, part.outputs) != (first.d, first.outputs) for part in parts):
        raise ValueError("blocks have different numbers of features or targets; all must have the same.")
    return Sizes(
        sum(part.n for part in parts),
        first.d,
        first.outputs,
        sum(part.nnz for part in parts),
        sum(part.total for part in parts),
        sum(part.squares for part in parts),
    )
