"""Regularisation paths of the estimators."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model as theirs

from coordwise.estimators import ElasticNet, L2L1Regressor, Lasso, Ridge


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((90, 12)) * rng.uniform(0.5, 4, 12) + rng.uniform(-1, 1, 12)
    y = X[:, :3] @ np.array([1.0, -0.5, 2.0]) - 4 + rng.standard_normal(90)
    return X, y, rng.uniform(0.2, 2, 90)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    "model",
    [Lasso(tol=1e-11), ElasticNet(l1_ratio=0.4, tol=1e-11), Lasso(tol=1e-11, fit_intercept=False, positive=True)],
)
def test_every_point_is_the_fit_with_its_alpha(data, storage, model):
    X, y, s = data
    found = model.path(storage(X), y, alphas=8, sample_weight=s)
    assert found.alphas.shape == (8,)
    assert np.all(np.diff(found.alphas) < 0)
    assert found.alphas[-1] == pytest.approx(1e-3 * found.alphas[0])
    assert found.converged.all()
    for k, alpha in enumerate(found.alphas):
        alone = type(model)(**model.get_params() | {"alpha": alpha}).fit(storage(X), y, sample_weight=s)
        np.testing.assert_allclose(found.coefs[k], alone.coef_, atol=1e-6)
        assert found.intercepts[k] == pytest.approx(alone.intercept_, abs=1e-6)


def test_the_grid_begins_where_the_solution_is_zero(data):
    X, y, _ = data
    found = Lasso(tol=1e-12).path(X, y, alphas=5)
    np.testing.assert_allclose(found.coefs[0], 0, atol=1e-9)
    assert np.any(np.abs(found.coefs[1]) > 1e-3)
    alphas, coefs, _ = theirs.lasso_path(X - X.mean(0), y - y.mean(), alphas=5, eps=1e-3, tol=1e-12, max_iter=100_000)
    np.testing.assert_allclose(found.alphas, alphas, rtol=1e-9)
    np.testing.assert_allclose(found.coefs, coefs.T, atol=1e-6)


@pytest.mark.parametrize("model", [Ridge(tol=1e-12), L2L1Regressor(tol=1e-9)])
def test_given_alphas_in_any_order(data, model):
    X, y, _ = data
    found = model.path(X, y, alphas=[0.1, 10.0, 1.0])
    assert found.alphas.tolist() == [10.0, 1.0, 0.1]
    alone = type(model)(**model.get_params() | {"alpha": 1.0}).fit(X, y)
    np.testing.assert_allclose(found.coefs[1], alone.coef_, atol=1e-3 * np.abs(alone.coef_).max())
    assert not hasattr(model, "coef_")


def test_wrong_input(data):
    X, y, _ = data
    with pytest.raises(
        ValueError, match="alphas=100 is a number of values, which needs an l1 penalty; give the values"
    ):
        Ridge().path(X, y)
    with pytest.raises(ValueError, match="'tol' parameter of Lasso"):
        Lasso(tol=-1).path(X, y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        Lasso().path(X, y[:-1])
