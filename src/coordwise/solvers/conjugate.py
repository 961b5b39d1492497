"""Newton's method whose steps are found by conjugate gradients: products only, whatever the number of features."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from coordwise.fitting.newton import factored
from coordwise.oracle import Curvature, Oracle, Work
from coordwise.second_moments import MOST_FEATURES
from coordwise.solvers.newton import Outer
from coordwise.validation import FloatArray

__all__ = ["NewtonCG"]

MOST = 500  # steps of conjugate gradients for one Newton step
NEWTON_STEPS = 4  # that a forecast allows for

Solve = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class NewtonCG(Outer):
    """w <- w + length * s with H s = -grad P up to a tolerance that follows the gap; all outputs at once.

    For smooth losses and an l2 penalty. A Newton step costs two products for every step of conjugate gradients and four
    more; every point has a duality gap for free. The work grows with sqrt(kappa), kappa being the condition number of
    the Hessian after preconditioning, or with the number of its distinct eigenvalues.

    Parameters
    ----------
    preconditioner : {"diagonal", "part"}
        The diagonal of the Hessian; or the Hessian of the first block of samples, formed once per Newton step, which is
        close to the whole one if samples are in no order and the block has far more of them than there are features.
    """

    preconditioner: Literal["diagonal", "part"] = "diagonal"

    @property
    def name(self) -> str:
        """See `Solver`."""
        return "newton_cg" if self.preconditioner == "diagonal" else "newton_cg_part"

    @property
    def sure(self) -> bool:
        """See `Solver`."""
        return False

    def refuses(self, oracle: Oracle) -> str:
        """Why it does not apply, or nothing."""
        why = super().refuses(oracle)
        if why or self.preconditioner == "diagonal":
            return why
        if oracle.problem.loss.coupled:
            return "a part's Hessian is for losses that do not couple the outputs"
        d, n = oracle.shape[0], oracle.samples.sizes.n
        if d > MOST_FEATURES:
            return f"it is for at most {MOST_FEATURES} features"
        few = n < d * max(oracle.blocks, 1)
        return "its preconditioner needs at least as many samples in a block as there are features" if few else ""

    def forecast(self, oracle: Oracle, folds: float) -> Work:
        """See `Solver`: sqrt(kappa)/2 steps of conjugate gradients per e-fold, no more than there are features.

        With a part's Hessian kappa is the ratio of the ends of the Marchenko-Pastur law for as many samples as the part
        has and as many directions as the penalty leaves free. Where all samples are in one block it is infinite: that
        part is the whole, and Newton's method itself costs less.
        """
        if self.preconditioner == "part" and oracle.blocks == 1:
            return Work(rounds=math.inf)
        sizes, problem = oracle.samples.sizes, oracle.problem
        (d, K), blocks = oracle.shape, max(oracle.blocks, 1)
        most = sizes.squares / sizes.total / (problem.loss.gamma * problem.l2)  # bounds the trace of H/l2 - 1
        kappa, flops, numbers = most / max(d, 1), 0.0, 16.0 * d * K
        if self.preconditioner == "part":
            spread = math.sqrt(min(d, most) * blocks / max(sizes.n, 1))
            kappa = min(most, ((1 + spread) / (1 - spread)) ** 2) if spread < 1 else most
            flops = NEWTON_STEPS * K * (oracle.gram_flops(d) / blocks + d**3 / 3)
        pairs = min(folds * (1 + math.sqrt(kappa) / 2), float(d)) + NEWTON_STEPS
        rounds = pairs + (4 + 5 * problem.intercept) * NEWTON_STEPS
        if self.preconditioner == "part":
            flops += pairs * K * 2 * d**2
            rounds += NEWTON_STEPS * K
        here = 8.0 * NEWTON_STEPS * K * d**2 if self.preconditioner == "part" else 0.0
        return Work((2 * pairs + 4 * NEWTON_STEPS) * sizes.nnz, rounds, numbers * rounds + here, flops)

    def step(self, curvature: Curvature, left: FloatArray, goal: FloatArray) -> FloatArray:
        """The Newton step, as exact as the gap is small (`left` is its share of the first one; 0: no step)."""
        oracle, H = curvature.oracle, curvature
        solve, grouped = self._solver(H, left), oracle.grouped
        r = np.where(left > 0, -H.point.gradient, 0.0)
        s = np.zeros_like(r)
        p = z = solve(r)
        rz = grouped((r * z).sum(axis=0))
        enough = oracle.problem.l2 * goal / 2  # |r|^2/(2 l2) is the gap, if the losses are quadratic
        quadratic = oracle.problem.loss.name == "squared"
        far = 0.0 if quadratic else rz * np.minimum(0.3, 0.5 * left**0.25) ** 2
        for _ in range(MOST):
            if np.all((rz <= far) | (grouped((r * r).sum(axis=0)) <= enough)):
                break
            Hp, square = H.times(p)
            moving = square > 0
            length = np.where(moving, rz / np.where(moving, square, 1.0), 0.0)
            s = s + length * p
            r = r - length * Hp
            z, last = solve(r), rz
            rz = grouped((r * z).sum(axis=0))
            p = z + np.where(last > 0, rz / np.where(last > 0, last, 1.0), 0.0) * p
        return s

    def _solver(self, H: Curvature, left: FloatArray) -> Solve:
        """r -> M^-1 r for the preconditioner M."""
        if self.preconditioner == "diagonal":
            diagonal = H.diagonal
            inverse = 1 / np.where(diagonal > 0, diagonal, 1.0)
            return lambda r: inverse * r
        solves = {int(k): self._part(H, int(k)) for k in np.flatnonzero(left > 0)}

        def solve(r: FloatArray) -> FloatArray:
            z = np.zeros_like(r)
            for k, of_output in solves.items():
                z[:, k] = of_output(r[:, k])
            return z

        return solve

    @staticmethod
    def _part(H: Curvature, k: int) -> Solve:
        M, oracle = H.formed_here(k), H.oracle
        extra = oracle.penalised(np.ones((len(M), 1)))[:, 0]
        if oracle.problem.intercept:  # all curvatures of the part may be 0
            extra[-1] = 1e-8 * H.diagonal[-1, k]
        M[np.diag_indices_from(M)] += extra
        oracle.work.flops += len(M) ** 3 / 3
        return factored(M)
