"""Logistic regression on a Dask cluster of this machine: rounds, bytes and seconds to a gap, against dask-ml.

    COORDWISE_DATA=... python benchmarks/distributed.py [--data w8a covtype generated] [--workers 1 2] [--json FILE]
    python benchmarks/distributed.py --rounds

All libraries get the same persisted dask arrays on the same cluster, one partition per worker, without an intercept
(dask-ml would penalise it). dask-ml has no certificate: it is run with 8, 32, 128, ... iterations, and its time to an
accuracy is that of the shortest run whose P is within it of the certified minimum. Its solvers would scale the features
and so penalise other weights; this is switched off, so that all solve the same problem, except its newton, which knows
no penalty. Ratios within a table count; seconds are those of a machine.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
import warnings
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path

sys.path[:] = [place for place in sys.path if Path(place).resolve() != Path(__file__).resolve().parent]  # of this name

import dask
import dask.array as da
import numpy as np
import scipy.sparse as sp
from distributed import Client, LocalCluster, wait

import coordwise.dask as cd
from coordwise import datasets
from coordwise import estimators as ce
from coordwise.samples import Block, Memory
from coordwise.samples.cluster import Cluster
from coordwise.samples.dask import Dask
from coordwise.samples.transport import Call

TOLS = (1e-4, 1e-6)
PEERS = ("lbfgs", "admm", "newton")


@dataclass
class Row:
    """A library on a problem: seconds to each accuracy (None: not reached), and what it took."""

    data: str
    workers: int
    solver: str
    seconds: dict[str, float | None]
    rounds: float | None = None
    megabytes: float | None = None
    error: float | None = None  # (P - min P) / P(0) at the end
    note: str = ""
    runs: list[tuple[int, float, float]] = field(default_factory=list)  # iterations, seconds, error


def generated(n, d, density, seed=0):
    """Sparse rows with columns of unequal size, and labels of a noisy linear model."""
    rng = np.random.default_rng(seed)
    per = max(round(density * d), 1)
    weights = 1 / np.arange(1, d + 1) ** 0.5
    indices = rng.choice(d, size=(n, per), p=weights / weights.sum()).astype(np.int32)
    A = sp.csr_array((rng.standard_normal(n * per), indices.ravel(), np.arange(0, n * per + 1, per)), shape=(n, d))
    A.sum_duplicates()
    t = A @ rng.standard_normal(d)
    return A, np.where(t + rng.standard_normal(n) * t.std() > 0, 1.0, 0.0)


def loaded(name, options):
    """A matrix and labels 0 and 1."""
    if name == "generated":
        return generated(*options.size, options.density)
    found = datasets.load(name, mmap=False)
    return found.A, (found.b > 0).astype(float)


def objective(A, y, C):
    """P, on scores, relative to what it is at 0."""
    sign = 2 * y - 1

    def P(w):
        return (np.logaddexp(0, -sign * (A @ w)).sum() + w @ w / (2 * C)) / len(y)

    return P


def on_cluster(A, y, parts):
    """Persisted arrays with a chunk per part; blocks as they are, sparse or dense."""
    cuts = np.linspace(0, len(y), parts + 1).astype(int)
    chunks = tuple(np.diff(cuts).tolist())
    if sp.issparse(A):
        rows = [dask.delayed(A[i:j]) for i, j in pairwise(cuts)]
        blocks = [da.from_delayed(row, (n, A.shape[1]), A.dtype) for row, n in zip(rows, chunks, strict=True)]
        X = da.concatenate(blocks)
    else:
        X = da.from_array(A, chunks=(chunks, -1))
    X, t = X.persist(), da.from_array(y, chunks=(chunks,)).persist()
    wait([X, t])
    return X, t


def ours(name, workers, X, t, P, best, options):
    """One run per accuracy, each from the beginning."""
    row = Row(name, workers, "coordwise.dask", {})
    for tol in TOLS:
        begun = time.perf_counter()
        model = cd.LogisticRegression(C=options.C, tol=tol, fit_intercept=False, max_iter=10**6).fit(X, t)
        row.seconds[f"{tol:g}"] = time.perf_counter() - begun
        work = model.result_.results[0].work
        row.rounds, row.megabytes = float(work.rounds), work.bytes / 1e6
        row.error = (P(model.coef_[0]) - best) / np.log(2)
        row.note = model.strategy_.split(":")[0]
    return row


def single(name, A, y, P, best, options):
    """The same problem in this process."""
    row = Row(name, 0, "coordwise, one process", {})
    for tol in TOLS:
        begun = time.perf_counter()
        model = ce.LogisticRegression(C=options.C, tol=tol, fit_intercept=False, max_iter=10**6).fit(A, y)
        row.seconds[f"{tol:g}"] = time.perf_counter() - begun
        row.error, row.note = (P(model.coef_[0]) - best) / np.log(2), model.strategy_.split(":")[0]
    return row


def peer(name, workers, solver, X, t, P, best, options):
    """dask-ml with more and more iterations, until the finest accuracy or the limit of seconds is reached."""
    row = Row(name, workers, f"dask-ml {solver}", dict.fromkeys((f"{tol:g}" for tol in TOLS), None))
    try:
        from dask_ml.linear_model import LogisticRegression
    except ImportError as error:
        row.note = f"not installed ({error})"
        return row
    spent, iterations, last = 0.0, 8, None
    while spent < options.limit and iterations <= 2**14:
        begun = time.perf_counter()
        try:
            model = LogisticRegression(
                solver=solver,
                C=options.C,
                fit_intercept=False,
                max_iter=iterations,
                tol=1e-14,
                solver_kwargs={"normalize": False},
            )
            model.fit(X, t)
        except Exception as error:
            row.note = f"{type(error).__name__}: {error}"[:120]
            break
        seconds = time.perf_counter() - begun
        spent += seconds
        row.error = float((P(np.ravel(model.coef_)) - best) / np.log(2))
        row.runs.append((iterations, seconds, row.error))
        for tol in TOLS:
            if row.error <= tol and row.seconds[f"{tol:g}"] is None:
                row.seconds[f"{tol:g}"] = seconds
        if row.error <= min(TOLS) or (last is not None and iterations > 64 and row.error == last):
            break
        last, iterations = row.error, 4 * iterations
    return row


def echo(block, *, w):
    """A visit that sends w and returns it."""
    return None, [w]


def nothing(d):
    """Samples of two rows."""
    return Memory(Block(np.ones((2, d)), np.ones((2, 1))))


def rounds(workers):
    """Seconds of a round that computes nothing: the constants of docs/scaling.md and of `coordwise.choose.machine`."""
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None, memory_limit=0) as made,
        Client(made),
    ):
        transport = Dask(Client.current())
        print(f"{'partitions':>10} {'numbers':>10} {'ms':>8}   {workers} workers, least of 9")
        for count in (1, 2, 8, 32):
            for d in (100, 10_000, 100_000, 1_000_000):
                if count * d > 10_000_000:
                    continue
                samples = Cluster(transport, transport.submit([Call(nothing, (d,))] * count))
                w, times = np.random.default_rng(0).random((d, 1)), []
                for _ in range(10):
                    begun = time.perf_counter()
                    samples.visit(echo, w=w)
                    times.append(time.perf_counter() - begun)
                print(f"{count:10} {d:10} {1000 * min(times[1:]):8.1f}", flush=True)


def shown(row):
    """One line."""
    times = "  ".join(f"{'-' if s is None else f'{s:9.2f}':>9}" for s in row.seconds.values())
    rounds = "-" if row.rounds is None else f"{row.rounds:.0f}"
    sent = "-" if row.megabytes is None else f"{row.megabytes:.2f}"
    error = "-" if row.error is None else f"{row.error:.1e}"
    return f"{row.data:10} {row.workers:7} {row.solver:24} {times} {rounds:>7} {sent:>9} {error:>9}  {row.note}"


def main():
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=["w8a", "covtype", "generated"])
    parser.add_argument("--workers", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--size", nargs=2, type=int, default=[2_000_000, 1000], metavar=("N", "D"))
    parser.add_argument("--density", type=float, default=0.02)
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--peers", nargs="*", default=list(PEERS), help="solvers of dask-ml")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for all runs of a solver of dask-ml")
    parser.add_argument(
        "--rounds", action="store_true", help="only the time of a round, by partitions and numbers sent"
    )
    parser.add_argument("--json", help="where to write the rows")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.rounds:
        rounds(max(options.workers))
        return
    rows: list[Row] = []
    names = ("data", "workers", "solver", "s to 1e-4", "to 1e-6", "rounds", "MB", "error")
    print("{:10} {:>7} {:24} {:>9}  {:>9} {:>7} {:>9} {:>9}".format(*names))

    def add(row):
        rows.append(row)
        print(shown(row), flush=True)

    for name in options.data:
        A, y = loaded(name, options)
        P = objective(A, y, options.C)
        sure = ce.LogisticRegression(C=options.C, tol=1e-9, fit_intercept=False, max_iter=10**6).fit(A, y)
        best = P(sure.coef_[0]) - float(sure.dual_gap_)
        add(single(name, A, y, P, best, options))
        for workers in options.workers:
            with contextlib.ExitStack() as stack:
                cluster = stack.enter_context(
                    LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None, memory_limit=0)
                )
                stack.enter_context(Client(cluster))
                X, t = on_cluster(A, y, workers)
                add(ours(name, workers, X, t, P, best, options))
                if options.peers:
                    small = A.shape[0] * A.shape[1] * 8 < 2e9
                    if sp.issparse(A) and small:
                        X = X.map_blocks(lambda block: block.toarray(), meta=np.empty((0, 0))).persist()
                        wait(X)
                    for solver in options.peers:
                        add(peer(name, workers, solver, X, t, P, best, options))
    if options.json:
        with open(options.json, "w") as file:
            json.dump([asdict(row) for row in rows], file, indent=1)


if __name__ == "__main__":
    main()
