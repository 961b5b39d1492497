"""Reading charts: curves over seeds, when they reach a level, and how fast they fall."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from coordwise.experiments.units import Finding
from coordwise.plotting import Band
from coordwise.validation import FloatArray

__all__ = ["Curve", "band", "common_level", "curves_of", "floor_of", "labels_of", "rate", "reach", "speedup"]

X = Literal["passes", "iterations"]
Y = Literal["dual", "primal"]


@dataclass(frozen=True)
class Curve:
    """One method from one seed: distance to the minimum against passes, or against iterations / n."""

    x: FloatArray
    distance: FloatArray


def labels_of(finding: Finding) -> list[str]:
    """The methods of a chart in its order."""
    return list(finding.facts["lines"])


def floor_of(finding: Finding, y: Y = "dual") -> float:
    """Distances below this say nothing: ten times what the minimum is certified to, or what rounding allows."""
    minimum = finding.facts["minimum"]
    size = max(abs(minimum["dual"]), abs(minimum["primal"]) if y == "primal" else 0.0)
    return float(max(10 * minimum["gap"], 2e-14 * size))


def curves_of(finding: Finding, label: str, x: X = "passes", y: Y = "dual") -> list[Curve]:
    """The curves of a method, one per seed; distances are cut at the floor."""
    methods = np.array(finding.columns["method"])
    seeds = np.array(finding.columns["seed"])
    at = np.array(finding.columns[x], float) / (finding.facts["n"] if x == "iterations" else 1)
    distance = np.maximum(np.array(finding.columns[f"{y}_distance"], float), floor_of(finding, y))
    ours = methods == label
    return [Curve(at[ours & (seeds == s)], distance[ours & (seeds == s)]) for s in dict.fromkeys(seeds[ours].tolist())]


def band(curves: Sequence[Curve]) -> Band:
    """Median and range on the first curve's points; between records, log distances are interpolated."""
    x = curves[0].x
    table = np.array([np.interp(x, c.x, np.log(c.distance)) for c in curves])
    return Band(x, np.exp(np.median(table, 0)), np.exp(table.min(0)), np.exp(table.max(0)))


def reach(curves: Sequence[Curve], level: float) -> float:
    """The median x from which on the curves stay at or below a level; inf if most do not."""
    return float(np.median([_crossing(curve, level) for curve in curves]))


def _crossing(curve: Curve, level: float) -> float:
    above = np.flatnonzero(curve.distance > level)
    if len(above) == 0:
        return float(curve.x[0])
    k = int(above[-1])
    if k == len(curve.x) - 1:
        return math.inf
    high, low = np.log(curve.distance[k : k + 2])
    share = (high - math.log(level)) / (high - low)
    return float(curve.x[k] + share * (curve.x[k + 1] - curve.x[k]))


def common_level(*methods: Sequence[Curve]) -> float:
    """The lowest level at or below which every curve of these methods ends."""
    return max(float(curve.distance[-1]) for curves in methods for curve in curves)


def speedup(finding: Finding, slow: str, fast: str, x: X, y: Y = "dual") -> float:
    """How many times sooner `fast` is down, for good, at the lowest level that both come down to."""
    a, b = curves_of(finding, slow, x, y), curves_of(finding, fast, x, y)
    level = common_level(a, b)
    return reach(a, level) / reach(b, level) if reach(b, level) > 0 else math.nan


def rate(finding: Finding, label: str) -> float:
    """The factor by which the dual distance falls per iteration, over the whole chart; the median over seeds."""
    n = finding.facts["n"]
    rates = []
    for curve in curves_of(finding, label, "iterations"):
        last = int(np.argmin(curve.distance))
        if last:
            fall = math.log(curve.distance[last] / curve.distance[0])
            rates.append(math.exp(fall / (float(curve.x[last]) * n)))
    return float(np.median(rates)) if rates else math.nan
