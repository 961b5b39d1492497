"""scikit-learn-intelex: scikit-learn's estimators by oneDAL, on dense data."""

from __future__ import annotations

from typing import Any, ClassVar

from coordwise.bench.peers.peer import FEW, MANY, TOLERANCES, Peer, only
from coordwise.bench.problems import Problem
from coordwise.validation import FloatArray

__all__ = ["PEERS", "Sklearnex"]


class Sklearnex(Peer):
    """Ridge: sum_i r_i^2 + alpha |w|^2, alpha = l2 n. LogisticRegression: C = 1/(l2 n), by lbfgs."""

    library, module = "scikit-learn-intelex", "sklearnex"
    solvers: ClassVar[tuple[str, ...]] = ("Ridge", "LogisticRegression")

    @property
    def ladder(self) -> tuple[float, ...]:
        """See `Peer.ladder`."""
        return (TOLERANCES[3],) if self.solver == "Ridge" else TOLERANCES

    def threads(self, allowed: int) -> str:
        """See `Peer.threads`."""
        return f"up to {allowed}"

    def refuses(self, problem: Problem) -> str:
        """See `Peer.refuses`."""
        loss = "squared" if self.solver == "Ridge" else "logistic"
        if refusal := only(problem.statement, (loss,), ("l2",)):
            return refusal
        if problem.data.sparse:
            return "leaves sparse data to scikit-learn"
        if self.solver == "Ridge" and problem.d > FEW:
            return f"would need a dense matrix of {problem.d:,} x {problem.d:,} (Gram matrix)"
        return ""

    def fit(self, X: Any, y: FloatArray, problem: Problem, tol: float, threads: int) -> Any:
        """See `Peer.fit`."""
        from sklearnex import linear_model

        s = problem.statement
        if self.solver == "Ridge":
            return linear_model.Ridge(s.l2 * problem.n, fit_intercept=s.intercept).fit(X, y)
        return linear_model.LogisticRegression(
            C=1 / (s.l2 * problem.n), fit_intercept=s.intercept, tol=tol, max_iter=MANY
        ).fit(X, y)


PEERS = tuple(Sklearnex(solver) for solver in Sklearnex.solvers)
