"""Conversions that are killed, interrupted or out of room go on; memory does not grow with the data; the command."""

import errno
import gzip
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from folder_cases import SMALL, assert_same, problem, whole
from sklearn.datasets import dump_svmlight_file

from coordwise import cli, datasets
from coordwise.datasets import mapped

KILLED = Path(__file__).with_name("converting.py")


def written(kind, tmp_path):
    """A file of a kind with the same rows, and the name of its target."""
    A, y, _ = problem()
    path = tmp_path / f"data.{kind}"
    if kind.startswith("svm"):
        dump_svmlight_file(A, y, str(path))
        if kind == "svm.gz":
            path.write_bytes(gzip.compress(path.read_bytes()))
        return path, ""
    np.save(tmp_path / "y.npy", y)
    if kind == "npz":
        sp.save_npz(path, A)
    elif kind == "npy":
        np.save(path, A.toarray())
    else:
        table = pytest.importorskip("pyarrow").table({str(k): column for k, column in enumerate(A.toarray().T)})
        pytest.importorskip("pyarrow.parquet").write_table(table.append_column("y", [y]), path)
        return path, "y"
    return path, str(tmp_path / "y.npy")


def killed(path, to, target, after):
    """A process that is killed when so many chunks are there."""
    command = [sys.executable, str(KILLED), str(path), str(to), target, str(after)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "waiting\n"
        process.kill()
        process.wait(timeout=60)


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr("coordwise.datasets.sources.tables.PIECE", 1 << 12)
    monkeypatch.setattr("coordwise.datasets.svmlight.BLOCK", 1 << 11)


@pytest.fixture
def recorded(monkeypatch):
    """Names of the files that this process writes."""
    names, write = [], mapped.write_array

    def recording(folder, name, array):
        names.append(name)
        return write(folder, name, array)

    monkeypatch.setattr("coordwise.datasets.writing.write_array", recording)
    return names


def numbers(names):
    return sorted({int(name[:6]) for name in names})


def arrays_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix == ".npy"}


@pytest.mark.parametrize("kind", ["npz", "npy"])
def test_a_conversion_that_was_killed_goes_on(kind, tmp_path, recorded):
    path, target = written(kind, tmp_path)
    killed(path, tmp_path / "to", target, 3)
    assert not (tmp_path / "to").exists()
    (tmp_path / "to.partial" / "000003.values.npy").write_bytes(b"the beginning of a chunk")
    folder = datasets.convert(path, tmp_path / "to", target=target, chunk_bytes=4000)
    assert numbers(recorded) == list(range(3, len(folder)))
    straight = datasets.convert(path, tmp_path / "straight", target=target, chunk_bytes=4000)
    assert arrays_of(folder.path) == arrays_of(straight.path)
    assert (folder.path / "meta.json").read_text() == (straight.path / "meta.json").read_text()


@pytest.mark.parametrize("kind", ["svm", "svm.gz", "parquet"])
@pytest.mark.parametrize("after", [1, 4])
def test_a_conversion_that_failed_goes_on_inside_of_a_stream(kind, after, tmp_path, recorded, small_pieces):
    """These sources begin anew inside of a file, at the row after the last chunk that ends with a piece of it."""
    path, target = written(kind, tmp_path)
    target = target or None
    straight = datasets.convert(path, tmp_path / "straight", target=target, chunk_bytes=SMALL)
    seen = []

    def progress(*_):
        seen.append(1)
        if len(seen) == after:
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        datasets.convert(path, tmp_path / "to", target=target, chunk_bytes=SMALL, progress=progress)
    recorded.clear()
    folder = datasets.convert(path, tmp_path / "to", target=target, chunk_bytes=SMALL)
    assert numbers(recorded) == list(range(after, len(straight)))
    assert arrays_of(folder.path) == arrays_of(straight.path)
    assert folder.shape == straight.shape == (400, 30)


def test_svmlight_text_that_was_killed_goes_on(tmp_path):
    """The pieces of text are longer than the chunks here, so it begins anew; what comes out is the same."""
    path, _ = written("svm", tmp_path)
    killed(path, tmp_path / "to", "", 3)
    folder = datasets.convert(path, tmp_path / "to", chunk_bytes=4000)
    assert_same(whole(folder)[0], datasets.read_svmlight(path)[0])


def stopped(source, to, after=4, **options):
    """A conversion that ends after some chunks."""
    seen = []

    def progress(*_):
        seen.append(1)
        if len(seen) == after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        datasets.convert(source, to, chunk_bytes=SMALL, progress=progress, **options)


@pytest.mark.parametrize("damage", ["changed", "truncated", "missing", "journal"])
def test_chunks_that_are_damaged_are_written_again(damage, tmp_path, recorded):
    A, y, _ = problem()
    stopped(A, tmp_path / "to", target=y)
    victim = tmp_path / "to.partial" / "000002.indices.npy"
    content = bytearray(victim.read_bytes())
    if damage == "changed":
        content[-1] ^= 1
        victim.write_bytes(content)
    elif damage == "truncated":
        victim.write_bytes(content[:-1])
    elif damage == "missing":
        victim.unlink()
    else:
        journal = tmp_path / "to.partial" / "journal.jsonl"
        lines = journal.read_bytes().splitlines(keepends=True)
        journal.write_bytes(b"".join(lines[:3]) + lines[3][:30])
    recorded.clear()
    folder = datasets.convert(A, tmp_path / "to", target=y, chunk_bytes=SMALL)
    assert numbers(recorded) == list(range(2, len(folder)))
    assert_same(whole(folder)[0], A)
    assert not (tmp_path / "to" / "journal.jsonl").exists()


@pytest.mark.parametrize("damage", ["changed", "torn"])
def test_conversions_that_are_interrupted_again(damage, tmp_path, recorded):
    """What the journal said of chunks that are written again does not count."""
    A, y, _ = problem()
    stopped(A, tmp_path / "to", target=y)
    partial = tmp_path / "to.partial"
    if damage == "changed":
        (partial / "000001.indices.npy").write_bytes(b"something else")
    else:
        (partial / "journal.jsonl").write_bytes((partial / "journal.jsonl").read_bytes()[:-30])
    stopped(A, tmp_path / "to", target=y, after=2)
    recorded.clear()
    folder = datasets.convert(A, tmp_path / "to", target=y, chunk_bytes=SMALL)
    assert numbers(recorded) == list(range(3 if damage == "changed" else 5, len(folder)))
    assert_same(whole(folder)[0], A)


def test_another_conversion_begins_anew(tmp_path, recorded):
    A, y, s = problem()
    stopped(A, tmp_path / "to", target=y)
    recorded.clear()
    folder = datasets.convert(A, tmp_path / "to", target=s, chunk_bytes=SMALL)
    assert numbers(recorded) == list(range(len(folder)))
    np.testing.assert_array_equal(folder.targets(), s)
    path, _ = written("svm", tmp_path)
    stopped(path, tmp_path / "text")
    path.write_text("1 1:1\n")
    assert datasets.convert(path, tmp_path / "text", chunk_bytes=SMALL).shape == (1, 1)


def test_an_iterator_leaves_nothing_behind(tmp_path):
    A, y, _ = problem()
    stopped(iter([(A, y)]), tmp_path / "to")
    assert list(tmp_path.iterdir()) == []


def test_a_conversion_killed_before_the_last_step(tmp_path, monkeypatch, recorded):
    A, y, _ = problem()

    def rename(self, target):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", rename)
        with pytest.raises(KeyboardInterrupt):
            datasets.convert(A, tmp_path / "to", target=y, chunk_bytes=SMALL)
    recorded.clear()
    assert_same(whole(datasets.convert(A, tmp_path / "to", target=y, chunk_bytes=SMALL))[0], A)
    assert recorded == []


def test_a_disk_that_is_full(tmp_path, monkeypatch, recorded):
    """Room for two chunks and a part of a third, which is not left behind."""
    A, y, _ = problem()
    step = mapped.os.fsync

    def full(descriptor):
        if len(recorded) > 9:  # four arrays a chunk
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        step(descriptor)

    with monkeypatch.context() as patched:
        patched.setattr(mapped.os, "fsync", full)
        with pytest.raises(OSError, match=r"the disk is full; .*to\.partial keeps the chunks") as refusal:
            datasets.convert(A, tmp_path / "to", target=y, chunk_bytes=SMALL)
        assert refusal.value.errno == errno.ENOSPC
        names = {path.name for path in (tmp_path / "to.partial").iterdir()}
        assert recorded[-1] not in names
    recorded.clear()
    folder = datasets.convert(A, tmp_path / "to", target=y, chunk_bytes=SMALL)
    assert numbers(recorded) == list(range(2, len(folder)))
    assert_same(whole(folder)[0], A)


@pytest.mark.skipif(sys.platform == "win32", reason="locks are others")
def test_two_conversions_at_once(tmp_path):
    A, y, _ = problem()

    def progress(*_):
        with pytest.raises(FileExistsError, match="is being written by another process"):
            datasets.convert(A, tmp_path / "to", target=y, chunk_bytes=SMALL)

    assert_same(whole(datasets.convert(A, tmp_path / "to", target=y, chunk_bytes=SMALL, progress=progress))[0], A)


# Memory.

CHUNK = 1 << 20


def peak_of(call):
    """Bytes that NumPy and Python held at most during a call, beyond those before it."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        call()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["npy", "npz", "npz of numpy", "batches"])
def test_memory_does_not_grow_with_the_data(kind, tmp_path):
    """16 MB in chunks of 1 MB."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((8192, 256))
    if kind == "npy":
        np.save(tmp_path / "X.npy", X)
        source = tmp_path / "X.npy"
    elif kind == "batches":
        source = (np.full((100, 256), 1.0 * k) for k in range(80))
    else:
        source = tmp_path / "X.npz"
        if kind == "npz":
            sp.save_npz(source, sp.csr_array(np.where(X > 0.5, X, 0.0)))
        else:
            np.savez(source, X=X)
    del X
    folders = []
    peak = peak_of(lambda: folders.append(datasets.convert(source, tmp_path / "to", chunk_bytes=CHUNK)))
    assert len(folders[0]) >= 6
    assert peak < 5 * CHUNK
    samples = folders[0].samples(np.ones(folders[0].shape[0]))
    assert peak_of(lambda: samples.visit(lambda block: (None, [block.sizes.squares]))) < 3 * CHUNK


GROWTH = """
import pathlib, re, sys
from coordwise import datasets

for path in sys.argv[1:]:
    folder = datasets.convert(path, path + ".folder", target="y" if "svm" not in path else None, chunk_bytes=1 << 22)
    folder.samples().visit(lambda block: (None, [block.sizes.squares]))
    status = pathlib.Path("/proc/self/status").read_text()  # ru_maxrss would begin with that of the parent
    print(1024 * int(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1]), folder.bytes)
"""


@pytest.mark.parametrize("kind", ["svm", "csv", "parquet", "arrow"])
def test_memory_of_a_process(kind, tmp_path):
    """Parsers hold memory that is not traced; five or ten times the data take little more of it."""
    if not Path("/proc/self/status").exists():
        pytest.skip("the system does not tell the most memory that a process had")
    paths = [tmp_path / f"{k}.{kind}" for k in range(2)]
    for path, n in zip(paths, (200_000, 2_000_000 if kind in ("parquet", "arrow") else 1_000_000), strict=True):
        if kind == "svm":
            line = " ".join(f"{k}:{k % 7 + 0.25}" for k in range(1, 11))
            path.write_text("".join(f"{k % 2} {line}\n" for k in range(n)))
        else:
            write_table(path, n)
    done = subprocess.run([sys.executable, "-c", GROWTH, *map(str, paths)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (first, small), (last, large) = (map(int, line.split()) for line in done.stdout.splitlines())
    assert large > 4.9 * small
    grown = last - first
    print(grown / 1e6, (large - small) / 1e6)
    assert grown < 0.4 * (large - small)


def write_table(path, n):
    """Eight columns of numbers and a target, in groups of 50,000 rows."""
    pa = pytest.importorskip("pyarrow")
    x = np.random.default_rng(0).standard_normal(n)
    table = pa.table({**{f"x{k}": x + k for k in range(8)}, "y": x})
    if path.suffix == ".csv":
        pytest.importorskip("pyarrow.csv").write_csv(table, path)
    elif path.suffix == ".parquet":
        pytest.importorskip("pyarrow.parquet").write_table(table, path, row_group_size=50_000, use_dictionary=False)
    else:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=50_000)


# The command.


@pytest.fixture
def run(tmp_path):
    def process(*args):
        command = [sys.executable, "-m", "coordwise", "data", "convert", *map(str, args)]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path)

    return process


def test_the_command(run, tmp_path):
    path, _ = written("svm", tmp_path)
    done = run(path, "to", "--chunk-bytes", SMALL)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("to: 400 x 30, 2,400 entries, float64 csr, ")
    folder = datasets.open(tmp_path / "to")
    assert_same(whole(folder)[0], datasets.read_svmlight(path)[0])
    assert run(path, "to", "--chunk-bytes", SMALL).stdout == done.stdout


def test_the_command_with_columns(run, tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "a.csv").write_text("u,c,y,s\n1,red,1,0.5\n2,blue,-1,2\n")
    done = run("a.csv", "to", "--target", "y", "--weight", "s", "--categorical", "c")
    assert (done.returncode, done.stderr) == (0, "")
    X, y, s = whole(datasets.open(tmp_path / "to"))
    np.testing.assert_array_equal(X.toarray(), [[1, 0, 1], [2, 1, 0]])
    np.testing.assert_array_equal(y, [1, -1])
    np.testing.assert_array_equal(s, [0.5, 2])


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (("none.svm", "to"), 1, "source='none.svm' does not exist."),
        ((".", "to"), 1, "source='.' is a folder, not a file."),
        (("bad.svm", "to"), 1, "bad.svm cannot be read as svmlight text: line 1"),
        (("bad.svm", "to", "--target", "y"), 1, "target and weight are part of an svmlight file"),
        (("bad.svm", "full"), 1, "full is there, and is not a data folder"),
        (("bad.svm", "to", "--chunk-bytes", "0"), 1, "chunk_bytes=0 is out of range"),
        (("bad.svm",), 2, None),
        (("bad.svm", "to", "--columns", "y"), 2, None),
    ],
)
def test_what_the_command_refuses(args, code, said, run, tmp_path):
    (tmp_path / "bad.svm").write_text("one 1:1\n")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("mine")
    done = run(*args)
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    if said is None:
        assert done.stderr.startswith("usage: coordwise")
    else:
        assert done.stderr.startswith(f"coordwise: {said}")
        assert done.stderr.count("\n") == 1


def test_a_package_that_is_missing(monkeypatch, capsys, tmp_path):
    real = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name, *more: None if name == "pyarrow" else real(name, *more)
    )
    (tmp_path / "a.csv").write_text("u\n1\n")
    assert cli.main(["data", "convert", str(tmp_path / "a.csv"), str(tmp_path / "to")]) == 1
    assert capsys.readouterr().err == ('coordwise: reading a.csv needs pyarrow: pip install ".[arrow]".\n')


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise")
def test_ctrl_c_keeps_what_is_complete(tmp_path):
    path, target = written("npz", tmp_path)
    code = (
        "import sys, time\n"
        "from coordwise import cli\n"
        "real, seen = cli.convert, []\n"
        "def wait(*args):\n"
        "    seen.append(1)\n"
        "    if len(seen) == 3:\n"
        "        print('waiting', flush=True)\n"
        "        time.sleep(60)\n"
        "cli.convert = lambda *args, progress, **options: real(*args, progress=wait, **options)\n"
        "sys.exit(cli.main(sys.argv[1:]))\n"
    )
    args = ["data", "convert", str(path), "to", "--target", target, "--chunk-bytes", str(SMALL)]
    with subprocess.Popen(
        [sys.executable, "-c", code, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    ) as process:
        assert process.stdout.readline() == "waiting\n"
        time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert said == (
        "coordwise: Interrupted. to.partial keeps the chunks that are complete; the same command goes on from there.\n"
    )
    assert len((tmp_path / "to.partial" / "journal.jsonl").read_text().splitlines()) == 4  # the source, and 3 chunks
    folder = datasets.convert(path, tmp_path / "to", target=target, chunk_bytes=SMALL)
    assert_same(whole(folder)[0], problem()[0])


def test_the_journal_recognises_a_conversion(tmp_path):
    A, y, _ = problem()
    stopped(A, tmp_path / "to", target=y)
    head = json.loads((tmp_path / "to.partial" / "journal.jsonl").read_text().splitlines()[0])
    assert head["identity"]["chunk_bytes"] == SMALL
