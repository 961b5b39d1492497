"""Tables become data folders: numbers, one-hot features of categorical columns, and refusals that name the column."""

import gzip

import numpy as np
import pytest
from folder_cases import whole

from coordwise import datasets

pa = pytest.importorskip("pyarrow")
csv = pytest.importorskip("pyarrow.csv")
feather = pytest.importorskip("pyarrow.feather")
parquet = pytest.importorskip("pyarrow.parquet")

KINDS = ["a.csv", "a.csv.gz", "a.parquet", "a.arrow", "a.feather"]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Text of the length below comes in several batches."""
    monkeypatch.setattr("coordwise.datasets.sources.tables.BLOCK", 1 << 12)


COLOURS = np.array(["red", "green", "blue", "a,b"])


def columns(n=500, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "u": rng.standard_normal(n),
        "colour": COLOURS[rng.integers(0, 4, n)],
        "y": rng.standard_normal(n),
        "k": rng.integers(-1, 2, n),
        "size": rng.integers(1, 3, n),
        "s": rng.uniform(0.5, 1, n),
    }


def write(path, table):
    table = table if isinstance(table, pa.Table) else pa.table(table)
    name = path.name
    if ".csv" in name:
        csv.write_csv(table, path)  # compressed as its name says
        if name.endswith(".gz") and path.read_bytes()[:2] != b"\x1f\x8b":
            path.write_bytes(gzip.compress(path.read_bytes()))
    elif name.endswith(".parquet"):
        parquet.write_table(table, path, row_group_size=200)
    elif name.endswith(".feather"):
        feather.write_feather(table, path, compression="uncompressed", chunksize=90)
    else:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=90)
    return path


@pytest.mark.parametrize("name", KINDS)
def test_numbers(name, tmp_path):
    given = {key: value for key, value in columns().items() if key != "colour"}
    path = write(tmp_path / name, given)
    folder = datasets.convert(path, tmp_path / "to", target="y", weight="s", chunk_bytes=3000)
    X, y, s = whole(folder)
    assert folder.feature_names == ("u", "k", "size")
    np.testing.assert_array_equal(X, np.column_stack([given["u"], given["k"], given["size"]]))
    np.testing.assert_array_equal(y, given["y"])
    np.testing.assert_array_equal(s, given["s"])
    assert len(folder) > 2


@pytest.mark.parametrize("name", KINDS)
def test_categorical_columns_become_one_feature_per_value(name, tmp_path):
    given = columns()
    path = write(tmp_path / name, given)
    folder = datasets.convert(path, tmp_path / "to", target="y", categorical=["colour", "size"], chunk_bytes=3000)
    levels = sorted(COLOURS)
    assert folder.levels == {"colour": levels, "size": ["1", "2"]}
    assert folder.feature_names == ("u", *(f"colour={c}" for c in levels), "k", "size=1", "size=2", "s")
    hot = [given["colour"] == c for c in levels]
    expected = np.column_stack([given["u"], *hot, given["k"], given["size"] == 1, given["size"] == 2, given["s"]])
    X, y, _ = whole(folder)
    np.testing.assert_array_equal(X.toarray(), expected)
    assert X.has_canonical_format
    assert X.nnz == np.count_nonzero(expected)
    np.testing.assert_array_equal(y, given["y"])
    again = datasets.open(folder.path)
    assert (again.levels, again.feature_names) == (folder.levels, folder.feature_names)


def test_many_values_take_no_dense_detour(tmp_path):
    """Dense, these rows would take 20,000 x 20,000 x 8 = 3.2 GB."""
    n = 20_000
    path = write(tmp_path / "a.parquet", {"id": np.arange(n).astype(str), "y": np.ones(n)})
    folder = datasets.convert(path, tmp_path / "to", target="y", categorical=["id"])
    assert folder.shape == (n, n)
    assert folder.nnz == n
    X = whole(folder)[0]
    order = np.argsort(np.arange(n).astype(str))
    np.testing.assert_array_equal(X.indices[order], np.arange(n))


def test_types_are_kept(tmp_path):
    given = {"u": np.arange(5, dtype=np.float32), "v": np.ones(5, np.float32), "y": np.arange(5)}
    path = write(tmp_path / "a.parquet", given)
    folder = datasets.convert(path, tmp_path / "to", target="y")
    assert folder.dtype == np.float32
    assert whole(folder)[1].dtype == np.float64
    given |= {"b": np.array([True, False, True, True, False]), "d": pa.array([1, 2, 3, 4, 5], pa.decimal128(5, 2))}
    folder = datasets.convert(write(tmp_path / "b.parquet", given), tmp_path / "more", target="y")
    assert folder.dtype == np.float64
    np.testing.assert_array_equal(whole(folder)[0][:, 2:].T, [[1, 0, 1, 1, 0], [1, 2, 3, 4, 5]])


def test_dictionaries_are_categorical_columns_like_any_other(tmp_path):
    colours = pa.array(["b", "a", "b", "c"]).dictionary_encode()
    path = write(tmp_path / "a.arrow", {"colour": colours})
    X = whole(datasets.convert(path, tmp_path / "to", categorical=["colour"]))[0]
    np.testing.assert_array_equal(X.toarray(), [[0, 1, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("column", ["u", "colour", "y", "k"])
def test_missing_values_are_counted(column, name, tmp_path):
    given = {key: list(value) for key, value in columns().items()}
    for row in (123, 124, 400):
        given[column][row] = None
    path = write(tmp_path / name, given)
    with pytest.raises(ValueError, match=rf"column '{column}' of {name} has 3 missing values"):
        datasets.convert(path, tmp_path / "to", target="y", categorical=["colour"], chunk_bytes=3000)


def test_nan_is_missing(tmp_path):
    path = write(tmp_path / "a.parquet", {"u": [1.0, float("nan")]})
    with pytest.raises(ValueError, match=r"column 'u' of a\.parquet has 1 missing value "):
        datasets.convert(path, tmp_path / "to")


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"target": "z"}, r"target: a\.\w+ has no column 'z'; it has u, colour, y, k, size, s"),
        ({"categorical": ["z"]}, r"categorical: a\.\w+ has no column 'z'"),
        ({"target": "y", "weight": "y"}, "a column is named twice"),
        ({}, "column 'colour'"),
        ({"target": "colour"}, "column 'colour'"),
    ],
)
@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_columns_that_are_wrong(name, options, match, tmp_path):
    path = write(tmp_path / name, columns())
    with pytest.raises(ValueError, match=match) as refusal:
        datasets.convert(path, tmp_path / "to", **options)
    if not options:
        assert "categorical" in str(refusal.value)


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.arrow"])
def test_files_that_are_no_tables(name, tmp_path):
    (tmp_path / name).write_bytes(b"" if name == "a.csv" else b"no table at all")
    with pytest.raises(ValueError, match=rf"{name} cannot be read"):
        datasets.convert(tmp_path / name, tmp_path / "to")
    with pytest.raises(TypeError, match="target must be the name of a column"):
        datasets.convert(tmp_path / name, tmp_path / "to", target=np.ones(3))


def test_integers_that_float64_rounds_are_refused(tmp_path):
    path = write(tmp_path / "a.parquet", {"u": np.array([2**53 + 1])})
    with pytest.raises(ValueError, match="column 'u' does not fit into float64"):
        datasets.convert(path, tmp_path / "to")


def test_two_columns_of_one_name(tmp_path):
    (tmp_path / "a.csv").write_text("u,u\n1,2\n")
    with pytest.raises(ValueError, match="has two columns 'u'"):
        datasets.convert(tmp_path / "a.csv", tmp_path / "to")
