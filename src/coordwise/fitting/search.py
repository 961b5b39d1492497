"""Line searches for Newton steps."""

from __future__ import annotations

import math
from collections.abc import Callable

__all__ = ["halved", "lowest", "stretched"]

STEEP = 0.1  # of the slope at the start: what is left at the end of a step that is long enough
LONGEST = 64.0


def halved(value: Callable[[float], float], here: float, slope: float) -> tuple[float, float]:
    """(length, value there): 1, halved until value(length) <= here + 1e-4 length slope up to rounding; slope <= 0."""
    length, there = 1.0, value(1.0)
    while length > 1e-8 and not there <= here + 1e-4 * length * slope + 1e-15 * abs(here):
        length /= 2
        there = value(length)
    return length, there


def stretched(fall: Callable[[float], float], first: float) -> float:
    """1, doubled while a convex function falls at over a tenth of its rate `first` at 0, not beyond its minimum."""
    length, now = 1.0, fall(1.0)
    while now > STEEP * first and length < LONGEST:
        then = fall(2 * length)
        if then < 0:
            return length * (1 + now / (now - then))
        length, now = 2 * length, then
    return length


def lowest(along: Callable[[float], tuple[float, float]], rtol: float = 1e-2, most: int = 20) -> float:
    """Where a convex function of a length is lowest, by Newton's method in a bracket; `along` is (slope, curvature)."""
    low, high, length = 0.0, math.inf, 1.0
    for _ in range(most):
        slope, curvature = along(length)
        low, high = (length, high) if slope < 0 else (low, length)
        there = length - slope / curvature if curvature > 0 else math.inf
        if low <= there <= high and abs(there - length) <= rtol * length:
            return there
        if math.isinf(high):  # not too far at once: the curvature may be that of somewhere else
            length = min(max(there, 2 * length), 10 * length)
        elif low == 0 and not 0 < there < high:
            length = high / 10  # it may be tiny
        else:
            length = there if low < there < high else (low + high) / 2
    return low if low > 0 else high
