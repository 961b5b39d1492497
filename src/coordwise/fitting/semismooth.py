"""Newton's method over many features, for smooth losses with straight parts (squared hinge, Huber, ...).

Where a loss is straight its curvature is 0: a step concerns the other samples alone, which are ever fewer as the
weights get better. Conjugate gradients find it roughly, by products with the rows of those samples.

With weak penalties P(w) comes close to its minimum in a few such steps, long before the dual variables are good enough
to prove it: along most directions the dual problem is flat, and steps over the samples, one at a time, take a thousand
passes. But given which samples are where their losses bend, the dual variables of these solve a linear system with as
many unknowns, and one factorisation does away with all the flat directions. What is left to do are samples that were
taken for straight, or for bent, and were not: for these, a few steps over the samples are enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from coordwise.fitting.model import Candidate, LinearModel, lower_of
from coordwise.fitting.rough import exact_steps
from coordwise.fitting.weighted import Gram
from coordwise.linalg.conjugate import cg
from coordwise.lines import lowest
from coordwise.rows import Rows
from coordwise.validation import FloatArray

__all__ = ["Semismooth", "has_straight_parts", "weak_enough"]

WEAK, DENSE = 30.0, 300.0  # passes over the samples per e-fold, from which on it pays: for sparse data, for dense data
PASSES = 5  # over the samples, to begin with
STEPS, LATEST = 3, 10  # of Newton's method before the dual variables are solved for: so many, or until P falls slowly
FALLS = 0.7  # of what it was: until then it is P that makes the gap, and not D, whose minimum is -min P
MOST = 4000  # samples that are solved for at once: what fits into memory
WORTH = 45.0  # their number cubed, per stored entry and pass over the samples that is expected without
EARLY = 2.0  # times as many samples as may be solved for: while there are more, no step is taken
DIAGONAL = 0.1  # of the preconditioner; the rest is the mean of the diagonal
SETTLED = 0.5  # conjugate gradients end when a step gains so much of the mean gain of all steps
LONGEST = 100  # steps of conjugate gradients


def has_straight_parts(model: LinearModel) -> bool:
    """Whether the loss is smooth, made of parabolas and straight lines, and has both."""
    shape = model.loss.shape
    return model.loss.gamma > 0 and not shape.logistic and shape.corners


def weak_enough(model: LinearModel) -> bool:
    """Whether steps over the samples would be slow; dense ones cost less, beside products."""
    return model.passes_over_samples() >= (WEAK if sp.issparse(model.A) else DENSE)


class Semismooth:
    """Rounds of Newton steps, each ending with the dual variables of the samples whose losses bend.

    `passes` is what they cost so far, and `center` the intercepts that belong to the dual variables. It is `hopeless`
    where so many losses bend that to solve for these would take longer than steps over the samples, or where P goes on
    falling, so that D is not what is wrong.

    Parameters
    ----------
    model : LinearModel
        With a loss that `has_straight_parts` and an l2 penalty.
    seed : int
        Of the passes over the samples that it begins with.
    """

    def __init__(self, model: LinearModel, seed: int) -> None:
        self.model, self.seed = model, seed
        self.passes, self.hopeless = 0.0, False
        self.center = np.zeros(model.outputs)
        self.rows = model.problem.rows("rows")
        self.nnz = max(self.rows.nnz, 1)
        self.most = min(float(MOST), (WORTH * self.nnz * model.passes_over_samples()) ** (1 / 3))

    def round(self, start: Candidate | None, tol: float, most: float = np.inf) -> Iterator[Candidate]:
        """The best candidate at the start and after every step, until every gap is <= tol * scale or the round ends.

        No step begins after `most` passes. Outputs take their steps side by side: the one that takes most is counted.
        """
        model = self.model
        best = self._begun() if start is None else model.recertified(start)
        yield best
        dual, y = best.gap - best.value, best.y
        before = value = best.value
        outputs = [_Output(self, best, k) for k in range(model.outputs)]
        for count in range(LATEST + 1):
            active = best.gap > tol * model.scale
            falling = bool(np.any(active & (value < FALLS * before)))
            solving = count >= STEPS and not falling
            fit_for = self.most * (1 if solving else EARLY)
            self.hopeless = any(outputs[k].bends > fit_for for k in np.flatnonzero(active)) or (
                falling and count == LATEST
            )
            if not active.any() or self.hopeless or self.passes >= most:
                return
            other = y.copy()
            for k in np.flatnonzero(active):
                if solving:
                    other[:, k] = outputs[k].dual(otherwise=y[:, k])
                else:
                    outputs[k].step()
            if solving:
                self.center = np.array([output.center for output in outputs])
                y, dual = lower_of(y, dual, *model.dual_of(other))
            self.passes += max(output.spent() for output in outputs)
            w = np.stack([output.w for output in outputs], axis=1)
            c = np.array([output.c for output in outputs])
            before, value = value, np.array([output.value for output in outputs])
            best = Candidate(w, c, y, value, np.maximum(value + dual, 0)).better(best)
            if np.all(best.gap <= tol * model.scale):  # scores that were updated carry rounding
                best = model.recertified(best)
            yield best
            if solving:
                return

    def _begun(self) -> Candidate:
        """After some passes over the samples, without an intercept, and with the best one beside their weights."""
        model = self.model
        w, y = exact_steps(model, PASSES * model.n, self.seed)
        self.passes += PASSES
        t = model.scores(w, np.zeros(model.outputs))
        c = model.best_intercept(t, rough=True)
        value = model.value(w, t + c)
        worse = value > model.scale
        if worse.any():
            c = np.where(worse, model.best_intercept(np.zeros_like(t)), c)
            w = np.where(worse, 0.0, w)
            value = model.value(w, np.where(worse, 0.0, t) + c)
        zero = np.zeros(model.outputs)  # D(0): no loss is negative
        y, dual = lower_of(np.zeros_like(y), zero, *model.dual_of(y))
        return Candidate(w, c, y, value, value + dual)


class _Bent(NamedTuple):
    """The samples whose losses bend: which, their rows and curvatures."""

    which: Any
    rows: Rows
    h: FloatArray


class _Output:
    """Weights, intercept, scores and value of one output."""

    def __init__(self, owner: Semismooth, begin: Candidate, k: int) -> None:
        self.owner, self.model, self.terms = owner, owner.model, owner.model.terms(k)
        self.l2, self.total = self.model.penalty.l2, self.model.total
        self.w, self.c = begin.w[:, k].copy(), float(begin.c[k])
        self.center = self.c  # the intercept that belongs to the dual variables
        self.passes = 0.0  # since they were last asked for
        self.t = self.model.scores(self.w[:, None], np.array([self.c]))
        self.value = self._value(self.w, self.t)

    def _value(self, w: FloatArray, t: FloatArray) -> float:
        return float(self.terms.value(t)[0] / self.total + self.l2 / 2 * (w @ w))

    def spent(self) -> float:
        """Passes since the last time."""
        spent, self.passes = self.passes, 0.0
        return spent

    @property
    def bends(self) -> int:
        """How many of the losses bend at the present scores."""
        return int(np.count_nonzero(self.terms.second_derivative(self.t)))

    def _bent(self) -> _Bent:
        curvature = self.terms.second_derivative(self.t)[:, 0]
        which = np.flatnonzero(curvature > 0)
        if len(which) == 0:  # one that weighs nothing
            which = np.zeros(1, np.intp)
        return _Bent(which, self.owner.rows.part(which), curvature[which])

    def step(self) -> None:
        """A Newton step by conjugate gradients, to where P is lowest along it."""
        model = self.model
        y = self.terms.derivative(self.t)
        gradient = model.problem.moments(y)[:, 0] + self.l2 * self.w
        if model.intercept:
            gradient = np.append(gradient, y.sum() / self.total)
        x = self._direction(gradient)
        u, e = (x[:-1], float(x[-1])) if model.intercept else (x, 0.0)
        move = model.problem.product(u[:, None]) + e
        self.passes += 1

        across, squared = float(self.w @ u), float(u @ u)

        def along(length: float) -> tuple[float, float]:
            slope, curvature = self.terms.slope_and_curvature(self.t, move, length)
            slope, curvature = slope / self.total, curvature / self.total
            return slope + self.l2 * (across + length * squared), curvature + self.l2 * squared

        length = lowest(along)
        w, t = self.w + length * u, self.t + length * move
        if (value := self._value(w, t)) < self.value:
            self.w, self.c, self.t, self.value = w, self.c + length * e, t, value

    def _direction(self, gradient: FloatArray) -> FloatArray:
        model, d, bent = self.model, self.model.d, self._bent()
        rows, h = bent.rows, bent.h[:, None]
        share = float(rows.lengths.sum()) / self.owner.nnz

        def product(p: FloatArray) -> FloatArray:
            self.passes += share
            image = rows.dots(np.ascontiguousarray(p[:d]), model.problem.threads)
            if model.intercept:
                image += p[d]
            image *= h
            found = rows.combine(image, model.problem.threads) / self.total + self.l2 * p[:d]
            return np.vstack([found, image.sum() / self.total + 1e-12 * p[d]]) if model.intercept else found

        diagonal = rows.squares(bent.h, model.problem.threads) / self.total + self.l2
        scale = DIAGONAL * diagonal + (1 - DIAGONAL) * diagonal.mean()
        if model.intercept:
            scale = np.append(scale, bent.h.sum() / self.total + 1e-12)
        x, before = np.zeros((len(gradient), 1)), 0.0
        for k, now in enumerate(cg(product, -gradient[:, None], x, 1 / scale)):
            gained = float(x[:, 0] @ (now.residual[:, 0] - gradient)) / 2
            if k == LONGEST or (k > 0 and k * (gained - before) <= SETTLED * gained):
                break
            before = gained
        return x[:, 0]

    def dual(self, otherwise: FloatArray) -> FloatArray:
        """The dual variables of a full Newton step, not yet in their domain.

        `otherwise` where no loss bends, or where the system is singular up to rounding.

        With y_i fixed where the losses are straight, and w(y) = -A'y/(l2 W), those of the others solve
        y_i/h_i - <a_i, w(y)> - c = y_i(t)/h_i - t_i, and sum_i y_i = 0 if there is an intercept.
        """
        model, bent = self.model, self._bent()
        self.center = self.c
        if not bent.h.all():
            return otherwise
        shift = self.l2 * self.total
        y = self.terms.derivative(self.t)[:, 0]
        right = y[bent.which] / bent.h - self.t[bent.which, 0]
        y[bent.which] = 0.0
        if y.any():
            w = -model.problem.moments(y[:, None]) / self.l2
            right += bent.rows.dots(w)[:, 0]
        part = model.A[bent.which] if bent.rows.dense is None else bent.rows.dense
        system = Gram(part.T, False, model.problem.threads)(np.ones(model.d))
        system[np.diag_indices_from(system)] += shift / bent.h
        self.passes += float(bent.rows.lengths.sum()) / self.owner.nnz
        try:
            factor = scipy.linalg.cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:  # rounding: rows that repeat, and a penalty next to nothing
            return otherwise
        found = scipy.linalg.cho_solve(factor, shift * right, check_finite=False)
        if model.intercept:
            ones = scipy.linalg.cho_solve(factor, np.full(len(right), shift), check_finite=False)
            self.center = -(found.sum() + y.sum()) / ones.sum()
            found += self.center * ones
        y[bent.which] = found
        return y
