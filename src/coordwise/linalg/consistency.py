"""Whether Ax = b can be solved at all.

For any vector z and any x with |x| <= R,   |b - Ax| >= (<z, b> - |A'z| R) / |z|.   With z the residual of the
(weighted) least-squares problem, A'z is nearly 0 and the right-hand side nearly |z|: where it exceeds the goal, no x of
norm up to R meets it. R is taken ten thousand times the norm of the least-squares solution, so that a solution that
only ill conditioning hides is not ruled out.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from coordwise.linalg.conjugate import Iterate, cgls
from coordwise.linalg.products import Products
from coordwise.linalg.request import norms
from coordwise.recording import Progress
from coordwise.validation import FloatArray

__all__ = ["NO_SOLUTION", "Watch", "certainly_inconsistent"]

REACH = 1e4  # R over the norm of the least-squares solution

NO_SOLUTION = "no x of norm up to 10,000 times that of the least-squares solution meets the tolerance"


def certainly_inconsistent(now: Iterate, b: FloatArray, goal: FloatArray, weights: FloatArray | None) -> bool:
    """Whether the inequality above rules out the goal for some right-hand side."""
    z = now.residual if weights is None else weights[:, None] * now.residual
    length, slope, size = norms(z), norms(now.slope), norms(now.x)
    size[(size == 0) & (slope > 0)] = np.inf  # nothing is known yet
    missing = np.multiply(slope, REACH * size, out=np.zeros_like(slope), where=slope > 0)
    least = np.divide(np.einsum("ik,ik->k", z, b) - missing, length, out=np.zeros_like(length), where=length > 0)
    return bool(np.any(least > goal))


class Watch:
    """Looks at a row-action run, and where its residual no longer falls asks CGLS whether there is a solution.

    Row action on an inconsistent system goes on for ever at a residual of the size of the contradiction. Each time the
    passes have doubled and the best residual has fallen by less than a third since, CGLS may make half as many steps as
    there were passes; it goes on where it was left, so all of it costs no more than the run.
    """

    first = 16.0  # passes before the first look
    enough = 0.7

    def __init__(self, products: Products, b: FloatArray, goal: FloatArray, weights: FloatArray | None) -> None:
        self.products, self.b, self.goal, self.weights = products, b, goal, weights
        self.found = False
        self.best = self.then = np.inf
        self.look_at = self.first
        self.steps: Iterator[Iterate] | None = None

    def __call__(self, progress: Progress) -> bool:
        """Whether the system is certainly inconsistent, which ends the run."""
        self.best = min(self.best, float(np.max(np.asarray(progress.gap) / self.goal)))
        if progress.passes < self.look_at:
            return False
        stuck = self.best > self.enough * self.then
        self.then, self.look_at = self.best, 2 * progress.passes
        if stuck:
            self.found = self.probe(int(progress.passes / 2))
        return self.found

    def probe(self, count: int) -> bool:
        """Some more steps of CGLS."""
        if self.steps is None:
            n = self.products.shape[1]
            self.steps = cgls(self.products, self.b, np.zeros((n, self.b.shape[1])), weights=self.weights)
        for _ in range(count):
            now = next(self.steps)
            if certainly_inconsistent(now, self.b, self.goal, self.weights):
                return True
            if not now.moving:
                break
        return False
