"""What the oracle asks of samples: their sizes, and one verb."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from coordwise.validation import FloatArray

__all__ = ["InOrder", "Kept", "Price", "RowsLost", "Samples", "Sizes", "rowless", "summed"]

Kept = tuple[Any, ...]  # one array per block; only the samples look inside
Visitor = Callable[..., tuple[Any, list[FloatArray]]]
One = TypeVar("One", bound=Callable[..., Any])


class Sizes(NamedTuple):
    """n samples with d features and K targets, their stored entries, W = sum_i s_i, and sum_i s_i |a_i|^2."""

    n: int
    d: int
    outputs: int
    nnz: int
    total: float
    squares: float


class Price(NamedTuple):
    """What work costs where the samples are, in the time that one thread takes to read an entry of sparse rows.

    An entry of a product with A, a multiplication in a Gram matrix or a factorisation, a visit by itself, and a byte of
    the small arrays that a visit sends and returns.
    """

    entry: float
    flop: float
    visit: float
    byte: float


class RowsLost(RuntimeError):
    """Samples elsewhere are gone, or no longer answer: the message says which, and what was tried."""


class Samples(Protocol):
    """Rows of A with their targets and weights, in one block or in several, here or elsewhere."""

    @property
    def price(self) -> Price:
        """What work costs here."""

    @property
    def sizes(self) -> Sizes:
        """See `Sizes`."""

    def visit(
        self, function: Visitor, *kept: Kept, poll: Callable[[], object] | None = None, **sent: Any
    ) -> tuple[Kept, list[FloatArray]]:
        """function(block, *its parts of kept, **sent) -> (array or None, small arrays), on every block.

        The arrays, with a row per sample, stay with the blocks. The small arrays are added in the order of the blocks,
        never in the order in which blocks finish, so that the same blocks give the same bits. `function` is a pure
        function that can be sent to another process by its name. `poll` is called between blocks and may raise.
        """


@runtime_checkable
class InOrder(Samples, Protocol):
    """Samples whose blocks this process visits one after the other: what is kept beside them are arrays here."""

    def sweep(
        self,
        function: Callable[..., tuple[Any, Any]],
        *kept: Kept,
        state: Any,
        poll: Callable[[], object] | None = None,
        **sent: Any,
    ) -> tuple[Kept, Any]:
        """function(block, *its parts of kept, state=, **sent) -> (array or None, state), block after block.

        Every block sees the state that the one before it has returned; the last one's is returned with the arrays.
        """


def rowless(function: One) -> One:
    """Mark a function of blocks that looks at targets, weights and kept arrays alone.

    Where rows are read from a disk they are then left there.
    """
    function.rowless = True  # type: ignore[attr-defined]
    return function


def summed(parts: list[list[FloatArray]]) -> list[FloatArray]:
    """The small arrays of all blocks, added in order."""
    first, *others = parts
    total = list(first)
    for other in others:
        total = [a + b for a, b in zip(total, other, strict=True)]
    return total
