"""Snap ML: coordinate descent in single precision, in threads."""

from __future__ import annotations

from typing import Any, ClassVar

from coordwise.bench.peers.peer import Peer, only
from coordwise.bench.problems import Problem
from coordwise.validation import FloatArray

__all__ = ["PEERS", "SnapML"]


class SnapML(Peer):
    """sum_i loss + regularizer (|w|^2/2 or |w|_1): regularizer = lam n.

    Squares of hinges are not halved: regularizer = 2 lam n for them.
    """

    library = module = "snapml"
    solvers: ClassVar[tuple[str, ...]] = ("dual", "primal")
    tolerances: ClassVar[tuple[float, ...]] = tuple(10.0**-k for k in range(1, 10))

    def threads(self, allowed: int) -> str:
        """See `Peer.threads`."""
        return str(allowed)

    def refuses(self, problem: Problem) -> str:
        """See `Peer.refuses`."""
        s = problem.statement
        if self.solver == "dual":
            refusal = only(s, ("squared", "logistic", "squared_hinge", "hinge"), ("l2",))
        else:
            refusal = only(s, ("squared", "logistic"), ("l2", "l1"))
        return refusal or ("penalises the intercept" if s.intercept else "")

    def prepare(self, problem: Problem) -> Any:
        """See `Peer.prepare`."""
        return problem.data.matrix

    def fit(self, X: Any, y: FloatArray, problem: Problem, tol: float, threads: int) -> Any:
        """See `Peer.fit`."""
        import snapml

        s = problem.statement
        factor = 2.0 if s.loss == "squared_hinge" else 1.0
        common: dict[str, Any] = {
            "regularizer": factor * s.alpha * problem.n,
            "tol": tol,
            "max_iter": 100_000,
            "n_jobs": threads,
            "random_state": 0,
        }
        if s.loss in ("hinge", "squared_hinge"):
            return snapml.SupportVectorMachine(loss=s.loss, **common).fit(X, y)
        kind = snapml.LinearRegression if s.loss == "squared" else snapml.LogisticRegression
        return kind(dual=self.solver == "dual", penalty=s.penalty, **common).fit(X, y)


PEERS = tuple(SnapML(solver) for solver in SnapML.solvers)
