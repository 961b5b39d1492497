"""How much work a reproduction does."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from coordwise.experiments import paper


@dataclass(frozen=True)
class Settings:
    """Seeds, accuracy and limits of a reproduction; `full` and `quick` make the two usual ones.

    Attributes
    ----------
    seeds : tuple of int
        Every method runs once from each (see `seeds_for`); figures show the median and the range.
    accuracy : float
        Charts of strongly convex problems go on for as many passes as NU_ACDM needs by theory to reduce the distance
        to the minimum by this factor.
    most_passes, most_entries : float
        Limits on the length of one run: passes, and entries of the matrix touched.
    passes : float
        Length of the runs on problems that are not strongly convex.
    sigmas : int
        Values of sigma_1 that APCG* is tuned over.
    reference : float
        Relative duality gap to which minima are certified.
    records : int
        Points of a curve.
    """

    seeds: tuple[int, ...]
    accuracy: float
    most_passes: float
    most_entries: float
    passes: float
    sigmas: int
    reference: float
    records: int
    quick: bool

    @classmethod
    def full(cls, seed: int = 0, count: int = 5) -> Settings:
        """The paper's experiments in full."""
        return cls(
            tuple(range(seed, seed + count)), 1e-10, 200, 1.5e9, 100, paper.TUNED_VALUES, 1e-13, 100, quick=False
        )

    @classmethod
    def quick_look(cls, seed: int = 0, count: int = 2) -> Settings:
        """The same charts with fewer seeds and shorter runs."""
        return cls(tuple(range(seed, seed + count)), 1e-6, 60, 1e8, 40, 5, 1e-8, 30, quick=True)

    def seeds_for(self, nnz: int) -> tuple[int, ...]:
        """The seeds of a chart: a quick look at a large dataset (more than two million entries) takes one."""
        return self.seeds[:1] if self.quick and nnz > 2_000_000 else self.seeds

    def limit(self, passes: float, nnz: int) -> float:
        """Passes cut to the limits."""
        return min(passes, self.most_passes, max(self.most_entries / max(nnz, 1), 5.0))

    def spec(self) -> dict[str, Any]:
        """What the numbers depend on."""
        return asdict(self)
