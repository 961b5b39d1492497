"""A problem on samples that are anywhere: the verbs that solvers use, each written once over `Samples.visit`.

    minimise over w (d x K)   P(w) = (1/W) sum_i s_i phi(<a_i, w>; b_i) + l1 |w|_1 + (l2/2) |w|^2,   W = sum_i s_i,

per output. With an intercept the last feature is the constant 1 and has no penalty. Arrays with a row per sample stay
with the samples; weights, gradients and certificates are here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from coordwise import visits
from coordwise.losses import Loss
from coordwise.samples.base import InOrder, Kept, Price, Samples
from coordwise.validation import FloatArray

__all__ = ["Candidate", "Curvature", "Line", "Oracle", "Point", "Problem", "Work"]

STEPS_OF_A_SHIFT = 60  # evaluations of a one-dimensional slope, most of which end after three
TRIED = 16  # shifts on either side that a visit tries at once, where slopes jump
EPS = float(np.finfo(float).eps)


@dataclass
class Work:
    """Counted: entries of A read, visits (rounds, elsewhere), bytes of small arrays that went there and back, and
    multiplications beside products with A.
    """

    entries: float = 0.0
    rounds: float = 0
    bytes: float = 0.0
    flops: float = 0.0

    def cost(self, price: Price) -> float:
        """In one unit: the entries of sparse rows that are read in the same time."""
        return (
            price.entry * self.entries + price.visit * self.rounds + price.byte * self.bytes + price.flop * self.flops
        )


@dataclass(frozen=True)
class Problem:
    """The mathematics: a loss, the weights of the penalties, and whether the last feature is an intercept."""

    loss: Loss
    l2: float
    intercept: bool = False
    l1: float = 0.0


class Point(NamedTuple):
    """Weights with P, the gradient of its smooth part, and scores and slopes of the losses, which stay with samples."""

    w: FloatArray
    value: FloatArray
    gradient: FloatArray
    scores: Kept
    slopes: Kept


class Candidate(NamedTuple):
    """Weights and dual variables with P(w) and the duality gap, P(w) - min P <= gap, per output."""

    w: FloatArray
    y: Kept
    value: FloatArray
    gap: FloatArray


@dataclass
class Oracle:
    """A problem on samples.

    Parameters
    ----------
    samples : Samples
    problem : Problem
    poll : callable, optional
        Called between blocks; what it raises ends a verb.
    """

    samples: Samples
    problem: Problem
    poll: Callable[[], object] | None = None
    work: Work = field(default_factory=Work)

    def visit(
        self, products: int, function: Callable[..., Any], *kept: Kept, **sent: Any
    ) -> tuple[Kept, list[FloatArray]]:
        """`Samples.visit`, counted as so many products with A."""
        found, sums = self.samples.visit(function, *kept, poll=self.poll, **sent)
        work = self.work
        work.entries += products * self.samples.sizes.nnz
        work.rounds += 1
        work.bytes += sum(array.nbytes for array in [*sent.values(), *sums] if isinstance(array, np.ndarray))
        return found, sums

    def sweep(
        self, products: int, function: Callable[..., Any], *kept: Kept, state: Any, **sent: Any
    ) -> tuple[Kept, Any]:
        """`InOrder.sweep`, counted like a visit."""
        assert isinstance(self.samples, InOrder)
        found = self.samples.sweep(function, *kept, state=state, poll=self.poll, **sent)
        self.work.entries += products * self.samples.sizes.nnz
        self.work.rounds += 1
        return found

    @property
    def shape(self) -> tuple[int, int]:
        """(d, K) of the weights, the intercept included."""
        return self.samples.sizes.d, self.samples.sizes.outputs

    @property
    def groups(self) -> int:
        """Entries of P and of gaps: one per output, or one for all outputs where a loss couples them."""
        return self.shape[1]

    def zero(self) -> tuple[Point, FloatArray]:
        """w = 0 with its best intercept, and what tolerances are relative to.

        That is P(0) without an intercept for labels, where the scores 0 mean that nothing is known; for numbers it is P
        at the best intercept, so that it does not grow with their offset.
        """
        w = np.zeros(self.shape)
        scores = self.visit(0, visits.zeros)[0]
        at_zero = self.visit(0, visits.value, scores, loss=self.problem.loss)[1][0] / self.samples.sizes.total
        point = self.at_scores(w, scores)
        return point, at_zero if self.problem.loss.classification else point.value

    def penalised(self, w: FloatArray) -> FloatArray:
        """l2 w, with 0 for the intercept."""
        u = self.problem.l2 * w
        if self.problem.intercept:
            u[-1] = 0.0
        return u

    def penalty(self, w: FloatArray) -> FloatArray:
        """r(w) of every output; w may have further axes in front."""
        features = w[..., :-1, :] if self.problem.intercept else w
        value = self.problem.l2 / 2 * np.einsum("...jk,...jk->...k", features, features)
        return value + self.problem.l1 * np.abs(features).sum(axis=-2) if self.problem.l1 > 0 else value

    def at(self, w: FloatArray) -> Point:
        """P and its gradient at w: two products. The intercept is the best one for the other weights."""
        return self.at_scores(w, self.visit(1, visits.product, w=w)[0])

    def at_scores(self, w: FloatArray, scores: Kept) -> Point:
        """The same, with the scores Aw known."""
        if self.problem.intercept:
            w, scores = self._centred(w, scores)
        slopes, (value, image) = self.visit(1, visits.at_scores, scores, loss=self.problem.loss)
        total = self.samples.sizes.total
        return Point(w, value / total + self.penalty(w), image / total + self.penalised(w), scores, slopes)

    def _centred(self, w: FloatArray, scores: Kept) -> tuple[FloatArray, Kept]:
        """The weights with the intercept at which the slopes of the losses add up to 0, and their scores.

        Newton's method in one dimension for every output, kept inside of a bracket: some visits without a product.
        """
        if self.problem.loss.gamma == 0:
            return self._shifted(w, scores, self._crossing(scores, np.maximum(1.0, np.abs(w[-1]))))
        shift = np.zeros(w.shape[1])
        low, high = np.full(w.shape[1], -np.inf), np.full(w.shape[1], np.inf)
        size = self.visit(0, visits.size_of_slopes, scores, loss=self.problem.loss)[1][0]
        reach = np.maximum(1.0, np.abs(w[-1]))
        for _ in range(STEPS_OF_A_SHIFT):
            slope, bend = self.visit(0, visits.slope_of_shift, scores, loss=self.problem.loss, by=shift)[1]
            open_ones = np.isfinite(slope) & (np.abs(slope) > EPS * (size + bend * np.abs(w[-1] + shift)))
            if not open_ones.any():
                break
            low, high = np.where(slope < 0, shift, low), np.where(slope > 0, shift, high)
            curved = (bend > 0) & np.isfinite(bend) & open_ones
            step = np.where(curved, -slope / np.where(curved, bend, 1.0), -np.sign(slope) * reach)
            step = np.where(open_ones, np.clip(step, -reach, reach), 0.0)
            there = shift + step
            outside = (there <= low) | (there >= high)
            both = np.isfinite(low) & np.isfinite(high)
            middle = np.where(both, (np.where(both, low, 0.0) + np.where(both, high, 0.0)) / 2, there)
            there = np.where(open_ones, np.where(outside, middle, there), shift)
            if np.all(there == shift):
                break
            shift, reach = there, 2 * reach
        return self._shifted(w, scores, shift)

    def _crossing(self, scores: Kept, reach: FloatArray) -> FloatArray:
        """Shifts at which slopes with jumps cross 0, to rounding: many of them are tried in a visit."""
        powers = 4.0 ** np.arange(-TRIED, TRIED + 1)[:, None] * reach
        by = np.vstack([-powers[::-1], np.zeros_like(reach), powers])
        outputs = np.arange(len(reach))
        for _ in range(STEPS_OF_A_SHIFT):
            slopes = self.visit(0, visits.slopes_of_shifts, scores, loss=self.problem.loss, by=by)[1][0]
            after = np.minimum((slopes < 0).sum(axis=0), len(by) - 1)  # slopes do not decrease
            high = by[after, outputs]
            low = np.where(slopes[after, outputs] > 0, by[np.maximum(after - 1, 0), outputs], high)
            if np.all(high - low <= EPS * np.maximum(np.abs(low), np.abs(high))):
                break
            by = low + (high - low) * np.linspace(0.0, 1.0, 2 * TRIED + 1)[:, None]
            by[-1] = high
        return high

    def _shifted(self, w: FloatArray, scores: Kept, shift: FloatArray) -> tuple[FloatArray, Kept]:
        """Weights with another intercept, and their scores."""
        if not shift.any():
            return w, scores
        w = w.copy()
        w[-1] += shift
        return w, self.visit(0, visits.shifted, scores, by=shift)[0]

    def curvature(self, point: Point) -> Curvature:
        """The Hessian at a point: one visit for its diagonal."""
        return Curvature.at(self, point)

    def line(self, point: Point, step: FloatArray) -> Line:
        """P along w + length * step: one product."""
        return Line(self, point, step, self.visit(1, visits.product, w=step)[0])

    def certificate(self, point: Point) -> Candidate:
        """The gap of w and of the losses' derivatives, |gradient|^2 / (2 l2): free, since the losses attain it.

        Needs l2 > 0. With an intercept the derivatives add up to 0, since the intercept is the best one (`at_scores`).
        """
        gradient = point.gradient[:-1] if self.problem.intercept else point.gradient
        gap = np.einsum("jk,jk->k", gradient, gradient) / (2 * self.problem.l2)
        return Candidate(point.w, point.slopes, point.value, gap)

    def paired(self, point: Point, y: Kept) -> Candidate:
        """The gap of w and of other dual variables in their domain, inf unless they add up to 0: one product."""
        conjugates, image, size = self.visit(1, visits.dual, y, loss=self.problem.loss)[1]
        total, l2 = self.samples.sizes.total, self.problem.l2
        features = image[:-1] if self.problem.intercept else image
        gap = point.value + conjugates / total + (features**2).sum(axis=0) / (2 * l2 * total**2)
        if self.problem.intercept:
            gap = np.where(np.abs(image[-1]) <= 64 * EPS * size, gap, np.inf)
        return Candidate(point.w, y, point.value, np.maximum(gap, 0.0))


@dataclass(frozen=True)
class Curvature:
    """The Hessian A' diag(h) A / W + l2 at a point; the h_i stay with the samples."""

    oracle: Oracle
    kept: Kept
    diagonal: FloatArray

    @classmethod
    def at(cls, oracle: Oracle, point: Point) -> Curvature:
        """One visit."""
        kept, (squares,) = oracle.visit(1, visits.bent, point.scores, loss=oracle.problem.loss)
        return cls(oracle, kept, squares / oracle.samples.sizes.total + oracle.penalised(np.ones(oracle.shape)))

    def times(self, p: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(Hp, <p, Hp>), the second as a sum of squares: two products."""
        image, squares = self.oracle.visit(2, visits.times, self.kept, p=p)[1]
        total, penalised = self.oracle.samples.sizes.total, self.oracle.penalised(p)
        return image / total + penalised, squares / total + (p * penalised).sum(axis=0)


@dataclass(frozen=True)
class Line:
    """P along w + length * step; A step stays with the samples."""

    oracle: Oracle
    point: Point
    step: FloatArray
    move: Kept

    def _value(self, losses: FloatArray, w: FloatArray) -> FloatArray:
        return losses / self.oracle.samples.sizes.total + self.oracle.penalty(w)

    def values(self, lengths: FloatArray) -> FloatArray:
        """P at several lengths (a row each): one visit without a product."""
        loss, scores = self.oracle.problem.loss, self.point.scores
        losses = self.oracle.visit(0, visits.along, scores, self.move, loss=loss, steps=lengths)[1][0]
        return np.stack(
            [self._value(at, self.point.w + length * self.step) for at, length in zip(losses, lengths, strict=True)]
        )

    def to(self, length: FloatArray) -> tuple[FloatArray, Kept, FloatArray]:
        """Weights, scores and P at a length per output, without a product; `Oracle.at_scores` makes a point of it."""
        loss = self.oracle.problem.loss
        scores, (losses,) = self.oracle.visit(0, visits.moved, self.point.scores, self.move, loss=loss, step=length)
        w = self.point.w + length * self.step
        return w, scores, self._value(losses, w)
