"""`coordwise reproduce`: the command line of the experiments."""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from coordwise.datasets import Dataset
from coordwise.experiments.catalogue import EXPERIMENTS
from coordwise.experiments.run import Outcome, reproduce
from coordwise.experiments.settings import Settings
from coordwise.experiments.units import Unit
from coordwise.experiments.verdicts import Verdict

__all__ = ["add_reproduce"]


def add_reproduce(commands: Any) -> None:
    """`coordwise reproduce`."""
    parser = commands.add_parser(
        "reproduce",
        help="compute the paper's tables and figures",
        description="Compute tables and figures of the paper and write a page about them. Finished charts are kept: "
        "the same command goes on where it was interrupted.",
    )
    parser.add_argument(
        "names", nargs="*", default=["all"], metavar="NAME", help=f"{', '.join(EXPERIMENTS)} or all (default)"
    )
    parser.add_argument("--out", default="reproduction", metavar="DIR", help="where to write (default: reproduction)")
    parser.add_argument(
        "--data", metavar="DIR", help="folder with the datasets (default: $COORDWISE_DATA, then others)"
    )
    parser.add_argument(
        "--stand-ins",
        type=float,
        metavar="SHARE",
        help="use generated data even if the real ones are there, with this share of their rows (1 for all)",
    )
    length = parser.add_mutually_exclusive_group()
    length.add_argument(
        "--quick", action="store_true", default=None, help="fewer seeds and shorter runs, kept apart in DIR/quick"
    )
    length.add_argument("--full", dest="quick", action="store_false", help="in full, even without real data")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="the first seed (default: 0)")
    parser.add_argument("--seeds", type=int, metavar="K", help="how many seeds (default: 5, or 2 if quick)")
    parser.add_argument("--jobs", type=int, metavar="J", help="threads (default: one per processor)")
    parser.add_argument("--force", action="store_true", help="replace results of other seeds or data in DIR")
    parser.set_defaults(run=run)


_OPTIONS = {"n_jobs=": "--jobs ", "stand_ins=": "--stand-ins ", "seeds=": "--seeds ", "seed=": "--seed "}
_OPTIONS |= {"folder=": "--data ", "data=": "--data ", "out=": "--out ", "force=True": "--force", "names=": "NAME "}


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns its exit code."""
    terminal = sys.stderr.isatty() and importlib.util.find_spec("rich") is not None
    report = _Terminal() if terminal else _Lines()
    try:
        outcome = reproduce(
            arguments.names,
            out=arguments.out,
            data=arguments.data,
            stand_ins=arguments.stand_ins,
            quick=arguments.quick,
            seed=arguments.seed,
            seeds=arguments.seeds,
            n_jobs=arguments.jobs,
            force=arguments.force,
            report=report,
        )
    except (ValueError, OSError) as error:
        text = str(error)
        for word, option in _OPTIONS.items():
            text = text.replace(word, option)
        raise (OSError if isinstance(error, OSError) else ValueError)(text) from None
    except KeyboardInterrupt:
        report.close()
        kept = f"{report.done} of {report.units} charts and tables are stored in {report.folder}. "
        print(f"Interrupted. {kept * bool(report.units)}The same command goes on from there.", file=sys.stderr)
        return 130
    finally:
        report.close()
    _summarise(outcome)
    return 0


class _Lines:
    """Progress as lines, for logs."""

    def __init__(self) -> None:
        self.begun = time.perf_counter()
        self.folder = Path()
        self.units = self.done = 0
        self.work = self.worked = 0.0

    def say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def loading(self, name: str) -> None:
        """See `Reporter`."""

    def loaded(self, data: Dataset) -> None:
        """See `Reporter`."""
        rows, columns = data.A.shape
        self.say(f"{data.name}: {rows:,} x {columns:,}, {data.A.nnz:,} entries; {data.origin}")

    def begin(self, settings: Settings, folder: Path, work: float, units: int, stored: int) -> None:
        """See `Reporter`."""
        self.folder = folder
        kind = "a quick look" if settings.quick else "in full"
        kept = f"; {stored} kept from an earlier run" if stored else ""
        self.work, self.units, self.begun = work, units + stored, time.perf_counter()
        self.done = stored
        what = "chart or table" if units == 1 else "charts and tables"
        seeds = f"{len(settings.seeds)} seed{'s' * (len(settings.seeds) != 1)}"
        self.say(f"{units} {what} to compute, {kind}, {seeds}{kept}, in {folder}")

    def advance(self, work: float, running: Sequence[str]) -> None:
        """See `Reporter`."""
        self.worked = work

    def finished(self, unit: Unit, seconds: float) -> None:
        """See `Reporter`."""
        self.done += 1
        spent = time.perf_counter() - self.begun
        left = spent * max(self.work / self.worked - 1, 0) if self.worked > 0.02 * self.work else 0.0
        tail = f", about {_clock(left)} left" if left >= 1 else ""
        self.say(f"[{self.done}/{self.units}] {unit.key} in {seconds:.1f} s{tail}")

    def writing(self) -> None:
        """See `Reporter`."""
        self.say("drawing figures and the page")

    def close(self) -> None:
        """Nothing is open."""


class _Terminal(_Lines):
    """Progress as one live line, with the time left."""

    def __init__(self) -> None:
        super().__init__()
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
        from rich.table import Column

        self.console = Console(stderr=True, highlight=False)
        self.bar = Progress(
            SpinnerColumn(),
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            TimeElapsedColumn(table_column=Column(no_wrap=True, min_width=7)),
            TextColumn("{task.fields[left]}", table_column=Column(no_wrap=True)),
            TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)),
            console=self.console,
            transient=True,
        )
        self.task = self.bar.add_task("", total=None, left="")
        self.bar.start()

    def say(self, text: str) -> None:
        self.console.print(text, markup=False)

    def loading(self, name: str) -> None:
        """See `Reporter`."""
        self.bar.update(self.task, description=f"reading {name}")

    def begin(self, settings: Settings, folder: Path, work: float, units: int, stored: int) -> None:
        """See `Reporter`."""
        super().begin(settings, folder, work, units, stored)
        self.bar.reset(self.task, total=max(work, 1.0), left="")

    def advance(self, work: float, running: Sequence[str]) -> None:
        """See `Reporter`."""
        super().advance(work, running)
        spent = time.perf_counter() - self.begun
        known = work > 0.02 * self.work
        left = f"{_clock(spent * max(self.work / work - 1, 0))} left" if known else ""
        text = f"[{self.done}/{self.units}] {', '.join(running)}"
        self.bar.update(self.task, completed=min(work, self.work), left=left, description=text)

    def finished(self, unit: Unit, seconds: float) -> None:
        """See `Reporter`."""
        self.done += 1

    def writing(self) -> None:
        """See `Reporter`."""
        self.bar.remove_task(self.task)
        self.task = self.bar.add_task("drawing figures and the page", total=None, left="")

    def close(self) -> None:
        """Take the live line away."""
        self.bar.stop()


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes} min {seconds:02.0f} s" if minutes else f"{seconds:.0f} s"


def _summarise(outcome: Outcome) -> None:
    """The claims and their verdicts, and where the page is."""
    from rich.console import Console
    from rich.table import Table

    if outcome.claims:
        table = Table(box=None, pad_edge=False, show_edge=False)
        real = all(data.real for data in outcome.data.values())
        for heading in ("where", "the paper says", "here" if real else "on stand-ins"):
            table.add_column(heading, overflow="fold")
        colours = {Verdict.HOLDS: "green", Verdict.PARTLY: "yellow", Verdict.FAILS: "red", Verdict.OPEN: "default"}
        for claim in outcome.claims:
            verdict = f"[{colours[claim.verdict]}]{claim.verdict.value}[/]"
            table.add_row(claim.source, claim.text, verdict)
        Console(highlight=False).print(table)
    stand_ins = [data.name for data in outcome.data.values() if not data.real]
    if stand_ins:
        print(
            f"Generated stand-ins took the place of {', '.join(stand_ins)}; `coordwise data get all` fetches the data."
        )
    if outcome.settings.quick:
        print("This was a quick look, apart from the full run: `coordwise reproduce` with the data, or --full without.")
    print(f"{outcome.page} ({_clock(outcome.seconds)})")
