"""Data folders from .h5ad files: the matrix, targets and labels of the observations, and what is refused."""

import numpy as np
import pytest
import scipy.sparse as sp

from coordwise import datasets

anndata = pytest.importorskip("anndata")
pd = pytest.importorskip("pandas")

N, D = 200, 7


@pytest.fixture
def cells():
    rng = np.random.default_rng(0)
    X = sp.random_array((N, D), density=0.3, rng=rng, format="csr", dtype=np.float32)
    obs = pd.DataFrame(
        {"age": rng.integers(20, 80, N), "kind": pd.Categorical(rng.choice(["T", "B", "NK"], N)), "w": rng.random(N)},
        index=[f"cell{i}" for i in range(N)],
    )
    return X, obs, pd.DataFrame(index=[f"gene{j}" for j in range(D)])


def written(path, X, obs, var):
    anndata.AnnData(X=X, obs=obs, var=var).write_h5ad(path)
    return path


@pytest.mark.parametrize("storage", ["csr", "csc", "dense"])
def test_rows_targets_and_names(cells, storage, tmp_path):
    X, obs, var = cells
    stored = {"csr": X, "csc": sp.csc_array(X), "dense": X.toarray()}[storage]
    path = written(tmp_path / "cells.h5ad", stored, obs, var)
    folder = datasets.convert(path, tmp_path / "folder", target="age", weight="w", chunk_bytes=2000)
    assert folder.shape == (N, D)
    assert folder.dtype == np.float32
    assert folder.feature_names == tuple(var.index)
    assert len(folder) > 1
    parts = list(folder)
    rows = [part.X.toarray() if sp.issparse(part.X) else np.array(part.X) for part in parts]
    np.testing.assert_array_equal(np.concatenate(rows), X.toarray())
    np.testing.assert_array_equal(np.concatenate([part.y for part in parts]), obs["age"])
    np.testing.assert_array_equal(np.concatenate([part.s for part in parts]), obs["w"])


def test_labels_become_numbers_whose_names_are_kept(cells, tmp_path):
    X, obs, var = cells
    folder = datasets.convert(written(tmp_path / "cells.h5ad", X, obs, var), tmp_path / "folder", target="kind")
    assert folder.levels == {"kind": ["B", "NK", "T"]}
    np.testing.assert_array_equal(np.array(folder.levels["kind"])[folder.targets().astype(int)], obs["kind"])


def test_what_is_wrong_is_named(cells, tmp_path):
    X, obs, var = cells
    path = written(tmp_path / "cells.h5ad", X, obs, var)
    with pytest.raises(ValueError, match=r"target: .* no column 'size'; has: age, kind, w"):
        datasets.convert(path, tmp_path / "a", target="size")
    with pytest.raises(ValueError, match=r"weight: column 'kind' .* no number"):
        datasets.convert(path, tmp_path / "a", weight="kind")
    with pytest.raises(TypeError, match="target must be the name of an observation"):
        datasets.convert(path, tmp_path / "a", target=np.zeros(N))
    obs = obs.assign(age=obs["age"].astype(float).where(obs["age"] > 30))
    with pytest.raises(ValueError, match=r"column 'age' .* missing values"):
        datasets.convert(written(tmp_path / "other.h5ad", X, obs, var), tmp_path / "a", target="age")
    broken = tmp_path / "broken.h5ad"
    broken.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(ValueError, match=r"broken\.h5ad cannot be read"):
        datasets.convert(broken, tmp_path / "a")
    assert not (tmp_path / "a").exists()
