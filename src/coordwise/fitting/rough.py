"""Where Newton's method begins: the solution with a stronger penalty, roughly, by a few exact steps over the samples.

Far from the solution a Newton step is short (for the logistic loss it moves scores by about 1), and costs a Gram
matrix. With an l2 of the size of mean |a_i|^2 / W, exact steps over the samples contract by a constant factor per pass
whatever the data are, and what one pass reaches is a better point to begin from than 0 for all smaller l2.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from coordwise.erm import ERM
from coordwise.fitting.model import LinearModel
from coordwise.methods import SDCA
from coordwise.penalties import ElasticNet
from coordwise.recording import start
from coordwise.validation import FloatArray

__all__ = ["exact_steps", "rough_start"]

STRONGER = 10.0  # times the mean of |a_i|^2 / W
PASSES = 1
ENOUGH = 200_000  # samples; of more, so many are drawn
WORTH = 2_000  # samples from which on it costs less than the Newton steps it saves


def rough_start(model: LinearModel, seed: int) -> tuple[FloatArray | None, float]:
    """(w, passes): weights to begin with, None for zeros, and what they cost."""
    if model.n < WORTH:
        return None, 0.0
    part = _sample(model, seed)
    norms = part.problem.rows("rows").norms2()
    mean = float(norms.mean() if part.weights is None else part.weights @ norms / part.total)
    l2 = max(model.penalty.l2, STRONGER * mean / part.total)
    if not 1e-100 < l2 < 1e100:
        return None, 0.0
    w, _ = exact_steps(part.penalised(ElasticNet(0.0, l2)), PASSES, seed)
    return w, PASSES * part.n / model.n


def exact_steps(model: LinearModel, passes: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """(w, y) after some passes of exact steps over the samples, from zeros and without an intercept."""
    objective = model.problem.dual()
    run = start(objective, SDCA().schedule(objective), seed, objective.start(None), pack=False)
    run.advance(steps=passes * model.n)
    return objective.solution(run.image()), run.point()


def _sample(model: LinearModel, seed: int) -> LinearModel:
    """The model on so many of its samples at most, without intercept."""
    if model.n <= ENOUGH:
        return model
    chosen = np.sort(np.random.default_rng(seed).choice(model.n, ENOUGH, replace=False))
    weights = None if model.weights is None else model.weights[chosen]
    if weights is not None and not np.any(weights > 0):
        return model
    A = sp.csr_array(model.A) if sp.issparse(model.A) else model.A
    problem = ERM(A[chosen], model.b[chosen], loss=model.loss, penalty=model.penalty, sample_weight=weights)
    return LinearModel(problem, False)
