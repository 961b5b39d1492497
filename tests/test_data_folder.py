"""Data folders: what goes in comes out, the solvers run on it, and what is damaged is refused by name."""

import bz2
import gzip
import json
import lzma
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp
from folder_cases import SMALL, assert_same, problem, whole
from sklearn.datasets import dump_svmlight_file

from coordwise import datasets
from coordwise.datasets import manifest, mapped
from coordwise.losses import get_loss
from coordwise.oracle import Oracle, Problem
from coordwise.samples import Block, Memory
from coordwise.samples.base import RowsLost
from coordwise.solvers import NewtonCG


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("storage", ["csr", "csc", "coo", "dense", "fortran"])
def test_matrices_come_back(storage, dtype, tmp_path):
    A, y, s = problem(dtype=dtype)
    given = {"dense": A.toarray, "fortran": lambda: np.asfortranarray(A.toarray())}.get(
        storage, lambda: A.asformat(storage)
    )()
    folder = datasets.convert(given, tmp_path / "to", target=y, weight=s, chunk_bytes=SMALL)
    assert len(folder) > 3
    assert folder.shape == A.shape
    assert folder.dtype == dtype
    X, b, weights = whole(folder)
    assert_same(X, A if sp.issparse(given) else A.toarray())
    np.testing.assert_array_equal(b, y)
    np.testing.assert_array_equal(weights, s)
    np.testing.assert_array_equal(folder.targets(), y)
    assert folder.nnz == (A.nnz if sp.issparse(given) else A.shape[0] * A.shape[1])
    if sp.issparse(given):
        assert all(rows.X.indices.dtype == rows.X.indptr.dtype == np.int32 for rows in folder)
    for rows in folder:
        assert not rows.y.flags.writeable
        assert isinstance(rows.y, np.memmap)
    assert not (tmp_path / "to.partial").exists()


def test_chunks_have_the_size_that_was_asked_for(tmp_path):
    A, y, _ = problem()
    for given in (A, A.toarray()):
        folder = datasets.convert(given, tmp_path / f"{sp.issparse(given)}", target=y, chunk_bytes=SMALL)
        roles = ("values", "indices", "indptr") if sp.issparse(given) else ("dense",)
        sizes = [sum(chunk.files[role].bytes - 128 for role in roles) for chunk in folder.chunks]
        assert max(sizes) <= SMALL + 8  # the end of the last row
        assert min(sizes[:-1]) > SMALL / 2


def test_a_row_larger_than_a_chunk_and_rows_without_entries(tmp_path):
    A = sp.csr_array(np.vstack([np.zeros((3, 50)), np.ones((2, 50)), np.zeros((4, 50))]))
    folder = datasets.convert(A, tmp_path / "to", chunk_bytes=100)
    assert_same(whole(folder)[0], A)
    assert {chunk.nnz for chunk in folder.chunks} >= {0, 50}
    with pytest.raises(ValueError, match="holds no targets"):
        folder.samples()


@pytest.mark.parametrize("storage", ["csr", "dense"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
def test_sizes_are_known_without_a_visit(storage, dtype, weighted, tmp_path, monkeypatch):
    A, y, s = problem(dtype=dtype)
    given = A if storage == "csr" else A.toarray()
    folder = datasets.convert(given, tmp_path / "to", target=y, weight=s if weighted else None, chunk_bytes=SMALL)
    exact = (A.toarray().astype(float) ** 2).sum(axis=1) @ (s if weighted else np.ones(400))
    with monkeypatch.context() as patched:
        patched.setattr(datasets.Folder, "chunk", None)
        sizes = folder.samples(constant=True).sizes
    expected = (400, 31, 1, folder.nnz, s.sum() if weighted else 400, exact)
    np.testing.assert_allclose(sizes, expected, rtol=1e-13)


def test_several_targets(tmp_path):
    A, y, _ = problem()
    Y = np.column_stack([y, -y, np.arange(len(y))])
    folder = datasets.convert(A, tmp_path / "to", target=Y, chunk_bytes=SMALL)
    np.testing.assert_array_equal(whole(folder)[1], Y)
    assert folder.samples().sizes.outputs == 3


@pytest.mark.parametrize("storage", ["csr", "dense"])
@pytest.mark.parametrize("constant", [False, True])
def test_logistic_regression_on_a_folder_is_that_in_memory(storage, constant, tmp_path):
    A, y, s = problem()
    A = A if storage == "csr" else A.toarray()
    folder = datasets.convert(A, tmp_path / "to", target=np.where(y > 0, 2.0, 7.0), weight=s, chunk_bytes=SMALL)
    samples = folder.samples(lambda b: np.where(b == 2, 1.0, -1.0), constant=constant)
    memory = Memory(Block(A, y[:, None], s, constant=constant))
    np.testing.assert_allclose(samples.sizes, memory.sizes, rtol=1e-13)
    found = []
    for some in (samples, folder.samples(y, constant=constant), memory):
        oracle = Oracle(some, Problem(get_loss("logistic"), 1e-2, constant))
        *_, last = NewtonCG().rounds(oracle, np.zeros(oracle.shape), np.array([1e-10]))
        assert last.gap[0] <= 1e-10
        found.append(last.w)
    # P is 1e-2-strongly convex in the weights, and both have gaps of at most 1e-10.
    np.testing.assert_allclose(found[0], found[2], atol=2 * np.sqrt(2 * 1e-10 / 1e-2))
    np.testing.assert_array_equal(found[0], found[1])


@pytest.mark.parametrize("compress", [bytes, lzma.compress, bz2.compress, gzip.compress])
@pytest.mark.parametrize("zero_based", [False, True])
def test_svmlight(compress, zero_based, tmp_path):
    A, y, _ = problem()
    path = tmp_path / "text.svm"
    dump_svmlight_file(A, y, str(path), zero_based=zero_based)
    text = b"# a comment\n" + path.read_bytes().rstrip(b"\n")
    path.write_bytes(compress(text))
    expected, labels = datasets.read_svmlight(path)
    seen = []
    folder = datasets.convert(path, tmp_path / "to", chunk_bytes=SMALL, progress=lambda *args: seen.append(args))
    X, b, _ = whole(folder)
    assert_same(X, expected)
    np.testing.assert_array_equal(b, labels)
    assert len(seen) == len(folder) > 3
    assert seen[-1] == ("converting", path.stat().st_size, path.stat().st_size)


def test_svmlight_whose_index_0_comes_late(tmp_path, monkeypatch):
    monkeypatch.setattr("coordwise.datasets.svmlight.BLOCK", 64)
    path = tmp_path / "text.svm"
    path.write_text("".join(f"{k} 3:1 {k + 5}:2\n" for k in range(100)) + "7 0:1.5\n")
    expected, labels = datasets.read_svmlight(path)
    folder = datasets.convert(path, tmp_path / "to", chunk_bytes=200)
    assert_same(whole(folder)[0], expected)
    np.testing.assert_array_equal(folder.targets(), labels)


@pytest.mark.parametrize(
    "text", ["1 2:0 9:0\n2 1:1\n", "# nothing\n1\n\n2\n", "1 1:1\n2 0:0 3:1", "0 5000000000:1\n1 1:1\n"]
)
def test_svmlight_that_is_unusual(text, tmp_path):
    path = tmp_path / "text.svm"
    path.write_text(text)
    expected, labels = datasets.read_svmlight(path)
    for size in (1, 1000):
        folder = datasets.convert(path, tmp_path / f"{size}", chunk_bytes=size)
        X, b, _ = whole(folder)
        assert X.shape == (expected.shape[0], max(1, expected.shape[1]))
        np.testing.assert_array_equal(X.indices, expected.indices)
        np.testing.assert_array_equal(X.indptr, expected.indptr)
        np.testing.assert_array_equal(X.data, expected.data)
        np.testing.assert_array_equal(b, labels)
    path.write_text("# nothing\n")
    with pytest.raises(ValueError, match="source has no rows"):
        datasets.convert(path, tmp_path / "to")


def test_svmlight_counts_lines_across_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr("coordwise.datasets.svmlight.BLOCK", 64)
    path = tmp_path / "text.svm"
    path.write_text("".join(f"{k} 3:1\n" for k in range(100)) + "7 x:1.5\n" + "1 1:1\n" * 50)
    with pytest.raises(ValueError, match=r"text\.svm cannot be read as svmlight text: line 101: "):
        datasets.convert(path, tmp_path / "to", chunk_bytes=200)
    path.write_bytes(gzip.compress(path.read_bytes())[:-20])
    with pytest.raises(ValueError, match=r"text\.svm cannot be read .* damaged or cut short"):
        datasets.convert(path, tmp_path / "other", chunk_bytes=200)


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("storage", ["csr", "csc", "coo"])
def test_npz_of_scipy(storage, compressed, tmp_path):
    A, y, s = problem()
    sp.save_npz(tmp_path / "A.npz", A.asformat(storage), compressed=compressed)
    np.save(tmp_path / "y.npy", y)
    folder = datasets.convert(
        tmp_path / "A.npz", tmp_path / "to", target=str(tmp_path / "y.npy"), weight=s, chunk_bytes=SMALL
    )
    assert len(folder) > 3
    assert_same(whole(folder)[0], A)
    np.testing.assert_array_equal(folder.targets(), y)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_of_numpy(save, order, tmp_path):
    A, y, s = problem(dtype=np.float32)
    X = np.asarray(A.toarray(), order=order)
    save(tmp_path / "A.npz", X=X, labels=y, s=s)
    folder = datasets.convert(tmp_path / "A.npz", tmp_path / "to", target="labels", weight="s", chunk_bytes=SMALL)
    assert len(folder) > 3
    found, b, weights = whole(folder)
    assert_same(found, np.ascontiguousarray(X))
    np.testing.assert_array_equal(b, y)
    np.testing.assert_array_equal(weights, s)
    with pytest.raises(ValueError, match=r"has no array 'y', but X, labels, s"):
        datasets.convert(tmp_path / "A.npz", tmp_path / "other", target="y")


@pytest.mark.parametrize("name", ["a.csv.xz", "a.npy.gz", "a.mtx.xz"])
def test_compression_that_is_not_read(name, tmp_path):
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(ValueError, match=rf"{name} is compressed in a way that is not read for its kind"):
        datasets.convert(tmp_path / name, tmp_path / "to")


@pytest.mark.parametrize("name", ["a.NPY", "a.npz", "a.mtx", "a.svm"])
def test_files_that_are_something_else(name, tmp_path):
    (tmp_path / name).write_bytes(b"no matrix at all")
    with pytest.raises(ValueError, match=rf"{name} cannot be read as "):
        datasets.convert(tmp_path / name, tmp_path / "to")
    assert not (tmp_path / "to").exists()


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_archives_that_are_damaged(save, tmp_path):
    path = tmp_path / "a.npz"
    save(path, X=np.random.default_rng(0).standard_normal((300, 20)))
    content = path.read_bytes()
    for k in range(1000, len(content), 4001):
        path.write_bytes(content[:k] + bytes([content[k] ^ 255]) + content[k + 1 :])
        with pytest.raises(ValueError, match=r"a\.npz cannot be read as a \.npz file|holds NaN or infinity"):
            datasets.convert(path, tmp_path / "to", chunk_bytes=SMALL)
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match=r"a\.npz cannot be read as a \.npz file"):
        datasets.convert(path, tmp_path / "to")
    assert not (tmp_path / "to").exists()


def test_npy_and_matrix_market(tmp_path):
    A, y, _ = problem()
    np.save(tmp_path / "A.npy", A.toarray())
    folder = datasets.convert(tmp_path / "A.npy", tmp_path / "one", target=y, chunk_bytes=SMALL)
    assert_same(whole(folder)[0], A.toarray())
    scipy.io.mmwrite(tmp_path / "A.mtx", A, precision=17)
    folder = datasets.convert(tmp_path / "A.mtx", tmp_path / "two", target=y, chunk_bytes=SMALL)
    assert_same(whole(folder)[0], A)


@pytest.mark.parametrize("storage", ["csr", "dense"])
@pytest.mark.parametrize("rows", [1, 7, 400])
def test_batches(rows, storage, tmp_path):
    A, y, s = problem()
    given = A if storage == "csr" else A.toarray()

    def batches():
        return ((given[k : k + rows], y[k : k + rows], s[k : k + rows]) for k in range(0, 400, rows))

    for k, source in enumerate((batches, batches())):
        folder = datasets.convert(source, tmp_path / f"{k}", chunk_bytes=SMALL)
        assert len(folder) > 3
        X, b, weights = whole(folder)
        assert_same(X, given)
        np.testing.assert_array_equal(b, y)
        np.testing.assert_array_equal(weights, s)


def test_integers_become_float64_and_duplicates_are_added(tmp_path):
    A = sp.coo_array((np.ones(3, np.int64), ([0, 0, 1], [2, 2, 0])), shape=(2, 4))
    unordered = sp.csr_array((np.array([1.0, 2, 4]), np.array([3, 0, 3]), np.array([0, 3])), shape=(1, 4))
    X = whole(datasets.convert(A, tmp_path / "one"))[0]
    np.testing.assert_array_equal(X.toarray(), [[0, 0, 2, 0], [1, 0, 0, 0]])
    X = whole(datasets.convert(unordered, tmp_path / "two"))[0]
    np.testing.assert_array_equal(X.toarray(), [[2, 0, 0, 5]])
    np.testing.assert_array_equal(unordered.indices, [3, 0, 3])  # the argument is as it was


# What was converted is opened, and what is something else is not replaced.


def test_the_same_conversion_is_opened_again(tmp_path, monkeypatch):
    A, y, _ = problem()
    monkeypatch.setenv("COORDWISE_CACHE", str(tmp_path / "cache"))
    folder = datasets.convert(A, tmp_path / "to", target=y, chunk_bytes=SMALL)
    before = (tmp_path / "to" / "meta.json").stat().st_mtime_ns
    datasets.convert(A, tmp_path / "to", target=y, chunk_bytes=SMALL)
    assert datasets.open(tmp_path / "to").shape == folder.shape
    assert datasets.open(A, tmp_path / "to", target=y, chunk_bytes=SMALL).shape == folder.shape
    assert (tmp_path / "to" / "meta.json").stat().st_mtime_ns == before
    for other in ({"target": -y}, {"target": y, "weight": y**2}, {"target": y, "chunk_bytes": 2 * SMALL}):
        with pytest.raises(FileExistsError, match="was written from something else"):
            datasets.convert(A, tmp_path / "to", **{"chunk_bytes": SMALL, **other})
    np.save(tmp_path / "A.npy", A.toarray())
    first, second = (datasets.open(tmp_path / "A.npy", target=y) for _ in range(2))
    assert first.path == second.path
    assert first.path.parent == tmp_path / "cache"
    with pytest.raises(ValueError, match="to is missing; an iterator"):
        datasets.open(iter([(A, y)]))


def test_folders_of_others_are_left_alone(tmp_path):
    A, _, _ = problem()
    (tmp_path / "to").mkdir()
    (tmp_path / "to" / "letter.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="is not a data folder"):
        datasets.convert(A, tmp_path / "to")
    (tmp_path / "to").rename(tmp_path / "other.partial")
    with pytest.raises(FileExistsError, match="no conversion has written it"):
        datasets.convert(A, tmp_path / "other")
    assert (tmp_path / "other.partial" / "letter.txt").read_text() == "mine"


# Damage.


@pytest.fixture
def made(tmp_path):
    A, y, s = problem()
    datasets.convert(A, tmp_path / "to", target=y, weight=s, chunk_bytes=SMALL)
    return tmp_path / "to"


@pytest.mark.parametrize("role", ["values", "indices", "indptr", "targets", "weights"])
def test_a_truncated_file(role, made):
    path = made / f"000002.{role}.npy"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match=rf"000002\.{role}\.npy is truncated"):
        datasets.open(made)
    path.unlink()
    with pytest.raises(FileNotFoundError, match=rf"000002\.{role}\.npy is missing"):
        datasets.open(made)


@pytest.mark.parametrize("role", ["values", "indices", "indptr", "targets", "weights"])
def test_a_file_that_was_changed(role, made):
    path = made / f"000002.{role}.npy"
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    folder = datasets.open(made)
    folder.chunk(1)
    refusal = rf"000002\.{role}\.npy was changed after it had been written"
    with pytest.raises(ValueError, match=refusal):
        folder.chunk(2)
    with pytest.raises(ValueError, match=refusal):
        folder.check()
    with pytest.raises(RowsLost, match=refusal):  # by the thread that reads ahead
        Oracle(folder.samples(), Problem(get_loss("logistic"), 1.0)).at(np.zeros((30, 1)))


def test_a_file_that_changes_between_two_passes(made):
    folder = datasets.open(made)
    folder.check()
    path = made / "000001.values.npy"
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"000001\.values\.npy was changed"):
        list(folder)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(ValueError, match=r"000001\.values\.npy is truncated"):
        list(folder)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda meta: meta.update(version=2), "has version 2 of the format, and this coordwise reads up to 1"),
        (lambda meta: meta.update(format="other"), "does not describe a coordwise data folder"),
        (lambda meta: meta.update(shape=[401, 30]), "do not add up to the whole"),
        (lambda meta: meta.update(dtype="int8"), "unknown storage 'csr' or dtype 'int8'"),
        (lambda meta: meta.pop("nnz"), "it lacks 'nnz'"),
        (lambda meta: meta["chunks"].pop(), "do not add up to the whole"),
        (lambda meta: meta["chunks"][0]["files"].pop("targets"), "a chunk lacks an array"),
        (lambda meta: meta["chunks"][0]["files"]["values"].update(name="../x.npy"), "lies outside of the folder"),
    ],
)
def test_descriptions_that_are_wrong(change, match, made):
    meta = json.loads((made / "meta.json").read_text())
    change(meta)
    (made / "meta.json").write_text(json.dumps(meta))
    with pytest.raises(ValueError, match=match):
        datasets.Folder(made)


def test_descriptions_that_are_not_json(made, tmp_path):
    text = (made / "meta.json").read_text()
    (made / "meta.json").write_text(text[:-20])
    with pytest.raises(ValueError, match=r"meta\.json is damaged"):
        datasets.open(made)
    with pytest.raises(FileNotFoundError, match=r"is not a data folder: it has no meta\.json"):
        datasets.Folder(tmp_path)


def test_a_folder_can_be_moved(made, tmp_path):
    shutil.move(made, tmp_path / "elsewhere")
    datasets.open(tmp_path / "elsewhere").check()


# Wrong input.


def bad(change):
    A, y, s = problem()
    return {"source": A.toarray(), "target": y, "weight": s} | change(A.toarray(), y, s)


def holed(a, at):
    a = np.array(a)
    a[at] = np.nan
    return a


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda A, y, s: {"source": holed(A, (250, 7))}, r"first in row 250, column 7"),
        (lambda A, y, s: {"source": sp.csr_array(holed(A, (250, 7)))}, r"first in row 250, column 7"),
        (lambda A, y, s: {"target": holed(y, 3)}, r"target holds NaN or infinity .*\[3\]"),
        (lambda A, y, s: {"weight": -s}, r"weight of row 0 is negative"),
        (lambda A, y, s: {"target": y[:-1]}, r"target has 399 entries, but source has 400 rows"),
        (lambda A, y, s: {"weight": s[:, None]}, r"weight has shape \(400, 1\)"),
        (lambda A, y, s: {"target": "y"}, r"target='y' is not a \.npy file"),
        (lambda A, y, s: {"source": A[0]}, r"source has shape \(30,\)"),
        (lambda A, y, s: {"source": A[:0], "target": None, "weight": None}, r"source has shape \(0, 30\)"),
        (lambda A, y, s: {"categorical": ["a"]}, r"categorical=\['a'\] names columns"),
        (lambda A, y, s: {"chunk_bytes": 0}, r"chunk_bytes=0 is out of range"),
        (lambda A, y, s: {"source": iter([])}, r"target and weight are part of an iterator"),
        (lambda A, y, s: {"source": iter([]), "target": None, "weight": None}, r"source has no rows"),
    ],
)
def test_values_that_are_wrong(change, match, tmp_path):
    options = bad(change)
    with pytest.raises(ValueError, match=match):
        datasets.convert(options.pop("source"), tmp_path / "to", **{"chunk_bytes": SMALL, **options})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda A, y, s: {"source": A.astype(complex)}, "source must hold real numbers, not complex128"),
        (lambda A, y, s: {"source": pd.DataFrame(A)}, "source is a DataFrame; write it to a Parquet file"),
        (lambda A, y, s: {"source": 3}, "source must be a path, a numpy array"),
        (lambda A, y, s: {"source": [A], "target": None}, "source must be a path, a numpy array"),
        (lambda A, y, s: {"categorical": "a"}, "categorical='a' is a string"),
        (lambda A, y, s: {"progress": 1}, "progress must be callable"),
        (lambda A, y, s: {"source": iter([3]), "target": None, "weight": None}, "batch 0 is a int"),
    ],
)
def test_types_that_are_wrong(change, match, tmp_path):
    options = bad(change)
    with pytest.raises(TypeError, match=match):
        datasets.convert(options.pop("source"), tmp_path / "to", **options)


@pytest.mark.parametrize(
    ("second", "match"),
    [
        (lambda A, y: (A[:, :-1], y), "X of batch 1 has 29 columns, and those before it 30"),
        (lambda A, y: (A, y[:-1]), r"y of batch 1 has shape \(399,\), and X has 400 rows"),
        (lambda A, y: (A,), "batch 1 is of another kind"),
        (lambda A, y: (A.toarray(), y), "batch 1 is of another kind"),
        (lambda A, y: (A.astype(np.float32), y), "are of another kind than those before"),
    ],
)
def test_batches_that_do_not_fit_together(second, match, tmp_path):
    A, y, _ = problem()
    with pytest.raises(ValueError, match=match):
        datasets.convert(iter([(A, y), second(A, y)]), tmp_path / "to", chunk_bytes=SMALL)


def test_targets_that_are_wrong(made):
    folder = datasets.open(made)
    with pytest.raises(ValueError, match=r"targets has shape \(3,\); it must have shape \(400,\) or \(400, K\)"):
        folder.samples(np.ones(3))
    with pytest.raises(ValueError, match=r"targets\(y\) has shape \(1,\)"):
        folder.samples(lambda y: y[:1])


# Memory.


def test_pages_are_given_back(tmp_path):
    """Of the chunks that were visited none is resident, although their arrays are still held."""
    A = np.random.default_rng(0).standard_normal((4096, 256))
    folder = datasets.convert(A, tmp_path / "to", chunk_bytes=1 << 20)
    held = []
    for rows in folder:
        assert rows.X.sum() != 0
        held.append(rows.X)
        resident = [resident_bytes(X) for X in held]
        if resident[-1] is None:
            pytest.skip("the system does not tell which pages are resident")
        assert resident[-1] > 0
        assert not any(resident[:-1])
    np.testing.assert_array_equal(np.vstack(held), A)  # what was given back is read again


def resident_bytes(array):
    """Of the map that an array lies in, as Linux counts them for this process."""
    address = array.ctypes.data
    try:
        lines = Path("/proc/self/smaps").read_text().splitlines()
    except OSError:
        return None
    inside = False
    for line in lines:
        head = line.split()[0]
        if "-" in head and not head.endswith(":"):
            begin, end = (int(part, 16) for part in head.split("-"))
            inside = begin <= address < end
        elif inside and head == "Rss:":
            return int(line.split()[1]) * 1024
    return None


def test_only_chunks_that_do_not_fit_into_memory_are_forgotten(made, monkeypatch):
    forgotten = []
    monkeypatch.setattr("coordwise.datasets.folder.forget_file", lambda path: forgotten.append(path.name[:6]))
    first = datasets.Folder(made).chunks[0].bytes
    for keep, expected in ((None, set()), (first, {f"{k:06d}" for k in range(1, len(datasets.open(made)))})):
        folder = datasets.Folder(made, keep=keep)
        forgotten.clear()
        list(folder)
        assert set(forgotten) == expected
        forgotten.clear()
        list(Oracle(folder.samples(), Problem(get_loss("logistic"), 1.0)).at(np.zeros((30, 1))))
        assert set(forgotten) == expected


def test_memory_size_is_that_of_a_machine():
    assert 1 << 24 < mapped.memory_size() < 1 << 60


def test_the_description_names_every_array(made):
    folder = datasets.open(made)
    listed = {file.name for chunk in folder.chunks for file in chunk.files.values()}
    assert {path.name for path in made.iterdir()} == {manifest.META, *listed}
    assert "Folder(" in repr(folder)
