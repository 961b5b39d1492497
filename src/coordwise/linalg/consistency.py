"""Whether Ax = b has no solution at all.

If A'z = 0, then <z, b - Ax> = <z, b> for every x, and |b - Ax| >= <z, b>/|z|. The residual of the least-squares
solution is such a z. Computed, A'z is not 0: it counts as 0 if |A'z| <= 16 eps sum_i |a_i| |z_i|, which is about what
rounding leaves of it. An x that meets the goal all the same has |x| >= (<z, b> - goal |z|)/|A'z|: it is so large that
rounding makes Ax meaningless. A larger A'z decides nothing: it may belong to a solution that a bad condition hides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from coordwise.linalg.conjugate import Iterate, cgls
from coordwise.linalg.products import Products
from coordwise.linalg.request import Request, norms
from coordwise.recording import Progress
from coordwise.results import Status
from coordwise.validation import FloatArray

__all__ = ["NO_SOLUTION", "Watch", "about_zero_rows", "certainly_inconsistent", "without_zero_rows"]

ZERO = 16 * float(np.finfo(float).eps)
REACH = 1e4  # times the norm of the least-squares solution: where row action is not expected to come

NO_SOLUTION = "no x meets the tolerance: the least-squares residual is orthogonal to the columns of A, and not to b"
FAR = "row action has come to a halt: a solution, if there is one, has a norm of more than {:.1g}"


def certainly_inconsistent(
    now: Iterate, b: FloatArray, goal: FloatArray, weights: FloatArray | None, lengths: FloatArray
) -> bool:
    """Whether the inequality above rules out the goal for some right-hand side; `lengths` are those of the rows."""
    z = now.residual if weights is None else weights[:, None] * now.residual
    vanishes = (norms(now.residual) > goal) & (norms(now.slope) <= ZERO * (lengths @ np.abs(z)))
    return bool(np.any(vanishes & (_least(z, b) > goal + ZERO * norms(b))))


def smallest_norm(now: Iterate, b: FloatArray, goal: FloatArray, weights: FloatArray | None) -> FloatArray:
    """What |x| is at least for an x that meets the goal."""
    z = now.residual if weights is None else weights[:, None] * now.residual
    slope = norms(now.slope)
    missing = np.maximum(_least(z, b) - goal, 0) * norms(z)
    return np.divide(missing, slope, out=np.where(missing > 0, np.inf, 0.0), where=slope > 0)


def _least(z: FloatArray, b: FloatArray) -> FloatArray:
    """<z, b>/|z|."""
    length = norms(z)
    return np.divide(np.einsum("ik,ik->k", z, b), length, out=np.zeros_like(length), where=length > 0)


def without_zero_rows(request: Request, norms2: FloatArray) -> tuple[Request, FloatArray, list[str]]:
    """The request with b = 0 on zero rows, |b| there if one is more than the goal (else 0), and what there is to say.

    Such a system has no solution, and its other equations are solved all the same.
    """
    zero = norms2 == 0
    count = int(np.count_nonzero(zero))
    missing = norms(request.b[zero])
    if np.all(missing <= request.residual_goal):
        missing = np.zeros_like(missing)
    notes = [f"{count} zero row{'s' * (count > 1)} left out"] if count else []
    if missing.any():
        notes.append(f"zero rows have right-hand sides of norm {missing.max():.3g}")
        request = replace(request, b=np.where(zero[:, None], 0.0, request.b))
    return request, missing, notes


def about_zero_rows(status: Status | None) -> Status:
    """The status of a run on the other equations where zero rows contradict."""
    if status in (Status.STOPPED, Status.INTERRUPTED, Status.TIME_LIMIT):
        return status
    return Status.INCONSISTENT


class Watch:
    """Looks at a row-action run, and where its residual no longer falls asks CGLS whether there is a solution.

    Row action on an inconsistent system goes on for ever at a residual of the size of the contradiction. Each time the
    passes have doubled and the best residual has fallen by less than a third since, CGLS may make half as many steps as
    there were passes; it goes on where it was left, so all of it costs no more than the run.

    `verdict` is "inconsistent" where that is certain, "stalled" where a solution would be ten thousand times as large
    as what least squares have led to so far, and None as long as there is hope; `note` says so in words.
    """

    first, patience = 16.0, 256.0  # passes before the first look, and before a run may be called stalled
    enough = 0.7

    def __init__(self, products: Products, b: FloatArray, goal: FloatArray, weights: FloatArray | None) -> None:
        self.products, self.b, self.goal, self.weights = products, b, goal, weights
        self.verdict: Status | None = None
        self.note = ""
        self.best = self.then = np.inf
        self.look_at = self.first
        self.steps: Iterator[Iterate] | None = None

    def __call__(self, progress: Progress) -> bool:
        """Whether there is a verdict, which ends the run."""
        self.best = min(self.best, float(np.max(np.asarray(progress.gap) / self.goal)))
        if progress.passes < self.look_at:
            return False
        stuck = self.best > self.enough * self.then
        self.then, self.look_at = self.best, 2 * progress.passes
        if stuck:
            self.probe(int(progress.passes / 2), patient=progress.passes < self.patience)
        return self.verdict is not None

    def probe(self, count: int, patient: bool) -> None:
        """Some more steps of CGLS."""
        if self.steps is None:
            n = self.products.shape[1]
            self.steps = cgls(self.products, self.b, np.zeros((n, self.b.shape[1])), weights=self.weights)
            self.lengths = np.sqrt(self.products.row_norms2())
        for _ in range(count):
            now = next(self.steps)
            if certainly_inconsistent(now, self.b, self.goal, self.weights, self.lengths):
                self.verdict, self.note = Status.INCONSISTENT, NO_SOLUTION
                return
            if not now.moving:
                break
        needed, size = smallest_norm(now, self.b, self.goal, self.weights), norms(now.x)
        far = (size > 0) & (needed > REACH * size)
        if far.any() and not patient:
            self.verdict, self.note = Status.STALLED, FAR.format(float(needed[far].min()))
