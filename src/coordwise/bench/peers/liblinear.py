"""LIBLINEAR's own Python interface."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from coordwise.bench.peers.peer import Peer, Solution, only
from coordwise.bench.problems import Problem, Statement
from coordwise.validation import FloatArray

__all__ = ["PEERS", "Liblinear"]

# Solver type: loss, penalty, and whether -R leaves the bias unpenalised.
_TYPES = {
    "-s 0": ("logistic", "l2", True),
    "-s 7": ("logistic", "l2", False),
    "-s 6": ("logistic", "l1", True),
    "-s 1": ("squared_hinge", "l2", False),
    "-s 2": ("squared_hinge", "l2", True),
    "-s 5": ("squared_hinge", "l1", True),
    "-s 3": ("hinge", "l2", False),
    "-s 11": ("squared", "l2", True),
    "-s 12": ("squared", "l2", False),
}


class Liblinear(Peer):
    """R(w) + C sum_i loss_i, R = |w|^2/2 or |w|_1, with squares not halved: C = 1/(2 lam n) for them, or 1/(lam n).

    Least squares are support vector regression with an insensitivity of 0. The call is ``train(y, x, options)``, which
    copies the data into the library's own layout.
    """

    library, module = "liblinear-official", "liblinear.liblinearutil"
    compiles: ClassVar[bool] = True  # its conversion of sparse data, if numba is there
    solvers: ClassVar[tuple[str, ...]] = tuple(_TYPES)

    def refuses(self, problem: Problem) -> str:
        """See `Peer.refuses`."""
        loss, penalty, free = _TYPES[self.solver]
        if refusal := only(problem.statement, (loss,), (penalty,)):
            return refusal
        return "penalises the intercept" if problem.statement.intercept and not free else ""

    def prepare(self, problem: Problem) -> Any:
        """See `Peer.prepare`."""
        return problem.data.matrix

    def fit(self, X: Any, y: FloatArray, problem: Problem, tol: float, threads: int) -> Any:
        """See `Peer.fit`."""
        from liblinear.liblinearutil import train

        return train(y, X, self.options(problem.statement, problem.n, tol)), problem

    def options(self, statement: Statement, n: int, tol: float) -> str:
        """The command line of a problem."""
        factor = 2.0 if statement.loss in ("squared", "squared_hinge") else 1.0
        words = f"{self.solver} -c {1 / (factor * statement.alpha * n)!r} -e {tol!r} -q"
        if statement.loss == "squared":
            words += " -p 0"
        return words + (" -B 1 -R" if statement.intercept else "")

    def solution(self, model: Any) -> Solution:
        """See `Peer.solution`: w is that of the label seen first."""
        found, problem = model
        count = problem.d + int(problem.statement.intercept)
        w = np.zeros(count)
        held = found.nr_feature + int(problem.statement.intercept)  # the last columns may be empty
        values = np.ctypeslib.as_array(found.w, (held,)).astype(np.float64)
        w[: found.nr_feature] = values[: found.nr_feature]
        if problem.statement.classification and found.label[0] < 0:
            w, values = -w, -values
        return w[: problem.d], float(values[-1]) if problem.statement.intercept else 0.0


PEERS = tuple(Liblinear(solver) for solver in Liblinear.solvers)
