"""celer: working sets with dual extrapolation."""

from __future__ import annotations

from typing import Any, ClassVar

from coordwise.bench.peers.peer import Peer, only
from coordwise.bench.problems import Problem
from coordwise.validation import FloatArray

__all__ = ["PEERS", "Celer"]


class Celer(Peer):
    """(1/(2n)) sum_i r_i^2 + alpha (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|^2); sum_i log(...) + |w|_1 / C."""

    library = module = "celer"
    solvers: ClassVar[tuple[str, ...]] = ("celer",)

    def refuses(self, problem: Problem) -> str:
        """See `Peer.refuses`."""
        s = problem.statement
        if refusal := only(s, ("squared", "logistic"), ("l1",) if s.loss == "logistic" else ("l1", "elastic_net")):
            return refusal
        return "fits no intercept with the logistic loss" if s.intercept and s.loss == "logistic" else ""

    def prepare(self, problem: Problem) -> Any:
        """See `Peer.prepare`."""
        return problem.data.matrix

    def fit(self, X: Any, y: FloatArray, problem: Problem, tol: float, threads: int) -> Any:
        """See `Peer.fit`."""
        import celer

        s = problem.statement
        common: dict[str, Any] = {"tol": tol, "max_iter": 10_000, "max_epochs": 100_000}
        if s.loss == "logistic":
            return celer.LogisticRegression(C=1 / (s.l1 * problem.n), **common).fit(X, y)
        if s.penalty == "l1":
            return celer.Lasso(s.l1, fit_intercept=s.intercept, **common).fit(X, y)
        return celer.ElasticNet(s.alpha, l1_ratio=s.l1_ratio, fit_intercept=s.intercept, **common).fit(X, y)


PEERS = tuple(Celer(solver) for solver in Celer.solvers)
