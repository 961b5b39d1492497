"""adelie: group elastic nets by coordinate descent in C++."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from coordwise.bench.peers.peer import Peer, Solution, only
from coordwise.bench.problems import Problem
from coordwise.validation import FloatArray

__all__ = ["PEERS", "Adelie"]


class Adelie(Peer):
    """mean of the losses + lmda (alpha |w|_1 + (1 - alpha)/2 |w|^2): lmda = l1 + l2, alpha = l1_ratio."""

    library = module = "adelie"
    solvers: ClassVar[tuple[str, ...]] = ("adelie",)

    def refuses(self, problem: Problem) -> str:
        """See `Peer.refuses`."""
        return only(problem.statement, ("squared", "logistic"), ("l2", "l1", "elastic_net"))

    def prepare(self, problem: Problem) -> Any:
        """See `Peer.prepare`."""
        data = problem.data
        return data.layout("columns", lambda: sp.csc_matrix(data.A) if data.sparse else np.asfortranarray(data.A))

    def fit(self, X: Any, y: FloatArray, problem: Problem, tol: float, threads: int) -> Any:
        """See `Peer.fit`."""
        import adelie

        s = problem.statement
        family = adelie.glm.gaussian(y=y) if s.loss == "squared" else adelie.glm.binomial(y=(y > 0).astype(float))
        matrix = adelie.matrix.sparse(X, method="naive", n_threads=threads) if sp.issparse(X) else X
        return adelie.grpnet(
            X=matrix,
            glm=family,
            lmda_path=np.array([s.alpha]),
            alpha=s.l1_ratio,
            intercept=s.intercept,
            early_exit=False,
            progress_bar=False,
            tol=tol,
            irls_tol=tol,
            max_iters=1_000_000,
            irls_max_iters=10_000,
            n_threads=threads,
        )

    def threads(self, allowed: int) -> str:
        """See `Peer.threads`."""
        return f"up to {allowed}"

    def solution(self, model: Any) -> Solution:
        """See `Peer.solution`."""
        return np.ravel(model.betas[-1].toarray()), float(np.ravel(model.intercepts)[-1])


PEERS = tuple(Adelie(solver) for solver in Adelie.solvers)
