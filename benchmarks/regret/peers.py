"""The suite against the other libraries that are installed: whose public call reaches a task's accuracy first."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from suite import Task, targets

from coordwise.bench.peers import PEERS, Peer
from coordwise.bench.problems import LOSSES, Data, Problem, Statement
from coordwise.bench.race import Rules, race
from coordwise.bench.rows import Row
from coordwise.bench.worker import Crashed, Overdue, Worker

LIMIT, ROW = 10.0, 25.0  # seconds of a call, and of a task
BOTH_SHORT = 0.003  # seconds: where both sides take less, 0.8 counts as even


@dataclass(frozen=True)
class Suite:
    """Where the race gets its problems from (`coordwise.bench.worker.Ground`)."""

    tasks: tuple[Task, ...]

    def problem(self, row: Row) -> Problem:
        """The problem of a row, which bears the name of its task."""
        task = next(task for task in self.tasks if task.key == row.dataset)
        A, b, _ = targets(task.source, task.loss in ("logistic", "squared_hinge", "hinge"), False)
        penalty = task.model().penalty
        return Problem(Statement(task.loss, penalty.l1, penalty.l2, task.intercept), Data(A, b))

    def peers(self) -> Sequence[Peer]:
        """All of them."""
        return PEERS


def compare(suite: Sequence[Task], args: Any) -> int:
    """Print the ratio of the best peer's time to ours for every task that a peer can state, and what they come to."""
    ours = tuple(task for task in suite if task.loss in LOSSES and not task.weighted)
    rows = []
    with Worker(Suite(ours), 1) as worker:
        for at, task in enumerate(ours):
            row = Row(task.key, task.loss, task.penalty, task.strength, intercept=task.intercept)
            try:
                found = race(worker, row, Rules(goals=(task.tol,), limit=LIMIT, threads=1), row_limit=ROW)
            except (Crashed, Overdue) as error:
                print(f"[{at + 1}/{len(ours)}] {task.key}: {error or 'took too long to begin'}", flush=True)
                continue
            verdict = found["goals"][0] | {"task": task.key, "family": task.source.family}
            rows.append(verdict)
            ratio = "undecided" if verdict["ratio"] is None else f"{verdict['bound']}{verdict['ratio']:.2f}"
            print(f"[{at + 1}/{len(ours)}] {task.key}: {ratio} over {verdict['peer']}", flush=True)
    for family in ("", *dict.fromkeys(row["family"] for row in rows)):
        print(_summary(family or "all", [row for row in rows if row["family"] == family or not family]))
    if args.json:
        Path(args.json).write_text(json.dumps(rows, indent=1) + "\n")
    return 0


def _summary(name: str, rows: list[dict[str, Any]]) -> str:
    decided = [row for row in rows if row["ratio"] is not None]
    if not decided:
        return f"{name:16} nothing decided"

    def even(row: dict[str, Any]) -> float:
        both = (row["ours"] or np.inf) < BOTH_SHORT and (row["peer_seconds"] or np.inf) < BOTH_SHORT
        return 0.8 if both else 1.0

    won = sum(row["ratio"] >= even(row) for row in decided)
    mean = float(np.exp(np.mean([np.log(row["ratio"]) for row in decided])))
    return f"{name:16} ahead on {won} of {len(decided)} ({won / len(decided):.0%}), geometric mean {mean:.2f}"
