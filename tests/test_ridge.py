"""Ridge and RidgeClassifier: scikit-learn's solutions."""

import numpy as np
import pytest
from estimator_cases import assert_same, classes, data, shapes, stores, weighted_or_not, with_and_without
from sklearn import linear_model as lm
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import LeaveOneOut, cross_val_predict

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


@stores
@weighted_or_not
@with_and_without
def test_an_alpha_for_every_target(store, weighted, intercept):
    X, y, s = data(outputs=3)
    s, alphas = s if weighted else None, np.array([0.5, 20.0, 0.0])
    ours = E.Ridge(alpha=alphas, tol=1e-13, fit_intercept=intercept).fit(store(X), y, s)
    theirs = lm.Ridge(alpha=alphas, solver="cholesky", fit_intercept=intercept).fit(X, y, s)
    assert_same(ours, theirs)
    assert ours.dual_gap_.shape == (3,)


@pytest.mark.parametrize(
    ("alpha", "message"),
    [
        (np.ones(2), "do not correspond: 2 != 3"),
        (np.array([1, -2, 3]), r"alpha\[1\] == -2"),
        (np.nan * np.ones(3), "nan"),
    ],
)
def test_wrong_alphas_for_targets(alpha, message):
    X, y, _ = data(outputs=3)
    with pytest.raises(ValueError, match=message):
        E.Ridge(alpha=alpha).fit(X, y)


def test_the_time_limit_holds_for_all_alphas():
    X, y, _ = data(outputs=3)
    with pytest.warns(ConvergenceWarning, match="time"):
        found = E.Ridge(alpha=np.array([0.5, 20.0, 0.0]), time_limit=0.0).fit(X, y)
    assert found.coef_.shape == (3, 8)


@stores
@pytest.mark.parametrize("alpha", [1e-16, 1e-12])
@pytest.mark.parametrize("n", [12, 60])
def test_a_weak_penalty_decides_where_the_data_do_not(store, alpha, n):
    """The solution of smallest norm, to which those of weak penalties converge; the duality gap hardly sees it."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 12))
    X[:, 7] = X[:, 2]
    X[:, 5] = 0.0
    y = X @ rng.standard_normal(12) + 3
    centered = X - X.mean(0)
    smallest = np.linalg.pinv(centered, rcond=1e-10) @ (y - y.mean())
    for estimator in (E.Ridge(alpha=alpha), E.RidgeCV(alphas=[alpha])):
        np.testing.assert_allclose(estimator.fit(store(X), y).coef_, smallest, atol=1e-8)


@pytest.mark.parametrize("labels", [2, 3])
@pytest.mark.parametrize("balanced", [None, "balanced"])
@pytest.mark.parametrize("name", ["RidgeClassifier", "RidgeClassifierCV"])
@weighted_or_not
def test_several_labels(labels, balanced, name, weighted):
    X, y, s = data(outputs=labels)
    s, Y = s if weighted else None, (y > 2).astype(int)
    more = {"tol": 1e-15} if name == "RidgeClassifier" else {"tol": 1e-15, "store_cv_results": True}
    ours = getattr(E, name)(class_weight=balanced, **more).fit(X, Y, s)
    del more["tol"]
    theirs = getattr(lm, name)(class_weight=balanced, **more).fit(X, Y, s)
    assert_same(ours, theirs)
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    assert ours.score(X, Y) == theirs.score(X, Y)
    if name == "RidgeClassifierCV":
        assert ours.alpha_ == theirs.alpha_
        np.testing.assert_allclose(ours.cv_results_, theirs.cv_results_, rtol=1e-6, atol=1e-9)
    assert ours.fit(X, Y[:, 0]).predict(X).shape == (len(X),)  # what it was fitted to before is forgotten


@pytest.mark.parametrize("options", [{}, {"cv": 3}, {"cv": 3, "scoring": "f1_micro"}])
def test_alpha_for_several_labels(options):
    X, y, _ = data(outputs=3)
    Y = (y > 2).astype(int)
    alphas = np.logspace(-1, 5, 7)
    ours = E.RidgeClassifierCV(alphas=alphas, tol=1e-13, **options).fit(X, Y)
    theirs = lm.RidgeClassifierCV(alphas=alphas, **options).fit(X, Y)
    assert ours.alpha_ == theirs.alpha_
    assert ours.best_score_ == pytest.approx(theirs.best_score_)


def test_labels_that_were_left_out_are_scored_as_labels():
    """Where scikit-learn's takes the first label of every sample for its class."""
    X, y, _ = data(outputs=3)
    Y = (y > 2).astype(int)
    found = E.RidgeClassifierCV(alphas=[10.0], scoring="accuracy").fit(X, Y)
    predicted = cross_val_predict(E.RidgeClassifier(alpha=10.0, tol=1e-13), X, Y, cv=LeaveOneOut())
    assert found.best_score_ == pytest.approx(np.mean(np.all(predicted == Y, axis=1)))


@pytest.mark.parametrize("kind", [E.RidgeClassifier, E.RidgeClassifierCV])
def test_columns_that_are_no_labels(kind):
    X, y, _ = data(outputs=3)
    with pytest.raises(ValueError, match="zeros and ones, one column for every label"):
        kind().fit(X, np.digitize(y, [0, 3]))
