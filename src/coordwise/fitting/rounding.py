"""What rounding may hide of a duality gap.

P and D are computed from scores t = Aw + c and moments v = -(1/W) A'y that carry rounding errors: of a score, to first
order, eps (|a_i| |w| + |c|), and of the moments delta = eps sum_i |y_i| |a_i|/W in all. Sums are taken to be off by a
few eps of their terms: rounding errors cancel for the most part.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from coordwise.fitting.model import Candidate, LinearModel
from coordwise.kernels import Terms
from coordwise.validation import FloatArray

__all__ = ["with_rounding"]

EPS = 2 * float(np.finfo(float).eps)  # the relative error of products and sums


def with_rounding(model: LinearModel, found: Candidate, goal: FloatArray, again: bool) -> Candidate:
    """The candidate with what rounding may hide added to its gap.

    A gap that is the difference of two values is not known beyond the rounding of these. Where that decides whether it
    is <= goal, and only if it is allowed to look `again`, the gap is computed as a sum of terms none of which is
    negative.
    """
    weights = np.linalg.norm(found.w, axis=0)
    delta = EPS * model.problem.reach(found.y) / model.total
    first = 2 * delta * weights + EPS * np.abs(found.c) * np.abs(found.y).sum(axis=0) / model.total
    l1, l2 = model.penalty.l1, model.penalty.l2
    if l2 > 0:  # r*(v) changes by delta |grad r*(v)| + delta^2/(2 l2), and |grad r*(v) - w| <= sqrt(2 gap/l2)
        gap = np.where(np.isfinite(found.gap), np.maximum(found.gap, 0.0), 0.0)
        first = first + delta * np.sqrt(2 * gap / l2) + delta**2 / (2 * l2)
    elif l1 > 0:  # y has to be scaled by 1 - delta/l1
        first = first + found.value * delta / l1
    gap = np.maximum(found.gap, 0) + first + EPS * found.value
    if again and not np.all(gap <= goal):
        gap = np.minimum(gap, _summed(model, found, delta, first))
    return replace(found, gap=gap)


def _summed(model: LinearModel, found: Candidate, delta: FloatArray, first: FloatArray) -> FloatArray:
    """The gap as the sum of phi(t_i) + phi*(y_i) - t_i y_i over the samples and the same of r, with its rounding.

    A term with curvature at most M, whose value is f at t, is at most (sqrt(f) + sqrt(M/2) e)^2 at t + e. So for smooth
    losses and an l2 part, rounding matters to second order only.
    """
    s = 1.0 if model.weights is None else float(model.weights.max())
    t = model.scores(found.w, found.c)
    everywhere, all_features = np.ones(model.n, bool), np.ones(model.d, bool)
    gap = model.problem.terms.fenchel_young(found.y, np.ascontiguousarray(-t / model.total), everywhere)
    v = -model.problem.moments(found.y)
    penalty = Terms(model.penalty.shape, 1.0, None, None)
    gap = gap + penalty.fenchel_young(np.ascontiguousarray(found.w), -v, all_features)
    gap = np.maximum(gap, 0)  # each term is non-negative up to rounding
    gap += np.abs(found.c * found.y.sum(axis=0)) / model.total  # sum_i y_i is 0 up to rounding
    if model.penalty.l2 == 0 or model.loss.gamma == 0:
        return gap + first
    scores = EPS * (
        np.sqrt(model.problem.frobenius2) * np.linalg.norm(found.w, axis=0) + np.sqrt(model.n) * abs(found.c)
    )
    off = np.sqrt(s / (2 * model.loss.gamma * model.total)) * scores + delta / np.sqrt(2 * model.penalty.l2)
    return np.asarray((np.sqrt(gap) + off) ** 2)
