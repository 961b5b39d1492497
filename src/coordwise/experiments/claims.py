"""The paper's claims, each with what was measured and whether it holds by a stated test."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from coordwise.experiments import curves, paper
from coordwise.experiments.units import Finding

__all__ = ["Claim", "Verdict", "check_claims", "speedups"]

Findings = Mapping[str, Finding]


class Verdict(enum.StrEnum):
    """Whether a claim holds here."""

    HOLDS = "holds"
    PARTLY = "holds in part"
    FAILS = "does not hold"


@dataclass(frozen=True)
class Claim:
    """One claim: where the paper makes it, the test, what was measured, and the verdict."""

    source: str
    text: str
    test: str
    measured: str
    verdict: Verdict


def check_claims(findings: Findings, real: bool) -> list[Claim]:
    """All claims that the findings at hand allow to check; `real` tells whether they come from the paper's data."""
    return [claim for check in _CHECKS if (claim := _attempt(check, findings, real)) is not None]


def _attempt(check: Callable[[Findings, bool], Claim], findings: Findings, real: bool) -> Claim | None:
    try:
        return check(findings, real)
    except _Missing:
        return None


class _Missing(Exception):
    """A chart that a claim needs has not been computed."""


def _need(findings: Findings, key: str) -> Finding:
    if key not in findings:
        raise _Missing(key)
    return findings[key]


def _charts(findings: Findings, family: str, dataset: str | None = None) -> dict[tuple[str, float], Finding]:
    """The charts of a family by dataset and lambda."""
    names = paper.DATASETS if dataset is None else (dataset,)
    keys = [(name, lam) for name in names for lam in paper.LAMBDAS[name][: 1 if family == "beta" else 3]]
    return {(name, lam): _need(findings, f"{family}-{name}-{lam:g}") for name, lam in keys}


def _systems(findings: Findings) -> dict[float, Finding]:
    return {share: _need(findings, f"system-{round(100 * share)}") for share in paper.SHARES}


def _all(holding: list[bool]) -> Verdict:
    if all(holding):
        return Verdict.HOLDS
    return Verdict.PARTLY if any(holding) else Verdict.FAILS


def _count(holding: list[bool]) -> str:
    return f"{sum(holding)} of {len(holding)} charts"


def _times(values: list[float]) -> str:
    return ", ".join(f"{value:.2f}" for value in values)


def speedups(findings: Findings) -> dict[str, list[Any]]:
    """NU_ACDM against ACDM in every chart that has both: theory and measurement.

    `theory` is the paper's factor, `as_run` the ratio of the iteration bounds with the constants ACDM's proof
    guarantees; the measured columns say how many times sooner NU_ACDM is down at the lowest distance that both come
    down to.
    """
    names = ("chart", "theory", "as_run", "iterations", "passes", "primal_passes", "level")
    table: dict[str, list[Any]] = {name: [] for name in names}
    for key, finding in findings.items():
        lines = finding.facts.get("lines", {})
        if not {"ACDM", "NU_ACDM"} <= lines.keys():
            continue
        pair = [curves.curves_of(finding, label) for label in ("ACDM", "NU_ACDM")]
        primal = (
            math.nan if key.startswith("system") else curves.speedup(finding, "ACDM", "NU_ACDM", "passes", "primal")
        )
        row = (
            key,
            lines["NU_ACDM"]["speedup"],
            _as_run(finding),
            curves.speedup(finding, "ACDM", "NU_ACDM", "iterations"),
            curves.speedup(finding, "ACDM", "NU_ACDM", "passes"),
            primal,
            curves.common_level(*pair),
        )
        for name, value in zip(names, row, strict=True):
            table[name].append(value)
    return table


def _as_run(finding: Finding) -> float:
    """The ratio of the iteration bounds with the constants that the runs used."""
    slow, fast = finding.facts["lines"]["ACDM"], finding.facts["lines"]["NU_ACDM"]
    if slow["tau"] is not None:
        return float(fast["tau"] / slow["tau"])
    return math.sqrt(slow["Theta"] / fast["Theta"])


def _measured(finding: Finding, slow: str = "ACDM", fast: str = "NU_ACDM", x: curves.X = "iterations") -> float:
    return curves.speedup(finding, slow, fast, x)


def _table_2(findings: Findings, real: bool) -> Claim:
    errors, equal = [], []
    for dataset in paper.DATASETS:
        columns = _need(findings, f"table2-{dataset}").columns
        for printed, computed in zip(columns["printed"], columns["computed"], strict=True):
            errors.append(abs(computed / printed - 1))
            equal.append(round(computed, 5) == printed if real else errors[-1] <= 0.01)
    what = "equal to five digits" if real else "within 1 % (stand-ins are made for that)"
    return Claim(
        "Table 2",
        "The nine theoretical speed-up factors.",
        what,
        f"{sum(equal)} of 9 {what}; largest relative difference {max(errors):.1e}",
        _all(equal),
    )


def _table_3(findings: Findings, real: bool) -> Claim:
    columns = _need(findings, "table3").columns
    printed = [paper.TABLE_3[share] for share in columns["share"]]
    digits = [len(text.partition(".")[2]) for text in printed]
    computed = columns["computed"]
    equal = [round(c, d) == float(p) for c, p, d in zip(computed, printed, digits, strict=True)]
    return Claim(
        "Table 3",
        "The six theoretical speed-up factors for linear systems.",
        "equal to the printed digits for 300, 236, 167, 115, 61 and 25 long rows",
        f"{sum(equal)} of 6 equal",
        _all(equal),
    )


def _speedup_claim(family: str, source: str, what: str) -> Callable[[Findings, bool], Claim]:
    def check(findings: Findings, real: bool) -> Claim:
        charts = list((_systems(findings) if family == "system" else _charts(findings, family)).values())
        theory = [chart.facts["lines"]["NU_ACDM"]["speedup"] for chart in charts]
        as_run = [_as_run(chart) for chart in charts]
        iterations = [_measured(chart) for chart in charts]
        passes = [_measured(chart, x="passes") for chart in charts]
        holding = [m >= 0.97 * t for m, t in zip(iterations, theory, strict=True)]
        return Claim(
            source,
            f"{what}: NU_ACDM is faster than ACDM by the theoretical factor.",
            "iterations ACDM / iterations NU_ACDM >= 0.97 times the factor",
            f"{_count(holding)}. Theory {_times(theory)}, with the constants as run {_times(as_run)}; iterations "
            f"{_times(iterations)}; passes {_times(passes)}",
            _all(holding),
        )

    return check


def _order(findings: Findings, real: bool) -> Claim:
    holding, ratios = [], []
    for chart in _charts(findings, "ridge").values():
        first, second = _measured(chart, "RCDM", "ACDM", "passes"), _measured(chart, x="passes")
        holding.append(first >= 0.98 and second >= 0.98)
        ratios.append(f"{first:.2f}/{second:.2f}")
    return Claim(
        "Figure 2",
        "Ridge regression: RCDM is slower than ACDM, and ACDM slower than NU_ACDM.",
        "passes RCDM/ACDM >= 0.98 and ACDM/NU_ACDM >= 0.98",
        f"{_count(holding)}. Ratios {', '.join(ratios)}",
        _all(holding),
    )


def _small_lambda(findings: Findings, real: bool) -> Claim:
    holding, shown = [], []
    for dataset in paper.DATASETS:
        gains = [_measured(chart) for chart in _charts(findings, "ridge", dataset).values()]
        holding.append(all(a >= 0.99 * b for a, b in pairwise(gains)) and gains[0] > gains[-1])
        shown.append(f"{dataset} {_times(gains)}")
    return Claim(
        "Section 7.1",
        "Ridge regression: the smaller lambda, the greater the improvement.",
        "iterations ACDM / NU_ACDM does not grow with lambda, on each dataset",
        f"{sum(holding)} of 3 datasets. {'; '.join(shown)}",
        _all(holding),
    )


def _news20_most(findings: Findings, real: bool) -> Claim:
    gains = {name: [_measured(c) for c in _charts(findings, "ridge", name).values()] for name in paper.DATASETS}
    holding = [gains["news20"][k] >= max(gains["w8a"][k], gains["covtype"][k]) for k in range(3)]
    return Claim(
        "Section 7.1",
        "Ridge regression: news20, whose norms are least uniform, gains most.",
        "iterations ACDM / NU_ACDM is largest on news20 in each column of charts",
        f"{sum(holding)} of 3 columns. " + "; ".join(f"{name} {_times(g)}" for name, g in gains.items()),
        _all(holding),
    )


def _apcg_poor(findings: Findings, real: bool) -> Claim:
    charts = _charts(findings, "ridge", "news20")
    gains = [_measured(chart, "APCG*", "NU_ACDM", "passes") for chart in charts.values()]
    others = [
        _measured(c, "APCG*", "NU_ACDM", "passes")
        for d in ("w8a", "covtype")
        for c in _charts(findings, "ridge", d).values()
    ]
    holding = [gain >= 1.2 for gain in gains]
    return Claim(
        "Section 7.1",
        "Ridge regression: APCG*, though tuned, performs poorly on news20.",
        "passes APCG* / NU_ACDM >= 1.2 on news20",
        f"{_count(holding)}. news20 {_times(gains)}; w8a and covtype {_times(others)}",
        _all(holding),
    )


def _primal(findings: Findings, real: bool) -> Claim:
    charts = list(_charts(findings, "ridge").values())
    dual = [_measured(chart, x="passes") for chart in charts]
    primal = [curves.speedup(chart, "ACDM", "NU_ACDM", "passes", "primal") for chart in charts]
    holding = [p >= 0.9 * d for p, d in zip(primal, dual, strict=True)]
    return Claim(
        "Figure 7",
        "Ridge regression: the speed-up on the dual translates to the primal objective.",
        "passes ACDM / NU_ACDM in the primal distance >= 0.9 times that in the dual distance",
        f"{_count(holding)}. Dual {_times(dual)}; primal {_times(primal)}",
        _all(holding),
    )


def _ns_news20(findings: Findings, real: bool) -> Claim:
    charts = list(_charts(findings, "l2l1", "news20").values())
    acdm = [_measured(chart, x="passes") for chart in charts]
    rcdm = [_measured(chart, "RCDM", "NU_ACDM", "passes") for chart in charts]
    holding = [min(a, r) >= 1.1 for a, r in zip(acdm, rcdm, strict=True)]
    return Claim(
        "Section 7.2",
        "l2-l1 penalty regression: NU_ACDM^ns has a clear advantage over ACDM and RCDM on news20.",
        "passes ACDM / NU_ACDM^ns and RCDM / NU_ACDM^ns >= 1.1",
        f"{_count(holding)}. Against ACDM {_times(acdm)}; against RCDM {_times(rcdm)}",
        _all(holding),
    )


def _ns_covtype(findings: Findings, real: bool) -> Claim:
    gains = [_measured(chart, "NU_ACDM", "ACDM", "passes") for chart in _charts(findings, "l2l1", "covtype").values()]
    holding = [gain >= 1 for gain in gains]
    return Claim(
        "Section 7.2",
        "l2-l1 penalty regression: on covtype ACDM is even slightly faster than NU_ACDM^ns.",
        "passes NU_ACDM^ns / ACDM >= 1 on covtype",
        f"{_count(holding)}. {_times(gains)}",
        _all(holding),
    )


def _apcg_good(findings: Findings, real: bool) -> Claim:
    gains = [_measured(chart, "APCG", "NU_ACDM", "passes") for chart in _charts(findings, "l2l1").values()]
    holding = [gain <= 1.25 for gain in gains]
    return Claim(
        "Section 7.2",
        "l2-l1 penalty regression: APCG performs extremely well, similar to NU_ACDM^ns.",
        "passes APCG / NU_ACDM^ns <= 1.25",
        f"{_count(holding)}. {_times(gains)} (below 1: APCG is faster)",
        _all(holding),
    )


def _reaches(chart: Finding, x: curves.X) -> dict[str, float]:
    lines = {label: curves.curves_of(chart, label, x) for label in curves.labels_of(chart)}
    level = curves.common_level(*lines.values())
    return {label: curves.reach(found, level) for label, found in lines.items()}


def _small_beta(findings: Findings, real: bool) -> Claim:
    holding, shown = [], []
    for (dataset, _), chart in _charts(findings, "beta").items():
        both = []
        for x in ("passes", "iterations"):
            found = _reaches(chart, x)
            both.append([found[f"β = {beta:g}"] for beta in paper.BETAS])
        holding.append(both[0][0] <= 1.02 * both[0][-1])
        ratios = [_times([value / row[0] for value in row]) for row in both]
        shown.append(f"{dataset}: passes {ratios[0]}, iterations {ratios[1]}")
    return Claim(
        "Section 7.3",
        "l2-l1 penalty regression: smaller beta is preferable.",
        "beta = 0 needs at most 1.02 times the passes of beta = 1",
        f"{sum(holding)} of 3 datasets. Relative to beta = 0, for beta = 0, .2, .4, .6, .8, 1: " + "; ".join(shown),
        _all(holding),
    )


def _beta_covtype(findings: Findings, real: bool) -> Claim:
    spread = {}
    for (dataset, _), chart in _charts(findings, "beta").items():
        found = _reaches(chart, "passes")
        values = [found[f"β = {beta:g}"] for beta in paper.BETAS]
        spread[dataset] = max(values) / min(values)
    holds = spread["covtype"] <= min(spread["news20"], spread["w8a"])
    return Claim(
        "Section 7.3",
        "l2-l1 penalty regression: the choice of beta matters less on covtype.",
        "slowest / fastest beta in passes is smallest on covtype",
        "; ".join(f"{name} {value:.2f}" for name, value in spread.items()),
        Verdict.HOLDS if holds else Verdict.FAILS,
    )


def _apcg_is_beta_1(findings: Findings, real: bool) -> Claim:
    ratios = []
    for chart in _charts(findings, "beta").values():
        found = _reaches(chart, "passes")
        ratios.append(found["APCG"] / found["β = 1"])
    holding = [abs(ratio - 1) <= 0.05 for ratio in ratios]
    return Claim(
        "Section 7.3",
        "l2-l1 penalty regression: APCG behaves like NU_ACDM^ns with beta = 1.",
        "passes APCG / (beta = 1) within 5 % of 1",
        f"{_count(holding)}. {_times(ratios)}",
        _all(holding),
    )


def _beat_kaczmarz(findings: Findings, real: bool) -> Claim:
    charts = list(_systems(findings).values())
    acdm = [_measured(chart, "Kaczmarz", "ACDM", "passes") for chart in charts]
    nu = [_measured(chart, "Kaczmarz", "NU_ACDM", "passes") for chart in charts]
    holding = [min(a, b) > 1 for a, b in zip(acdm, nu, strict=True)]
    return Claim(
        "Section 8",
        "Linear systems: ACDM and NU_ACDM outperform randomized Kaczmarz.",
        "passes Kaczmarz / ACDM and Kaczmarz / NU_ACDM > 1",
        f"{_count(holding)}. ACDM {_times(acdm)}; NU_ACDM {_times(nu)}",
        _all(holding),
    )


def _comparable(findings: Findings, real: bool) -> Claim:
    gain = _measured(_systems(findings)[1.0])
    return Claim(
        "Section 8",
        "Linear systems: NU_ACDM and ACDM are comparable at r = 100 %.",
        "iterations ACDM / NU_ACDM within 10 % of 1",
        f"{gain:.3f}",
        Verdict.HOLDS if abs(gain - 1) <= 0.1 else Verdict.FAILS,
    )


def _small_share(findings: Findings, real: bool) -> Claim:
    gains = [_measured(chart) for chart in _systems(findings).values()]
    holding = [b >= 0.97 * a for a, b in pairwise(gains)]
    return Claim(
        "Section 8",
        "Linear systems: the gain grows as r shrinks.",
        "iterations ACDM / NU_ACDM grows from each r to the next smaller one (3 % allowed)",
        f"r = 100, 80, 60, 40, 20, 10 %: {_times(gains)}",
        _all(holding),
    )


def _linear_rate(findings: Findings, real: bool) -> Claim:
    holding, ratios = [], []
    charts = [*_charts(findings, "ridge").values(), *_charts(findings, "lasso").values(), *_systems(findings).values()]
    for chart in charts:
        tau = chart.facts["lines"]["NU_ACDM"]["tau"]
        ratios.append(-math.log(curves.rate(chart, "NU_ACDM")) / -math.log1p(-tau))
        holding.append(ratios[-1] >= 1)
    return Claim(
        "Theorem 5.1",
        "NU_ACDM converges linearly, by a factor of 1 - tau per iteration or better.",
        "measured rate <= 1 - tau, over the whole of each chart",
        f"{_count(holding)}. log(measured rate) / log(1 - tau) between {min(ratios):.2f} and {max(ratios):.2f}",
        _all(holding),
    )


def _bounds(findings: Findings, real: bool) -> Claim:
    columns = _need(findings, "table1").columns
    rows = list(zip(*columns.values(), strict=True))
    names = list(columns)
    table = [dict(zip(names, row, strict=True)) for row in rows]
    finite = [row for row in table if math.isfinite(row["measured"])]
    ratios = [row["measured"] / row["bound"] for row in finite]
    holding = [ratio <= 2 for ratio in ratios]
    return Claim(
        "Table 1",
        "The iteration bounds of all methods.",
        "measured iterations <= 2 times the bound (the constants hidden in O(.) are small)",
        f"{sum(holding)} of {len(finite)} cells measured; measured / bound between {min(ratios):.1e} and "
        f"{max(ratios):.2f}"
        + (f"; {len(table) - len(finite)} did not get there within the limit" if len(finite) < len(table) else ""),
        _all(holding),
    )


_CHECKS: tuple[Callable[[Findings, bool], Claim], ...] = (
    _bounds,
    _table_2,
    _table_3,
    _linear_rate,
    _speedup_claim("ridge", "Figure 2", "Ridge regression"),
    _order,
    _small_lambda,
    _news20_most,
    _apcg_poor,
    _primal,
    _speedup_claim("lasso", "Figure 3", "Lasso"),
    _speedup_claim("l2l1", "Figure 4", "l2-l1 penalty regression"),
    _ns_news20,
    _ns_covtype,
    _apcg_good,
    _small_beta,
    _beta_covtype,
    _apcg_is_beta_1,
    _beat_kaczmarz,
    _comparable,
    _small_share,
    _speedup_claim("system", "Figure 6", "Linear systems"),
)
