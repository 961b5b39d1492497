"""Stand-ins share with the originals what a coordinate method sees."""

import numpy as np
import pytest
import scipy.sparse as sp

import coordwise as cw
from coordwise import datasets

TABLE_2 = {
    "news20": {1e-3: 1.56772, 1e-2: 1.30740, 1e-1: 1.05110},
    "w8a": {1e-5: 1.11060, 1e-4: 1.04897, 1e-3: 1.00373},
    "covtype": {1.0: 1.04266, 10.0: 1.02787, 100.0: 1.00362},
}


@pytest.fixture(scope="module", params=list(TABLE_2))
def generated(request):
    return datasets.stand_in(request.param)


def norms2(A, axis):
    return np.asarray(A.multiply(A).sum(axis=axis)).ravel()


def test_table_2_within_a_percent(generated):
    n = generated.A.shape[0]
    for lam, factor in TABLE_2[generated.name].items():
        assert cw.theory.speedup(1 / n + norms2(generated.A, 1) / (lam * n**2)) == pytest.approx(factor, rel=0.01)


def test_shape_and_classes(generated):
    entry, A = datasets.CATALOGUE[generated.name], generated.A
    assert A.shape == (entry.n, entry.d)
    assert A.nnz == pytest.approx(entry.nnz, rel=0.01)
    assert A.indices.dtype == A.indptr.dtype == np.int32
    assert sp.csr_array((A.data, A.indices, A.indptr), shape=A.shape).has_canonical_format
    assert np.all(A.data != 0)
    np.testing.assert_array_equal(A.data, A.data.astype(np.float32))
    positive = {"news20": 797, "w8a": 1_479, "covtype": 283_301}[generated.name]
    assert np.sum(generated.b == 1) == pytest.approx(positive, rel=0.01)
    np.testing.assert_array_equal(generated.b, entry.labels(generated.classes))


def test_it_says_what_it_is(generated):
    assert not generated.real
    assert generated.source is datasets.Source.STAND_IN
    start = f"generated stand-in: random rows with the shape and the row norms of {generated.name}, not its data"
    assert generated.origin == start
    assert generated.fingerprint != datasets.CATALOGUE[generated.name].fingerprint


def test_rows_and_columns_resemble_the_originals(generated):
    A = generated.A
    lengths = np.diff(A.indptr)
    counts = np.sort(np.bincount(A.indices, minlength=A.shape[1]))[::-1]
    if generated.name == "news20":
        assert np.corrcoef(np.log(lengths), np.log(norms2(A, 1)))[0, 1] > 0.9
        assert counts[0] > 100 * counts[len(counts) // 2]
        assert np.unique(generated.classes).tolist() == list(range(1, 21))
    elif generated.name == "w8a":
        assert np.all(A.data == 1)
        assert np.sum(lengths == 0) == 4_203
        assert counts[0] > 5 * counts[150]
    else:
        assert np.all(A.data == np.rint(A.data))
        assert np.all(A[:, 10:].data == 1)
        assert np.all(A[:, 10:].sum(axis=1) == 2)  # an area and a soil each
        scales = np.sqrt(norms2(A[:, :10], 0))
        assert scales.max() > 50 * scales.min()


def test_classes_follow_a_linear_model_in_part(generated):
    A, b = generated.A[:20_000], generated.b[:20_000]
    if generated.name == "covtype":
        A = A @ sp.diags_array(1 / np.maximum(np.sqrt(norms2(A, 0)), 1))
    train, test = slice(0, None, 2), slice(1, None, 2)
    weights = np.where(b[train] > 0, 0.5 / np.mean(b[train] > 0), 0.5 / np.mean(b[train] < 0))
    problem = cw.ERM(A[train], b[train], loss="logistic", lam=1e-4, sample_weight=weights)
    margin = A[test] @ cw.solve(problem.dual(), tol=1e-3, max_passes=30).w
    positive, negative = margin[b[test] > 0], margin[b[test] < 0][:500]
    auc = np.mean(positive[:, None] > negative[None]) + np.mean(positive[:, None] == negative[None]) / 2
    assert 0.65 < auc < 0.98


def test_the_seed_and_the_share_of_rows():
    first, again, other = (datasets.stand_in("w8a", seed=seed, scale=0.05) for seed in (1, 1, 2))
    assert first.fingerprint == again.fingerprint != other.fingerprint
    assert first.A.shape == (2_487, 300)
    np.testing.assert_array_equal(*(np.sort(np.diff(data.A.indptr)) for data in (first, other)))
    for name in TABLE_2:
        data = datasets.stand_in(name, scale=1e-3)
        assert data.A.shape[0] < 600
        assert set(np.unique(data.b)) == {-1.0, 1.0}


def test_arguments():
    with pytest.raises(ValueError, match="scale=2 is out of range"):
        datasets.stand_in("w8a", scale=2)
    with pytest.raises(ValueError, match="name='iris' is not known"):
        datasets.stand_in("iris")
    with pytest.raises(TypeError, match="seed must be"):
        datasets.stand_in("w8a", seed="one")
