"""A problem on samples that are anywhere: the verbs that solvers use, each written once over `Samples.visit`.

    minimise over w (d x K)   P(w) = (1/W) sum_i s_i phi(<a_i, w>; b_i) + l1 |w|_1 + (l2/2) |w|^2,   W = sum_i s_i,

per output. With an intercept the last feature is the constant 1 and has no penalty. Arrays with a row per sample stay
with the samples; weights, gradients and certificates are here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coordwise import visits
from coordwise.losses import Loss
from coordwise.samples.base import InOrder, Kept, Price, Samples
from coordwise.second_moments import SecondMoments, far_from_0
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
    balanced: Any  # with an intercept, whether the slopes add up to 0, as dual variables have to


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
    blocks: int = 0  # of samples, as far as the last visit tells

    def visit(
        self, products: int, function: Callable[..., Any], *kept: Kept, **sent: Any
    ) -> tuple[Kept, list[FloatArray]]:
        """`Samples.visit`, counted as so many products with A."""
        found, sums = self.samples.visit(function, *kept, poll=self.poll, **sent)
        self.blocks = len(found)
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
        return 1 if self.problem.loss.coupled else self.shape[1]

    def grouped(self, sums: FloatArray) -> FloatArray:
        """Sums per output (the last axis), added up where a loss couples the outputs."""
        return sums.sum(axis=-1, keepdims=True) if self.problem.loss.coupled else sums

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
        value = value + self.problem.l1 * np.abs(features).sum(axis=-2) if self.problem.l1 > 0 else value
        return self.grouped(value)

    def at(self, w: FloatArray) -> Point:
        """P and its gradient at w: two products. The intercept is the best one for the other weights."""
        return self.at_scores(w, self.visit(1, visits.product, w=w)[0])

    def at_scores(self, w: FloatArray, scores: Kept) -> Point:
        """The same, with the scores Aw known."""
        if self.problem.intercept:
            centred = self._centred_together if self.problem.loss.coupled else self._centred
            w, scores = centred(w, scores)
        intercept, total = self.problem.intercept, self.samples.sizes.total
        slopes, (value, image, *size) = self.visit(1, visits.at_scores, scores, loss=self.problem.loss, sized=intercept)
        balanced = np.abs(image[-1]) <= 64 * EPS * size[0] if intercept else np.ones(w.shape[1], bool)
        balanced = balanced.all(keepdims=True) if self.problem.loss.coupled else balanced
        value, gradient = value / total + self.penalty(w), image / total + self.penalised(w)
        return Point(w, value, gradient, scores, slopes, balanced)

    def _centred(self, w: FloatArray, scores: Kept) -> tuple[FloatArray, Kept]:
        """The weights with the intercept at which the slopes of the losses add up to 0, and their scores.

        Newton's method in one dimension for every output, kept inside of a bracket: some visits without a product.
        """
        if self.problem.loss.gamma == 0:
            return self._shifted(w, scores, self._crossing(scores, np.maximum(1.0, np.abs(w[-1]))))
        shift = np.zeros(w.shape[1])
        low, high = np.full(w.shape[1], -np.inf), np.full(w.shape[1], np.inf)
        slope, bend, size = self.visit(0, visits.slope_and_size, scores, loss=self.problem.loss)[1]
        reach = np.maximum(1.0, np.abs(w[-1]))
        for taken in range(STEPS_OF_A_SHIFT):
            if taken:
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

    def _centred_together(self, w: FloatArray, scores: Kept) -> tuple[FloatArray, Kept]:
        """The same for a coupled loss, whose intercepts Newton's method finds together; their mean is 0."""
        shift, loss = np.full(w.shape[1], -w[-1].mean()), self.problem.loss
        small, reach = EPS * self.samples.sizes.total, 1.0
        for _ in range(STEPS_OF_A_SHIFT):
            slope, bend, of_class = self.visit(0, visits.slope_of_shifts, scores, loss=loss, by=shift)[1]
            if np.max(np.abs(slope)) <= 4 * small:
                break
            if np.max(np.diag(bend)) > small:
                step = np.linalg.lstsq(bend, slope, rcond=1e-12)[0]
                limit = np.max(np.abs(step))
                step *= min(1.0, 2.0 / limit if limit > 0 else 1.0)
            else:  # all samples are far out, where the loss is straight
                step, reach = reach * np.sign(np.where(np.abs(slope) > small, slope, 0.0)), 2 * reach
            gone = (of_class == 0) & (slope > small)  # a class without weight, whose slope falls as exp(its intercept)
            step[gone] = np.log(slope[gone] / small)
            before, shift = shift, shift - (step - step.mean())
            if np.array_equal(before, shift):
                break
        if not shift.any():
            return w, scores
        w = w.copy()
        w[-1] += shift
        return w, self.visit(0, visits.shifted, scores, by=shift)[0]

    def moments(self) -> SecondMoments:
        """Second moments of the features and targets about their means, about 0 without an intercept: a visit, and
        with an intercept one before it for about where the means are.
        """
        sizes, center = self.samples.sizes, self.problem.intercept
        d = sizes.d - center
        shift, level = np.zeros(d), np.zeros(sizes.outputs)
        if center:
            sums, squares, targets = self.visit(2, visits.first_moments)[1]
            shift, level = far_from_0(sizes.total, sums[:d], squares[:d], targets)
        found = self.visit(2, visits.second_moments, shift=shift, level=level)[1]
        self.work.flops += self.gram_flops(d)
        return SecondMoments.about(sizes.n, sizes.total, shift, level, found, center=center)

    def gram_flops(self, width: int) -> float:
        """Multiplications in a Gram matrix of so many features, if the entries are spread evenly over the rows."""
        sizes = self.samples.sizes
        return sizes.nnz**2 / max(sizes.n, 1) * (width / max(sizes.d, 1)) ** 2

    def curvature(self, point: Point, kind: visits.Kind = "exact") -> Curvature:
        """The Hessian at a point, or that of `visits.curvatures` of another kind."""
        return Curvature(self, point, kind)

    def line(self, point: Point, step: FloatArray) -> Line:
        """P along w + length * step: one product."""
        return Line(self, point, step, self.visit(1, visits.product, w=step)[0])

    def certificate(self, point: Point) -> Candidate:
        """The gap of w and of the losses' derivatives y, P(w) + D(y).

        The losses attain Fenchel-Young at their derivatives, so with v = -A'y/W it is r(w) + r*(v) - <w, v> for l2 > 0,
        which is free; without an l1 penalty |grad P|^2/(2 l2). For an l1 penalty alone y is scaled into the domain of
        r*, which costs a visit without a product. Without a penalty it is inf. With an intercept the derivatives add
        up to 0, since the intercept is the best one (`at_scores`); where they do not, so far out that losses have no
        curvature, it is inf.
        """
        found = self._certificate(point)
        return found._replace(gap=np.where(point.balanced, found.gap, np.inf))

    def _certificate(self, point: Point) -> Candidate:
        l1, l2 = self.problem.l1, self.problem.l2
        features = slice(-1) if self.problem.intercept else slice(None)
        w, gradient = point.w[features], point.gradient[features]
        if l1 == 0:
            gap = np.einsum("jk,jk->k", gradient, gradient) / (2 * l2) if l2 > 0 else np.full(w.shape[1], np.inf)
            return Candidate(point.w, point.slopes, point.value, self.grouped(gap))
        v = l2 * w - gradient
        if l2 > 0:
            inside = np.clip(v, -l1, l1)
            gap = (l2 / 2 * ((v - inside) / l2 - w) ** 2 + (l1 * np.abs(w) - w * inside)).sum(axis=0)
            return Candidate(point.w, point.slopes, point.value, self.grouped(gap))
        share = l1 / np.maximum(np.abs(v).max(axis=0), l1)
        share = np.full_like(share, share.min()) if self.problem.loss.coupled else share
        y, (conjugates,) = self.visit(0, visits.scaled, point.slopes, loss=self.problem.loss, by=share)
        gap = point.value + conjugates / self.samples.sizes.total
        return Candidate(point.w, y, point.value, np.maximum(gap, 0.0))

    def paired(self, point: Point, y: Kept) -> Candidate:
        """The gap of w and of other dual variables in their domain, inf unless they add up to 0: one product."""
        conjugates, image, size = self.visit(1, visits.dual, y, loss=self.problem.loss)[1]
        features = image[:-1] if self.problem.intercept else image
        gap = point.value + conjugates / self.samples.sizes.total + self._conjugate(features)
        if self.problem.intercept:
            balanced = np.abs(image[-1]) <= 64 * EPS * size
            gap = np.where(balanced.all() if self.problem.loss.coupled else balanced, gap, np.inf)
        return Candidate(point.w, y, point.value, np.maximum(gap, 0.0))

    def _conjugate(self, image: FloatArray) -> FloatArray:
        """r*(-A'y/W)."""
        v, l1, l2 = np.abs(image) / self.samples.sizes.total, self.problem.l1, self.problem.l2
        if l2 > 0:
            return self.grouped((np.maximum(v - l1, 0.0) ** 2).sum(axis=0) / (2 * l2))
        return self.grouped(np.where(np.all(v <= l1 * (1 + 4 * EPS), axis=0), 0.0, np.inf))


@dataclass(frozen=True)
class Curvature:
    """The Hessian A' diag(h) A / W + l2 at a point; the h_i stay with the samples."""

    oracle: Oracle
    point: Point
    kind: visits.Kind = "exact"

    @cached_property
    def _bent(self) -> tuple[Kept, list[FloatArray]]:
        loss = self.oracle.problem.loss
        return self.oracle.visit(1, visits.bent, self.point.scores, loss=loss, kind=self.kind)

    @property
    def diagonal(self) -> FloatArray:
        """One visit, the first time."""
        oracle = self.oracle
        return self._bent[1][0] / oracle.samples.sizes.total + oracle.penalised(np.ones(oracle.shape))

    def times(self, p: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(Hp, <p, Hp>), the second as a sum of squares: two products."""
        oracle, kept = self.oracle, self._bent[0]
        if oracle.problem.loss.coupled:
            image, squares = oracle.visit(2, visits.times_together, kept, p=p, loss=oracle.problem.loss)[1]
        else:
            image, squares = oracle.visit(2, visits.times, kept, p=p)[1]
        total, penalised = oracle.samples.sizes.total, oracle.penalised(p)
        return image / total + penalised, squares / total + oracle.grouped((p * penalised).sum(axis=0))

    def formed(self, k: int = 0, columns: NDArray[np.intp] | None = None) -> FloatArray:
        """A' diag(h_k) A / W without l2, of all features or of some, with the row of the intercept last: one visit.

        Of a coupled loss it is the matrix of all weights, in the order of w.ravel().
        """
        oracle, loss, scores = self.oracle, self.oracle.problem.loss, self.point.scores
        width = oracle.shape[0] if columns is None else len(columns)
        if loss.coupled:
            (gram,) = oracle.visit(1, visits.formed_together, scores, loss=loss, columns=columns)[1]
            oracle.work.flops += oracle.gram_flops(width) * oracle.shape[1] ** 2 / 2
        else:
            (gram,) = oracle.visit(1, visits.formed, scores, loss=loss, kind=self.kind, k=k, columns=columns)[1]
            oracle.work.flops += oracle.gram_flops(width)
        return gram / oracle.samples.sizes.total

    def formed_here(self, k: int) -> FloatArray:
        """The same of the first block of samples alone, by its own weights: a visit that costs the others nothing."""
        first, *others = self._bent[0]
        gram, weight = self.oracle.visit(0, visits.formed_here, (first, *(None for _ in others)), k=k)[1]
        self.oracle.work.flops += self.oracle.gram_flops(self.oracle.shape[0]) / (1 + len(others))
        return gram / weight if weight > 0 else gram


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
