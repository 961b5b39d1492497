"""Ridge and RidgeClassifier: scikit-learn's solutions."""

import pytest
from estimator_cases import assert_same, classes, data, shapes, stores, weighted_or_not, with_and_without
from sklearn import linear_model as lm

from coordwise import estimators as E


@shapes
@stores
@weighted_or_not
@with_and_without
@pytest.mark.parametrize("outputs", [0, 3])
def test_ridge(shape, store, weighted, intercept, outputs):
    X, y, s = data(outputs=outputs, **shape)
    s = s if weighted else None
    ours = E.Ridge(alpha=0.7, tol=1e-15, fit_intercept=intercept).fit(store(X), y, sample_weight=s)
    theirs = lm.Ridge(alpha=0.7, solver="cholesky", fit_intercept=intercept).fit(X, y, sample_weight=s)
    assert_same(ours, theirs)
    assert ours.predict(store(X)).shape == theirs.predict(X).shape


@weighted_or_not
@with_and_without
@pytest.mark.parametrize("kind", [E.RidgeClassifier])
@pytest.mark.parametrize("count", [2, 4])
def test_ridge_classifier(weighted, intercept, kind, count):
    X, y, s = data()
    s, y = s if weighted else None, classes(y, count)
    ours = kind(alpha=0.7, tol=1e-15, fit_intercept=intercept).fit(X, y, s)
    assert_same(ours, lm.RidgeClassifier(alpha=0.7, solver="cholesky", fit_intercept=intercept).fit(X, y, s))
