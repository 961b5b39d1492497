"""Linear models with an intercept: the problem, its dual, and certificates for any candidate."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import brentq

from coordwise.erm import ERM, feasible_share
from coordwise.fitting.quadratic import Columns
from coordwise.fitting.weighted import Gram
from coordwise.kernels import Terms
from coordwise.losses import Loss
from coordwise.penalties import ElasticNet
from coordwise.validation import FloatArray

__all__ = ["Candidate", "LinearModel", "lower_of"]

BALANCED = 8 * float(np.finfo(float).eps)  # |sum_i y_i| over sum_i |y_i|: what counts as 0
ROUGH = 0.02  # how far a rough intercept may be off, relative to it or to a fiftieth of the scores


@dataclass(frozen=True, eq=False)
class Candidate:
    """Weights (d x K), intercepts (K) and dual variables (n x K), with P(w, c) and the duality gap of each output."""

    w: FloatArray
    c: FloatArray
    y: FloatArray
    value: FloatArray
    gap: FloatArray

    def better(self, other: Candidate | None) -> Candidate:
        """Output by output, whichever has the smaller gap."""
        if other is None:
            return self
        return self.where((self.gap <= other.gap) | np.isnan(other.gap), other)

    def where(self, ours: Any, other: Candidate) -> Candidate:
        """For some of the outputs the candidate itself, for the rest another one."""
        return Candidate(*(np.where(ours, getattr(self, f.name), getattr(other, f.name)) for f in fields(self)))


def lower_of(y: FloatArray, dual: FloatArray, other: FloatArray, there: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Output by output, whichever dual variables (n x K) have the smaller D(y), with that."""
    lower = there < dual
    return np.where(lower, other, y), np.where(lower, there, dual)


class LinearModel:
    r"""minimise over w, c   P(w, c) = (1/W) sum_i s_i phi(<a_i, w> + c; b_i) + r(w),   W = sum_i s_i.

    c is 0 without `intercept`, and free (not penalised) with it. The dual is that of `ERM` with the constraint
    sum_i y_i = 0 for the intercept; P(w, c) + D(y) >= 0 is the duality gap.

    Parameters
    ----------
    problem : ERM
        Everything but the intercept.
    intercept : bool
    level : ndarray of shape (K,), optional
        What was taken off the targets (`coordwise.fitting.offsets`).
    """

    def __init__(self, problem: ERM, intercept: bool, level: FloatArray | None = None) -> None:
        assert isinstance(problem.penalty, ElasticNet)  # the strategies know no other
        self.problem, self.intercept, self.level = problem, intercept, level
        self.A, self.b = problem.A, problem.b
        self.loss: Loss = problem.loss
        self.penalty: ElasticNet = problem.penalty
        self.n, self.d, self.outputs = problem.n_samples, problem.n_features, problem.b.shape[1]
        self.total = problem.total
        self.weights = problem.sample_weight
        self.shared: dict[str, Any] = {}  # what does not depend on the penalty

    def penalised(self, penalty: ElasticNet) -> LinearModel:
        """The same model with another penalty; rows and Gram matrices are shared."""
        problem = copy.copy(self.problem)
        problem.penalty = penalty
        model = LinearModel(problem, self.intercept, self.level)
        model.shared = self.shared
        return model

    def restricted(self, which: Any, k: int) -> LinearModel:
        """Output k of the model on some of the features alone."""
        if len(which) == self.d and self.outputs == 1:
            return self
        problem = ERM(
            self.columns.part(which),
            self.b[:, k : k + 1],
            loss=self.loss,
            penalty=self.penalty,
            sample_weight=self.weights,
        )
        problem.threads = self.problem.threads
        level = None if self.level is None else np.broadcast_to(self.level, self.outputs)[k : k + 1]
        return LinearModel(problem, self.intercept, level)

    def sampled(self, which: Any) -> LinearModel | None:
        """The model of some of the samples, in order; None if these alone are no problem that can be stated."""
        if len(which) == self.n:
            return self
        s = None if self.weights is None else self.weights[which]
        A = self.A
        if sp.issparse(A):
            A = sp.csr_array(self.problem.rows("rows").arrays, shape=A.shape, copy=False)
        try:
            problem = ERM(A[which], self.b[which], loss=self.loss, penalty=self.penalty, sample_weight=s)
            problem.threads = self.problem.threads
            problem.rows("rows")
        except ValueError:  # weights of 0, or numbers that are too small without the others
            return None
        return LinearModel(problem, self.intercept, self.level)

    @property
    def columns(self) -> Columns:
        """The columns of A, prepared once for all penalties."""
        if "columns" not in self.shared:
            by_rows = sp.issparse(self.A) and self.A.format == "csr"
            rows = self.problem.rows("rows") if by_rows else None
            self.shared["columns"] = Columns(self.A, rows, self.problem.threads)
        return self.shared["columns"]

    @property
    def weighted(self) -> Gram:
        """Weighted Gram matrices of the data, whose copies of these serve all penalties of a path."""
        if "weighted" not in self.shared:
            self.shared["weighted"] = Gram(self.A, self.intercept, self.problem.threads, self.problem.rows)
        return self.shared["weighted"]

    def hessian(self, curvature: FloatArray, gram: Callable[[FloatArray], FloatArray] | None = None) -> FloatArray:
        """(1/W) A' diag(curvature) A + l2 I, with a row and a column for the intercept; `gram` may be another way to
        the Gram matrix than `weighted`.
        """
        return self.hessian_of((self.weighted if gram is None else gram)(curvature))

    def hessian_of(self, gram: FloatArray) -> FloatArray:
        """`hessian` of a Gram matrix that is known, which it takes the place of."""
        hessian = gram
        hessian /= self.total
        np.einsum("ii->i", hessian)[: self.d] += self.penalty.l2
        if self.intercept:
            hessian[-1, -1] += 1e-14 * max(hessian[-1, -1], 1e-8)  # all curvatures may vanish
        return hessian

    @property
    def s(self) -> Any:
        """Sample weights as a column, or 1."""
        return 1.0 if self.weights is None else self.weights[:, None]

    def passes_over_samples(self) -> float:
        """What an e-fold of the gap takes over the samples by Theorem 5.1: mean sqrt(1 + s_i |a_i|^2/(gamma l2 W))."""
        s = 1.0 if self.weights is None else self.weights
        shift = self.loss.gamma * self.penalty.l2 * self.total
        return float(np.mean(np.sqrt(1 + s * self.problem.rows("rows").norms2() / shift)))

    @cached_property
    def scale(self) -> FloatArray:
        """P(0, 0), one per output: what tolerances are relative to.

        Of targets that were moved by a `level` it is P(0, -level), if that is smaller: the objective at zero for the
        targets as they were. No level helps all losses: the median of targets may be far from most weighted ones.
        """
        at_zero = self.problem.value_at_zero
        if self.level is None or not self.level.any():
            return at_zero
        as_they_were = np.zeros((self.n, self.outputs)) - self.level
        return np.minimum(at_zero, self.problem.terms.value(as_they_were))

    def scores(self, w: FloatArray, c: FloatArray) -> FloatArray:
        """Aw + c."""
        return self.problem.product(w) + c if w.any() else np.zeros((self.n, w.shape[1])) + c

    def value(self, w: FloatArray, t: FloatArray) -> FloatArray:
        """P at weights w with scores t."""
        return self.problem.terms.value(np.ascontiguousarray(t)) + self.penalty.value(w)

    def best_intercept(self, t: FloatArray, *, rough: bool = False) -> FloatArray:
        """The c that minimises sum_i s_i phi(t_i + c; b_i), exactly up to rounding unless `rough`; 0 without one."""
        found = np.zeros(self.outputs)
        if self.intercept:
            if self.loss.name == "squared":
                s = np.ones(self.n) if self.weights is None else self.weights
                return np.asarray((s @ (self.b - t)) / self.total)
            used = slice(None) if self.weights is None else self.weights > 0
            for k in range(self.outputs):
                size = max(float(np.max(np.abs(t[used, k]))), float(np.max(np.abs(self.b[used, k]))), 1e-290)
                found[k] = _root(lambda c, k=k: self._slope(t[:, k] + c, k), size, ROUGH if rough else 1e-15)
        return found

    def _slope(self, t: FloatArray, k: int) -> float:
        return float(np.sum(self.terms(k).derivative(t[:, None])))

    def terms(self, k: int) -> Terms:
        """s_i phi(.; b_ik): the losses of output k."""
        b = np.ascontiguousarray(self.b[:, k : k + 1])
        return Terms(self.loss.shape, 1.0, b, self.weights, self.problem.threads)

    def feasible(self, y: FloatArray) -> FloatArray:
        """The dual variables moved into their domain, and with an intercept onto sum_i y_i = 0."""
        low, high = self.domain
        y = np.clip(y, low, high)
        if not self.intercept:
            return y
        shift = y.sum(0) / self.total
        moved = y - shift * self.s
        outside = np.where(shift > 0, moved < low, moved > high)  # only one end can have been crossed
        for k in np.flatnonzero(np.any(outside, axis=0)):
            own = y[:, k]  # all domains have 0 in them
            up, down = np.maximum(own, 0).sum(), -np.minimum(own, 0).sum()
            share = min(up, down) / max(up, down) if max(up, down) > 0 else 1.0
            moved[:, k] = np.where((own > 0) == (up >= down), share * own, own)
        return moved

    @cached_property
    def domain(self) -> tuple[FloatArray, FloatArray]:
        """Ends of the domain of every dual variable."""
        low, high = self.loss.domain(self.b, self.s)
        return np.broadcast_to(low, self.b.shape), np.broadcast_to(high, self.b.shape)

    def from_dual(self, y: FloatArray) -> Candidate:
        """The candidate that dual variables lead to: w = grad r*(-(1/W) A'y) and the best intercept."""
        y = self.feasible(y)
        v = -self.problem.moments(y)
        w = self.penalty.conjugate_gradient(v)
        t = self.scores(w, np.zeros(self.outputs))
        c = self.best_intercept(t)
        value = self.value(w, t + c)
        return Candidate(w, c, y, value, np.maximum(value + self._dual(y, v), 0))

    def from_primal(self, w: FloatArray, c: FloatArray | None = None) -> Candidate:
        """The candidate that weights lead to: y_i = s_i phi'(<a_i, w> + c), made feasible. For smooth losses."""
        return self.certified(w, c)[0]

    def certified(self, w: FloatArray, c: FloatArray | None = None) -> tuple[Candidate, FloatArray]:
        """The candidate of `from_primal`, and -(1/W) A'y of the derivatives y, before they were scaled for l1."""
        t = self.scores(w, np.zeros(self.outputs))
        c = self.best_intercept(t) if c is None else c
        return self.certified_at(w, c, t + c)

    def none_worse_than_zeros(self, found: Candidate) -> Candidate:
        """Zero weights with the best intercept beside the same dual variables, for outputs where P is smaller there."""
        t = np.zeros((self.n, self.outputs))
        c = self.best_intercept(t)
        value = self.value(np.zeros((self.d, self.outputs)), t + c)
        worse = ~(found.value <= value)
        if not worse.any():
            return found
        dual = np.where(np.isfinite(found.gap), found.gap - found.value, np.inf)  # D(y), and D(0) = 0
        y, dual = np.where(dual < 0, found.y, 0.0), np.minimum(dual, 0.0)
        other = Candidate(np.zeros_like(found.w), c, y, value, np.maximum(value + dual, 0))
        return other.where(worse, found)

    @property
    def nothing(self) -> Candidate:
        """Zeros, whose gap is P(0, 0): no loss is negative, so that D(0) = 0."""
        w, c, y = np.zeros((self.d, self.outputs)), np.zeros(self.outputs), np.zeros((self.n, self.outputs))
        return Candidate(w, c, y, self.scale, self.scale)

    @cached_property
    def certified_at_zero(self) -> tuple[Candidate, FloatArray]:
        """`certified` at w = 0, where many fits begin and strategies are chosen."""
        return self.certified(np.zeros((self.d, self.outputs)))

    def certified_at(
        self, w: FloatArray, c: FloatArray, t: FloatArray, value: FloatArray | None = None
    ) -> tuple[Candidate, FloatArray]:
        """`certified`, with the scores t = Aw + c known, and perhaps the value."""
        y = self.problem.terms.subgradients(np.ascontiguousarray(t))
        if self.intercept:
            y = self.feasible(y)
        slopes = v = -self.problem.moments(y)
        if self.penalty.l2 == 0:
            share = feasible_share(self.penalty, -v)
            y, v = y * share, v * share
        value = self.value(w, t) if value is None else value
        if not self.intercept and self.penalty.l1 == 0 and self.penalty.l2 > 0 and not self.penalty.positive:
            gap = self.gap_at_derivatives(w, v)
        else:
            gap = np.maximum(value + self._dual(y, v), 0)
        none = gap > value  # then zeros are better dual variables: D(0) = 0, no loss is negative
        return Candidate(w, c, np.where(none, 0.0, y), value, np.where(none, value, gap)), slopes

    def gap_at_derivatives(self, w: FloatArray, v: FloatArray) -> FloatArray:
        """P(w) + D(y) for y_i = s_i phi' at Aw, v = -(1/W) A'y and an l2 penalty, without intercept.

        The losses attain Fenchel-Young at their derivatives: what is left of P + D, free of cancellation.
        """
        return self.penalty.l2 / 2 * np.sum((w - v / self.penalty.l2) ** 2, axis=0)

    def beside(self, w: FloatArray, y: FloatArray) -> Candidate:
        """The candidate of weights, with the best intercept, and dual variables that were found together."""
        t = self.scores(w, np.zeros(self.outputs))
        c = self.best_intercept(t)
        return self.paired(w, c, t + c, y)

    def paired(self, w: FloatArray, c: FloatArray, t: FloatArray, y: FloatArray) -> Candidate:
        """The candidate of weights and dual variables that were found together, with scores t = Aw + c."""
        y, dual = self.dual_of(y)
        value = self.value(w, t)
        return Candidate(w, c, y, value, np.maximum(value + dual, 0))

    def dual_of(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Dual variables, made feasible if they are not, and D(y)."""
        y, dual, _ = self.dual_at(y)
        return y, dual

    def dual_at(self, y: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """`dual_of`, and v = -(1/W) A'y."""
        low, high = self.domain
        if (
            np.any(y < low)
            or np.any(y > high)
            or (self.intercept and np.any(np.abs(y.sum(0)) > BALANCED * abs(y).sum(0)))
        ):
            y = self.feasible(y)
        v = -self.problem.moments(y)
        return y, self._dual(y, v), v

    def recertified(self, found: Candidate) -> Candidate:
        """A candidate of another penalty as one of this model."""
        return self.paired(found.w, found.c, self.scores(found.w, found.c), found.y)

    def _dual(self, y: FloatArray, v: FloatArray) -> FloatArray:
        """D(y), v = -(1/W) A'y."""
        return self.problem.terms.conjugate(y) + self.penalty.conjugate(v)


def _root(increasing: Any, size: float, rtol: float) -> float:
    """A zero of a non-decreasing function (where it crosses 0, if it jumps), from a bracket that grows.

    It is expected to be about as large as `size`.
    """
    near, here = 0.0, increasing(0.0)
    if here == 0:
        return 0.0
    step = size * max(rtol, 1e-3) * (1 if here < 0 else -1)
    while abs(step) <= 1e30 * size:
        far = near + step
        there = increasing(far)
        if there == 0:
            return far
        if (there > 0) != (here > 0):
            least = rtol * max(abs(near), abs(far), 1e-6 * size)
            return float(brentq(increasing, near, far, xtol=least, rtol=max(rtol, 8.9e-16), maxiter=200))
        near, step = far, 4 * step
    return near  # it never crosses: all labels are equal, say
