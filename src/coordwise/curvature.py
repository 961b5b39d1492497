"""Norm weights from local curvature: where a run is, its terms may be far more curved than anywhere in their domain.

The strong convexity of a smooth loss's conjugate is that of its flattest point. The logistic loss has phi*''(a) =
1/(a (1 - a)) >= 4, and at the solution most a_i are near 0 or 1. With norm weights w_i = phi*''(A_i)/W, where A_i is at
least as far from the ends as the present dual variable, the one that the present margin implies, and `slack` times
both, S = sum_i sqrt(L_i/w_i) is a fraction of what the worst case gives.

Conjugates with corners (an end of the domain, as for the squared hinge and Huber's loss, or a kink) hold a y_i in the
corner while the score t_i stays `slope` away from where phi' would leave it. As far as y_i is from the corner, slope
|y| makes up for a parabola: w_i = (quad/W) (1 + 2 slope/(quad away)), slope taken smaller by what t_i may still move,
which is a part (slack/100) of |a_i| sqrt(2 gap/l2), and `away` larger by slack.

The weights are renewed at every look, from the same y and z. That they hold as far as the run goes is hoped, not known:
when the certificate falls by less than half of what they promise, slack doubles, which in the end leads back to the
worst case, for which there is a proof.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from coordwise.objectives import Objective
from coordwise.results import Certificate
from coordwise.schedules import Schedule
from coordwise.validation import FloatArray

__all__ = ["LocalWeights"]

FIRST, DOUBT, LAST = 3.0, 2.0, 1e4  # slack: at first, its growth, and where hope ends


@dataclass(frozen=True)
class LocalWeights:
    """Schedules from the point that a run has reached.

    `weighted` makes a schedule of norm weights with sigma = 1, `careful` the one without hope.
    """

    objective: Objective
    weighted: Callable[[FloatArray], Schedule]
    careful: Callable[[], Schedule]
    slack: float = FIRST

    def renew(self, x: FloatArray, image: FloatArray, certificate: Certificate, lost: bool) -> Schedule:
        """The schedule to go on with from x; `lost` if the last one did not keep its pace."""
        slack = self.slack * DOUBT if lost else self.slack
        own = self.objective.local_curvature(x, image, certificate, slack)
        if own is None or slack > LAST:
            return self.careful()
        schedule = self.weighted(own)
        return replace(
            schedule,
            description=f"nu_acdm(weights=local curvature, sigma=1, slack={slack:g})",
            renew=replace(self, slack=slack).renew,
        )
