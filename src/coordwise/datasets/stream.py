"""Samples that a function yields in batches, again and again: a source that keeps only numbers per sample."""

from __future__ import annotations

import copy
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from coordwise.choose.machine import CHUNKS
from coordwise.datasets.folder import Rows
from coordwise.datasets.sources.arrays import checked_matrix
from coordwise.samples.base import Price, Sizes
from coordwise.samples.block import Block, Rowless
from coordwise.samples.chunks import Chunks
from coordwise.samples.moved import moved
from coordwise.samples.source import Targets, Weights
from coordwise.validation import FloatArray, check_array, check_callable

__all__ = ["Stream"]

HEAD = 256  # rows that tell where features and targets lie


class Stream:
    """The samples of (X, y) or (X, y, s) batches that ``make_batches()`` yields, a fresh iterator for every pass.

    The first pass is made now; of each sample its target, its weight and its squared norm are kept. Later passes must
    yield the same batches: their shapes and targets are compared.

    Parameters
    ----------
    make_batches : callable
        X is a dense or sparse matrix, y has a row for each of its rows, and s, if there is one, is >= 0.

    Attributes
    ----------
    y : array of shape (n,) or (n, K)
        Targets, as they came.

    Raises
    ------
    TypeError, ValueError
        If a batch is none, if there are no samples, or if a later pass yields other batches.
    """

    feature_names: tuple[str, ...] | None = None

    def __init__(self, make_batches: Callable[[], Iterable[Any]]) -> None:
        check_callable("make_batches", make_batches, optional=False)
        self.make_batches = make_batches
        self._rows: list[int] = []
        self._seen: list[NDArray[Any]] = []  # targets of each batch, which tell a later pass apart from the first
        weights: list[FloatArray] = []
        norms2: list[FloatArray] = []
        kinds: set[np.dtype[Any]] = set()
        self.nnz, d = 0, 0
        for k, (X, y, s) in enumerate(_batches(make_batches)):
            if k == 0:
                d, self._head = int(X.shape[1]), X[:: max(X.shape[0] // HEAD, 1)].copy()
            if X.shape[1] != d:
                raise ValueError(f"X of batch {k} has {X.shape[1]} columns, and those before it {d}.")
            if len(weights) != (0 if s is None else k):
                raise ValueError(f"batch {k}: all batches must have weights, or none.")
            if k > 0 and y.shape[1:] != self._seen[0].shape[1:]:
                raise ValueError(f"y of batch {k} has shape {y.shape}, and batch 0 had {self._seen[0].shape}.")
            block = Block(X, np.zeros((X.shape[0], 1)))
            self._rows.append(X.shape[0])
            self._seen.append(y.copy())  # a generator may fill the same array again
            weights += [] if s is None else [s.copy()]
            norms2.append(block.rows.norms2())
            self.nnz += block.rows.nnz
            kinds.add(X.dtype)
        if not self._seen:
            raise ValueError("make_batches() yielded no samples.")
        self.y = np.concatenate(self._seen)
        self._s: FloatArray | None = np.concatenate(weights) if weights else None
        self._own = self._s
        if self._s is not None and not np.any(self._s > 0):
            raise ValueError("sample weights must have at least one positive entry.")
        self._norms2, self.shape = np.concatenate(norms2), (len(self.y), d)
        self.dtype = np.dtype(np.float32 if kinds == {np.dtype(np.float32)} else np.float64)
        self._targets: FloatArray | None = None

    def __repr__(self) -> str:
        n, d = self.shape
        return f"Stream({n:,} x {d:,}, {self.nnz:,} entries, {self.dtype}, {len(self._rows)} batches)"

    @property
    def weighted(self) -> bool:
        """Whether samples have weights."""
        return self._s is not None

    @property
    def target_shape(self) -> tuple[int, ...]:
        """() for one target per sample, (K,) for K."""
        return tuple((self.y if self._targets is None else self._targets).shape[1:])

    @property
    def targets(self) -> FloatArray:
        """All of them, as numbers."""
        if self._targets is None:
            self._targets = check_array("y", self.y)
        return self._targets

    def beside(self, y: Any = None, s: Any = None) -> Stream:
        """The same samples with other targets or weights."""
        other = copy.copy(self)
        if y is not None:
            other._targets = check_array("y", y)
        if s is not None:
            other._s = check_array("sample_weight", s, (self.shape[0],))
        return other

    def labels(self) -> tuple[FloatArray, FloatArray]:
        """The distinct targets, ascending, and the sum of the weights of the samples with each (counts without)."""
        if self.target_shape != ():
            raise ValueError(f"y has {self.target_shape[0]} columns; classes need one.")
        values, codes = np.unique(self.targets, return_inverse=True)
        return values, np.bincount(codes, self._s, len(values)).astype(np.float64)

    def head(self) -> Rows:
        """Some first rows."""
        step = max(self._rows[0] // HEAD, 1)
        return Rows(self._head, self.targets[: self._rows[0] : step], None)

    def __iter__(self) -> Iterator[Rows]:
        begin = 0
        for k, (X, y, s) in enumerate(_batches(self.make_batches)):
            same = k < len(self._rows) and X.shape == (self._rows[k], self.shape[1])
            own = None if self._own is None else self._own[begin : begin + X.shape[0]]
            same = same and (own is None if s is None else own is not None and np.array_equal(s, own))
            if not same or not np.array_equal(y, self._seen[k]):
                raise ValueError(
                    f"batch {k} of a later pass differs from batch {k} of the first one in shape, targets or weights; "
                    "make_batches() must yield the same batches in the same order each time."
                )
            end = begin + X.shape[0]
            yield Rows(X, self.targets[begin:end], None if self._s is None else self._s[begin:end])
            begin = end
        if begin != self.shape[0]:
            raise ValueError(
                f"a later pass yielded {begin} samples, and the first one {self.shape[0]}; make_batches() must return "
                "a fresh iterator over the same batches each time."
            )

    def samples(
        self,
        targets: Targets | None = None,
        *,
        weights: Weights | None = None,
        constant: bool | float = False,
        threads: int = 1,
        shift: FloatArray | None = None,
    ) -> _InTurn:
        """The samples as solvers visit them, one batch in memory at a time; see `Folder.samples`."""
        b = self.targets if targets is None else check_array("targets(y)", targets(self.targets))
        b = b.reshape(self.shape[0], -1)
        s = self._s if weights is None else weights(self.targets, self._s)
        return _InTurn(self, b, s, constant, threads, shift)


class _InTurn(Chunks):
    """Blocks that are made of one batch after the other, in the thread that visits them."""

    def __init__(
        self,
        stream: Stream,
        b: FloatArray,
        s: FloatArray | None,
        constant: bool | float,
        threads: int,
        shift: FloatArray | None,
    ) -> None:
        self.stream, self.b, self.s = stream, b, s
        self.constant, self.threads, self.shift = constant, threads, shift
        self.price = Price(*CHUNKS)
        n, d = stream.shape
        total, norms2 = float(n if s is None else s.sum()), stream._norms2
        squares = float(norms2.sum() if s is None else norms2 @ s)
        self._sizes = Sizes(n, d + bool(constant), b.shape[1], stream.nnz, total, squares)

    def _blocks(self, *, rowless: bool = False) -> Generator[Block]:
        begin = 0
        if rowless:
            for m in self.stream._rows:
                end = begin + m
                yield Rowless(self.b[begin:end], None if self.s is None else self.s[begin:end], threads=self.threads)
                begin = end
            return
        for rows in self.stream:
            end = begin + rows.X.shape[0]
            X = rows.X if self.shift is None else moved(rows.X, self.shift)
            s = None if self.s is None else self.s[begin:end]
            yield Block(X, self.b[begin:end], s, constant=self.constant, threads=self.threads)
            begin = end


def _batches(make_batches: Callable[[], Iterable[Any]]) -> Iterator[tuple[Any, NDArray[Any], FloatArray | None]]:
    """One pass, checked batch by batch; empty batches are left out."""
    found = make_batches()
    if not isinstance(found, Iterable):
        raise TypeError(f"make_batches() must return an iterable of batches, not {type(found).__name__}.")
    for k, batch in enumerate(found):
        if not isinstance(batch, (tuple, list)) or len(batch) not in (2, 3):
            raise TypeError(f"batch {k} is a {type(batch).__name__}; it must be (X, y) or (X, y, s).")
        X, y = batch[0], np.asarray(batch[1])
        if (sp.issparse(X) or np.ndim(X) == 2) and X.shape[0] == 0:
            continue
        X = checked_matrix(X, f"X of batch {k}")
        if y.ndim not in (1, 2) or len(y) != X.shape[0]:
            raise ValueError(f"y of batch {k} has shape {y.shape}, and X has {X.shape[0]} rows.")
        if y.dtype.kind == "f" and not np.all(np.isfinite(y)):
            raise ValueError(f"y of batch {k} holds NaN or infinity; remove such samples.")
        s = None if len(batch) == 2 or batch[2] is None else check_array(f"s of batch {k}", batch[2], (X.shape[0],))
        if s is not None and np.any(s < 0):
            raise ValueError(f"s of batch {k} has negative entries; weights are at least 0.")
        yield X, y, s
