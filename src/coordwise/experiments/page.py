"""The page: every table and figure with its caption, the claims, and what it was made with, in one file."""

from __future__ import annotations

import base64
import importlib.metadata
import importlib.resources
import math
import os
import platform
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import coordwise
from coordwise.datasets import Dataset
from coordwise.experiments import paper
from coordwise.experiments.catalogue import EXPERIMENTS, Experiment
from coordwise.experiments.figures import panels_of, save_figure, views_of
from coordwise.experiments.settings import Settings
from coordwise.experiments.speedups import speedups
from coordwise.experiments.store import write_csv, write_whole
from coordwise.experiments.units import Finding
from coordwise.experiments.verdicts import Claim, Verdict

__all__ = ["number", "processor", "write_report"]


def write_report(
    folder: Path,
    findings: Mapping[str, Finding],
    claims: Sequence[Claim],
    data: Mapping[str, Dataset],
    settings: Settings,
    seconds: float,
) -> Path:
    """Write figures, the tables of claims and speed-ups, and index.html; returns the page's path."""
    from jinja2 import Environment, StrictUndefined

    shown = [e for e in EXPERIMENTS.values() if all(unit.key in findings for unit in e.units)]
    for experiment in shown:
        if experiment.is_figure:
            save_figure(experiment, findings, folder / "figures")
    gains = speedups(findings)
    write_csv(folder / "data" / "speedups.csv", gains)
    write_csv(
        folder / "data" / "claims.csv",
        {
            name: [str(getattr(claim, name)) for claim in claims]
            for name in ("source", "text", "test", "measured", "verdict")
        },
    )
    template = importlib.resources.files("coordwise.experiments").joinpath("page.html").read_text("utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["number"] = number
    environment.filters["factor"] = lambda value: "–" if math.isnan(value) else f"{value:.3f}"
    text = environment.from_string(template).render(
        version=coordwise.__version__,
        experiments=[_section(experiment, findings) for experiment in shown],
        claims=claims,
        tally={verdict: sum(claim.verdict is verdict for claim in claims) for verdict in Verdict},
        gains=[dict(zip(gains, row, strict=True)) for row in zip(*gains.values(), strict=True)],
        axis=_axis_note(findings),
        data=list(data.values()),
        real=all(found.real for found in data.values()),
        settings=settings,
        machine=_machine(),
        minutes=f"{seconds / 60:.1f}",
        made=_today(),
    )
    write_whole(folder / "index.html", text.encode())
    return folder / "index.html"


def number(value: Any, digits: int = 3) -> str:
    """A number as people write it."""
    if isinstance(value, str):
        return value
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "not reached"
    if value and not 1e-3 <= abs(value) < 1e5:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        return f"{mantissa}·10{str(int(exponent)).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}"
    return f"{value:,.{digits}g}" if abs(value) < 10**digits else f"{value:,.0f}"


def _section(experiment: Experiment, findings: Mapping[str, Finding]) -> dict[str, Any]:
    """What the template needs of one table or figure."""
    found = [findings[unit.key] for unit in experiment.units]
    section: dict[str, Any] = {
        "name": experiment.name,
        "title": experiment.title,
        "caption": experiment.caption,
        "figure": experiment.is_figure,
        "files": [f"data/{unit.key}.csv" for unit in experiment.units],
        "views": [],
        "notes": [],
        "table": None,
    }
    if experiment.is_figure:
        for view in views_of(experiment):
            panels = [{"title": t, "image": _embedded(svg)} for t, svg in panels_of(experiment, findings, view)]
            what = f", {view.y} distances" if len(experiment.ys) > 1 else ""
            section["views"].append(
                {"panels": panels, "file": experiment.name + view.suffix, "words": f"against {view.against}{what}"}
            )
        section["notes"] = _notes(experiment, found)
    else:
        section["table"] = {"table1": _table_1, "table2": _table_2, "table3": _table_3}[experiment.name](found)
    return section


def _embedded(svg: bytes) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg).decode()


def _notes(experiment: Experiment, found: list[Finding]) -> list[str]:
    """Sentences with the numbers behind a figure: what the minima are certified to, what was tuned, what was chosen."""
    notes = []
    if experiment.name == "fig1":
        for unit, finding in zip(experiment.units, found, strict=True):
            quantiles = finding.facts["quantiles"]
            notes.append(
                f"{unit.title}: median {number(quantiles['0.5'])}, 99 % below {number(quantiles['0.99'])}, largest "
                f"{number(finding.facts['max'])}; √mean |a|² / mean |a| = "
                f"{finding.facts['root_mean_over_mean_root']:.3f}, the limit of the speed-up as λ → 0."
            )
        return notes
    gaps = [f.facts["minimum"]["gap"] / max(abs(f.facts["minimum"]["dual"]), 1e-300) for f in found]
    ways = sorted({f.facts["minimum"]["how"].partition("(")[0] for f in found})
    notes.append(
        f"Minima: {' or '.join(ways)}; certified to a relative gap of {number(max(gaps), 2)} or better. Lines end "
        "where the certificate, or rounding, ends."
    )
    tuned = [f.facts for f in found if "tuning" in f.facts]
    if tuned:
        chosen = [next(t["sigma"] for t in facts["tuning"] if t["chosen"]) for facts in tuned]
        notes.append(
            f"APCG*: σ₁ chosen among {len(tuned[0]['tuning'])} values from 1 to 1/{paper.TUNED_SPAN:,.0f}; chosen: "
            + ", ".join(number(s, 2) for s in chosen)
            + "."
        )
    if experiment.name == "fig3":
        pairs = zip(experiment.units, found, strict=True)
        lambdas = dict.fromkeys(f"{unit.datasets[0]} {number(f.facts['lambda'])}" for unit, f in pairs)
        errors = [f.facts["smoothing_error"] for f in found]
        notes.append(
            f"λ: {', '.join(lambdas)}. The solution of the smoothed problem is certified to be within "
            + ", ".join(number(e, 2) for e in errors)
            + " of the Lasso's minimum, in units of P(0), by the Lasso's own duality gap there."
        )
    return notes


def _axis_note(findings: Mapping[str, Finding]) -> str | None:
    """What counting passes as iterations / n does to the comparison, from the chart where it does most."""
    best: tuple[float, str, dict[str, float]] | None = None
    for key, finding in findings.items():
        lines = finding.facts.get("lines", {})
        if {"RCDM", "ACDM", "NU_ACDM"} <= lines.keys() and not key.startswith("system"):
            touched = {label: finding.facts["n"] / lines[label]["iterations_per_pass"] for label in lines}
            if best is None or touched["ACDM"] > best[0]:
                best = touched["ACDM"], key, touched
    if best is None:
        return None
    _, key, touched = best
    uniform = next((touched[label] for label in ("APCG*", "APCG") if label in touched), 1.0)
    return (
        "Passes count entries touched / nnz, because longer rows are drawn more often: in the chart "
        f"{key}, n iterations are {touched['NU_ACDM']:.1f} passes for NU_ACDM, {touched['ACDM']:.1f} for ACDM, "
        f"{touched['RCDM']:.1f} for RCDM and {uniform:.1f} for APCG, so counting n iterations as one pass would hide "
        "most of NU_ACDM's advantage over ACDM and RCDM, and flatter all three against APCG, which samples uniformly."
    )


def _table_1(found: list[Finding]) -> dict[str, Any]:
    columns = found[0].columns
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    betas = sorted({row["beta"] for row in rows})
    names = {"rcdm": "RCDM", "apcg": "APCG", "acdm": "ACDM", "nu_acdm": "NU_ACDM"}
    body = []
    for method, label in names.items():
        line = [label]
        for beta in betas:
            for strongly_convex in (True, False):
                at = (method, beta, strongly_convex)
                cell = [row for row in rows if (row["method"], row["beta"], row["strongly_convex"]) == at]
                line.append(f"{number(cell[0]['measured'])} ({number(cell[0]['bound'])})" if cell else "–")
        body.append(line)
    head = ["measured (bound)"] + [
        f"β = {beta:g}, {kind}" for beta in betas for kind in ("strongly convex", "not strongly convex")
    ]
    return {"head": head, "body": body}


def _table_2(found: list[Finding]) -> dict[str, Any]:
    head = ["dataset", "λ", "printed", "computed"]
    body = []
    for finding in found:
        for row in zip(*finding.columns.values(), strict=True):
            body.append([row[0], np.format_float_positional(row[1], trim="-"), f"{row[2]:.5f}", f"{row[3]:.5f}"])
    return {"head": head, "body": body}


def _table_3(found: list[Finding]) -> dict[str, Any]:
    head = ["r", "printed", "long rows", "computed", "exactly 300 r", "5 % – median – 95 %"]
    body = []
    for share, _, k, computed, exact, low, middle, high in zip(*found[0].columns.values(), strict=True):
        spread = f"{low:.4f} – {middle:.4f} – {high:.4f}"
        body.append([f"{share:.0%}", paper.TABLE_3[share], str(k), f"{computed:.4f}", f"{exact:.4f}", spread])
    return {"head": head, "body": body}


def _machine() -> dict[str, str]:
    versions = {"coordwise": coordwise.__version__, "Python": platform.python_version()}
    for package in ("numpy", "scipy", "matplotlib"):
        versions[package] = importlib.metadata.version(package)
    return {
        "processor": processor(),
        "processors": str(os.cpu_count()),
        "system": f"{platform.system()} {platform.machine()}",
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
    }


def processor() -> str:
    """The processor's name, as far as the system tells."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.partition(":")[2].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown"


def _today() -> str:
    """Today, or the day a reproducible build says it is."""
    seconds = float(os.environ.get("SOURCE_DATE_EPOCH") or time.time())
    return time.strftime("%Y-%m-%d", time.gmtime(seconds))
