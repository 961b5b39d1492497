"""glum: generalised linear models by iteratively reweighted least squares with coordinate descent inside."""

from __future__ import annotations

from typing import Any, ClassVar

import scipy.sparse as sp

from coordwise.bench.peers.peer import FEW, Peer, only
from coordwise.bench.problems import Problem
from coordwise.validation import FloatArray

__all__ = ["PEERS", "Glum"]


class Glum(Peer):
    """(1/n) sum_i (half the unit deviance) + alpha (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|^2): alpha = l1 + l2.

    Half the deviance is (y - t)^2/2 for the normal family and log(1 + exp(t)) - y t, y in {0, 1}, for the binomial one.
    """

    library = module = "glum"
    solvers: ClassVar[tuple[str, ...]] = ("irls-cd", "irls-ls", "lbfgs")

    def refuses(self, problem: Problem) -> str:
        """See `Peer.refuses`."""
        s = problem.statement
        l2_only = self.solver != "irls-cd"
        if refusal := only(s, ("squared", "logistic"), ("l2",) if l2_only else ("l2", "l1", "elastic_net")):
            return refusal
        if self.solver != "lbfgs" and problem.d > FEW:
            return f"would need a dense matrix of {problem.d:,} x {problem.d:,} (Hessian)"
        return ""

    def threads(self, allowed: int) -> str:
        """See `Peer.threads`."""
        return f"up to {allowed}"

    def prepare(self, problem: Problem) -> Any:
        """See `Peer.prepare`."""
        data = problem.data
        return data.layout("csc_matrix", lambda: sp.csc_matrix(data.A)) if data.sparse else data.A

    def fit(self, X: Any, y: FloatArray, problem: Problem, tol: float, threads: int) -> Any:
        """See `Peer.fit`."""
        import glum

        s = problem.statement
        logistic = s.loss == "logistic"
        return glum.GeneralizedLinearRegressor(
            family="binomial" if logistic else "normal",
            alpha=s.alpha,
            l1_ratio=s.l1_ratio,
            fit_intercept=s.intercept,
            solver=self.solver,
            gradient_tol=tol,
            max_iter=10_000,
        ).fit(X, (y > 0).astype(float) if logistic else y)


PEERS = tuple(Glum(solver) for solver in Glum.solvers)
