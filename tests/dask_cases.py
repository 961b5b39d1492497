"""Small problems for clusters, workers in processes of their own, and an end to whatever hangs."""

import contextlib
import signal
from itertools import pairwise

import dask
import dask.array as da
import numpy as np
import scipy.sparse as sp
from distributed import Client, LocalCluster

LIMIT = 60  # seconds that a test may take


@contextlib.contextmanager
def cluster(workers=2):
    """A cluster on this machine with one thread per worker."""
    made = None
    with dask.config.set({"distributed.worker.daemon": True, "distributed.comm.timeouts.connect": "5s"}):
        try:
            made = LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                dashboard_address="127.0.0.1:0",
                host="127.0.0.1",
            )
            with Client(made) as client:
                yield made, client
        finally:
            if made is not None:
                with contextlib.suppress(KeyError):  # LocalCluster misses workers that came after others were killed
                    made.close()


@contextlib.contextmanager
def limited(seconds=LIMIT):
    """TimeoutError in the main thread after so many seconds."""

    def end(*_):
        raise TimeoutError(f"the test took more than {seconds} seconds")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def problem(n=280, d=6, seed=0):
    """Rows, targets, two classes, three classes, weights."""
    rng = np.random.default_rng(seed)
    A = np.where(rng.random((n, d)) < 0.6, rng.standard_normal((n, d)), 0.0)
    t = A @ rng.standard_normal(d) + 0.3 * rng.standard_normal(n) + 0.5
    return A, t, np.where(t > 0.5, 2.0, 1.0), np.digitize(t, [0.0, 1.0]) * 1.0, rng.integers(1, 4, n) * 1.0


def chunked(count, *arrays, storage="dense"):
    """Dask arrays in `count` chunks of rows; the first one with sparse blocks if asked for."""
    n = len(arrays[0])
    cuts = np.diff(np.linspace(0, n, count + 1).astype(int)).tolist()
    found = [da.from_array(a, chunks=(tuple(cuts), -1)[: a.ndim]) for a in arrays]
    if storage == "sparse":
        found[0] = found[0].map_blocks(sp.csr_array)
    return found


def parts(count, *arrays):
    """(X, y, ...) by parts."""
    cuts = np.linspace(0, len(arrays[0]), count + 1).astype(int)
    return [tuple(a[i:j] for a in arrays) for i, j in pairwise(cuts)]


def rows(k, count):
    """A part of the problem with its targets, made where it is needed."""
    A, t, *_ = problem()
    return parts(count, A, t)[k]
