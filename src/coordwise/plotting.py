"""Pictures of runs (needs matplotlib: the extra ``plot``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from coordwise.extras import require
from coordwise.results import Result
from coordwise.validation import FloatArray, check_choice, check_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Band", "draw_bands", "few_log_ticks", "plot_convergence"]

# Okabe and Ito's colours, which colour-blind readers can tell apart, each with a dash of its own for grey prints.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
_DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (6, 1.5, 1.5, 1.5)), (0, (3, 1)), "-", "--", ":")
_FIXED = {
    "NU_ACDM": 0,
    "ACDM": 1,
    "ACDM, tight constants": 4,
    "ACDM sampling in Algorithm 2, unpublished": 4,
    "APCG*": 2,
    "APCG": 2,
    "RCDM": 3,
    "Kaczmarz": 3,
}


@dataclass(frozen=True)
class Band:
    """A quantity over several runs: median, smallest and largest value at each x."""

    x: FloatArray
    median: FloatArray
    low: FloatArray
    high: FloatArray


def plot_convergence(
    results: Mapping[str, Result] | Result,
    *,
    y: Literal["gap", "value", "primal"] = "gap",
    x: Literal["passes", "iterations", "seconds"] = "passes",
    minimum: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the history of one or several runs on a logarithmic axis.

    Parameters
    ----------
    results : Result, or mapping from labels to results
        As `coordwise.solve` returns them, for one output.
    y : {"gap", "value", "primal"}, default "gap"
        The certified quantity, or the distance of the objective (or of P(w)) to `minimum`.
    x : {"passes", "iterations", "seconds"}, default "passes"
    minimum : float, optional
        Needed for "value" and "primal": what to subtract.
    ax : matplotlib Axes, optional
        Drawn into; a new figure by default.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ImportError
        Without matplotlib.
    TypeError, ValueError
        Naming the argument, what was wrong and what would work.

    Examples
    --------
    >>> import coordwise as cw
    >>> from coordwise.plotting import plot_convergence
    >>> runs = {m: cw.solve(problem.dual(), m, record_growth=0) for m in ("rcdm", "nu_acdm")}  # doctest: +SKIP
    >>> plot_convergence(runs).figure.savefig("runs.png")  # doctest: +SKIP
    """
    check_choice("y", y, ("gap", "value", "primal"))
    check_choice("x", x, ("passes", "iterations", "seconds"))
    if not isinstance(results, (Result, Mapping)) or (isinstance(results, Mapping) and not results):
        raise TypeError("results must be a Result, or a mapping from labels to at least one.")
    named = {results.method: results} if isinstance(results, Result) else dict(results)
    for label, result in named.items():
        if not isinstance(result, Result):
            raise TypeError(f"results[{label!r}] must be a coordwise Result, not {type(result).__name__}.")
        if result.history.gap.ndim != 1:
            raise ValueError(f"results[{label!r}] has several outputs; plot runs with b of shape (n,).")
    if y != "gap" and minimum is None:
        raise ValueError(f"y={y!r} is drawn as a distance; give minimum=..., the value to subtract.")
    below = 0.0 if y == "gap" else check_number("minimum", minimum)
    if ax is None:
        require("matplotlib", extra="plot", wanted_by="coordwise.plotting")
        import matplotlib.pyplot as plt

        _, ax = plt.subplots(layout="constrained")
    bands = {}
    for label, result in named.items():
        values = getattr(result.history, y) - below
        values = np.where(values > 0, values, np.nan)
        bands[label] = Band(getattr(result.history, x), values, values, values)
    draw_bands(ax, bands)
    ax.set_xlabel({"passes": "passes (entries touched / nnz)", "seconds": "seconds, without measuring"}.get(x, x))
    ax.set_ylabel(next(iter(named.values())).certificate if y == "gap" else f"{y} − minimum")
    ax.legend()
    return ax


def draw_bands(ax: Axes, bands: Mapping[str, Band], *, floor: float | None = None, ordered: Sequence[str] = ()) -> None:
    """Medians as lines and ranges as shades, on a logarithmic axis; what lies below the floor is cut off.

    Labels in `ordered` (values of one parameter, say) get the colours of a scale, in their order.
    """
    scale = _scale(len(ordered))
    taken = {_FIXED[label] for label in bands if label in _FIXED}
    free = [k for k in range(len(_COLOURS)) if k not in taken]
    for label, band in bands.items():
        if label in ordered:
            colour, dash = scale[ordered.index(label)], "-"
        else:
            k = _FIXED[label] if label in _FIXED else free.pop(0) if free else 0
            colour, dash = _COLOURS[k], _DASHES[k]
        # solid lines below, so that dashes on top of them show
        ax.plot(band.x, band.median, color=colour, linestyle=dash, label=label, linewidth=1.6, zorder=2 + (dash != "-"))
        if np.any(band.high > band.low):
            ax.fill_between(band.x, band.low, band.high, color=colour, alpha=0.2, linewidth=0)
    ax.set_yscale("log")
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.margins(x=0)
    if floor is not None and ax.get_ylim()[0] < floor:
        ax.set_ylim(bottom=floor)
    few_log_ticks(ax.yaxis)


def few_log_ticks(axis: Any) -> None:
    """At most seven labels on a logarithmic axis, and two or three per power of ten where there are few of those."""
    from matplotlib.ticker import LogFormatterSciNotation, LogLocator, NullLocator

    low, high = axis.get_view_interval()
    span = high / low if low > 0 else np.inf
    steps = (1.0, 2.0, 5.0) if span < 8 else (1.0, 3.0) if span < 100 else (1.0,)
    axis.set_major_locator(LogLocator(subs=steps, numticks=7 if span >= 100 else None))
    axis.set_major_formatter(LogFormatterSciNotation(labelOnlyBase=False, minor_thresholds=(9, 9)))
    axis.set_minor_locator(NullLocator())


def _scale(count: int) -> list[Any]:
    from matplotlib import colormaps

    return [colormaps["viridis"](0.92 * k / max(count - 1, 1)) for k in range(count)]
