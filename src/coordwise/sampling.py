"""Which coordinate comes next: distributions, the alias table, and the random stream in NumPy.

The compiled kernel and everything here draw the same indices from the same seed. Draw number k of seed s is made from
one 64-bit word, a function of (s, k) alone:

    word(k) = splitmix64(s + (k + 1) * 0x9e3779b97f4a7c15)

For a distribution p over N coordinates (or blocks of them), word * N = cell * 2^64 + fraction; the index is `cell` if
the upper 32 bits of the fraction lie below the cell's threshold, else the cell's alias. For random permutations, epoch
e uses draws eN .. eN + N - 1: position j of 0..N-1 is swapped with position j + floor(word * (N - j) / 2^64).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from coordwise.kernels import alias_cells
from coordwise.validation import FloatArray

__all__ = ["alias_cells", "draw_permutations", "draw_weighted", "power_distribution", "words"]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def words(seed: int, first: int, count: int) -> NDArray[np.uint64]:
    """Words first .. first + count - 1 of the stream."""
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + (np.arange(first, first + count, dtype=np.uint64) + np.uint64(1)) * _GOLDEN
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def _scaled(word: NDArray[np.uint64], n: NDArray[np.uint64] | np.uint64) -> NDArray[np.uint64]:
    """floor(word * n / 2^64), n < 2^32."""
    with np.errstate(over="ignore"):
        return ((word >> _HALF) * n + (((word & _LOW) * n) >> _HALF)) >> _HALF


def draw_weighted(seed: int, cells: NDArray[np.uint32], count: int, first: int = 0) -> NDArray[np.intp]:
    """Indices first .. first + count - 1 of the stream over the distribution that `cells` came from."""
    n = np.uint64(len(cells))
    word = words(seed, first, count)
    cell = _scaled(word, n).astype(np.intp)
    with np.errstate(over="ignore"):
        fraction = (word * n) >> _HALF
    return np.where(fraction < cells[cell, 0], cell, cells[cell, 1]).astype(np.intp)


def draw_permutations(seed: int, n: int, count: int) -> NDArray[np.intp]:
    """The first `count` indices of the permutation stream over 0..n-1."""
    epochs = []
    for epoch in range(-(-count // n)):
        order = np.arange(n)
        ahead = _scaled(words(seed, epoch * n, n), np.arange(n, 0, -1, dtype=np.uint64)).astype(np.intp)
        for j in range(n - 1):
            k = j + ahead[j]
            order[j], order[k] = order[k], order[j]
        epochs.append(order)
    return np.concatenate(epochs)[:count].astype(np.intp) if epochs else np.empty(0, np.intp)


def power_distribution(L: FloatArray, power: float) -> FloatArray:
    """p_i proportional to L_i^power over the coordinates with L_i > 0; the others have p_i = 0."""
    p = L / L.max()  # powers of extreme scales would overflow
    if power == 0.5:
        p = np.sqrt(p)
    elif power != 1:
        p = np.power(p, power, where=L > 0, out=np.zeros_like(L))
    p /= p.sum()
    return p
