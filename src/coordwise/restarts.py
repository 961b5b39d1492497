"""Adaptive restarts: the non-strongly convex method made linear without knowing sigma."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass
class _State:
    error: float = math.inf


@dataclass(frozen=True)
class Restarts:
    """Restart the momentum whenever the certified error has fallen by `drop` since the last restart."""

    drop: float = math.exp(-2.0)

    def begin(self, error: float) -> _State:
        return _State(error)

    def due(self, state: _State, error: float) -> bool:
        if error <= self.drop * state.error:
            state.error = error
            return True
        return False
