"""Ctrl-C typed into a terminal, at any moment of fits, paths, searches and systems in loops: none is swallowed."""

import os
import random
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("sklearn")
pytest.importorskip("termios", reason="pseudo-terminals are POSIX's")

CHILD = Path(__file__).with_name("interrupted.py")
CASES = [
    "fits",
    "fits with a time limit",
    "several classes",
    "penalised intercepts",
    "scales",
    "paths",
    "cross-validation",
    "cross-validation in threads",
    "leaving out",
    "search",
    "systems",
    "row action",
    "least squares",
    "solve",
    "minimize",
]
PATIENCE = 10.0  # seconds until an interrupt counts as swallowed


class Terminal:
    """The child process in a session of its own, whose controlling terminal this is."""

    def __init__(self, case):
        import fcntl
        import termios

        self.screen, keyboard = os.openpty()

        def own_session():
            os.setsid()
            fcntl.ioctl(keyboard, termios.TIOCSCTTY, 0)

        self.child = subprocess.Popen(
            [sys.executable, str(CHILD), case],
            stdin=keyboard,
            stdout=keyboard,
            stderr=keyboard,
            preexec_fn=own_session,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )
        os.close(keyboard)
        self.text = ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.kill()
        self.child.wait()
        os.close(self.screen)

    def line(self, seconds):
        """The next line that it prints; None if there is none in time."""
        end = time.monotonic() + seconds
        while "\n" not in self.text:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.screen], [], [], left)[0]:
                return None
            self.text += os.read(self.screen, 4096).decode(errors="replace")
        line, _, self.text = self.text.partition("\n")
        return line.replace("^C", "").strip()  # which terminals show

    def type_ctrl_c(self):
        os.write(self.screen, b"\x03")


def check(case, count, seed=0):
    """`count` times Ctrl-C, each after a random while: each has to be heard; how many carried a result."""
    rng = random.Random(f"{case} {seed}")
    with Terminal(case) as terminal:
        assert terminal.line(60.0) == "ready"
        carried = 0
        for k in range(count):
            time.sleep(rng.choice([rng.uniform(0, 0.02), rng.uniform(0, 0.4)]))
            terminal.type_ctrl_c()
            line, seen = "", []
            while not line.startswith("heard"):
                line = terminal.line(PATIENCE)
                seen.append(line)
                if line is None and any("Exception ignored in" in text for text in seen[:-1]):
                    terminal.type_ctrl_c()  # it came while Python ran a finaliser, which it does not leave for anything
                    line, seen = "", []
                assert line is not None, (case, k, seen)
                assert "Error" not in line, (case, k, seen)
            carried += line == "heard: carries a result"
        return carried


@pytest.mark.parametrize("case", CASES)
def test_every_ctrl_c_is_heard(case):
    check(case, 4)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_five_hundred_of_them(case):
    assert check(case, 34, seed=1) > 0  # some come while arguments are checked, and carry nothing
