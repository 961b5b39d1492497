"""Multinomial logistic regression with an l1 penalty: L-BFGS-B on working sets of features, then Newton's method.

With W = U - V, U >= 0 and V >= 0, the penalty is smooth and the bounds give exact zeros. Once the zeros and signs are
right, what is left is a smooth problem in the other weights, which Newton's method solves to the last digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax

from coordwise.erm import ERM, feasible_share
from coordwise.fitting.fit import Fit
from coordwise.fitting.model import Candidate, LinearModel
from coordwise.fitting.newton import FEW, direction
from coordwise.fitting.softmax import (
    Round,
    best_intercepts,
    certificate_with_rounding,
    dual_point,
    entropy,
    hessian_blocks,
    losses,
    nothing,
    rounds_to_the_end,
    sizes,
)
from coordwise.fitting.weighted import Gram
from coordwise.fitting.working import FIRST, nearest
from coordwise.penalties import ElasticNet
from coordwise.recording import Progress
from coordwise.results import Status
from coordwise.validation import FloatArray

__all__ = ["sparse_multinomial"]


def sparse_multinomial(
    X: Any,
    codes: Any,
    count: int,
    penalty: ElasticNet,
    weights: FloatArray | None,
    *,
    intercept: bool,
    tol: float,
    most: int,
    start: Candidate | None = None,
    time_limit: float | None = None,
    callback: Callable[[Progress], object] | None = None,
) -> Fit:
    r"""minimise over W (d x K), c   P = (1/S) sum_i s_i (log sum_k exp(t_ik) - t_iy) + sum_k r(w_k),   t = XW + c.

    As in `multinomial`, Y = s (q - e_y), q = softmax(t), is a dual point once the intercepts are the best ones for W;
    without an l2 part it is scaled towards 0, where it stays one, until |X'Y|/S <= l1. Ends when P + D <= tol * log K.
    """
    whole = _Softmax(X, codes, count, penalty, weights, intercept)

    def rounds() -> Iterator[Round]:
        W = np.zeros((whole.d, count)) if start is None else start.w.copy()
        best, v = whole.certified(W, np.zeros(count) if start is None else start.c)
        yield best, 0, None
        size, steps, budget, stalled = 0, 0, 50, 0
        while True:
            used = np.flatnonzero(best.w.any(axis=1))
            size = min(whole.d, max(size, 2 * len(used), FIRST))
            which = nearest(whole.model, np.max(np.abs(v), axis=1), used, size)
            part = whole if len(which) == whole.d else whole.restricted(which)
            w, c, taken = part.descend(best.w[which], best.c, min(budget, most - steps))
            steps += taken
            before = best.gap[0]
            for weights_of_part, intercepts in ((w, c), part.polished(w, c)):
                W = np.zeros_like(best.w)
                W[which] = weights_of_part
                candidate, there = whole.certified(W, intercepts)
                if candidate.gap[0] < best.gap[0]:
                    best, v = candidate, there
            if best.gap[0] > before / 2:  # too few features, or too few steps
                size, budget = min(2 * size, whole.d), 2 * budget
            stalled = stalled + 1 if part is whole and best.gap[0] > 0.9 * before else 0
            yield best, steps, Status.STALLED if stalled == 3 else None  # then it is all that rounding allows

    return rounds_to_the_end(
        rounds,
        nothing(whole.n, whole.d, count),
        tol=tol,
        most=most,
        time_limit=time_limit,
        callback=callback,
        strategy="multinomial: L-BFGS-B on working sets of features, and Newton's method on the features in use",
    )


class _Softmax:
    """The problem on some features, with its certificate and two ways to descend."""

    def __init__(
        self, X: Any, codes: Any, count: int, penalty: ElasticNet, weights: FloatArray | None, intercept: bool
    ) -> None:
        self.problem = ERM(X, np.zeros(X.shape[0]), penalty=penalty, sample_weight=weights)
        self.model = LinearModel(self.problem, intercept)  # for what it knows of the matrix
        self.X, self.codes, self.count, self.penalty, self.weights, self.intercept = (
            X,
            codes,
            count,
            penalty,
            weights,
            intercept,
        )
        self.n, self.d = X.shape
        self.s = np.ones(self.n) if weights is None else weights
        self.total = self.problem.total
        self.hot = np.zeros((self.n, count))
        self.hot[np.arange(self.n), codes] = 1.0

    def restricted(self, which: Any) -> _Softmax:
        """The problem on some of the features."""
        columns = self.model.columns.part(which)
        return _Softmax(columns, self.codes, self.count, self.penalty, self.weights, self.intercept)

    def losses(self, t: FloatArray) -> float:
        """The mean loss at scores t."""
        return float(self.s @ losses(t, self.hot)) / self.total

    def certified(self, W: FloatArray, c: FloatArray) -> tuple[Candidate, FloatArray]:
        """W with the best intercepts, its dual point and gap; and v = -X'Y/S there."""
        t = self.problem.product(W)
        c = best_intercepts(self.s, t, self.hot, c) if self.intercept else c
        t += c
        q = softmax(t, axis=1)
        y = dual_point(q, self.s, self.hot, balanced=self.intercept)  # off the constraint D is infinite
        v = -self.problem.moments(y)
        share = 1.0 if self.penalty.l2 > 0 else float(np.min(feasible_share(self.penalty, -v)))
        y, v = share * y, share * v
        value = self.losses(t) + float(self.penalty.value(W).sum())
        dual = entropy(y, self.s, self.hot) / self.total + float(self.penalty.conjugate(v).sum())
        norms = np.sqrt(self.problem.rows("rows").norms2())
        y, gap = certificate_with_rounding(
            value, dual, y, s=self.s, hot=self.hot, t=t, v=v, weights=(W, c), row_norms=norms, penalty=self.penalty
        )
        return Candidate(W, c, y, np.array([value]), np.array([gap])), v

    def smooth(self, W: FloatArray, c: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Losses and l2 part, and their gradients."""
        t = self.problem.product(W) + c
        y = self.s[:, None] * (softmax(t, axis=1) - self.hot)
        l2 = self.penalty.l2
        value = self.losses(t) + l2 / 2 * float(np.sum(W * W))
        return value, self.problem.moments(y) + l2 * W, y.sum(0) / self.total

    def descend(self, W: FloatArray, c: FloatArray, most: int) -> tuple[FloatArray, FloatArray, int]:
        """L-BFGS-B on U, V and c, features scaled; at most `most` iterations."""
        d, count = self.d, self.count
        size = d * count
        squares = self.problem.rows("columns").norms2(self.weights)
        unit = np.repeat(sizes(squares, self.total, self.penalty.l2), count)
        l1 = self.penalty.l1 / unit

        def value_and_gradient(theta: FloatArray) -> tuple[float, FloatArray]:
            U, V = theta[:size], theta[size : 2 * size]
            value, slope, free = self.smooth(((U - V) / unit).reshape(d, count), theta[2 * size :])
            slope = slope.reshape(-1) / unit
            return value + float(l1 @ (U + V)), np.concatenate([l1 + slope, l1 - slope, free])

        flat = W.reshape(-1) * unit
        theta = np.concatenate([np.maximum(flat, 0), np.maximum(-flat, 0), c])
        bound = (None, None) if self.intercept else (0.0, 0.0)
        found = minimize(
            value_and_gradient,
            theta,
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, None)] * (2 * size) + [bound] * count,
            options={"maxiter": most, "maxfun": 10 * most, "maxcor": 20, "gtol": 1e-14, "ftol": 0.0},
        )
        W = ((found.x[:size] - found.x[size : 2 * size]) / unit).reshape(d, count)
        return W, found.x[2 * size :], max(int(found.nit), 1)

    def polished(self, W: FloatArray, c: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Newton's method on the weights that are not 0, signs fixed; W itself where they are too many."""
        signs = np.sign(W)
        features, classes = np.nonzero(signs)
        extra = self.count if self.intercept else 0
        if len(features) == 0 or len(features) + extra > FEW:
            return W, c
        chosen = np.unique(features)
        gram = Gram(self.model.columns.part(chosen), self.intercept, self.model.problem.threads)
        place = np.searchsorted(chosen, features)
        for _ in range(20):
            _, slope, free = self.smooth(W, c)
            gradient = np.append(slope[features, classes] + self.penalty.l1 * signs[features, classes], free[:extra])
            if np.max(np.abs(gradient)) <= 1e-15:
                break
            step = direction(self._hessian(gram, place, classes, W, c), gradient)
            change = np.zeros_like(W)
            change[features, classes] = step[: len(features)]
            shift = step[len(features) :] if extra else 0.0
            crossing = signs * change > np.abs(W)  # a weight that would change its sign ends at 0
            length = min(1.0, float(np.min(np.abs(W[crossing] / change[crossing])))) if crossing.any() else 1.0
            if length < 0.5:
                break
            W, c = W - length * change, c - length * shift
            W = np.where(signs * W > 0, W, 0.0)
        return W, c

    def _hessian(self, gram: Gram, place: Any, classes: Any, W: FloatArray, c: FloatArray) -> FloatArray:
        """The Hessian in the weights (place, class), and in the intercepts, the last column of the Gram matrices."""
        q = softmax(self.problem.product(W) + c, axis=1)
        m, extra = len(place), self.count if self.intercept else 0
        H = np.zeros((m + extra, m + extra))
        members = [np.flatnonzero(classes == k) for k in range(self.count)]
        places = [place[which] for which in members]
        if extra:
            members = [np.append(which, m + k) for k, which in enumerate(members)]
            places = [np.append(which, -1) for which in places]
        for j, k, block in hessian_blocks(gram, self.s / self.total, q):
            part = block[np.ix_(places[j], places[k])]
            H[np.ix_(members[j], members[k])] = part
            H[np.ix_(members[k], members[j])] = part.T
        H[np.arange(m), np.arange(m)] += self.penalty.l2
        if extra:  # a shift of all intercepts changes nothing
            H[m:, m:] += 1.0 / self.count
        return H
