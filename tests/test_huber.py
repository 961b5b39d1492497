"""HuberRegressor: scikit-learn's solutions or better, exact fits, and what ends the search for the scale."""

import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from estimator_cases import assert_same, data, weighted_or_not, with_and_without
from sklearn import linear_model as lm
from sklearn.exceptions import ConvergenceWarning

from coordwise import estimators as E


def huber_objective(model, X, y, s):
    z = np.abs(y - model.predict(X)) / model.scale_
    H = np.where(z <= model.epsilon, z**2, 2 * model.epsilon * z - model.epsilon**2)
    return s @ (model.scale_ + model.scale_ * H) + model.alpha * model.coef_ @ model.coef_


@weighted_or_not
@with_and_without
@pytest.mark.parametrize("alpha", [1e-4, 1.0])
@pytest.mark.parametrize("store", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_huber(weighted, intercept, alpha, store):
    X, y, s = data(spread=0.3)
    y = y + 50 * (np.arange(len(y)) % 10 == 0)
    s = s if weighted else np.ones(len(y))
    options = {"alpha": alpha, "fit_intercept": intercept, "epsilon": 1.5}
    ours = E.HuberRegressor(tol=1e-13, max_iter=1000, **options).fit(store(X), y, s)
    theirs = lm.HuberRegressor(tol=1e-8, max_iter=100_000, **options).fit(X, y, s)
    assert huber_objective(ours, X, y, s) <= huber_objective(theirs, X, y, s) * (1 + 1e-10)
    assert_same(ours, theirs, 1e-3)  # L-BFGS stops there
    np.testing.assert_allclose(ours.scale_, theirs.scale_, rtol=1e-3)
    np.testing.assert_array_equal(ours.outliers_, theirs.outliers_)


def test_huber_of_an_exact_fit():
    X = data(n=20, d=30, spread=0.3)[0]
    y = X @ np.ones(30) + 1
    ours = E.HuberRegressor().fit(X, y)
    np.testing.assert_allclose(ours.predict(X), y, rtol=1e-3)
    assert ours.scale_ < 1e-3
    theirs = lm.HuberRegressor(max_iter=100_000).fit(X, y)
    assert huber_objective(ours, X, y, np.ones(20)) <= huber_objective(theirs, X, y, np.ones(20)) * (1 + 1e-3)


@pytest.mark.parametrize("alpha", [0.1, 1e-4])
def test_huber_of_a_nearly_exact_fit_reaches_its_tolerance_or_says_so(alpha):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 100))
    y = X @ rng.standard_normal(100) + 1 + rng.standard_normal(60)
    y[:6] += 20
    s = np.ones(60)
    with warnings.catch_warnings():  # its L-BFGS gives up
        warnings.simplefilter("ignore", ConvergenceWarning)
        theirs = lm.HuberRegressor(alpha=alpha, tol=1e-10, max_iter=100_000).fit(X, y)
    ours = E.HuberRegressor(alpha=alpha, tol=1e-8, max_iter=1000).fit(X, y)
    assert ours.result_.converged
    assert huber_objective(ours, X, y, s) <= huber_objective(theirs, X, y, s) * (1 + 1e-10)
    ours.set_params(tol=1e-13)
    if alpha < 0.1:  # residuals are rounding alone, and nothing is left to gain
        assert ours.fit(X, y).result_.converged
        assert np.abs(y - ours.predict(X)).max() <= 1e-12
        return
    with warnings.catch_warnings(record=True) as caught:  # rounding decides
        warnings.simplefilter("always", ConvergenceWarning)
        ours.fit(X, y)
    if ours.result_.converged:
        assert not caught
        assert huber_objective(ours, X, y, s) <= huber_objective(theirs, X, y, s) * (1 + 1e-10)
    else:
        assert len(caught) == 1
        assert caught[0].filename == __file__
        assert re.search("could not bring its scale to tol=1e-13.*left to gain", str(caught[0].message))


@pytest.mark.parametrize("tol", [1e-2, 1e-6, 1e-9])
@pytest.mark.parametrize("alpha", [1e-4, 1.0])
def test_the_stopping_inequalities_of_huber(tol, alpha):
    X, y, s = data(spread=0.3)
    y = y + 50 * (np.arange(len(y)) % 10 == 0)
    found = E.HuberRegressor(alpha=alpha, tol=tol, max_iter=1000).fit(X, y, s)
    sigma, delta, total = found.scale_, 1.35 * found.scale_, s.sum()

    def losses(r):
        r = np.abs(r)
        return s @ np.where(r <= delta, r**2 / 2, delta * r - delta**2 / 2) / total

    lam, w, dual = alpha * sigma / total, found.coef_, found.result_.y[:, 0]
    assert np.all(np.abs(dual) <= delta * s * (1 + 1e-12))
    assert abs(dual.sum()) <= 1e-10 * np.abs(dual).sum()
    moments = X.T @ dual / total
    value = losses(y - found.predict(X)) + lam / 2 * w @ w
    gap = value + (dual @ y + np.sum(dual**2 / (2 * s))) / total + moments @ moments / (2 * lam)
    np.testing.assert_allclose(found.dual_gap_, gap, rtol=1e-6, atol=1e-11 * losses(y))
    assert gap <= tol * losses(y) * (1 + 1e-9) + 1e-12 * losses(y)
    # in sigma: at most tol of the objective at zero above the best
    best = E.HuberRegressor(alpha=alpha, tol=1e-12, max_iter=1000).fit(X, y, s)
    at_zero = s @ (sigma + 2 * np.where(np.abs(y) <= delta, y**2 / 2, delta * np.abs(y) - delta**2 / 2) / sigma)
    left = huber_objective(found, X, y, s) - huber_objective(best, X, y, s)
    # twice total/sigma times the gap is left in w and c
    assert left <= tol * at_zero + 2 * total / sigma * gap + 1e-9 * at_zero
