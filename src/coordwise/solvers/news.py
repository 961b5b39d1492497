"""Whether candidates still become better."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from coordwise.oracle import Candidate
from coordwise.validation import FloatArray

__all__ = ["News"]


@dataclass
class News:
    """The gap between the smallest P and the largest bound so far, and for how many candidates it has not fallen."""

    value: FloatArray = field(default_factory=lambda: np.full(1, np.inf))
    bound: FloatArray = field(default_factory=lambda: np.full(1, -np.inf))
    worst: float = np.inf
    still: int = 0
    halved: bool = True

    def since(self, found: Candidate, goal: FloatArray) -> int:
        """See one more candidate."""
        self.value = np.minimum(self.value, found.value)
        self.bound = np.maximum(self.bound, found.value - found.gap)
        worst = float(np.max(self.gap / np.maximum(goal, 1e-300)))
        self.still = 0 if worst < self.worst else self.still + 1
        self.halved = not worst > self.worst / 2
        self.worst = min(worst, self.worst)
        return self.still

    @property
    def gap(self) -> FloatArray:
        """Per output."""
        return np.maximum(self.value - self.bound, 0.0)
