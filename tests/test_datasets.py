"""Datasets by name: where they are looked for, and what may go wrong with a cache or a download."""

import bz2
import http.server
import json
import lzma
import os
import pickle
import re
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

import coordwise as cw
from coordwise import datasets
from coordwise.datasets import cache, catalogue, download, search
from coordwise.rows import is_mapped

TEXT = b"1 1:1 3:2.5\n-1 2:1 3:0\n-1\n1 1:-4\n"


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """A cache of its own, no data folder and no network."""
    monkeypatch.setenv("COORDWISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COORDWISE_MIRROR", "http://127.0.0.1:9/")
    monkeypatch.delenv("COORDWISE_DATA", raising=False)
    monkeypatch.setattr(download, "_unreachable", {})
    return tmp_path


@pytest.fixture
def small(place, monkeypatch):
    """In the catalogue, w8a is TEXT."""
    (place / "plain").write_bytes(TEXT)
    A, labels = datasets.read_svmlight(place / "plain", n_features=3)
    entry = catalogue.Entry("w8a", 4, 3, 4, 1, ("w8a.svm", "w8a"), "binary/w8a", datasets.fingerprint(A, labels))
    monkeypatch.setitem(catalogue.CATALOGUE, "w8a", entry)
    return entry


@pytest.fixture
def folder(place):
    made = place / "data"
    made.mkdir()
    return made


def check(data):
    """The content of TEXT."""
    np.testing.assert_array_equal(data.A.toarray(), [[1, 0, 2.5], [0, 1, 0], [0, 0, 0], [-4, 0, 0]])
    assert data.b.tolist() == data.classes.tolist() == [1, -1, -1, 1]
    assert data.A.nnz == 4
    assert data.A.dtype == np.float64
    assert data.A.indices.dtype == data.A.indptr.dtype == np.int32
    assert data.real
    return data


# Folders


@pytest.mark.parametrize(
    ("file", "pack"),
    [("w8a.svm.xz", lzma.compress), ("w8a.svm", bytes), ("w8a", bytes), ("w8a.bz2", bz2.compress), ("w8a.gz", bytes)],
)
def test_names_in_a_folder(file, pack, small, folder, monkeypatch):
    (folder / file).write_bytes(pack(TEXT))
    data = check(datasets.load("w8a", folder=folder))
    assert (data.source, data.origin) == ("folder", file)
    assert data.fingerprint == small.fingerprint
    monkeypatch.setenv("COORDWISE_DATA", str(folder))
    assert check(datasets.load("w8a")).source is datasets.Source.FOLDER


def test_names_of_the_site():
    entries = datasets.CATALOGUE.values()
    assert [entry.name for entry in entries] == ["news20", "w8a", "covtype"]
    assert all(entry.remote.rsplit("/", 1)[1] in entry.files for entry in entries)
    assert {"news20.svm.xz", "news20.bz2", "news20"} <= set(datasets.CATALOGUE["news20"].files)
    covtype = {"covtype.binary.svm.xz", "covtype.libsvm.binary.bz2", "covtype.libsvm.binary"}
    assert covtype <= set(datasets.CATALOGUE["covtype"].files)


def test_a_folder_without_it(small, folder, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"does not hold w8a; .* w8a\.svm\.xz or w8a\.bz2"):
        datasets.load("w8a", folder=folder)
    with pytest.raises(FileNotFoundError, match="is not a folder"):
        datasets.load("w8a", folder=folder / "none")
    with pytest.raises(FileNotFoundError, match="is not a folder"):
        datasets.available(folder / "none")
    monkeypatch.setenv("COORDWISE_DATA", str(folder))
    with pytest.raises(FileNotFoundError, match=r"w8a is not at hand\. .*COORDWISE_DATA"):
        datasets.load("w8a", download=False, stand_in=False)


@pytest.mark.parametrize("what", ["nothing", "a file"])
def test_a_wrong_folder_in_the_environment_is_told_and_ignored(what, small, folder, monkeypatch):
    (folder / "w8a").write_bytes(TEXT)
    monkeypatch.setenv("COORDWISE_DATA", str(folder / ("w8a" if what == "a file" else "none")))
    told = pytest.warns(UserWarning, match=r"COORDWISE_DATA='.*' is not a folder; it is ignored")
    with told as seen, pytest.raises(FileNotFoundError, match="w8a is not at hand"):
        datasets.load("w8a", download=False, stand_in=False)
    assert [warning.filename for warning in seen] == [__file__]
    with pytest.warns(UserWarning, match="is not a folder"):
        assert [row.source for row in datasets.available()] == [None] * 3
    check(datasets.load("w8a", folder=folder))  # what was asked for needs no environment
    with pytest.warns(UserWarning, match="is not a folder"):
        assert check(datasets.load("w8a")).source is datasets.Source.CACHE


def test_other_content_does_not_pass(small, folder):
    (folder / "w8a").write_bytes(TEXT.replace(b"2.5", b"2.6"))
    with pytest.raises(ValueError, match=r"w8a is not w8a: it has 4 rows and 4 entries, but other content.*load_file"):
        datasets.load("w8a", folder=folder)
    (folder / "w8a").write_bytes(TEXT + b"1\n")
    with pytest.raises(ValueError, match=r"5 rows and 4 entries, not 4 rows and 4 entries"):
        datasets.load("w8a", folder=folder)
    assert not list(cache.cache_folder().glob("w8a-*"))


def test_arguments():
    with pytest.raises(ValueError, match=r"name='w8b' is not known. Did you mean 'w8a'"):
        datasets.load("w8b")
    with pytest.raises(TypeError, match="name must be one of"):
        datasets.load(8)
    with pytest.raises(TypeError, match="progress must be callable"):
        datasets.load("w8a", progress=True)


@pytest.mark.parametrize("name", ["news20", "w8a", "covtype"])
def test_the_originals(name, paper_dataset):
    A, b = paper_dataset(name)
    entry = datasets.CATALOGUE[name]
    assert A.shape == (entry.n, entry.d)
    assert A.nnz == entry.nnz
    assert np.all(np.abs(b) == 1)
    assert np.sum(b == 1) == {"news20": 797, "w8a": 1_479, "covtype": 283_301}[name]


# The cache


def test_the_second_time_from_the_cache(small, folder, monkeypatch):
    (folder / "w8a").write_bytes(TEXT)
    first = check(datasets.load("w8a", folder=folder))
    monkeypatch.setattr(search, "parse", None)  # nothing is read again
    second = check(datasets.load("w8a", folder=folder))
    third = check(datasets.load("w8a"))  # also without the folder
    fourth = check(datasets.load("w8a", mmap=False))
    assert [data.source for data in (first, second, third, fourth)] == ["folder", "folder", "cache", "cache"]
    assert third.origin == "w8a"
    assert first.fingerprint == second.fingerprint == third.fingerprint
    assert is_mapped(second.A.data)
    assert is_mapped(second.A.indices)
    assert not second.A.data.flags.writeable
    assert not is_mapped(fourth.A.data)
    check(pickle.loads(pickle.dumps(second)))
    assert repr(second).startswith("Dataset(name='w8a', source=")


def test_a_mapped_matrix_can_be_solved(small, folder):
    (folder / "w8a").write_bytes(TEXT)
    data = datasets.load("w8a", folder=folder)
    mapped = cw.solve(cw.ERM(data.A, data.b, lam=0.1).dual(), tol=1e-13)
    plain = cw.solve(cw.ERM(data.A.toarray(), data.b, lam=0.1).dual(), tol=1e-13)
    assert mapped.converged
    np.testing.assert_allclose(mapped.w, plain.w, atol=1e-6)


def test_a_changed_file_is_read_again(place):
    file = place / "plain"
    file.write_bytes(TEXT)
    A, _ = datasets.load_file(file)
    assert is_mapped(A.data)
    assert A.shape == (4, 3)
    assert datasets.load_file(file, n_features=np.int64(7))[0].shape == (4, 7)
    assert datasets.load_file(file, zero_based=True)[0].shape == (4, 4)
    file.write_bytes(TEXT.replace(b"2.5", b"3.5"))
    os.utime(file, (1, 1))
    B, labels = datasets.load_file(str(file))
    assert B.data.tolist() == [1, 3.5, 1, -4]
    assert labels.tolist() == [1, -1, -1, 1]
    assert A.data.tolist() == [1, 2.5, 1, -4]  # what was loaded before stays
    with pytest.raises(FileNotFoundError):
        datasets.load_file(place / "none")


def test_files_of_one_name_in_two_folders(place):
    for value in (1, 2):
        file = place / str(value) / "same.svm"
        file.parent.mkdir()
        file.write_text(f"1 1:{value}\n")
        os.utime(file, (1, 1))
        assert datasets.load_file(file)[0].data.tolist() == [value]


def _truncate(folder):
    file = folder / "data.npy"
    file.write_bytes(file.read_bytes()[:-8])


def _replace(name, array):
    return lambda folder: np.save(folder / f"{name}.npy", array)


def _meta(**changes):
    def damage(folder):
        file = folder / "meta.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | changes))

    return damage


DAMAGES = {
    "truncated": _truncate,
    "empty": lambda folder: (folder / "indices.npy").write_bytes(b""),
    "missing": lambda folder: (folder / "indptr.npy").unlink(),
    "other length": _replace("indices", np.zeros(3, np.int32)),
    "other rows": _replace("indptr", np.array([0, 4], np.int32)),
    "other type": _replace("indices", np.zeros(4, np.float64)),
    "objects": _replace("labels", np.array([None] * 4)),
    "index too large": _replace("indices", np.array([0, 2, 1, 999], np.int32)),
    "index negative": _replace("indices", np.array([0, 2, 1, -1], np.int32)),
    "indptr decreases": _replace("indptr", np.array([0, 2, 1, 3, 4], np.int32)),
    "unordered": _replace("indices", np.array([2, 0, 1, 0], np.int32)),
    "no meta": lambda folder: (folder / "meta.json").unlink(),
    "broken meta": lambda folder: (folder / "meta.json").write_text("{"),
    "meta of another kind": lambda folder: (folder / "meta.json").write_text("[1]"),
    "meta without shape": lambda folder: (folder / "meta.json").write_text('{"format": 1}'),
    "meta with more": _meta(more=1),
    "other shape": _meta(shape=[5, 3]),
    "shape of text": _meta(shape=["a", "b"]),
    "fewer columns": _meta(shape=[4, 2]),
    "other format": _meta(format=0),
    "nothing": lambda folder: [file.unlink() for file in folder.iterdir()],
}


@pytest.mark.parametrize("name", ["data", "labels", "indices"])
def test_changed_values_are_noticed_where_they_are_copied(name, small, folder):
    """Everything fits together, but the content is another."""
    changed = {
        "data": np.array([1, 2.5, 1, -5.0]),
        "labels": np.array([1.0, -1, 1, 1]),
        "indices": np.array([0, 2, 2, 0], np.int32),
    }
    (folder / "w8a").write_bytes(TEXT)
    check(datasets.load("w8a", folder=folder))
    for given in ({"folder": folder}, {}):
        (entry,) = cache.cache_folder().iterdir()
        _replace(name, changed[name])(entry)
        with pytest.raises(AssertionError):
            check(datasets.load("w8a", mmap=True, **given))  # mapped values are not looked at
        if given:
            check(datasets.load("w8a", mmap=False, **given))  # read again
            check(datasets.load("w8a", mmap=True))
        else:
            with pytest.raises(FileNotFoundError):
                datasets.load("w8a", download=False, stand_in=False, mmap=False)
            assert list(cache.cache_folder().iterdir()) == []


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_entry_is_made_anew(damage, mmap, small, folder):
    (folder / "w8a").write_bytes(TEXT)
    check(datasets.load("w8a", folder=folder))
    (entry,) = cache.cache_folder().iterdir()
    DAMAGES[damage](entry)
    with pytest.raises(FileNotFoundError):
        datasets.load("w8a", download=False, stand_in=False, mmap=mmap)
    check(datasets.load("w8a", folder=folder, mmap=mmap))
    check(datasets.load("w8a", download=False, stand_in=False, mmap=mmap))
    assert len(list(cache.cache_folder().iterdir())) == 1


def test_a_cache_that_cannot_be_written(small, folder, place, monkeypatch):
    (folder / "w8a").write_bytes(TEXT)
    (place / "file").write_text("not a folder")
    monkeypatch.setenv("COORDWISE_CACHE", str(place / "file" / "cache"))
    with pytest.warns(datasets.CacheWarning, match="w8a is not kept in the cache"):
        check(datasets.load("w8a", folder=folder))
    with pytest.warns(datasets.CacheWarning, match="not kept"):
        datasets.load_file(folder / "w8a")
    assert [row.source for row in datasets.available(folder)] == [None, "folder", None]


def test_a_full_disk_leaves_nothing_behind(small, folder, monkeypatch):
    (folder / "w8a").write_bytes(TEXT)
    save, calls = np.save, []

    def failing(*args):
        calls.append(args)
        if len(calls) == 3:
            raise OSError(28, "No space left on device")
        save(*args)

    monkeypatch.setattr(np, "save", failing)
    with pytest.warns(datasets.CacheWarning, match="No space left on device"):
        check(datasets.load("w8a", folder=folder))
    assert list(cache.cache_folder().iterdir()) == []


def test_what_killed_writers_leave_is_swept(small, folder):
    (folder / "w8a").write_bytes(TEXT)
    old, new = (cache.cache_folder() / f"{cache.UNFINISHED}{age}" for age in ("old", "new"))
    for made in (old, new):
        made.mkdir(parents=True)
    os.utime(old, (1, 1))
    check(datasets.load("w8a", folder=folder))
    assert not old.exists()
    assert new.exists()


def test_several_writers(small, folder):
    (folder / "w8a").write_bytes(TEXT)
    with ThreadPoolExecutor(8) as pool:
        for data in pool.map(lambda _: datasets.load("w8a", folder=folder), range(40)):
            check(data)
    assert len(list(cache.cache_folder().iterdir())) == 1


def test_an_entry_of_another_process_is_used(small, folder, monkeypatch):
    (folder / "w8a").write_bytes(TEXT)
    check(datasets.load("w8a", folder=folder))
    (entry,) = cache.cache_folder().iterdir()
    shutil.copytree(entry, folder / "copy")
    shutil.rmtree(entry)
    write = cache._write

    def slow(unfinished, kept):
        write(unfinished, kept)
        shutil.copytree(folder / "copy", entry)  # the other one is done first

    monkeypatch.setattr(cache, "_write", slow)
    check(datasets.load("w8a", folder=folder))
    assert [found.name for found in cache.cache_folder().iterdir()] == [entry.name]


def test_the_folder_of_the_cache(monkeypatch, place):
    assert datasets.cache_folder() == place / "cache"
    monkeypatch.delenv("COORDWISE_CACHE")
    with_platformdirs = datasets.cache_folder()
    assert with_platformdirs.is_absolute()
    monkeypatch.setitem(sys.modules, "platformdirs", None)
    assert datasets.cache_folder() == with_platformdirs


def test_fingerprints_are_those_of_the_content():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 20)) * (rng.random((30, 20)) < 0.3)
    X[29, 19] = 0.0
    A = sp.csr_array(X)
    y = rng.standard_normal(30)
    known = datasets.fingerprint(A, y)
    wide = sp.csr_array((A.data, A.indices.astype(np.int64), A.indptr.astype(np.int64)), shape=A.shape)
    ends = np.append(A.indptr[:-1], A.nnz + 1)
    zeros = sp.csr_array((np.append(A.data, 0.0), np.append(A.indices, 19), ends), shape=A.shape)
    assert known == datasets.fingerprint(wide, y) == datasets.fingerprint(zeros, y)
    other = A.copy()
    other.data[3] += 1e-12
    assert known != datasets.fingerprint(other, y)
    assert known != datasets.fingerprint(A, -y)
    assert known != datasets.fingerprint(sp.csr_array((A.data, A.indices, A.indptr), shape=(30, 21)), y)


def test_what_is_available(small, folder, monkeypatch):
    assert [row.name for row in datasets.available()] == ["news20", "w8a", "covtype"]
    assert [row.source for row in datasets.available()] == [None] * 3
    (folder / "w8a").write_bytes(TEXT)
    assert [row.source for row in datasets.available(folder)] == [None, "folder", None]
    datasets.load("w8a", folder=folder)
    row = datasets.available()[1]
    assert (row.n, row.d, row.nnz, row.source, row.origin) == (4, 3, 4, "cache", "w8a")
    monkeypatch.setenv("COORDWISE_DATA", str(folder))
    assert datasets.available()[1].source == "folder"


def test_light_imports():
    code = (
        "import sys, coordwise, coordwise.datasets, coordwise.cli\n"
        "heavy = {'pooch', 'requests', 'rich', 'platformdirs', 'sklearn'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# Downloads


class Server:
    """A loopback server with answers by path: bytes, a status, or bytes and a wrong length."""

    def __init__(self):
        self.answers, self.asked = {}, []
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                server.asked.append(self.path)
                answer = server.answers.get(self.path, 404)
                if isinstance(answer, int):
                    self.send_error(answer)
                    return
                body, length = answer if isinstance(answer, tuple) else (answer, len(answer))
                self.send_response(200)
                self.send_header("Content-Length", str(length))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()


@pytest.fixture
def server(monkeypatch):
    pytest.importorskip("pooch")
    made = Server()
    monkeypatch.setenv("COORDWISE_MIRROR", f"{made.url}/sets/")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield made
    made.http.shutdown()
    made.http.server_close()


@pytest.fixture
def temporary(place, monkeypatch):
    """Where downloads go first."""
    made = place / "temporary"
    made.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(made))
    return made


@pytest.mark.parametrize("pack", [bytes, bz2.compress])
def test_download(pack, small, server, temporary):
    server.answers["/sets/binary/w8a"] = pack(TEXT)
    seen = []
    data = check(datasets.load("w8a", stand_in=False, progress=lambda *what: seen.append(what)))
    assert (data.source, data.origin) == ("download", f"{server.url}/sets/binary/w8a")
    size = len(pack(TEXT))
    assert ("downloading", size, size) in seen
    assert ("reading", size, size) in seen
    assert check(datasets.load("w8a")).source == "cache"
    assert datasets.load("w8a").origin == data.origin
    assert server.asked == ["/sets/binary/w8a"]
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (TEXT.replace(b"2.5", b"2.75"), "but other content"),
        (TEXT[:12], "1 rows and 2 entries, not 4 rows"),
        (bz2.compress(TEXT)[:-10], "damaged or cut short"),
        (b"<html>Please log in</html>", "line 1: '<html>Please' as a label is not a number"),
        (b"", "holds no samples"),
    ],
)
def test_wrong_content_is_deleted(answer, reason, small, server, temporary):
    server.answers["/sets/binary/w8a"] = answer
    told = rf"what http.*/sets/binary/w8a sent is not w8a, and was deleted: .*{reason}"
    with pytest.raises(datasets.DownloadError, match=told):
        datasets.load("w8a", stand_in=False)
    assert re.search(told, datasets.load("w8a").origin)
    assert list(temporary.iterdir()) == []
    assert not list(cache.cache_folder().glob("*"))
    server.answers["/sets/binary/w8a"] = TEXT
    assert check(datasets.load("w8a")).source == "download"


def test_a_download_that_breaks_off(small, server, temporary):
    server.answers["/sets/binary/w8a"] = TEXT, len(TEXT) + 100
    with pytest.raises(datasets.DownloadError, match=r"not at hand, and the download of http.* broke off\. Fetch"):
        datasets.load("w8a", stand_in=False)
    assert list(temporary.iterdir()) == []
    assert "broke off" in datasets.load("w8a").origin


def test_a_file_that_is_not_there(small, server):
    with pytest.raises(datasets.DownloadError, match=r"127\.0\.0\.1 answered 404 for http"):
        datasets.load("w8a", stand_in=False)
    data = datasets.load("w8a")
    assert not data.real
    assert data.source == "stand-in"
    assert "answered 404" in data.origin


def test_no_network_is_noticed_once(small, monkeypatch):
    pooch = pytest.importorskip("pooch")
    data = datasets.load("w8a")
    assert not data.real
    assert "generated stand-in" in data.origin
    assert "127.0.0.1 could not be reached" in data.origin
    monkeypatch.setattr(pooch, "retrieve", None)  # not asked again
    with pytest.raises(datasets.DownloadError, match="could not be reached"):
        datasets.load("w8a", stand_in=False)


def test_without_pooch(small, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(datasets.DownloadError, match=r'pip install "\.\[data\]"'):
        datasets.load("w8a", stand_in=False)


def test_passwords_of_a_mirror_are_not_shown():
    assert download.shown("https://user:secret@host:8/a/b") == "https://host:8/a/b"
