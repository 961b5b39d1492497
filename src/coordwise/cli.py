"""The command `coordwise`."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from coordwise import __version__
from coordwise.bench.command import add_bench
from coordwise.datasets import (
    CATALOGUE,
    CacheWarning,
    Dataset,
    DownloadError,
    available,
    cache_folder,
    convert,
    load,
)
from coordwise.datasets.conversion import CHUNK_BYTES
from coordwise.datasets.writing import partial_of
from coordwise.experiments.command import add_reproduce


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line (that of the process by default) and return its exit code.

    0: done; 1: failed, with a sentence on standard error; 2: wrong usage (argparse exits itself); 130: Ctrl-C.
    """
    args = build_parser().parse_args(argv)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            warnings.simplefilter("always", CacheWarning)
            code = int(args.run(args))
            sys.stdout.flush()
            return code
    except KeyboardInterrupt:
        _say("Interrupted.")
        return 130
    except BrokenPipeError:  # the reader of our output left, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (OSError, ValueError, MemoryError) as error:
        _say(_sentence(error))
        return 1


def build_parser() -> argparse.ArgumentParser:
    """The parser; a subcommand sets `run`, which takes the parsed arguments and returns the exit code."""
    parser = argparse.ArgumentParser(prog="coordwise", description="Accelerated randomized coordinate descent.")
    parser.add_argument("--version", action="version", version=f"coordwise {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    add_reproduce(commands)
    add_bench(commands)
    add_data(commands)
    return parser


def add_data(commands: Any) -> None:
    """`coordwise data`: list, get, convert, path."""
    data = commands.add_parser("data", help="datasets", description="The paper's datasets, and data of your own.")
    actions = data.add_subparsers(metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="what there is, and where")
    listing.add_argument(
        "--data", metavar="DIR", help="the folder to look in (default: COORDWISE_DATA, then the cache)"
    )
    listing.set_defaults(run=list_data)
    get = actions.add_parser("get", help="read or download a dataset, and keep it in the cache")
    get.add_argument("name", metavar="NAME", choices=[*CATALOGUE, "all"], help=f"{', '.join(CATALOGUE)} or all")
    get.add_argument("--data", metavar="DIR", help="a folder with the svmlight files, in place of a download")
    get.set_defaults(run=get_data)
    add_convert(actions)
    path = actions.add_parser("path", help="print the folder of the cache")
    path.set_defaults(run=print_path)


def add_convert(actions: Any) -> None:
    """`coordwise data convert`."""
    convert = actions.add_parser(
        "convert",
        help="write data as a folder that may be larger than memory",
        description="Write data as a folder of memory-mapped chunks. A conversion that was interrupted goes on from "
        "its last complete chunk when the same command is given again. Exit codes: 0 done, 1 failed (one sentence "
        "says why), 2 wrong usage, 130 interrupted.",
    )
    convert.add_argument(
        "source",
        metavar="SRC",
        help="svmlight text (also compressed), .npz, .npy, .mtx, .csv, .parquet, .arrow or .feather",
    )
    convert.add_argument("to", metavar="DST", help="the folder to write")
    convert.add_argument("--target", metavar="COL", help="the column with the targets, or a .npy file")
    convert.add_argument("--weight", metavar="COL", help="the column with the sample weights, or a .npy file")
    convert.add_argument(
        "--categorical", metavar="COL", nargs="+", default=[], help="columns that become one feature per value"
    )
    convert.add_argument(
        "--chunk-bytes", metavar="B", type=int, default=CHUNK_BYTES, help=f"size of a chunk (default: {CHUNK_BYTES})"
    )
    convert.set_defaults(run=convert_data)


def convert_data(args: argparse.Namespace) -> int:
    """`coordwise data convert`."""
    options = {name: getattr(args, name) for name in ("target", "weight", "categorical", "chunk_bytes")}
    try:
        with _progress(os.path.basename(args.source)) as progress:
            folder = convert(args.source, args.to, progress=progress, **options)
    except KeyboardInterrupt:
        partial = partial_of(Path(args.to).expanduser())
        kept = f" {partial} keeps the chunks that are complete; the same command goes on from there."
        _say(f"Interrupted.{kept if partial.exists() else ''}")
        return 130
    except ModuleNotFoundError as error:  # an extra that is not installed
        _say(_sentence(error))
        return 1
    n, d = folder.shape
    print(
        f"{args.to}: {n:,} x {d:,}, {folder.nnz:,} entries, {folder.dtype} {folder.manifest.storage}, "
        f"{len(folder)} chunk{'s' * (len(folder) > 1)}, {folder.bytes / 1e6:,.1f} MB"
    )
    return 0


def list_data(args: argparse.Namespace) -> int:
    """`coordwise data list`."""
    print(f"{'name':<8} {'rows':>9} {'columns':>9} {'entries':>11}  found")
    for row in available(args.data):
        where = f"{row.source}: {row.origin}" if row.source else "no; `coordwise data get` fetches it"
        print(f"{row.name:<8} {row.n:>9,} {row.d:>9,} {row.nnz:>11,}  {where}")
    return 0


def get_data(args: argparse.Namespace) -> int:
    """`coordwise data get`: every dataset is tried, also after one has failed."""
    code = 0
    for name in CATALOGUE if args.name == "all" else [args.name]:
        try:
            with _progress(name) as progress, warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                data = load(name, folder=args.data, stand_in=False, progress=progress)
        except (DownloadError, OSError, ValueError) as error:
            _say(_sentence(error))
            code = 1
            continue
        print(f"{name}: {_described(data)}", flush=True)
        for warning in caught:
            _say(str(warning.message))
            code = code or int(issubclass(warning.category, CacheWarning))  # nothing was kept
    return code


def print_path(_: argparse.Namespace) -> int:
    """`coordwise data path`."""
    print(cache_folder())
    return 0


def _described(data: Dataset) -> str:
    rows, columns = data.A.shape
    return f"{rows:,} x {columns:,}, {data.A.nnz:,} entries ({data.source}: {data.origin})"


@contextlib.contextmanager
def _progress(name: str) -> Iterator[Callable[[str, int, int | None], None]]:
    """A progress bar on standard error, if that is a terminal; plain text if rich is not installed."""
    if not sys.stderr.isatty():
        yield lambda stage, done, total: None
        return
    try:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )
    except ImportError:
        yield _plain_progress(name)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=None)
        stages: list[str] = []

        def show(stage: str, done: int, total: int | None) -> None:
            if stage not in stages:
                stages.append(stage)
                bar.reset(task, description=f"{name}: {stage}")
            bar.update(task, completed=done, total=total)

        yield show


def _plain_progress(name: str) -> Callable[[str, int, int | None], None]:
    shown = [0.0]
    first: dict[str, tuple[float, int]] = {}  # when a stage began, and how far it was then

    def show(stage: str, done: int, total: int | None) -> None:
        now = time.monotonic()
        began, already = first.setdefault(stage, (now, done))
        if now - shown[0] >= 0.5:
            shown[0] = now
            of = f" of {total / 1e6:.1f}" if total else ""
            left = (
                f", {(now - began) * (total - done) / (done - already):.0f} s left" if total and done > already else ""
            )
            print(f"{name}: {stage}, {done / 1e6:.1f}{of} MB{left}", file=sys.stderr, flush=True)

    return show


def _say(sentence: str) -> None:
    print(f"coordwise: {sentence}", file=sys.stderr, flush=True)


def _sentence(error: BaseException) -> str:
    """An exception in one line."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if text.endswith(".") else f"{text}."


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    _say(str(message))
