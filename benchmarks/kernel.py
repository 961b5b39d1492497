"""Speed of the kernel and of the driver around it; prints a table and writes JSON.

    python benchmarks/kernel.py [--repeats 9] [--json kernel.json] [--only news20]

Every figure is a ratio of two things timed alternately in this run, the median over the repeats. "products" is scipy's
A @ w plus A.T @ y, scaled to the entries that the steps touched.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

import coordwise as cw
from coordwise.datasets import load
from coordwise.starting import start

LAMBDAS = {"news20": 1e-3, "w8a": 1e-5, "covtype": 1.0}
LIMITS = {"news20": 1.4, "w8a": 1.9, "covtype": 6.0}


def timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def ratios(one: Callable[[], float], other: Callable[[], float], repeats: int) -> float:
    """Median of one()/other(), each pair timed back to back."""
    one(), other()
    return statistics.median(one() / other() for _ in range(repeats))


class Steps:
    """Time of n steps of a method, per entry touched or as it is."""

    def __init__(self, objective: cw.objectives.Objective, method: cw.methods.Method, cells=None, threads: int = 1):
        schedule = method.schedule(objective)
        if cells is not None:
            schedule = replace(schedule, cells=cells)
        self.run = start(objective, schedule, 0, objective.start(None), threads)
        self.cells = schedule.cells
        self.count, self.nnz = objective.rows.count, objective.rows.nnz

    def seconds(self) -> float:
        """Of n steps."""
        return timed(lambda: self.run.advance(steps=self.count))

    def seconds_per_pass(self) -> float:
        """Of as many steps as touch nnz entries."""
        before = self.run.entries
        return self.seconds() / ((self.run.entries - before) / self.nnz)


def products(A, repeats: int = 3) -> Callable[[], float]:
    """Median time of A @ w plus A.T @ y."""
    w, y, T = np.random.default_rng(0).standard_normal(A.shape[1]), np.ones(A.shape[0]), A.T

    def once() -> float:
        return statistics.median(timed(lambda: (A @ w, T @ y)) for _ in range(repeats))

    return once


def dataset_rows(name: str, repeats: int) -> list[dict]:
    data = load(name, mmap=False)
    A, b, classes, source = data.A, data.b, data.classes, data.origin
    problem = cw.ERM(A, b, lam=LAMBDAS[name])
    single = cw.ERM(A.astype(np.float32), b, lam=LAMBDAS[name])
    objective = problem.dual()
    accelerated = Steps(objective, cw.NUACDM())
    exact = Steps(objective, cw.SDCA(order="uniform"), cells=accelerated.cells)
    float32 = Steps(single.dual(), cw.NUACDM())
    rows = [
        ("n steps of NU_ACDM / products", ratios(accelerated.seconds_per_pass, products(A), repeats), LIMITS[name]),
        ("float32 / float64", ratios(float32.seconds, accelerated.seconds, repeats), 1.0),
        ("accelerated step / SDCA step", ratios(accelerated.seconds, exact.seconds, repeats), 1.3),
    ]
    if name == "news20":
        rows.append(("solve / bare kernel", driver(objective, repeats), 1.15))
        targets = np.where(classes[:, None] == np.unique(classes)[None], 1.0, -1.0)
        many = cw.ERM(A, targets, lam=LAMBDAS[name]).dual()
        for threads in (1, 2):
            block = Steps(many, cw.NUACDM(), threads=threads)
            title = f"{targets.shape[1]} outputs / 1 output, {threads} thread{'s' * (threads > 1)}"
            rows.append((title, ratios(block.seconds, accelerated.seconds, max(repeats // 2, 3)), 5.0))
    return [dict(data=name, source=source, figure=f, ratio=r, limit=limit) for f, r, limit in rows]


def driver(objective, repeats: int) -> float:
    """A whole solve to 1e-8 (set-up, certificates, history) against the same number of bare steps."""
    result = cw.solve(objective, cw.NUACDM())
    assert result.converged

    def bare() -> float:
        fresh = Steps(objective, cw.NUACDM())
        return timed(lambda: fresh.run.advance(steps=result.iterations))

    return ratios(lambda: timed(lambda: cw.solve(objective, cw.NUACDM())), bare, repeats)


def import_time(repeats: int) -> dict:
    """Seconds that `import coordwise` adds to numpy and scipy.sparse."""

    def run(code: str) -> float:
        code = f"import time, numpy, scipy.sparse; t = time.perf_counter(); {code}; print(time.perf_counter() - t)"
        return float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout)

    seconds = statistics.median(run("import coordwise") for _ in range(repeats))
    return dict(data="-", source="-", figure="import beyond numpy + scipy.sparse, seconds", ratio=seconds, limit=0.1)


MEMORY = """
import coordwise as cw
from coordwise.datasets import load
data = load({name!r}, mmap=False)
A, b = data.A, data.b
problem = cw.ERM(A, b, lam={lam!r})
cw.solve(cw.ERM(A[:100], b[:100], lam={lam!r}).dual(), max_passes=3)  # what the first solve of a process costs anyway
def status(key):
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith(key))
open("/proc/self/clear_refs", "w").write("5")  # the peak counts from here
before = status("VmRSS")
cw.solve(problem.dual(), max_passes=3)
print(status("VmHWM") - before, A.data.nbytes + A.indices.nbytes + A.indptr.nbytes)
"""


def memory(name: str) -> dict | None:
    """Peak memory of a solve over the budget: one copy of A, 80 bytes a coordinate, 16 bytes an image entry."""
    code = MEMORY.format(name=name, lam=LAMBDAS[name])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if done.returncode:
        print(f"memory on {name}: not measured ({done.stderr.strip().splitlines()[-1]})")
        return None
    used, matrix = map(int, done.stdout.split())
    A = load(name).A
    budget = matrix + 80 * A.shape[0] + 16 * A.shape[1]
    return dict(data=name, source="-", figure=f"peak memory of a solve / budget of {budget / 1e6:.1f} MB",
                ratio=used / budget, limit=1.0)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--json", default="kernel.json")
    parser.add_argument("--only", choices=sorted(LAMBDAS))
    args = parser.parse_args()
    names = [args.only] if args.only else list(LAMBDAS)
    print(f"{'data':8} {'figure':55} {'measured':>9} {'limit':>6}")
    rows = []
    for produce in [lambda n=n: dataset_rows(n, args.repeats) for n in names] + [
        lambda: [row for n in names if (row := memory(n))],
        lambda: [import_time(args.repeats)],
    ]:
        for row in produce():
            rows.append(row)
            mark = "" if row["ratio"] <= row["limit"] else "  above"
            print(f"{row['data']:8} {row['figure']:55} {row['ratio']:9.3f} {row['limit']:6.2f}{mark}", flush=True)
    machine = dict(platform=platform.platform(), python=platform.python_version(), numpy=np.__version__)
    with open(args.json, "w") as file:
        json.dump(dict(machine=machine, repeats=args.repeats, rows=rows), file, indent=1)
    print(f"written to {args.json}")


if __name__ == "__main__":
    main()
