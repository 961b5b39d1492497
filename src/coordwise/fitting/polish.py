"""Newton's method on the features in use: once the zeros and signs of a sparse model are right, the rest is smooth."""

from __future__ import annotations

from typing import Any

import numpy as np

from coordwise.fitting.model import Candidate, LinearModel
from coordwise.fitting.newton import FEW, direction
from coordwise.fitting.weighted import Gram

__all__ = ["polished"]

STEPS = 20


def polished(model: LinearModel, start: Candidate) -> Candidate:
    """The better of `start` and what Newton's method makes of it, for a smooth loss and one output.

    The signs stay as they are: a step ends where the first weight reaches 0, and goes on without it. More features in
    use than samples, and no l2, are not those of a solution yet: they are left alone.
    """
    w, c = start.w[:, 0].copy(), float(start.c[0])
    used = np.flatnonzero(w)
    if not 0 < len(used) <= (FEW if model.penalty.l2 > 0 else min(FEW, model.n)):
        return start
    loss, b, total, l1, l2 = model.loss, model.b[:, 0], model.total, model.penalty.l1, model.penalty.l2
    s: Any = 1.0 if model.weights is None else model.weights
    gram = Gram(model.columns.part(used), model.intercept, model.problem.threads)
    signs = np.sign(w[used])
    inside = np.ones(len(used), bool)
    best, bent = start, None
    for _ in range(STEPS):
        t = model.problem.product(w[:, None])[:, 0] + c
        y = loss.derivative(t, b, s)
        gradient = (model.problem.moments(y[:, None])[:, 0] + l2 * w)[used] + l1 * signs
        free = np.flatnonzero(inside)
        if model.intercept:
            gradient, free = np.append(gradient, y.sum() / total), np.append(free, len(used))
        if len(free) == 0:  # every weight has come to 0
            break
        curvature = np.asarray(loss.second_derivative(t, b, s), np.float64)
        if bent is None or not np.array_equal(curvature, bent):
            bent, H = curvature, gram(curvature) / total
            H[np.arange(len(used)), np.arange(len(used))] += l2
        step = np.zeros(len(used) + model.intercept)
        step[free] = direction(H[np.ix_(free, free)], gradient[free])
        change = step[: len(used)]
        room = np.where(
            inside & (signs * change > 0), np.abs(w[used]) / np.where(change == 0, 1.0, np.abs(change)), np.inf
        )
        first = int(np.argmin(room))
        length = min(1.0, float(room[first]))
        w[used] -= length * change
        if length < 1:
            w[used[first]], inside[first] = 0.0, False
        if model.intercept:
            c -= length * float(step[-1])
        if length == 1:
            found = model.from_primal(w[:, None])
            better = found.gap[0] < 0.9 * best.gap[0]
            best = found.better(best)
            c = float(found.c[0])
            if not better:
                break
    return best
