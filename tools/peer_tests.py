"""Run scikit-learn's and scipy's own tests with coordwise in the place of the classes and functions they test.

    python tools/peer_tests.py                      # everything
    python tools/peer_tests.py sklearn -k ridge     # one library; what follows goes to pytest

The tests are those of the installed packages. `peer_plugin` puts stand-ins (`peer_estimators`, `peer_linalg`) where the
tests import from, and pytest runs them in a process of its own. Tests that fail are compared with
`peer_tests_expected.toml`, which gives a reason for every difference that is meant. Exit status 1 says that there are
others, and 2 that tests could not be run. Expected differences that are gone are named, for the file to be shortened.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
EXPECTED = HERE / "peer_tests_expected.toml"
MODULES = {
    "sklearn": [
        *(f"sklearn.linear_model.tests.test_{name}" for name in ("ridge", "huber", "common", "logistic")),
        "sklearn.linear_model.tests.test_coordinate_descent",
        "sklearn.linear_model.tests.test_sparse_coordinate_descent",
        *(f"sklearn.svm.tests.test_{name}" for name in ("svm", "sparse", "bounds")),
    ],
    "scipy": [f"scipy.sparse.linalg._isolve.tests.test_{name}" for name in ("iterative", "lsqr", "lsmr")],
}
PACKAGES = {"sklearn": "scikit-learn", "scipy": "scipy"}


@dataclass(frozen=True)
class Outcome:
    """What came out of one test; `used` tells whether it called coordwise at all."""

    test: str
    outcome: str
    used: bool
    message: str


@dataclass(frozen=True)
class Expected:
    """Tests that may fail: names as regular expressions for their beginning, and for some a part of the message."""

    category: str
    reason: str
    tests: list[str]
    message: str = ""

    def covers(self, found: Outcome) -> bool:
        """Whether this is a reason for the failure."""
        return any(re.match(f"{one}($|\\[)", found.test) for one in self.tests) and bool(
            re.search(self.message, found.message)
        )


def main(arguments: list[str] | None = None) -> int:
    """Run, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", nargs="?", choices=list(MODULES), help="one of them instead of both")
    chosen, more = parser.parse_known_args(arguments)
    codes = [_library(name, more) for name in ([chosen.library] if chosen.library else MODULES)]
    return max(codes)


def _library(name: str, more: list[str]) -> int:
    version = importlib.metadata.version(PACKAGES[name])
    settings = tomllib.loads(EXPECTED.read_text())
    written = settings["versions"][name]
    print(f"{PACKAGES[name]} {version}" + ("" if version == written else f" (expected differences: of {written})"))
    missing = [module for module in MODULES[name] if not _installed(module)]
    if missing:
        print(f"Not installed: {', '.join(missing)}. A package without its tests cannot be compared.")
        return 2
    outcomes = _run(name, more)
    if not outcomes:
        print("No test ran.")
        return 2
    return _report(outcomes, [Expected(**one) for one in settings[name]], stale=not more)


def _installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _run(name: str, more: list[str]) -> list[Outcome]:
    """The tests in a process of their own, with settings of their own."""
    with tempfile.TemporaryDirectory() as folder:
        settings, record = Path(folder, "pytest.ini"), Path(folder, "record.jsonl")
        settings.write_text("[pytest]\n")
        environment = {
            **os.environ,
            "COORDWISE_PEER": name,
            "COORDWISE_PEER_RECORD": str(record),
            "PYTHONPATH": os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]),
            "SKLEARN_RUN_FLOAT32_TESTS": "1",
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        options = ["-q", "-c", str(settings), "-p", "no:cacheprovider", "-p", "peer_plugin", "--tb=no", "-rN"]
        command = [sys.executable, "-m", "pytest", *options, *more, "--pyargs", *MODULES[name]]
        done = subprocess.run(
            command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        if not record.exists():
            print(done.stdout)
            return []
        return [Outcome(**json.loads(line)) for line in record.read_text().splitlines()]


def _report(outcomes: list[Outcome], expected: list[Expected], *, stale: bool) -> int:
    """Print the table; 1 if a difference has no reason."""
    ours = [one for one in outcomes if one.used]
    failed = [one for one in outcomes if one.outcome == "failed"]
    reasons = {one.test: next((which for which in expected if which.covers(one)), None) for one in failed}
    counts = Counter(one.outcome for one in ours)
    print(f"{len(outcomes)} tests, {len(ours)} of which call coordwise: {counts['passed']} passed, ", end="")
    print(f"{counts['xfailed'] + counts['xpassed']} that the library marks as failing, {len(failed)} differ")
    categories = Counter(which.category for which in reasons.values() if which is not None)
    for category, count in categories.most_common():
        print(f"{count:6d}  {category}")
    unexpected = [one for one in failed if reasons[one.test] is None]
    print(f"{len(unexpected):6d}  UNEXPECTED")
    for one in unexpected:
        print(f"  {one.test}\n      {' '.join(one.message.split())[:300]}")
    if stale:
        for which, name in _stale(expected, failed, {one.test for one in outcomes}):
            print(f"  no difference any more: {name} ({which.reason})")
    return 1 if unexpected else 0


def _stale(expected: list[Expected], failed: list[Outcome], names: set[str]) -> list[tuple[Expected, str]]:
    """Expected differences that did not occur, of tests that this version has."""
    found: list[tuple[Expected, str]] = []
    for which in expected:
        for name in which.tests:
            one: Any = Expected(which.category, which.reason, [name], which.message)
            exists = any(re.match(f"{name}($|\\[)", test) for test in names)
            if exists and not any(one.covers(test) for test in failed):
                found.append((which, name))
    return found


if __name__ == "__main__":
    sys.exit(main())
