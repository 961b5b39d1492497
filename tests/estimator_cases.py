"""What tests of the estimators share: the estimators, data, and comparison with scikit-learn's."""

import functools

import numpy as np
import pytest
import scipy.sparse as sp

pytest.importorskip("sklearn")

from coordwise import estimators as E

REGRESSORS = [E.Ridge, E.Lasso, E.ElasticNet, E.LinearSVR, E.HuberRegressor, E.L2L1Regressor]
CLASSIFIERS = [E.LogisticRegression, E.LinearSVC, E.RidgeClassifier]
ALL = REGRESSORS + CLASSIFIERS
each = pytest.mark.parametrize("kind", ALL)
MANY = 200_000  # passes

ACCURATE = [
    E.Ridge(tol=1e-14),
    E.Lasso(tol=1e-13, max_iter=MANY),
    E.ElasticNet(tol=1e-13, max_iter=MANY),
    E.LinearSVR(tol=1e-12, max_iter=MANY),
    E.HuberRegressor(tol=1e-9, max_iter=1000),  # fits of the checks are exact: residuals are rounding below
    E.L2L1Regressor(tol=1e-12, alpha=0.01, max_iter=MANY),
    E.LogisticRegression(tol=1e-13, max_iter=1000),
    E.LinearSVC(tol=1e-16, max_iter=MANY),
    E.RidgeClassifier(tol=1e-14),
]


@functools.cache
def data(n=120, d=8, outputs=0, spread=1.0):
    """(X, y, weights): columns of different sizes and means, some entries zero."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d)) * 10 ** rng.uniform(-spread, spread, d) + rng.uniform(-1, 1, d)
    X *= rng.random((n, d)) < 0.8
    w = rng.standard_normal((d, outputs or 1)) / (np.abs(X).mean(0)[:, None] + 1e-3)
    y = X @ w + 2 + 3 * rng.standard_normal((n, outputs or 1))
    return X, (y if outputs else y[:, 0]), rng.uniform(0.1, 2, n)


def classes(y, count):
    names = np.array(["no", "yes"] if count == 2 else ["a", "b", "c", "d"][:count])
    return names[np.digitize(y, np.quantile(y, np.arange(1, count) / count))]


def target(kind, y):
    return classes(y, 2) if kind in CLASSIFIERS else y


STORES = {"dense": np.asarray, "csr": sp.csr_array, "csc": sp.csc_array}
stores = pytest.mark.parametrize("store", STORES.values(), ids=STORES)
weighted_or_not = pytest.mark.parametrize("weighted", [False, True], ids=["equal", "weighted"])
with_and_without = pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "through_0"])
SHAPES = {"tall": {}, "wide": {"n": 30, "d": 50}, "badly_scaled": {"spread": 2.5}}
shapes = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)


def assert_same(ours, theirs, rtol=1e-6):
    """The same coefficients and intercepts, up to the shape of those of one class or of none."""
    size = max(np.max(np.abs(theirs.coef_)), np.max(np.abs(theirs.intercept_)))
    for name in ("coef_", "intercept_"):
        a, b = np.squeeze(getattr(ours, name)), np.squeeze(getattr(theirs, name))
        assert a.shape == b.shape or not theirs.fit_intercept, (name, a.shape, b.shape)
        np.testing.assert_allclose(a, b, rtol=0, atol=rtol * size)
