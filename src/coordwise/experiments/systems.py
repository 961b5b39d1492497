"""Linear systems Ax = b with rows of two lengths (section 8, figure 6)."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import numpy as np

from coordwise.experiments import paper
from coordwise.experiments.charts import COLUMNS, TIGHT, facts_of, rows_of, trace
from coordwise.experiments.minima import Certified
from coordwise.experiments.settings import Settings
from coordwise.experiments.units import Finding, Library, Unit, Watch
from coordwise.methods import ACDM, NUACDM, Kaczmarz, Method
from coordwise.objectives import LinearSystem
from coordwise.validation import FloatArray

__all__ = ["SystemChart", "charts", "random_system"]


def random_system(
    share: float, seed: int, long_rows: int | None = None, shape: tuple[int, int] = paper.SYSTEM_SHAPE
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(A, b, x) of section 8: entries uniform in [0, 1], some rows of norm 10, the others of norm 1, b = Ax.

    `long_rows` is how many rows are long; by default each row is, with probability `share`.
    """
    m, n = shape
    rng = np.random.default_rng(seed)
    A = rng.random((m, n))
    x = rng.standard_normal(n)
    order = rng.permutation(m)
    long = rng.random(m) < share if long_rows is None else order < long_rows
    A *= (np.where(long, 10.0, 1.0) / np.linalg.norm(A, axis=1))[:, None]
    return A, A @ x, x


class SystemChart(Unit):
    """Kaczmarz, ACDM (both forms) and NU_ACDM on the systems of one share r, a new system for every seed.

    The objective (1/2)|A'y|^2 - <b, y> has the minimum -|x*|^2/2, so its distance is |x - x*|^2/2 with x = A'y. The
    accelerated methods get sigma = the smallest eigenvalue of A'A.
    """

    def __init__(self, share: float) -> None:
        self.share = share
        self.key = f"system-{round(100 * share)}"
        self.title = f"r = {round(100 * share)} %"

    @property
    def spec(self) -> dict[str, Any]:
        """See `Unit.spec`."""
        long_rows = paper.LONG_ROWS[self.share]
        return {"share": self.share, "long_rows": long_rows, "shape": list(paper.SYSTEM_SHAPE), "acdm": "both"}

    def passes(self, settings: Settings) -> float:
        """As long for every r, so that the charts compare; NU_ACDM is at 1e-13 well before the end."""
        return 60.0 if settings.quick else 150.0

    def work(self, library: Library, settings: Settings) -> float:
        """See `Unit.work`."""
        return 4 * len(settings.seeds) * self.passes(settings) * math.prod(paper.SYSTEM_SHAPE)

    def run(self, library: Library, settings: Settings, watch: Watch) -> Finding:
        """See `Unit.run`."""
        columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
        lines: dict[str, Any] = {}
        systems: list[dict[str, Any]] = []
        for seed in settings.seeds:
            A, b, x = random_system(self.share, seed, paper.LONG_ROWS[self.share])
            objective = LinearSystem(A, b)
            sigma = float(np.linalg.svd(A, compute_uv=False)[-1] ** 2)
            best = -float(x @ x) / 2
            minimum = Certified(best, math.nan, 1e-15 * abs(best), "the solution x the system was made from")
            methods: dict[str, Method] = {
                "Kaczmarz": Kaczmarz(),
                "ACDM": ACDM(sigma=sigma, constants="published"),
                TIGHT: ACDM(sigma=sigma, constants="tight"),
                "NU_ACDM": NUACDM(sigma=sigma),
            }
            for label, method in methods.items():
                result = trace(objective, method, seed, self.passes(settings), settings.records, watch)
                for name, values in rows_of(label, seed, result, minimum).items():
                    columns[name] += values
                # The theory of the first system stands for all: they differ in a few per cent.
                lines.setdefault(label, {"ran": result.method} | facts_of(result.constants))
            systems.append({"seed": seed, "sigma": sigma, "start": -best, "minimum": asdict(minimum)})
        m, n = paper.SYSTEM_SHAPE
        facts = {"passes": self.passes(settings), "n": m, "d": n, "nnz": m * n, "systems": systems, "lines": lines}
        return Finding(columns, facts | {"minimum": systems[0]["minimum"], "start": {"dual": 0.0, "primal": math.nan}})


def charts() -> list[SystemChart]:
    """The six charts of figure 6."""
    return [SystemChart(share) for share in paper.SHARES]
