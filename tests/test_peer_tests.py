"""scikit-learn's and scipy's own tests, with coordwise in the place of theirs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sklearn")

TOOLS = Path(__file__).resolve().parent.parent / "tools"
NOT_RUN = 2


@pytest.mark.slow
@pytest.mark.parametrize("library", ["sklearn", "scipy"])
def test_no_difference_without_a_reason(library):
    done = subprocess.run([sys.executable, str(TOOLS / "peer_tests.py"), library], capture_output=True, text=True)
    if done.returncode == NOT_RUN and "Not installed" in done.stdout:
        pytest.skip(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def tool(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    return pytest.importorskip("peer_tests")


def outcome(tool, test, message, result="failed"):
    return tool.Outcome(test, result, True, message)


def test_a_reason_is_for_one_test_and_one_message(tool):
    reason = tool.Expected("words", "meant", [r"test_a\.py::test_one"], "only one class")
    assert reason.covers(outcome(tool, "test_a.py::test_one[x-1]", "ValueError: only one class"))
    assert not reason.covers(outcome(tool, "test_a.py::test_one[x-1]", "AssertionError: not equal"))
    assert not reason.covers(outcome(tool, "test_a.py::test_one_more", "ValueError: only one class"))


def test_the_report(tool, capsys):
    reasons = [tool.Expected("words", "meant", ["a::test_one", "a::test_two", "a::test_gone"])]
    one, two = outcome(tool, "a::test_one[0]", "differs"), outcome(tool, "a::test_two", "", "passed")
    assert tool._report([one, two], reasons, stale=True) == 0
    printed = capsys.readouterr().out
    assert "2 tests, 2 of which call coordwise: 1 passed" in printed
    assert "no difference any more: a::test_two" in printed
    assert "test_gone" not in printed  # which this version does not have
    assert tool._report([outcome(tool, "a::test_three", "wrong number")], reasons, stale=True) == 1
    assert "wrong number" in capsys.readouterr().out


PATIENT = """
import warnings
import pytest

def test_words():
    with pytest.warns(UserWarning, match="this"):
        warnings.warn("that")
    with pytest.raises(ValueError, match="this"):
        raise ValueError("that")

def test_numbers():
    with pytest.warns(UserWarning):
        pass
    assert 1 == 2

def test_another_error():
    with pytest.raises(ValueError):
        raise TypeError("other")

def test_fine():
    with pytest.warns(UserWarning, match="this"):
        warnings.warn("this")
    with pytest.raises(ValueError, match="this"):
        raise ValueError("this")
"""


def test_missing_words_do_not_hide_numbers(tmp_path):
    """A test goes on behind a warning or an error that is missing, and fails at its end."""
    (tmp_path / "test_it.py").write_text(PATIENT)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    record = tmp_path / "record.jsonl"
    path = os.pathsep.join([str(TOOLS), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "COORDWISE_PEER": "scipy", "COORDWISE_PEER_RECORD": str(record), "PYTHONPATH": path}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "peer_plugin", "test_it.py"]
    subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False)
    found = {one["test"]: one for one in map(json.loads, record.read_text().splitlines())}
    words = found["test_it.py::test_words"]
    assert words["outcome"] == "failed"
    assert words["message"].startswith("Warnings and errors only")
    assert words["message"].count("did not match") == 2
    assert "assert 1 == 2" in found["test_it.py::test_numbers"]["message"]
    assert found["test_it.py::test_another_error"]["message"] == "TypeError: other"
    assert found["test_it.py::test_fine"]["outcome"] == "passed"
