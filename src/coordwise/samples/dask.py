"""Dask as a transport: a round is one small graph, whose tasks prefer the workers that hold their partitions."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import dask
from dask.highlevelgraph import HighLevelGraph, MaterializedLayer
from distributed import Client, Future

from coordwise.samples.base import RowsLost
from coordwise.samples.transport import Call, Earlier, Lost, NotYet

__all__ = ["Dask", "current"]

ANSWER = 10.0  # seconds within which the scheduler has to answer a question
AGAIN = 30.0  # seconds after which it is asked anew where partitions are, since others may have moved them
QUIET = {"distributed.admin.large-graph-warning-threshold": "1 TB"}  # of small arrays: they belong into the graph


class Dask:
    """A `Transport` by futures of `distributed`.

    The tasks of a round are in one graph, the small arrays too: so everything has a recipe that the scheduler knows,
    and a lost worker's values are made again by themselves. Tasks prefer the worker that holds their partition, and run
    elsewhere only if it is gone.

    Parameters
    ----------
    client : distributed.Client
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self._fetching: dict[str, concurrent.futures.Future[Any]] = {}
        self._places: dict[str, str] = {}
        self._asked = time.monotonic()
        self._width = 0

    @property
    def width(self) -> int:
        """Threads of all workers when it was first asked for."""
        if not self._width:
            self._width = sum(self._ask(lambda: self.client.scheduler.ncores(workers=None), {}).values()) or 1
        return self._width

    def submit(self, calls: Sequence[Call]) -> list[Future]:
        """See `Transport`."""
        names = [f"coordwise{_name(call.function)}-{uuid.uuid4().hex}" for call in calls]
        layers: dict[str | None, dict[str, Any]] = {}
        places = self._placed([call.near for call in calls if call.near is not None])
        for name, call in zip(names, calls, strict=True):
            inputs = (names[one.position] if isinstance(one, Earlier) else one for one in call.inputs)
            place = places.get(call.near.key) if call.near is not None else None
            layers.setdefault(place, {})[name] = (call.function, *inputs)
        graph = HighLevelGraph(
            {str(place): _layer(tasks, place) for place, tasks in layers.items()},
            {str(place): set() for place in layers},
        )
        try:
            with dask.config.set(QUIET):
                return self.client.get(graph, names, sync=False)
        except Exception as error:
            if self._closed:
                raise RowsLost("The Dask client was closed.") from error
            raise

    def result(self, handle: Future, seconds: float) -> Any:
        """See `Transport`."""
        fetching = self._fetching.get(handle.key)
        if fetching is None:
            fetching = self._fetching[handle.key] = self._run(lambda: self.client.gather(handle, asynchronous=True))
        concurrent.futures.wait([fetching], seconds)
        if not fetching.done():
            if self._closed:
                raise Lost("The Dask client was closed.")
            raise NotYet
        del self._fetching[handle.key]
        try:
            return fetching.result()
        except concurrent.futures.CancelledError as error:
            raise Lost(f"Tasks were cancelled, or what they need was lost ({_line(error)}).") from error
        except Exception as error:
            if handle.status != "error" or type(error).__module__.startswith("distributed."):
                raise Lost(f"{type(error).__name__}: {_line(error)}.") from error
            raise

    def cancel(self, handles: Sequence[Future]) -> None:
        """See `Transport`."""
        for handle in handles:
            if (fetching := self._fetching.pop(handle.key, None)) is not None:
                fetching.cancel()
        with contextlib.suppress(RowsLost):
            self._run(lambda: self.client.cancel(list(handles), asynchronous=True))

    def restore(self, handles: Sequence[Future]) -> None:
        """See `Transport`."""
        if self._closed:
            raise RowsLost("The Dask client was closed.")
        keys = {handle.key for handle in handles}
        gone = {handle.key for handle in handles if handle.status in ("cancelled", "lost")}
        if gone:
            raise RowsLost(
                f"{len(gone)} of {len(keys)} partitions were lost, and Dask has no recipe for them: what was scattered "
                "is gone with its worker. Give data that workers can load again: dask collections, delayed values, "
                "paths."
            )
        self._places.clear()
        failed = [handle.key for handle in handles if handle.status == "error"]
        if failed:
            self._ask(lambda: self._retry(failed), None)

    def signs(self, handles: Sequence[Future]) -> tuple[object, str]:
        """See `Transport`: how many calls have ended, and the heartbeats of workers that are at work."""
        done = sum(handle.done() for handle in handles)
        processing, identity = self._ask(self._state, (None, None))
        if processing is None:
            return done, "the scheduler does not answer"
        workers = identity["workers"]
        seen = {name: workers[name]["last_seen"] for name, tasks in processing.items() if tasks and name in workers}
        if not workers:
            blame = "there is no worker"
        elif not seen:
            blame = f"none of {len(workers)} workers is at work, and {len(handles) - done} tasks wait"
        else:
            now = time.time()
            heard = (f"{name} was last heard of {now - at:.0f} seconds ago" for name, at in sorted(seen.items()))
            blame = "; ".join(heard)
        return (done, tuple(sorted(seen.items()))), blame

    @property
    def _closed(self) -> bool:
        return self.client.status in ("closed", "closing")

    def _placed(self, handles: Sequence[Future]) -> dict[str, str]:
        """The worker that holds each of these, as far as it is known."""
        now = time.monotonic()
        if now - self._asked > AGAIN:
            self._asked = now
            self._places.clear()
        unknown = {handle.key for handle in handles if handle.key not in self._places and handle.done()}
        if unknown:
            found = self._ask(lambda: self.client.scheduler.who_has(keys=list(unknown)), {})
            self._places |= {key: min(where) for key, where in found.items() if where}
        return self._places

    async def _retry(self, keys: list[str]) -> None:
        for key in await self.client.scheduler.retry(keys=keys, client=self.client.id):
            if key in self.client.futures:  # not the inputs of these, which only the scheduler knows
                self.client.futures[key].retry()

    async def _state(self) -> tuple[Any, Any]:
        return await self.client.scheduler.processing(workers=None), await self.client.scheduler.identity()

    def _run(self, begin: Callable[[], Awaitable[Any]]) -> concurrent.futures.Future[Any]:
        """Begin something in the client's thread."""

        async def work() -> Any:
            return await begin()

        if self._closed:
            raise RowsLost("The Dask client was closed.")
        coroutine = work()
        try:
            return asyncio.run_coroutine_threadsafe(coroutine, self.client.loop.asyncio_loop)
        except RuntimeError as error:
            coroutine.close()
            raise RowsLost("The Dask client was closed.") from error

    def _ask(self, question: Callable[[], Awaitable[Any]], otherwise: Any) -> Any:
        """What the scheduler answers, or something else if it does not."""
        asked = self._run(question)
        try:
            return asked.result(ANSWER)
        except (concurrent.futures.TimeoutError, concurrent.futures.CancelledError, OSError):
            asked.cancel()
            return otherwise


def current(client: Client | None) -> Client:
    """The client given, or the current one."""
    if client is None:
        try:
            client = Client.current()
        except ValueError:
            raise ValueError(
                "there is no Dask client; start one, as in client = distributed.Client(), or pass one as client."
            ) from None
    if not isinstance(client, Client):
        raise TypeError(f"client is a {type(client).__name__}; it must be a distributed.Client.")
    if client.asynchronous:
        raise ValueError("client is asynchronous; give one that was not made with asynchronous=True.")
    return client


def _layer(tasks: dict[str, Any], place: str | None) -> MaterializedLayer:
    return MaterializedLayer(
        tasks, annotations=None if place is None else {"workers": [place], "allow_other_workers": True}
    )


def _line(error: BaseException) -> str:
    """The first line of what it says."""
    return next(iter(str(error).splitlines()), type(error).__name__)


def _name(function: Any) -> str:
    """What dashboards show."""
    return getattr(function, "__name__", type(function).__name__).lower()
