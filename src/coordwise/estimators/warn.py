"""Warnings that point at the line of the user's that called."""

from __future__ import annotations

import sys
import warnings

__all__ = ["warn"]

INSIDE = ("coordwise", "sklearn", "joblib")  # packages whose lines tell the user nothing


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the innermost line outside these packages: the call of fit, also by way of a pipeline or a search."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in INSIDE:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
