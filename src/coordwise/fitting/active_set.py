"""Quadratic problems with an l1 penalty, for one penalty after the other, by exact solutions on the active set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs

from coordwise.kernels import Matrix, Plan, Run, Terms
from coordwise.penalties import ElasticNet
from coordwise.validation import FloatArray

__all__ = ["ActiveSet"]

SMALL = 64  # active coordinates for which an eigendecomposition costs less than what it saves
FEW = 8  # coordinates that come in or have to leave for which systems cost less than steps over all
MANY = 0.1  # of the active ones: the same, where more come in
FIRST, LEAST, MOST = 30, 10, 200  # passes of such steps: to begin with, and later
ENTRIES = 2e8  # of the matrix that a pass or more may touch before it is asked whether it is late
SHARE = 0.2  # of the active coordinates: passes that cost about as much as a system of these
STEADY = 0.02  # of the active coordinates: if more come and go in the passes, more passes are due,
ENOUGH = 400  # up to so many
HOPELESS, HALF = 0.25, 0.5  # of the active coordinates, of the last time: if more are still wrong, passes are no use


class ActiveSet:
    r"""minimise over w   (1/2) w'Gw - m'w + l1 |w|_1 + (l2/2) |w|^2,   over w >= 0 if the penalty says so.

    On the coordinates that are not 0, with known signs, the solution solves a linear system. Each round moves towards
    it and leaves out the coordinate that reaches 0 first; then the coordinates whose gradients exceed l1 come in. The
    value never rises, so the rounds end, at a solution up to rounding. Solutions of similar penalties have similar
    active sets: the last one is where the next problem starts.

    Where many would have to leave or to come in, some passes of exact steps over all coordinates, one at a time, sort
    most of them out for the price of a system or two. Where they do not (coordinates that are nearly linear
    combinations of others), the rounds begin again from where they were, with systems alone.

    Cholesky factors release the GIL, ``numpy.linalg.solve`` and ``scipy.linalg.solve`` do not.

    Parameters
    ----------
    G : ndarray of shape (d, d)
        Symmetric, positive semidefinite.
    m : ndarray of shape (d,)
    """

    def __init__(self, G: FloatArray, m: FloatArray) -> None:
        self.G, self.m = G, m
        self.w = np.zeros(len(m))
        self.active: NDArray[np.intp] = np.empty(0, np.intp)
        self.signs = np.empty(0)
        self.block = np.empty((0, 0))
        self.rounds = 0
        self._matrix: Matrix | None = None
        self._known: tuple[Any, float, FloatArray | None] = None, 0.0, None  # coordinates, l2, and the factor
        self._noise = 1e-14 * float(np.max(np.abs(m), initial=0.0))

    def begin(self, w: FloatArray) -> None:
        """Start the next problem from w."""
        self.w, self.active = w.copy(), np.flatnonzero(w)
        self.signs = np.sign(w[self.active])
        self.block = self.G[np.ix_(self.active, self.active)]

    def path(self, penalties: Sequence[ElasticNet]) -> FloatArray | None:
        """Solutions for one penalty after the other (d x K), best from strong to weak; None if one was not found."""
        found = np.empty((len(self.m), len(penalties)))
        k = 0
        while k < len(penalties):
            w = self.solve(penalties[k])
            if w is None:
                return None
            found[:, k] = w
            k += 1
            if len(self.active) <= SMALL and k < len(penalties):
                same = self._same(penalties[k:])
                found[:, k : k + same.shape[1]] = same
                k += same.shape[1]
        return found

    def _same(self, penalties: Sequence[ElasticNet]) -> FloatArray:
        """Solutions (d x k) for as many of the penalties as have the active set and the signs of the current one."""
        A = self.active
        l1, l2 = (np.array([getattr(penalty, name) for penalty in penalties]) for name in ("l1", "l2"))
        w = np.zeros((len(self.m), len(penalties)))
        if len(A):
            values, vectors = np.linalg.eigh(self.block)
            if values[0] <= 1e-10 * values[-1]:
                return w[:, :0]
            right = vectors.T @ np.column_stack([self.m[A], self.signs])
            w[A] = vectors @ ((right[:, :1] - l1 * right[:, 1:]) / (values[:, None] + l2))
        gradient = self.G[:, A] @ w[A] - self.m[:, None]
        excess = (-gradient if penalties[0].positive else np.abs(gradient)) - l1
        excess[A] = -np.inf
        valid = np.all(w[A] * self.signs[:, None] > 0, axis=0) & np.all(excess <= 1e-13 * l1 + self._noise, axis=0)
        count = len(valid) if valid.all() else int(np.argmin(valid))
        if count:
            self.w = w[:, count - 1].copy()
        return w[:, :count]

    def solve(
        self, penalty: ElasticNet, *, most: float = np.inf, late: Callable[[], bool] | None = None
    ) -> FloatArray | None:
        """The solution for a penalty; None after too many rounds or a singular system.

        Ends early, at the current `w`, after `most` rounds or when `late`, asked before every round, returns True.
        """
        if penalty.positive and np.any(self.signs < 0):
            self._keep(self.signs > 0)
        begun, last = self.w.copy(), self.rounds + int(min(50 + 2 * len(self.m), most))
        asked = late or (lambda: False)
        found, hopeless = self._rounds(penalty, last, asked, patient=True)
        if hopeless:
            tried = self.w
            self.begin(begun)
            found, _ = self._rounds(penalty, last, asked, patient=False)
            if found is None and self._value(tried, penalty) < self._value(self.w, penalty):
                self.begin(tried)
        return found

    def _rounds(
        self, penalty: ElasticNet, last: int, late: Callable[[], bool], *, patient: bool
    ) -> tuple[FloatArray | None, bool]:
        """The solution, or None; and whether passes over all coordinates turned out to be no use.

        They may take the place of systems if `patient`.
        """
        l1, l2 = penalty.l1, penalty.l2
        ahead: FloatArray | None = None  # the minimiser for the current signs, where it is known
        single = False  # whether coordinates come in one at a time, which always descends
        due, spent = 0, 0  # passes
        trouble = np.inf  # coordinates that were wrong the last time
        while self.rounds < last and not late():
            self.rounds += 1
            if due:
                spent += due
                if (more := self._passes(penalty, due)) < 0:
                    break
                due = more if spent < ENOUGH else 0
                continue
            if ahead is None:
                ahead = self._target(l1, l2)
            if ahead is None:
                break
            wrong, ahead = self._move(ahead, penalty), None
            if not wrong:
                gradient = self.G @ self.w - self.m
                excess = (-gradient if penalty.positive else np.abs(gradient)) - l1
                excess[self.active] = -np.inf
                violators = np.flatnonzero(excess > 1e-13 * l1 + self._noise)
                if not len(violators):
                    return self.w.copy(), False
            many = wrong or len(violators)
            if patient and not single and many > (FEW if wrong else max(FEW, MANY * len(self.active))):
                if spent and many > min(HOPELESS * len(self.active), HALF * trouble):
                    return None, True
                due, trouble = self._worth() if spent else FIRST, many if spent else np.inf
                continue
            if wrong:
                continue
            most = 1 if single else max(len(self.active), FEW)
            if len(violators) > most:
                violators = violators[np.argsort(-excess[violators], kind="stable")[:most]]
            ahead = self._enter(violators, -np.sign(gradient[violators]), l1, l2)
            if ahead is None:
                if len(violators) == 1:  # its step is rounding: there is nothing to gain
                    return self.w.copy(), False
                single = True
                continue
            single = False
        return None, False

    def _worth(self) -> int:
        """Passes over all coordinates that cost about as much as a system of the active ones."""
        return int(min(max(SHARE * len(self.active), LEAST), MOST))

    def _passes(self, penalty: ElasticNet, count: int) -> int:
        """So many passes of exact steps, one coordinate at a time, or fewer where these are long.

        How many more are due, if signs changed to the last; -1, and no step, where something overflows.
        """
        count = int(min(count, max(ENTRIES / len(self.m) ** 2, 2)))
        own = np.diagonal(self.G)
        if self._matrix is None:
            self._matrix = Matrix(np.ascontiguousarray(self.G))
        run = Run(
            self._matrix,
            Terms(penalty.shape, 1.0, -self.m[:, None], None),
            None,
            Plan(accelerated=False, prox=True, step=np.where(own > 0, own, 1.0)),
            cells=None,
            seed=self.rounds,
            x0=self.w[:, None].copy(),
        )
        run.advance(steps=count // 2 * len(self.m))
        before = np.sign(run.point()[:, 0])
        run.advance(steps=(count - count // 2) * len(self.m))
        found = run.point()[:, 0]
        if not np.all(np.isfinite(found)):
            return -1
        self.begin(found)
        changed = np.count_nonzero(np.sign(self.w) != before)
        return min(2 * count, MOST) if changed > max(STEADY * len(self.active), FEW) else 0

    def _target(self, l1: float, l2: float) -> FloatArray | None:
        """The minimiser on the span of the active coordinates, for their signs."""
        if not len(self.active):
            return self.m[:0]
        factor = self._factor(l2)
        if factor is None:
            return None
        found = dpotrs(factor, self.m[self.active] - l1 * self.signs, lower=1)[0]
        return found if np.all(np.isfinite(found)) else None

    def _factor(self, l2: float) -> FloatArray | None:
        """Of the active coordinates' system; the last one if these are the same, as they are for the next l1 alone."""
        known, at, factor = self._known
        if known is self.active and at == l2:
            return factor
        own = np.diagonal(self.block)
        for ridge in (0.0, 1e-11, 1e-8):  # along a direction that changes nothing but |w|_1, a step far enough
            H = self.block.copy().T  # in Fortran's order
            H.ravel("F")[:: len(H) + 1] += l2 + ridge * own
            factor, wrong = dpotrf(H, lower=1, clean=0, overwrite_a=1)
            if not wrong and np.all(np.diagonal(factor) ** 2 > 1e-13 * (own + l2)):
                self._known = self.active, l2, factor
                return factor
        return None

    def _move(self, target: FloatArray, penalty: ElasticNet) -> int:
        """To the minimiser for the current signs; or, if some would change, up to where the first is 0. How many would.

        If they are many they are all left out where that is better than to stay.
        """
        now = self.w[self.active]
        wrong = target * self.signs <= 0
        count = int(np.count_nonzero(wrong))
        if not count:
            self.w[self.active] = target
            return 0
        if count > FEW:
            clipped = np.zeros_like(self.w)
            clipped[self.active] = np.where(wrong, 0.0, target)
            if self._value(clipped, penalty) < self._value(self.w, penalty):
                self.w = clipped
                self._keep(~wrong)
                return count
        lengths = np.where(wrong, now / np.where(wrong, now - target, 1.0), np.inf)
        length = float(np.min(lengths))
        now = now + length * (target - now)
        self.w[self.active] = now
        self._keep((lengths > length) & (now * self.signs > 0))
        return count

    def _value(self, w: FloatArray, penalty: ElasticNet) -> float:
        return float(w @ (self.G @ w / 2 + penalty.l2 / 2 * w - self.m) + penalty.l1 * np.abs(w).sum())

    def _enter(self, coordinates: NDArray[np.intp], signs: FloatArray, l1: float, l2: float) -> FloatArray | None:
        """Let coordinates in whose step from 0 has their sign; the minimiser then, None if there are none."""
        before = self.active, self.signs, self.block
        count = len(self.active)
        while len(coordinates):
            self.active = np.concatenate([before[0], coordinates])
            self.signs = np.concatenate([before[1], signs])
            self.block = self.G[np.ix_(self.active, self.active)]
            target = self._target(l1, l2)
            if target is None:
                break
            right = target[count:] * signs > 0
            if right.all():
                return target
            coordinates, signs = coordinates[right], signs[right]
        self.active, self.signs, self.block = before
        return None

    def _keep(self, which: NDArray[np.bool_]) -> None:
        self.w[self.active[~which]] = 0.0
        self.active, self.signs = self.active[which], self.signs[which]
        self.block = self.G[np.ix_(self.active, self.active)]
