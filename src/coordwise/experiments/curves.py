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

__all__ = [
    "Curve",
    "band",
    "curves_of",
    "depth",
    "fall",
    "floor_of",
    "gains",
    "labels_of",
    "level_of",
    "reach",
    "share_of_bound",
    "speedup",
]

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
    share = (high - math.log(level)) / (high - low) if high > low else 1.0  # two distances may share a logarithm
    return float(curve.x[k] + share * (curve.x[k + 1] - curve.x[k]))


def level_of(finding: Finding, labels: Sequence[str], y: Y = "dual") -> float:
    """The lowest level at or below which every curve of these methods ends, but ten times the floor at least."""
    ends = [float(curve.distance[-1]) for label in labels for curve in curves_of(finding, label, "passes", y)]
    return max(*ends, 10 * floor_of(finding, y))


def depth(finding: Finding, labels: Sequence[str], y: Y = "dual") -> float:
    """The same level as a share of the distance at the start."""
    return level_of(finding, labels, y) / float(curves_of(finding, labels[0], "passes", y)[0].distance[0])


def speedup(finding: Finding, slow: str, fast: str, x: X, y: Y = "dual") -> float:
    """How many times sooner `fast` is down, for good, at the lowest level that both come down to."""
    level = level_of(finding, (slow, fast), y)
    times = [reach(curves_of(finding, label, x, y), level) for label in (slow, fast)]
    return times[0] / times[1] if min(times) > 0 else math.nan


def gains(finding: Finding, slow: str, fast: str) -> list[float]:
    """The speed-up in iterations, seed by seed, at the level that the curves of all seeds come down to."""
    level = level_of(finding, (slow, fast))
    pairs = zip(*(curves_of(finding, label, "iterations") for label in (slow, fast)), strict=True)
    return [_crossing(one, level) / _crossing(other, level) for one, other in pairs]


def share_of_bound(finding: Finding, label: str) -> float:
    """Theorem 6.1: the largest (D(y_T) - min D) (T + 1)^2/(2 |x_0 - x*|^2 S^2) at any record, a mean over seeds."""
    line = finding.facts["lines"][label]
    shares = []
    for curve in curves_of(finding, label, "iterations"):
        steps = np.round(curve.x * finding.facts["n"])
        shares.append(curve.distance * (steps + 1) ** 2 / (2 * line["distance2"] * line["Theta"]))
    above = curves_of(finding, label, "iterations")[0].distance > floor_of(finding)
    return float(np.max(np.mean(shares, axis=0)[above]))


def fall(finding: Finding, label: str) -> tuple[float, float]:
    """log(first distance / lowest distance) and the iterations between them, medians over seeds."""
    falls, steps = [], []
    for curve in curves_of(finding, label, "iterations"):
        last = int(np.argmin(curve.distance))
        falls.append(math.log(curve.distance[0] / curve.distance[last]))
        steps.append(float(curve.x[last]) * finding.facts["n"])
    return float(np.median(falls)), float(np.median(steps))
