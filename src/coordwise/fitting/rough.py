"""Where Newton's method begins: the solution with a stronger penalty, roughly, by a few exact steps over the samples.

Far from the solution a Newton step is short (for the logistic loss it moves scores by about 1), and costs a Gram
matrix. With an l2 of the size of the samples, |a_i|^2 / W, exact steps over these contract by a constant factor per
pass whatever the data are, and what one pass reaches is a better point to begin from than 0 for all smaller l2.
"""

from __future__ import annotations

import math

from coordwise.fitting.model import LinearModel
from coordwise.methods import SDCA
from coordwise.penalties import ElasticNet
from coordwise.recording import start
from coordwise.validation import FloatArray

__all__ = ["exact_steps", "rough_start"]

STRONGER = 10.0  # times the root mean square of |a_i|^2 / W: rare large samples would have their features all wrong
FLATTER = 5.0  # the same for the logistic loss, whose curvature is a quarter at most
PASSES = 1
ENOUGH = 200_000  # samples; of more, so many are drawn
WORTH = 2_000  # samples from which on it costs less than the Newton steps it saves


def rough_start(model: LinearModel, seed: int) -> tuple[FloatArray | None, float]:
    """(w, passes): weights to begin with, None for zeros, and what they cost."""
    if model.n < WORTH:
        return None, 0.0
    norms = model.problem.rows("rows").norms2()
    unit = max(float(norms.max()), 1e-300)
    squares = (norms / unit) ** 2
    size = unit * math.sqrt(squares.mean() if model.weights is None else model.weights @ squares / model.total)
    stronger = FLATTER if model.loss.shape.logistic else STRONGER
    l2 = max(model.penalty.l2, stronger * size / model.total)
    if not 1e-100 < l2 < 1e100:
        return None, 0.0
    steps = PASSES * min(model.n, ENOUGH)
    w, _ = exact_steps(model.penalised(ElasticNet(0.0, l2)), steps, seed)
    return w, steps / model.n


def exact_steps(model: LinearModel, steps: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """(w, y) after some exact steps over the samples in random order, from zeros and without an intercept."""
    objective = model.problem.dual()
    run = start(objective, SDCA().schedule(objective), seed, objective.start(None), pack=False)
    run.advance(steps=steps)
    return objective.solution(run.image()), run.point()
