"""Lasso and ElasticNet: scikit-learn's solutions, and zeros that are exact."""

import numpy as np
import pytest
import scipy.sparse as sp
from estimator_cases import MANY, SHAPES, assert_same, data, shapes, stores, weighted_or_not, with_and_without
from sklearn import linear_model as lm

from coordwise import estimators as E


@shapes
@stores
@weighted_or_not
@with_and_without
@pytest.mark.parametrize("ratio", [0.5, 1.0])
def test_lasso_and_elastic_net(shape, store, weighted, intercept, ratio):
    X, y, s = data(**shape)
    s = s if weighted else None
    alpha = 0.05 * np.abs(X.T @ y).max() / len(y)
    options = {"alpha": alpha, "fit_intercept": intercept, "max_iter": MANY}
    if ratio == 1:
        ours, theirs = E.Lasso(tol=2e-13, **options), lm.Lasso(tol=1e-12, **options)
    else:
        ours = E.ElasticNet(tol=1e-14, l1_ratio=ratio, **options)
        theirs = lm.ElasticNet(tol=1e-12, l1_ratio=ratio, **options)
    assert_same(ours.fit(store(X), y, sample_weight=s), theirs.fit(X, y, sample_weight=s))


@pytest.mark.parametrize("shape", ["tall", "wide"])
@weighted_or_not
def test_zeros_of_a_lasso_are_exact(shape, weighted):
    X, y, s = data(**SHAPES[shape])
    s = s if weighted else None
    alpha = 0.05 * np.abs(X.T @ y).max() / len(y)
    ours = E.Lasso(alpha=alpha, tol=1e-13, max_iter=MANY).fit(X, y, s)
    theirs = lm.Lasso(alpha=alpha, tol=1e-12, max_iter=MANY).fit(X, y, s)
    np.testing.assert_array_equal(ours.coef_ == 0, np.abs(theirs.coef_) < 1e-10 * np.abs(theirs.coef_).max())


@pytest.mark.parametrize("outputs", [0, 3])
def test_sparse_coefficients(outputs):
    X, y, _ = data(outputs=outputs)
    model = E.Lasso(alpha=1.0).fit(X, y)
    assert sp.issparse(model.sparse_coef_)
    np.testing.assert_array_equal(model.sparse_coef_.toarray(), np.atleast_2d(model.coef_))


def test_a_warm_start_after_a_fit_without_one():
    X, y, _ = data()
    model = E.Lasso(alpha=1.0, tol=1e-8).fit(X, y)
    first = model.passes_
    assert model.set_params(warm_start=True).fit(X, y).passes_ < first
