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
    """The median x at which the curves first come down to a level; inf if most do not."""
    return float(np.median([_crossing(curve, level) for curve in curves]))


def _crossing(curve: Curve, level: float) -> float:
    below = curve.distance <= level
    if not below.any():
        return math.inf
    k = int(np.argmax(below))
    if k == 0:
        return float(curve.x[0])
    high, low = np.log(curve.distance[k - 1 : k + 1])
    share = (high - math.log(level)) / (high - low)
    return float(curve.x[k - 1] + share * (curve.x[k] - curve.x[k - 1]))


def common_level(*methods: Sequence[Curve]) -> float:
    """The lowest level that every curve of these methods reaches."""
    return max(float(curve.distance.min()) for curves in methods for curve in curves)


def speedup(finding: Finding, slow: str, fast: str, x: X, y: Y = "dual") -> float:
    """How many times sooner `fast` reaches the lowest level that both reach."""
    a, b = curves_of(finding, slow, x, y), curves_of(finding, fast, x, y)
    level = common_level(a, b)
    return reach(a, level) / reach(b, level) if reach(b, level) > 0 else math.nan


def rate(finding: Finding, label: str) -> float:
    """The factor by which the dual distance falls per iteration over the whole chart: median over seeds of the ratio
    of the first distance and the lowest, taken to the power 1/iterations between them.
    """
    n = finding.facts["n"]
    rates = []
    for curve in curves_of(finding, label, "iterations"):
        last = int(np.argmin(curve.distance))
        if last:
            fall = math.log(curve.distance[last] / curve.distance[0])
            rates.append(math.exp(fall / (float(curve.x[last]) * n)))
    return float(np.median(rates)) if rates else math.nan
