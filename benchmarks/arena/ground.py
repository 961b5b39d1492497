"""The benchopt classes of a folder as the ground of a race: datasets, the objective, and solvers found in the files."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchopt.benchmark import Benchmark
from benchopt.utils.parametrized_name_mixin import product_param

from coordwise.bench.peers import Peer, Solution
from coordwise.bench.problems import Problem
from coordwise.bench.rows import Row

HERE = Path(__file__).resolve().parent


@dataclass
class BenchoptGround:
    """Data and solvers of a benchopt benchmark whose objective is this one's.

    Parameters
    ----------
    folder : str
        With objective.py, datasets/ and solvers/. A file added there takes part.
    words : tuple of str
        Only solvers whose name has one of them, and ours.
    """

    folder: str = str(HERE)
    words: tuple[str, ...] = ()
    _held: dict[str, Any] = field(default_factory=dict, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {"folder": self.folder, "words": self.words, "_held": {}}

    @property
    def benchmark(self) -> Benchmark:
        """benchopt's view of the folder."""
        if "benchmark" not in self._held:
            self._held["benchmark"] = Benchmark(self.folder)
        return self._held["benchmark"]

    def datasets(self) -> dict[str, Any]:
        """Instances of the datasets by name and parameters."""
        found = {}
        for kind in self.benchmark.get_datasets():
            for parameters in product_param(kind.parameters):
                found[_title(kind, parameters)] = (kind, parameters)
        return found

    def problem(self, row: Row) -> Problem:
        """See `coordwise.bench.worker.Ground`."""
        if self._held.get("dataset") != row.dataset:
            known = self.datasets()
            if row.dataset not in known:
                raise ValueError(f"dataset {row.dataset!r} is not known; known: {', '.join(known)}.")
            kind, parameters = known[row.dataset]
            self._held["data"] = kind.get_instance(**parameters).get_data()
            self._held["dataset"] = row.dataset
        objective = self.benchmark.get_benchmark_objective().get_instance(
            loss=row.loss, penalty=row.penalty, scale=row.scale, weight=row.weight, intercept=row.intercept
        )
        objective.set_data(**self._held["data"])
        return objective.problem

    def peers(self) -> list[Peer]:
        """See `coordwise.bench.worker.Ground`."""
        found = [
            Adapted(kind, parameters)
            for kind in self.benchmark.get_solvers()
            for parameters in product_param(kind.parameters)
        ]
        words = [word.lower() for word in self.words]
        chosen = [p for p in found if p.ours or not words or any(word in p.name.lower() for word in words)]
        return sorted(chosen, key=lambda peer: not peer.ours)


class Adapted(Peer):
    """A benchopt solver as a `Peer`: `set_objective` prepares, `run` is measured, `get_result` tells."""

    module = ""

    def __init__(self, kind: Any, parameters: dict[str, Any]) -> None:
        self.kind, self.parameters = kind, parameters
        self.broken = "" if kind.is_installed(quiet=True) else f"cannot be imported: {getattr(kind, '_exc', '')}"
        self.one = None if self.broken else kind.get_instance(**parameters)
        self.peer: Peer | None = getattr(self.one, "peer", None)
        self.library = self.peer.library if self.peer else kind.name
        self.solver = _title(kind, parameters)
        self.ours = bool(self.peer and self.peer.ours)
        self.compiles = self.peer.compiles if self.peer else True

    @property
    def name(self) -> str:
        """The benchopt solver's name with its parameters."""
        return self.solver

    @property
    def ladder(self) -> tuple[float, ...]:
        """See `Peer.ladder`."""
        return self.peer.ladder if self.peer else self.tolerances

    def threads(self, allowed: int) -> str:
        """See `Peer.threads`."""
        return self.peer.threads(allowed) if self.peer else "1"

    def version(self) -> str:
        """See `Peer.version`."""
        return self.peer.version() if self.peer else super().version()

    def missing(self) -> str:
        """See `Peer.missing`."""
        return self.broken or (self.peer.missing() if self.peer else "")

    def refuses(self, problem: Problem) -> str:
        """See `Peer.refuses`."""
        skipped, reason = self.one.skip(**problem.pieces())
        return str(reason or "skipped") if skipped else ""

    def prepare(self, problem: Problem) -> Any:
        """See `Peer.prepare`."""
        solver = self.kind.get_instance(**self.parameters)
        solver.set_objective(**problem.pieces())
        return solver

    def fit(self, X: Any, y: Any, problem: Problem, tol: float, threads: int) -> Any:
        """See `Peer.fit`."""
        X.threads = threads
        X.run(tol)
        return X

    def solution(self, model: Any) -> Solution:
        """See `Peer.solution`."""
        result = model.get_result()
        return result["w"], float(result.get("c", 0.0))

    def gap(self, model: Any) -> float | None:
        """See `Peer.gap`."""
        return model.get_result().get("gap")


def _title(kind: Any, parameters: dict[str, Any]) -> str:
    words = [str(value) for value in parameters.values() if str(value) != "default"]
    return " ".join([kind.name, *words])
