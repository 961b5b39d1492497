"""lightning: dual coordinate descent and stochastic dual coordinate ascent."""

from __future__ import annotations

from typing import Any, ClassVar

from coordwise.bench.peers.peer import Peer, only
from coordwise.bench.problems import Problem
from coordwise.validation import FloatArray

__all__ = ["PEERS", "Lightning"]


class Lightning(Peer):
    """LinearSVC: |w|^2/2 + C sum_i max(1 - b_i t_i, 0)^p; SDCA: (1/n) sum_i (the same) + (alpha/2)|w|^2.

    C = 1/(l2 n) and alpha = l2 for p = 1; squares are not halved: C = 1/(2 l2 n) and alpha = 2 l2 for p = 2.
    """

    library, module = "sklearn-contrib-lightning", "lightning.classification"
    solvers: ClassVar[tuple[str, ...]] = ("LinearSVC", "SDCA")

    def refuses(self, problem: Problem) -> str:
        """See `Peer.refuses`."""
        refusal = only(problem.statement, ("hinge", "squared_hinge"), ("l2",))
        return refusal or ("fits no intercept" if problem.statement.intercept else "")

    def prepare(self, problem: Problem) -> Any:
        """See `Peer.prepare`."""
        return problem.data.matrix

    def fit(self, X: Any, y: FloatArray, problem: Problem, tol: float, threads: int) -> Any:
        """See `Peer.fit`."""
        from lightning import classification

        s = problem.statement
        factor = 2.0 if s.loss == "squared_hinge" else 1.0
        common: dict[str, Any] = {"loss": s.loss, "tol": tol, "max_iter": 100_000, "random_state": 0}
        if self.solver == "LinearSVC":
            return classification.LinearSVC(C=1 / (factor * s.l2 * problem.n), **common).fit(X, y)
        return classification.SDCAClassifier(alpha=factor * s.l2, **common).fit(X, y)


PEERS = tuple(Lightning(solver) for solver in Lightning.solvers)
