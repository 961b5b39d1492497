"""Regret: what the automatic choice costs, over the fastest single solver, on a suite of generated and real problems.

    python benchmarks/regret/run.py [--quick] [--only WORD ...] [--against REV] [--peers] [--json FILE]

Every solver and the choice fit every task to the task's tolerance, certified, with one thread. Regret is the median
time of the choice over that of the fastest solver of this library that got there. `--against` installs another revision
in an environment of its own and runs both in turns; `--peers` compares with the libraries that are installed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from suite import tasks

HERE = Path(__file__).resolve().parent
SOLVERS = ("dual", "primal", "working_set", "gram", "newton", "newton_cg", "interior", "krylov", "semismooth")
CAP = 8.0  # seconds that one call may take
BEHIND = 1.5  # times the best: up to here a solver is measured again, since it may be the fastest
SHORT = 0.005  # seconds: shorter calls are counted, but not in the figures that targets speak of


def main(argv: list[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    suite = [(k, task) for k, task in enumerate(tasks(quick=args.quick)) if _wanted(task, args.only)]
    if not suite:
        print(f"No task has all of the words {' '.join(args.only)}.", file=sys.stderr)
        return 2
    if args.peers:
        from peers import compare

        return compare([task for _, task in suite], args)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        other = Process(_installed(args.against, Path(folder))) if args.against else None
        ours = Process(sys.executable)
        try:
            for at, (k, task) in enumerate(suite):
                row = {"task": task.key, "family": task.source.family} | measured(ours, other, k, args.quick)
                rows.append(row)
                print(f"[{at + 1}/{len(suite)}] {_line(row)}", flush=True)
        except KeyboardInterrupt:
            print("Interrupted: figures of what was measured until then.", file=sys.stderr)
        finally:
            for process in (ours, other):
                if process is not None:
                    process.close()
    print(report(rows))
    if args.json:
        Path(args.json).write_text(json.dumps({"figures": figures(rows), "rows": rows}, indent=1) + "\n")
    return 0


class Process:
    """A worker in a process of its own, with one thread of linear algebra."""

    def __init__(self, python: str) -> None:
        threads = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
        clean = {name: value for name, value in os.environ.items() if python == sys.executable or name != "PYTHONPATH"}
        self.child = subprocess.Popen(
            [python, str(HERE / "worker.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=clean | threads,
            text=True,
        )
        self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self.child.stdout is not None
        line = self.child.stdout.readline()
        if not line:
            raise RuntimeError("the worker ended; its message is above")
        return json.loads(line)

    def run(self, task: int, solver: str, quick: bool, limit: float | None) -> dict[str, Any]:
        """One call."""
        assert self.child.stdin is not None
        self.child.stdin.write(json.dumps({"task": task, "solver": solver, "quick": quick, "limit": limit}) + "\n")
        self.child.stdin.flush()
        return self._answer()

    def close(self) -> None:
        """End the process."""
        self.child.kill()
        self.child.wait()


def measured(ours: Process, other: Process | None, task: int, quick: bool) -> dict[str, Any]:
    """The choice and every solver once; then those that may be the fastest again, in turns."""
    times: dict[str, list[float]] = {}
    ran: dict[str, str] = {}
    passes: dict[str, float] = {}

    def call(name: str, limit: float | None) -> None:
        process, solver = (other, "auto") if name == "before" else (ours, name)
        assert process is not None
        found = process.run(task, solver, quick, limit)
        if found.get("status") == "converged":
            times.setdefault(name, []).append(found["seconds"])
            ran[name], passes[name] = found["ran"], found["passes"]
        elif name in times:  # it got there before: a limit that was too tight
            times[name].append(float("inf"))

    chosen = ["auto", *(["before"] if other is not None else [])]
    for name in chosen:
        call(name, CAP)
        if times.get(name, [CAP])[0] < 1.0:  # the first call of a kind warms up what later ones use
            times.pop(name, None)
            call(name, CAP)
    best = min((min(values) for values in times.values()), default=CAP)
    for name in SOLVERS:
        call(name, min(CAP, 2 * BEHIND * best + 0.05))
        best = min([best, *times.get(name, [])])
    near = [
        name for name in (*chosen, *SOLVERS) if name in times and (name in chosen or min(times[name]) <= BEHIND * best)
    ]
    repeats = 9 if best < 0.02 else 5 if best < 0.2 else 3 if best < 1.0 else 1
    for _ in range(repeats - 1):
        for name in near:
            call(name, None)
    medians = {name: statistics.median(values) for name, values in times.items()}
    return {"seconds": medians, "passes": passes, "ran": ran, "repeats": repeats} | regret_of(medians, passes)


def regret_of(medians: dict[str, float], passes: dict[str, float]) -> dict[str, Any]:
    """The choice over the fastest solver, in time and passes, and over that of another revision."""
    single = {name: seconds for name, seconds in medians.items() if name in SOLVERS}
    fastest = min(single, key=lambda name: single[name], default=None)
    auto = medians.get("auto")
    row: dict[str, Any] = {"fastest": fastest, "regret": None, "work": None, "against": None}
    if auto is not None and fastest is not None:
        row["regret"] = auto / single[fastest]
        row["work"] = max(passes["auto"], 1.0) / max(passes[fastest], 1.0)
    elif auto is not None:
        row["regret"] = 1.0  # nothing else got there
    if auto is not None and "before" in medians:
        row["against"] = medians["before"] / auto
    return row


def figures(rows: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Geometric mean, 95th percentile and the worst regret: of all, of calls of 5 ms and more, and of each family."""
    rows = list(rows)
    long = [row for row in rows if row["seconds"].get("auto", 0.0) >= SHORT]
    groups = {"all": rows, "5 ms and more": long}
    groups |= {
        family: [row for row in rows if row["family"] == family] for family in dict.fromkeys(r["family"] for r in rows)
    }
    return {name: _summary(group) for name, group in groups.items()}


def _summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    regrets = np.array([row["regret"] for row in rows if row["regret"] is not None])
    work = np.array([row["work"] for row in rows if row["work"] is not None])
    against = np.array([row["against"] for row in rows if row["against"] is not None])
    found: dict[str, Any] = {"tasks": len(rows), "unsolved": sum(row["regret"] is None for row in rows)}
    if len(regrets):
        found |= {
            "mean": float(np.exp(np.log(regrets).mean())),
            "p95": float(np.quantile(regrets, 0.95)),
            "worst": float(regrets.max()),
        }
    if len(work):
        found["work"] = float(np.exp(np.log(work).mean()))
    if len(against):
        found["against"] = float(np.exp(np.log(against).mean()))
    return found


def report(rows: list[dict[str, Any]]) -> str:
    """The figures as a table, and the worst tasks."""
    lines = [
        f"{'':28} {'tasks':>6} {'unsolved':>9} {'mean':>6} {'95 %':>6} {'worst':>6} {'work':>6} {'before/now':>11}"
    ]
    for name, found in figures(rows).items():
        cells = [f"{found[key]:6.2f}" if key in found else f"{'':>6}" for key in ("mean", "p95", "worst", "work")]
        against = f"{found['against']:11.2f}" if "against" in found else ""
        lines.append(f"{name:28} {found['tasks']:6} {found['unsolved']:9} {' '.join(cells)} {against}")
    bad = sorted((row for row in rows if (row["regret"] or 0) > 1.3), key=lambda row: -row["regret"])[:15]
    return "\n".join(["", *lines, "", *(_line(row) for row in bad)])


def _line(row: dict[str, Any]) -> str:
    auto = row["seconds"].get("auto")
    if auto is None:
        return f"{row['task']}: not there in {CAP:g} s; fastest {row['fastest']}"
    against = "" if row["against"] is None else f", {row['against']:.2f} times as fast as before"
    fastest = f", regret {row['regret']:.2f} over {row['fastest']}" if row["fastest"] else ", nothing else got there"
    return f"{row['task']}: {1e3 * auto:.4g} ms by {row['ran']['auto'].split(':')[0]}{fastest}{against}"


def _installed(revision: str, folder: Path) -> str:
    """The Python of an environment with another revision of this repository, and the same versions of what it needs."""
    top = HERE.parents[1]
    print(f"installing {revision} ...", flush=True)
    subprocess.run(
        ["git", "-C", str(top), "worktree", "add", "--detach", str(folder / "tree"), revision],
        check=True,
        capture_output=True,
    )
    try:
        subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
        python = str(folder / "venv" / "bin" / "python")
        versions = [f"{name}=={__import__(name).__version__}" for name in ("numpy", "scipy")]
        subprocess.run(
            [python, "-m", "pip", "install", "-q", *versions, "threadpoolctl", str(folder / "tree")], check=True
        )
    finally:
        subprocess.run(["git", "-C", str(top), "worktree", "remove", "--force", str(folder / "tree")], check=True)
    return python


def _wanted(task: Any, words: list[str]) -> bool:
    return all(word.lower() in f"{task.source.family} {task.key}".lower() for word in words)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two tasks of some of the data")
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD", help="tasks with all of the words")
    parser.add_argument("--against", metavar="REV", help="another revision, in turns with this one")
    parser.add_argument("--peers", action="store_true", help="against the other libraries that are installed")
    parser.add_argument("--json", metavar="FILE", help="write figures and all medians")
    return parser


if __name__ == "__main__":
    begun = time.time()
    code = main()
    print(f"{time.time() - begun:.0f} s")
    sys.exit(code)
