"""Shared fixtures: the paper's datasets where they are at hand, and small problems with very unequal rows."""

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import coordwise as cw
from coordwise import datasets

DATA = os.environ.get("COORDWISE_DATA")


def unequal_rows(n, d, seed=0, density=None, spread=2.0):
    """A random matrix whose row norms spread over `spread` orders of magnitude."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) * 10 ** rng.uniform(-spread / 2, spread / 2, (n, 1))
    if density is not None:
        A *= rng.random((n, d)) < density
        A[np.arange(n), rng.integers(0, d, n)] += 1.0  # no empty row
    return A


STORAGES = {
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "csr64": lambda A: _int64(sp.csr_array(A)),
    "dense_c": np.ascontiguousarray,
    "dense_f": np.asfortranarray,
}


def _int64(A):
    A.indices, A.indptr = A.indices.astype(np.int64), A.indptr.astype(np.int64)
    return A


@pytest.fixture(scope="session", autouse=True)
def _no_network_and_a_cache_of_our_own(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COORDWISE_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("COORDWISE_MIRROR", "http://127.0.0.1:9/")
        yield


@pytest.fixture(scope="session", autouse=True)
def _interrupts_are_heard():
    """Background jobs of a shell may begin with Ctrl-C ignored; tests that send it would wait forever."""
    before = signal.getsignal(signal.SIGINT)
    if before == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interruption(call, *args, **options):
    """What a call that Ctrl-C ends has reached: the result of the exception."""
    with pytest.raises(cw.Interrupted, match="best point so far") as raised:
        call(*args, **options)
    return raised.value.result


@pytest.fixture(scope="session")
def paper_dataset():
    """(A, b) of news20, w8a or covtype with labels +1/-1; the test is skipped if COORDWISE_DATA does not hold it."""
    loaded = {}

    def get(name):
        if name not in loaded:
            if not DATA:
                pytest.skip("COORDWISE_DATA is not set")
            try:
                loaded[name] = datasets.load(name, folder=DATA, mmap=False)
            except FileNotFoundError as error:
                pytest.skip(str(error))
        return loaded[name].A, loaded[name].b

    return get


@pytest.fixture(scope="session")
def small_data():
    """A stand-in for w8a, a hundredth of its size."""
    return datasets.stand_in("w8a", scale=0.01)


@dataclass(frozen=True)
class Reproduction:
    """A finished `coordwise reproduce`: its command line, what it printed, and the folder it wrote into."""

    command: list[str]
    done: subprocess.CompletedProcess
    folder: Path


@pytest.fixture(scope="session")
def reproduce_command(tmp_path_factory):
    """`coordwise reproduce` as a process of its own, without data but stand-ins; linear algebra in one thread each."""
    environment = {
        **os.environ,
        "COORDWISE_CACHE": str(tmp_path_factory.mktemp("empty")),
        "COORDWISE_MIRROR": "http://127.0.0.1:9/",
        "MPLCONFIGDIR": str(tmp_path_factory.mktemp("matplotlib")),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONWARNINGS": "error",
    }
    environment.pop("COORDWISE_DATA", None)

    def start(*args):
        return subprocess.Popen(
            [sys.executable, "-m", "coordwise", "reproduce", *map(str, args)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(*args):
        with start(*args) as process:
            try:
                out, err = process.communicate(timeout=600)
            except BaseException:
                process.kill()
                raise
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    run.start, run.environment = start, environment
    return run


@pytest.fixture(scope="session")
def reproduction(reproduce_command, tmp_path_factory):
    """All tables and figures on small stand-ins."""
    pytest.importorskip("matplotlib")
    pytest.importorskip("jinja2")
    folder = tmp_path_factory.mktemp("reproduction")
    command = ["all", "--stand-ins", "0.03", "--quick", "--seeds", "2", "--out", str(folder)]
    return Reproduction(command, reproduce_command(*command), folder / "quick")


def pytest_collection_modifyitems(items):
    """Other libraries come last: some of them switch off the smallest floating-point numbers for the whole process."""
    items.sort(key=lambda item: item.path.name == "test_bench.py")
