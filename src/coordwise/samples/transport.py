"""What a cluster has to offer so that samples can live there: five calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from coordwise.samples.base import RowsLost

__all__ = ["Call", "Earlier", "Handle", "Lost", "NotYet", "Transport"]

Handle = Any  # of a value that is, or will be, on a worker


class Lost(RowsLost):
    """A value is gone. It may be possible to make it again (`Transport.restore`)."""


class NotYet(Exception):
    """A value is not there yet."""


class Earlier(NamedTuple):
    """The value of an earlier call of the same list."""

    position: int


class Call(NamedTuple):
    """function(*inputs), on the worker that holds `near` where possible.

    Inputs are handles, `Earlier` values, or small objects that are sent along. The function is pure, and can be sent to
    another process.
    """

    function: Callable[..., Any]
    inputs: tuple[Any, ...]
    near: Handle | None = None


class Transport(Protocol):
    """Runs pure functions where their inputs are, keeps what they return there, and brings back what is asked for.

    Values move from worker to worker, never through the caller. A handle is a recipe: while it is in use, a value that
    was lost with its worker is made again from its inputs.
    """

    @property
    def width(self) -> int:
        """How many calls run at the same time."""

    def submit(self, calls: Sequence[Call]) -> list[Handle]:
        """Begin calls, and return without waiting."""

    def result(self, handle: Handle, seconds: float) -> Any:
        """The value of a handle, here.

        Raises
        ------
        NotYet
            After so many seconds.
        Lost
            If it never will be there.
        Exception
            What a function raised.
        """

    def cancel(self, handles: Sequence[Handle]) -> None:
        """Forget calls: those that have not begun will not run, and values are dropped. It does not wait."""

    def restore(self, handles: Sequence[Handle]) -> None:
        """Have values made again that were lost or whose making failed; `RowsLost` if one of them has no recipe."""

    def signs(self, handles: Sequence[Handle]) -> tuple[object, str]:
        """Of calls that are waited for: something that changes as long as workers live, and who is to blame if not."""
