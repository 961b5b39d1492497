"""Gram matrices that are made from the last one."""

import numpy as np
import pytest
import scipy.sparse as sp

import coordwise as cw
from coordwise.fitting.fit import fit
from coordwise.fitting.model import LinearModel
from coordwise.fitting.weighted import Changing, Gram


class Counted:
    """A Gram matrix, and of how many samples each was made."""

    def __init__(self, A, intercept):
        self.gram, self.counts = Gram(A, intercept), []

    def __call__(self, weights):
        self.counts.append(np.count_nonzero(weights))
        return self.gram(weights)


@pytest.mark.parametrize("store", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("intercept", [False, True])
def test_only_samples_that_changed_are_looked_at(store, intercept):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((500, 6)) * (rng.random((500, 6)) < 0.5)
    B = np.column_stack([A, np.ones(500)]) if intercept else A
    counted = Counted(store(A), intercept)
    changing, weights = Changing(counted), (rng.random(500) < 0.5).astype(float)
    for share in (0.0, 0.1, 0.0, 0.01, 1.0, 0.1):
        flipped = rng.random(500) < share
        weights = np.where(flipped, 1 - weights, weights)
        found = changing(weights)
        np.testing.assert_allclose(found, B.T @ (weights[:, None] * B), atol=1e-11)
        found[:] = 0.0  # it belongs to the caller
        assert counted.counts[-1] == (weights.sum() if share == 1.0 or len(counted.counts) == 1 else flipped.sum())


def test_what_rounding_errors_would_be_in_is_made_anew():
    A = np.ones((100, 2))
    A[0] = 1e9, 0.0  # nearly all of the first column, for as long as it counts
    weights = np.ones(100)
    counted = Counted(A, False)
    changing = Changing(counted)
    changing(weights)
    weights[0] = 0.0
    np.testing.assert_array_equal(changing(weights), np.full((2, 2), 99.0))
    assert counted.counts == [100, 1, 99]
    weights[1] = 0.0
    np.testing.assert_array_equal(changing(weights), np.full((2, 2), 98.0))
    assert counted.counts[3:] == [1]


@pytest.mark.parametrize("loss", ["squared_hinge", "huber"])
@pytest.mark.parametrize("intercept", [False, True])
def test_newton_steps_look_at_fewer_and_fewer_samples(monkeypatch, loss, intercept):
    rng = np.random.default_rng(1)
    A = rng.standard_normal((3000, 8))
    t = A @ rng.standard_normal(8)
    b = np.sign(t + rng.standard_normal(3000)) if loss == "squared_hinge" else t + rng.standard_t(1.5, 3000)
    counts = []
    whole = Gram.__call__

    def counted(self, weights, beside=None):
        counts.append(np.count_nonzero(weights))
        return whole(self, weights, beside)

    monkeypatch.setattr(Gram, "__call__", counted)
    found = fit(LinearModel(cw.ERM(A, b, loss=loss, lam=1e-6), intercept), tol=1e-12, strategy="newton")
    assert found.converged
    assert len(counts) >= 3
    assert max(counts[2:]) < counts[0] / 4


@pytest.mark.parametrize("loss", ["squared_hinge", "smooth_hinge"])
def test_large_samples_and_columns_that_nearly_agree(loss):
    """Where rounding errors that large samples leave behind would be most of what tells two columns apart."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((800, 4))
    A[:, 1] = A[:, 0] + 1e-6 * rng.standard_normal(800)
    A[:10] *= 1e3
    b = np.sign(A @ [-1e6, 1e6, 1.0, 1.0] + rng.standard_normal(800))
    found = fit(LinearModel(cw.ERM(A, b, loss=loss, lam=1e-13), False), tol=1e-8, strategy="newton")
    assert found.converged
    assert found.iterations <= 30
