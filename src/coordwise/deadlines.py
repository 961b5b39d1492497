"""Time limits that hold although a factorisation is under way."""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from queue import Empty, SimpleQueue
from typing import Any, TypeVar
from weakref import WeakSet

from coordwise.kernels import end_threads

__all__ = ["TimeUp", "within"]

GRACE = 0.03  # seconds beyond a limit for what looks at the clock by itself, and then has a better answer
SLICE = 0.2  # seconds between two moments at which Ctrl-C is seen, whichever thread the signal went to

LAST = 0.05  # seconds that threads have to get out of the way when the interpreter ends

Found = TypeVar("Found")
Callback = Callable[[Any], Any]


class TimeUp(Exception):
    """A time limit came before a call ended."""


class _Abandoned(BaseException):
    """Nobody waits for what a thread would find."""


def within(limit: float | None, call: Callable[[Callback | None], Found], callback: Callback | None = None) -> Found:
    """What call(callback) returns or raises, if it does before `limit` (of `time.perf_counter`) and some grace.

    LAPACK cannot be ended from outside, so that a call with a limit has a thread of its own, which asks for the
    callback to be called in the thread of the caller. After the limit that thread is left alone: it ends at its next
    question, and nobody looks at what it found.

    Raises
    ------
    TimeUp
        If the limit came first.
    """
    if limit is None or limit == float("inf"):
        return call(callback)
    news: SimpleQueue[tuple[str, Any]] = SimpleQueue()
    answers: SimpleQueue[Any] = SimpleQueue()
    over = threading.Event()

    def ask(progress: Any) -> Any:
        answer = None
        if callback is not None and not over.is_set():
            news.put(("asks", progress))
            answer = answers.get()
        if over.is_set():
            raise _Abandoned
        return answer

    def run() -> None:
        try:
            news.put(("found", call(ask)))
        except BaseException as error:
            news.put(("raised", error))

    # A daemon, so that a program may end while a factorisation is under way.
    context = copy_context().run
    thread = threading.Thread(target=context, args=(run,), name="coordwise within a time limit", daemon=True)
    thread.start()
    end = limit + GRACE
    try:
        while True:
            left = end - time.perf_counter()
            try:
                what, value = news.get(timeout=min(max(left, 0.0), SLICE))
            except Empty:
                if left <= 0:
                    raise TimeUp from None
                continue
            if what == "found":
                found: Found = value
                return found
            if what == "raised":
                raise value
            assert callback is not None
            answers.put(callback(value))
            end = max(end, time.perf_counter() + GRACE)
    finally:
        over.set()
        answers.put(None)
        if thread.is_alive():
            _left_alone.add(thread)


_left_alone: WeakSet[threading.Thread] = WeakSet()


def _end() -> None:
    """The interpreter is about to end: threads that are left alone stay in the core, or come out of it now."""
    if any(thread.is_alive() for thread in _left_alone):
        end_threads()
        time.sleep(LAST)


atexit.register(_end)
