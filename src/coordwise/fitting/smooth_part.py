"""The squared loss with an l1 and an l2 penalty, all features at once: conjugate gradients on the smooth part first.

Without its l1 part P is ridge regression, P(w) = Q(w) + l1 |w|_1, and steps of conjugate gradients on Q cost less than
passes over the features (`coordwise.fitting.krylov`). As long as they take off much more than they add to the l1 part,
P falls with Q; from there coordinate descent goes on.

Where penalties are weak that may be all there is to do. D(y) of P is at most that of Q, since the conjugate of a larger
penalty is smaller. So the gap of P is at most that of Q and l1 |w|_1, and while the latter is well below what the
tolerance allows, steps lead to a certificate.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from coordwise.fitting.krylov import LOOK, Run
from coordwise.fitting.model import Candidate, LinearModel
from coordwise.validation import FloatArray

__all__ = ["smooth_part"]

LITTLE = 0.05  # of P: a step that takes off less is not worth it
SMALL = 0.5  # of the gap that the tolerance allows: an l1 part that leaves room for the rest
LONG = 200  # steps to the certificate that are too many
SURE = 0.9  # of the gap that the tolerance allows: where it is looked whether it holds


def smooth_part(model: LinearModel, tol: float, *, steps: list[int], most: float = np.inf) -> Iterator[Candidate]:
    """Lower P(w, c) for the squared loss, all outputs side by side, from zeros.

    Yields the best candidate at the start and after `LOOK` steps at most: until every gap is <= tol * scale, or `most`
    steps were taken, or P has fallen by less than `LITTLE` in the last one and that gap is not in reach. What was taken
    before each is appended to `steps`.
    """
    goal = tol * model.scale
    best = model.certified_at_zero[0]
    yield best
    run = Run(model)
    lowest = last = best.value  # of P so far; and what bounded the gap at the last look
    left, count, near = most, 0, True
    while left > 0 and not run.ended.all():
        run.step()
        count, left = count + 1, left - 1
        heavy = model.penalty.l1 * (run.size * np.abs(run.w).sum(1))
        value = run.value + heavy
        bound = np.minimum(value, run.gap + heavy)
        on = bool(np.any(value < (1 - LITTLE) * lowest)) or (near and bool(np.all(heavy <= SMALL * goal)))
        lowest = np.minimum(value, lowest)
        if count < LOOK and on and left > 0 and not run.ended.all() and np.any(bound > SURE * goal):
            continue
        near, last = _near(bound, last, SURE * goal, count), bound
        steps.append(count)
        count = 0
        best = model.beside(run.weights, run.dual_variables).better(best)
        yield best
        if not on or np.all(best.gap <= goal) or np.all(bound <= SURE * goal):  # the last: rounding allows no more
            return


def _near(bound: FloatArray, before: FloatArray, goal: FloatArray, count: int) -> bool:
    """Whether every gap is expected to reach its goal soon, going by the last steps."""
    far = bound > goal
    with np.errstate(divide="ignore"):
        away, fallen = np.log(bound[far] / goal[far]), np.log(before[far] / bound[far])
    return bool(np.all(away * count <= LONG * fallen))
