"""LogisticRegressionCV and LogisticRegression.path: scikit-learn's choices, scores, paths and shapes."""

import functools

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model as theirs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer, make_scorer
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from coordwise.estimators import LogisticRegression, LogisticRegressionCV


@pytest.mark.filterwarnings("ignore:The least populated class")  # scikit-learn's check has two samples of one
@parametrize_with_checks(
    [
        LogisticRegressionCV(Cs=3, cv=3, tol=1e-12, max_iter=1000),
        LogisticRegressionCV(Cs=3, cv=3, tol=1e-12, max_iter=1000, scoring="neg_log_loss", use_legacy_attributes=False),
    ]
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@functools.cache
def data(count=2, n=150, d=6):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d)) * 10 ** rng.uniform(-0.5, 0.5, d) + rng.uniform(-1, 1, d)
    X *= rng.random((n, d)) < 0.7
    t = X[:, :3] @ rng.standard_normal(3) + rng.standard_normal(n)
    names = np.array(["a", "b", "c"])[np.digitize(t, np.quantile(t, np.arange(1, count) / count))]
    return X, names, rng.uniform(0.1, 2, n)


COUNT = pytest.mark.parametrize("count", [2, 3])
STORE = pytest.mark.parametrize("store", [np.asarray, sp.csr_array, sp.csc_array], ids=["dense", "csr", "csc"])


def assert_same(ours, scikits, names=("Cs_", "C_", "coef_", "intercept_", "scores_", "coefs_paths_"), rtol=1e-6):
    for name in names:
        a, b = getattr(ours, name), getattr(scikits, name)
        assert isinstance(a, dict) == isinstance(b, dict)
        if isinstance(b, dict):
            assert list(a) == list(b)
            a, b = np.array(list(a.values())), np.array(list(b.values()))
        assert np.shape(a) == np.shape(b), name
        np.testing.assert_allclose(a, b, rtol=0, atol=rtol * np.abs(b).max(), err_msg=name)
    assert ours.n_iter_.shape == scikits.n_iter_.shape


def twins(X, store, y, s, **options):
    ours = LogisticRegressionCV(tol=1e-14, max_iter=1000, **options).fit(store(X), y, sample_weight=s)
    options.setdefault("l1_ratios", (0,))
    exact = theirs.LogisticRegressionCV(
        solver="newton-cholesky", tol=1e-13, max_iter=10_000, scoring=options.pop("scoring", None), **options
    )
    return ours, exact.fit(X, y, sample_weight=s)


@COUNT
@STORE
@pytest.mark.parametrize("weighted", [False, True], ids=["equal", "weighted"])
@pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "through_0"])
@pytest.mark.parametrize("scoring", [None, "neg_log_loss"])
def test_the_same_choice_scores_and_paths(count, store, weighted, intercept, scoring):
    X, y, s = data(count)
    ours, scikits = twins(
        X,
        store,
        y,
        s if weighted else None,
        Cs=4,
        cv=3,
        fit_intercept=intercept,
        scoring=scoring,
        l1_ratios=(0,),
        use_legacy_attributes=False,
    )
    assert_same(ours, scikits)
    assert ours.l1_ratio_ == scikits.l1_ratio_ == 0.0
    assert ours.score(X, y, sample_weight=s) == pytest.approx(scikits.score(X, y, sample_weight=s), rel=1e-7)
    np.testing.assert_allclose(ours.predict_proba(X), scikits.predict_proba(X), atol=1e-6)


@COUNT
@pytest.mark.parametrize("refit", [True, False])
@pytest.mark.parametrize("class_weight", [None, "balanced", {"a": 3.0, "b": 0.5}])
@pytest.mark.parametrize("ratios", [None, (0.0,)])
@pytest.mark.filterwarnings("ignore:'l1_ratios=None' was deprecated:FutureWarning")
def test_legacy_attributes(count, refit, class_weight, ratios):
    X, y, s = data(count)
    options = {"Cs": [10.0, 0.01, 1.0], "cv": 3, "scoring": "neg_log_loss", "use_legacy_attributes": True}
    ours, scikits = twins(X, np.asarray, y, s, refit=refit, class_weight=class_weight, l1_ratios=ratios, **options)
    assert_same(ours, scikits)
    assert len(ours.l1_ratios_) == len(scikits.l1_ratios_)
    if refit:
        assert ours.C_[0] in (10.0, 0.01, 1.0)
        assert ours.dual_gap_ <= 1e-12


def test_new_attributes_without_a_refit():
    X, y, _ = data(3)
    ours, scikits = twins(
        X, np.asarray, y, None, Cs=3, cv=3, refit=False, scoring="neg_log_loss", use_legacy_attributes=False
    )
    assert_same(ours, scikits, ("C_", "coef_", "intercept_", "scores_"))


@pytest.mark.parametrize("ratios", [(1.0,), (0.2, 0.9)])
@pytest.mark.parametrize("legacy", [True, False])
def test_l1(ratios, legacy):
    X, y, _ = data()
    options = {
        "Cs": [0.5, 5.0],
        "cv": 3,
        "scoring": "neg_log_loss",
        "l1_ratios": ratios,
        "use_legacy_attributes": legacy,
    }
    ours = LogisticRegressionCV(tol=1e-13, max_iter=100_000, **options).fit(X, y)
    scikits = theirs.LogisticRegressionCV(solver="saga", tol=1e-11, max_iter=100_000, random_state=0, **options).fit(
        X, y
    )
    assert_same(ours, scikits, rtol=1e-5)
    np.testing.assert_array_equal(ours.l1_ratio_, scikits.l1_ratio_)
    np.testing.assert_array_equal(ours.l1_ratios_, scikits.l1_ratios_)


@pytest.mark.parametrize("legacy", [True, False])
def test_l1_with_three_classes(legacy):
    X, y, _ = data(3)
    options = {
        "Cs": [0.05, 0.5],
        "cv": 3,
        "scoring": "neg_log_loss",
        "l1_ratios": (0.3, 1.0),
        "use_legacy_attributes": legacy,
    }
    ours = LogisticRegressionCV(tol=1e-12, max_iter=100_000, **options).fit(X, y)
    scikits = theirs.LogisticRegressionCV(solver="saga", tol=1e-10, max_iter=100_000, random_state=0, **options).fit(
        X, y
    )
    assert_same(ours, scikits, rtol=1e-4)
    np.testing.assert_array_equal(ours.l1_ratio_, scikits.l1_ratio_)
    assert ours.coef_.shape == (3, X.shape[1])


@COUNT
def test_the_order_of_Cs_is_of_no_consequence(count):
    X, y, _ = data(count)
    Cs = np.geomspace(1e-3, 1e3, 7)
    up, down = (LogisticRegressionCV(Cs=C, cv=3, use_legacy_attributes=False).fit(X, y) for C in (Cs, Cs[::-1]))
    np.testing.assert_array_equal(up.scores_, down.scores_[:, :, ::-1])
    np.testing.assert_array_equal(up.coefs_paths_, down.coefs_paths_[:, :, ::-1])


@COUNT
def test_threads_give_the_same(count):
    X, y, s = data(count)
    options = {"Cs": 5, "cv": StratifiedKFold(4), "use_legacy_attributes": False}
    one, two = (LogisticRegressionCV(n_jobs=n, **options).fit(X, y, sample_weight=s) for n in (1, 2))
    np.testing.assert_array_equal(one.coefs_paths_, two.coefs_paths_)
    np.testing.assert_array_equal(one.scores_, two.scores_)
    np.testing.assert_array_equal(one.coef_, two.coef_)


def test_every_fit_meets_its_tolerance_or_a_warning_counts_those_that_do_not():
    X, y, _ = data()
    with pytest.warns(ConvergenceWarning) as caught:
        LogisticRegressionCV(tol=1e-14, max_iter=1, Cs=[1.0, 100.0], cv=3).fit(X, y)
    texts = [str(one.message) for one in caught]
    assert any("6 of the 6 fits of folds of LogisticRegressionCV" in text for text in texts)
    found = LogisticRegressionCV(tol=1e-6, cv=3).fit(X, y)
    assert found.dual_gap_ <= 1e-6 * np.log(2)


@pytest.mark.parametrize("scoring", ["neg_brier_score", "roc_auc", "balanced_accuracy"])
@COUNT
def test_scorers_that_ask_for_labels(scoring, count):
    if count == 3 and scoring == "roc_auc":
        scoring = "roc_auc_ovr"
    X, y, _ = data(count)
    options = {"Cs": [0.1, 10.0], "cv": 3, "scoring": scoring, "use_legacy_attributes": False}
    ours, scikits = twins(X, np.asarray, y, None, l1_ratios=(0,), **options)
    assert_same(ours, scikits)


@pytest.mark.parametrize("scoring", ["precision_macro", "f1_weighted"])
def test_scorers_with_labels_and_options_of_their_own(scoring):
    X, y, _ = data()
    found = LogisticRegressionCV(Cs=[0.1, 10.0], cv=3, scoring=scoring, use_legacy_attributes=False).fit(X, y)
    train, test = next(StratifiedKFold(3).split(X, y))
    alone = LogisticRegression(C=0.1).fit(X[train], y[train])
    assert found.scores_[0, 0, 0] == pytest.approx(get_scorer(scoring)(alone, X[test], y[test]))


def test_a_scorer_of_ones_own():
    X, y, _ = data()
    scorer = make_scorer(lambda truth, found: np.mean(truth == found))
    own = LogisticRegressionCV(cv=3, scoring=scorer).fit(X, y)
    named = LogisticRegressionCV(cv=3, scoring="accuracy").fit(X, y)
    assert own.C_ == named.C_
    assert own.score(X, y) == named.score(X, y)


def test_wrong_input():
    X, y, _ = data()
    with pytest.raises(ValueError, match="Cs must be a number of values, or positive values"):
        LogisticRegressionCV(Cs=[1.0, 0.0]).fit(X, y)
    with pytest.raises(ValueError, match="l1_ratios must be array-like of numbers between 0 and 1"):
        LogisticRegressionCV(l1_ratios=[1.2]).fit(X, y)
    with pytest.raises(ValueError, match="class_weight dict must have the class labels as keys"):
        LogisticRegressionCV(class_weight={"z": 2.0}).fit(X, y)
    with pytest.raises(ValueError, match="at least 2 classes"):
        LogisticRegressionCV().fit(X, np.zeros(len(y)))
    with pytest.raises(ValueError, match="'scoring' parameter of LogisticRegressionCV"):
        LogisticRegressionCV(scoring="warn").fit(X, y)


# Paths


@COUNT
@pytest.mark.parametrize("ratio", [0.0, 1.0])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
@STORE
def test_every_point_of_a_path_is_the_fit_with_its_C(count, ratio, class_weight, store):
    if count == 3 and ratio:
        ratio = 0.0
    X, y, s = data(count)
    model = LogisticRegression(l1_ratio=ratio, tol=1e-12, max_iter=100_000, class_weight=class_weight)
    found = model.path(store(X), y, Cs=[10.0, 0.1, 1.0], sample_weight=s)
    assert found.Cs.tolist() == [0.1, 1.0, 10.0]
    assert found.coefs.shape == (3, 1 if count == 2 else 3, 6)
    assert found.converged.all()
    np.testing.assert_array_equal(found.classes, np.unique(y))
    assert not hasattr(model, "coef_")
    for k, C in enumerate(found.Cs):
        alone = LogisticRegression(**model.get_params() | {"C": C}).fit(store(X), y, sample_weight=s)
        np.testing.assert_allclose(found.coefs[k], alone.coef_, atol=1e-4 * np.abs(alone.coef_).max())
        np.testing.assert_allclose(found.intercepts[k], alone.intercept_, atol=1e-4)
        assert found.dual_gaps[k] <= 1e-12 * np.log(count)


def test_a_number_of_Cs_and_wrong_ones():
    X, y, _ = data()
    np.testing.assert_allclose(LogisticRegression().path(X, y, Cs=5).Cs, np.logspace(-4, 4, 5))
    with pytest.raises(ValueError, match="Cs must be"):
        LogisticRegression().path(X, y, Cs=[-1.0])
    with pytest.raises(ValueError, match="at least 2 classes"):
        LogisticRegression().path(X, np.ones(len(y)))
