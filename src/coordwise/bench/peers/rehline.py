"""ReHLine: dual coordinate descent for sums of piecewise linear and quadratic pieces."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from coordwise.bench.peers.peer import MANY, Peer, Solution, only
from coordwise.bench.problems import Problem
from coordwise.validation import FloatArray

__all__ = ["PEERS", "ReHLine"]


class ReHLine(Peer):
    """C sum_i [sum_l ReLU(u_li t_i + v_li) + sum_h ReHU(s_hi t_i + t_hi)] + |w|^2/2: C = 1/(l2 n).

    max(z, 0) is ReLU(z), max(z, 0)^2/2 is ReHU(z) with an infinite threshold; |z| and z^2/2 are two of them each.
    """

    library = module = "rehline"
    solvers: ClassVar[tuple[str, ...]] = ("rehline",)

    def refuses(self, problem: Problem) -> str:
        """See `Peer.refuses`."""
        s = problem.statement
        refusal = only(s, ("squared", "l2l1", "squared_hinge", "hinge"), ("l2",))
        return refusal or ("fits no intercept" if s.intercept else "")

    def prepare(self, problem: Problem) -> Any:
        """See `Peer.prepare`."""
        b, loss, one = problem.data.b, problem.statement.loss, np.ones(problem.n)
        slope, shift = (
            (np.array([-b]), np.array([one]))
            if problem.statement.classification
            else (
                np.array([one, -one]),
                np.array([-b, b]),
            )
        )
        pieces: dict[str, FloatArray] = {}
        if loss in ("hinge", "l2l1"):
            pieces |= {"U": slope, "V": shift}
        if loss != "hinge":
            pieces |= {"S": slope, "T": shift, "Tau": np.full_like(slope, np.inf)}
        return problem.data.matrix, pieces

    def fit(self, X: Any, y: FloatArray, problem: Problem, tol: float, threads: int) -> Any:
        """See `Peer.fit`."""
        import rehline

        matrix, pieces = X
        C = 1 / (problem.statement.l2 * problem.n)
        return rehline.ReHLine(C=C, tol=tol, max_iter=MANY, **pieces).fit(matrix)

    def solution(self, model: Any) -> Solution:
        """See `Peer.solution`."""
        return np.ravel(model.coef_), 0.0


PEERS = tuple(ReHLine(solver) for solver in ReHLine.solvers)
