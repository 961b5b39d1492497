"""Claims of the paper's tables, theorems, remarks and footnotes; `claims` has those of its figures."""

from __future__ import annotations

import math

import numpy as np

from coordwise.experiments import curves, paper, sqrtn
from coordwise.experiments.charts import TIGHT
from coordwise.experiments.verdicts import (
    AXES,
    SHALLOW,
    Claim,
    Findings,
    Outcomes,
    charts_in,
    counted,
    known,
    listed,
    need,
    on_both_axes,
    verdict_of,
)

__all__ = [
    "linear_rate",
    "norm_of_the_regulariser",
    "square_root_of_n",
    "sublinear_rate",
    "table_1",
    "table_2",
    "table_3",
]


def table_1(findings: Findings, real: bool) -> Claim:
    """Bounds and measured iterations."""
    columns = need(findings, "table1").columns
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    ratios = [row["measured"] / row["bound"] for row in rows]
    outcomes: list[bool | None] = [
        ratio <= 2 if math.isfinite(ratio) else (False if row["tried"] > 2 * row["bound"] else None)
        for ratio, row in zip(ratios, rows, strict=True)
    ]
    finite = [ratio for ratio in ratios if math.isfinite(ratio)]
    spread = f"; measured / bound between {min(finite):.1e} and {max(finite):.2f}" if finite else ""
    left = sum(outcome is None for outcome in outcomes)
    return Claim(
        "Table 1",
        "The iteration bounds of all methods.",
        "measured iterations <= 2 times the bound (the constants hidden in O(.) are small)",
        f"{sum(outcome is True for outcome in outcomes)} of {len(rows)} cells{spread}"
        + (f"; of {left} the bound lies beyond the length of the runs" if left else ""),
        verdict_of(outcomes),
    )


def table_2(findings: Findings, real: bool) -> Claim:
    """The nine factors."""
    errors, equal = [], []
    for dataset in paper.DATASETS:
        columns = need(findings, f"table2-{dataset}").columns
        for printed, computed in zip(columns["printed"], columns["computed"], strict=True):
            errors.append(abs(computed / printed - 1))
            equal.append(round(computed, 5) == printed if real else errors[-1] <= 0.01)
    what = "equal to five digits" if real else "within 1 % (stand-ins are made for that)"
    return Claim(
        "Table 2",
        "The nine theoretical speed-up factors.",
        what,
        f"{sum(equal)} of 9 {what}; largest relative difference {max(errors):.1e}",
        verdict_of(equal),
    )


def table_3(findings: Findings, real: bool) -> Claim:
    """The six factors."""
    columns = need(findings, "table3").columns
    printed = [paper.TABLE_3[share] for share in columns["share"]]
    digits = [len(text.partition(".")[2]) for text in printed]
    equal = [round(c, d) == float(p) for c, p, d in zip(columns["computed"], printed, digits, strict=True)]
    return Claim(
        "Table 3",
        "The six theoretical speed-up factors for linear systems.",
        "equal to the printed digits for 300, 236, 167, 115, 61 and 25 long rows",
        f"{sum(equal)} of 6 equal",
        verdict_of(equal),
    )


def linear_rate(findings: Findings, real: bool) -> Claim:
    """Theorem 5.1."""
    outcomes, ratios = [], []
    for chart in [c for family in ("ridge", "lasso", "system") for c in charts_in(findings, family)]:
        tau = chart.facts["lines"]["NU_ACDM"]["tau"]
        fall, steps = curves.fall(chart, "NU_ACDM")
        ratios.append((fall + math.log(2)) / (-steps * math.log1p(-tau)) if steps else 0.0)
        outcomes.append(ratios[-1] >= 1)
    return Claim(
        "Theorem 5.1",
        "NU_ACDM converges linearly, by a factor of 1 - tau per iteration or better.",
        "distance after T iterations <= 2 (1 - tau)^T times that at the start, over the whole of each chart",
        f"{counted(outcomes)}. The exponent is {min(ratios):.2f} to {max(ratios):.2f} times that of the bound",
        verdict_of(outcomes),
    )


def sublinear_rate(findings: Findings, real: bool) -> Claim:
    """Theorem 6.1."""
    charts = [chart for family in ("l2l1", "beta") for chart in charts_in(findings, family)]
    shares = [
        curves.share_of_bound(chart, label)
        for chart in charts
        for label in curves.labels_of(chart)
        if "distance2" in chart.facts["lines"][label]
    ]
    outcomes: list[bool | None] = [share <= 1 for share in shares]
    return Claim(
        "Theorem 6.1",
        "NU_ACDM^ns: E[f(y_T)] - f* <= 2 |x_0 - x*|^2 S^2/(T + 1)^2 in the norm L_beta.",
        "mean distance over seeds <= the bound, at every record of each curve of figures 4 and 5",
        f"{counted(outcomes, 'curves')}. At most {max(shares):.2f} of the bound",
        verdict_of(outcomes),
    )


def norm_of_the_regulariser(findings: Findings, real: bool) -> Claim:
    """Remark 1.1 with footnote 6."""
    outcomes: Outcomes = {}
    shown = []
    for x in AXES:
        outcomes[x] = []
        for dataset, chart in zip(paper.DATASETS, charts_in(findings, "remark"), strict=True):
            shallow = curves.depth(chart, curves.labels_of(chart)) > SHALLOW
            times = [curves.speedup(chart, f"β = {beta:g}", "β = 0", x) for beta in (0.5, 1.0)]
            outcomes[x].append(None if shallow else known(min(times) >= 0.98, *times))
            shown.append(f"{dataset}, {x} {listed(times)}")
    return on_both_axes(
        "Remark 1.1",
        "Ridge regression: with an l2 regulariser, beta = 0 is better than beta > 0 (footnote 6: much better).",
        "(beta) / (beta = 0) >= 0.98 for beta = 0.5 and 1",
        outcomes,
        "For beta = 0.5, 1: " + "; ".join(shown),
        "datasets",
    )


def square_root_of_n(findings: Findings, real: bool) -> Claim:
    """Footnote 5."""
    charts = [need(findings, f"sqrtn-{n}") for n in sqrtn.SIZES]
    gains = {label: [float(np.median(curves.gains(c, label, "NU_ACDM"))) for c in charts] for label in ("ACDM", TIGHT)}
    outcomes: list[bool | None] = [g >= math.sqrt(n) / 4 for g, n in zip(gains["ACDM"], sqrtn.SIZES, strict=True)]
    slope = float(np.polyfit(np.log(sqrtn.SIZES), np.log(gains["ACDM"]), 1)[0])
    return Claim(
        "Footnote 5",
        "NU_ACDM is faster than ACDM by a factor of up to sqrt(n).",
        "iterations ACDM / NU_ACDM >= sqrt(n)/4 on a family of problems, for every n",
        f"n = {', '.join(f'{n:,}' for n in sqrtn.SIZES)}: {listed(gains['ACDM'])}, growing like n^{slope:.2f}; theory "
        f"{listed([sqrtn.factor(n) for n in sqrtn.SIZES])}. ACDM with tight constants: {listed(gains[TIGHT])}",
        verdict_of(outcomes),
    )
