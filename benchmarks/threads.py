"""One problem with one thread and with several, in turns: Newton's method, Gram matrices and conjugate gradients.

    python benchmarks/threads.py [--threads 2] [--repeats 5] [--only WORD ...]

Data: w8a and covtype (COORDWISE_DATA names their folder), w8a ten times over, and generated ones. Linear algebra has as
many threads as the fit. Prints the median
seconds with one thread, the ratio of the medians, and the largest difference of the weights. Run it while nothing else
runs.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from coordwise import ERM
from coordwise.datasets import load
from coordwise.fitting.fit import fit
from coordwise.fitting.model import LinearModel


def dense(n: int, d: int) -> tuple[Any, Any]:
    """Columns of uneven sizes, noisy scores."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((n, d)) * rng.lognormal(0, 1, d)
    t = A @ rng.standard_normal(d)
    return A, t / t.std() + rng.standard_normal(n)


def texts(n: int, d: int) -> tuple[Any, Any]:
    """Rows of thirty words, drawn by Zipf's law."""
    rng = np.random.default_rng(0)
    places = np.minimum(rng.zipf(1.3, (n, 30)) - 1, d - 1)
    A = sp.csr_array((np.ones(n * 30), places.ravel(), np.arange(0, 30 * n + 1, 30)), shape=(n, d))
    A.sum_duplicates()
    t = A @ rng.standard_normal(d)
    return A, t / t.std() + rng.standard_normal(n)


def from_file(name: str, times: int = 1) -> tuple[Any, Any]:
    """A data set, several times over."""
    data = load(name)
    return sp.csr_array(sp.vstack([sp.csr_array(data.A)] * times)), np.tile(data.b, times)


DATA: dict[str, Callable[[], tuple[Any, Any]]] = {
    "w8a": lambda: from_file("w8a"),
    "w8a x 10": lambda: from_file("w8a", 10),
    "covtype": lambda: from_file("covtype"),
    "dense 200,000 x 200": lambda: dense(200_000, 200),
    "texts 300,000 x 20,000": lambda: texts(300_000, 20_000),
}
PROBLEMS = [
    ("newton", "logistic"),
    ("newton_cg", "logistic"),
    ("gram", "squared"),
    ("krylov", "squared"),
    ("newton_cg", "squared"),
]


def main() -> None:
    """One line for every problem."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD", help="problems with all of the words")
    args = parser.parse_args()
    for name, make in DATA.items():
        wanted = [p for p in PROBLEMS if all(word in " ".join((name, *p)) for word in args.only)]
        if not wanted:
            continue
        A, t = make()
        squares = float(A.multiply(A).sum() if sp.issparse(A) else np.einsum("ij,ij->", A, A))
        for strategy, loss in wanted:
            if strategy in ("newton", "gram") and A.shape[1] > 5000:
                continue
            b = np.where(t > np.median(t), 1.0, -1.0) if loss == "logistic" and len(np.unique(t)) > 2 else t
            lam = squares / len(b) ** 2 / 1e4  # kappa = 1e4
            seconds: dict[int, list[float]] = {1: [], args.threads: []}
            weights = {}
            for _ in range(args.repeats):
                for threads, found in seconds.items():
                    model = LinearModel(ERM(A, b, loss=loss, lam=lam), True)
                    begun = time.perf_counter()
                    with threadpool_limits(threads, "blas"):
                        done = fit(model, tol=1e-6, strategy=strategy, n_jobs=threads, max_passes=1e5)
                    found.append(time.perf_counter() - begun)
                    weights[threads] = done.w
                    assert done.converged, done.status
            one, many = (statistics.median(found) for found in seconds.values())
            apart = np.abs(weights[1] - weights[args.threads]).max() / np.abs(weights[1]).max()
            print(f"{name:24} {strategy:10} {loss:9} {one:8.3f} s  {one / many:5.2f}  {apart:.0e}", flush=True)


if __name__ == "__main__":
    main()
