"""LogisticRegression: scikit-learn's solutions for two classes and more, with and without l1."""

import warnings

import numpy as np
import pytest
from estimator_cases import MANY, assert_same, classes, data, shapes, stores, weighted_or_not, with_and_without
from sklearn import linear_model as lm
from sklearn.exceptions import ConvergenceWarning

from coordwise import estimators as E


@shapes
@stores
@weighted_or_not
@with_and_without
@pytest.mark.parametrize("count", [2, 4])
def test_logistic_regression(shape, store, weighted, intercept, count):
    X, y, s = data(**shape)
    s, y = s if weighted else None, classes(y, count)
    ours = E.LogisticRegression(C=0.1, tol=1e-14, max_iter=1000, fit_intercept=intercept)
    theirs = lm.LogisticRegression(C=0.1, tol=1e-12, max_iter=10_000, fit_intercept=intercept, solver="newton-cholesky")
    ours.fit(store(X), y, sample_weight=s)
    theirs.fit(X, y, sample_weight=s)
    assert_same(ours, theirs)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(ours.predict_log_proba(X), np.log(ours.predict_proba(X)))
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("ratio", [0.4, 1.0])
@with_and_without
def test_logistic_regression_with_l1(ratio, intercept):
    X, y, s = data(spread=0.3)
    y = classes(y, 2)
    ours = E.LogisticRegression(C=0.1, l1_ratio=ratio, tol=1e-10, max_iter=MANY, fit_intercept=intercept).fit(X, y, s)
    theirs = lm.LogisticRegression(
        C=0.1, l1_ratio=ratio, tol=1e-10, max_iter=MANY, fit_intercept=intercept, solver="saga", random_state=0
    ).fit(X, y, s)
    b = np.where(y == "yes", 1.0, -1.0)

    def value(model):
        w = model.coef_[0]
        losses = np.logaddexp(0, -b * model.decision_function(X))
        return 0.1 * s @ losses + (1 - ratio) / 2 * w @ w + ratio * np.abs(w).sum()

    assert value(ours) <= value(theirs) * (1 + 1e-10)
    assert_same(ours, theirs, 1e-4)


@weighted_or_not
@with_and_without
@pytest.mark.parametrize("ratio", [0.5, 1.0])
def test_several_classes_with_l1(weighted, intercept, ratio):
    X, y, s = data(spread=0.3)
    X = X / np.abs(X).max(0)
    codes = np.digitize(y, np.quantile(y, [0.3, 0.7]))
    s = s if weighted else np.ones(len(y))
    options = {"C": 1.0, "l1_ratio": ratio, "fit_intercept": intercept}
    ours = E.LogisticRegression(tol=1e-15, max_iter=10_000, **options)
    with warnings.catch_warnings():  # rounding may come first
        warnings.simplefilter("ignore", ConvergenceWarning)
        ours.fit(X, codes, s)
    theirs = lm.LogisticRegression(solver="saga", tol=1e-12, max_iter=MANY, random_state=0, **options).fit(X, codes, s)

    def value(model):
        t = model.decision_function(X)
        W = model.coef_
        losses = np.log(np.exp(t).sum(1)) - t[np.arange(len(codes)), codes]
        return s @ losses + (1 - ratio) / 2 * np.sum(W**2) + ratio * np.abs(W).sum()

    assert abs(value(ours) - value(theirs)) <= 1e-8 * value(theirs)
    assert value(ours) <= value(theirs) * (1 + 1e-12)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(
        ours.intercept_ - ours.intercept_.mean(), theirs.intercept_ - theirs.intercept_.mean(), atol=1e-4
    )
    # minus the gradient is in the subdifferential of the penalty
    q = ours.predict_proba(X) - np.eye(3)[codes]
    W, gradient = ours.coef_, (s[:, None] * q).T @ X + (1 - ratio) * ours.coef_
    assert np.any(W == 0)
    assert np.max(np.abs(gradient[W == 0])) <= ratio * (1 + 1e-8)
    np.testing.assert_allclose(gradient[W != 0], -ratio * np.sign(W[W != 0]), atol=1e-8 * s.sum())
    if intercept:
        np.testing.assert_allclose(s @ q, 0, atol=1e-8 * s.sum())


def test_warm_start_with_several_classes():
    X, y, _ = data(spread=0.3)
    estimator = E.LogisticRegression(warm_start=True, tol=1e-8).fit(X, classes(y, 3))
    first = estimator.passes_
    assert estimator.fit(X, classes(y, 3)).passes_ < first
    assert estimator.fit(X, classes(y, 4)).coef_.shape == (4, 8)


def test_callbacks_stop_several_classes():
    X, y, _ = data(spread=0.3)
    with pytest.warns(ConvergenceWarning, match="stopped"):
        found = E.LogisticRegression(callbacks=lambda progress: True, tol=1e-14).fit(X, classes(y, 3))
    assert found.n_iter_ == 1


@pytest.mark.parametrize("labels", [(-1, 1), (0.0, 1.0), (-0.0, 3.0), (5, 2**62), (-(2.0**63), 0.0), (False, True)])
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64])
def test_two_whole_numbers_are_classes(labels, kind):
    y = np.array([labels[0], labels[1], labels[1], labels[0]] * 5).astype(kind)
    X = np.random.default_rng(0).standard_normal((20, 3))
    ours, theirs = (module.LogisticRegression().fit(X, y) for module in (E, lm))
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    assert ours.classes_.dtype == theirs.classes_.dtype


@pytest.mark.parametrize("labels", [(0.5, 1.5), (0.0, 0.5), (0.0, 2.0**63), (-1e300, 1e300)])
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")  # scikit-learn's
def test_what_scikit_learn_takes_for_continuous_is_refused(labels):
    X = np.random.default_rng(0).standard_normal((20, 3))
    for module in (E, lm):
        with pytest.raises(ValueError, match="Unknown label type"):
            module.LogisticRegression().fit(X, np.array(labels * 10))
