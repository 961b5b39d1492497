"""Footnote 5: problems on which NU_ACDM gains a factor of sqrt(n), up to a constant, over ACDM."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import numpy as np
import scipy.sparse as sp

from coordwise.erm import ERM, DualERM
from coordwise.experiments.charts import COLUMNS, PUBLISHED, TIGHT, facts_of, rows_of, trace
from coordwise.experiments.minima import Certified
from coordwise.experiments.settings import Settings
from coordwise.experiments.units import Finding, Interrupted, Library, Unit, Watch
from coordwise.methods import ACDM, NUACDM, Method
from coordwise.solve import solve
from coordwise.validation import FloatArray

__all__ = ["SIZES", "SqrtnChart", "charts", "factor", "lone_long_row", "smoothness"]

SIZES = (100, 400, 1600, 6400)
ENTRIES = 10  # of a row
SPREAD = 100.0  # L_i/sigma of all coordinates but two
ACCURACY = 1e-7  # the runs are long enough for this by theory


def smoothness(n: int) -> FloatArray:
    """n L_i = 100 (n^2, n/4, 1, ..., 1) with n sigma = 1: one coordinate is nearly all of sum_i L_i.

    Footnote 5 has L = (1, 0, ..., 0), where there is nothing to do. Here sum_i sqrt(n L_i) is about 20 n, and
    sqrt(n sum_i n L_i) about 10 n^(3/2). The second coordinate lies at a quarter of the mean, where ACDM's proof allows
    no Theta below n sum_i L_i: with tight constants ACDM is no faster than as published.
    """
    L = np.full(n, SPREAD)
    L[0], L[1] = SPREAD * n**2, SPREAD * n / 4
    return L


def factor(n: int) -> float:
    """sqrt(n sum_i L_i) / sum_i sqrt(L_i) of the family: about sqrt(n)/2 for large n."""
    L = smoothness(n)
    return math.sqrt(n * L.sum()) / float(np.sqrt(L).sum())


def lone_long_row(n: int, seed: int) -> DualERM:
    """The dual of ridge regression with lambda = 1/n on n rows of ten entries: n L_i = 1 + |a_i|^2."""
    rng = np.random.default_rng(seed)
    columns = np.argsort(rng.random((n, 4 * ENTRIES)), axis=1)[:, :ENTRIES] + rng.integers(0, n - 4 * ENTRIES, (n, 1))
    values = rng.standard_normal((n, ENTRIES))
    values *= (np.sqrt(smoothness(n) - 1) / np.linalg.norm(values, axis=1))[:, None]
    starts = np.arange(0, n * ENTRIES + 1, ENTRIES)
    A = sp.csr_array((values.reshape(-1), columns.reshape(-1), starts), shape=(n, n))
    A.sort_indices()
    return ERM(A, rng.choice([-1.0, 1.0], n), loss="squared", penalty="l2", lam=1 / n).dual()


class SqrtnChart(Unit):
    """ACDM (both forms) and NU_ACDM for one n, a new problem for every seed; each runs as long as it needs."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.key, self.title = f"sqrtn-{n}", f"n = {n:,}"
        self.methods: dict[str, Method] = {"ACDM": PUBLISHED, TIGHT: ACDM(constants="tight"), "NU_ACDM": NUACDM()}

    @property
    def spec(self) -> dict[str, Any]:
        """See `Unit.spec`."""
        return {"sqrtn": self.n, "spread": SPREAD, "entries": ENTRIES, "accuracy": ACCURACY}

    def work(self, library: Library, settings: Settings) -> float:
        """See `Unit.work`."""
        steps = math.log(1 / ACCURACY) * (2 * math.sqrt(self.n * smoothness(self.n).sum()) + 20 * self.n)
        return len(self._seeds(settings)) * steps * ENTRIES

    def _seeds(self, settings: Settings) -> tuple[int, ...]:
        return settings.seeds[:1] if settings.quick and self.n > 2000 else settings.seeds

    def run(self, library: Library, settings: Settings, watch: Watch) -> Finding:
        """See `Unit.run`."""
        columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
        lines: dict[str, Any] = {}
        minima: list[Certified] = []
        for seed in self._seeds(settings):
            objective = lone_long_row(self.n, seed)
            best = solve(objective, NUACDM(), tol=1e-13, max_passes=2000, callback=lambda _: watch.stopped)
            if watch.stopped:
                raise Interrupted
            gap = max(float(best.gap), 1e-15 * float(best.scale))
            minima.append(Certified(float(best.value), float(best.primal), gap, best.method))
            for label, method in self.methods.items():
                constants = method.schedule(objective).constants
                assert constants.tau is not None
                passes = math.log(1 / ACCURACY) / constants.tau / constants.iterations_per_pass
                result = trace(objective, method, seed, passes, settings.records, watch)
                for name, values in rows_of(label, seed, result, minima[-1]).items():
                    columns[name] += values
                lines.setdefault(label, {"ran": result.method} | facts_of(result.constants))
        worst = max(minima, key=lambda found: found.gap)
        facts = {"n": self.n, "d": self.n, "nnz": self.n * ENTRIES, "minimum": asdict(worst), "lines": lines}
        return Finding(columns, facts | {"factor": factor(self.n)})


def charts() -> list[SqrtnChart]:
    """One for every n."""
    return [SqrtnChart(n) for n in SIZES]
