"""All estimators against scikit-learn: its checks, its parameters and attributes, its company."""

import copy
import inspect
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from estimator_cases import (
    ACCURATE,
    CLASSIFIERS,
    MANY,
    assert_same,
    classes,
    data,
    each,
    target,
    weighted_or_not,
)
from sklearn import linear_model as lm
from sklearn import svm
from sklearn.base import clone, is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils._param_validation import InvalidParameterError
from sklearn.utils.estimator_checks import estimator_checks_generator

import coordwise as cw
from coordwise import estimators as E


def checks():
    for estimator in ACCURATE:
        for instance, check in estimator_checks_generator(estimator, mark=None):
            name = getattr(getattr(check, "func", check), "__name__", str(check))
            yield pytest.param(instance, check, id=f"{type(estimator).__name__}-{name}")


@pytest.mark.parametrize(("estimator", "check"), list(checks()))
def test_scikit_learn_checks(estimator, check):
    check(copy.deepcopy(estimator))


# Solutions


@pytest.mark.parametrize("intercept", [True, False])
def test_positive(intercept):
    X, y, s = data()
    alpha = 0.01 * np.abs(X.T @ y).max() / len(y)
    options = {"alpha": alpha, "positive": True, "fit_intercept": intercept, "max_iter": MANY}
    for ours, theirs in ((E.Lasso, lm.Lasso), (E.ElasticNet, lm.ElasticNet), (E.Ridge, lm.Ridge)):
        accuracy = {} if ours is E.Ridge else {"tol": 1e-12}
        found = ours(tol=1e-12, **options).fit(X, y, s)
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


def test_l2l1_regressor_is_the_problem_of_the_paper():
    X, y, s = data(spread=0.3)
    found = E.L2L1Regressor(alpha=0.1, fit_intercept=False, tol=1e-10, max_iter=MANY).fit(X, y, s)
    problem = cw.ERM(X, y, "l2l1", "l2", 0.1, sample_weight=s)
    np.testing.assert_allclose(found.coef_, cw.solve(problem.dual(), tol=1e-10, max_passes=MANY).w, atol=1e-4)


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


# Parameters and attributes


@each
def test_attributes(kind):
    X, y, _ = data(spread=0.3)
    estimator = kind(max_iter=MANY)
    before = estimator.get_params()
    assert estimator.fit(X, target(kind, y)) is estimator
    assert estimator.get_params() == before
    assert estimator.n_features_in_ == 8
    if kind is E.LogisticRegression:  # as scikit-learn has it
        assert estimator.n_iter_.shape == (1,)
    else:
        assert isinstance(estimator.n_iter_, (int, np.integer))
    assert estimator.n_iter_ >= 1
    assert isinstance(estimator.dual_gap_, float)
    assert estimator.dual_gap_ >= 0
    assert estimator.passes_ > 0
    assert estimator.strategy_.split(":")[0] in ("gram", "newton", "interior", "dual", "primal")
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
