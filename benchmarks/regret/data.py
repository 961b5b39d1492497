"""The data of the suite: generated families, and the sets of the folder that COORDWISE_DATA names."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

Table = tuple[Any, np.ndarray]  # the matrix and a score per sample, from which targets are made

REAL = ("news20", "w8a", "covtype.binary", "a9a", "mushrooms", "spambase", "casp", "austen_counts")


@dataclass(frozen=True)
class Source:
    """A matrix with a score per sample: `make(rng)` for generated data, else the name of a file."""

    family: str
    name: str
    make: Callable[[np.random.Generator], Table] | None = None
    scaled: str = ""  # "rows": to norm 1; "columns": standardised
    quick: bool = False

    def table(self) -> Table:
        """Matrix and scores; the same ones every time."""
        if self.make is not None:
            return self.make(np.random.default_rng(abs(hash_of(self.name))))
        from coordwise.datasets import load_file

        A, b = load_file(os.path.join(os.environ["COORDWISE_DATA"], self.name.split()[0] + ".svm.xz"), mmap=False)
        A = sp.csr_array(A)
        b = b if len(np.unique(b)) > 20 else np.where(b == np.unique(b)[-1 if len(np.unique(b)) == 2 else 0], 1.0, -1.0)
        if self.scaled == "rows":
            norms = np.sqrt(A.multiply(A).sum(axis=1))
            A = sp.csr_array(sp.diags_array(1 / np.where(norms > 0, norms, 1.0)) @ A)
        elif self.scaled == "columns":
            A = A.toarray()
            A = (A - A.mean(0)) / np.where(A.std(0) > 0, A.std(0), 1.0)
        return A, b


def hash_of(name: str) -> int:
    """A number from a name, the same in every process."""
    return int.from_bytes(name.encode(), "little") % (2**61 - 1)


def dense(n: int, d: int, *, correlation: float = 0.0, rows: str = "even", columns: float = 0.0, active: float = 1.0):
    """Gaussian rows, neighbouring columns correlated; row norms even, log-normal or a few huge; uneven columns."""

    def make(rng: np.random.Generator) -> Table:
        A = rng.standard_normal((n, d))
        if correlation:
            for j in range(1, d):
                A[:, j] = correlation * A[:, j - 1] + np.sqrt(1 - correlation**2) * A[:, j]
        t = A @ (rng.standard_normal(d) * (rng.random(d) < active)) / np.sqrt(max(d * active, 1.0))
        A *= norms(rng, n, rows)[:, None]
        A *= 10 ** rng.uniform(-columns, columns, d)
        return A, t

    return make


def words(n: int, d: int, length: float, *, rows: str = "even", counts: bool = False, unit: bool = False):
    """Short or long texts: words drawn with probability 1/rank, with how often they occur, or rows of norm 1."""

    def make(rng: np.random.Generator) -> Table:
        p = 1 / np.arange(1, d + 1)
        spread = np.exp(rng.standard_normal(n)) if counts else np.ones(n)
        lengths = 1 + rng.poisson(np.maximum(length * spread - 1, 0.0))
        index = rng.choice(d, lengths.sum(), p=p / p.sum()).astype(np.int32)
        A = sp.csr_array((np.ones(len(index)), index, np.r_[0, np.cumsum(lengths)].astype(np.int32)), shape=(n, d))
        A.sum_duplicates()
        if not counts:
            A.data[:] = 1.0
        t = A @ rng.standard_normal(d) / np.sqrt(length)
        scale = norms(rng, n, rows)
        if unit:
            scale = 1 / np.sqrt(np.maximum(A.multiply(A).sum(axis=1), 1.0))
        return sp.csr_array(sp.diags_array(scale) @ A), t

    return make


def one_hot(n: int, levels: list[int], numeric: int = 0):
    """Categories, some common and some rare, one column a level; and standardised numbers beside them."""

    def make(rng: np.random.Generator) -> Table:
        blocks = [sp.csr_array(rng.standard_normal((n, numeric)))] if numeric else []
        for count in levels:
            p = 1 / np.arange(1, count + 1)
            which = rng.choice(count, n, p=p / p.sum())
            blocks.append(sp.csr_array((np.ones(n), which, np.arange(n + 1)), shape=(n, count)))
        A = sp.csr_array(sp.hstack(blocks, format="csr"))
        return A, A @ rng.standard_normal(A.shape[1]) / np.sqrt(len(levels) + numeric)

    return make


def sprinkled(n: int, d: int, density: float, *, rows: str = "even"):
    """Gaussian entries at places drawn evenly."""

    def make(rng: np.random.Generator) -> Table:
        A = sp.random_array((n, d), density=density, format="csr", rng=rng, data_sampler=rng.standard_normal)
        t = A @ rng.standard_normal(d) / np.sqrt(max(density * d, 1.0))
        return sp.csr_array(sp.diags_array(norms(rng, n, rows)) @ A), t

    return make


def genes(n: int, d: int):
    """Expression: positive, skewed columns that follow a few factors."""

    def make(rng: np.random.Generator) -> Table:
        factors, loads = rng.standard_normal((n, 12)), rng.standard_normal((12, d)) * (rng.random((12, d)) < 0.3)
        A = np.log1p(np.exp(factors @ loads + rng.standard_normal((n, d))) * 10 ** rng.uniform(0, 2, d))
        return A - A.mean(0), factors[:, 0] + 0.5 * rng.standard_normal(n)

    return make


def norms(rng: np.random.Generator, n: int, kind: str) -> np.ndarray:
    """Factors for rows."""
    if kind == "even":
        return np.ones(n)
    if kind == "log-normal":  # three orders of magnitude between the 2nd and the 98th percentile
        return np.exp(rng.standard_normal(n) * np.log(1e3) / 4)
    return np.where(rng.random(n) < 0.01, 100.0, 1.0)  # a few huge


SOURCES = (
    Source("short rows", "50,000 texts of 5 of 1,500 words", words(50_000, 1500, 5), quick=True),
    Source("short rows", "200,000 texts of 5 of 300 words", words(200_000, 300, 5)),
    Source("short rows", "20,000 texts of 8 of 5,000 words", words(20_000, 5000, 8)),
    Source("short rows", "1,000,000 texts of 5 of 1,000 words", words(1_000_000, 1000, 5)),
    Source("short rows", "100,000 texts of 15 of 100,000 words", words(100_000, 100_000, 15)),
    Source("tall dense", "dense 40,000 x 300", dense(40_000, 300), quick=True),
    Source("tall dense", "dense 200,000 x 20", dense(200_000, 20)),
    Source("tall dense", "dense 20,000 x 8", dense(20_000, 8)),
    Source("tall dense", "dense 15,000 x 700", dense(15_000, 700, active=0.1)),
    Source("correlated", "neighbours 0.95, 20,000 x 200", dense(20_000, 200, correlation=0.95), quick=True),
    Source("correlated", "neighbours 0.99, 2,000 x 1,000", dense(2000, 1000, correlation=0.99, active=0.05)),
    Source("correlated", "neighbours 0.9, 400 x 6,000", dense(400, 6000, correlation=0.9, active=0.01)),
    Source("wide dense", "dense 300 x 5,000", dense(300, 5000, active=0.01)),
    Source("wide dense", "genes 200 x 12,000", genes(200, 12_000), quick=True),
    Source("wide dense", "dense 1,500 x 1,500", dense(1500, 1500, active=0.1)),
    Source("wide sparse", "sparse 300 x 30,000", sprinkled(300, 30_000, 0.005), quick=True),
    Source("wide sparse", "sparse 5,000 x 20,000", sprinkled(5000, 20_000, 0.003)),
    Source("counts", "counts 10,000 x 30,000", words(10_000, 30_000, 60, counts=True)),
    Source("counts", "unit rows 10,000 x 30,000", words(10_000, 30_000, 60, counts=True, unit=True), quick=True),
    Source("counts", "counts 3,000 x 8,000", words(3000, 8000, 120, counts=True)),
    Source("uneven rows", "log-normal rows, dense 20,000 x 100", dense(20_000, 100, rows="log-normal"), quick=True),
    Source("uneven rows", "log-normal rows, sparse 30,000 x 3,000", sprinkled(30_000, 3000, 0.01, rows="log-normal")),
    Source("uneven rows", "a few huge rows, sparse 20,000 x 10,000", sprinkled(20_000, 10_000, 0.002, rows="huge")),
    Source("uneven rows", "a few huge rows, dense 5,000 x 400", dense(5000, 400, rows="huge")),
    Source("uneven columns", "columns 1e-2 to 1e2, dense 30,000 x 40", dense(30_000, 40, columns=2.0), quick=True),
    Source("uneven columns", "columns 1e-2 to 1e2, dense 2,000 x 1,500", dense(2000, 1500, columns=2.0, active=0.1)),
    Source("one-hot", "one-hot 50,000 x 10 of 40", one_hot(50_000, [40] * 10), quick=True),
    Source("one-hot", "20 numbers and one-hot of 2,000", one_hot(50_000, [2000], numeric=20)),
    Source("one-hot", "one-hot 100,000 x 5 of 1,000", one_hot(100_000, [1000] * 5)),
    Source("small", "dense 200 x 5", dense(200, 5), quick=True),
    Source("small", "dense 500 x 13", dense(500, 13, correlation=0.5)),
    Source("small", "dense 1,000 x 50", dense(1000, 50, active=0.2)),
    Source("small", "dense 300 x 300", dense(300, 300, active=0.1)),
    Source("real", "w8a", quick=True),
    Source("real", "news20"),
    Source("real", "news20 rows", scaled="rows"),
    Source("real", "covtype.binary"),
    Source("real", "covtype.binary columns", scaled="columns"),
    Source("real", "a9a", quick=True),
    Source("real", "mushrooms"),
    Source("real", "spambase"),
    Source("real", "spambase columns", scaled="columns"),
    Source("real", "casp columns", scaled="columns", quick=True),
    Source("real", "casp"),
    Source("real", "austen_counts"),
)
