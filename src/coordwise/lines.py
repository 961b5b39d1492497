"""Line searches."""

from __future__ import annotations

import math
from collections.abc import Callable

__all__ = ["flattest", "halved", "lowest"]

STEEP = 0.1  # of the slope at the start: what is left at the end of a step that is long enough
LONGEST = 64.0  # times the first length
LEAST, MOST = 0.1, 12  # share of a bracket to be looked at next, lengths after the first


def halved(value: Callable[[float], float], here: float, slope: float) -> tuple[float, float]:
    """(length, value there): 1, halved until value(length) <= here + 1e-4 length slope up to rounding; slope <= 0."""
    length, there = 1.0, value(1.0)
    while length > 1e-8 and not there <= here + 1e-4 * length * slope + 1e-15 * abs(here):
        length /= 2
        there = value(length)
    return length, there


def flattest(
    fall: Callable[[float], float], rate: float, *, steep: float = STEEP, first: float = 1.0, most: int = MOST
) -> float:
    """Where a convex function falls or rises at no more than a part (`steep`) of its `rate` at 0, or about there.

    That is the `first` length if it will do, or if the function does not fall at 0. Else lengths are doubled until the
    function rises, up to LONGEST times the first one; between where it falls and where it rises it is looked for by
    false position, with `most` lengths after the first.
    """
    if not rate > 0:
        return first
    low, high, falls, rises, side = 0.0, math.inf, rate, math.nan, 0
    length, now = first, fall(first)
    for _ in range(most):
        if abs(now) <= steep * rate or (now > 0 and length >= LONGEST * first):
            return length
        if now > 0:
            rises = rises / 2 if side > 0 else rises  # the same side twice: the other end counts for less
            low, falls, side = length, now, 1
        else:
            falls = falls / 2 if side < 0 else falls
            high, rises, side = length, now, -1
        if math.isinf(high):
            length *= 2
        else:
            share = falls / (falls - rises) if math.isfinite(rises) else 0.0
            length = low + max(share, LEAST) * (high - low)
        now = fall(length)
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
