"""Charts of empirical risk minimisation: some methods on one problem, from several seeds (figures 2 to 5 and 7)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from coordwise.datasets import Dataset
from coordwise.erm import ERM, DualERM
from coordwise.experiments import paper
from coordwise.experiments.minima import Certified, certified_minimum
from coordwise.experiments.settings import Settings
from coordwise.experiments.units import Finding, Interrupted, Library, Unit, Watch
from coordwise.methods import ACDM, APCG, APPROX, NUACDM, RCDM, ACDMns, Method, NUACDMns
from coordwise.objectives import Objective
from coordwise.recording import Progress
from coordwise.regularized import Regularized
from coordwise.results import Constants, Result, Status
from coordwise.schedules import Split, power
from coordwise.solve import solve

__all__ = [
    "FAMILIES",
    "PUBLISHED",
    "TIGHT",
    "UNPUBLISHED",
    "ErmChart",
    "Family",
    "charts_of",
    "facts_of",
    "rows_of",
    "trace",
]

PUBLISHED = ACDM(constants="published")
TIGHT = "ACDM, tight constants"  # not Lee and Sidford's: the library's own variant
UNPUBLISHED = "ACDM sampling in Algorithm 2, unpublished"

COLUMNS = ("method", "seed", "iterations", "passes", "dual", "primal", "dual_distance", "primal_distance")


@dataclass(frozen=True)
class Family:
    """Nine charts or three: a problem for every dataset and lambda, and the methods compared on it.

    `tuned` names the method whose sigma_1 is chosen by trying, as the paper does for APCG*.
    """

    name: str
    objective: Callable[[Dataset, float], DualERM]
    methods: dict[str, Method]
    strongly_convex: bool
    tuned: str | None = None
    only_smallest: bool = False  # the smallest lambda of each dataset only

    def lambdas(self, dataset: str) -> tuple[float, ...]:
        """The values of lambda (lambda_2 for Lasso) on a dataset."""
        values = paper.LAMBDAS[dataset]
        return values[:1] if self.only_smallest else values


def _ridge(data: Dataset, lam: float) -> DualERM:
    return ERM(data.A, data.b, loss="squared", penalty="l2", lam=lam).dual()


def lasso_lambda(data: Dataset) -> float:
    """lambda = lambda_max/10, lambda_max = |A'b|_inf/n the smallest lambda with solution 0."""
    return float(np.max(np.abs(data.A.T @ data.b))) / data.A.shape[0] / 10


def _lasso(data: Dataset, lam: float) -> DualERM:
    return ERM(data.A, data.b, loss="squared", penalty="l1", lam=lasso_lambda(data)).dual(smoothing=lam)


def _l2l1(data: Dataset, lam: float) -> DualERM:
    return ERM(data.A, data.b, loss="l2l1", penalty="l2", lam=lam).dual()


_STRONGLY_CONVEX: dict[str, Method] = {
    "RCDM": RCDM(),
    "ACDM": PUBLISHED,
    TIGHT: ACDM(constants="tight"),
    "APCG*": APCG(),
    "NU_ACDM": NUACDM(),
}

FAMILIES = {
    family.name: family
    for family in (
        Family("ridge", _ridge, _STRONGLY_CONVEX, strongly_convex=True, tuned="APCG*"),
        Family("lasso", _lasso, _STRONGLY_CONVEX, strongly_convex=True, tuned="APCG*"),
        Family(
            "l2l1",
            _l2l1,
            {
                "RCDM": RCDM(),
                "ACDM": Regularized(PUBLISHED),
                UNPUBLISHED: ACDMns(),
                "APCG": APPROX(start="published"),
                "NU_ACDM": NUACDMns(),
            },
            strongly_convex=False,
        ),
        Family(
            "beta",
            _l2l1,
            {f"β = {beta:g}": NUACDMns(beta=beta) for beta in paper.BETAS} | {"APCG": APPROX(start="published")},
            strongly_convex=False,
            only_smallest=True,
        ),
        Family(
            "remark",
            _ridge,
            {f"β = {beta:g}": NUACDM(beta=beta) for beta in (0.0, 0.5, 1.0)},
            strongly_convex=True,
            only_smallest=True,
        ),
    )
}


def charts_of(family: str) -> list[ErmChart]:
    """All charts of a family, row by row as the paper prints them."""
    found = FAMILIES[family]
    return [ErmChart(found, dataset, lam) for dataset in paper.DATASETS for lam in found.lambdas(dataset)]


class ErmChart(Unit):
    """One chart of a family."""

    def __init__(self, family: Family, dataset: str, lam: float) -> None:
        self.family, self.dataset, self.lam = family, dataset, lam
        self.datasets = (dataset,)
        self.key = f"{family.name}-{dataset}-{lam:g}"
        symbol = "λ₂" if family.name == "lasso" else "λ"
        self.title = f"{dataset}, {symbol} = {np.format_float_positional(lam, trim='-')}"

    @property
    def spec(self) -> dict[str, Any]:
        """See `Unit.spec`."""
        methods = {label: repr(method) for label, method in self.family.methods.items()}
        return {"family": self.family.name, "dataset": self.dataset, "lam": self.lam, "methods": methods}

    def passes(self, objective: Objective, settings: Settings) -> float:
        """The length of the chart's runs."""
        if not self.family.strongly_convex:
            return settings.limit(settings.passes, objective.rows.nnz)
        rate = NUACDM().schedule(objective).constants.rate_per_pass
        assert rate is not None
        return settings.limit(_rounded(math.log(settings.accuracy) / math.log(rate)), objective.rows.nnz)

    def work(self, library: Library, settings: Settings) -> float:
        """See `Unit.work`."""
        objective = self.family.objective(library(self.dataset), self.lam)
        runs: float = len(self.family.methods) * len(settings.seeds_for(objective.rows.nnz))
        runs += settings.sigmas / 2 if self.family.tuned else 0
        return runs * self.passes(objective, settings) * objective.rows.nnz

    def run(self, library: Library, settings: Settings, watch: Watch) -> Finding:
        """See `Unit.run`."""
        data = library(self.dataset)
        objective = self.family.objective(data, self.lam)
        passes = self.passes(objective, settings)
        minimum, y = certified_minimum(objective, settings.reference, watch)
        columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
        lines: dict[str, Any] = {}
        tuning: list[dict[str, float]] = []
        for label, method in self.family.methods.items():
            chosen = method
            if label == self.family.tuned:
                chosen, tuning = _tuned(objective, minimum, passes, settings, watch)
            for seed in settings.seeds_for(objective.rows.nnz):
                result = trace(objective, chosen, seed, passes, settings.records, watch)
                for name, values in rows_of(label, seed, result, minimum).items():
                    columns[name] += values
            lines[label] = {"ran": result.method} | facts_of(result.constants)
            if isinstance(method, NUACDMns):
                lines[label]["distance2"] = _distance2(objective, y, method.beta)
        facts: dict[str, Any] = {
            "passes": passes,
            "n": data.A.shape[0],
            "d": data.A.shape[1],
            "nnz": int(data.A.nnz),
            "minimum": asdict(minimum),
            "start": {"dual": columns["dual"][0], "primal": columns["primal"][0]},
            "lines": lines,
        }
        if tuning:
            facts["tuning"] = tuning
        if self.family.name == "lasso":
            w = objective.solution(objective.image(y.reshape(-1, 1)))[:, 0]
            exact = objective.problem  # without smoothing
            error = exact.gap(w, exact.dual_point(w)) / float(exact.value_at_zero[0])
            facts |= {"lambda": lasso_lambda(data), "smoothing_error": error}
        return Finding(columns, facts)


def trace(objective: Objective, method: Method, seed: int, passes: float, records: int, watch: Watch) -> Result:
    """One run with evenly spaced records, from 0, without a tolerance."""
    done = 0.0

    def follow(progress: Progress) -> bool:
        nonlocal done
        watch.add((progress.passes - done) * objective.rows.nnz)
        done = progress.passes
        return watch.stopped

    result = solve(
        objective,
        method,
        tol=0.0,
        max_passes=passes,
        random_state=seed,
        record_every=passes / records,
        record_growth=0.0,
        callback=follow,
    )
    if result.status is Status.STOPPED or watch.stopped:
        raise Interrupted
    return result


def rows_of(label: str, seed: int, result: Result, minimum: Certified) -> dict[str, list[Any]]:
    """The records of a run as columns."""
    history = result.history
    return {
        "method": [label] * len(history),
        "seed": [seed] * len(history),
        "iterations": history.iterations.astype(int).tolist(),
        "passes": history.passes.tolist(),
        "dual": history.value.tolist(),
        "primal": history.primal.tolist(),
        "dual_distance": (history.value - minimum.dual).tolist(),
        "primal_distance": (history.primal - minimum.primal).tolist(),
    }


def facts_of(constants: Constants) -> dict[str, Any]:
    """The constants of a run that claims are checked against."""
    names = ("sigma", "tau", "Theta", "S", "speedup", "iterations_per_pass", "L_min", "L_max")
    return {name: getattr(constants, name) for name in names}


def _tuned(
    objective: DualERM, minimum: Certified, passes: float, settings: Settings, watch: Watch
) -> tuple[Method, list[dict[str, float]]]:
    """APCG with the sigma_1 of those tried that converges fastest, and what became of each.

    The fastest is the first to come as close to the minimum as the best of all does in half the chart's passes. The
    values lie between 1, the largest strong convexity possible in the norm L_1, and 1/50,000.
    """
    values = np.geomspace(1.0, 1 / paper.TUNED_SPAN, settings.sigmas)
    seed, records = settings.seeds[0], settings.records // 2
    runs = [trace(objective, APCG(sigma=float(s)), seed, passes / 2, records, watch).history for s in values]
    distances = [np.maximum.accumulate((h.value - minimum.dual)[::-1])[::-1] for h in runs]  # from here on, at most
    goal = max(min(d[-1] for d in distances), 10 * minimum.gap)
    times = [
        float(h.passes[np.argmax(d <= goal)]) if d[-1] <= goal else math.inf
        for h, d in zip(runs, distances, strict=True)
    ]
    best = int(np.argmin(times))
    table = [
        {"sigma": float(s), "dual_distance": float(d[-1]), "passes": time, "chosen": float(i == best)}
        for i, (s, d, time) in enumerate(zip(values, distances, times, strict=True))
    ]
    return APCG(sigma=float(values[best])), table


def _distance2(objective: DualERM, y: Any, beta: float) -> float:
    """|x_0 - x*|^2 in the norm L_beta from the start 0, as Theorem 6.1 needs it."""
    weights = power(Split.of(objective, move=False).L, beta)
    return float(np.sum(weights * np.square(y.reshape(-1))))


def _rounded(passes: float) -> float:
    """Up to two digits, so that axes end at round numbers."""
    unit = 10 ** max(math.floor(math.log10(passes)) - 1, 0)
    return float(math.ceil(passes / unit) * unit)
