"""What a claim is, and how readings of several charts become its verdict.

The paper counts passes and does not say whether n iterations are one; here a claim about speed is tested on both axes,
entries touched / nnz and iterations / n, and holds if it does on both.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from coordwise.experiments import curves, paper
from coordwise.experiments.units import Finding

__all__ = [
    "AXES",
    "SHALLOW",
    "Claim",
    "Findings",
    "Missing",
    "Outcomes",
    "Ratios",
    "Verdict",
    "charts_in",
    "counted",
    "known",
    "listed",
    "need",
    "on_both_axes",
    "verdict_of",
]

Findings = Mapping[str, Finding]
Outcomes = dict[curves.X, list[bool | None]]
AXES: tuple[curves.X, ...] = ("passes", "iterations")
SHALLOW = 0.1  # ratios read where a tenth of the first distance is left, or more, say nothing


class Verdict(enum.StrEnum):
    """Whether a claim holds here."""

    HOLDS = "holds"
    PARTLY = "holds in part"
    FAILS = "does not hold"
    OPEN = "undecided"


@dataclass(frozen=True)
class Claim:
    """One claim: where the paper makes it, the test, what was measured, and the verdict."""

    source: str
    text: str
    test: str
    measured: str
    verdict: Verdict


class Missing(Exception):
    """A chart that a claim needs has not been computed."""


def need(findings: Findings, key: str) -> Finding:
    """The finding of that key; Missing if there is none."""
    if key not in findings:
        raise Missing(key)
    return findings[key]


def charts_in(findings: Findings, family: str, dataset: str | None = None) -> list[Finding]:
    """The charts of a family, by dataset and lambda, or by r."""
    if family == "system":
        return [need(findings, f"system-{round(100 * share)}") for share in paper.SHARES]
    names = paper.DATASETS if dataset is None else (dataset,)
    keys = [(name, lam) for name in names for lam in paper.LAMBDAS[name][: 1 if family in ("beta", "remark") else 3]]
    return [need(findings, f"{family}-{name}-{lam:g}") for name, lam in keys]


def verdict_of(outcomes: Sequence[bool | None]) -> Verdict:
    """The verdict from single outcomes; None is one that could not be read."""
    read = [outcome for outcome in outcomes if outcome is not None]
    if not read:
        return Verdict.OPEN
    if all(read):
        return Verdict.HOLDS
    return Verdict.PARTLY if any(read) else Verdict.FAILS


def known(outcome: bool, *values: float) -> bool | None:
    """The outcome, unless one of the numbers it rests on is none."""
    return None if any(math.isnan(value) for value in values) else outcome


def listed(values: Sequence[float]) -> str:
    """Ratios for the reader; a dash for what could not be read."""
    return ", ".join("–" if math.isnan(value) else f"{value:.2f}" for value in values)


def counted(outcomes: Sequence[bool | None], what: str = "charts") -> str:
    """How many outcomes are as claimed, of how many."""
    open_ = sum(outcome is None for outcome in outcomes)
    return f"{sum(outcome is True for outcome in outcomes)} of {len(outcomes)} {what}" + (
        f" ({open_} too shallow to tell)" if open_ else ""
    )


class Ratios:
    """How many times sooner `fast` is down than `slow`, chart by chart, on both axes."""

    def __init__(self, charts: Sequence[Finding], slow: str, fast: str) -> None:
        self.values = {x: [curves.speedup(chart, slow, fast, x) for chart in charts] for x in AXES}
        self.shallow = [curves.depth(chart, (slow, fast)) > SHALLOW for chart in charts]

    def test(self, holds: Callable[[float, int], bool]) -> Outcomes:
        """`holds(ratio, k)` for every chart k on each axis; None where the ratio says nothing."""
        return {
            x: [
                None if shallow or math.isnan(value) else holds(value, k)
                for k, (value, shallow) in enumerate(zip(values, self.shallow, strict=True))
            ]
            for x, values in self.values.items()
        }

    def __str__(self) -> str:
        return "; ".join(f"{x} {listed(values)}" for x, values in self.values.items())


def on_both_axes(
    source: str,
    text: str,
    test: str,
    outcomes: Outcomes,
    numbers: object,
    what: str = "charts",
) -> Claim:
    """A claim about speed from its outcomes on both axes."""
    counts = ", ".join(f"{x}: {counted(found, what)}" for x, found in outcomes.items())
    verdict = verdict_of([outcome for found in outcomes.values() for outcome in found])
    return Claim(source, text, test, f"{counts}. {numbers}", verdict)
