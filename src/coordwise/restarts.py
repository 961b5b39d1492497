"""Adaptive restarts: the non-strongly convex form made linear where sigma is unknown.

Theorem 6.1 bounds a period of T steps from x_0 by f(y_T) - f* <= 2 S^2 |x_0 - x*|_w^2/(T + 1)^2. Where f grows
quadratically, (sigma/2) |x_0 - x*|_w^2 <= f(x_0) - f*, that is 4 S^2/(sigma (T + 1)^2) times the error at x_0. A period
that divides the error by e^2 thus ends within 2e S/sqrt(sigma) steps, whatever sigma is, and e^2 makes the number of
steps per factor e smallest. Waiting for the certificate to fall by e^2 needs no sigma and cannot lose the O(1/T^2)
bound: if it never falls that far, the momentum is never touched. (The certificate stands for f - f*: a duality gap
bounds it from above; a residual or gradient norm goes like its square root, so e^2 asks for more there, which was also
the faster choice of e and e^2 where it was measured.)

A certificate may lag behind (`Objective.gap_power`): under an l1 penalty alone it stands still for long while f falls.
There momentum that carries f upwards between two records ends a period, too. Where the certificate can be relied on, f
is left alone: on its way down an accelerated method may well rise for a while (on linear systems with a geometric
spectrum such restarts cost a factor of ten).
"""

from __future__ import annotations

import math

__all__ = ["Restarts"]


class Restarts:
    """Decides when to restart: when the certified error is e^-2 of what it was at the last restart, or f rises."""

    drop = math.exp(-2.0)

    def __init__(self) -> None:
        self._error = math.inf

    def due(self, error: float, rising: bool = False) -> bool:
        """Whether to restart now; `error` is the certified error at the present point, `rising` whether f rose."""
        first = math.isinf(self._error)
        if first or rising or error <= self.drop * self._error:
            self._error = error
            return not first
        return False
