"""Samples on a cluster, in partitions that never move: small arrays go there, and sums of small arrays come back."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from coordwise import visits
from coordwise.choose.machine import CLUSTER
from coordwise.samples.base import Kept, Price, RowsLost, Samples, Sizes, Visitor, summed
from coordwise.samples.chunks import together
from coordwise.samples.transport import Call, Earlier, Handle, Lost, NotYet, Transport
from coordwise.validation import FloatArray

__all__ = ["PATIENCE", "TRIES", "Cluster", "reduced"]

TRIES = 3  # times that a round is repeated whose inputs or tasks were lost
PATIENCE = 60.0  # seconds without a sign of life after which samples count as lost
LOOK = 0.1  # seconds between two polls while waiting
LISTEN = 0.1  # of the patience: how often a sign of life is looked for
FAN = 8  # values that one task combines, and partitions that one copy of the small arrays is for; a power of 2
LARGE = 2**20  # bytes of small arrays from where the time that sending takes counts

Poll = Callable[[], object] | None


class Cluster:
    """Partitions of samples on workers.

    A visit is one round: small arrays are sent to every worker once, a pure function runs where each partition is, and
    the small arrays that it returns are added from worker to worker, in a binary tree over the order of the partitions.
    So the same partitions give the same bits, whatever ends first. Arrays that are kept are handles, which the
    transport makes again where a worker was lost. If it cannot, the round is repeated. A visit of a function in
    `coordwise.visits.SILENT`, which returns no small arrays, begins and is not waited for.

    Parameters
    ----------
    transport : Transport
    partitions : sequence of handles
        Of `Samples` in the memory or on the disk of a worker, or of None for a partition without samples.
    patience : float
        Seconds without a sign of life, while something is waited for, after which samples count as lost.
    tries : int
        Times that a round is repeated after tasks or their inputs were lost.

    Raises
    ------
    RowsLost
        By `visit` and `sizes`: after so many tries, or so many seconds without a sign of life.
    """

    def __init__(
        self, transport: Transport, partitions: Sequence[Handle], *, patience: float = PATIENCE, tries: int = TRIES
    ) -> None:
        if not partitions:
            raise ValueError("partitions is empty; there must be at least one.")
        self.transport, self.partitions = transport, tuple(partitions)
        self.patience, self.tries = patience, tries
        self._sizes: Sizes | None = None
        self._keeps: dict[Visitor, bool] = {}

    @property
    def price(self) -> Price:
        """What work costs here: the workers share it."""
        entry, flop, visit, byte = CLUSTER
        share = max(min(self.transport.width, len(self.partitions)), 1)
        return Price(entry / share, flop / share, visit, byte)

    @property
    def sizes(self) -> Sizes:
        """See `Sizes`: one round."""
        if self._sizes is None:
            self._sizes = _some(
                reduced(self.transport, self.partitions, _sizes, together, patience=self.patience, tries=self.tries)
            )
        return self._sizes

    def visit(self, function: Visitor, *kept: Kept, poll: Poll = None, **sent: Any) -> tuple[Kept, list[FloatArray]]:
        """See `Samples.visit`. What is kept has a handle per partition."""
        size = sum(array.nbytes for array in sent.values() if isinstance(array, np.ndarray))
        partitions, count = self.partitions, len(self.partitions)
        calls: list[Call] = []
        copies = _spread(calls, partitions, _Sent(function, sent), size)
        first = len(calls)
        for k, partition in enumerate(partitions):
            calls.append(Call(_visited, (copies[k], partition, *(parts[k] for parts in kept)), near=partition))
        if function in visits.SILENT:  # the next visit waits for it too
            if poll is not None:
                poll()
            return tuple(self.transport.submit(calls)[first:]), []
        parts = [Earlier(first + k) for k in range(count)]
        if self._keeps.get(function, True):  # take the sums out, so that what is kept does not move with them
            calls += [Call(_sums, (part,), near=near) for part, near in zip(parts, partitions, strict=True)]
            parts = [Earlier(first + count + k) for k in range(count)]
        _fold(calls, parts, _Sum(summed), 2 if size > LARGE else FAN)
        needed = [*partitions, *(part for parts in kept for part in parts if part is not None)]
        found, handles = _finished(self.transport, calls, needed, poll, self.patience, self.tries)
        self._keeps[function] = found.keeps
        return tuple(handles[first : first + count]), _some(found.value)


def reduced(
    transport: Transport,
    partitions: Sequence[Handle],
    function: Callable[[Any], Any],
    combine: Callable[[list[Any]], Any],
    *,
    poll: Poll = None,
    patience: float = PATIENCE,
    tries: int = TRIES,
) -> Any:
    """combine([function(partition), ...]) in one round; None stands for nothing, and is left out.

    `combine` is called with two values at a time, in a binary tree over the order of the partitions.
    """
    calls = [Call(function, (partition,), near=partition) for partition in partitions]
    _fold(calls, [Earlier(k) for k in range(len(partitions))], _Sum(combine), FAN)
    return _finished(transport, calls, partitions, poll, patience, tries)[0].value


@dataclass(frozen=True)
class _Sent:
    """What a visit sends to every partition."""

    function: Visitor
    sent: dict[str, Any]


class _Nothing:
    """What was kept of the blocks of a partition, where the caller gives None in place of a handle."""

    def __getitem__(self, k: int) -> None:
        return None


_NOTHING: Any = _Nothing()


class _Visit(NamedTuple):
    """What a visit of a partition has found: what stays there, and the small arrays that are summed."""

    kept: Kept
    sums: list[FloatArray]


class _Total(NamedTuple):
    """Values of several partitions combined (None: no samples), and whether any of these keeps an array."""

    keeps: bool
    value: Any


class _Sum:
    """Combines the values of neighbours, two at a time, so that the order is that of one binary tree."""

    def __init__(self, combine: Callable[[list[Any]], Any]) -> None:
        self.combine = combine

    def __call__(self, *values: Any) -> _Total:
        """Each is a `_Total`, a `_Visit`, or a value by itself."""
        row = [_total(value) for value in values]
        while len(row) > 1:
            row = [self._pair(*row[k : k + 2]) for k in range(0, len(row), 2)]
        return row[0]

    def _pair(self, one: _Total, other: _Total | None = None) -> _Total:
        if other is None:
            return one
        keeps, there = one.keeps or other.keeps, [x.value for x in (one, other) if x.value is not None]
        return _Total(keeps, self.combine(there) if len(there) == 2 else there[0] if there else None)


def _total(value: Any) -> _Total:
    if isinstance(value, _Total):
        return value
    if isinstance(value, _Visit):
        return _Total(any(part is not None for part in value.kept), value.sums)
    return _Total(False, value)


def _itself(value: Any) -> Any:
    return value


def _visited(sent: _Sent, samples: Samples | None, *kept: _Visit | None) -> _Visit | None:
    """A visit of one partition."""
    if samples is None:
        return None
    own = (_NOTHING if part is None else part.kept for part in kept)
    return _Visit(*samples.visit(sent.function, *own, **sent.sent))


def _sums(visit: _Visit | None) -> _Total:
    """Its sums alone."""
    return _total(visit)


def _sizes(samples: Samples | None) -> Sizes | None:
    return None if samples is None else samples.sizes


def _some(value: Any) -> Any:
    """The value, unless no partition has samples."""
    if value is None:
        raise ValueError("all partitions are empty; there must be at least one sample.")
    return value


def _spread(calls: list[Call], partitions: Sequence[Handle], sent: _Sent, size: int) -> Sequence[Any]:
    """What is sent to each partition: it goes along with the calls if it is small.

    Otherwise there is a call for it, whose value workers send to each other; where many would have to ask one worker,
    there are copies of it in a tree, each for a few partitions.
    """
    count = len(partitions)
    if size * count <= LARGE:
        return [sent] * count
    calls.append(Call(_itself, (sent,)))
    copies, each = [Earlier(0)], count
    while size > LARGE and each > FAN:
        fewer = -(-each // FAN)
        begins, first = range(0, count, fewer), len(calls)
        calls += [Call(_itself, (copies[begin // each],), near=partitions[begin]) for begin in begins]
        copies, each = [Earlier(first + k) for k in range(len(begins))], fewer
    return [copies[k // each] for k in range(count)]


def _fold(calls: list[Call], parts: list[Earlier], combine: _Sum, fan: int) -> None:
    """Add the calls that combine the parts, `fan` neighbours at a time; the last one has the value of all."""
    while len(parts) > 1 or calls[parts[0].position].function is not combine:
        first = len(calls)
        groups = [parts[k : k + fan] for k in range(0, len(parts), fan)]
        calls += [Call(combine, tuple(group)) for group in groups]
        parts = [Earlier(first + k) for k in range(len(groups))]


def _finished(
    transport: Transport, calls: list[Call], needed: Sequence[Handle], poll: Poll, patience: float, tries: int
) -> tuple[Any, list[Handle]]:
    """The value of the last call, and handles of all; what was lost is made again, and the calls are repeated."""
    for attempt in range(tries + 1):
        handles = transport.submit(calls)
        try:
            return _awaited(transport, handles, poll, patience), handles
        except Lost as error:
            transport.cancel(handles)
            if attempt == tries:
                raise RowsLost(f"{error} The round was tried {tries + 1} times.") from error
            transport.restore(needed)
        except BaseException:
            transport.cancel(handles)
            raise
    raise AssertionError("unreachable")


def _awaited(transport: Transport, handles: list[Handle], poll: Poll, patience: float) -> Any:
    """The value of the last handle, with a poll ten times a second."""
    last, heard, looked = None, time.monotonic(), time.monotonic()
    while True:
        if poll is not None:
            poll()
        try:
            return transport.result(handles[-1], LOOK)
        except NotYet:
            pass
        now = time.monotonic()
        if now - looked < LISTEN * patience:
            continue
        looked = now
        signs, blame = transport.signs(handles)
        if signs != last:
            last, heard = signs, now
        elif now - heard > patience:
            raise RowsLost(f"Nothing has happened on the cluster for {now - heard:.0f} seconds: {blame}.")
