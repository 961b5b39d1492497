"""Schedules from the point that a run has reached: exact steps first, then acceleration with local norm weights.

The strong convexity of a smooth loss's conjugate is that of its flattest point. The logistic loss has phi*''(a) =
1/(a (1 - a)) >= 4, and at the solution most a_i are near 0 or 1. With norm weights w_i = phi*''(A_i)/W, where A_i is at
least as far from the ends as the present dual variable, the one that the present margin implies, and `slack` times
both, S = sum_i sqrt(L_i/w_i) is a fraction of what the worst case gives.

Conjugates with corners (an end of the domain, as for the hinges and Huber's loss, or a kink) hold a y_i in the corner
while the score t_i stays `slope` away from where phi' would leave it. Where an exact step from y_i leads into the
corner, and y_i is near it (steps that are right one by one can be wrong together), y_i is put there and not drawn until
the next look finds that it has to move: w_i = infinity, and the others are an active set with constants, and momentum,
of its own. For those that are not held so, slope |y| makes up for a parabola as far as y_i is from the corner: w_i =
(quad/W) (1 + 2 slope/(quad away)), slope taken smaller by what t_i may still move, which is a part (slack/100) of |a_i|
sqrt(2 gap/l2), and `away` larger by slack.

Features under an l1 penalty have such corners too: w_j = 0, while the slope |g_j| is less than l1. Over the features of
a primal problem (`coordwise.objectives.held_at_zero`) those at 0 are held that an exact step would leave there; nothing
is known of the curvature of the others, which is as with kinks.

A run begins with exact steps, which need no constants and are fast while the error is large, on the active set as soon
as there is one. At the first look scores have much of their way before them: a y_i is held there only if `EARLY` of
what the gap proves possible would not move it, and exact steps go on. So they do when they are about to be done: to
begin with acceleration, and to end it, costs a pass or more. Else the passes that are left are compared: those of exact
steps at their present rate with those of acceleration, which are what it costs to begin with, and `SHARE` of those that
its promise asks for. Where it promises nothing (losses with kinks), it begins once a pass over the active set takes off
less than e^-2: K passes of exact steps per e-fold are e sqrt(K) of restarted ones (`coordwise.restarts`). Under an l1
penalty alone the gap, which is that of residuals scaled until the worst feature fits, stands still while P falls, and
with kinks w swings while D falls; there the decreases of P, or D, tell how fast exact steps are (`Objective.gap_power`,
`Log.speed`).

The weights are renewed at every look, from the same y and z; with restarts, when the momentum is lost anyway, or the
gap is that of coordinates held in vain. That they hold as far as the run goes is hoped, not known: when the certificate
falls by less than half of what they promise, slack doubles. From then on a coordinate is held only while t_i may also
move by a growing part of |a_i| sqrt(2 gap/l2), all of which is what the gap proves possible: in the end no more is
claimed than is known. With restarts nothing is promised; there a set that was chosen in vain grows until the next one.
Features keep their momentum then. That has no proof: with smaller probabilities y is no longer an average of the z's
for a while. It is restarted when f rises (`coordwise.restarts`), and for terms whose domain y could leave, at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from coordwise.objectives import Local, Look, Objective
from coordwise.schedules import Schedule
from coordwise.validation import FloatArray

__all__ = ["LocalWeights"]

FIRST, DOUBT, LAST = 3.0, 2.0, 1e4  # slack: at first, its growth, and where hope ends
EARLY = 0.03  # of what may happen to the scores: what coordinates must withstand to be held at the first look
SOON = 2.0  # passes that exact steps need to the end at their present rate, if nothing else is worth its beginning
BEGIN, CORNERS = 1.0, 0.5  # passes that acceleration costs to begin with; and to end, where terms have corners
SHARE, BENT = 0.5, 0.4  # of the passes that its promise asks for: what it was seen to take; on logistic losses
SLOW = math.exp(-2)  # of the error's logarithm in a pass over the active set: what exact steps must take off


@dataclass(frozen=True)
class LocalWeights:
    """What to go on with from the point that a run has reached.

    `exact` is the schedule of exact steps, None once there were enough of them; `weighted` makes an accelerated one of
    norm weights, `promise` tells its rate per pass (None if it has restarts, which promise nothing), and `careful`
    gives the one without hope, the same each time.
    """

    objective: Objective
    exact: Schedule | None
    weighted: Callable[[FloatArray], Schedule]
    promise: Callable[[FloatArray], float] | None
    careful: Callable[[], Schedule]
    slack: float = FIRST
    early: bool = False  # whether there was no look yet, and terms have corners
    local: Local | None = None  # what the last schedule was made of, if it has restarts

    def renew(self, look: Look) -> Schedule | None:
        """The schedule to go on with, None for the present one; `look` is what is seen of the run."""
        if self.exact is not None and (self.early or look.left <= SOON * look.rate):
            return self._more(look, self.exact)
        vain = self.local is not None and self._in_vain(look)
        if self.local is not None and not look.restarted and not vain:
            return None
        slack = self.slack * DOUBT if look.lost else self.slack
        doubt = (slack - FIRST) / (LAST - FIRST)
        local = self.objective.local_curvature(look, slack, doubt) if slack <= LAST else None
        if vain and local is not None and self.local is not None:  # until a restart the set grows: no two take turns
            before = self.local.weights
            local = local._replace(weights=np.where(np.isinf(before), local.weights, before))
        if self.exact is not None and self._pays(look, self._rate(local), local):
            return self._steps(self.exact, local)
        return self.careful() if local is None else self._accelerated(local, slack)

    def _more(self, look: Look, exact: Schedule) -> Schedule | None:
        """Exact steps as before, on the coordinates that are not held now."""
        if not self.objective.coordinates.shape.corners:
            return None
        local = self.objective.local_curvature(look, self.slack, EARLY if self.early else 0.0)
        return replace(self, early=False)._steps(exact, local)

    def _steps(self, exact: Schedule, local: Local | None) -> Schedule:
        """Exact steps on the coordinates that are not held."""
        steps = replace(exact, renew=self.renew)
        if local is None or not np.isinf(local.weights).any():
            return steps
        held = np.isinf(local.weights)
        members = np.flatnonzero(~held & ~exact.idle).astype(np.uint32)
        return replace(steps, members=members, idle=held, places=local.places)

    def _accelerated(self, local: Local, slack: float) -> Schedule:
        schedule = self.weighted(local.weights)
        kept = replace(self, exact=None, slack=slack, local=local if schedule.restarts else None)
        found = "on an active set, sigma=adaptive" if schedule.restarts else f"sigma=1, slack={slack:g}"
        return replace(
            schedule,
            description=f"nu_acdm(weights=local curvature, {found})",
            places=local.places,
            renew=kept.renew,
        )

    def _rate(self, local: Local | None) -> float | None:
        """What is ahead promises per pass; schedules are made once they are wanted, which costs more than that."""
        if local is None:
            return self.careful().constants.rate_per_pass
        return None if self.promise is None else self.promise(local.weights)

    def _pays(self, look: Look, rate: float | None, local: Local | None) -> bool:
        """Whether exact steps are faster than what is ahead, given its rate per pass if it has one."""
        if rate is not None:
            shape = self.objective.coordinates.shape
            promised = -math.log(max(rate, 1e-300)) / (BENT if shape.logistic else SHARE)
            begin = BEGIN + (CORNERS if shape.corners else 0.0)
            return look.rate > promised or look.left * (promised - look.rate) < begin * promised * look.rate
        lengths = self.objective.lengths
        drawn = lengths.sum() if local is None else lengths[np.isfinite(local.weights)].sum()
        return bool(look.rate * drawn > SLOW * lengths.sum())

    def _in_vain(self, look: Look) -> bool:
        """Whether most of the gap is that of coordinates that are held."""
        assert self.local is not None
        held = np.isinf(self.local.weights)
        part = self.objective.gap_of(look, held) if held.any() else np.zeros(1)
        return bool(np.any(part > look.certificate.gap / 2))
