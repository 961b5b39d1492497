"""Reading svmlight files: time over that of scikit-learn's reader, decompression included; prints a table.

    COORDWISE_DATA=folder python benchmarks/reading.py [--repeats 3]

Both readers take turns in this run; ratios are of medians. "again" is `load_file` with the cache filled.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import lzma
import os
import pathlib
import statistics
import tempfile
import time
from collections.abc import Callable

from coordwise.datasets import CATALOGUE, load_file, read_svmlight

OPEN = {".xz": lzma.open, ".bz2": bz2.open, ".gz": gzip.open}


def timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def with_sklearn(file: pathlib.Path) -> None:
    from sklearn.datasets import load_svmlight_file

    with OPEN.get(file.suffix, open)(file, "rb") as stream:
        load_svmlight_file(stream)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    folder = pathlib.Path(os.environ.get("COORDWISE_DATA", "."))
    print(f"{'file':24} {'coordwise':>10} {'sklearn':>10} {'ratio':>7} {'again':>10}")
    for entry in CATALOGUE.values():
        file = entry.find(folder)
        if file is None:
            print(f"{entry.name}: not in the folder that COORDWISE_DATA names")
            continue
        read_svmlight(file)  # into the system's cache
        ours, theirs = [], []
        for _ in range(args.repeats):
            ours.append(timed(lambda file=file: read_svmlight(file)))
            theirs.append(timed(lambda file=file: with_sklearn(file)))
        mine, other = statistics.median(ours), statistics.median(theirs)
        with tempfile.TemporaryDirectory() as cache:
            os.environ["COORDWISE_CACHE"] = cache
            load_file(file)
            again = statistics.median(timed(lambda file=file: load_file(file)) for _ in range(args.repeats))
        print(f"{file.name:24} {mine:9.3f}s {other:9.3f}s {mine / other:7.3f} {again:9.3f}s", flush=True)


if __name__ == "__main__":
    main()
