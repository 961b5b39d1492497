"""The tables, the JSON file and the page of an arena."""

from __future__ import annotations

import base64
import csv
import importlib.metadata
import importlib.resources
import io
import math
import os
import platform
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import coordwise
from coordwise.bench.report import clock, ratio_text, summarise, table_of, text_table
from coordwise.bench.store import write_json
from coordwise.experiments.figures import rendered, style
from coordwise.experiments.page import number, processor
from coordwise.experiments.store import write_whole
from coordwise.plotting import few_log_ticks

__all__ = ["write_report"]

Result = Mapping[str, Any]
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#7F7F7F"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F", "#8C564B")


def write_report(folder: Path, results: Sequence[Result], rows_asked: int) -> list[Path]:
    """Write arena.txt, arena.csv, arena.json and index.html; returns their paths."""
    from jinja2 import Environment, StrictUndefined

    plain = [result for result in results if not result["row"]["intercept"]]
    with_intercept = [result for result in results if result["row"]["intercept"]]
    tables = [("without intercept", plain), ("with an intercept", with_intercept)]
    tables = [(title, part) for title, part in tables if part]
    write_json(folder / "arena.json", {"about": _machine(), "rows": list(results)})
    write_whole(folder / "arena.csv", _csv(results).encode())
    write_whole(folder / "arena.txt", _text(tables, rows_asked).encode())
    template = (Path(__file__).parent / "page.html").read_text("utf-8")
    theirs = importlib.resources.files("coordwise.experiments").joinpath("page.html").read_text("utf-8")
    style = re.search(r"<style>(.*?)</style>", theirs, re.S)
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"number": number, "clock": clock, "ratio": ratio_text}
    goals = range(len(results[0]["goals"]))
    text = environment.from_string(template).render(
        style=style[1] if style else "",
        version=coordwise.__version__,
        made=time.strftime("%Y-%m-%d", time.gmtime()),
        tables=[
            {
                "title": title,
                "results": part,
                "summaries": [summarise(part, k) for k in goals],
                "ratios": _embedded(_ratios(part)),
                "profiles": [_embedded(_profile(part, k)) for k in goals],
            }
            for title, part in tables
        ],
        formulas=_formulas(results),
        goals=[verdict["goal"] for verdict in results[0]["goals"]],
        solvers=_solvers(results),
        left_out=_left_out(results),
        curves={result["key"]: _embedded(_curves(result)) for result in results if result["contested"]},
        machine=_machine(),
        asked=rows_asked,
        measured=len(results),
        rules=results[0]["rules"],
        loads=sorted(result["load"] for result in results if result["load"] is not None),
        limits=sorted({result["rules"]["limit"] for result in results}),
        minutes=f"{sum(result['elapsed'] for result in results) / 60:.0f}",
    )
    write_whole(folder / "index.html", text.encode())
    return [folder / name for name in ("arena.txt", "arena.csv", "arena.json", "index.html")]


def _csv(results: Sequence[Result]) -> str:
    """One line per row and goal."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = ["task", "dataset", "scale", "weight", "intercept", "n", "d", "nnz", "goal", "certified"]
    writer.writerow([*names, "best_peer", "peer_seconds", "coordwise_seconds", "ratio", "bound"])
    for result in results:
        row = result["row"]
        about = [result["task"], row["dataset"], row["scale"], row["weight"], row["intercept"]]
        about += [result["n"], result["d"], result["nnz"]]
        for verdict, sure in zip(result["goals"], result["certified"], strict=True):
            found = [verdict[name] for name in ("peer", "peer_seconds", "ours", "ratio", "bound")]
            writer.writerow([*about, verdict["goal"], sure, *found])
    return out.getvalue()


def _text(tables: Sequence[tuple[str, Sequence[Result]]], rows_asked: int) -> str:
    parts = []
    for title, part in tables:
        head, body = table_of(part)
        lines = [f"{len(part)} problems {title}", "", text_table(head, body), ""]
        for k in range(len(part[0]["goals"])):
            found = summarise(part, k)
            lines.append(
                f"to {found.goal:g}: best peer / ours >= 1 on {found.wins} of {found.rows} rows, geometric mean "
                f"{found.mean:.3g} ({found.bounds} bounds); undecided {found.undecided}, no peer states {found.alone}"
            )
            lines += [f"    lost: {loss}" for loss in found.losses]
        parts.append("\n".join(lines))
    measured = sum(len(part) for _, part in tables)
    foot = "* against the best value that any solver found: the optimum is not certified finely enough\n"
    missing = f"{rows_asked - measured} of {rows_asked} rows are not measured yet\n" if measured < rows_asked else ""
    return "\n\n".join(parts) + "\n\n" + foot + missing


def _formulas(results: Sequence[Result]) -> dict[str, str]:
    return {result["task"] + (", intercept" * result["row"]["intercept"]): result["formula"] for result in results}


def _solvers(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Everyone who took part: version, threads, and how often it was the best peer at each goal."""
    found: dict[str, dict[str, Any]] = {}
    for result in results:
        for solver in result["solvers"]:
            entry = found.setdefault(
                solver["name"],
                {
                    "name": solver["name"],
                    "version": solver["version"],
                    "threads": solver["threads"],
                    "rows": 0,
                    "best": [0] * len(result["goals"]),
                },
            )
            entry["rows"] += 1
            for k, verdict in enumerate(result["goals"]):
                entry["best"][k] += verdict["peer"] == solver["name"]
    return list(found.values())


def _left_out(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Who was left out of how many rows, by reason; that a solver has no such loss is not worth a line."""
    counts: dict[tuple[str, str], int] = {}
    for result in results:
        for entry in result["skipped"]:
            if not entry["reason"].startswith("has no "):
                key = entry["name"], entry["reason"]
                counts[key] = counts.get(key, 0) + 1
    return [{"name": name, "reason": reason, "rows": count} for (name, reason), count in counts.items()]


def _ratios(results: Sequence[Result]) -> bytes:
    """Best peer / ours of every row, at each goal."""
    shown = [result for result in results if result["contested"]]
    with style() as new_figure:
        figure = new_figure(9.0, 0.9 + 0.19 * max(len(shown), 3))
        panel = figure.subplots()
        height = figure.get_size_inches()[1]
        figure.subplots_adjust(left=0.36, right=0.97, bottom=0.55 / height, top=1 - 0.25 / height)
        marks = {"": "o", ">": ">", "<": "<"}
        for k, colour in enumerate((BLUE, ORANGE)[: len(shown[0]["goals"])] if shown else ()):
            for y, result in enumerate(shown):
                verdict = result["goals"][k]
                if verdict["ratio"] is not None:
                    panel.plot(verdict["ratio"], y, marks[verdict["bound"]], color=colour, markersize=4)
            panel.plot([], [], "o", color=colour, markersize=4, label=f"to {shown[0]['goals'][k]['goal']:g}")
        panel.axvline(1, color=GREY, linewidth=0.8)
        panel.axvline(3, color=GREY, linewidth=0.8, linestyle=":")
        panel.set_xscale("log")
        few_log_ticks(panel.xaxis)
        panel.set_yticks(range(len(shown)), [result["title"] for result in shown], fontsize=7)
        panel.set_ylim(len(shown) - 0.5, -0.5)
        panel.set_xlabel("time of the best peer / ours (triangles are bounds)")
        panel.grid(axis="x", alpha=0.25, linewidth=0.6)
        panel.legend(loc="lower right")
        return rendered(figure, "svg")


def _profile(results: Sequence[Result], k: int) -> bytes:
    """The share of rows that each library solves within a factor of the fastest."""
    best: dict[str, list[float]] = {}
    shown = [result for result in results if result["contested"]]
    for at, result in enumerate(shown):
        times: dict[str, float] = {}
        for solver in result["solvers"]:
            seconds = solver["times"][k]
            times[solver["library"]] = min(
                times.get(solver["library"], math.inf), math.inf if seconds is None else seconds
            )
        fastest = min(times.values(), default=math.inf)
        for library, seconds in times.items():
            best.setdefault(library, [math.inf] * len(shown))[at] = (
                seconds / fastest if math.isfinite(seconds) else math.inf
            )
    with style() as new_figure:
        figure = new_figure(5.0, 3.4)
        panel = figure.subplots()
        figure.subplots_adjust(left=0.12, right=0.76, bottom=0.15, top=0.9)
        for place, (library, factors) in enumerate(best.items()):
            finite = sorted(f for f in factors if math.isfinite(f))
            x = [1.0, *finite, 100.0]
            y = [sum(f <= value * (1 + 1e-12) for f in finite) / len(shown) for value in x]
            width = 2.2 if library == "coordwise" else 1.2
            panel.step(x, y, where="post", label=library, color=COLOURS[place % len(COLOURS)], linewidth=width)
        panel.set_xscale("log")
        panel.set_xlim(1, 100)
        panel.set_ylim(0, 1.02)
        few_log_ticks(panel.xaxis)
        panel.set_title(f"to {shown[0]['goals'][k]['goal']:g}" if shown else "")
        panel.set_xlabel("times the fastest")
        panel.set_ylabel("share of rows")
        panel.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
        return rendered(figure, "svg")


def _curves(result: Result) -> bytes:
    """What every solver reached, and when, tolerance by tolerance."""
    with style() as new_figure:
        figure = new_figure(5.0, 3.4)
        panel = figure.subplots()
        figure.subplots_adjust(left=0.14, right=0.97, bottom=0.15, top=0.91)
        floor = result["goals"][-1]["goal"] / 100
        solvers = sorted(result["solvers"], key=lambda s: math.inf if s["times"][-1] is None else s["times"][-1])
        ours = [solver for solver in solvers if solver["ours"]]
        others = [solver for solver in solvers if not solver["ours"]][: len(COLOURS) - 1]
        for place, solver in enumerate([*ours, *others]):
            points = [(sorted(t["seconds"])[len(t["seconds"]) // 2], t["error"]) for t in solver["trials"]]
            points = [(x, max(y, floor)) for x, y in points if y is not None and y < 10]
            if points:
                panel.plot(
                    *zip(*points, strict=True),
                    "o-" if solver["ours"] else ".-",
                    color=COLOURS[place],
                    linewidth=1.8 if solver["ours"] else 0.9,
                    markersize=4,
                    label=solver["name"],
                )
        for verdict in result["goals"]:
            panel.axhline(verdict["goal"], color=GREY, linewidth=0.6, linestyle=":")
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_title(result["title"])
        panel.set_xlabel("seconds of a call")
        panel.set_ylabel("(P − min P) / P(0)")
        if panel.lines[: -len(result["goals"])]:
            panel.legend(fontsize=6, loc="best")
        return rendered(figure, "svg")


def _embedded(svg: bytes) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg).decode()


def _machine() -> dict[str, str]:
    versions = {"coordwise": coordwise.__version__, "Python": platform.python_version()}
    for package in ("numpy", "scipy", "benchopt"):
        versions[package] = importlib.metadata.version(package)
    return {
        "processor": processor(),
        "processors": str(os.cpu_count()),
        "system": f"{platform.system()} {platform.machine()}",
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
    }
