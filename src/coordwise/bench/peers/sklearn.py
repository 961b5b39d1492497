"""scikit-learn: ridge, logistic regression, support vector machines, Lasso and elastic net."""

from __future__ import annotations

from typing import Any, ClassVar

from coordwise.bench.peers.peer import FEW, MANY, TOLERANCES, Peer, only
from coordwise.bench.problems import Problem
from coordwise.validation import FloatArray

__all__ = ["PEERS"]


class _ScikitLearn(Peer):
    library, module = "scikit-learn", "sklearn"

    def _dense_square(self, problem: Problem, size: int, what: str) -> str:
        return f"would need a dense matrix of {size:,} x {size:,} {what}" if size > FEW else ""


class Ridge(_ScikitLearn):
    """sum_i (y_i - <x_i, w> - c)^2 + alpha |w|^2: alpha = l2 n."""

    solvers: ClassVar[tuple[str, ...]] = ("sparse_cg", "lsqr", "cholesky", "sag", "saga")

    @property
    def name(self) -> str:
        """Library and solver."""
        return f"{self.library} Ridge {self.solver}"

    @property
    def ladder(self) -> tuple[float, ...]:
        """See `Peer.ladder`."""
        return (TOLERANCES[3],) if self.solver == "cholesky" else TOLERANCES

    def threads(self, allowed: int) -> str:
        """See `Peer.threads`."""
        return f"up to {allowed} (linear algebra)" if self.solver in ("cholesky", "lsqr") else "1"

    def refuses(self, problem: Problem) -> str:
        """See `Peer.refuses`."""
        if refusal := only(problem.statement, ("squared",), ("l2",)):
            return refusal
        if problem.statement.intercept and problem.data.sparse and self.solver in ("cholesky", "saga"):
            return "fits no intercept on sparse data"
        if self.solver == "cholesky":
            return self._dense_square(problem, min(problem.n, problem.d), "(Gram matrix)")
        return ""

    def fit(self, X: Any, y: FloatArray, problem: Problem, tol: float, threads: int) -> Any:
        """See `Peer.fit`."""
        from sklearn import linear_model

        s = problem.statement
        seed = 0 if self.solver in ("sag", "saga") else None
        return linear_model.Ridge(
            s.l2 * problem.n, fit_intercept=s.intercept, solver=self.solver, tol=tol, max_iter=MANY, random_state=seed
        ).fit(X, y)


class LogisticRegression(_ScikitLearn):
    """C sum_i log(1 + exp(-b_i t_i)) + l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|^2: C = 1/((l1 + l2) n)."""

    solvers: ClassVar[tuple[str, ...]] = (
        "lbfgs",
        "newton-cg",
        "newton-cholesky",
        "liblinear",
        "liblinear-dual",
        "sag",
        "saga",
    )

    @property
    def name(self) -> str:
        """Library and solver."""
        return f"{self.library} LogisticRegression {self.solver}"

    def threads(self, allowed: int) -> str:
        """See `Peer.threads`."""
        return "1" if self.solver in ("liblinear", "liblinear-dual", "sag", "saga") else f"up to {allowed}"

    def refuses(self, problem: Problem) -> str:
        """See `Peer.refuses`."""
        penalties: tuple[str, ...] = ("l2",)
        if self.solver == "saga":
            penalties = ("l2", "l1", "elastic_net")
        elif self.solver == "liblinear":
            penalties = ("l2", "l1")
        if refusal := only(problem.statement, ("logistic",), penalties):
            return refusal
        if problem.statement.intercept and self.solver.startswith("liblinear"):
            return "penalises the intercept"
        if self.solver == "newton-cholesky":
            return self._dense_square(problem, problem.d, "(Hessian)")
        return ""

    def fit(self, X: Any, y: FloatArray, problem: Problem, tol: float, threads: int) -> Any:
        """See `Peer.fit`."""
        import sklearn
        from sklearn import linear_model

        s = problem.statement
        options: dict[str, Any] = {}
        if s.penalty != "l2":
            options["l1_ratio"] = s.l1_ratio
            if tuple(int(part) for part in sklearn.__version__.split(".")[:2]) < (1, 8):
                options["penalty"] = {"l1": "l1", "elastic_net": "elasticnet"}[s.penalty]
                if s.penalty == "l1":
                    del options["l1_ratio"]
        return linear_model.LogisticRegression(
            C=1 / (s.alpha * problem.n),
            fit_intercept=s.intercept,
            solver=self.solver.partition("-dual")[0],
            dual=self.solver == "liblinear-dual",
            tol=tol,
            max_iter=MANY,
            random_state=0,
            **options,
        ).fit(X, y)


class LinearSVC(_ScikitLearn):
    """(1/2)|w|^2 + C sum_i max(1 - b_i t_i, 0)^p: C = 1/(l2 n) for p = 1, 1/(2 l2 n) for p = 2."""

    solvers: ClassVar[tuple[str, ...]] = ("dual", "primal")

    @property
    def name(self) -> str:
        """Library and solver."""
        return f"{self.library} LinearSVC {self.solver}"

    def refuses(self, problem: Problem) -> str:
        """See `Peer.refuses`."""
        losses = ("hinge", "squared_hinge") if self.solver == "dual" else ("squared_hinge",)
        penalties = ("l2", "l1") if self.solver == "primal" else ("l2",)
        if refusal := only(problem.statement, losses, penalties):
            return refusal
        return "penalises the intercept" if problem.statement.intercept else ""

    def fit(self, X: Any, y: FloatArray, problem: Problem, tol: float, threads: int) -> Any:
        """See `Peer.fit`."""
        from sklearn import svm

        s = problem.statement
        factor = 2.0 if s.loss == "squared_hinge" else 1.0
        return svm.LinearSVC(
            penalty=s.penalty,
            loss=s.loss,
            dual=self.solver == "dual",
            C=1 / (factor * s.alpha * problem.n),
            fit_intercept=False,
            tol=tol,
            max_iter=MANY,
            random_state=0,
        ).fit(X, y)


class CoordinateDescent(_ScikitLearn):
    """(1/(2n)) sum_i (y_i - t_i)^2 + alpha (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|^2): alpha = l1 + l2."""

    solvers: ClassVar[tuple[str, ...]] = ("cyclic", "random")

    @property
    def name(self) -> str:
        """Library and solver."""
        return f"{self.library} ElasticNet {self.solver}"

    def refuses(self, problem: Problem) -> str:
        """See `Peer.refuses`."""
        return only(problem.statement, ("squared",), ("l1", "elastic_net"))

    def fit(self, X: Any, y: FloatArray, problem: Problem, tol: float, threads: int) -> Any:
        """See `Peer.fit`."""
        from sklearn import linear_model

        s = problem.statement
        return linear_model.ElasticNet(
            s.alpha,
            l1_ratio=s.l1_ratio,
            fit_intercept=s.intercept,
            selection=self.solver,
            tol=tol,
            max_iter=MANY,
            random_state=0,
        ).fit(X, y)


PEERS = tuple(
    kind(solver) for kind in (Ridge, LogisticRegression, LinearSVC, CoordinateDescent) for solver in kind.solvers
)
