"""Samples in the memory of this process, as one block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from coordwise.choose.machine import MEMORY
from coordwise.samples.base import Kept, Price, Sizes, Visitor
from coordwise.samples.block import Block
from coordwise.validation import FloatArray

__all__ = ["Memory"]


class Memory:
    """One block."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.price = Price(*MEMORY)

    def __sizeof__(self) -> int:
        """Bytes; see `Block`."""
        return self.block.__sizeof__()

    @property
    def sizes(self) -> Sizes:
        """See `Sizes`."""
        return self.block.sizes

    def visit(
        self, function: Visitor, *kept: Kept, poll: Callable[[], object] | None = None, **sent: Any
    ) -> tuple[Kept, list[FloatArray]]:
        """See `Samples.visit`."""
        if poll is not None:
            poll()
        found, sums = function(self.block, *(parts[0] for parts in kept), **sent)
        return (found,), sums

    def sweep(
        self,
        function: Callable[..., tuple[Any, Any]],
        *kept: Kept,
        state: Any,
        poll: Callable[[], object] | None = None,
        **sent: Any,
    ) -> tuple[Kept, Any]:
        """See `InOrder.sweep`."""
        if poll is not None:
            poll()
        found, state = function(self.block, *(parts[0] for parts in kept), state=state, **sent)
        return (found,), state
