"""Certificates of the estimators: the stopping inequality from its definition, and warnings where it fails."""

import warnings

import numpy as np
import pytest
from estimator_cases import CLASSIFIERS, MANY, classes, data, each, target
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import coordwise as cw
from coordwise import estimators as E

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
