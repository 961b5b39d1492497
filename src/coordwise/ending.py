"""How a run ends: its stopping inequality confirmed at a point itself, and what is then returned."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from coordwise.methods import SDCA
from coordwise.objectives import over_outputs
from coordwise.plane import Plane
from coordwise.results import Certificate
from coordwise.starting import start
from coordwise.validation import FloatArray

if TYPE_CHECKING:
    from coordwise.recording import Log

__all__ = ["Ending", "Found"]

FRESH = 10  # passes after which a run's image has about the rounding of one that is computed anew
EXACT = 1e-11  # of a value: what a gap has to be above that is the difference of two of them
REACH, MORE = 20.0, 4.0  # times the tolerance: up to which gap a better primal point is looked for; or what one gained
FAR = 1e3  # the same: from which gap on points are kept for it
LITTLE = 1.1  # what it has to gain
ROUNDS = 3  # of exact steps at the end, which may not meet tol at once


@dataclass(frozen=True, eq=False)
class Found:
    """A point, its image and certificate, and the weights of that if they are not those the point leads to."""

    x: FloatArray
    image: FloatArray
    certificate: Certificate
    w: FloatArray | None = None


class Ending:
    """Whether a run is there, and where: `found`, once it is."""

    def __init__(self, log: Log) -> None:  # which it does not keep: each would keep the other, and the data, alive
        self.found: Found | None = None
        self.plane: Plane | None = log.objective.plane() if log.schedule.renew is not None else None
        self.reach = REACH
        self.rounds = 0  # of exact steps at the end that were tried

    def see(self, log: Log) -> None:
        """The run has a new certificate."""
        if self.plane is not None and log.current.error <= FAR * log.tol:
            assert log.g is not None
            self.plane.see(log.run.image(), log.g)

    def met(self, log: Log, *, last: bool = False) -> bool:
        """Whether the inequality holds at the point itself, with the primal point it leads to, or a better one.

        If it is the `last` look, there is no little further on.
        """
        c, tol = log.current, log.tol
        near = 0 < c.error <= self.reach * tol and bool(np.all(tol * c.scale > EXACT * np.abs(c.primal)))
        if near and self.plane is not None and self.plane.known and self._improved(log, self.plane):
            return True
        return c.meets(tol) and self._confirmed(log, last=last)

    def _improved(self, log: Log, plane: Plane) -> bool:
        """Whether it holds with the best primal point in the plane of the last two, if that is a better one."""
        c = log.current
        begun = time.perf_counter()
        w, value = plane.best(brief=c.meets(log.tol))
        primal = np.array([value])
        log.seconds += time.perf_counter() - begun
        near = replace(c, gap=np.maximum(c.value + primal, 0.0))
        gained = c.error / max(near.error, 1e-300)
        self.reach = MORE * gained
        if gained < LITTLE:
            self.plane = None
        if np.any(primal > c.primal) or not near.meets(log.tol):
            return False
        x = log.point
        x = x if (better := self._polished(log, x)) is None else better
        image, certificate = log.objective.beside(primal, x)
        if not certificate.meets(log.tol):  # rounding: the end is left to the weights of the point itself
            self.plane = None
            return False
        self.found = Found(x, image, certificate, w)
        log.append(certificate)
        return True

    def _confirmed(self, log: Log, *, last: bool) -> bool:
        """Whether the inequality holds at the point itself, not only for images that carry rounding."""
        objective = log.objective
        x = log.point
        if objective.image_decides:
            self.found = Found(x, log.run.image(), log.current)
            return True
        if self.rounds < ROUNDS and (better := self._polished(log, x)) is not None:
            found = Found(better, *objective.exact(better))
            self.rounds += 1
            if found.certificate.meets(log.tol):
                self.found = found
                log.append(found.certificate)
                return True
            if self.rounds < ROUNDS and not last:  # a little further on it will
                return False
        fresh = log.passes - log.synced <= FRESH
        found = Found(x, *(objective.confirmed(x, log.run.image(), log.current) if fresh else objective.exact(x)))
        if found.certificate.meets(log.tol):
            self.found = found
            return True
        log.resync()
        return False

    def _polished(self, log: Log, x: FloatArray) -> FloatArray | None:
        """The point after a round of exact steps on what is in no corner; None where that makes no difference in kind.

        Accelerated iterates are averages of points on the boundary: without the round, coordinates that belong at a
        kink or a bound (the zeros of a Lasso) are only close to it.
        """
        plan, terms = log.schedule.plan, log.objective.coordinates
        if not (plan.accelerated and plan.prox) or terms.shape.logistic:
            return None
        begun = time.perf_counter()
        schedule = SDCA().schedule(log.objective)
        loose = ~over_outputs(np.all, terms.in_corner(x)) & ~schedule.idle
        if not loose.any():
            return x
        members = np.flatnonzero(loose).astype(np.uint32)
        run = start(log.objective, replace(schedule, members=members), 0, x, pack=False, image=log.run.image())
        run.advance(steps=len(members))
        log.extra_steps += run.steps
        log.extra_entries += run.entries
        log.seconds += time.perf_counter() - begun
        return run.point()
