"""How much faster NU_ACDM is than ACDM: in theory, with the constants as run, and measured."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from coordwise.experiments import curves
from coordwise.experiments.charts import TIGHT, UNPUBLISHED
from coordwise.experiments.units import Finding

__all__ = ["as_run", "speedups"]


OTHERS = (TIGHT, UNPUBLISHED)


def speedups(findings: Mapping[str, Finding]) -> dict[str, list[Any]]:
    """NU_ACDM against ACDM in every chart that has both: theory and measurement.

    ACDM is the published one, by regularisation where there is no strong convexity. `theory` is the paper's factor,
    `as_run` the ratio of the iteration bounds with the constants as run (nan by regularisation, where they change).
    The measured columns say how many times sooner NU_ACDM is down at the lowest distance that both come down to,
    `depth` times the distance at the start; `other` is the same in iterations for the other form of ACDM, with tight
    constants or in Algorithm 2.
    """
    names = ("chart", "theory", "as_run", "iterations", "passes", "primal_passes", "other", "depth")
    table: dict[str, list[Any]] = {name: [] for name in names}
    for key, finding in findings.items():
        lines = finding.facts.get("lines", {})
        if not {"ACDM", "NU_ACDM"} <= lines.keys():
            continue
        primal = math.nan
        if not key.startswith("system"):
            primal = curves.speedup(finding, "ACDM", "NU_ACDM", "passes", "primal")
        row = (
            key,
            lines["NU_ACDM"]["speedup"],
            as_run(finding),
            curves.speedup(finding, "ACDM", "NU_ACDM", "iterations"),
            curves.speedup(finding, "ACDM", "NU_ACDM", "passes"),
            primal,
            next((curves.speedup(finding, o, "NU_ACDM", "iterations") for o in OTHERS if o in lines), math.nan),
            curves.depth(finding, ("ACDM", "NU_ACDM")),
        )
        for name, value in zip(names, row, strict=True):
            table[name].append(value)
    return table


def as_run(finding: Finding, label: str = "ACDM") -> float:
    """The ratio of the iteration bounds with the constants that the runs used; nan for ACDM by regularisation."""
    slow, fast = finding.facts["lines"][label], finding.facts["lines"]["NU_ACDM"]
    if (slow["tau"] is None) != (fast["tau"] is None):
        return math.nan
    if slow["tau"] is not None:
        return float(fast["tau"] / slow["tau"])
    return math.sqrt(slow["Theta"] / fast["Theta"])
