"""What a solver in a comparison is: a library's public call, and how a problem is said in its words."""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from coordwise.bench.problems import Problem, Statement
from coordwise.validation import FloatArray

__all__ = ["MANY", "TOLERANCES", "Peer", "Solution", "reason_missing"]

Solution = tuple[FloatArray, float]  # w, c

TOLERANCES = tuple(10.0**-k for k in range(1, 13))
MANY = 1_000_000  # iterations: never what ends a run
FEW = 5000  # features (or samples) for which a dense square matrix is reasonable


class Peer(ABC):
    """One solver of one library.

    `fit` is what is measured: the call a user would make, with the library's own input checks. `prepare` is not: it
    finds the layout that the library takes without a complaint. Neither may change the problem.

    Parameters
    ----------
    solver : str
        Which of the library's solvers.
    """

    library: ClassVar[str]  # as pip knows it
    module: ClassVar[str]  # as Python imports it
    ours: ClassVar[bool] = False
    solvers: ClassVar[tuple[str, ...]]
    compiles: ClassVar[bool] = False  # at the first call
    tolerances: ClassVar[tuple[float, ...]] = TOLERANCES

    def __init__(self, solver: str) -> None:
        if solver not in self.solvers:
            raise ValueError(f"{self.library} has no solver {solver!r} here; it has {', '.join(self.solvers)}.")
        self.solver = solver

    @property
    def name(self) -> str:
        """Library and solver."""
        return self.library if self.solver == self.library else f"{self.library} {self.solver}"

    @property
    def ladder(self) -> tuple[float, ...]:
        """Tolerances to try, from loose to tight; one alone for a solver that has none."""
        return self.tolerances

    def threads(self, allowed: int) -> str:
        """What it does with the threads it is allowed, in words."""
        return "1"

    def missing(self) -> str:
        """Why the library cannot be used here, or nothing."""
        return reason_missing(self.module, self.library)

    def version(self) -> str:
        """Of the library that is installed."""
        try:
            return importlib.metadata.version(self.library)
        except importlib.metadata.PackageNotFoundError:
            return "unknown"

    @abstractmethod
    def refuses(self, problem: Problem) -> str:
        """Why this problem cannot be said in the library's words, or nothing."""

    def prepare(self, problem: Problem) -> Any:
        """The data in a layout the library takes."""
        return problem.data.A

    @abstractmethod
    def fit(self, X: Any, y: FloatArray, problem: Problem, tol: float, threads: int) -> Any:
        """The measured call; returns what `solution` reads."""

    def solution(self, model: Any) -> Solution:
        """(w, c) of what `fit` returned."""
        intercept = np.ravel(getattr(model, "intercept_", 0.0))
        return np.ravel(np.asarray(model.coef_, np.float64)), float(intercept[0]) if len(intercept) else 0.0

    def gap(self, model: Any) -> float | None:
        """A bound on P(w, c) - min P that comes with the solution, for solvers that certify."""
        return None


@functools.cache
def reason_missing(module: str, library: str) -> str:
    """Why a module cannot be imported, in a sentence; nothing if it can."""
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and module.split(".")[0] == error.name.split(".")[0]:
            return f"not installed (pip install {library})"
        return f"cannot be imported: {error}"
    except Exception as error:  # a broken build may raise anything
        return f"cannot be imported: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return ""


def only(statement: Statement, losses: tuple[str, ...], penalties: tuple[str, ...]) -> str:
    """A refusal unless loss and penalty are among the given, or nothing."""
    if statement.loss not in losses:
        return f"has no loss {statement.loss}"
    if statement.penalty not in penalties:
        return f"has no penalty {statement.penalty} for this loss"
    return ""
