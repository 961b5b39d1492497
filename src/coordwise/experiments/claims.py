"""The paper's claims, each with what was measured and whether it holds by a stated test."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

from coordwise.experiments import curves, paper, statements
from coordwise.experiments.charts import TIGHT, UNPUBLISHED
from coordwise.experiments.speedups import as_run
from coordwise.experiments.units import Finding
from coordwise.experiments.verdicts import (
    AXES,
    SHALLOW,
    Claim,
    Findings,
    Missing,
    Outcomes,
    Ratios,
    charts_in,
    counted,
    known,
    listed,
    on_both_axes,
    verdict_of,
)

__all__ = ["CHECKS", "check_claims"]


def check_claims(findings: Findings, real: bool) -> list[Claim]:
    """All claims that the findings at hand allow to check; `real` tells whether they come from the paper's data."""
    return [claim for check in CHECKS if (claim := _attempt(check, findings, real)) is not None]


def _attempt(check: Callable[[Findings, bool], Claim], findings: Findings, real: bool) -> Claim | None:
    try:
        return check(findings, real)
    except Missing:
        return None


def _faster(
    source: str, text: str, family: str, slow: str, fast: str, at_least: float, dataset: str | None = None
) -> Callable[[Findings, bool], Claim]:
    """The claim that `fast` is faster than `slow` in all charts."""

    def check(findings: Findings, real: bool) -> Claim:
        charts = charts_in(findings, family, dataset)
        ratios = Ratios(charts, slow, fast)
        test = f"{slow} / {fast} >= {at_least:g}"
        numbers = str(ratios) + (_other_form(charts) if (slow, fast) == ("ACDM", "NU_ACDM") else "")
        return on_both_axes(source, text, test, ratios.test(lambda value, _: value >= at_least), numbers)

    return check


def _other_form(charts: Sequence[Finding], fast: str = "NU_ACDM") -> str:
    """The ratios of the other form of ACDM, which decide nothing."""
    names = {TIGHT: "with tight constants", UNPUBLISHED: "its sampling in Algorithm 2 (unpublished)"}
    label = next((name for name in names if all(name in curves.labels_of(chart) for chart in charts)), None)
    return "" if label is None else f". ACDM {names[label]}: {Ratios(charts, label, fast)}"


def _by_theory(source: str, what: str, family: str) -> Callable[[Findings, bool], Claim]:
    """The claim that NU_ACDM is faster than ACDM by the theoretical factor, which counts iterations."""

    def check(findings: Findings, real: bool) -> Claim:
        charts = charts_in(findings, family)
        theory = [chart.facts["lines"]["NU_ACDM"]["speedup"] for chart in charts]
        ratios = Ratios(charts, "ACDM", "NU_ACDM")
        outcomes = ratios.test(lambda value, k: value >= 0.97 * theory[k])
        bounds = [as_run(chart) for chart in charts]
        run = "" if all(map(math.isnan, bounds)) else f"with the constants as run {listed(bounds)}; "
        numbers = f"theory {listed(theory)}; {run}{ratios}{_other_form(charts)}"
        text = f"{what}: NU_ACDM is faster than ACDM by the theoretical factor."
        return on_both_axes(source, text, "ACDM / NU_ACDM >= 0.97 times the factor", outcomes, numbers)

    return check


def _grows(source: str, what: str, family: str) -> Callable[[Findings, bool], Claim]:
    """The claim that the gain over ACDM grows as lambda shrinks."""

    def check(findings: Findings, real: bool) -> Claim:
        outcomes: Outcomes = {x: [] for x in AXES}
        shown = []
        for dataset in paper.DATASETS:
            ratios = Ratios(charts_in(findings, family, dataset), "ACDM", "NU_ACDM")
            for x, gains in ratios.values.items():
                falls = all(a >= 0.98 * b for a, b in pairwise(gains)) and gains[0] > gains[-1]
                outcomes[x].append(None if any(ratios.shallow) else known(falls, *gains))
            shown.append(f"{dataset}: {ratios}{_other_form(charts_in(findings, family, dataset))}")
        test = "ACDM / NU_ACDM falls as lambda grows (2 % allowed from one to the next), on each dataset"
        text = f"{what}: the smaller lambda, the greater the improvement."
        return on_both_axes(source, text, test, outcomes, ". ".join(shown), "datasets")

    return check


def _news20_most(findings: Findings, real: bool) -> Claim:
    every = {name: Ratios(charts_in(findings, "ridge", name), "ACDM", "NU_ACDM") for name in paper.DATASETS}
    outcomes: Outcomes = {
        x: [
            None
            if any(ratios.shallow[k] for ratios in every.values())
            else known(
                every["news20"].values[x][k] >= max(every["w8a"].values[x][k], every["covtype"].values[x][k]),
                *(ratios.values[x][k] for ratios in every.values()),
            )
            for k in range(3)
        ]
        for x in AXES
    }
    return on_both_axes(
        "Section 7.1",
        "Ridge regression: news20, whose norms are least uniform, gains most.",
        "ACDM / NU_ACDM is largest on news20 in each column of charts",
        outcomes,
        ". ".join(f"{name}: {ratios}" for name, ratios in every.items()),
        "columns",
    )


def _primal(findings: Findings, real: bool) -> Claim:
    charts = charts_in(findings, "ridge")
    dual = [curves.speedup(chart, "ACDM", "NU_ACDM", "passes") for chart in charts]
    primal = [curves.speedup(chart, "ACDM", "NU_ACDM", "passes", "primal") for chart in charts]
    shallow = [curves.depth(chart, ("ACDM", "NU_ACDM"), "primal") > SHALLOW for chart in charts]
    outcomes = [None if s or math.isnan(p) else p >= 0.9 * d for p, d, s in zip(primal, dual, shallow, strict=True)]
    return Claim(
        "Figure 7",
        "Ridge regression: the speed-up on the dual translates to the primal objective.",
        "passes ACDM / NU_ACDM in the primal distance >= 0.9 times that in the dual distance",
        f"{counted(outcomes)}. Dual {listed(dual)}; primal {listed(primal)}",
        verdict_of(outcomes),
    )


def _apcg_similar(findings: Findings, real: bool) -> Claim:
    ratios = Ratios(charts_in(findings, "l2l1"), "APCG", "NU_ACDM")
    return on_both_axes(
        "Section 7.2",
        "l2-l1 penalty regression: APCG performs extremely well, similar to NU_ACDM^ns.",
        "APCG / NU_ACDM^ns between 0.8 and 1.25 (below 1, APCG is faster)",
        ratios.test(lambda value, _: 0.8 <= value <= 1.25),
        ratios,
    )


def _betas(findings: Findings, x: curves.X) -> dict[str, dict[str, float]]:
    """For each dataset, when every beta (and APCG) is down at the lowest level that all come down to.

    nan for all of them where that level is too shallow to tell.
    """
    found = {}
    for dataset, chart in zip(paper.DATASETS, charts_in(findings, "beta"), strict=True):
        labels = curves.labels_of(chart)
        level = curves.level_of(chart, labels)
        times = {label: curves.reach(curves.curves_of(chart, label, x), level) for label in labels}
        deep = curves.depth(chart, labels) <= SHALLOW and min(times.values()) > 0
        found[dataset] = times if deep else dict.fromkeys(times, math.nan)
    return found


def _label(beta: float) -> str:
    return f"β = {beta:g}"


def _small_beta(findings: Findings, real: bool) -> Claim:
    outcomes: Outcomes = {}
    shown = []
    for x in AXES:
        every = _betas(findings, x)
        outcomes[x] = []
        for dataset, found in every.items():
            times = [found[_label(beta)] / found[_label(0)] for beta in paper.BETAS]
            outcomes[x].append(known(all(b >= 0.98 * a for a, b in pairwise(times)), *times))
            shown.append(f"{dataset}, {x} {listed(times)}")
    return on_both_axes(
        "Section 7.3",
        "l2-l1 penalty regression: smaller beta is preferable.",
        "the work does not shrink from each beta to the next larger one (2 % allowed)",
        outcomes,
        "Relative to beta = 0, for beta = 0, .2, .4, .6, .8, 1: " + "; ".join(shown),
        "datasets",
    )


def _beta_covtype(findings: Findings, real: bool) -> Claim:
    outcomes: Outcomes = {}
    shown = []
    for x in AXES:
        spread = {}
        for dataset, found in _betas(findings, x).items():
            values = [found[_label(beta)] for beta in paper.BETAS]
            spread[dataset] = max(values) / min(values)
        outcomes[x] = [known(spread["covtype"] <= min(spread["news20"], spread["w8a"]), *spread.values())]
        shown.append(f"{x}: " + ", ".join(f"{name} {listed([value])}" for name, value in spread.items()))
    return on_both_axes(
        "Section 7.3",
        "l2-l1 penalty regression: the choice of beta matters less on covtype.",
        "slowest beta / fastest beta is smallest on covtype",
        outcomes,
        "; ".join(shown),
        "figures",
    )


def _apcg_worse(findings: Findings, real: bool) -> Claim:
    outcomes: Outcomes = {}
    shown = []
    for x in AXES:
        outcomes[x] = []
        for dataset, found in _betas(findings, x).items():
            times = [found["APCG"] / found[_label(beta)] for beta in paper.BETAS[:-1]]
            outcomes[x].append(known(min(times) >= 1, *times))
            shown.append(f"{dataset}, {x} {listed(times)}")
    return on_both_axes(
        "Section 7.2",
        "l2-l1 penalty regression: APCG (as published, from tau_0 = 1/n) is slightly worse than NU_ACDM^ns with beta "
        "from 0 to 0.8, on all datasets.",
        "APCG / (beta) >= 1 for beta = 0, .2, .4, .6, .8",
        outcomes,
        "; ".join(shown),
        "datasets",
    )


def _apcg_is_beta_1(findings: Findings, real: bool) -> Claim:
    ratios = [found["APCG"] / found[_label(1)] for found in _betas(findings, "passes").values()]
    outcomes = [known(0.8 <= ratio <= 1.25, ratio) for ratio in ratios]
    return Claim(
        "Section 7.3",
        "l2-l1 penalty regression: APCG behaves very similarly to NU_ACDM^ns with beta = 1.",
        "APCG / (beta = 1) between 0.8 and 1.25",
        f"{counted(outcomes)}. {listed(ratios)}: the recursions are the same, but APCG as published begins at tau_0 = "
        "1/n and NU_ACDM^ns at 1",
        verdict_of(outcomes),
    )


def _kaczmarz(findings: Findings, real: bool) -> Claim:
    charts = charts_in(findings, "system")
    every = {fast: Ratios(charts, "Kaczmarz", fast) for fast in ("ACDM", "NU_ACDM")}
    outcomes = [o for ratios in every.values() for o in ratios.test(lambda value, _: value > 1)["passes"]]
    return Claim(
        "Section 8",
        "Linear systems: ACDM and NU_ACDM outperform randomized Kaczmarz.",
        "Kaczmarz / ACDM and Kaczmarz / NU_ACDM > 1 (all rows are equally long: passes are iterations / n)",
        f"{counted(outcomes, 'comparisons')}. "
        + "; ".join(f"{fast} {listed(ratios.values['passes'])}" for fast, ratios in every.items()),
        verdict_of(outcomes),
    )


def _comparable(findings: Findings, real: bool) -> Claim:
    ratios = Ratios(charts_in(findings, "system")[:1], "ACDM", "NU_ACDM")
    gain = ratios.values["iterations"][0]
    return Claim(
        "Section 8",
        "Linear systems: NU_ACDM and ACDM are comparable at r = 100 %.",
        "iterations ACDM / NU_ACDM within 10 % of 1",
        f"{listed([gain])}; all L_i are equal there, and so are the probabilities and Theta of both methods",
        verdict_of(ratios.test(lambda value, _: abs(value - 1) <= 0.1)["iterations"]),
    )


def _small_share(findings: Findings, real: bool) -> Claim:
    charts = charts_in(findings, "system")
    ratios = Ratios(charts, "ACDM", "NU_ACDM")
    gains = ratios.values["iterations"]
    deep = [math.nan if shallow else gain for gain, shallow in zip(gains, ratios.shallow, strict=True)]
    outcomes = [known(b >= 0.97 * a, a, b) for a, b in pairwise(deep)]
    return Claim(
        "Section 8",
        "Linear systems: the gain over ACDM grows as r shrinks.",
        "iterations ACDM / NU_ACDM does not fall from each r to the next smaller one (3 % allowed)",
        f"r = 100, 80, 60, 40, 20, 10 %: {listed(gains)}; theory with the constants as run "
        f"{listed([as_run(chart) for chart in charts])}{_other_form(charts)}",
        verdict_of(outcomes),
    )


_RIDGE, _L2L1 = "Ridge regression", "l2-l1 penalty regression"

CHECKS: tuple[Callable[[Findings, bool], Claim], ...] = (
    statements.table_1,
    statements.table_2,
    statements.table_3,
    statements.linear_rate,
    statements.sublinear_rate,
    statements.norm_of_the_regulariser,
    statements.square_root_of_n,
    _by_theory("Figure 2", _RIDGE, "ridge"),
    _faster("Figure 2", f"{_RIDGE}: ACDM is faster than RCDM.", "ridge", "RCDM", "ACDM", 0.98),
    _faster("Figure 2", f"{_RIDGE}: NU_ACDM is faster than ACDM.", "ridge", "ACDM", "NU_ACDM", 0.98),
    _grows("Section 7.1", _RIDGE, "ridge"),
    _news20_most,
    _faster(
        "Section 7.1",
        f"{_RIDGE}: APCG*, though tuned, performs quite poorly on news20.",
        "ridge",
        "APCG*",
        "NU_ACDM",
        1.2,
        "news20",
    ),
    _primal,
    _by_theory("Figure 3", "Lasso", "lasso"),
    _by_theory("Figure 4", _L2L1, "l2l1"),
    _faster(
        "Section 7.2",
        f"{_L2L1}: NU_ACDM^ns has a clear advantage over ACDM on news20.",
        "l2l1",
        "ACDM",
        "NU_ACDM",
        1.1,
        "news20",
    ),
    _faster(
        "Section 7.2",
        f"{_L2L1}: NU_ACDM^ns has a clear advantage over RCDM on news20.",
        "l2l1",
        "RCDM",
        "NU_ACDM",
        1.1,
        "news20",
    ),
    _grows("Section 7.2", _L2L1, "l2l1"),
    _faster(
        "Section 7.2",
        f"{_L2L1}: on covtype ACDM is even slightly faster than NU_ACDM^ns.",
        "l2l1",
        "NU_ACDM",
        "ACDM",
        1.0,
        "covtype",
    ),
    _apcg_similar,
    _apcg_worse,
    _small_beta,
    _beta_covtype,
    _apcg_is_beta_1,
    _kaczmarz,
    _comparable,
    _small_share,
    _by_theory("Figure 6", "Linear systems", "system"),
)
