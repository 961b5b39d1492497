"""Generated stand-ins for the paper's datasets, for machines that do not have them.

They share with the originals what a coordinate method sees: the shape, the number of entries, the distribution of the
row norms (and with it Table 2's factors, within 1 %), row lengths that go with the norms, columns of very unequal
popularity or scale, and classes of the original sizes that a linear model predicts in part. The norms are a parametric
family at the quantiles (i + 1/2)/n, in random order; every number below was fitted or rounded, none is data.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from coordwise.datasets.catalogue import CATALOGUE, get_entry
from coordwise.datasets.dataset import Dataset, Source, fingerprint
from coordwise.validation import FloatArray, check_count, check_number

Generator = np.random.Generator


def stand_in(name: str, seed: int = 0, scale: float = 1.0, *, reason: str = "") -> Dataset:
    """Random data of a dataset's shape, row norms and class sizes.

    Parameters
    ----------
    name : {"news20", "w8a", "covtype"}
        Which dataset to stand in for.
    seed : int
        Other seeds give other data with the same row norms.
    scale : float
        The share of the rows to generate, 0 < scale <= 1; Table 2's factors are met at 1.
    reason : str
        Why a stand-in is needed, for `Dataset.origin`.

    Returns
    -------
    Dataset
        With `real` False.
    """
    entry = get_entry(name)
    share = check_number("scale", scale, low=0, high=1, strictly=True)
    rng = np.random.default_rng(check_count("seed", seed))
    A, classes = GENERATORS[name](rng, max(round(share * entry.n), 50))
    origin = f"generated stand-in: random rows with the shape and the row norms of {name}, not its data"
    return Dataset(
        name,
        A,
        entry.labels(classes),
        classes,
        Source.STAND_IN,
        f"{origin} ({reason})" if reason else origin,
        fingerprint(A, classes),
    )


def _news20(rng: Generator, n: int) -> tuple[sp.csr_array, FloatArray]:
    """Word counts: long documents have large norms, few words are in most of them; 20 classes of one size."""
    entry = CATALOGUE["news20"]
    norms2 = rng.permutation(np.maximum(_lognormals(n, 0.86, (4.623, 0.965), (5.275, 2.278)), 1))
    x = np.log(norms2)
    wanted = np.exp(0.098 + 1.018 * x - 0.0373 * x**2 + 0.27 * rng.standard_normal(n))
    wanted *= entry.nnz * n / entry.n / wanted.sum()
    lengths = np.clip(np.rint(wanted), 1, np.maximum(norms2, 1)).astype(np.int64)
    indices, indptr = _columns(rng, lengths, np.power(np.arange(entry.d) + 150.0, -1.2))
    counts = np.minimum(rng.zipf(2.6, len(indices)), 500).astype(float)
    size2 = np.add.reduceat(counts**2, indptr[:-1])
    values = counts * np.repeat(np.sqrt(norms2 / size2), lengths)
    A = _csr(values, indices, indptr, (n, entry.d))
    telling = np.zeros((entry.d, 20))  # each class is told by some words, mostly frequent ones
    chosen = rng.choice(indices, (100, 20))
    telling[chosen, np.arange(20)] = 1.0
    scores = (A @ telling) / np.sqrt(norms2)[:, None]
    scores += 0.1 * scores.std() * rng.standard_normal(scores.shape)
    classes = np.full(n, 20.0)
    free = np.ones(n, bool)
    for k in range(19):  # each class takes the highest scores among the rows that are left
        highest = np.argsort(np.where(free, -scores[:, k], np.inf), kind="stable")[: round(n / 20)]
        classes[highest], free[highest] = k + 1.0, False
    return A, classes


def _w8a(rng: Generator, n: int) -> tuple[sp.csr_array, FloatArray]:
    """Keywords present or not: values 1, some rows empty, 3 % positive."""
    entry = CATALOGUE["w8a"]
    empty = round(4_203 * n / entry.n)
    lengths = np.zeros(n, np.int64)
    lengths[empty:] = np.clip(np.rint(13.499 * (-np.log1p(-_quantiles(n - empty))) ** (1 / 1.196)), 1, None)
    lengths = rng.permutation(lengths)
    rank = np.arange(entry.d)
    indices, indptr = _columns(rng, lengths, (rank + 8.0) ** -0.5 * np.exp(-rank / 110))
    A = _csr(np.ones(len(indices)), indices, indptr, (n, entry.d))
    scores = A @ rng.standard_normal(entry.d) / np.sqrt(np.maximum(lengths, 1)) + 0.3 * rng.standard_normal(n)
    scores[lengths == 0] = -np.inf
    return A, np.where(_highest(scores, round(0.02973 * n)), 1.0, -1.0)


def _covtype(rng: Generator, n: int) -> tuple[sp.csr_array, FloatArray]:
    """Ten measurements, three of them by far the largest, and two groups of indicators; all whole numbers."""
    entry = CATALOGUE["covtype"]
    norms2 = rng.permutation(np.clip(_lognormals(n, 0.86, (16.614, 0.481), (17.685, 0.225)), 3.8e6, 1e8))
    normal = rng.standard_normal
    dense = np.empty((n, 10))
    height = normal(n)
    dense[:, 1] = 360 * rng.random(n) ** 1.2
    dense[:, 2] = np.clip(rng.gamma(3.5, 4.0, n), 0, 66)
    dense[:, 3] = np.where(rng.random(n) < 0.04, 0, np.clip(30 + rng.exponential(250, n), 30, 1400))
    dense[:, 4] = np.clip(0.18 * dense[:, 3] + 0.1 * dense[:, 3] * normal(n), -173, 601)
    sun = normal(n)
    dense[:, 6] = np.clip(212 + 26 * sun, 0, 254)
    dense[:, 7] = np.clip(223 + 20 * normal(n), 0, 254)
    dense[:, 8] = np.clip(143 - 30 * sun + 22 * normal(n), 0, 254)
    others = dense[:, [1, 2, 3, 4, 6, 7, 8]]
    rest = norms2 - np.einsum("ij,ij->i", others, others) - 2  # what the three largest and the indicators leave
    dense[:, 0] = np.minimum(np.clip(2960 + 280 * height, 1859, 3858), np.sqrt(0.95 * rest))
    rest -= dense[:, 0] ** 2
    part = rng.beta(1.4, 1.0, n)
    dense[:, 5], dense[:, 9] = np.sqrt(part * rest), np.sqrt((1 - part) * rest)
    np.rint(dense, out=dense)
    area = _group(height + 0.8 * normal(n), np.array([0.45, 0.05, 0.44, 0.06]))
    soil = _group(height + 0.5 * normal(n), rng.permutation(1 / np.arange(2.0, 42.0)))
    values = np.ones((n, 12))
    values[:, :10] = dense
    places = np.empty((n, 12), np.int32)
    places[:, :10] = np.arange(10)
    places[:, 10], places[:, 11] = 10 + area, 14 + soil
    there = values != 0
    indptr = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
    A = _csr(values[there], places[there], indptr, (n, entry.d))
    scores = (dense - dense.mean(axis=0)) / np.maximum(dense.std(axis=0), 1) @ (0.3 * normal(10))
    scores += 0.5 * normal(4)[area] + 0.7 * normal(40)[soil] + normal(n)
    return A, np.where(_highest(scores, round(0.4876 * n)), 2.0, 1.0)


GENERATORS: dict[str, Callable[[Generator, int], tuple[sp.csr_array, FloatArray]]] = {
    "news20": _news20,
    "w8a": _w8a,
    "covtype": _covtype,
}


def _quantiles(n: int) -> FloatArray:
    return (np.arange(n) + 0.5) / n


def _lognormals(n: int, share: float, first: tuple[float, float], second: tuple[float, float]) -> FloatArray:
    """A mixture of two log-normal distributions (mean and deviation of the logarithm), at its parts' quantiles."""
    k = round(share * n)
    parts = [mean + deviation * ndtri(_quantiles(m)) for m, (mean, deviation) in ((k, first), (n - k, second))]
    return np.exp(np.concatenate(parts))


def _columns(
    rng: Generator, lengths: NDArray[np.int64], popularity: NDArray[np.floating]
) -> tuple[NDArray[np.int64], ...]:
    """Ordered distinct columns for rows of given lengths, drawn one after another with given weights; and indptr."""
    n, d = len(lengths), len(popularity)
    cumulative = np.cumsum(rng.permutation(popularity))
    cumulative /= cumulative[-1]
    done: list[NDArray[np.int64]] = []
    drawn = np.empty(0, np.int64)  # row * d + column, of the rows that lack some yet
    missing = lengths
    while missing.any():
        new = np.minimum(np.searchsorted(cumulative, rng.random(int(missing.sum())), side="right"), d - 1)
        drawn = np.sort(np.concatenate([drawn, np.repeat(np.arange(n) * d, missing) + new]))
        drawn = drawn[np.concatenate([[True], drawn[1:] != drawn[:-1]])]
        row = drawn // d
        missing = np.where(missing > 0, lengths - np.bincount(row, minlength=n), 0)
        lacking = missing[row] > 0
        done.append(drawn[~lacking])
        drawn = drawn[lacking]
    placed = np.sort(np.concatenate([*done, drawn]))
    return placed % d, np.concatenate([[0], np.cumsum(lengths)])


def _group(scores: FloatArray, shares: FloatArray) -> NDArray[np.int64]:
    """Groups of given relative sizes that follow normally distributed scores."""
    ends = np.cumsum(shares / shares.sum())[:-1]
    return np.searchsorted(ends, ndtr(scores / scores.std()))


def _highest(scores: FloatArray, count: int) -> NDArray[np.bool_]:
    chosen = np.zeros(len(scores), bool)
    chosen[np.argpartition(-scores, count - 1)[:count]] = True
    return chosen


def _csr(
    values: FloatArray, indices: NDArray[np.integer], indptr: NDArray[np.integer], shape: tuple[int, int]
) -> sp.csr_array:
    """With values that single precision holds, as those of the originals."""
    values = values.astype(np.float32).astype(np.float64)
    A = sp.csr_array((values, indices.astype(np.int32), indptr.astype(np.int32)), shape=shape)
    A.has_sorted_indices = A.has_canonical_format = True
    return A
