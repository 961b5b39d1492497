"""Sparse models on working sets of features.

The solution of an l1 penalty has few features. Each round certifies the current point over all features, takes those
that are in use and those whose dual constraints are nearest to being active as working set, and solves the problem on
these alone: exactly for the squared loss and few features (`coordwise.fitting.gram`), else by proximal Newton steps
(`coordwise.fitting.proximal`).

With a weak penalty the solution has many features, and by the time the working sets have grown to their number a few
passes over all of them would have found these. So for the squared loss the first working set is everything if the
features that are expected in the solution are so many that linear systems of them cost more than passes (`many_used`);
in dense data the second one, since what the first one leaves outside of the penalty tells much more. There coordinate
descent holds the features that stay at 0 by itself (`coordwise.curvature`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from coordwise.erm import feasible_share
from coordwise.fitting.gram import active_weights, gram_solution
from coordwise.fitting.model import Candidate, LinearModel
from coordwise.fitting.polish import polished
from coordwise.fitting.proximal import Descent, proximal_newton
from coordwise.interrupts import Interrupted
from coordwise.validation import FloatArray

__all__ = ["FIRST", "many_used", "nearest", "outside", "working_sets"]

FIRST, BEGIN = 100, 150  # features of a working set at least; and for the squared loss on dense data
FULL = 0.8  # of a working set in use: it was too small
EXACT, SPARSE = 450, 1000  # features up to which the squared loss is solved exactly, from a Gram matrix; sparse ones
SHARE = 0.3  # of the features outside of the penalty: how many are used at the end
TIMES, LARGEST = 3.0, 600  # how many times these the first working set has, of sparse data; and at most
COSTLY, RARELY = 12.0, 110.0  # times the stored entries: multiplications in a factor of what is used that are too many
MANY, COARSE, FEWER = 420, 1e-2, 300  # features in use of sparse data that are too many; from a tolerance on, fewer
FINE = 1e-12  # tolerances that steps on all features meet, whatever rounding does
INNER, GOOD = 0.3, 0.02  # gap on a working set relative to the gap of the problem: at first, and on good sets


def working_sets(
    model: LinearModel,
    tol: float,
    descent: Descent,
    *,
    start: Candidate | None = None,
    many: bool = False,
) -> Iterator[Candidate]:
    """Minimise P(w, c), output by output; for smooth losses and any penalty.

    The first working set is all features if they are known to be `many`, or expected to be.

    Yields the best candidate at the start and after every round, until every gap is <= tol * scale, the descent's
    limits are reached, or rounding allows no more. `Interrupted` has the best candidate, too.
    """
    best, v = model.certified_at_zero if start is None else model.certified(start.w)
    w = best.w.copy()
    inner = np.full(model.outputs, INNER)
    plain = model.penalty.l1 == 0 and not model.penalty.positive
    squared, dense, first = model.loss.name == "squared", not sp.issparse(model.A), start is None
    expected = _expected(model, outside(model, v)) if first and squared and not dense else 0.0
    many = descent.watched = many or _too_many(model, expected, tol)
    sizes, last = np.full(model.outputs, min(int(TIMES * expected), LARGEST)), np.full(model.outputs, model.d)
    least = BEGIN if squared and dense else FIRST
    yield best
    while len(todo := np.flatnonzero(best.gap > tol * model.scale)) and not descent.spent:
        for k in todo:
            used = np.flatnonzero(w[:, k])
            more = 4 if len(used) > FULL * last[k] else 2
            sizes[k] = last[k] = model.d if many else min(model.d, max(sizes[k], more * len(used), least))
            which = nearest(model, v[:, k], used, int(sizes[k]))
            if many and inner[k] >= GOOD:
                goal = tol * model.scale[k] / 2
            else:
                goal = max(inner[k] * best.gap[k], tol * model.scale[k] / 2 if inner[k] >= GOOD else 0.0)
            part = model.restricted(which, int(k))
            here = w[which, k][:, None]
            if squared and len(which) <= (EXACT if dense else SPARSE):
                if plain:
                    here = gram_solution(part, goal / float(part.scale[0]))[0].w
                else:
                    here, _ = active_weights(part, here)
                descent.entries += part.columns.nnz
            else:
                try:
                    reached = proximal_newton(part, part.from_primal(here), goal, descent)
                except Interrupted as stop:
                    w[which, k] = stop.result.w[:, 0]
                    raise Interrupted(result=model.certified(w)[0].better(best)) from None
                if reached.gap[0] > tol * model.scale[k] / 2 and (inner[k] < INNER or len(which) == model.d):
                    reached = polished(part, reached)
                here = reached.w
            w[which, k] = here[:, 0]
        found, v = model.certified(w)
        if first and dense and squared:
            used = np.count_nonzero(w, axis=0).max() + SHARE * outside(model, np.where(w == 0, v, 0.0))
            many = descent.watched = _too_many(model, float(used), tol)
        first = False
        slow = found.gap[todo] > best.gap[todo] / 2
        full = sizes[todo] >= model.d
        if np.all(slow & full & (inner[todo] < 1e-6)):
            yield found.better(best)  # all that rounding allows
            return
        # A working set is solved to a fraction of the gap, so what is left stems from other features, if there are any;
        # if not, the working set is good enough to be solved on more accurately.
        sizes[todo] = np.where(slow, np.minimum(2 * sizes[todo], model.d), 0)
        inner[todo] = np.where(slow, np.where(full, inner[todo] / 10, INNER), GOOD)
        best = found.better(best)
        yield best


def outside(model: LinearModel, v: FloatArray) -> int:
    """How many features have slopes v = -(1/W) A'y outside of the l1 penalty, in the output that has most of them."""
    return int(np.count_nonzero((v if model.penalty.positive else np.abs(v)) > model.penalty.l1, axis=0).max())


def many_used(model: LinearModel, count: int, tol: float) -> bool:
    """Whether a solution is expected to use too many features for working sets, if so many (`count`) are outside of the
    penalty at w = 0. Of dense data nobody knows: the first working set has to tell.
    """
    return sp.issparse(model.A) and _too_many(model, _expected(model, count), tol)


def _expected(model: LinearModel, count: int) -> float:
    """How many features a solution on sparse data is expected to use, if so many are outside of the penalty at w = 0:
    `SHARE` of these, without an l2 part fewer if there are more features than samples, since most are rare then.
    """
    rare = min(1.0, model.n / model.d) if model.penalty.l2 == 0 else 1.0
    return SHARE * rare * count


def _too_many(model: LinearModel, used: float, tol: float) -> bool:
    """Whether linear systems of so many features cost more than passes, which touch the stored entries.

    Without an l2 part there are solutions with at most as many as there are samples. Not for the finest tolerances:
    working sets end with exact solutions, which the coarsest do not need.
    """
    if model.penalty.l2 == 0:
        used = min(used, model.n)
    sparse = sp.issparse(model.A)
    most = (FEWER if tol >= COARSE else MANY) if sparse else np.inf
    costly = used**3 > (RARELY if sparse else COSTLY) * model.columns.nnz or used > most
    return costly and tol >= FINE


def nearest(model: LinearModel, v: FloatArray, used: Any, size: int) -> Any:
    """The features in use and those nearest to |<a_j, y>|/W = l1, `size` of them, in order."""
    if size >= model.d:
        return np.arange(model.d)
    if "norms" not in model.shared:
        norms = model.columns.norms(model.weights, model.intercept)
        model.shared["norms"] = np.where(norms > 1e-12 * max(norms.max(), 1e-300), norms, np.inf)
    norms = model.shared["norms"]
    reach = v if model.penalty.positive else np.abs(v)
    share = feasible_share(model.penalty, -v[:, None]) if model.penalty.l2 == 0 else 1.0
    away = (model.penalty.l1 - share * reach) / norms
    away[np.isinf(norms)] = np.inf
    away[used] = -np.inf
    return np.sort(np.argpartition(away, size)[:size])
