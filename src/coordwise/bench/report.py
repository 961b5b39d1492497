"""Results in words and tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = [
    "Summary",
    "advice",
    "clock",
    "geometric_mean",
    "ratio_text",
    "skipped_lines",
    "solver_table",
    "summarise",
    "table_of",
    "text_table",
]


def clock(seconds: float | None) -> str:
    """Seconds with three digits, or a dash."""
    if seconds is None:
        return "–"
    return f"{seconds * 1000:.3g} ms" if seconds < 0.1 else f"{seconds:.3g} s"


def ratio_text(verdict: Mapping[str, Any]) -> str:
    """Best peer's time / ours, with its bound."""
    return "–" if verdict["ratio"] is None else f"{verdict['bound']} {verdict['ratio']:.3g}".strip()


def geometric_mean(values: Sequence[float]) -> float:
    """exp(mean log); nan of nothing."""
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def text_table(head: Sequence[str], body: Sequence[Sequence[str]], left: int = 1) -> str:
    """Columns in line; the first `left` of them to the left."""
    rows = [list(head), *map(list, body)]
    widths = [max(len(row[k]) for row in rows) for k in range(len(head))]
    lines = [
        "  ".join(
            cell.ljust(w) if k < left else cell.rjust(w) for k, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    return "\n".join(line.rstrip() for line in lines)


def solver_table(result: Mapping[str, Any]) -> str:
    """One line per solver of a row, the fastest first."""
    goals = result["rules"]["goals"]

    def rank(solver: Mapping[str, Any]) -> tuple[float, ...]:
        return tuple(math.inf if t is None else t for t in reversed(solver["times"]))

    body = [
        [
            solver["name"],
            *(clock(t) for t in solver["times"]),
            solver["threads"],
            solver["ended"],
        ]
        for solver in sorted(result["solvers"], key=rank)
    ]
    table = text_table(["solver", *(f"to {goal:g}" for goal in goals), "threads", ""], body)
    return table


def skipped_lines(result: Mapping[str, Any]) -> list[str]:
    """Who was left out, by reason; a library's other solvers are not, if one of them took part."""
    there = {solver["library"] for solver in result["solvers"]}
    reasons: dict[str, list[str]] = {}
    for entry in result["skipped"]:
        plain = entry["reason"].startswith(("has no ", "not installed", "cannot be imported"))
        name = entry["library"] if plain else entry["name"]
        if not (plain and entry["library"] in there) and name not in reasons.setdefault(entry["reason"], []):
            reasons[entry["reason"]].append(name)
    return [f"{', '.join(names)}: {reason}" for reason, names in reasons.items() if names]


def advice(result: Mapping[str, Any]) -> str:
    """Which solver to use for a row, in a sentence or two."""
    if not result["contested"]:
        return "No other installed library states this problem (the reasons are above): coordwise is the only choice."
    verdict = result["goals"][-1]
    if verdict["ours"] is None and verdict["peer"] is None:
        verdict = result["goals"][0]
    goal, peer, ours = verdict["goal"], verdict["peer"], verdict["ours"]
    sure = result["certified"][[g["goal"] for g in result["goals"]].index(goal)]
    where = f"{goal:g} of P(0) from {'the certified optimum' if sure else 'the best value that any solver found'}"
    if ours is None and peer is None:
        return (
            f"No solver came to {where} within {result['rules']['limit']:g} s; give a larger limit, or regularise more."
        )
    if ours is None:
        return f"Use {peer}: {clock(verdict['peer_seconds'])} to {where}; coordwise did not get there in time."
    if peer is None:
        return f"Use coordwise: {clock(ours)} to {where}; no other solver got there in time."
    ratio = verdict["ratio"]
    if 1 / 1.1 <= ratio <= 1.1:
        return f"coordwise and {peer} are equally fast: {clock(ours)} and {clock(verdict['peer_seconds'])} to {where}."
    if ratio > 1:
        return f"Use coordwise: {clock(ours)} to {where}, {ratio:.2g} times as fast as the next best, {peer}."
    times = f"{1 / ratio:.2g} times as fast as coordwise ({clock(ours)})"
    return f"Use {peer}: {clock(verdict['peer_seconds'])} to {where}, {times}."


@dataclass(frozen=True)
class Summary:
    """What many rows say at one goal.

    A row where only one side got there counts in `mean` with the time that the other side was given, which is a bound
    on the ratio; `undecided` rows, where neither did, and `alone` rows, which no peer can state, do not count.
    """

    goal: float
    rows: int
    wins: int
    losses: tuple[str, ...]
    mean: float
    bounds: int
    undecided: int
    alone: int


def summarise(results: Sequence[Mapping[str, Any]], k: int) -> Summary:
    """The summary at goal number k; results have the same goals."""
    contested = [result for result in results if result["contested"]]
    decided = [result for result in contested if result["goals"][k]["ratio"] is not None]
    ratios = [result["goals"][k]["ratio"] for result in decided]
    return Summary(
        results[0]["goals"][k]["goal"] if results else math.nan,
        len(decided),
        sum(ratio >= 1 for ratio in ratios),
        tuple(result["title"] for result in decided if result["goals"][k]["ratio"] < 1),
        geometric_mean(ratios),
        sum(bool(result["goals"][k]["bound"]) for result in decided),
        len(contested) - len(decided),
        len(results) - len(contested),
    )


def table_of(results: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """(head, body) of the table with one line per row and three columns per goal."""
    goals = [verdict["goal"] for verdict in results[0]["goals"]] if results else []
    head = ["problem"]
    for goal in goals:
        head += [f"best peer to {goal:g}", "its time", "ours", "ratio"]
    body = []
    for result in results:
        line = [result["title"]]
        for verdict, sure in zip(result["goals"], result["certified"], strict=True):
            if not result["contested"]:
                line += ["no peer states it", "–", "–", "–"]
                continue
            mark = "" if sure else "*"
            line += [
                verdict["peer"] or "none",
                clock(verdict["peer_seconds"]) + mark,
                clock(verdict["ours"]) + mark,
                ratio_text(verdict),
            ]
        body.append(line)
    return head, body
