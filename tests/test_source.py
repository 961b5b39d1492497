"""What estimators ask of data that are elsewhere, of a folder: labels, targets and weights made of its own, shifts."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from folder_cases import SMALL, problem, whole

from coordwise import datasets, visits
from coordwise.losses import get_loss
from coordwise.oracle import Oracle, Problem
from coordwise.samples import Block, Memory, is_source
from coordwise.samples.base import RowsLost
from coordwise.samples.moved import moved


def signs(y):
    return np.where(y == 2, 1.0, -1.0)


def doubled(y, s):
    return np.where(y == 2, 2.0, 1.0) * (1.0 if s is None else s)


@pytest.fixture(params=[False, True])
def made(request, tmp_path):
    A, y, s = problem()
    y = np.where(y > 0, 2.0, np.arange(400) % 2)
    weight = s if request.param else None
    folder = datasets.convert(A, tmp_path / "to", target=y, weight=weight, chunk_bytes=SMALL)
    assert len(folder) > 3
    return folder, A, y, weight


def test_labels_are_distinct_targets_with_their_weights(made):
    folder, _, y, s = made
    assert is_source(folder)
    assert folder.weighted == (s is not None)
    values, sums = folder.labels()
    np.testing.assert_array_equal(values, [0.0, 1.0, 2.0])
    counted = np.ones(400) if s is None else s
    np.testing.assert_allclose(sums, [counted[y == value].sum() for value in values], rtol=1e-13)


@pytest.mark.parametrize("constant", [False, True, 3.0])
def test_targets_and_weights_are_made_of_those_of_the_source(made, constant):
    folder, A, y, s = made
    samples = folder.samples(signs, weights=doubled, constant=constant)
    memory = Memory(Block(A, signs(y)[:, None], doubled(y, s), constant=constant))
    np.testing.assert_allclose(samples.sizes, memory.sizes, rtol=1e-12)
    found = [
        Oracle(some, Problem(get_loss("logistic"), 0.1, bool(constant))).at(
            np.linspace(-1, 1, 30 + bool(constant))[:, None]
        )
        for some in (samples, memory)
    ]
    np.testing.assert_allclose(found[0].value, found[1].value, rtol=1e-12)
    np.testing.assert_allclose(found[0].gradient, found[1].gradient, atol=1e-13)
    pickle.loads(pickle.dumps((signs, doubled)))


@pytest.mark.parametrize("number", [1.0, 2.5])
def test_the_constant_is_a_column_of_this_number(number):
    A, y, s = problem()
    block = Block(A, y[:, None], s, constant=number)
    plain = Block(sp.hstack([A, np.full((400, 1), number)], format="csr"), y[:, None], s)
    w, h = np.linspace(-1, 1, 31)[:, None], s[:, None]
    np.testing.assert_allclose(block.product(w), plain.product(w), atol=1e-12)
    np.testing.assert_allclose(block.adjoint(h), plain.adjoint(h), rtol=1e-12)
    np.testing.assert_allclose(block.squares(h), plain.squares(h), rtol=1e-12)
    np.testing.assert_allclose(block.gram(s), plain.gram(s), rtol=1e-12, atol=1e-12)
    some = np.array([2, 5])
    np.testing.assert_allclose(block.gram(s, columns=some), plain.gram(s, columns=np.array([2, 5, 30])), rtol=1e-12)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array, sp.csc_array])
def test_features_are_moved(storage):
    X = np.random.default_rng(0).standard_normal((50, 4)) + np.array([0.0, 1000.0, 0.0, -50.0])
    shift = np.array([0.0, 999.0, 0.0, -51.0])
    there = moved(storage(X), shift)
    assert type(there) is type(storage(X))
    np.testing.assert_allclose(there.toarray() if sp.issparse(there) else there, X - shift, rtol=0, atol=0)


def test_samples_are_moved(made):
    folder, A, *_ = made
    shift = np.where(np.arange(30) == 3, 7.0, 0.0)
    samples = folder.samples(signs, shift=shift)
    t = np.concatenate(samples.visit(lambda block: (block.product(np.ones((30, 1))), []))[0])
    np.testing.assert_allclose(t[:, 0], A @ np.ones(30) - 7.0, atol=1e-12)


def test_targets_and_weights_beside_a_folder(made):
    folder, _, y, _ = made
    mine, weights = np.arange(800.0).reshape(400, 2), np.linspace(0, 1, 400)
    other = folder.beside(mine, weights)
    assert (other.target_shape, other.weighted) == ((2,), True)
    np.testing.assert_array_equal(other.targets(), mine)
    np.testing.assert_array_equal(whole(other)[2], weights)
    assert other.samples().sizes.total == pytest.approx(weights.sum(), rel=1e-13)
    np.testing.assert_array_equal(folder.targets(), y)
    only = folder.beside(s=weights)
    np.testing.assert_allclose(only.labels()[1], [weights[y == value].sum() for value in (0, 1, 2)], rtol=1e-12)
    np.testing.assert_array_equal(folder.beside(y=y % 2).labels()[0], [0.0, 1.0])
    assert folder.beside(y).target_shape == ()


@pytest.mark.parametrize(
    ("y", "s", "message"),
    [
        (np.ones(3), None, r"y has shape \(3,\); it must have shape \(400,\) or \(400, K\)"),
        (np.full(400, np.nan), None, "y holds NaN or infinity"),
        (None, np.ones(3), r"sample_weight has shape \(3,\)"),
        (None, -np.ones(400), "sample_weight must be at least 0"),
        (None, np.zeros(400), "at least one positive"),
    ],
)
def test_what_is_refused_beside_a_folder(made, y, s, message):
    with pytest.raises(ValueError, match=message):
        made[0].beside(y, s)


def test_what_has_no_labels(made, tmp_path, monkeypatch):
    folder, A, *_ = made
    with pytest.raises(ValueError, match="classes need one"):
        folder.beside(np.ones((400, 2))).labels()
    with pytest.raises(ValueError, match="holds no targets"):
        datasets.convert(A, tmp_path / "bare").labels()
    monkeypatch.setattr("coordwise.datasets.folder.MOST_LABELS", 300)
    with pytest.raises(ValueError, match="more than 300 distinct targets"):
        folder.beside(np.arange(400.0)).labels()


def test_the_head_is_the_first_rows(made):
    folder, A, y, s = made
    X, first, weights = folder.head()
    np.testing.assert_array_equal(X.toarray(), A[: X.shape[0]].toarray())
    np.testing.assert_array_equal(first, y[: len(first)])
    assert (weights is None) == (s is None)


def test_visits_that_need_no_rows_leave_them_on_the_disk(made):
    folder, A, y, s = made
    samples, memory = folder.samples(signs, weights=doubled), Memory(Block(A, signs(y)[:, None], doubled(y, s)))
    loss = get_loss("logistic")
    assert samples.sizes.n == 400  # a visit with rows
    for chunk in folder.chunks:
        (folder.path / chunk.files["values"].name).unlink()
    found = []
    for some in (samples, memory):
        scores = some.visit(visits.zeros)[0]
        scores = some.visit(visits.shifted, scores, by=np.array([0.3]))[0]
        found.append(some.visit(visits.value, scores, loss=loss)[1][0])
        found.append(some.visit(visits.slope_and_size, scores, loss=loss)[1][0])
    np.testing.assert_allclose(found[:2], found[2:], rtol=1e-12)
    with pytest.raises(RowsLost, match="is missing"):
        samples.visit(visits.product, w=np.ones((30, 1)))
