"""The problems that solvers are compared on, each stated once: loss, penalty, intercept, data."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from coordwise.erm import ERM
from coordwise.fitting.model import LinearModel
from coordwise.losses import get_loss
from coordwise.penalties import ElasticNet
from coordwise.validation import FloatArray, check_choice, check_number

__all__ = ["LOSSES", "PENALTIES", "Data", "Problem", "Statement", "largest_l1", "signs"]

LOSSES = {
    "squared": "½(t − b)²",
    "l2l1": "½(t − b)² + |t − b|",
    "logistic": "log(1 + exp(−b t))",
    "squared_hinge": "½ max(1 − b t, 0)²",
    "hinge": "max(1 − b t, 0)",
}
PENALTIES = ("l2", "l1", "elastic_net")


@dataclass(frozen=True)
class Statement:
    """minimise over w, c   P(w, c) = (1/n) sum_i phi(<a_i, w> + c; b_i) + l1 |w|_1 + (l2/2) |w|^2.

    c is 0 without `intercept`, and free with it: never penalised. Whatever a library calls its parameters, they are
    computed from these.
    """

    loss: str
    l1: float
    l2: float
    intercept: bool = False

    def __post_init__(self) -> None:
        check_choice("loss", self.loss, tuple(LOSSES))
        for name in ("l1", "l2"):
            object.__setattr__(self, name, check_number(name, getattr(self, name), low=0))
        if self.l1 == self.l2 == 0:
            raise ValueError("l1 and l2 are both 0; a problem needs a penalty.")

    @classmethod
    def of(
        cls, loss: str, penalty: str, lam: float, *, l1_ratio: float | None = None, intercept: bool = False
    ) -> Statement:
        """From a penalty by name: lam is the weight of l1 or l2, or of l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|^2."""
        check_choice("penalty", penalty, PENALTIES)
        weight = check_number("lam", lam, low=0, strictly=True)
        if penalty != "elastic_net" and l1_ratio is not None:
            raise ValueError(f"l1_ratio={l1_ratio} has no meaning for penalty={penalty!r}; it is for the elastic net.")
        ratio = {"l2": 0.0, "l1": 1.0}.get(penalty, 0.5 if l1_ratio is None else l1_ratio)
        ratio = check_number("l1_ratio", ratio, low=0)
        if ratio > 1:
            raise ValueError(f"l1_ratio={ratio:g} is above 1; it is the share of l1, between 0 and 1.")
        return cls(loss, weight * ratio, weight * (1 - ratio), intercept)

    @property
    def penalty(self) -> str:
        """l2, l1 or elastic_net."""
        return "elastic_net" if self.l1 > 0 and self.l2 > 0 else "l1" if self.l1 > 0 else "l2"

    @property
    def classification(self) -> bool:
        """Whether targets must be -1 and +1."""
        return bool(get_loss(self.loss).classification)

    @property
    def alpha(self) -> float:
        """l1 + l2, the weight of an elastic net with a ratio."""
        return self.l1 + self.l2

    @property
    def l1_ratio(self) -> float:
        """l1 / (l1 + l2)."""
        return self.l1 / self.alpha

    @property
    def formula(self) -> str:
        """P as text, without its numbers."""
        score = "⟨aᵢ, w⟩ + c" if self.intercept else "⟨aᵢ, w⟩"
        penalty = {"l2": "(λ/2)|w|²", "l1": "λ|w|₁", "elastic_net": "λ₁|w|₁ + (λ₂/2)|w|²"}[self.penalty]
        return f"(1/n) Σᵢ φ({score}; bᵢ) + {penalty},  φ(t; b) = {LOSSES[self.loss]}"

    def spec(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return asdict(self)


class Data:
    """A matrix with targets, and the other layouts of the same matrix that libraries want, each made once."""

    def __init__(self, A: Any, b: Any) -> None:
        self.A: Any = sp.csr_array(A) if sp.issparse(A) else np.ascontiguousarray(A)
        self.b = np.ascontiguousarray(b, np.float64)
        self._layouts: dict[str, Any] = {}

    @property
    def shape(self) -> tuple[int, int]:
        """(n, d)."""
        n, d = self.A.shape
        return int(n), int(d)

    @property
    def nnz(self) -> int:
        """Stored entries."""
        return int(self.A.nnz) if sp.issparse(self.A) else int(self.A.size)

    @property
    def sparse(self) -> bool:
        """Whether A is sparse."""
        return bool(sp.issparse(self.A))

    @functools.cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the content as it is stored."""
        digest = hashlib.sha256(repr((self.shape, self.nnz, self.sparse)).encode())
        parts = (self.A.indptr, self.A.indices, self.A.data) if self.sparse else (self.A,)
        for array in (*parts, self.b):
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def layout(self, name: str, make: Callable[[], Any]) -> Any:
        """What `make` returns, made once."""
        if name not in self._layouts:
            self._layouts[name] = make()
        return self._layouts[name]

    @property
    def matrix(self) -> Any:
        """A as libraries take it that know ``scipy.sparse.csr_matrix`` only; dense as it is. No copy."""
        if not self.sparse:
            return self.A
        A = self.A
        return self.layout("csr_matrix", lambda: sp.csr_matrix((A.data, A.indices, A.indptr), shape=A.shape))

    def few(self, count: int) -> Data:
        """Some rows from all over, of both signs where there are two: for a first call that is not measured."""
        n = self.shape[0]
        if n <= count:
            return self
        by_target = np.argsort(self.b, kind="stable")
        which = np.sort(by_target[np.linspace(0, n - 1, count).astype(np.int64)])
        return Data(self.A[which], self.b[which])


class Problem:
    """A statement about data: P(w, c), P(0, 0), and the model that certifies solutions."""

    def __init__(self, statement: Statement, data: Data) -> None:
        self.statement, self.data = statement, data
        penalty = ElasticNet(statement.l1, statement.l2)
        self.model = LinearModel(ERM(data.A, data.b, loss=statement.loss, penalty=penalty), statement.intercept)
        self.at_zero = float(self.model.scale[0])

    @property
    def n(self) -> int:
        """Samples."""
        return self.data.shape[0]

    @property
    def d(self) -> int:
        """Features."""
        return self.data.shape[1]

    @property
    def digest(self) -> str:
        """A hash of the problem: the same optimum for the same digest."""
        return hashlib.sha256(f"{self.statement!r} {self.data.fingerprint}".encode()).hexdigest()

    def pieces(self) -> dict[str, Any]:
        """The problem with its parts, as keywords for code that knows nothing of this class."""
        s = self.statement
        parts = {"loss": s.loss, "l1": s.l1, "l2": s.l2, "intercept": s.intercept}
        return {"problem": self, "X": self.data.A, "y": self.data.b} | parts

    def value(self, w: Any, c: float = 0.0) -> float:
        """P(w, c); inf where the solution is not finite."""
        table = np.asarray(w, np.float64).reshape(self.d, 1)
        if not (np.all(np.isfinite(table)) and np.isfinite(c)):
            return float("inf")
        if c and not self.statement.intercept:
            raise ValueError(f"c={c:g} for a problem without intercept.")
        return float(self.model.value(table, self.model.scores(table, np.array([float(c)])))[0])


def largest_l1(data: Data, loss: str = "squared") -> float:
    """The smallest l1 for which w = 0 is the solution, without intercept: max_j |sum_i phi'(0; b_i) a_ij| / n."""
    slope = get_loss(loss).derivative(np.zeros(data.shape[0]), data.b, 1.0)
    return float(np.max(np.abs(data.A.T @ slope)) / data.shape[0])


def signs(labels: FloatArray) -> FloatArray:
    """Two kinds of labels as -1 (the smaller) and +1."""
    values = np.unique(labels)
    if len(values) != 2:
        raise ValueError(f"the labels have {len(values)} values; a classification loss compares two classes.")
    return np.where(labels == values[1], 1.0, -1.0)
