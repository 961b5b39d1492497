"""coordwise itself, by its estimators."""

from __future__ import annotations

from typing import Any, ClassVar

from coordwise import __version__
from coordwise.bench.peers.peer import MANY, Peer, only
from coordwise.bench.problems import Problem
from coordwise.validation import FloatArray

__all__ = ["PEERS", "Coordwise"]


class Coordwise(Peer):
    """coordwise.estimators; tol is a duality gap relative to P(0)."""

    library, module, ours = "coordwise", "coordwise.estimators", True
    solvers: ClassVar[tuple[str, ...]] = ("coordwise",)

    def threads(self, allowed: int) -> str:
        """See `Peer.threads`."""
        return f"up to {allowed} (linear algebra)"

    def version(self) -> str:
        """See `Peer.version`."""
        return __version__

    def refuses(self, problem: Problem) -> str:
        """See `Peer.refuses`."""
        statement = problem.statement
        every = ("l2", "l1", "elastic_net")
        return only(statement, (statement.loss,), every if statement.loss in ("squared", "logistic") else ("l2",))

    def fit(self, X: Any, y: FloatArray, problem: Problem, tol: float, threads: int) -> Any:
        """See `Peer.fit`."""
        return self.estimator(problem, tol, threads).fit(X, y)

    def estimator(self, problem: Problem, tol: float, threads: int, time_limit: float | None = None) -> Any:
        """The estimator that states the problem."""
        from coordwise import estimators

        s, n = problem.statement, problem.n
        common: dict[str, Any] = {
            "fit_intercept": s.intercept,
            "tol": tol,
            "max_iter": MANY,
            "n_jobs": threads,
            "time_limit": time_limit,
        }
        if s.loss == "squared":
            if s.penalty == "l2":
                return estimators.Ridge(s.l2 * n, **common)
            if s.penalty == "l1":
                return estimators.Lasso(s.l1, **common)
            return estimators.ElasticNet(s.alpha, l1_ratio=s.l1_ratio, **common)
        if s.loss == "l2l1":
            return estimators.L2L1Regressor(s.l2, **common)
        if s.loss == "logistic":
            return estimators.LogisticRegression(C=1 / (s.alpha * n), l1_ratio=s.l1_ratio, **common)
        factor = 2.0 if s.loss == "squared_hinge" else 1.0
        return estimators.LinearSVC(loss=s.loss, C=1 / (factor * s.l2 * n), intercept_scaling=float("inf"), **common)

    def gap(self, model: Any) -> float:
        """See `Peer.gap`."""
        return float(model.dual_gap_)


PEERS = tuple(Coordwise(solver) for solver in Coordwise.solvers)
