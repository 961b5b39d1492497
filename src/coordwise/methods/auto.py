"""The method that chooses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, partial
from typing import ClassVar

import numpy as np

from coordwise.curvature import LocalWeights
from coordwise.methods.accelerated import NUACDM
from coordwise.methods.base import Method
from coordwise.methods.plain import SDCA
from coordwise.objectives import Objective
from coordwise.schedules import Schedule, Split, promised

__all__ = ["Auto"]


@dataclass(frozen=True)
class Auto(Method):
    """Exact steps, then NU_ACDM: with known strong convexity where there is some, with adaptive restarts elsewhere.

    Duals of empirical risks begin with exact coordinate steps and are accelerated when that pays, on the coordinates
    that are not held in a corner of their terms, with norm weights from the curvature where the run is
    (`coordwise.curvature`). Where that curvature is the same everywhere (squared loss), the weights are the strong
    convexity of each coordinate's own term, sigma = 1. Without sample weights these are all equal, which is beta = 0;
    with them, S = sum_i sqrt(1 + curvature_i/own_i) is never larger than for beta = 0. Where L_i/own_i varies, more
    hopeful weights sqrt(own_i L_i) come before, with the sigma that promises the same rate: long rows are drawn less
    often, and until the directions in which that sigma does not hold are all that is left, it is up to twice as fast.
    Once the certificate falls slower than promised, the known weights take over (`coordwise.pace`). Losses with kinks
    have no known sigma: restarts find the rate, in the norm beta = 1, which does not depend on how rows or columns are
    scaled. Primal problems with an l1 penalty are treated alike, features at 0 being those that are held. Linear
    systems and other primal problems (where the data have far more curvature than the penalty) begin with restarts at
    once.
    """

    name: ClassVar[str] = "auto"
    varied: ClassVar[float] = 4.0  # how much L_i/own_i must vary for other weights to matter

    def schedule(self, objective: Objective) -> Schedule:
        """See `Method.schedule`."""
        split = Split.of(objective)
        own = split.own[split.active]
        strong = objective.sigma_is_tight and len(own) > 0 and own.min() > 0
        if not (strong or objective.coordinates.shape.corners):
            return self._restarted(objective)
        exact = replace(SDCA().schedule(objective), description="sdca, before nu_acdm")
        ahead = NUACDM(sigma=1.0 if strong else "adaptive")
        careful = self._hopeful if strong else self._restarted
        careful_once = cache(lambda: careful(objective))
        promise = partial(promised, objective, split) if strong else None
        early = objective.coordinates.shape.corners
        local = LocalWeights(objective, exact, ahead.weighted(objective), promise, careful_once, early=early)
        return replace(exact, renew=local.renew)

    def _restarted(self, objective: Objective) -> Schedule:
        return NUACDM(beta=1.0, sigma="adaptive").schedule(objective)

    def _hopeful(self, objective: Objective) -> Schedule:
        split = Split.of(objective)
        own = split.of_active(split.own)
        ratio = split.of_active(split.L) / own
        if ratio.max() <= self.varied * ratio.min():
            return self._careful(objective)
        hopeful = np.where(split.active, np.sqrt(split.own * split.L), 1.0)
        S, S_own = np.sqrt(split.of_active(split.L / hopeful)).sum(), np.sqrt(ratio).sum()
        schedule = NUACDM(sigma=float(S / S_own) ** 2, weights=hopeful).schedule(objective)
        return replace(
            schedule,
            description="nu_acdm(weights=sqrt(own curvature * L), sigma hoped for)",
            careful=lambda: self._careful(objective),
        )

    def _careful(self, objective: Objective) -> Schedule:
        split = Split.of(objective)
        own = split.of_active(split.own)
        if own.max() == own.min():
            return NUACDM().schedule(objective)
        schedule = NUACDM(sigma=1.0, weights=np.where(split.active, split.own, 1.0)).schedule(objective)
        return replace(schedule, description="nu_acdm(weights=own curvature, sigma=1)")
