"""What a method is: an immutable description that turns an objective into a `Schedule` for the kernel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from coordwise.objectives import Objective
from coordwise.schedules import Schedule
from coordwise.validation import FloatArray, check_array, check_number

__all__ = ["Method", "check_moved", "check_sigma", "check_weights"]


@dataclass(frozen=True)
class Method(ABC):
    """Base of all methods."""

    name: ClassVar[str] = ""

    @abstractmethod
    def schedule(self, objective: Objective) -> Schedule:
        """The method's constants for this objective; ValueError with a sentence if it cannot be applied."""

    def describe(self, **found: object) -> str:
        """Name and parameters, with what was found out about them."""
        shown = {f.name: getattr(self, f.name) for f in fields(self) if f.repr}
        shown.update(found)
        if getattr(self, "weights", None) is not None:
            shown = {"weights": "given"} | {k: v for k, v in shown.items() if k != "beta"}
        inside = ", ".join(
            f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in shown.items() if v is not None
        )
        return f"{self.name}({inside})"


def check_sigma(sigma: object, *, adaptive: bool = True) -> None:
    """ValueError unless sigma is None, positive, or (where that is possible) "adaptive"."""
    if sigma is None or (adaptive and isinstance(sigma, str) and sigma == "adaptive"):
        return
    if isinstance(sigma, str):
        raise ValueError(
            f"sigma={sigma!r} is not known; give a positive number, None" + (" or 'adaptive'." if adaptive else ".")
        )
    check_number("sigma", sigma, low=0, strictly=True)


def check_moved(sigma: float, known: float) -> None:
    """ValueError if sigma is more strong convexity than the terms can give to f."""
    if sigma > known * (1 + 1e-12):
        raise ValueError(
            f"sigma={sigma:.4g} is more than the coordinate terms are known to have ({known:.4g}), and the rest of "
            "this objective is not used; give a smaller sigma, sigma=None, or weights with sigma (see NUACDM)."
        )


def check_weights(weights: Any, count: int) -> FloatArray:
    """Norm weights as a positive array, one per coordinate."""
    array = check_array("weights", weights, (count,), finite=False)
    if np.any(np.isnan(array)):
        raise ValueError(
            f"weights holds NaN (first at index {int(np.argmax(np.isnan(array)))}); give positive numbers."
        )
    if not np.all(array > 0):
        raise ValueError("weights must be positive, one per coordinate.")
    return array
