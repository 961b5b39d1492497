"""Cyanure: accelerated incremental and quasi-Newton methods with duality gaps."""

from __future__ import annotations

from typing import Any, ClassVar

from coordwise.bench.peers.peer import MANY, Peer, only
from coordwise.bench.problems import Problem
from coordwise.validation import FloatArray

__all__ = ["PEERS", "Cyanure"]


class Cyanure(Peer):
    """(1/n) sum_i loss + lambda_1 |w|_1 or (lambda_1/2)|w|^2, or lambda_1 |w|_1 + (lambda_2/2)|w|^2."""

    library = module = "cyanure"
    solvers: ClassVar[tuple[str, ...]] = ("auto", "catalyst-miso", "qning-miso", "acc-svrg")

    def threads(self, allowed: int) -> str:
        """See `Peer.threads`."""
        return f"up to {allowed}"

    def refuses(self, problem: Problem) -> str:
        """See `Peer.refuses`."""
        every = ("l2", "l1", "elastic_net")
        if refusal := only(problem.statement, ("squared", "logistic", "squared_hinge"), every):
            return refusal
        if problem.statement.penalty != "l2" and self.solver.endswith("miso"):
            return "needs a strongly convex penalty, and stops short of the solution with the elastic net"
        if problem.statement.intercept and self.solver == "acc-svrg":
            return "stops short of the solution with an intercept"
        return ""

    def prepare(self, problem: Problem) -> Any:
        """See `Peer.prepare`."""
        return problem.data.matrix

    def fit(self, X: Any, y: FloatArray, problem: Problem, tol: float, threads: int) -> Any:
        """See `Peer.fit`."""
        from cyanure import estimators

        s = problem.statement
        options: dict[str, Any] = {
            "penalty": {"elastic_net": "elasticnet"}.get(s.penalty, s.penalty),
            "lambda_1": s.l2 if s.penalty == "l2" else s.l1,
            "lambda_2": s.l2 if s.penalty == "elastic_net" else 0.0,
            "fit_intercept": s.intercept,
            "solver": self.solver,
            "tol": tol,
            "max_iter": MANY,
            "n_threads": threads,
            "random_state": 0,
            "verbose": False,
        }
        if s.loss == "squared":
            return estimators.Regression(**options).fit(X, y)
        return estimators.Classifier(loss={"squared_hinge": "sqhinge"}.get(s.loss, s.loss), **options).fit(X, y)


PEERS = tuple(Cyanure(solver) for solver in Cyanure.solvers)
