"""Descent on functions given by callables: in Python line by line, on compiled ones in the core."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from coordwise import kernels, sampling
from coordwise.compiled import PARTIAL, PARTIAL_OF_IMAGE, PROX, VALUE, Compiled, compiled
from coordwise.recursions import Recursion
from coordwise.rows import Rows
from coordwise.validation import FloatArray, check_callable

__all__ = ["Descent", "Functions"]


class Descent(Protocol):
    """Steps of a method from x0 on."""

    @property
    def steps(self) -> int:
        """Steps taken."""

    def advance(self, steps: int, seconds: float) -> None:
        """At most so many steps, for at most about so long (negative: no limit)."""

    def point(self) -> FloatArray:
        """The current iterate, an array of its own."""

    def error(self, x: FloatArray) -> float:
        """sqrt(sum_i L_i (x_i - prox_i(x_i - g_i/L_i, 1/L_i))^2)."""


@dataclass(frozen=True)
class Functions:
    """The functions of one problem, either all of Python or all compiled; `value` may be either in both cases."""

    value: Callable[[FloatArray], float]
    partial: Any
    prox: Any
    B: Rows | None
    reads: tuple[NDArray[np.int64], NDArray[np.int64]] | None

    @classmethod
    def of(cls, value: Any, partial: Any, prox: Any, B: Any, reads: Any, n: int) -> Functions:
        """Checked."""
        image = None if B is None else Rows(B, "columns", argument="B")
        if image is not None and image.count != n:
            raise ValueError(f"B has {image.count} columns; it must have one per variable, {n}.")
        if image is not None and reads is not None:
            raise ValueError("reads is for functions of x; with B, a partial derivative reads the image: leave it out.")
        partial = _function("partial", partial, PARTIAL if image is None else PARTIAL_OF_IMAGE)
        if prox is not None:
            prox = _function("prox", prox, PROX)
            if isinstance(prox, Compiled) != isinstance(partial, Compiled):
                one, other = ("partial", "prox") if isinstance(partial, Compiled) else ("prox", "partial")
                raise TypeError(
                    f"{one} is a compiled function and {other} is not; give both compiled (a compiled prox is "
                    f"'{PROX.text('prox')}') or both in Python."
                )
        found = _function("value", value, VALUE)
        if isinstance(found, Compiled):
            address = found.address
            value = lambda x: kernels.value_at(address, x)  # noqa: E731
        return cls(value, partial, prox, image, None if reads is None else _pattern(reads, n))

    @property
    def are_compiled(self) -> bool:
        """Whether steps are taken in the core."""
        return isinstance(self.partial, Compiled)

    def descent(self, recursion: Recursion, x0: FloatArray, seed: int) -> Descent:
        """A run of the recursion from x0."""
        cells = sampling.alias_cells(recursion.p)
        if not self.are_compiled:
            return PythonDescent(self, recursion, x0, _stream(seed, cells))
        return kernels.FunctionRun(
            self.partial.address,
            None if self.prox is None else self.prox.address,
            recursion.plan(),
            matrix=self.B,
            reads=self.reads,
            L=recursion.L,
            x0=x0,
            cells=cells,
            seed=seed,
        )


class PythonDescent:
    """Line by line on full vectors (`coordwise.reference`)."""

    def __init__(self, functions: Functions, recursion: Recursion, x0: FloatArray, indices: Iterator[int]) -> None:
        self._partial, self._prox, self._B = functions.partial, functions.prox, functions.B
        self._L, self._x, self.steps = recursion.L, x0, 0
        self._run = recursion.steps(self._at, self._prox, x0, indices)

    def _image(self, x: FloatArray) -> FloatArray:
        assert self._B is not None
        return self._B.combine(np.ascontiguousarray(x)[:, None])[:, 0]

    def _at(self, i: int, x: FloatArray) -> float:
        return self._partial(i, x) if self._B is None else self._partial(i, x[i], self._image(x))

    def _gradient(self, x: FloatArray) -> FloatArray:
        if self._B is None:
            return np.array([self._partial(i, x) for i in range(len(x))])
        v = self._image(x)
        return np.array([self._partial(i, x[i], v) for i in range(len(x))])

    def advance(self, steps: int, seconds: float) -> None:
        """See `Descent`."""
        until = np.inf if seconds < 0 else time.perf_counter() + seconds
        for _ in range(steps):
            self._x = next(self._run)
            self.steps += 1
            if time.perf_counter() >= until:
                break

    def point(self) -> FloatArray:
        """See `Descent`."""
        return self._x

    def error(self, x: FloatArray) -> float:
        """See `Descent`."""
        g, L = self._gradient(x), self._L
        if self._prox is None:
            return float(np.sqrt(np.sum(g**2 / L)))
        moved = np.array([self._prox(i, x[i] - g[i] / L[i], 1 / L[i]) for i in range(len(x))])
        return float(np.sqrt(np.sum(L * (x - moved) ** 2)))


def _function(argument: str, given: Any, signature: Any) -> Any:
    found = compiled(argument, given, signature)
    if found is not None:
        return found
    check_callable(argument, given, optional=False)
    return given


def _pattern(reads: Any, n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Places and starts of the entries of x that each partial derivative reads."""
    if not sp.issparse(reads):
        raise TypeError(
            f"reads must be a scipy sparse array with an entry (i, j) where partial(i, x) reads x_j, not "
            f"{type(reads).__name__}."
        )
    if reads.shape != (n, n):
        raise ValueError(f"reads has shape {reads.shape}; it must have shape ({n}, {n}).")
    rows = reads.tocsr()
    return rows.indices.astype(np.int64), rows.indptr.astype(np.int64)


def _stream(seed: int, cells: Any) -> Iterator[int]:
    block, k = 4096, 0
    while True:
        yield from sampling.draw_weighted(seed, cells, block, first=k).tolist()
        k += block
