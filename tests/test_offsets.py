"""Features and targets whose means are far above their spreads: the same models as without the offset."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from estimator_cases import REGRESSORS, classes, weighted_or_not
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning

from coordwise import estimators as E
from coordwise.fitting.offsets import near_zero
from coordwise.losses import Squared

MODELS = [
    E.Ridge(tol=1e-10),
    E.Lasso(alpha=0.01, tol=1e-10),
    E.ElasticNet(alpha=0.01, tol=1e-10),
    E.HuberRegressor(tol=1e-8),
    E.L2L1Regressor(alpha=1e-3, tol=1e-8),
    E.LinearSVR(intercept_scaling=np.inf, tol=1e-8, max_iter=100_000),
    E.RidgeCV(tol=1e-10),
    E.RidgeCV(cv=3, tol=1e-10),
    E.LassoCV(alphas=5, cv=3, tol=1e-8),
    E.ElasticNetCV(alphas=5, cv=3, tol=1e-8),
    E.LogisticRegression(tol=1e-8, max_iter=1000),
    E.LogisticRegression(l1_ratio=1, tol=1e-8, max_iter=1000),
    E.LogisticRegressionCV(Cs=3, cv=3, tol=1e-8, max_iter=1000),
    E.RidgeClassifier(tol=1e-8),
    E.RidgeClassifierCV(tol=1e-8),
    E.LinearSVC(intercept_scaling=np.inf, tol=1e-8, max_iter=100_000),
]
BITS = 2.0**-20  # entries with so few digits that adding an offset loses none


def coarse(X):
    return np.round(X / BITS) * BITS


def problem(seed, n=90, d=6):
    rng = np.random.default_rng(seed)
    X = coarse(rng.standard_normal((n, d)))
    y = coarse(X @ rng.standard_normal(d) + 0.3 * rng.standard_normal(n))
    return X, y, rng.uniform(0.2, 2, n), rng


def name_of(model):
    return f"{type(model).__name__}{'_l1' if getattr(model, 'l1_ratio', 0) == 1 else ''}"


@pytest.mark.parametrize("offset", [2.0**14, 2.0**30])
@pytest.mark.parametrize("model", MODELS, ids=name_of)
@pytest.mark.parametrize("store", [np.asarray, sp.csr_array, sp.csc_array], ids=["dense", "csr", "csc"])
@weighted_or_not
def test_predictions_do_not_see_an_offset(model, offset, store, weighted):
    X, y, s, rng = problem(1)
    s = s if weighted else None
    counts = (2, 3) if isinstance(model, (E.LogisticRegression, E.RidgeClassifier)) else (2,)
    for count in counts if is_classifier(model) else (0,):
        target = classes(y, count) if count else y
        shift = offset * np.where(np.arange(X.shape[1]) % 3 == 2, 0.0, rng.choice([-1.0, 1.0], X.shape[1]))
        plain, moved = (clone(model).fit(store(A), target, sample_weight=s) for A in (X, X + shift))
        size = np.abs(plain.coef_).max()
        np.testing.assert_allclose(moved.coef_, plain.coef_, rtol=0, atol=1e-3 * size)
        expected = plain.intercept_ - plain.coef_ @ shift
        np.testing.assert_allclose(moved.intercept_, expected, rtol=0, atol=3e-3 * size * offset)
        if is_classifier(model):
            assert np.mean(moved.predict(X + shift) == plain.predict(X)) > 0.98
        else:
            np.testing.assert_allclose(moved.predict(X + shift), plain.predict(X), atol=1e-2 * y.std())


@pytest.mark.parametrize("model", [one for one in MODELS if isinstance(one, tuple(REGRESSORS))], ids=name_of)
def test_predictions_follow_an_offset_of_the_targets(model):
    X, y, *_ = problem(2)
    plain, moved = clone(model).fit(X, y), clone(model).fit(X, y + 2.0**31)
    np.testing.assert_allclose(moved.coef_, plain.coef_, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(moved.intercept_ - 2.0**31, plain.intercept_, rtol=1e-5, atol=2e-6)
    assert np.all(moved.dual_gap_ <= model.tol * np.mean(np.abs(y) + y**2) * 2)


@pytest.mark.parametrize("offset", [1e4, 1e7, 3e7, 1e8, 1e10, 1e12])
@pytest.mark.parametrize("kind", [E.Ridge, E.Lasso, E.ElasticNet])
def test_offsets_that_rounding_feels(kind, offset):
    X, y, *_ = problem(3, 200, 10)
    model = kind() if kind is E.Ridge else kind(alpha=0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        score = model.fit(X + offset, y).score(X + offset, y)
    assert score > 0.95 - 10 * (offset * np.finfo(float).eps) ** 2 * X.shape[1]


def test_seconds_since_1970():
    rng = np.random.default_rng(0)
    t = 1.7e9 + rng.standard_normal((500, 1))
    y = 2 * (t[:, 0] - 1.7e9) + 0.1 * rng.standard_normal(500)
    for model in (E.Lasso(alpha=0.01), E.Ridge(), E.ElasticNet(alpha=0.01), E.LassoCV(), E.HuberRegressor()):
        assert model.fit(t, y).score(t, y) > 0.99


def test_only_what_is_far_is_copied():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 4)) + np.array([0, 1, 10, 60])
    moved, targets, offsets = near_zero(X, np.ones((500, 1)), None, Squared())
    assert moved is X
    assert offsets.shift is None
    assert not targets.any()
    sparse = sp.csr_array(np.where(rng.random(X.shape) < 0.5, X + 1e6, 0))
    assert near_zero(sparse, np.ones((500, 1)), None, Squared())[0] is sparse
    far = X + np.array([0, 0, 0, 1e6])
    moved, _, offsets = near_zero(far, np.ones((500, 1)), None, Squared())
    assert np.flatnonzero(offsets.shift).tolist() == [3]
    np.testing.assert_array_equal(moved[:, :3], far[:, :3])
    np.testing.assert_array_equal(moved[:, 3] + offsets.shift[3], far[:, 3])
    for store in (sp.csr_array, sp.csc_array):
        other = near_zero(store(far), np.ones((500, 1)), None, Squared())[0]
        assert other.format == store(far).format
        np.testing.assert_allclose(other.toarray().std(axis=0), far.std(axis=0), rtol=1e-9)


def test_constant_features_far_from_zero_have_no_weight():
    X, y, *_ = problem(4)
    X = np.column_stack([X, np.full(len(X), 1e9), np.full(len(X), -3e11)])
    for model in (E.Ridge(), E.Lasso(alpha=0.01), E.LogisticRegression()):
        found = model.fit(X, classes(y, 2) if is_classifier(model) else y)
        assert np.all(np.abs(found.coef_[..., -2:]) < 1e-12)
        assert found.score(X, classes(y, 2) if is_classifier(model) else y) > 0.85


@pytest.mark.parametrize("kind", [E.Ridge, E.Lasso, E.ElasticNet, E.HuberRegressor, E.LogisticRegression])
@pytest.mark.parametrize("limit", [{"max_iter": 1}, {"time_limit": 0.0}])
def test_no_point_is_worse_than_zero_weights(kind, limit):
    """However early a fit ends, and however hard its data are."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        n, d = 60, 30
        X = rng.standard_normal((n, 1)) + 10 ** rng.uniform(-8, 0) * rng.standard_normal((n, d))
        X *= 10 ** rng.uniform(-4, 4, d)
        y = rng.standard_normal(n) + rng.choice([0, 1e6])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            if kind is E.LogisticRegression:
                signs = np.where(y > np.median(y), 1, -1)
                found = kind(C=1e6, **limit).fit(X, signs)
                loss = np.logaddexp(0, -signs * (X @ found.coef_[0] + found.intercept_[0])).sum()
                assert loss + (found.coef_**2).sum() / 2e6 <= n * np.log(2) * (1 + 1e-9)
            else:
                found = kind(alpha=1e-6, **limit).fit(X, y)
                assert found.score(X, y) >= (-0.1 if kind is E.HuberRegressor else -1e-6)  # whose center is the median
