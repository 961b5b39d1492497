"""LinearSVC and LinearSVR: scikit-learn's solutions, and intercepts that are not penalised."""

import numpy as np
import pytest
from estimator_cases import MANY, SHAPES, assert_same, classes, data, stores, weighted_or_not, with_and_without
from sklearn import svm

from coordwise import estimators as E


@stores
@weighted_or_not
@with_and_without
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("shape", ["tall", "wide"])
def test_linear_svc(store, weighted, intercept, loss, shape):
    X, y, s = data(spread=0.3, **SHAPES[shape])
    s = s if weighted else None
    options = {"C": 0.02, "loss": loss, "fit_intercept": intercept, "intercept_scaling": 2.0}
    for count in (2, 3):
        labels = classes(y, count)
        ours = E.LinearSVC(tol=1e-13, max_iter=MANY, **options).fit(store(X), labels, s)
        theirs = svm.LinearSVC(tol=1e-11, max_iter=10 * MANY, random_state=0, **options).fit(X, labels, s)
        assert_same(ours, theirs)


@stores
@weighted_or_not
@with_and_without
@pytest.mark.parametrize("weight", [None, "balanced"])
def test_linear_svc_with_l1(store, weighted, intercept, weight):
    X, y, s = data(spread=0.3)
    s = s if weighted else None
    options = {"C": 0.02, "fit_intercept": intercept, "intercept_scaling": 2.0, "class_weight": weight, "dual": False}
    for count in (2, 3):
        labels = classes(y, count)
        ours = E.LinearSVC("l1", tol=1e-13, max_iter=MANY, **options).fit(store(X), labels, s)
        theirs = svm.LinearSVC("l1", tol=1e-8, max_iter=10 * MANY, random_state=0, **options).fit(X, labels, s)
        assert_same(ours, theirs)
        np.testing.assert_array_equal(ours.coef_ == 0, theirs.coef_ == 0)
    assert np.any(ours.coef_ == 0)


def test_linear_svc_with_l1_takes_what_scikit_learns_does():
    X, y, _ = data(spread=0.3)
    y = classes(y, 2)
    with pytest.raises(ValueError, match="combination of penalty='l1' and loss='hinge' is not supported"):
        E.LinearSVC(penalty="l1", loss="hinge").fit(X, y)
    free = E.LinearSVC(penalty="l1", C=0.02, intercept_scaling=np.inf, tol=1e-10).fit(X, y)
    b, lam = np.where(y == "yes", 1.0, -1.0), 1 / (2 * 0.02 * len(y))
    slack = b * np.maximum(1 - b * free.decision_function(X), 0)
    moments = X.T @ slack / len(y)
    w = free.coef_[0]
    assert abs(slack.mean()) <= 1e-8
    assert np.all(np.abs(moments) <= lam * (1 + 1e-4))
    np.testing.assert_allclose(moments[w != 0], lam * np.sign(w[w != 0]), rtol=1e-4)
    coefs = [E.LinearSVC(dual=dual).fit(X, y).coef_ for dual in ("auto", True, False)]
    np.testing.assert_array_equal(coefs[0], coefs[1])
    np.testing.assert_array_equal(coefs[0], coefs[2])


@stores
@weighted_or_not
@with_and_without
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
@pytest.mark.parametrize("shape", ["tall", "wide"])
def test_linear_svr(store, weighted, intercept, loss, shape):
    X, y, s = data(spread=0.3, **SHAPES[shape])
    s = s if weighted else None
    options = {"C": 0.02, "epsilon": 0.3, "loss": loss, "fit_intercept": intercept}
    ours = E.LinearSVR(tol=1e-13, max_iter=MANY, **options).fit(store(X), y, s)
    theirs = svm.LinearSVR(tol=1e-11, max_iter=10 * MANY, random_state=0, **options).fit(X, y, s)
    assert_same(ours, theirs)


def test_an_intercept_that_is_not_penalised():
    X, y, s = data(spread=0.3)
    free = E.LinearSVR(C=0.1, intercept_scaling=np.inf, tol=1e-10, max_iter=MANY).fit(X, y, s)
    nearly = E.LinearSVR(C=0.1, intercept_scaling=1e3, tol=1e-10, max_iter=MANY).fit(X, y, s)
    np.testing.assert_allclose(free.coef_, nearly.coef_, rtol=1e-2, atol=1e-3)
    shifted = E.LinearSVR(C=0.1, intercept_scaling=np.inf, tol=1e-10, max_iter=MANY).fit(X, y + 100, s)
    np.testing.assert_allclose(shifted.intercept_ - free.intercept_, 100, rtol=1e-4)
