"""The tables and figures by name: what each shows, and the units it is made of."""

from __future__ import annotations

from dataclasses import dataclass

from coordwise.experiments import charts, paper, sqrtn, systems, tables
from coordwise.experiments.curves import Y
from coordwise.experiments.units import Unit

__all__ = ["EXPERIMENTS", "Experiment"]


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper, or of a statement in it that has none there."""

    name: str
    title: str
    caption: str
    units: tuple[Unit, ...]
    columns: int = 3  # panels beside each other
    ys: tuple[Y, ...] = ("dual",)  # objectives whose distances are drawn

    @property
    def is_figure(self) -> bool:
        """Whether it has panels."""
        return not self.name.startswith("table")


_BOTH = (
    "ACDM takes the published count √(n ΣLᵢ/σ) at its word, Θ = n ΣLᵢ; “tight constants” is this library's own form, "
    "with Θ = max Lᵢ/pᵢ², the smallest that the proof allows."
)
_RIDGE = tuple(charts.charts_of("ridge"))

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        Experiment(
            "table1",
            "Table 1: iteration bounds, evaluated and measured",
            "Iterations until D(y) − min D ≤ ε (D(0) − min D) with ε = 0.001: the bounds of Table 1 without the "
            "constants hidden in O(·), and what it took (median over seeds). Strongly convex: the dual of ridge "
            "regression; otherwise the dual of ℓ2-ℓ1 penalty regression. The column β = 0.5 stands for β ∈ [0, 1]. "
            "The table prints √n/√σ₁ for ACDM and NU_ACDM at β = 1; S₀ = n makes it n/√σ₁. ACDM without strong "
            "convexity is that of footnote 3, by regularisation with σ halved again and again.",
            (tables.Table1(),),
        ),
        Experiment(
            "table2",
            "Table 2: theoretical speed-up of NU_ACDM over ACDM",
            "√(n ΣLᵢ) / Σ√Lᵢ with Lᵢ = 1/n + |aᵢ|²/(λn²): printed in the paper, and computed here.",
            tuple(tables.Table2(name) for name in paper.DATASETS),
        ),
        Experiment(
            "table3",
            "Table 3: theoretical speed-up for linear systems",
            "300 rows, some of norm 10 and the others of norm 1. The printed factors are those of 300, 236, 167, 115, "
            "61 and 25 long rows, so each row was made long with probability r. Beside them: the factor for exactly "
            "300 r long rows, and its distribution when rows are drawn at random (10,000 draws).",
            (tables.Table3(),),
        ),
        Experiment(
            "fig1",
            "Figure 1: distribution of the squared norms |aᵢ|²",
            "Rows per bin of |aᵢ|², on a logarithmic axis. Rows without entries are left out and counted in the title.",
            tuple(tables.Norms(name) for name in paper.DATASETS),
        ),
        Experiment(
            "fig2",
            "Figure 2: ridge regression, dual",
            "Distance of the dual objective to its minimum, D(y) − min D. RCDM, ACDM and NU_ACDM with β = 0 and "
            "σ = 1/n; APCG* with the fastest of several σ₁ spanning a factor of 50,000. " + _BOTH,
            _RIDGE,
        ),
        Experiment(
            "fig3",
            "Figure 3: Lasso through λ₂-smoothing",
            "Distance of the smoothed dual objective to its minimum, and that of the smoothed primal, which the "
            "caption of the paper (“objective”) may mean. The paper does not state λ and λ₂; here "
            "λ = λ_max/10, with λ_max = |A'b|_∞/n the smallest λ whose solution is 0, and λ₂ takes the values of λ in "
            "Table 2, so that its factors are the theoretical speed-ups of these charts too.",
            tuple(charts.charts_of("lasso")),
            ys=("dual", "primal"),
        ),
        Experiment(
            "fig4",
            "Figure 4: ℓ2-ℓ1 penalty regression",
            "Distance of the dual objective to its minimum, and that of the primal, which the caption of the paper "
            "(“training objective”) may mean. The dual is not strongly convex. NU_ACDM is NU_ACDM^ns with β = 0; ACDM "
            "is that of footnote 3, by regularisation with σ halved again and again. Its sampling in the recursion of "
            "NU_ACDM^ns is drawn beside it: nobody published that, and it shows what the sampling alone does. APCG is "
            "its form without strong convexity, which begins at τ₀ = 1/n and is also APPROX.",
            tuple(charts.charts_of("l2l1")),
            ys=("dual", "primal"),
        ),
        Experiment(
            "fig5",
            "Figure 5: the choice of β",
            "NU_ACDM^ns with six values of β, and APCG as published, from τ₀ = 1/n, on the dual of ℓ2-ℓ1 penalty "
            "regression. (From τ₀ = 1, APCG would be NU_ACDM^ns with β = 1 step by step.)",
            tuple(charts.charts_of("beta")),
        ),
        Experiment(
            "fig6",
            "Figure 6: linear systems Ax = b",
            "|x − x*|²/2 for 300 × 100 systems with a share r of the rows of norm 10 and the others of norm 1; a new "
            "system for every seed. ACDM and NU_ACDM know σ, the smallest eigenvalue of A'A. " + _BOTH,
            tuple(systems.charts()),
        ),
        Experiment(
            "fig7",
            "Figure 7: ridge regression, primal",
            "Distance of the primal objective to its minimum, P(w) − min P, in the runs of figure 2.",
            _RIDGE,
            ys=("primal",),
        ),
        Experiment(
            "remark11",
            "Remark 1.1: the norm for an ℓ2 regulariser",
            "The dual of ridge regression as in figure 2, with the smallest λ of each dataset: Algorithm 1 with β = 0, "
            "0.5 and 1, each with the strong convexity that the term |y|²/(2n) alone guarantees in its norm, "
            "σ_β = min Lᵢ^(−β)/n (footnote 6).",
            tuple(charts.charts_of("remark")),
        ),
        Experiment(
            "sqrtn",
            "Footnote 5: a gain of √n",
            "How many times as many iterations as NU_ACDM the two forms of ACDM need, on duals of ridge regression "
            "with nLᵢ = 100 (n², n/4, 1, …, 1) and nσ = 1: median and range over seeds, a new problem for every seed. "
            "The line is the theoretical factor √(n ΣLᵢ) / Σ√Lᵢ, which approaches √n/2.",
            tuple(sqrtn.charts()),
            columns=1,
        ),
    )
}
