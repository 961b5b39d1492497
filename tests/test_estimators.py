"""Estimators against scikit-learn: its checks, its solutions, its conventions; and their own certificates."""

import copy
import functools
import inspect
import io
import pickle
import re
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

pytest.importorskip("sklearn")

from sklearn import linear_model as lm
from sklearn import svm
from sklearn.base import clone, is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils._param_validation import InvalidParameterError
from sklearn.utils.estimator_checks import estimator_checks_generator

import coordwise as cw
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


def checks():
    for estimator in ACCURATE:
        for instance, check in estimator_checks_generator(estimator, mark=None):
            name = getattr(getattr(check, "func", check), "__name__", str(check))
            yield pytest.param(instance, check, id=f"{type(estimator).__name__}-{name}")


@pytest.mark.parametrize(("estimator", "check"), list(checks()))
def test_scikit_learn_checks(estimator, check):
    check(copy.deepcopy(estimator))


@functools.cache
def data(n=120, d=8, outputs=0, spread=1.0, seed=0, dtype=np.float64):
    """(X, y, weights): columns of different sizes and means, some entries zero."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * 10 ** rng.uniform(-spread, spread, d) + rng.uniform(-1, 1, d)
    X *= rng.random((n, d)) < 0.8
    w = rng.standard_normal((d, outputs or 1)) / (np.abs(X).mean(0)[:, None] + 1e-3)
    y = X @ w + 2 + 3 * rng.standard_normal((n, outputs or 1))
    return X.astype(dtype), (y if outputs else y[:, 0]), rng.uniform(0.1, 2, n)


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


# The solutions are scikit-learn's


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
        ours, theirs = E.Lasso(tol=1e-13, **options), lm.Lasso(tol=1e-12, **options)
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


@pytest.mark.parametrize("intercept", [True, False])
def test_positive(intercept):
    X, y, s = data()
    alpha = 0.01 * np.abs(X.T @ y).max() / len(y)
    options = {"alpha": alpha, "positive": True, "fit_intercept": intercept, "max_iter": MANY}
    for ours, theirs in ((E.Lasso, lm.Lasso), (E.ElasticNet, lm.ElasticNet), (E.Ridge, lm.Ridge)):
        accuracy = {} if ours is E.Ridge else {"tol": 1e-12}
        found = ours(tol=1e-13, **options).fit(X, y, s)
        assert np.all(found.coef_ >= 0)
        reference = theirs(**options, **accuracy).fit(X, y, s)
        if ours is E.Ridge:  # L-BFGS is not accurate: compare the objectives

            def value(model, X=X, y=y, s=s):
                return s @ (y - model.predict(X)) ** 2 + alpha * model.coef_ @ model.coef_

            assert value(found) <= value(reference) * (1 + 1e-10)
        else:
            assert_same(found, reference)
    found = E.RidgeClassifier(tol=1e-12, positive=True).fit(X, classes(y, 2))
    assert np.all(found.coef_ >= 0)


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


@pytest.mark.parametrize("weight", ["balanced", {"a": 2.0, "c": 0.5}])
@weighted_or_not
@pytest.mark.parametrize("kind", CLASSIFIERS)
@pytest.mark.parametrize("count", [2, 3])
def test_class_weight(weight, weighted, kind, count):
    X, y, s = data(spread=0.3)
    y = np.array(["a", "b", "c"])[np.digitize(y, np.quantile(y, [0.2] if count == 2 else [0.2, 0.7]))]
    weight = {k: v for k, v in weight.items() if k in y} if isinstance(weight, dict) else weight
    s = s if weighted else None
    options = {"class_weight": weight}
    if kind is E.RidgeClassifier:
        ours, theirs = kind(tol=1e-15, **options), lm.RidgeClassifier(solver="cholesky", **options)
    elif kind is E.LogisticRegression:
        ours = kind(tol=1e-14, **options)
        theirs = lm.LogisticRegression(tol=1e-12, solver="newton-cholesky", **options)
    else:
        ours = kind(tol=1e-14, C=0.1, max_iter=MANY, **options)
        theirs = svm.LinearSVC(tol=1e-12, C=0.1, max_iter=MANY, **options)
    assert_same(ours.fit(X, y, s), theirs.fit(X, y, s))


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
    with pytest.warns(ConvergenceWarning, match="could not bring its scale to tol=1e-13.*left to gain") as caught:
        ours.set_params(tol=1e-13).fit(X, y)
    assert caught[0].filename == __file__
    assert not ours.result_.converged


def test_l2l1_regressor_is_the_problem_of_the_paper():
    X, y, s = data(spread=0.3)
    found = E.L2L1Regressor(alpha=0.1, fit_intercept=False, tol=1e-10, max_iter=MANY).fit(X, y, s)
    problem = cw.ERM(X, y, "l2l1", "l2", 0.1, sample_weight=s)
    np.testing.assert_allclose(found.coef_, cw.solve(problem.dual(), tol=1e-10, max_passes=MANY).w, atol=1e-4)


@weighted_or_not
@with_and_without
@pytest.mark.parametrize("kind", [E.RidgeClassifier])
@pytest.mark.parametrize("count", [2, 4])
def test_ridge_classifier(weighted, intercept, kind, count):
    X, y, s = data()
    s, y = s if weighted else None, classes(y, count)
    ours = kind(alpha=0.7, tol=1e-15, fit_intercept=intercept).fit(X, y, s)
    assert_same(ours, lm.RidgeClassifier(alpha=0.7, solver="cholesky", fit_intercept=intercept).fit(X, y, s))


@pytest.mark.parametrize("estimator", ACCURATE, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("store", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_float32(estimator, store):
    X, y, _ = data(spread=0.3)
    y = target(type(estimator), y)
    wide = clone(estimator).set_params(tol=1e-10).fit(X, y)
    single = clone(estimator).set_params(tol=1e-10).fit(store(X.astype(np.float32)), y)
    assert single.coef_.dtype == np.float32
    assert np.asarray(single.intercept_).dtype == np.float32
    assert_same(single, wide, 1e-4)


# Weights


@pytest.mark.parametrize("estimator", ACCURATE, ids=lambda e: type(e).__name__)
def test_weights_are_repetitions(estimator):
    X, y, _ = data(n=60, d=5, spread=0.3)
    y = target(type(estimator), y)
    if isinstance(estimator, E.HuberRegressor):
        estimator = clone(estimator).set_params(tol=1e-13)
    counts = np.random.default_rng(1).integers(0, 4, len(y))
    weighted = clone(estimator).fit(X, y, sample_weight=counts)
    repeated = clone(estimator).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    kept = counts > 0
    removed = clone(estimator).fit(X[kept], y[kept], sample_weight=counts[kept])
    rtol = 1e-7 if isinstance(estimator, E.L2L1Regressor) else 1e-8
    assert_same(weighted, repeated, rtol)
    assert_same(weighted, removed, rtol)


def test_weights_are_checked():
    X, y, _ = data()
    with pytest.raises(ValueError, match="at least one"):
        E.Ridge().fit(X, y, sample_weight=np.zeros(len(y)))
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        E.Ridge().fit(X, y, sample_weight=-np.ones(len(y)))
    np.testing.assert_allclose(E.Ridge().fit(X, y, sample_weight=1.0).coef_, E.Ridge().fit(X, y).coef_)


# Certificates and ends


LOSS = {
    E.Ridge: lambda e: "squared",
    E.Lasso: lambda e: "squared",
    E.ElasticNet: lambda e: "squared",
    E.L2L1Regressor: lambda e: "l2l1",
    E.LogisticRegression: lambda e: "logistic",
    E.RidgeClassifier: lambda e: "squared",
}


@pytest.mark.parametrize("kind", LOSS)
@pytest.mark.parametrize("tol", [1e-2, 1e-6])
def test_the_stopping_inequality(kind, tol):
    X, y, s = data(spread=0.3)
    y = target(kind, y)
    estimator = kind(tol=tol, max_iter=MANY).fit(X, y, s)
    b = np.where(y == "yes", 1.0, -1.0) if kind in CLASSIFIERS else y
    loss, penalty, total = cw.losses.LOSSES[LOSS[kind](estimator)](), estimator._penalty(s.sum()), s.sum()
    w, c = estimator.coef_.reshape(-1), float(np.ravel(estimator.intercept_)[0])
    dual = estimator.result_.y[:, 0]
    assert abs(dual.sum()) <= 1e-10 * np.abs(dual).sum()
    value = s @ loss.value(X @ w + c, b) / total + penalty.value(w)
    gap = value + loss.conjugate(dual, b, s).sum() / total + penalty.conjugate(-X.T @ dual / total)
    at_zero = s @ loss.value(np.zeros(len(b)), b) / total
    np.testing.assert_allclose(estimator.dual_gap_, gap, rtol=1e-6, atol=1e-12 * at_zero)
    assert gap <= tol * at_zero * (1 + 1e-9)


@pytest.mark.parametrize(
    "estimator",
    [
        E.LinearSVC(C=0.1),
        E.LinearSVC(C=0.1, loss="hinge"),
        E.LinearSVC(C=0.1, penalty="l1"),
        E.LinearSVR(C=0.1, epsilon=0.2),
        E.LinearSVR(C=0.1, epsilon=0.2, loss="squared_epsilon_insensitive"),
    ],
    ids=lambda e: "-".join([type(e).__name__, e.loss, getattr(e, "penalty", "l2")]),
)
@pytest.mark.parametrize("tol", [1e-2, 1e-6])
@pytest.mark.parametrize("scaling", [2.0, np.inf])
def test_the_stopping_inequality_with_a_penalised_intercept(estimator, tol, scaling):
    X, y, s = data(spread=0.3)
    y = target(type(estimator), y)
    estimator = clone(estimator).set_params(tol=tol, intercept_scaling=scaling, max_iter=MANY).fit(X, y, s)
    b = np.where(y == "yes", 1.0, -1.0) if is_classifier(estimator) else y
    squared = estimator.loss.startswith("squared")
    t = estimator.decision_function(X) if is_classifier(estimator) else estimator.predict(X)
    excess = np.maximum(1 - b * t if is_classifier(estimator) else np.abs(t - b) - 0.2, 0)
    at_zero = np.maximum(np.ones_like(b) if is_classifier(estimator) else np.abs(b) - 0.2, 0)
    factor = (2 if squared else 1) * 0.1 * s.sum()  # what the objective of the docstring is divided by

    def losses(r):
        return 0.1 * s @ (r**2 if squared else r) / factor

    w, c = estimator.coef_.reshape(-1), float(np.ravel(estimator.intercept_)[0])
    v = np.append(w, c / scaling)
    l1 = getattr(estimator, "penalty", "l2") == "l1"
    value = losses(excess) + (np.abs(v).sum() if l1 else v @ v / 2) / factor
    # the dual point: moments of the features, and of the constant one; a free intercept needs sum_i y_i = 0
    dual = estimator.result_.y[:, 0]
    a = np.abs(dual)
    if is_classifier(estimator):
        assert np.all(b * dual <= 0)
        conjugates = b * dual
    else:
        conjugates = b * dual + 0.2 * a
    if squared:
        conjugates = conjugates + a**2 / (2 * s)
    else:
        assert np.all(a <= s * (1 + 1e-12))
    moments = X.T @ dual / s.sum()
    if np.isfinite(scaling):
        moments = np.append(moments, scaling * dual.sum() / s.sum())
    else:
        assert abs(dual.sum()) <= 1e-10 * a.sum()
    if l1:
        assert np.all(np.abs(moments) <= (1 + 1e-12) / factor)
    gap = value + conjugates.sum() / s.sum() + (0.0 if l1 else factor / 2 * moments @ moments)
    np.testing.assert_allclose(estimator.dual_gap_, gap, rtol=1e-6, atol=1e-12 * losses(at_zero))
    assert -1e-12 * losses(at_zero) <= gap <= tol * losses(at_zero) * (1 + 1e-9)


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


@each
def test_a_warning_names_the_gap_and_what_to_change(kind):
    X, y, _ = data(n=40, d=300, spread=0.3)
    strategy = "dual" if kind not in (E.Lasso, E.ElasticNet) else "primal"
    with pytest.warns(ConvergenceWarning, match=r"duality gap is .*tol=1e-14 was asked for\. Raise max_iter") as caught:
        found = kind(tol=1e-14, max_iter=1, strategy=strategy).fit(X, target(kind, y))
    assert np.all(np.asarray(found.dual_gap_) > 0)
    assert kind.__name__ in str(caught[0].message)


def test_warnings_point_at_the_line_that_called_fit():
    X, y, _ = data(n=40, d=300, spread=0.3)
    hopeless = {"tol": 1e-14, "max_iter": 1}
    regressor = E.Lasso(strategy="primal", **hopeless)
    classifier = E.LinearSVC(strategy="dual", **hopeless)
    several = E.LogisticRegression(**hopeless)
    search = GridSearchCV(regressor, {"alpha": [0.1]}, cv=2, refit=False)
    folds = E.LogisticRegressionCV(Cs=[1.0], cv=2, l1_ratios=(0.0,), **hopeless)
    calls = {
        "regressor": lambda: regressor.fit(X, y),
        "classifier": lambda: classifier.fit(X, classes(y, 2)),
        "three classes": lambda: several.fit(X, classes(y, 3)),
        "pipeline": lambda: make_pipeline(StandardScaler(), regressor).fit(X, y),
        "search": lambda: search.fit(X, y),
        "folds": lambda: folds.fit(X, classes(y, 2)),
    }
    for name, call in calls.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        assert caught, name
        for warning in caught:
            assert warning.category is ConvergenceWarning
            assert warning.filename == __file__, name
            assert warning.lineno == call.__code__.co_firstlineno, name


@each
def test_attributes(kind):
    X, y, _ = data(spread=0.3)
    estimator = kind(max_iter=MANY)
    before = estimator.get_params()
    assert estimator.fit(X, target(kind, y)) is estimator
    assert estimator.get_params() == before
    assert estimator.n_features_in_ == 8
    assert isinstance(estimator.n_iter_, (int, np.integer))
    assert estimator.n_iter_ >= 1
    assert isinstance(estimator.dual_gap_, float)
    assert estimator.dual_gap_ >= 0
    assert estimator.passes_ > 0
    assert estimator.strategy_.split(":")[0] in ("gram", "newton", "dual", "primal")
    assert estimator.result_.converged
    assert estimator.coef_.shape == ((1, 8) if is_classifier(estimator) else (8,))
    if is_classifier(estimator):
        np.testing.assert_array_equal(estimator.classes_, ["no", "yes"])
        assert estimator.intercept_.shape == (1,)
    several = {E.Ridge: 3, E.Lasso: 3, E.ElasticNet: 3, E.L2L1Regressor: 3}
    if kind in several:
        estimator.fit(X, data(outputs=3)[1])
        assert estimator.coef_.shape == (3, 8)
        assert estimator.intercept_.shape == (3,)
        assert estimator.dual_gap_.shape == (3,)


@pytest.mark.parametrize("kind", [E.Lasso, E.ElasticNet, E.L2L1Regressor, E.LogisticRegression, E.HuberRegressor])
def test_warm_start(kind):
    X, y, _ = data(spread=0.3)
    y = target(kind, y)
    strategy = "primal" if kind in (E.Lasso, E.ElasticNet) else "auto"
    estimator = kind(warm_start=True, tol=1e-8, max_iter=MANY, strategy=strategy).fit(X, y)
    first, coef = estimator.passes_, estimator.coef_
    estimator.fit(X, y)
    assert estimator.passes_ < first
    np.testing.assert_allclose(estimator.coef_, coef, rtol=1e-3, atol=1e-3)
    for smaller in (X[:, :5], X[:70, :5]):
        estimator.fit(smaller, y[: len(smaller)])
        fresh = kind(tol=1e-8, max_iter=MANY, strategy=strategy).fit(smaller, y[: len(smaller)])
        np.testing.assert_allclose(estimator.coef_, fresh.coef_, rtol=1e-2, atol=1e-3)


def test_warm_start_with_several_classes():
    X, y, _ = data(spread=0.3)
    estimator = E.LogisticRegression(warm_start=True, tol=1e-8).fit(X, classes(y, 3))
    first = estimator.passes_
    assert estimator.fit(X, classes(y, 3)).passes_ < first
    assert estimator.fit(X, classes(y, 4)).coef_.shape == (4, 8)


@pytest.mark.parametrize("strategy", ["auto", "dual", "primal", "newton", "gram"])
def test_strategies_by_name(strategy):
    X, y, _ = data(spread=0.3)
    estimator = E.Ridge(strategy=strategy, tol=1e-10, max_iter=MANY).fit(X, y)
    if strategy != "auto":
        assert estimator.strategy_ == f"{strategy}: as asked"
    np.testing.assert_allclose(estimator.coef_, E.Ridge(tol=1e-14).fit(X, y).coef_, atol=1e-3)


def test_strategies_that_do_not_apply():
    X, y, _ = data()
    with pytest.raises(ValueError, match="strategy='gram' does not apply here"):
        E.LinearSVC(strategy="gram").fit(X, classes(y, 2))
    with pytest.raises(ValueError, match="strategy='dual' does not apply here"):
        E.LogisticRegression(strategy="dual").fit(X, classes(y, 3))
    with pytest.raises(ValueError, match="strategy='newton' does not apply here"):
        E.LogisticRegression(l1_ratio=1, strategy="newton").fit(X, classes(y, 3))


@pytest.mark.parametrize("method", ["auto", "nu_acdm", "acdm", "apcg", "rcdm", "sdca", cw.NUACDM(beta=0.5)])
def test_methods(method):
    X, y, _ = data(spread=0.3)
    found = E.LinearSVC(method=method, strategy="dual", max_iter=MANY, C=0.01).fit(X, classes(y, 2))
    assert found.result_.converged
    with pytest.raises(ValueError, match="method"):
        E.LinearSVC(method="newton").fit(X, classes(y, 2))


def test_beta():
    X, y, _ = data(spread=0.3)
    for method in ("auto", "nu_acdm", "acdm"):
        estimator = E.LinearSVC(method=method, beta=0.5, strategy="dual", C=0.01, max_iter=MANY).fit(X, classes(y, 2))
        assert "beta=0.5" in estimator.result_.results[0].method
    for count in (2, 3):
        with pytest.raises(ValueError, match=r"beta=0\.5 has no meaning for method='sdca'"):
            E.LogisticRegression(method="sdca", beta=0.5).fit(X, classes(y, count))


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (E.Ridge, {"alpha": -1.0}),
        (E.Ridge, {"tol": -1.0}),
        (E.Ridge, {"strategy": "sag"}),
        (E.Ridge, {"beta": 2.0}),
        (E.Ridge, {"time_limit": -1.0}),
        (E.Ridge, {"callbacks": 3}),
        (E.Lasso, {"max_iter": 0}),
        (E.Lasso, {"warm_start": "yes"}),
        (E.ElasticNet, {"l1_ratio": 1.5}),
        (E.LinearSVC, {"loss": "logistic"}),
        (E.LinearSVC, {"intercept_scaling": 0}),
        (E.LinearSVC, {"class_weight": "unbalanced"}),
        (E.LinearSVR, {"epsilon": -0.1}),
        (E.LogisticRegression, {"C": 0.0}),
        (E.HuberRegressor, {"epsilon": 0.5}),
        (E.L2L1Regressor, {"alpha": "large"}),
    ],
)
def test_bad_parameters(kind, wrong):
    X, y, _ = data()
    with pytest.raises(InvalidParameterError, match=next(iter(wrong))):
        kind(**wrong).fit(X, target(kind, y))


SHARED = [
    "alpha",
    "alphas",
    "C",
    "Cs",
    "l1_ratio",
    "l1_ratios",
    "fit_intercept",
    "class_weight",
    "tol",
    "max_iter",
    "warm_start",
    "random_state",
    "positive",
    "penalty",
    "loss",
    "epsilon",
    "intercept_scaling",
]
ELSEWHERE = {
    "LogisticRegression": {"penalty", "intercept_scaling"},  # deprecated there; of one solver
    "LogisticRegressionCV": {"penalty", "intercept_scaling", "l1_ratios"},  # its default asks for a choice
}


@pytest.mark.parametrize("name", [n for n in E.__all__ if hasattr(lm, n) or hasattr(svm, n)])
def test_parameters_and_defaults_are_scikit_learns(name):
    ours = inspect.signature(getattr(E, name)).parameters
    theirs = inspect.signature(getattr(lm, name, None) or getattr(svm, name)).parameters
    for parameter in set(SHARED) & set(theirs) - ELSEWHERE.get(name, set()):
        assert parameter in ours, parameter
        assert ours[parameter].default == theirs[parameter].default, parameter
        assert ours[parameter].kind == theirs[parameter].kind, parameter
    takes = inspect.signature(getattr(E, name).fit).parameters
    assert "sample_weight" in takes


def test_one_class_is_refused():
    X, y, _ = data()
    with pytest.raises(ValueError, match="at least 2 classes"):
        E.LogisticRegression().fit(X, np.zeros(len(y)))


# Watching


@each
def test_callbacks_see_progress_and_stop(kind):
    X, y, _ = data(n=60, d=30, spread=0.3)
    y, seen = target(kind, y), []
    kind(callbacks=seen.append, max_iter=MANY).fit(X, y)
    assert seen
    assert all(isinstance(progress, cw.Progress) for progress in seen)
    strategy = "primal" if kind in (E.Lasso, E.ElasticNet) else "dual"
    calls = []

    def stop(progress):
        calls.append(progress)
        return True

    with pytest.warns(ConvergenceWarning, match="stopped"):
        kind(callbacks=[calls.append, stop], tol=1e-14, strategy=strategy, max_iter=MANY).fit(X, y)
    assert len(calls) == 2


def test_callbacks_stop_several_classes():
    X, y, _ = data(spread=0.3)
    with pytest.warns(ConvergenceWarning, match="stopped"):
        found = E.LogisticRegression(callbacks=lambda progress: True, tol=1e-14).fit(X, classes(y, 3))
    assert found.n_iter_ == 1


@each
def test_time_limit(kind):
    X, y, _ = data(n=40, d=300, spread=0.3)
    strategy = "primal" if kind in (E.Lasso, E.ElasticNet) else "dual"
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        kind(time_limit=0.0, tol=1e-15, strategy=strategy, max_iter=MANY).fit(X, target(kind, y))


def test_verbose_prints_lines_to_stderr(capsys, monkeypatch):
    X, y, _ = data(spread=0.3)
    clock = iter(np.arange(0, 1e6, 10.0))
    monkeypatch.setattr("coordwise.estimators.progress.time.perf_counter", lambda: next(clock))
    E.LinearSVC(verbose=1, strategy="dual", max_iter=MANY).fit(X, classes(y, 2))
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert lines
    assert all(line.startswith("LinearSVC: pass ") and "gap " in line and line.endswith(" s") for line in lines)
    assert "\r" not in err
    E.LinearSVC().fit(X, classes(y, 2))
    assert capsys.readouterr().err == ""


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_verbose_shows_one_live_line_in_a_terminal(monkeypatch):
    X, y, _ = data(spread=0.3)
    clock = iter(np.arange(0, 1e6, 10.0))
    monkeypatch.setattr("coordwise.estimators.progress.time.perf_counter", lambda: next(clock))
    monkeypatch.setattr("sys.stderr", Terminal())
    E.LinearSVC(verbose=1, strategy="dual", max_iter=MANY, tol=1e-6).fit(X, classes(y, 2))
    shown = sys.stderr.getvalue()
    assert shown.endswith("\n")
    assert shown.count("\n") == 1  # the line ends when the fit does
    updates = shown[:-1].split("\r")[1:]
    assert len(updates) >= 2
    pattern = r"LinearSVC: pass \d+(, about \d+ left)?, gap \d\.\d\de[+-]\d\d \(stops at .*\), \d+\.0 s *"
    assert all(re.fullmatch(pattern, update) for update in updates)
    assert len({len(update) for update in updates}) == 1  # every update covers the one before
    passes = [int(re.search(r"pass (\d+)", update)[1]) for update in updates]
    assert passes == sorted(passes)
    assert any("left" in update for update in updates)


@pytest.mark.parametrize(
    "estimator",
    [
        E.LinearSVC(C=0.01, strategy="dual", max_iter=MANY, tol=1e-6),
        E.LogisticRegression(tol=1e-8),
        E.RidgeClassifier(strategy="dual", tol=1e-8, max_iter=MANY),
        E.Ridge(strategy="dual", tol=1e-8, max_iter=MANY),
        E.Lasso(strategy="primal", alpha=0.1, tol=1e-8, max_iter=MANY),
    ],
    ids=lambda e: type(e).__name__,
)
def test_threads_give_the_same_coefficients(estimator):
    X, y, s = data(outputs=3, spread=0.3)
    y = classes(y[:, 0], 4) if is_classifier(estimator) else y
    one = clone(estimator).fit(X, y, s)
    two = clone(estimator).set_params(n_jobs=2).fit(X, y, s)
    assert_same(two, one, 1e-12)  # groups of outputs are added up in another order


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


def test_scikit_learn_callbacks():
    callback = pytest.importorskip("sklearn.callback")
    X, y, _ = data(spread=0.3)

    class Count(callback.FitCallback):
        def __init__(self, most=None):
            self.begun, self.ended, self.most = 0, 0, most

        def setup(self, estimator, context):
            pass

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context, **kwargs):
            self.begun += 1

        def on_fit_task_end(self, estimator, context, **kwargs):
            self.ended += 1
            return self.most is not None and self.ended >= self.most

    count = Count()
    E.LinearSVC(strategy="dual", max_iter=MANY).set_callbacks(count).fit(X, classes(y, 2))
    assert count.begun == count.ended > 2
    early = Count(most=2)
    with pytest.warns(ConvergenceWarning, match="stopped"):
        E.LinearSVC(strategy="dual", max_iter=MANY, tol=1e-14).set_callbacks(early).fit(X, classes(y, 2))
    assert early.ended < count.ended


# In company


@each
def test_pickle_clone_and_pipeline(kind):
    X, y, _ = data(spread=0.3)
    y = target(kind, y)
    estimator = kind(max_iter=MANY).fit(X, y)
    again = pickle.loads(pickle.dumps(estimator))
    np.testing.assert_array_equal(again.predict(X), estimator.predict(X))
    copied = clone(estimator)
    assert not hasattr(copied, "coef_")
    pipeline = make_pipeline(StandardScaler(), copied).fit(X, y)
    assert pipeline.score(X, y) > 0.3
    name = "C" if "C" in copied.get_params() else "alpha"
    search = GridSearchCV(kind(max_iter=MANY), {name: [0.01, 0.1]}, cv=2).fit(X, y)
    assert search.best_params_[name] in (0.01, 0.1)


def test_metadata_routing():
    import sklearn

    X, y, s = data(spread=0.3)
    with sklearn.config_context(enable_metadata_routing=True):
        estimator = E.Ridge().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, estimator).fit(X, y, sample_weight=s)
        scaled = StandardScaler().fit_transform(X)
        np.testing.assert_allclose(pipeline[-1].coef_, E.Ridge().fit(scaled, y, sample_weight=s).coef_)
        assert len(cross_validate(estimator, X, y, params={"sample_weight": s}, cv=3)["test_score"]) == 3


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_sparsify(kind):
    X, y, _ = data(spread=0.3)
    estimator = kind().fit(X, classes(y, 3))
    expected = estimator.predict(X)
    assert sp.issparse(estimator.sparsify().coef_)
    np.testing.assert_array_equal(estimator.predict(X), expected)
    assert isinstance(estimator.densify().coef_, np.ndarray)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(library):
    frames = pytest.importorskip(library)
    X, y, _ = data(spread=0.3)
    names = [f"f{j}" for j in range(X.shape[1])]
    frame = frames.DataFrame(dict(zip(names, X.T, strict=True)))
    estimator = E.Ridge().fit(frame, y)
    np.testing.assert_array_equal(estimator.feature_names_in_, names)
    np.testing.assert_allclose(estimator.coef_, E.Ridge().fit(X, y).coef_)
    columns = ColumnTransformer([("scaled", StandardScaler(), names[:4])], remainder="passthrough")
    columns.set_output(transform=library)
    pipeline = make_pipeline(columns, E.LogisticRegression()).fit(frame, classes(y, 2))
    assert len(pipeline[-1].feature_names_in_) == 8
    assert pipeline.score(frame, classes(y, 2)) > 0.5
