"""Gram matrices of the samples that matter."""

import numpy as np
import pytest
import scipy.sparse as sp

import coordwise as cw
from coordwise.fitting import weighted
from coordwise.fitting.fit import fit
from coordwise.fitting.model import LinearModel
from coordwise.fitting.weighted import Gram, Most
from coordwise.rows import Rows


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("beside", [0, 2])
@pytest.mark.parametrize("storage", [sp.csr_array, sp.csc_array, np.asarray])
def test_rows_of_little_weight_are_left_out(storage, beside, threads):
    rng = np.random.default_rng(0)
    A = np.where(rng.random((5000, 9)) < 0.5, rng.standard_normal((5000, 9)), 0.0)
    more = rng.standard_normal((5000, beside)) if beside else None
    whole = A if more is None else np.column_stack([A, more])
    weights = 10.0 ** rng.uniform(-6, 0, 5000)
    weights[:50] = 0
    gram, lost = Rows(storage(A), "rows").gram_of_most(weights, 1e-3, threads, more)
    kept = np.where((weights < 1e-3) & (storage is not np.asarray), 0.0, weights)  # dense rows are all taken
    np.testing.assert_allclose(gram, whole.T @ (kept[:, None] * whole), rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(lost, (weights - kept) @ whole**2, rtol=1e-12, atol=1e-14)


def test_what_is_lost_has_one_entry_per_column():
    rows = Rows(sp.csr_array(np.ones((4, 2))), "rows")
    with pytest.raises(ValueError, match="what is lost has the wrong length"):
        rows._core.gram(np.ones(4), None, 1, 0.5, np.empty(3), np.empty((2, 2)))


@pytest.mark.parametrize("intercept", [False, True])
def test_features_that_would_lose_their_curvature_keep_it(intercept):
    rng = np.random.default_rng(1)
    A = rng.standard_normal((1000, 5)) * (rng.random((1000, 5)) < 0.25)
    A[:, 4] = 0
    A[:20, 4] = 1.0
    B = np.column_stack([A, np.ones(1000)]) if intercept else A
    weights = np.where(np.arange(1000) < 400, 1e-7, 1.0)
    whole = B.T @ (weights[:, None] * B)
    shifted = Most(Gram(sp.csr_array(A), intercept), 1.0)  # beside this, what is lost is nothing
    gram, used = shifted(weights)
    np.testing.assert_array_equal(used, np.where(weights < 1, 0.0, 1.0))
    np.testing.assert_allclose(gram, B.T @ (used[:, None] * B), atol=1e-12)
    alone = Most(Gram(sp.csr_array(A), intercept), 0.0)  # the last feature has no other samples
    gram, used = alone(weights)
    np.testing.assert_array_equal(used, weights)
    np.testing.assert_allclose(gram, whole, rtol=1e-12)
    assert alone.little < shifted.little
    again, _ = alone(weights)  # nobody has so little
    np.testing.assert_allclose(again, whole, rtol=1e-12)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("lam", [1e-4, 1e-7])
def test_steps_without_them_are_as_good(monkeypatch, lam, intercept):
    """Long samples are far on the right side: most of the products are theirs."""
    rng = np.random.default_rng(2)
    n, d = 6000, 100
    A = np.where(rng.random((n, d)) < np.where(np.arange(n) % 2, 0.4, 0.04)[:, None], 1.0, 0.0)
    score = A @ np.where(np.arange(d) % 4, 1.0, -0.4) - 1.0
    b = np.where(score + rng.logistic(size=n) > 0, 1.0, -1.0)
    made, plain = [], Most.__call__

    def counted(self, weights):
        gram, used = plain(self, weights)
        made.append(np.count_nonzero(used) / n)
        return gram, used

    monkeypatch.setattr(Most, "__call__", counted)
    found = {}
    for little in (weighted.LITTLE, 0.0):
        monkeypatch.setattr(weighted, "LITTLE", little)
        problem = cw.ERM(sp.csr_array(A), b, loss="logistic", penalty="l2", lam=lam)
        made.clear()
        found[little] = fit(LinearModel(problem, intercept), tol=1e-9, strategy="newton")
        assert found[little].converged
        assert (min(made) < 0.75) == (little > 0)
    ours, all_of_them = found.values()
    assert ours.passes <= all_of_them.passes + 1
    value, best = (
        np.logaddexp(0, -b * ((A @ f.w)[:, 0] + f.c)).mean() + lam / 2 * (f.w**2).sum() for f in (ours, all_of_them)
    )
    assert abs(value - best) <= 1e-9
