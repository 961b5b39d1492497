"""The figures as SVG and PNG: whole for files, panel by panel for the page."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from coordwise.experiments import curves
from coordwise.experiments.catalogue import Experiment
from coordwise.experiments.store import write_whole
from coordwise.experiments.units import Finding, Unit
from coordwise.plotting import Band, draw_bands, few_log_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["axes_of", "panel_svg", "rendered", "save_figure", "style"]

PANEL = (4.0, 3.0)  # inches


def save_figure(experiment: Experiment, findings: Mapping[str, Finding], folder: Path) -> list[Path]:
    """All panels in one picture, against passes and (for charts of runs) against iterations / n."""
    written = []
    for x in axes_of(experiment):
        rows = -(-len(experiment.units) // experiment.columns)
        with style() as new_figure:
            figure = new_figure(PANEL[0] * experiment.columns, PANEL[1] * rows + 0.4)
            width, height = figure.get_size_inches()
            figure.subplots_adjust(
                left=0.9 / width,
                right=1 - 0.15 / width,
                bottom=0.5 / height,
                top=1 - 0.7 / height,
                wspace=0.34,
                hspace=0.34,
            )
            grid = figure.subplots(rows, experiment.columns, squeeze=False)
            for k, unit in enumerate(experiment.units):
                panel = grid[k // experiment.columns][k % experiment.columns]
                _draw(panel, unit, findings[unit.key], experiment, x, legend=k == 0)
            figure.suptitle(experiment.title)
            name = experiment.name + ("-iterations" if x == "iterations" else "")
            for kind in ("svg", "png"):
                path = folder / f"{name}.{kind}"
                write_whole(path, rendered(figure, kind))
                written.append(path)
    return written


def panel_svg(unit: Unit, finding: Finding, experiment: Experiment, x: curves.X) -> bytes:
    """One panel as SVG."""
    with style() as new_figure:
        figure = new_figure(*PANEL)
        figure.subplots_adjust(left=0.215, right=0.97, bottom=0.155, top=0.91)
        _draw(figure.subplots(), unit, finding, experiment, x, legend=True)
        return rendered(figure, "svg")


def axes_of(experiment: Experiment) -> tuple[curves.X, ...]:
    """What a figure is drawn against."""
    return ("passes",) if experiment.name == "fig1" else ("passes", "iterations")


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


def _draw(panel: Axes, unit: Unit, finding: Finding, experiment: Experiment, x: curves.X, *, legend: bool) -> None:
    if experiment.name == "fig1":
        _draw_norms(panel, unit, finding)
        return
    floor = curves.floor_of(finding, experiment.y)
    bands = {
        label: curves.band(curves.curves_of(finding, label, x, experiment.y)) for label in curves.labels_of(finding)
    }
    end = min(float(band.x[-1]) for band in bands.values())  # as far as all methods have gone
    bands = {label: _upto(band, end) for label, band in bands.items()}
    shades = [label for label in bands if label.startswith("β")]
    draw_bands(panel, {label: _ended(band, floor) for label, band in bands.items()}, floor=floor, ordered=shades)
    panel.set_xlim(0, end)
    panel.set_title(unit.title)
    panel.set_xlabel("passes (entries touched / nnz)" if x == "passes" else "iterations / n")
    what = "½|x − x*|²" if experiment.name == "fig6" else "P(w) − min P" if experiment.y == "primal" else "D(y) − min D"
    panel.set_ylabel(what)
    if legend:
        panel.legend(ncols=2 if len(bands) > 4 else 1, loc="best")


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
