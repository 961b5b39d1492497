"""Tables 1, 2 and 3, and the distribution of the squared norms (figure 1)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from coordwise import theory
from coordwise.experiments import paper
from coordwise.experiments.charts import FAMILIES, trace
from coordwise.experiments.minima import certified_minimum
from coordwise.experiments.settings import Settings
from coordwise.experiments.units import Finding, Library, Unit, Watch
from coordwise.methods import ACDM, APCG, APPROX, NUACDM, RCDM, Method, NUACDMns
from coordwise.objectives import Objective
from coordwise.regularized import Regularized
from coordwise.rows import Rows
from coordwise.schedules import Split, power
from coordwise.validation import FloatArray

__all__ = ["Norms", "Table1", "Table2", "Table3", "bounds"]


class Norms(Unit):
    """The squared norms |a_i|^2 of a dataset, as quantiles and as a histogram."""

    def __init__(self, dataset: str) -> None:
        self.dataset, self.datasets = dataset, (dataset,)
        self.key, self.title = f"norms-{dataset}", dataset

    @property
    def spec(self) -> dict[str, Any]:
        """See `Unit.spec`."""
        return {"norms": self.dataset, "format": 2}

    def run(self, library: Library, settings: Settings, watch: Watch) -> Finding:
        """See `Unit.run`."""
        norms = Rows(library(self.dataset).A).norms2()
        positive = norms[norms > 0]
        edges = np.geomspace(positive.min(), positive.max() * (1 + 1e-12), 61)
        if positive.max() <= 200 and np.all(positive == np.round(positive)):  # 0/1 data: a bin for every whole number
            edges = np.arange(positive.min(), positive.max() + 2) - 0.5
        counts, _ = np.histogram(positive, edges)
        columns = {"from": edges[:-1].tolist(), "to": edges[1:].tolist(), "rows": counts.tolist()}
        levels = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
        return Finding(
            columns,
            {
                "zero_rows": int(np.sum(norms == 0)),
                "rows": len(norms),
                "mean": float(norms.mean()),
                "max": float(norms.max()),
                "quantiles": {f"{level:g}": float(np.quantile(norms, level)) for level in levels},
                "root_mean_over_mean_root": math.sqrt(float(norms.mean())) / float(np.sqrt(norms).mean()),
            },
        )


class Table2(Unit):
    """sqrt(n sum_i L_i)/sum_i sqrt(L_i) with L_i = 1/n + |a_i|^2/(lambda n^2)."""

    def __init__(self, dataset: str) -> None:
        self.dataset, self.datasets = dataset, (dataset,)
        self.key, self.title = f"table2-{dataset}", dataset

    @property
    def spec(self) -> dict[str, Any]:
        """See `Unit.spec`."""
        return {"table2": self.dataset}

    def run(self, library: Library, settings: Settings, watch: Watch) -> Finding:
        """See `Unit.run`."""
        norms = Rows(library(self.dataset).A).norms2()
        n = len(norms)
        lambdas = paper.LAMBDAS[self.dataset]
        factors = [theory.speedup(1 / n + norms / (lam * n**2)) for lam in lambdas]
        return Finding(
            {
                "dataset": [self.dataset] * 3,
                "lambda": list(lambdas),
                "printed": [paper.TABLE_2[self.dataset, lam] for lam in lambdas],
                "computed": factors,
            }
        )


class Table3(Unit):
    """The factor for k rows of norm 10 among 300, for the authors' k and for k drawn at random."""

    key, title, draws = "table3", "Table 3", 10_000

    @property
    def spec(self) -> dict[str, Any]:
        """See `Unit.spec`."""
        return {"table3": self.draws}

    def run(self, library: Library, settings: Settings, watch: Watch) -> Finding:
        """See `Unit.run`."""
        m, _ = paper.SYSTEM_SHAPE

        def factor(long: int) -> float:
            return theory.speedup(np.where(np.arange(m) < long, 100.0, 1.0))

        every = np.array([factor(k) for k in range(m + 1)])
        rng = np.random.default_rng(settings.seeds[0])
        columns: dict[str, list[Any]] = {
            name: [] for name in ("share", "printed", "long_rows", "computed", "exact_share", "q05", "median", "q95")
        }
        for share in paper.SHARES:
            drawn = np.quantile(every[rng.binomial(m, share, self.draws)], (0.05, 0.5, 0.95))
            k = paper.LONG_ROWS[share]
            row = (share, paper.TABLE_3[share], k, every[k], every[round(share * m)], *drawn)
            for name, value in zip(columns, row, strict=True):
                columns[name].append(value if isinstance(value, (str, int)) else float(value))
        return Finding(columns)


class Table1(Unit):
    """The bounds of Table 1 on a given problem, and the iterations it really took.

    Strongly convex: the dual of ridge regression. Not strongly convex: the dual of l2-l1 penalty regression. Iterations
    until D(y) - min D <= epsilon (D(0) - min D).
    """

    epsilon = 1e-3
    middle = 0.5  # stands for the column "beta in [0, 1]"

    def __init__(self, dataset: str = "w8a", lam: float | None = None) -> None:
        self.dataset, self.datasets = dataset, (dataset,)
        self.lam = paper.LAMBDAS[dataset][1] if lam is None else lam
        self.key, self.title = "table1", f"{dataset}, λ = {np.format_float_positional(self.lam, trim='-')}"

    @property
    def spec(self) -> dict[str, Any]:
        """See `Unit.spec`."""
        return {"table1": self.dataset, "lam": self.lam, "epsilon": self.epsilon, "beta": self.middle}

    def work(self, library: Library, settings: Settings) -> float:
        """See `Unit.work`."""
        nnz = int(library(self.dataset).A.nnz)
        return 20 * (1 if settings.quick else len(settings.seeds)) * settings.limit(100, nnz) * nnz

    def run(self, library: Library, settings: Settings, watch: Watch) -> Finding:
        """See `Unit.run`."""
        data = library(self.dataset)
        n, limit = data.A.shape[0], settings.limit(100, int(data.A.nnz))
        columns: dict[str, list[Any]] = {
            name: []
            for name in ("method", "beta", "strongly_convex", "bound", "measured", "least", "most", "passes", "tried")
        }
        minima: dict[str, Any] = {}
        seeds = settings.seeds[:1] if settings.quick else settings.seeds
        for strongly_convex, family in ((True, "ridge"), (False, "l2l1")):
            objective = FAMILIES[family].objective(data, self.lam)
            minimum, y = certified_minimum(objective, settings.reference, watch)
            minima[family] = {"dual": minimum.dual, "gap": minimum.gap, "how": minimum.how}
            for name, beta, method in _cells(self.middle, strongly_convex):
                bound = bounds(objective, name, beta, strongly_convex, self.epsilon, y, minimum.dual)
                counts, passes = [], []
                for seed in seeds:
                    history = trace(objective, method, seed, limit, settings.records, watch).history
                    distance = history.value - minimum.dual
                    at = int(np.flatnonzero(distance > self.epsilon * distance[0])[-1]) + 1  # from here on below
                    reached = at < len(history)
                    counts.append(float(history.iterations[at]) if reached else math.inf)
                    passes.append(float(history.passes[at]) if reached else math.inf)
                tried = int(history.iterations[-1])
                spread = (float(np.median(counts)), min(counts), max(counts), float(np.median(passes)), tried)
                row = (name, beta, strongly_convex, bound, *spread)
                for column, value in zip(columns, row, strict=True):
                    columns[column].append(value)
        return Finding(columns, {"n": n, "epsilon": self.epsilon, "minima": minima, "limit": limit})


def _cells(middle: float, strongly_convex: bool) -> list[tuple[str, float, Method]]:
    """The cells of Table 1 that hold a bound."""
    cells: list[tuple[str, float, Method]] = []
    for beta in (0.0, middle, 1.0):
        cells.append(("rcdm", beta, RCDM(beta=beta)))
        if beta == 1:
            cells.append(("apcg", beta, APCG() if strongly_convex else APPROX(start="published")))
        acdm = ACDM(beta=beta, constants="published")
        cells.append(("acdm", beta, acdm if strongly_convex else Regularized(acdm)))
        cells.append(("nu_acdm", beta, NUACDM(beta=beta) if strongly_convex else NUACDMns(beta=beta)))
    return cells


def bounds(
    objective: Objective,
    method: str,
    beta: float,
    strongly_convex: bool,
    epsilon: float,
    minimiser: FloatArray,
    minimum: float,
) -> float:
    """One cell of Table 1 for an objective with start 0, to the accuracy epsilon (D(0) - min D)."""
    split = Split.of(objective)
    weights = power(split.L, beta)
    if strongly_convex:
        sigma = split.sigma(weights)
        return theory.iterations(split.L, epsilon=epsilon, method=method, beta=beta, sigma=sigma)
    distance = math.sqrt(float(np.sum(weights * np.square(minimiser.reshape(-1)))))
    start = float(objective.certify(objective.start(None)).value[0])
    return theory.iterations(split.L, epsilon=epsilon * (start - minimum), method=method, beta=beta, distance=distance)
