"""Time to |b - Ax| <= 1e-6 |b|: coordwise.linalg against scipy, numpy and kaczmarz-algorithms.

(a) section 8 scaled up, (b) rows of very different norms, (c) rays through a 128 x 128 image, (d) a graph Laplacian
plus 1e-3 I, of a grid and of a graph with hubs, (e) 250 equations for every unknown. Times are medians over rounds in
which everybody takes a turn; a solver slower than a quarter of the limit has one turn, and one that does not get there
in time is shown with what it reached. Peers are stopped at the residual itself where their own tolerance means
something else, the clock standing still while it is computed. Compare ratios of one run only, and set
OMP_NUM_THREADS=1: small vector operations suffer from more threads. Needs kaczmarz-algorithms from PyPI.

    OMP_NUM_THREADS=1 python benchmarks/linear_systems.py [--only a b] [--rounds 5] [--limit 20] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as scipy_solvers

from coordwise import linalg
from coordwise.datasets.tomography import parallel_beams, phantom
from coordwise.experiments.systems import random_system

RTOL = 1e-6

Solver = Callable[["Task"], np.ndarray]


class Reached(Exception):
    """The residual asked for, or the end of the time."""


class Task:
    """One system, and a clock that stands still while the residual is computed."""

    def __init__(self, A: Any, b: np.ndarray, limit: float) -> None:
        self.A, self.b, self.limit = A, b, limit
        self.goal = RTOL * np.linalg.norm(b)
        self.checking = 0.0
        self.begun = 0.0

    def residual(self, x: np.ndarray) -> float:
        """|b - Ax|."""
        return float(np.linalg.norm(self.b - self.A @ x))

    def check(self, x: np.ndarray) -> None:
        """For callbacks: raises `Reached` at the end."""
        now = time.perf_counter()
        met = self.residual(x) <= self.goal
        self.checking += time.perf_counter() - now
        if met or now - self.begun - self.checking > self.limit:
            self.found = x.copy()
            raise Reached

    def run(self, solver: Solver) -> tuple[float, float]:
        """Seconds, and the residual over |b|."""
        self.checking, self.begun = 0.0, time.perf_counter()
        try:
            x = solver(self)
        except Reached:
            x = self.found
        seconds = time.perf_counter() - self.begun - self.checking
        return seconds, self.residual(x) * RTOL / self.goal


def sparse_rows(m: int, n: int, per_row: int, rng: np.random.Generator) -> sp.csr_array:
    """Normal entries in random columns."""
    columns = rng.integers(0, n, m * per_row).astype(np.int32)
    starts = (np.arange(m + 1) * per_row).astype(np.int32)
    A = sp.csr_array((rng.standard_normal(m * per_row), columns, starts), shape=(m, n))
    A.sum_duplicates()
    return A


def canonical(A: Any) -> sp.csr_array:
    A = sp.csr_array(A)
    A.sort_indices()
    return sp.csr_array((A.data, A.indices.astype(np.int32), A.indptr.astype(np.int32)), shape=A.shape)


def section_8() -> tuple[Any, np.ndarray]:
    A, b, _ = random_system(0.2, 0, shape=(30_000, 1000))
    return A, b


def unequal() -> tuple[Any, np.ndarray]:
    rng = np.random.default_rng(0)
    A = sparse_rows(100_000, 20_000, 20, rng)
    norms = np.sqrt(A.multiply(A).sum(axis=1))
    A = canonical(sp.diags_array(10 ** rng.uniform(-3, 0, A.shape[0]) / norms) @ A)
    return A, A @ rng.standard_normal(A.shape[1])


def rays() -> tuple[Any, np.ndarray]:
    A = canonical(parallel_beams(128, 180))
    return A, A @ phantom(128).ravel()


def laplacian(W: Any, rng: np.random.Generator) -> tuple[Any, np.ndarray]:
    n = W.shape[0]
    A = canonical(sp.diags_array(np.asarray(W.sum(axis=1))) - W + 1e-3 * sp.eye_array(n))
    return A, A @ rng.standard_normal(n)


def grid() -> tuple[Any, np.ndarray]:
    side = 200
    path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(side, side))
    return laplacian(sp.kron(path, sp.eye_array(side)) + sp.kron(sp.eye_array(side), path), np.random.default_rng(0))


def hubs() -> tuple[Any, np.ndarray]:
    """Every vertex is tied to five earlier ones, the earliest most often: degrees from 5 to thousands."""
    rng = np.random.default_rng(0)
    n = 40_000
    one = np.repeat(np.arange(1, n), 5)
    other = (one * rng.random(len(one)) ** 2).astype(int)
    W = sp.coo_array((np.ones(len(one)), (one, other)), shape=(n, n)).tocsr()
    return laplacian(W + W.T, rng)


def tall() -> tuple[Any, np.ndarray]:
    rng = np.random.default_rng(0)
    A = sparse_rows(500_000, 2000, 30, rng)
    return A, A @ rng.standard_normal(2000)


def lsqr(task: Task) -> np.ndarray:
    return scipy_solvers.lsqr(task.A, task.b, atol=0, btol=RTOL, conlim=0, iter_lim=20_000)[0]


def lsmr(task: Task) -> np.ndarray:
    return scipy_solvers.lsmr(task.A, task.b, atol=0, btol=RTOL, conlim=0, maxiter=20_000)[0]


def cg_normal(task: Task) -> np.ndarray:
    A, n = task.A, task.A.shape[1]
    operator = scipy_solvers.LinearOperator((n, n), matvec=lambda v: A.T @ (A @ v), dtype=float)
    return scipy_solvers.cg(operator, A.T @ task.b, rtol=0, maxiter=100_000, callback=task.check)[0]


def cg(task: Task) -> np.ndarray:
    return scipy_solvers.cg(task.A, task.b, rtol=RTOL, maxiter=100_000)[0]


def cg_diagonal(task: Task) -> np.ndarray:
    inverse = sp.diags_array(1 / task.A.diagonal())
    return scipy_solvers.cg(task.A, task.b, rtol=RTOL, maxiter=100_000, M=inverse)[0]


def numpy_lstsq(task: Task) -> np.ndarray:
    return np.linalg.lstsq(task.A, task.b, rcond=None)[0]


def kaczmarz_algorithms(variant: str) -> Solver:
    """Its own stopping rule computes the residual after every row; here it is looked at after every tenth of a pass."""

    def solve(task: Task) -> np.ndarray:
        import kaczmarz

        A, b = task.A, task.b
        if sp.issparse(A):
            keep = np.diff(A.indptr) > 0
            A, b = sp.csr_matrix(A[keep]), b[keep]
        steps = getattr(kaczmarz, variant).iterates(A, b, tol=None, maxiter=10**12)
        every = max(len(b) // 10, 1)
        for k, x in enumerate(steps):
            if k % every == 0 or (k % 1000 == 0 and time.perf_counter() - task.begun - task.checking > task.limit):
                task.check(np.ravel(x))
        return np.ravel(x)

    return solve


def ours(function: Callable[..., Any], **options: Any) -> Solver:
    def solve(task: Task) -> np.ndarray:
        task.result = function(
            task.A, task.b, rtol=RTOL, random_state=0, time_limit=task.limit, full_output=True, **options
        )
        return task.result.x

    return solve


ROW_PEERS = {"kaczmarz-algorithms SVRandom": kaczmarz_algorithms("SVRandom"),
             "kaczmarz-algorithms Cyclic": kaczmarz_algorithms("Cyclic")}  # fmt: skip
GENERAL = {"lsqr": lsqr, "lsmr": lsmr, "cg, normal equations": cg_normal} | ROW_PEERS
OWN = {
    "solve": ours(linalg.solve),
    "nuacdm": ours(linalg.nuacdm),
    "nuacdm, scaled": ours(linalg.nuacdm, scaling="rows"),
    "acdm": ours(linalg.acdm),
    "kaczmarz": ours(linalg.kaczmarz),
    "kaczmarz, scaled": ours(linalg.kaczmarz, scaling="rows"),
}
SPD_PEERS = {"cg": cg, "cg, diagonal": cg_diagonal} | GENERAL
SPD_OWN = {
    "spd_solve": ours(linalg.spd_solve),
    "spd_solve nuacdm": ours(linalg.spd_solve, method="nuacdm"),
    "spd_solve nuacdm, beta=1": ours(linalg.spd_solve, method="nuacdm", beta=1.0),
    "spd_solve acdm": ours(linalg.spd_solve, method="acdm"),
    "spd_solve gauss_seidel": ours(linalg.spd_solve, method="gauss_seidel"),
}
CASES: dict[str, tuple[str, Callable[[], tuple[Any, np.ndarray]], dict[str, Solver], dict[str, Solver]]] = {
    "a": ("section 8", section_8, GENERAL | {"numpy lstsq": numpy_lstsq}, OWN),
    "b": ("row norms over three orders", unequal, GENERAL, OWN),
    "c": ("rays", rays, GENERAL, OWN),
    "d1": ("Laplacian of a grid", grid, SPD_PEERS, SPD_OWN),
    "d2": ("Laplacian of a graph with hubs", hubs, SPD_PEERS, SPD_OWN),
    "e": ("massively overdetermined", tall, GENERAL, OWN),
}


def measure(task: Task, solvers: dict[str, Solver], rounds: int) -> dict[str, tuple[float, float]]:
    """Median seconds and residual of every solver; inf for those that did not get there."""
    times: dict[str, list[float]] = {name: [] for name in solvers}
    reached: dict[str, float] = {}
    for turn in range(rounds):
        for name, solver in solvers.items():
            if turn and (times[name][0] > 0.25 * task.limit or reached[name] > RTOL * 1.0001):
                continue
            seconds, residual = task.run(solver)
            times[name].append(seconds)
            reached[name] = residual
    return {
        name: (statistics.median(t) if reached[name] <= RTOL * 1.0001 else np.inf, reached[name])
        for name, t in times.items()
    }


def row_action(task: Task, found: dict[str, tuple[float, float]], own: dict[str, Solver]) -> str:
    """The best of our row action against the other package's, to the residual that the latter reached."""
    peer = min(ROW_PEERS, key=lambda name: (found[name][0], found[name][1]))
    seconds, level = min(found[peer][0], task.limit), max(found[peer][1], RTOL)
    best = (np.inf, "")
    for name in list(own)[1:]:
        whole, _ = task.run(own[name])
        history, scale = task.result.history, task.goal / RTOL
        there = np.flatnonzero(history.gap <= level * scale)
        if len(there):  # setting up is not in the history
            steps = history.seconds[-1] - history.seconds[0]
            best = min(best, (whole - steps + history.seconds[there[0]] - history.seconds[0], name))
    return f"row action to {level:.1e}: {best[1]} is {seconds / best[0]:.0f} times faster than {peer}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=list(CASES), choices=list(CASES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--limit", type=float, default=20.0, help="seconds that one solver may take")
    parser.add_argument("--json", default=None)
    args = parser.parse_args()
    rows = []
    for key in args.only:
        title, make, peers, own = CASES[key]
        A, b = make()
        task = Task(A, b, args.limit)
        entries = A.nnz if sp.issparse(A) else A.size
        print(f"\n({key}) {title}: {A.shape[0]} x {A.shape[1]}, {entries} entries")
        found = measure(task, peers | own, args.rounds)
        best = min(peers, key=lambda name: found[name][0])
        print(f"{'':32} {'seconds':>9} {'of the best peer':>17}")
        for name in peers | own:
            seconds, residual = found[name]
            shown = f"{seconds:9.3f}" if np.isfinite(seconds) else f"{'-':>9}"
            ratio = (
                f"{seconds / found[best][0]:16.2f}x" if np.isfinite(seconds) else f"reached {residual:.1e}".rjust(17)
            )
            print(f"{'  ' * (name in own)}{name:{32 - 2 * (name in own)}} {shown} {ratio}", flush=True)
            rows.append(dict(case=key, solver=name, ours=name in own, seconds=seconds, residual=residual))
        chosen = next(iter(own))
        task.run(own[chosen])
        result = task.result
        fastest = min((found[name][0], name) for name in peers | own)
        print(f"best of all: {fastest[1]}; {chosen} takes {found[chosen][0] / fastest[0]:.2f} of its time")
        print(f"{chosen}: {result.method}" + "".join(f"; {note}" for note in result.notes))
        print(row_action(task, found, own))
    if args.json:
        with open(args.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
