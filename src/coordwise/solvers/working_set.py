"""l1 penalties with smooth losses, wherever the samples are: Newton steps on few features, which gradients choose."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from coordwise.blas import one_blas_thread
from coordwise.fitting.active_set import ActiveSet
from coordwise.oracle import Candidate, Curvature, Oracle, Point, Work
from coordwise.penalties import ElasticNet
from coordwise.second_moments import MOST_FEATURES
from coordwise.solvers.newton import SHORT, descended
from coordwise.validation import FloatArray

__all__ = ["WorkingSet"]

FIRST = 100  # features of a working set at least
ROUNDS = 12  # that a forecast allows for
IN_VAIN = 4  # rounds without a fall of P or of the gap after which rounding allows no more

Features = NDArray[np.intp]


@dataclass(frozen=True)
class WorkingSet:
    """Proximal Newton steps on working sets of features, for smooth losses and a penalty with an l1 part.

    A round takes the features in use and those whose derivatives are nearest to leaving [-l1, l1], or are outside, has
    their Hessian formed in one visit per output, minimises the quadratic with the l1 penalty here, exactly, and
    searches along the way there. The gap of all features is known after every round. Where it does not fall by half,
    and features are missing, the working set becomes twice as large.
    """

    name: ClassVar[str] = "working_set"
    sure: ClassVar[bool] = False

    def refuses(self, oracle: Oracle) -> str:
        """Why it does not apply, or nothing."""
        if oracle.problem.loss.gamma == 0:
            return "it needs a smooth loss"
        return "" if oracle.problem.l1 > 0 else "it needs an l1 penalty"

    def forecast(self, oracle: Oracle, folds: float) -> Work:
        """See `Solver`: some rounds, each a Hessian of a working set per output and four products."""
        sizes, intercept = oracle.samples.sizes, oracle.problem.intercept
        d, K = oracle.shape
        width = min(d, max(FIRST, int(math.sqrt(d * FIRST))))  # a guess: nobody knows the support beforehand
        flops = ROUNDS * K * (oracle.gram_flops(width) + width**3 / 3)
        rounds = ROUNDS * (K + 5 + 5 * intercept)
        numbers = 8.0 * ROUNDS * K * (width**2 + 4 * d)
        return Work(ROUNDS * (3 + K) * sizes.nnz, rounds, numbers, flops)

    def rounds(self, oracle: Oracle, start: FloatArray, goal: FloatArray) -> Iterator[Candidate]:
        """Candidates from weights `start` on, one after every round, until every gap is <= goal.

        It ends earlier where rounding allows no more, or a working set would need more than 10,000 features.
        """
        features = oracle.shape[0] - oracle.problem.intercept
        largest = min(features, MOST_FEATURES // (oracle.shape[1] if oracle.problem.loss.coupled else 1))
        point, fresh, above, in_vain, size = oracle.at(start), True, False, 0, 0
        last = np.full(oracle.groups, np.inf)
        while True:
            found = oracle.certificate(point)
            if np.all(found.gap <= goal) and not fresh:  # scores that are updated drift
                point, fresh = oracle.at(point.w), True
                found = oracle.certificate(point)
            yield found
            active = found.gap > goal
            if not active.any():
                return
            slow = bool(np.any(active & ~(found.gap <= last / 2)))
            used, outside = self._counted(oracle, point)
            grows = in_vain > 0 or (slow and used + outside > size)
            size = min(max(2 * size if grows else size, 2 * used, FIRST), largest)
            step, slope = self._step(oracle.curvature(point, "majorant" if above else "damped"), active, size)
            reached, length = descended(oracle, point, step, slope)
            gained = reached is not None and bool(np.any(reached.value < point.value) or np.any(found.gap < 0.9 * last))
            in_vain = 0 if gained else in_vain + 1
            if in_vain >= IN_VAIN and size >= largest:
                return
            above, last = length < SHORT and not oracle.problem.loss.coupled, found.gap
            if reached is not None:
                point, fresh = reached, False

    @staticmethod
    def _counted(oracle: Oracle, point: Point) -> tuple[int, int]:
        """The most features that an output uses, and that it does not but should, by their derivatives."""
        features, l1 = oracle.shape[0] - oracle.problem.intercept, oracle.problem.l1
        size, reach = np.abs(point.w[:features]), np.abs(point.gradient[:features])
        if oracle.problem.loss.coupled:
            size, reach = size.max(axis=1, keepdims=True), reach.max(axis=1, keepdims=True)
        used, outside = size > 0, reach > l1
        return int(used.sum(axis=0).max()), int((outside & ~used).sum(axis=0).max())

    def _step(self, curvature: Curvature, active: NDArray[np.bool_], size: int) -> tuple[FloatArray, FloatArray]:
        """The way to the minimisers of the quadratics on working sets, and what P falls by along it to first order."""
        oracle, point = curvature.oracle, curvature.point
        step = np.zeros_like(point.w)
        if oracle.problem.loss.coupled:
            which = _nearest(oracle, point, np.arange(oracle.shape[1]), size)
            self._minimise(curvature, step, 0, slice(None), which)
        else:
            for k in np.flatnonzero(active):
                which = _nearest(oracle, point, np.array([k]), size)
                self._minimise(curvature, step, int(k), slice(int(k), int(k) + 1), which)
        l1, features = oracle.problem.l1, oracle.shape[0] - oracle.problem.intercept
        w, s = point.w[:features], step[:features]
        change = l1 * (np.abs(w + s) - np.abs(w)).sum(axis=0)
        return step, (point.gradient * step).sum(axis=0) + change

    @staticmethod
    def _minimise(curvature: Curvature, step: FloatArray, k: int, outputs: slice, which: Features) -> None:
        """Set the rows `which` of the step, and that of the intercept, of one output, or of all if they are coupled."""
        oracle, point = curvature.oracle, curvature.point
        everything = len(which) == oracle.shape[0] - oracle.problem.intercept
        H = curvature.formed(k, None if everything else which)
        w = point.w[which, outputs]
        gradient = (point.gradient[which, outputs] - oracle.problem.l2 * w).ravel()
        free = w.shape[1] if oracle.problem.intercept else 0
        G, across, back = _projected(H, free)
        search = ActiveSet(G, G @ w.ravel() - gradient)
        search.begin(w.ravel())
        with one_blas_thread(len(G)):
            search.solve(ElasticNet(oracle.problem.l1, oracle.problem.l2))
        oracle.work.flops += float(np.count_nonzero(search.w)) ** 3 / 3
        move = search.w - w.ravel()
        step[which, outputs] = move.reshape(w.shape)
        if free:
            step[-1, outputs] = -back @ (across @ move)


def _projected(H: FloatArray, free: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The quadratic of the penalised weights with the best intercepts, the last `free` unknowns of H, which are
    -back @ across @ (the others).
    """
    if not free:
        return H, np.zeros((0, len(H))), np.zeros((0, 0))
    inner, across = H[:-free, :-free], H[-free:, :-free]
    back = np.asarray(np.linalg.pinv(H[-free:, -free:], rcond=1e-12, hermitian=True), np.float64)
    return inner - across.T @ (back @ across), across, back


def _nearest(oracle: Oracle, point: Point, outputs: Features, size: int) -> Features:
    """The features in use and those with the largest derivatives, `size` of them, in order."""
    features = oracle.shape[0] - oracle.problem.intercept
    if size >= features:
        return np.arange(features)
    reach = np.abs(point.gradient[:features, outputs]).max(axis=1)
    reach[point.w[:features, outputs].any(axis=1)] = np.inf
    return np.sort(np.argpartition(-reach, size)[:size])
