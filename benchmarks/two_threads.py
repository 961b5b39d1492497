"""Coordinate steps on one problem with two threads: two blocks of rows that are combined after every pass.

    COORDWISE_DATA=folder python benchmarks/two_threads.py [--seconds 6] [--repeats 3]

Seconds to a duality gap of 1e-6 P(0) at kappa = mean|a_i|^2/(l2 n) = 300, and passes over all samples. "one thread" is
`coordwise.solve`. "two blocks" are those of `coordwise.solvers.at_once` (CoCoA+ with Nesterov's acceleration and
restarts), each of which has a thread; a round is a pass and a certificate. Methods take turns; medians.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import scipy.sparse as sp

import coordwise as cw
from coordwise.datasets import load
from coordwise.losses import get_loss
from coordwise.oracle import Oracle, Problem
from coordwise.samples import Block
from coordwise.samples.base import summed
from coordwise.samples.chunks import together
from coordwise.solvers.at_once import at_once

TOL, KAPPA = 1e-6, 300.0


class Halves:
    """Two blocks of rows at random, both of which are visited at the same time."""

    def __init__(self, A: Any, b: np.ndarray, pool: ThreadPoolExecutor) -> None:
        order = np.random.default_rng(0).permutation(len(b))
        halves = [np.sort(order[: len(b) // 2]), np.sort(order[len(b) // 2 :])]
        self.blocks, self.pool = [Block(A[half], b[half, None]) for half in halves], pool
        self.sizes = together([block.sizes for block in self.blocks])

    def visit(self, function: Callable[..., Any], *kept: Any, poll: Any = None, **sent: Any) -> Any:
        """See `Samples.visit`."""
        found = list(self.pool.map(lambda k: function(self.blocks[k], *(parts[k] for parts in kept), **sent), range(2)))
        return tuple(own for own, _ in found), summed([sums for _, sums in found])


def problems() -> dict[str, tuple[Any, np.ndarray]]:
    news20, w8a = load("news20"), load("w8a")
    lengths = np.sqrt(news20.A.multiply(news20.A).sum(axis=1))
    rng = np.random.default_rng(0)
    n, d, each = 200_000, 20_000, 20
    share = np.arange(1, d + 1) ** -0.7
    columns = rng.choice(d, size=n * each, p=share / share.sum()).astype(np.int32)
    A = sp.csr_array((rng.random(n * each) + 0.5, columns, np.arange(0, n * each + 1, each, dtype=np.int32)), (n, d))
    A.sum_duplicates()
    t = A @ (rng.standard_normal(d) * (rng.random(d) < 0.1))
    return {
        "news20, normalised": (sp.csr_array(sp.diags_array(1 / lengths) @ news20.A), news20.b),
        "w8a": (w8a.A, w8a.b),
        "200,000 x 20,000": (A, np.where(t + rng.standard_normal(n) * t.std() / 2 > 0, 1.0, -1.0)),
    }


def one_thread(A: Any, b: np.ndarray, loss: str, l2: float, most: float) -> tuple[float, float]:
    begun = time.perf_counter()
    result = cw.solve(cw.ERM(A, b, loss, lam=l2).dual(), tol=TOL, time_limit=most)
    return time.perf_counter() - begun if result.converged else math.inf, result.passes


def two_blocks(A: Any, b: np.ndarray, loss: str, l2: float, most: float) -> tuple[float, float]:
    with ThreadPoolExecutor(2) as pool:
        samples = Halves(A, b, pool)
        oracle = Oracle(samples, Problem(get_loss(loss), l2))  # type: ignore[arg-type]
        goal = TOL * oracle.zero()[1]
        begun, gap = time.perf_counter(), goal + 1
        for candidate in at_once(oracle, np.zeros(oracle.shape), goal, 0):
            gap = candidate.gap
            if time.perf_counter() - begun > most:
                break
        spent = time.perf_counter() - begun
    return spent if np.all(gap <= goal) else math.inf, oracle.work.entries / samples.sizes.nnz / 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    print(f"{'problem':20} {'loss':9} {'one thread':>18} {'two blocks':>18}  speed-up")
    for name, (A, b) in problems().items():
        l2 = A.multiply(A).sum() / len(b) / (KAPPA * len(b))
        for loss in ("logistic", "hinge"):
            runs = [[f(A, b, loss, l2, given.seconds) for f in (one_thread, two_blocks)] for _ in range(given.repeats)]
            (one, passes), (two, rounds) = (
                [statistics.median(run[k][j] for run in runs) for j in range(2)] for k in range(2)
            )
            print(
                f"{name:20} {loss:9} {one:7.2f} s {passes:6.0f} p {two:7.2f} s {rounds:6.0f} p  {one / two:.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
