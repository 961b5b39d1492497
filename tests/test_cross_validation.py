"""LassoCV and ElasticNetCV choose what scikit-learn's twins choose."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model as theirs
from sklearn.model_selection import KFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from coordwise.estimators import ElasticNetCV, Lasso, LassoCV


@parametrize_with_checks([LassoCV(alphas=5), ElasticNetCV(alphas=5)])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 15)) * rng.uniform(0.3, 3, 15)
    y = X[:, :4] @ np.array([1.0, -2.0, 0.5, 1.5]) + 3 + rng.standard_normal(120)
    return X, y, rng.uniform(0.2, 2, 120)


def same(ours, scikits):
    assert ours.alpha_ == pytest.approx(scikits.alpha_, rel=1e-9)
    np.testing.assert_allclose(ours.alphas_, scikits.alphas_, rtol=1e-9)
    np.testing.assert_allclose(ours.mse_path_, scikits.mse_path_, rtol=1e-5)
    np.testing.assert_allclose(ours.coef_, scikits.coef_, atol=1e-6 * np.abs(scikits.coef_).max())
    assert ours.intercept_ == pytest.approx(scikits.intercept_, rel=1e-6)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("weighted", [False, True])
def test_lasso(data, storage, weighted):
    X, y, s = data
    s = s if weighted else None
    cv = KFold(4, shuffle=True, random_state=1)
    ours = LassoCV(alphas=20, cv=cv, tol=1e-10).fit(storage(X), y, sample_weight=s)
    same(ours, theirs.LassoCV(alphas=20, cv=cv, tol=1e-12, max_iter=100_000).fit(X, y, sample_weight=s))


def test_elastic_net_over_ratios_and_given_alphas(data):
    X, y, _ = data
    for alphas in (10, [1.0, 0.01, 0.1]):
        ours = ElasticNetCV(l1_ratio=[0.2, 0.9], alphas=alphas, tol=1e-10).fit(X, y)
        twin = theirs.ElasticNetCV(l1_ratio=[0.2, 0.9], alphas=alphas, tol=1e-12, max_iter=100_000).fit(X, y)
        assert ours.l1_ratio_ == twin.l1_ratio_
        assert ours.mse_path_.shape == (2, 10 if alphas == 10 else 3, 5)
        assert ours.alpha_ == pytest.approx(twin.alpha_, rel=1e-9)
        np.testing.assert_allclose(ours.mse_path_, twin.mse_path_, rtol=1e-4)


def test_threads_give_the_same(data):
    X, y, s = data
    one = LassoCV(alphas=10).fit(X, y, sample_weight=s)
    two = LassoCV(alphas=10, n_jobs=2).fit(X, y, sample_weight=s)
    every = LassoCV(alphas=10, n_jobs=-1).fit(X, y, sample_weight=s)
    for other in (two, every):
        np.testing.assert_array_equal(one.mse_path_, other.mse_path_)
        np.testing.assert_array_equal(one.coef_, other.coef_)


def test_the_last_fit_is_on_all_data_and_certified(data):
    X, y, _ = data
    found = LassoCV(alphas=10, tol=1e-8).fit(X, y)
    alone = Lasso(alpha=found.alpha_, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(found.coef_, alone.coef_, atol=1e-6)
    assert found.dual_gap_ <= 1e-8 * np.mean(y**2) / 2


def test_wrong_input(data):
    X, y, _ = data
    with pytest.raises(ValueError, match=r"alpha grid generation is not supported for l1_ratio=0"):
        ElasticNetCV(l1_ratio=0).fit(X, y)
    with pytest.raises(ValueError, match="'eps' parameter of LassoCV"):
        LassoCV(eps=-1).fit(X, y)
