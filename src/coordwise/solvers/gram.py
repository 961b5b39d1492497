"""The squared loss from second moments: one or two visits, and a few more that refine on the samples themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coordwise import visits
from coordwise.blas import one_blas_thread
from coordwise.fitting.active_set import ActiveSet
from coordwise.fitting.newton import factored_with_rest
from coordwise.oracle import Candidate, Oracle, Point, Work
from coordwise.penalties import ElasticNet
from coordwise.second_moments import MOST_FEATURES, SecondMoments
from coordwise.validation import FloatArray

__all__ = ["Gram"]

EPS = float(np.finfo(float).eps)
REFINED = 8  # times that the gradient on the samples may correct w; each halves the gap at least


@dataclass(frozen=True)
class Gram:
    """Ridge, least squares, Lasso and elastic net by A'SA, A'Sb, which are formed once.

    The quadratic P(w) = (1/2) w'Gw - m'w + r(w) + const is minimised by a Cholesky factor, with an l1 penalty by exact
    solutions on active sets. Every candidate is certified on the samples. Where rounding of the moments leaves its gap
    above the goal, w becomes the minimiser of the quadratic with the same G that has the gradient of the samples at w;
    each such round costs two products.

    Without any penalty the gap is g'G^-1 g/2, g being the gradient on the samples: P(w) - min P, of a quadratic. Where
    features depend on each other G has no inverse. Directions v in which it is 0 up to rounding are left out if Av is 0
    up to the rounding of the samples, too; otherwise the gap is inf, since G says nothing about them.
    """

    name: ClassVar[str] = "gram"
    sure: ClassVar[bool] = True

    def refuses(self, oracle: Oracle) -> str:
        """Why it does not apply, or nothing."""
        if oracle.problem.loss.name != "squared":
            return "it is for the squared loss"
        return "" if oracle.shape[0] <= MOST_FEATURES else f"it is for at most {MOST_FEATURES} features"

    def forecast(self, oracle: Oracle, folds: float) -> Work:
        """See `Solver`: a Gram matrix, a factor, and the certificate."""
        sizes, intercept = oracle.samples.sizes, oracle.problem.intercept
        d, K = oracle.shape
        flops = oracle.gram_flops(d) + d**3 / 3 * (K if oracle.problem.l1 > 0 else 1)
        return Work((6 + 2 * intercept) * sizes.nnz, 3 + 6 * intercept, 8.0 * (d**2 + 4 * d * K), flops)

    def rounds(self, oracle: Oracle, start: FloatArray, goal: FloatArray) -> Iterator[Candidate]:
        """Candidates, the first from the moments alone, until every gap is <= goal or no longer falls by half."""
        moments = oracle.moments()
        G, slopes = moments.gram / moments.total, moments.cross / moments.total
        quadratic = _Quadratic(G, oracle.problem.l1, oracle.problem.l2)
        oracle.work.flops += len(G) ** 3 / 3
        features = slice(len(G))
        w, last = start.copy(), np.full(oracle.groups, np.inf)
        w[features] = quadratic.minimised(slopes, start[features])
        if oracle.problem.intercept:
            w[-1] = moments.level - moments.mean @ w[features]
        complete = oracle.problem.l1 + oracle.problem.l2 > 0 or _nothing_left_out(oracle, moments, quadratic)
        for _ in range(1 + REFINED):
            point = oracle.at(w)
            found = self._certified(oracle, point, quadratic, complete)
            yield found
            if np.all((found.gap <= goal) | ~(found.gap <= last / 2)):
                return
            last = found.gap
            here, gradient = point.w[features], point.gradient[features]
            w = point.w.copy()
            w[features] = quadratic.minimised(G @ here - (gradient - oracle.problem.l2 * here), here)
            if oracle.problem.intercept:
                w[-1] -= moments.mean @ (w[features] - here)

    @staticmethod
    def _certified(oracle: Oracle, point: Point, quadratic: _Quadratic, complete: bool) -> Candidate:
        """Without a penalty the gap is inf unless the quadratic is `complete` (see `_nothing_left_out`)."""
        if oracle.problem.l1 > 0 or oracle.problem.l2 > 0:
            return oracle.certificate(point)
        gradient = point.gradient[: len(quadratic.G)]
        gap = np.maximum((gradient * quadratic.solve(gradient)).sum(axis=0) / 2, 0.0)
        return Candidate(point.w, point.slopes, point.value, gap if complete else np.full_like(gap, np.inf))


def _nothing_left_out(oracle: Oracle, moments: SecondMoments, quadratic: _Quadratic) -> bool:
    """Whether Av is 0 up to rounding for every direction v in which the quadratic is flat, so that P is flat there too.

    It costs a product for each of these directions.
    """
    left_out = quadratic.left_out
    if not left_out.shape[1]:
        return True
    if oracle.problem.intercept:
        left_out = np.vstack([left_out, -moments.mean @ left_out])
    squares = oracle.visit(left_out.shape[1], visits.squares_along, w=left_out)[1][0]
    sizes = oracle.samples.sizes
    size = (sizes.squares + oracle.problem.intercept * sizes.total) * (left_out**2).sum(axis=0)
    return bool(np.all(squares <= (8 * EPS * sizes.d) ** 2 * size))


class _Quadratic:
    """minimise over w   (1/2) w'Gw - m'w + l1 |w|_1 + (l2/2) |w|^2   for several m."""

    def __init__(self, G: FloatArray, l1: float, l2: float) -> None:
        self.G, self.l1, self.l2 = G, l1, l2
        if l1 == 0:
            H = G.copy()
            H[np.diag_indices_from(H)] += l2
            self._solve, self.left_out = factored_with_rest(H)

    def solve(self, slopes: FloatArray) -> FloatArray:
        """(G + l2)^-1 of every column."""
        return np.stack([self._solve(column) for column in slopes.T], axis=1)

    def minimised(self, slopes: FloatArray, start: FloatArray) -> FloatArray:
        """The minimisers for the columns m of `slopes`; of several without a penalty the smallest."""
        if self.l1 == 0:
            return self.solve(slopes)
        w, penalty = np.empty_like(slopes), ElasticNet(self.l1, self.l2)
        for k in range(slopes.shape[1]):
            search = ActiveSet(self.G, slopes[:, k])
            search.begin(start[:, k])
            with one_blas_thread(len(self.G)):
                search.solve(penalty)
            w[:, k] = search.w
        return w
