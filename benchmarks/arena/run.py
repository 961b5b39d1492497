"""The arena: every solver that is installed on every row, in at most 40 minutes, without network.

    python benchmarks/arena/run.py             # all rows
    python benchmarks/arena/run.py --quick     # some, in three minutes

Writes a table (arena.txt, arena.csv), all numbers (arena.json) and a page with plots (index.html). Every row is kept as
soon as it is measured; the same command goes on where it was interrupted, and gives rows that are not decided its time.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path
from typing import Any

from catalogue import rows
from ground import BenchoptGround
from page import write_report

from coordwise.bench.peers import PEERS
from coordwise.bench.race import Rules, race
from coordwise.bench.report import clock, ratio_text
from coordwise.bench.rows import Row
from coordwise.bench.store import Store
from coordwise.bench.worker import Crashed, Overdue, Worker

LEAST = 6.0  # seconds for a row, however late it is
FIRST = 0.6  # of the time: what all rows have at first; the rest is for those that are not decided by then


def main(argv: list[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    chosen = [row for row in rows(args.quick) if all(word in row.title for word in args.only)]
    if not chosen:
        print(f"No row has all of the words {' '.join(args.only)}.", file=sys.stderr)
        return 2
    if args.list:
        print("\n".join(row.title for row in chosen))
        return 0
    minutes = args.budget if args.budget is not None else (3.0 if args.quick else 37.0)
    rules = Rules(limit=args.limit, threads=args.threads, repeats=args.repeats)
    ground = BenchoptGround(words=tuple(args.solvers))
    out = Path(args.out)
    store = Store(out, rules, [*(peer.library for peer in PEERS), *args.solvers])
    if not args.page:
        try:
            _measure(chosen, ground, rules, store, minutes, force=args.force)
        except KeyboardInterrupt:
            print("Interrupted; the same command goes on from there.", file=sys.stderr)
            return 130
    results = [found for row in chosen if (found := store.get(row, any_digest=args.page)) is not None]
    if not results:
        print(f"{out} holds no row yet.", file=sys.stderr)
        return 1
    for path in write_report(out, results, rows_asked=len(chosen)):
        print(path)
    return 0


def _measure(
    chosen: list[Row], ground: BenchoptGround, rules: Rules, store: Store, minutes: float, *, force: bool
) -> None:
    """Every row once, in a part of the time; then those that are not decided, in what is left."""
    waiting = [row for row in chosen if force or store.get(row) is None]
    if len(waiting) < len(chosen):
        print(f"{len(chosen) - len(waiting)} rows are there already.", flush=True)
    hints = Hints()
    for row in chosen:
        if (held := store.get(row)) is not None:
            hints.learn(held)
    end = time.monotonic() + 60 * minutes if minutes > 0 else math.inf
    with Worker(ground, rules.threads) as worker:
        _round(waiting, worker, rules, store, hints, end - (1 - FIRST) * 60 * minutes, again=False)
        open_ones = [row for row in chosen if (held := store.get(row)) is not None and open_goals(held)]
        if open_ones and minutes > 0:
            print(f"{len(open_ones)} rows are not decided; once more, with what is left.", flush=True)
            _round(open_ones, worker, rules, store, hints, end, again=True)


def _round(
    waiting: list[Row], worker: Worker, rules: Rules, store: Store, hints: Hints, end: float, *, again: bool
) -> None:
    """Rows one after the other, each with its share of the time to the end; what one leaves goes to the rest.

    A row that is measured `again` is kept as it was if something of it is not decided now that was before.
    """
    for k, row in enumerate(waiting):
        left = end - time.monotonic()
        if again and left < LEAST:
            break
        share = max(left / (len(waiting) - k), LEAST) if math.isfinite(left) else None
        limit = rules.limit if share is None else min(rules.limit, share)
        own = Rules(rules.goals, limit, rules.repeats, rules.threads, rules.patience)
        try:
            result = race(
                worker, row, own, known=store.optimum, keep=store.keep_optimum, row_limit=share, order=hints.order(row)
            )
        except (Crashed, Overdue) as error:
            print(f"[{k + 1}/{len(waiting)}] {row.title}: {error or 'took too long to begin'}", flush=True)
            continue
        before = store.get(row) if again else None
        if before is None or open_goals(result) < open_goals(before):
            store.put(row, result)
            hints.learn(result)
        print(f"[{k + 1}/{len(waiting)}] {row.title}: {_line(result)} ({result['elapsed']:.0f} s)", flush=True)


def open_goals(result: dict[str, Any]) -> set[int]:
    """Which goals of a row have no ratio, nor a bound of it."""
    return {k for k, verdict in enumerate(result["goals"]) if result["contested"] and verdict["ratio"] is None}


class Hints:
    """Who was fast on this row before, or on one like it: of the same task, and of the same dataset if there is one."""

    def __init__(self) -> None:
        self.orders: dict[tuple[str, ...], list[str]] = {}

    def learn(self, result: dict[str, Any]) -> None:
        """Remember a row's order, by the time to the last goal, then to the first."""

        def rank(solver: dict[str, Any]) -> tuple[float, ...]:
            return tuple(math.inf if seconds is None else seconds for seconds in reversed(solver["times"]))

        order = [solver["name"] for solver in sorted(result["solvers"], key=rank)]
        dataset = result["row"]["dataset"]
        self.orders[(result["task"],)] = self.orders[result["task"], dataset] = self.orders[(result["key"],)] = order

    def order(self, row: Row) -> list[str]:
        """The likely order of a row."""
        found = (self.orders.get(key) for key in ((row.key,), (row.task, row.dataset), (row.task,)))
        return next((order for order in found if order), [])


def _line(result: dict[str, Any]) -> str:
    if not result["contested"]:
        return "no peer can state it"
    return "; ".join(
        f"to {verdict['goal']:g} {verdict['peer'] or 'no peer'} {clock(verdict['peer_seconds'])}, "
        f"ours {clock(verdict['ours'])}, ratio {ratio_text(verdict)}"
        for verdict in result["goals"]
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python benchmarks/arena/run.py",
        description="Every solver that is installed on every row; rows that are decided are not measured again.",
    )
    parser.add_argument("--out", default="arena", metavar="DIR", help="where to write (default: arena)")
    parser.add_argument("--quick", action="store_true", help="fewer rows, in three minutes")
    parser.add_argument(
        "--budget", type=float, metavar="MIN", help="minutes for all (default: 37; 3 if quick; 0: none)"
    )
    parser.add_argument("--limit", type=float, default=60.0, metavar="S", help="seconds per call at most (default: 60)")
    parser.add_argument("--threads", type=int, default=2, metavar="T", help="for solvers that use them (default: 2)")
    parser.add_argument("--repeats", type=int, default=3, metavar="R", help="calls behind a median (default: 3)")
    parser.add_argument("--only", nargs="*", default=[], metavar="WORD", help="only rows whose title has all the words")
    parser.add_argument("--solvers", nargs="*", default=[], metavar="WORD", help="only solvers with one of the words")
    parser.add_argument("--force", action="store_true", help="measure rows again that are there")
    parser.add_argument("--page", action="store_true", help="measure nothing: write the tables and the page anew")
    parser.add_argument("--list", action="store_true", help="print the rows, and do nothing else")
    return parser


if __name__ == "__main__":
    sys.exit(main())
