"""skglm: coordinate descent with working sets and Anderson extrapolation, compiled at the first call."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from coordwise.bench.peers.peer import Peer, Solution, only
from coordwise.bench.problems import Problem
from coordwise.validation import FloatArray

__all__ = ["PEERS", "Skglm"]


class Skglm(Peer):
    """(1/n) sum_i loss + alpha (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|^2): alpha = l1 + l2.

    LinearSVC: |w|^2/2 + C sum_i max(1 - b_i t_i, 0): C = 1/(l2 n).
    """

    library = module = "skglm"
    compiles: ClassVar[bool] = True
    solvers: ClassVar[tuple[str, ...]] = ("working sets", "LBFGS")

    def refuses(self, problem: Problem) -> str:
        """See `Peer.refuses`."""
        s = problem.statement
        if self.solver == "LBFGS":
            if s.loss == "squared" and problem.data.sparse:
                return "is not for least squares on sparse data"
            return only(s, ("squared", "logistic"), ("l2",)) or ("fits no intercept" if s.intercept else "")
        sparse = ("l1", "elastic_net")
        refusal = only(s, ("squared", "logistic", "hinge"), ("l2",) if s.loss == "hinge" else sparse)
        return refusal or ("fits no intercept" if s.intercept and s.loss == "hinge" else "")

    def prepare(self, problem: Problem) -> Any:
        """See `Peer.prepare`."""
        if self.solver == "LBFGS":  # solvers by themselves check nothing and want columns
            data = problem.data
            return data.layout("columns", lambda: sp.csc_matrix(data.A) if data.sparse else np.asfortranarray(data.A))
        return problem.data.matrix

    def fit(self, X: Any, y: FloatArray, problem: Problem, tol: float, threads: int) -> Any:
        """See `Peer.fit`."""
        import skglm

        s = problem.statement
        if self.solver == "LBFGS":
            from skglm import datafits, penalties, solvers

            datafit = datafits.Quadratic() if s.loss == "squared" else datafits.Logistic()
            w, _, _ = solvers.LBFGS(max_iter=100_000, tol=tol).solve(X, y, datafit, penalties.L2(s.l2))
            return w
        common: dict[str, Any] = {"tol": tol, "max_iter": 10_000, "max_epochs": 100_000}
        if s.loss == "hinge":
            return skglm.LinearSVC(1 / (s.l2 * problem.n), fit_intercept=False, **common).fit(X, y)
        kind = skglm.ElasticNet if s.loss == "squared" else skglm.SparseLogisticRegression
        return kind(alpha=s.alpha, l1_ratio=s.l1_ratio, fit_intercept=s.intercept, **common).fit(X, y)

    def solution(self, model: Any) -> Solution:
        """See `Peer.solution`."""
        return (model, 0.0) if self.solver == "LBFGS" else super().solution(model)


PEERS = tuple(Skglm(solver) for solver in Skglm.solvers)
