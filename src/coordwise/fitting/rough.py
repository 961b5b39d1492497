"""Where Newton's method begins: the solution with a stronger penalty, roughly, by a few exact steps over the samples.

Far from the solution a Newton step is short (for the logistic loss it moves scores by about 1), and costs a Gram
matrix. With an l2 of about the size of the samples, |a_i|^2 / W, a pass of exact steps over these contracts by a
constant factor whatever the data are, and what it reaches is a better point to begin from than 0 for all smaller l2.

Samples with few entries (dense ones: with not so few, since their Gram matrices are vectorised) have Gram matrices that
cost no more than such a pass. There a part of them has to do, with a smaller l2, on the logistic loss the smaller the
fewer of them a feature has: a strong one would leave rare features where they are. Where w comes out too long, it is
made shorter.

Steps on a part of the samples lead to the w that l2 has on that part alone if l2 is smaller by the part: nothing has to
be copied for that, whichever samples they are.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from coordwise.fitting.model import LinearModel
from coordwise.methods import SDCA
from coordwise.penalties import ElasticNet
from coordwise.starting import start
from coordwise.validation import FloatArray

__all__ = ["Rough", "exact_steps", "rough_start"]

STRONGER = 10.0  # times the root mean square of |a_i|^2 / W: rare large samples would have their features all wrong
FLATTER, BRIEFLY = 5.0, 1.25  # the same for the logistic loss, whose curvature is a quarter at most; of a part of them
ENOUGH = 200_000  # samples; of more, so many are drawn
BRIEF, DENSE = 16, 64  # entries of a sample that are few; of a dense one
PART = 8  # then one sample in so many
MOST = 0.4  # of all samples: from here on steps on so many of all of them cost less than a copy of these
EACH, CURVED = 60, 100  # but so many per feature; for the logistic loss, whose Newton steps cost more
MANY = 500  # samples per feature that are many: with fewer, the l2 of logistic losses goes like their root
WORTH = 2_000  # samples from which on it costs less than the Newton steps it saves


class Rough(NamedTuple):
    """Weights to begin with (None: zeros), their scores if these are known, and what they cost."""

    w: FloatArray | None = None
    t: FloatArray | None = None
    passes: float = 0.0


def rough_start(model: LinearModel, seed: int) -> Rough:
    """Where to begin."""
    if model.n < WORTH:
        return Rough()
    brief = model.problem.rows("rows").nnz <= BRIEF * model.n if sp.issparse(model.A) else model.d <= DENSE
    steps = min(model.n, ENOUGH)
    if brief:
        steps = min(max(steps // PART, (CURVED if model.loss.shape.logistic else EACH) * model.d), steps)
    some = model.sampled(spread(model.n, steps, seed)) if brief and steps < MOST * model.n else model
    if some is None:
        return Rough()
    total = some.total * steps / some.n
    norms = some.problem.rows("rows").norms2()
    unit = max(float(norms.max()), 1e-300)
    squares = (norms / unit) ** 2
    size = unit * math.sqrt(squares.mean() if some.weights is None else some.weights @ squares / some.total)
    if not model.loss.shape.logistic:
        stronger = STRONGER * steps / min(model.n, ENOUGH)
    else:
        stronger = BRIEFLY * min(math.sqrt(steps / (MANY * model.d)), 1.0) if brief else FLATTER
    l2 = max(model.penalty.l2, stronger * size / total) * total / some.total
    if not 1e-100 < l2 < 1e100:
        return Rough()
    w, _ = exact_steps(some.penalised(ElasticNet(0.0, l2)), steps, seed)
    w, t = _shortened(model, w) if brief else (w, None)
    return Rough(w, t, steps / model.n)


def spread(n: int, count: int, seed: int) -> NDArray[np.intp]:
    """`count` of n indices in order: a random one out of each of so many stretches."""
    ends = np.arange(count + 1, dtype=np.int64) * n // count
    places = np.random.default_rng(seed).random(count)
    return ends[:-1] + (places * np.diff(ends)).astype(np.int64)


def _shortened(model: LinearModel, w: FloatArray) -> tuple[FloatArray, FloatArray]:
    """w, or the part of it at which P(w, 0) stops falling, as a secant of its slope has it; and Aw."""
    terms, t = model.problem.terms, model.problem.product(w)
    ends = (terms.subgradients(at) for at in (np.zeros_like(t), t))
    first, last = (np.einsum("ik,ik->k", y, t) / model.total for y in ends)
    last += model.penalty.l2 * np.einsum("jk,jk->k", w, w)
    part = np.where((first < 0) & (last > 0), first / np.where(last > first, first - last, -1.0), 1.0)
    return w * part, t * part


def exact_steps(model: LinearModel, steps: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """(w, y) after some exact steps over the samples in random order, from zeros and without an intercept."""
    objective = model.problem.dual()
    run = start(objective, SDCA().schedule(objective), seed, objective.start(None), pack=False)
    run.advance(steps=steps)
    return objective.solution(run.image()), run.point()
