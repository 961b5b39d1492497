"""Methods without acceleration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coordwise import kernels
from coordwise.kernels import Plan
from coordwise.methods.base import Method
from coordwise.objectives import LinearSystem, Objective
from coordwise.schedules import Schedule, Split, constants_of, distribution, plain
from coordwise.validation import check_choice, check_number

__all__ = ["RCDM", "SDCA", "Kaczmarz"]


@dataclass(frozen=True)
class RCDM(Method):
    """RCDM (Nesterov), not accelerated: x_i -= g_i/L_i (or its proximal step) with p_i ~ L_i^(1-beta)."""

    name: ClassVar[str] = "rcdm"
    beta: float = 0.0

    def __post_init__(self) -> None:
        check_number("beta", self.beta, low=0, high=1)

    def schedule(self, objective: Objective) -> Schedule:
        """See `Method.schedule`."""
        split = Split.of(objective, move=False)
        return plain(self, objective, split, distribution(split.L, 1 - self.beta), self.beta)


@dataclass(frozen=True)
class Kaczmarz(Method):
    """Randomized Kaczmarz (Strohmer and Vershynin, Theorem 2.1): x += (b_i - <a_i, x>)/|a_i|^2 a_i, p_i ~ |a_i|^2."""

    name: ClassVar[str] = "kaczmarz"

    def schedule(self, objective: Objective) -> Schedule:
        """See `Method.schedule`."""
        if not isinstance(objective, LinearSystem):
            raise ValueError(
                f"kaczmarz solves linear systems only, not {type(objective).__name__}; use LinearSystem(A, b), or "
                "'rcdm' (the same step on other objectives)."
            )
        split = Split.of(objective, move=False)
        return plain(self, objective, split, distribution(split.L, 1.0), 0.0)


@dataclass(frozen=True)
class SDCA(Method):
    """Exact minimisation over one coordinate at a time, not accelerated.

    Exact where G is quadratic (l2 penalties, linear systems, least squares); elsewhere, and for groups of features, one
    proximal step with the curvature bound L_i.

    Parameters
    ----------
    order : {"permutation", "uniform", "norms"}
        A fresh random permutation every N steps; independent uniform draws; draws with p_i ~ L_i (squared norms).
    """

    name: ClassVar[str] = "sdca"
    order: str = "permutation"

    def __post_init__(self) -> None:
        check_choice("order", self.order, ("permutation", "uniform", "norms"))

    def schedule(self, objective: Objective) -> Schedule:
        """See `Method.schedule`."""
        split = Split.of(objective)
        curvature = objective.curvature
        active = curvature > 0
        if self.order == "norms":
            p = distribution(np.where(active, split.L, 0.0), 1.0)
        else:
            p = active / max(int(active.sum()), 1)
        # A coordinate that G does not see starts at its minimiser; any positive curvature keeps it there.
        plan = Plan(accelerated=False, prox=True, step=np.where(active, curvature, 1.0))
        cells = None if self.order == "permutation" else kernels.alias_cells(p)
        constants = constants_of(objective, split, p if active.any() else split.active / 1.0, np.ones_like(split.L))
        return Schedule(plan, cells, ~active, constants, self.describe())
