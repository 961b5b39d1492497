"""Gram matrices of the samples that matter."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

import coordwise as cw
from coordwise.fitting import newton, weighted
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


def test_steps_beyond_all_bounds_are_too_long():
    most = Most(Gram(sp.csr_array(np.eye(3)), False), 1.0)
    weights, used = np.array([1.0, 1e-7, 1e-7]), np.array([1.0, 0.0, 0.0])
    assert not most.missed(weights, weights, np.full(3, 1e200), 1.0)
    assert not most.missed(weights, used, np.ones(3), 1.0)
    assert most.little == weighted.LITTLE
    assert most.missed(weights, used, np.full(3, 1e200), 1.0)
    assert most.little < weighted.LITTLE


def test_an_intercept_has_no_penalty_to_hide_behind():
    A = sp.csr_array(np.eye(5001)[:, :3])
    weights = np.full(5001, 9e-6)  # each is little, and together they are 4% of what the intercept has
    weights[0] = 1.0
    gram, used = Most(Gram(A, True), 1e6)(weights)
    np.testing.assert_array_equal(used, weights)
    assert gram[3, 3] == pytest.approx(weights.sum())
    _, used = Most(Gram(A, False), 1e6)(weights)
    assert np.count_nonzero(used) == 1


@pytest.mark.parametrize("intercept", [False, True])
def test_dual_variables_of_a_step_are_of_the_same_samples(monkeypatch, intercept):
    A, b = long_ones()
    model = LinearModel(cw.ERM(sp.csr_array(A), b, loss="logistic", penalty="l2", lam=1e-7), intercept)
    seen, step = [], newton._Output.step

    def checked(self, at):
        found = step(self, at)
        v = -model.problem.moments(found.y)[:, 0]
        np.testing.assert_allclose(v, found.aim, atol=1e-5 * np.abs(found.aim).max())
        if intercept:
            assert abs(found.y.sum()) <= 1e-9 * np.abs(found.y).sum()
        seen.append(self.most.little)
        return found

    monkeypatch.setattr(newton._Output, "step", checked)
    monkeypatch.setattr(newton._Output, "asks", lambda self, step: False)
    assert sum(1 for _ in itertools.islice(newton.newton(model, 1e-12), 8)) >= 5
    assert seen == [weighted.LITTLE] * len(seen)


def test_directions_that_only_samples_left_out_have_are_not_lost(monkeypatch):
    """Two heavy samples have all features: the diagonal is theirs, and what the others know of it is left out."""
    rng = np.random.default_rng(0)
    n, d = 2000, 50
    scales = 10.0 ** np.linspace(0, -1.5, d)
    A = np.where(rng.random((n, d)) < 0.2, rng.standard_normal((n, d)), 0.0) * scales
    A[:2] = scales
    b = rng.choice([-1.0, 1.0], n)
    b[:2] = 1, -1
    s = np.ones(n)
    s[:2] = 1e6
    told, missed = [], Most.missed

    def asked(self, *arguments):
        told.append(missed(self, *arguments))
        return told[-1]

    monkeypatch.setattr(Most, "missed", asked)
    passes = []
    for little in (weighted.LITTLE, 0.0):
        monkeypatch.setattr(weighted, "LITTLE", little)
        told.clear()
        problem = cw.ERM(sp.csr_array(A), b, loss="logistic", penalty="l2", lam=1e-8, sample_weight=s)
        found = fit(LinearModel(problem, False), tol=1e-6, strategy="newton")
        assert found.converged
        assert any(told) == (little > 0)
        passes.append(found.passes)
    assert passes[0] <= passes[1] + 1


def long_ones():
    """Long samples are far on the right side: most of the products are theirs."""
    rng = np.random.default_rng(2)
    n, d = 6000, 100
    A = np.where(rng.random((n, d)) < np.where(np.arange(n) % 2, 0.4, 0.04)[:, None], 1.0, 0.0)
    score = A @ np.where(np.arange(d) % 4, 1.0, -0.4) - 1.0
    return A, np.where(score + rng.logistic(size=n) > 0, 1.0, -1.0)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("lam", [1e-4, 1e-7])
def test_steps_without_them_are_as_good(monkeypatch, lam, intercept):
    A, b = long_ones()
    n = len(b)
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
