"""A pytest plugin: coordwise in the place of another library while that library's tests run, and a record of them.

``-p peer_plugin`` with COORDWISE_PEER set to "sklearn" or "scipy", and COORDWISE_PEER_RECORD to the file that takes one
line of JSON for every test: its name, what came out, whether coordwise was called, and the message of a failure.

A warning or an error that another library gives, and coordwise does not give or words differently, does not end a test
at once: the test goes on to its numerical assertions, and fails at its end if nothing else made it fail. Its message
then begins with `WORDS`.
"""

from __future__ import annotations

import importlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from _pytest.recwarn import WarningsChecker

KINDS = {"sklearn": "peer_estimators", "scipy": "peer_linalg"}
WORDS = "Warnings and errors only: "
missed: list[str] = []  # warnings and errors that the running test expected in vain


def pytest_configure(config: pytest.Config) -> None:
    """Replace the classes or functions before the modules of the tests import them."""
    stand_ins = importlib.import_module(KINDS[os.environ["COORDWISE_PEER"]])
    stand_ins.install()
    config.pluginmanager.register(Record(Path(os.environ["COORDWISE_PEER_RECORD"]), stand_ins.used))
    pytest.warns = _warns
    pytest.raises = _raises


class _PatientWarns(WarningsChecker):
    """`pytest.warns` that goes on without the warning."""

    def __exit__(self, *raised: Any) -> Any:
        try:
            return super().__exit__(*raised)
        except pytest.fail.Exception as missing:
            missed.append(str(missing))


class _PatientRaises(pytest.RaisesExc):
    """`pytest.raises` that goes on without the error, or with another text of it."""

    def __exit__(self, *raised: Any) -> Any:
        try:
            return super().__exit__(*raised)
        except (pytest.fail.Exception, AssertionError) as missing:
            if raised[1] is missing:
                raise
            missed.append(str(missing))
            return True


def _warns(expected: Any = Warning, *args: Any, match: Any = None, _given: Any = pytest.warns, **kwargs: Any) -> Any:
    return _given(expected, *args, **kwargs) if args else _PatientWarns(expected, match_expr=match, _ispytest=True)


def _raises(expected: Any = None, *args: Any, _given: Any = pytest.raises, **kwargs: Any) -> Any:
    if args or expected is None:
        return _given(*(() if expected is None else (expected,)), *args, **kwargs)
    return _PatientRaises(expected, **kwargs)


class Record:
    """Writes down what came out of every test."""

    def __init__(self, file: Path, used: list[str]) -> None:
        self.file, self.used = file, used

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
        """Keep the outcome of the call, or that of a setup that did not lead to one."""
        report = (yield).get_result()
        if report.when == "setup":
            self.used.clear()
            missed.clear()
        if report.when != "call" and report.passed:
            return
        outcome = report.outcome
        if hasattr(report, "wasxfail"):  # pytest reports the failures that a test is marked with as skipped
            outcome = "xfailed" if report.skipped else "xpassed"
        message = "" if call.excinfo is None else f"{call.excinfo.typename}: {call.excinfo.value}"
        if outcome == "passed" and missed:
            outcome, message = "failed", WORDS + "; ".join(missed)
        line = {
            "test": f"{item.path.name}::{item.nodeid.split('::', 1)[1]}",
            "outcome": outcome,
            "used": bool(self.used),
            "message": message,
        }
        with self.file.open("a") as file:
            file.write(json.dumps(line) + "\n")
