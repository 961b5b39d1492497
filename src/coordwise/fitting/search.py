"""The line search that all Newton steps share."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["halved"]


def halved(value: Callable[[float], float], here: float, slope: float) -> tuple[float, float]:
    """(length, value there): 1, halved until value(length) <= here + 1e-4 length slope up to rounding; slope <= 0."""
    length, there = 1.0, value(1.0)
    while length > 1e-8 and not there <= here + 1e-4 * length * slope + 1e-15 * abs(here):
        length /= 2
        there = value(length)
    return length, there
