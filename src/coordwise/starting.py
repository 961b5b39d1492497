"""Starting a run of the kernel."""

from __future__ import annotations

import numpy as np

from coordwise.kernels import NO_PACKING, Run, Terms
from coordwise.objectives import Objective
from coordwise.schedules import Schedule
from coordwise.validation import FloatArray
from coordwise.varied import VariedRun, VariedTerms

__all__ = ["settle", "start"]


def start(
    objective: Objective,
    schedule: Schedule,
    seed: int,
    x: FloatArray,
    threads: int = 1,
    *,
    pack: bool = True,
    image: FloatArray | None = None,
) -> Run:
    """A run of the schedule on the objective from x (N x K), whose image (with image0) may be known.

    Packing pays for itself within a few passes; exact steps before acceleration are not expected to take more.
    """
    if any(isinstance(terms, VariedTerms) for terms in (objective.coordinates, objective.smooth)):
        assert objective.smooth is not None
        return VariedRun(
            objective.rows,
            objective.coordinates,
            objective.smooth,
            schedule.plan,
            cells=schedule.cells,
            members=schedule.members,
            seed=seed,
            x0=x,
            image0=objective.image0,
        )
    pack = pack and (schedule.plan.accelerated or schedule.renew is None)
    return Run(
        objective.rows,
        objective.coordinates,
        objective.smooth,
        schedule.plan,
        cells=schedule.cells,
        members=schedule.members,
        seed=seed,
        x0=x,
        image0=objective.image0,
        known=image,
        minus_last=objective.minus_last,
        threads=threads,
        pack=packing(objective) if pack else NO_PACKING,
        blocks=objective.blocks,
    )


def packing(objective: Objective) -> int:
    """Whether and how a run copies the rows: once per group of outputs, so not for very many."""
    packs = objective.packs and objective.outputs <= 24 and objective.blocks is None
    packs = packs and not isinstance(objective.smooth, Terms)
    return objective.rows.packing if packs else NO_PACKING


def settle(objective: Objective, schedule: Schedule, x: FloatArray) -> None:
    """Put coordinates that are never drawn at their own minimiser, where they have one."""
    if schedule.idle.any():
        idle = objective.coordinates_of(schedule.idle)
        best = objective.coordinates.minimizers(*x.shape)
        x[idle] = np.where(np.isfinite(best[idle]), best[idle], x[idle])
