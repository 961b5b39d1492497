"""The command `coordwise data`, as a process of its own."""

import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from conftest import DATA

from coordwise import __version__, cli, datasets


def write_text(folder, name="w8a"):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("1 1:1\n")


@pytest.fixture
def run(tmp_path):
    environment = {
        **os.environ,
        "COORDWISE_CACHE": str(tmp_path / "cache"),
        "COORDWISE_MIRROR": "http://127.0.0.1:9/",
        "PYTHONWARNINGS": "error",
    }
    environment.pop("COORDWISE_DATA", None)

    def process(*args, **changes):
        command = [sys.executable, "-m", "coordwise", *args]
        return subprocess.run(command, env={**environment, **changes}, capture_output=True, text=True, timeout=60)

    return process


def failed(done, code):
    """The one sentence that a failure prints."""
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("coordwise: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_version(run):
    done = run("--version")
    assert (done.returncode, done.stdout) == (0, f"coordwise {__version__}\n")


def test_path(run, tmp_path):
    done = run("data", "path")
    assert (done.returncode, done.stdout) == (0, f"{tmp_path / 'cache'}\n")


@pytest.mark.parametrize(
    "args", [(), ("data",), ("data", "get"), ("data", "get", "iris"), ("other",), ("data", "list", "x")]
)
def test_wrong_usage(args, run):
    done = run(*args)
    assert done.returncode == 2
    assert done.stderr.startswith("usage: coordwise")
    assert "Traceback" not in done.stderr


def test_list(run, tmp_path):
    done = run("data", "list")
    assert done.returncode == 0
    assert done.stdout.count("no; `coordwise data get` fetches it") == 3
    write_text(tmp_path / "data")
    data = str(tmp_path / "data")
    for found in (run("data", "list", "--data", data), run("data", "list", COORDWISE_DATA=data)):
        rows = found.stdout.splitlines()
        assert rows[0].split() == ["name", "rows", "columns", "entries", "found"]
        assert rows[2].split() == ["w8a", "49,749", "300", "579,586", "folder:", "w8a"]
    assert "is not a folder" in failed(run("data", "list", "--data", str(tmp_path / "none")), 1)


def test_get_without_network(run):
    said = failed(run("data", "get", "w8a"), 1)
    assert "127.0.0.1 could not be reached" in said
    assert "let COORDWISE_DATA name its folder" in said
    done = run("data", "get", "all")
    assert done.returncode == 1
    assert done.stderr.count("coordwise: ") == 3
    assert done.stdout == ""


def test_get_from_a_folder_that_is_wrong(run, tmp_path):
    assert "is not a folder" in failed(run("data", "get", "w8a", "--data", str(tmp_path / "none")), 1)
    write_text(tmp_path / "data")
    assert "w8a is not w8a: it has 1 rows" in failed(run("data", "get", "w8a", "--data", str(tmp_path / "data")), 1)
    assert "does not hold news20" in failed(run("data", "get", "news20", "--data", str(tmp_path / "data")), 1)


def test_get_fills_the_cache(run, paper_dataset, tmp_path):
    paper_dataset("w8a")
    done = run("data", "get", "w8a", "--data", DATA)
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout.startswith("w8a: 49,749 x 300, 579,586 entries (folder: w8a")
    assert "(cache: w8a" in run("data", "get", "w8a").stdout
    assert "cache: w8a" in run("data", "list").stdout
    (tmp_path / "file").write_text("")
    unwritable = run("data", "get", "w8a", "--data", DATA, COORDWISE_CACHE=str(tmp_path / "file"))
    assert "cannot be written" in failed(unwritable, 1)
    assert unwritable.stdout.startswith("w8a: ")


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise")
def test_interrupt():
    code = (
        "import sys, time\n"
        "from coordwise import cli\n"
        "def wait(*args, **options):\n"
        "    print('waiting', flush=True)\n"
        "    time.sleep(60)\n"
        "cli.load = wait\n"
        "sys.exit(cli.main(['data', 'get', 'w8a']))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "waiting\n"
        time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert said == "coordwise: Interrupted.\n"


@pytest.mark.skipif(sys.platform == "win32", reason="pipes end otherwise")
def test_a_reader_that_leaves(run):
    command = f"{sys.executable} -m coordwise data list | true"
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert done.stderr == ""


class Terminal:
    """Standard error as a terminal that keeps what it shows."""

    encoding = "utf-8"

    def __init__(self):
        self.shown = []

    def isatty(self):
        return True

    def write(self, text):
        self.shown.append(text)
        return len(text)

    def flush(self):
        pass


def test_the_time_that_is_left(monkeypatch, capsys):
    clock = iter([10.0, 12.0, 12.1, 14.0])
    monkeypatch.setattr(cli, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    show = cli._plain_progress("name")
    for stage, done, total in (("reading", 0, 90), ("reading", 30, 90), ("reading", 31, 90), ("sorting", 9, None)):
        show(stage, done * 1_000_000, None if total is None else total * 1_000_000)
    assert capsys.readouterr().err.splitlines() == [
        "name: reading, 0.0 of 90.0 MB",
        "name: reading, 30.0 of 90.0 MB, 4 s left",
        "name: sorting, 9.0 MB",
    ]


@pytest.mark.parametrize("rich", [True, False])
def test_progress_in_a_terminal(rich, monkeypatch, capsys):
    if rich:
        pytest.importorskip("rich")
        monkeypatch.setenv("TERM", "xterm")
    else:
        monkeypatch.setitem(sys.modules, "rich.console", None)

    def load(name, progress, **options):
        for done in range(0, 101, 20):
            progress("downloading", done * 10_000, None)
        progress("reading", 500_000, 1_000_000)
        if rich:
            time.sleep(0.15)
        return datasets.stand_in(name, scale=0.01)

    monkeypatch.setattr(cli, "load", load)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert cli.main(["data", "get", "w8a"]) == 0
    shown = "".join(terminal.shown)
    assert ("w8a: reading" if rich else "w8a: downloading, 0.0 MB") in shown
    assert capsys.readouterr().out.startswith("w8a: 497 x 300")
