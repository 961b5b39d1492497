"""The figures as SVG and PNG: whole for files, panel by panel for the page."""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from coordwise.experiments import curves
from coordwise.experiments.catalogue import Experiment
from coordwise.experiments.charts import TIGHT
from coordwise.experiments.store import write_whole
from coordwise.experiments.units import Finding, Unit
from coordwise.plotting import Band, draw_bands, few_log_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["View", "panels_of", "rendered", "save_figure", "style", "views_of"]

PANEL = (4.0, 3.0)  # inches
GAIN = "NU_ACDM against ACDM"


def save_figure(experiment: Experiment, findings: Mapping[str, Finding], folder: Path) -> list[Path]:
    """All panels in one picture per view: dual or primal distances, against passes or against iterations / n."""
    written = []
    for view in views_of(experiment):
        drawings = _drawings(experiment, findings, view)
        rows = -(-len(drawings) // experiment.columns)
        with style() as new_figure:
            figure = new_figure(max(PANEL[0] * experiment.columns, 4.6), PANEL[1] * rows + 0.4)
            width, height = figure.get_size_inches()
            figure.subplots_adjust(
                left=0.9 / width,
                right=1 - 0.15 / width,
                bottom=0.5 / height,
                top=1 - (0.95 if len(drawings) > 1 else 0.7) / height,
                wspace=0.34,
                hspace=0.34,
            )
            grid = figure.subplots(rows, experiment.columns, squeeze=False).reshape(-1)
            for panel, (_, draw) in zip(grid, drawings, strict=True):
                draw(panel)
            _shared_legend(figure, grid[0], height)
            figure.suptitle(experiment.title + view.title, y=1 - 0.12 / height, va="top")
            for kind in ("svg", "png"):
                path = folder / f"{experiment.name}{view.suffix}.{kind}"
                write_whole(path, rendered(figure, kind))
                written.append(path)
    return written


def panels_of(experiment: Experiment, findings: Mapping[str, Finding], view: View) -> list[tuple[str, bytes]]:
    """Title and SVG of every panel, each with its own legend."""
    found = []
    for title, draw in _drawings(experiment, findings, view):
        with style() as new_figure:
            figure = new_figure(*PANEL)
            figure.subplots_adjust(left=0.215, right=0.97, bottom=0.155, top=0.91)
            draw(panel := figure.subplots())
            labels = panel.get_legend_handles_labels()
            if labels[0]:
                panel.legend(labels[0], [textwrap.fill(text, 25) for text in labels[1]], fontsize=7, loc="best")
            found.append((title, rendered(figure, "svg")))
    return found


@dataclass(frozen=True)
class View:
    """One way to draw a figure."""

    x: curves.X
    y: curves.Y
    suffix: str  # of the files
    title: str = ""
    against: str = ""


def views_of(experiment: Experiment) -> list[View]:
    """Every way in which a figure is drawn, the paper's first."""
    if experiment.name == "fig1":
        return [View("passes", "dual", "", against="the norms")]
    if experiment.name == "sqrtn":
        return [View("iterations", "dual", "", against="n")]
    found = []
    for y in experiment.ys:
        second = y != experiment.ys[0]
        for x in ("passes", "iterations"):
            suffix = ("-primal" if second else "") + ("-iterations" if x == "iterations" else "")
            against = "passes" if x == "passes" else "iterations / n"
            title = f" ({y} distance)" if len(experiment.ys) > 1 else ""
            found.append(View("passes" if x == "passes" else "iterations", y, suffix, title, against))
    return found


def _drawings(
    experiment: Experiment, findings: Mapping[str, Finding], view: View
) -> list[tuple[str, Callable[[Axes], None]]]:
    """Title of every panel, and what draws it."""
    if experiment.name == "sqrtn":
        found = [findings[unit.key] for unit in experiment.units]
        return [(GAIN, lambda panel: _draw_gains(panel, found))]
    return [
        (unit.title, partial(_draw, unit=unit, finding=findings[unit.key], experiment=experiment, view=view))
        for unit in experiment.units
    ]


def _shared_legend(figure: Figure, panel: Axes, height: float) -> None:
    handles, labels = panel.get_legend_handles_labels()
    if handles:
        if len(figure.axes) == 1:
            panel.legend(handles, labels, loc="best")
            return
        place = (0.5, 1 - 0.33 / height)
        figure.legend(handles, labels, ncols=len(labels), handlelength=2.4, loc="upper center", bbox_to_anchor=place)


@contextmanager
def style() -> Any:
    """A maker of figures; no pyplot, so no window system and nothing global."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    settings: Any = {
        "font.size": 9,
        "axes.titlesize": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
        "legend.fontsize": 8,
        "svg.fonttype": "none",
        "svg.hashsalt": "coordwise",
        "path.simplify": True,
    }
    with mpl.rc_context(settings):
        yield lambda width, height: Figure(figsize=(width, height))


def rendered(figure: Figure, kind: str) -> bytes:
    """The figure as a file of that kind."""
    out = io.BytesIO()
    metadata = {"Date": None} if kind == "svg" else {"Software": None}
    figure.savefig(out, format=kind, dpi=110, metadata=metadata)
    content = out.getvalue()
    # A hundredth of a point is enough, but what stands between tags is text: titles keep their digits.
    return re.sub(rb">[^<]*<|(\d\.\d\d)\d+", lambda m: m[1] or m[0], content) if kind == "svg" else content


def _draw(panel: Axes, unit: Unit, finding: Finding, experiment: Experiment, view: View) -> None:
    if experiment.name == "fig1":
        _draw_norms(panel, unit, finding)
        return
    floor = curves.floor_of(finding, view.y)
    bands = {
        label: curves.band(curves.curves_of(finding, label, view.x, view.y)) for label in curves.labels_of(finding)
    }
    end = min(float(band.x[-1]) for band in bands.values())  # as far as all methods have gone
    bands = {label: _upto(band, end) for label, band in bands.items()}
    shades = [label for label in bands if label.startswith("β")]
    draw_bands(panel, {label: _ended(band, floor) for label, band in bands.items()}, floor=floor, ordered=shades)
    panel.set_xlim(0, end)
    start = max(float(band.median[0]) for band in bands.values())
    if panel.get_ylim()[1] > 100 * start:  # a method that diverges leaves the picture
        panel.set_ylim(top=10 * start)
        few_log_ticks(panel.yaxis)
    panel.set_title(unit.title)
    panel.set_xlabel("passes (entries touched / nnz)" if view.x == "passes" else "iterations / n")
    what = "½|x − x*|²" if experiment.name == "fig6" else "P(w) − min P" if view.y == "primal" else "D(y) − min D"
    panel.set_ylabel(what)


def _draw_gains(panel: Axes, found: list[Finding]) -> None:
    """Footnote 5: the gains over n on logarithmic axes, with the predicted line."""
    n = [finding.facts["n"] for finding in found]
    panel.plot(
        n, [f.facts["factor"] for f in found], color="#000000", linewidth=1.2, label="√(n ΣLᵢ) / Σ√Lᵢ, predicted"
    )
    for label, colour, marker in (("ACDM", "#D55E00", "o"), (TIGHT, "#E69F00", "x")):
        gains = [curves.gains(finding, label, "NU_ACDM") for finding in found]
        middle = np.array([np.median(g) for g in gains])
        spread = np.abs(np.array([(min(g), max(g)) for g in gains]).T - middle)
        panel.errorbar(n, middle, yerr=spread, color=colour, marker=marker, linestyle=":", capsize=3, label=label)
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xticks(n, [f"{k:,}" for k in n])
    panel.set_yticks(ticks := [2, 5, 10, 20, 50], [str(tick) for tick in ticks])
    panel.minorticks_off()
    panel.set_ylim(2, 60)
    panel.grid(alpha=0.25, linewidth=0.6)
    panel.set_title(GAIN)
    panel.set_xlabel("n")
    panel.set_ylabel("iterations, ACDM / NU_ACDM")


def _upto(band: Band, end: float) -> Band:
    """The band up to x = end."""
    keep = band.x <= end
    return Band(band.x[keep], band.median[keep], band.low[keep], band.high[keep])


def _ended(band: Band, floor: float) -> Band:
    """The band up to where its median reaches the floor."""
    if not np.any(at := band.median <= floor * (1 + 1e-9)):
        return band
    end = int(np.argmax(at)) + 1
    return Band(band.x[:end], band.median[:end], band.low[:end], band.high[:end])


def _draw_norms(panel: Axes, unit: Unit, finding: Finding) -> None:
    low, high = np.array(finding.columns["from"]), np.array(finding.columns["to"])
    panel.bar(low, finding.columns["rows"], width=high - low, align="edge", color="#0072B2")
    panel.set_xscale("log")
    panel.margins(x=0.02)
    few_log_ticks(panel.xaxis)
    zero = finding.facts["zero_rows"]
    panel.set_title(unit.title + (f" (and {zero:,} rows of norm 0)" if zero else ""))
    panel.set_xlabel("|aᵢ|²")
    panel.set_ylabel("rows")
    panel.grid(axis="y", alpha=0.25, linewidth=0.6)
    panel.set_axisbelow(True)
