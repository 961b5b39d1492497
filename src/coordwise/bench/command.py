"""`coordwise bench`: which solver to use for one's own data."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coordwise.datasets import CATALOGUE, load, load_file
from coordwise.interrupts import Interrupted

if TYPE_CHECKING:
    from coordwise.bench.peers import Peer
    from coordwise.bench.problems import Data, Problem
    from coordwise.bench.race import Rules
    from coordwise.bench.rows import Row

__all__ = ["OwnData", "add_bench"]


def add_bench(commands: Any) -> None:
    """`coordwise bench`."""
    from coordwise.bench.problems import LOSSES, PENALTIES

    parser = commands.add_parser(
        "bench",
        help="which solver is the fastest on your data",
        description="Solve one problem, P(w, c) = (1/n) sum_i loss(<a_i, w> + c; b_i) + penalty, with every library "
        "that is installed, and compare the times to the same accuracy. No library's first call is measured.",
    )
    parser.add_argument("data", metavar="DATA", help=f"an svmlight file, or {', '.join(CATALOGUE)}")
    parser.add_argument("--loss", required=True, choices=list(LOSSES), help="the loss")
    weight = parser.add_mutually_exclusive_group(required=True)
    weight.add_argument("--lam", type=float, metavar="L", help="weight of the penalty")
    weight.add_argument("--lam-n", type=float, metavar="L", help="the same times the number of samples, 1/C for many")
    weight.add_argument("--lam-max", type=float, metavar="S", help="the same as a share of the least that gives w = 0")
    parser.add_argument("--penalty", default="l2", choices=PENALTIES, help="(default: l2)")
    parser.add_argument("--l1-ratio", type=float, metavar="R", help="share of l1 in the elastic net (default: 0.5)")
    parser.add_argument("--intercept", action="store_true", help="with an intercept, which is not penalised")
    parser.add_argument(
        "--goals",
        type=float,
        nargs="+",
        default=[1e-3, 1e-6],
        metavar="G",
        help="accuracies, as shares of P(0) (default: 1e-3 1e-6)",
    )
    parser.add_argument("--limit", type=float, default=60.0, metavar="S", help="seconds per solver (default: 60)")
    parser.add_argument("--threads", type=int, default=2, metavar="T", help="for solvers that use them (default: 2)")
    parser.add_argument("--only", nargs="+", metavar="WORD", help="only solvers whose name has one of the words")
    parser.add_argument("--json", metavar="FILE", help="write all that was measured")
    parser.set_defaults(run=run)


@dataclass
class OwnData:
    """The ground of `coordwise bench`: one file or dataset, and the libraries that are installed."""

    name: str
    words: tuple[str, ...] = ()
    _held: dict[bool, Data] = field(default_factory=dict, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {"name": self.name, "words": self.words, "_held": {}}

    def data(self, classification: bool) -> Data:
        """The data, read once; two classes as -1 and +1."""
        from coordwise.bench.problems import Data, signs

        if classification not in self._held:
            if self.name in CATALOGUE:
                found = load(self.name, stand_in=False)
                A, b = found.A, found.b
            else:
                A, b = load_file(self.name)
            self._held[classification] = Data(A, signs(b) if classification else b)
        return self._held[classification]

    def problem(self, row: Row) -> Problem:
        """See `coordwise.bench.worker.Ground`."""
        from coordwise.bench.problems import Problem, Statement

        data = self.data(Statement.of(row.loss, "l2", 1.0).classification)
        return Problem(row.statement(data), data)

    def peers(self) -> Sequence[Peer]:
        """See `coordwise.bench.worker.Ground`."""
        from coordwise.bench.peers import PEERS

        chosen = {word: [p for p in PEERS if word.lower() in p.name.lower()] for word in self.words}
        if unknown := [word for word, found in chosen.items() if not found]:
            known = ", ".join(peer.name for peer in PEERS)
            raise ValueError(f"--only {' '.join(unknown)}: no solver has this in its name. Known: {known}.")
        return [p for p in PEERS if p.ours or not self.words or any(p in found for found in chosen.values())]


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns its exit code."""
    if importlib.util.find_spec("sklearn") is None:
        return _refuse('coordwise bench needs scikit-learn: pip install ".[sklearn]".')
    from coordwise.bench.race import race
    from coordwise.bench.worker import Worker

    try:
        rules, row, ground = _asked(arguments)
        problem = ground.problem(row)
    except (OSError, ValueError, TypeError) as error:
        return _refuse(_in_words_of_options(error))
    print(f"{row.title}: {problem.n:,} x {problem.d:,}, {problem.data.nnz:,} entries")
    print(f"minimise P = {problem.statement.formula}", flush=True)
    with Worker(ground, rules.threads) as worker:
        try:
            result = race(worker, row, rules)
        except Interrupted as stop:
            _show(stop.result, arguments.json)
            print("Interrupted: the table has what was measured until then.", file=sys.stderr, flush=True)
            return 130
    _show(result, arguments.json)
    return 0


def _asked(arguments: argparse.Namespace) -> tuple[Rules, Row, OwnData]:
    """What the command line asks for, checked."""
    from coordwise.bench.race import Rules
    from coordwise.bench.rows import Row

    scale, weight = next(
        (name, value) for name in ("lam", "lam_n", "lam_max") if (value := getattr(arguments, name)) is not None
    )
    goals = tuple(sorted(arguments.goals, reverse=True))
    if not all(1e-10 <= goal < 1 for goal in goals):
        raise ValueError("--goals must lie between 1e-10 and 1.")
    if not 0 < arguments.limit < 1e6:
        raise ValueError(f"--limit {arguments.limit:g} is out of range; it must be > 0.")
    most = 4 * (os.cpu_count() or 1)  # more have been seen to make libraries fail
    if not 1 <= arguments.threads <= most:
        raise ValueError(
            f"--threads {arguments.threads} is out of range; it must be >= 1 and at most {most}, four for each of "
            "this machine's processors."
        )
    if arguments.json is not None:
        _check_writable(Path(arguments.json))
    named = arguments.data if arguments.data in CATALOGUE else Path(arguments.data).name
    row = Row(named, arguments.loss, arguments.penalty, weight, scale, arguments.l1_ratio, arguments.intercept)
    ground = OwnData(arguments.data, tuple(arguments.only or ()))
    ground.peers()
    return Rules(goals, arguments.limit, threads=arguments.threads), row, ground


def _in_words_of_options(error: BaseException) -> str:
    """A refusal in one line, which names options as they are typed."""
    text = " ".join(str(error).split())
    for name, option in (
        ("lam_n=", "--lam-n "),
        ("lam_max=", "--lam-max "),
        ("lam=", "--lam "),
        ("l1_ratio=", "--l1-ratio "),
    ):
        text = text.replace(name, option)
    return text if text.endswith(".") else f"{text}."


def _show(result: dict[str, Any], file: str | None) -> None:
    """Print what was measured, and write it to a file that is never seen half written."""
    from coordwise.bench.report import advice, skipped_lines, solver_table
    from coordwise.experiments.store import write_whole

    if file is not None:
        content = (json.dumps(result, indent=1, ensure_ascii=False) + "\n").encode()
        if Path(file).exists() and not Path(file).is_file():  # a pipe or a terminal
            Path(file).write_bytes(content)
        else:
            write_whole(Path(file), content)
    print(f"\n{solver_table(result)}\n")
    for line in skipped_lines(result):
        print(f"left out: {line}")
    print(f"\n{advice(result)}", flush=True)


def _check_writable(file: Path) -> None:
    """Refuse a file that cannot be written before anything is measured."""
    if file.is_dir():
        raise ValueError(f"--json {file} is a folder; name a file in it.")
    if not os.access(file if file.exists() else file.parent, os.W_OK):
        raise ValueError(f"--json {file} cannot be written; name a file in a folder that exists and may be written to.")


def _refuse(sentence: str) -> int:
    print(f"coordwise: {sentence}", file=sys.stderr, flush=True)
    return 2
