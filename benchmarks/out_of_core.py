"""A logistic regression larger than memory: peak memory, and time per pass against memory and against the disk.

    python benchmarks/out_of_core.py [--size 20GB] [--tol 1e-4] [--threads 1] [--folder FOLDER] [--limit 4GB]

Sparse rows (100 entries each, 12 bytes per entry) go from an iterator straight through `coordwise.datasets.convert`
into a folder, which is removed afterwards unless it is named. The fit runs in a process of its own, under a control
group with `memory.max` where one can be made. It asks the system to drop every chunk after each visit, so that all
reads come from the disk. Peak memory is the largest RssAnon of /proc/PID/status, sampled every 20 ms.

A pass here is a visit that reads all samples once and makes two products with them. Its bounds are the same products
with samples in memory (one chunk, scaled), and a plain sequential read of the same files; both are measured in this
run, the read with the files dropped from the system's cache.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from coordwise import datasets
from coordwise.losses import get_loss
from coordwise.oracle import Oracle, Problem
from coordwise.samples import Block, Memory

PER_ROW, FEATURES, BATCH = 100, 5_000, 20_000
ENTRY = 12  # bytes: float64 and int32
UNITS = {"KB": 1e3, "MB": 1e6, "GB": 1e9}


def bytes_of(text: str) -> float:
    """The number that a text such as 20GB stands for."""
    return float(text[:-2]) * UNITS[text[-2:].upper()]


def batches(rows: int) -> Iterator[tuple[sp.csr_array, np.ndarray]]:
    """Samples of which the labels follow a logistic model; one entry per row in each hundredth of the features."""
    width = FEATURES // PER_ROW
    truth = np.random.default_rng(0).standard_normal(FEATURES) / np.sqrt(PER_ROW)
    for first in range(0, rows, BATCH):
        m, rng = min(BATCH, rows - first), np.random.default_rng([1, first])
        columns = rng.integers(0, width, (m, PER_ROW), dtype=np.int32) + width * np.arange(PER_ROW, dtype=np.int32)
        indptr = np.arange(0, m * PER_ROW + 1, PER_ROW, dtype=np.int32)
        A = sp.csr_array((rng.standard_normal(m * PER_ROW), columns.ravel(), indptr), shape=(m, FEATURES))
        yield A, np.where(rng.random(m) < 1 / (1 + np.exp(-(A @ truth))), 1.0, -1.0)


def drop(folder: datasets.Folder) -> None:
    """Take all files out of the system's cache."""
    for file in folder.path.iterdir():
        descriptor = os.open(file, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def sequential(folder: datasets.Folder) -> float:
    """Seconds of a plain read of all files, from the disk."""
    drop(folder)
    begun, buffer = time.perf_counter(), bytearray(1 << 22)
    for file in sorted(folder.path.iterdir()):
        with open(file, "rb", buffering=0) as stream:
            while stream.readinto(buffer):
                pass
    return time.perf_counter() - begun


def one_pass(oracle: Oracle) -> list[float]:
    """Seconds of three visits with two products each."""
    point = oracle.at(np.zeros(oracle.shape))  # the checksums are compared the first time
    curvature, p, seconds = oracle.curvature(point), np.ones(oracle.shape), []
    assert np.all(curvature.diagonal > 0)  # a visit of its own, before the clock runs
    for _ in range(3):
        begun = time.perf_counter()
        curvature.times(p)
        seconds.append(time.perf_counter() - begun)
    return seconds


def child(path: str, tol: float, threads: int) -> None:
    """The fit; figures as JSON on standard output."""
    from coordwise.estimators import LogisticRegression

    folder = datasets.Folder(path, keep=0)
    peak, done = [anonymous()], threading.Event()

    def sample() -> None:
        while not done.wait(0.02):
            peak[0] = max(peak[0], anonymous())

    before = anonymous()
    threading.Thread(target=sample, daemon=True).start()
    begun = time.perf_counter()
    model = LogisticRegression(tol=tol, n_jobs=threads, max_iter=1000).fit(folder)
    seconds = time.perf_counter() - begun
    done.set()
    outcome = model.result_.results[0]
    found = {
        "seconds": seconds,
        "gap": model.dual_gap_ / model.result_.scale[0],
        "passes": model.passes_,
        "visits": outcome.work.rounds,
        "strategy": model.strategy_,
        "converged": model.result_.converged,
        "peak": peak[0],
        "before": before,
    }
    print(json.dumps(found))


def anonymous() -> int:
    """Bytes of memory of this process that no file backs."""
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("/proc/self/status has no RssAnon")


@contextlib.contextmanager
def group(limit: float) -> Iterator[pathlib.Path | None]:
    """A control group with `memory.max`, or None where none can be made."""
    place = pathlib.Path("/sys/fs/cgroup") / f"coordwise-{os.getpid()}"
    try:
        place.mkdir()
        (place / "memory.max").write_text(str(int(limit)))
    except OSError as error:
        print(f"no control group ({error}): memory is measured, and not limited")
        with contextlib.suppress(OSError):
            place.rmdir()
        yield None
        return
    try:
        yield place
    finally:
        with contextlib.suppress(OSError):
            place.rmdir()


def fit(path: pathlib.Path, tol: float, threads: int, limit: float) -> dict[str, float]:
    """Run `child`, in a control group if there is one."""
    command = [sys.executable, __file__, "--child", str(path), "--tol", str(tol), "--threads", str(threads)]
    with group(limit) as place:

        def enter() -> None:
            if place is not None:
                (place / "cgroup.procs").write_text(str(os.getpid()))

        done = subprocess.run(command, stdout=subprocess.PIPE, preexec_fn=enter, check=True)
        return dict(json.loads(done.stdout), limited=place is not None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="20GB", help="of the folder")
    parser.add_argument("--tol", type=float, default=1e-4)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--limit", default="4GB", help="of the control group")
    parser.add_argument("--folder", type=pathlib.Path, help="kept, and used again if it is there")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(given.child, given.tol, given.threads)
        return
    rows = int(bytes_of(given.size) / ENTRY / PER_ROW)
    scratch = None if given.folder else tempfile.mkdtemp(prefix="out-of-core-")
    path = given.folder or pathlib.Path(scratch or "") / "samples"
    try:
        report(path, rows, given.tol, given.threads, bytes_of(given.limit))
    finally:
        if scratch is not None:
            shutil.rmtree(scratch)


def report(path: pathlib.Path, rows: int, tol: float, threads: int, limit: float) -> None:
    """Convert, measure, fit, print."""
    if not path.exists():
        begun = time.perf_counter()
        folder = datasets.convert(batches(rows), path)
        print(f"written in {time.perf_counter() - begun:.0f} s", flush=True)
    folder = datasets.Folder(path, keep=0)
    print(f"{folder}, {folder.bytes / 1e9:.1f} GB", flush=True)
    disk = sequential(folder)
    print(f"sequential read {disk:.1f} s, {folder.bytes / 1e6 / disk:.0f} MB/s", flush=True)
    problem = Problem(get_loss("logistic"), 1 / folder.shape[0], True)
    X, y, _ = folder.chunk(0)
    block = Block(sp.csr_array(X, copy=True), np.array(y)[:, None], constant=True, threads=threads)
    scale = folder.nnz / block.rows.nnz
    memory = statistics.median(one_pass(Oracle(Memory(block), problem))) * scale
    drop(folder)
    there = statistics.median(one_pass(Oracle(folder.samples(constant=True, threads=threads), problem)))
    bound = max(memory, disk)
    print(f"a pass with two products: {memory:.1f} s at the rate of memory, {there:.1f} s from the disk")
    print(f"that is {bound / there:.0%} of the smaller of both rates", flush=True)
    drop(folder)
    found = fit(path, tol, threads, limit)
    print(f"LogisticRegression(tol={tol:g}): gap {found['gap']:.2g} of P(0), converged: {found['converged']}")
    print(f"  {found['strategy']}")
    print(f"  {found['seconds']:.0f} s, {found['visits']:.0f} visits, {found['passes']:.0f} products")
    print(
        f"  peak anonymous memory {found['peak'] / 1e9:.2f} GB, {found['before'] / 1e9:.2f} GB of it before the fit; "
        f"limited to {limit / 1e9:.0f} GB by a control group: {found['limited']}"
    )


if __name__ == "__main__":
    main()
