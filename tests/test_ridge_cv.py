"""RidgeCV and RidgeClassifierCV: exact leave-one-out, scikit-learn's choices and scores, folds."""

import functools

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model as theirs
from sklearn.model_selection import KFold, LeaveOneOut
from sklearn.utils.estimator_checks import parametrize_with_checks

from coordwise.estimators import Ridge, RidgeClassifier, RidgeClassifierCV, RidgeCV
from coordwise.fitting import leave_one_out

ALPHAS = [0.01, 1.0, 0.1, 100.0, 10.0]


@pytest.mark.filterwarnings("ignore:The least populated class")  # scikit-learn's check has two samples of one
@parametrize_with_checks([RidgeCV(), RidgeCV(cv=3), RidgeClassifierCV(), RidgeClassifierCV(cv=3)])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@functools.cache
def data(n=60, d=10, outputs=0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * 10 ** rng.uniform(-1, 1, d) + rng.uniform(-1, 1, d)
    X *= rng.random((n, d)) < 0.7
    y = X[:, :3] @ rng.standard_normal((3, outputs or 1)) + 2 + rng.standard_normal((n, outputs or 1))
    return X, (y if outputs else y[:, 0]), rng.uniform(0.1, 2, n)


SHAPES = pytest.mark.parametrize("shape", [(60, 10), (20, 40)], ids=["tall", "wide"])
STORES = pytest.mark.parametrize("store", [np.asarray, sp.csr_array, sp.csc_array], ids=["dense", "csr", "csc"])
WEIGHTED = pytest.mark.parametrize("weighted", [False, True], ids=["equal", "weighted"])
INTERCEPT = pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "through_0"])


def assert_same(ours, scikits, names):
    for name in names:
        a, b = np.asarray(getattr(ours, name)), np.asarray(getattr(scikits, name))
        assert a.shape == b.shape, name
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6 * np.abs(b).max(), err_msg=name)


@SHAPES
@STORES
@WEIGHTED
@INTERCEPT
@pytest.mark.parametrize("scoring", [None, "r2"])
@pytest.mark.parametrize(("outputs", "each"), [(0, False), (3, False), (3, True)])
def test_one_left_out(shape, store, weighted, intercept, scoring, outputs, each):
    X, y, s = data(*shape, outputs)
    s = s if weighted else None
    options = {
        "alphas": ALPHAS,
        "fit_intercept": intercept,
        "scoring": scoring,
        "store_cv_results": True,
        "alpha_per_target": each,
    }
    ours = RidgeCV(tol=1e-14, **options).fit(store(X), y, sample_weight=s)
    scikits = theirs.RidgeCV(**options).fit(X, y, sample_weight=s)
    assert_same(ours, scikits, ["alpha_", "best_score_", "cv_results_", "coef_", "intercept_"])
    assert np.all(np.asarray(ours.dual_gap_) <= 1e-12)


@SHAPES
@INTERCEPT
@WEIGHTED
def test_the_singular_values_of_dense_data(shape, intercept, weighted):
    X, y, s = data(*shape)
    s = s if weighted else None
    options = {"alphas": ALPHAS, "fit_intercept": intercept, "gcv_mode": "svd", "store_cv_results": True}
    ours = RidgeCV(tol=1e-14, **options).fit(X, y, sample_weight=s)
    assert_same(ours, theirs.RidgeCV(**options).fit(X, y, sample_weight=s), ["alpha_", "cv_results_", "coef_"])


@SHAPES
@INTERCEPT
@pytest.mark.parametrize("store", [np.asarray, sp.csr_array])
def test_errors_are_those_of_models_without_the_sample(shape, intercept, store, monkeypatch):
    X, y, s = data(*shape)
    s = s.copy()
    s[3] = 0.0  # a sample that no model has seen
    monkeypatch.setattr(leave_one_out, "BLOCK", 50)  # several blocks of rows
    held = leave_one_out.LeaveOneOut(store(X), y[:, None], s, intercept=intercept)
    errors = held.errors(np.array([0.5, 20.0]))
    for k, alpha in enumerate((0.5, 20.0)):
        for i in (0, 3, 11):
            rest = np.arange(len(y)) != i
            model = theirs.Ridge(alpha, fit_intercept=intercept, tol=1e-12).fit(X[rest], y[rest], sample_weight=s[rest])
            assert errors[i, 0, k] == pytest.approx(y[i] - model.predict(X[[i]])[0], rel=1e-7)


def test_leaving_out_is_the_same_by_folds():
    X, y, _ = data()
    options = {"alphas": ALPHAS, "scoring": "neg_mean_squared_error", "tol": 1e-12}
    exact = RidgeCV(**options).fit(X, y)
    folds = RidgeCV(cv=LeaveOneOut(), **options).fit(X, y)
    assert exact.alpha_ == folds.alpha_
    assert exact.best_score_ == pytest.approx(folds.best_score_, rel=1e-8)


@SHAPES
@STORES
@WEIGHTED
@INTERCEPT
@pytest.mark.parametrize(("scoring", "outputs"), [(None, 0), (None, 2), ("neg_mean_absolute_error", 0)])
def test_folds(shape, store, weighted, intercept, scoring, outputs):
    X, y, s = data(*shape, outputs)
    s = s if weighted else None
    options = {"alphas": ALPHAS, "fit_intercept": intercept, "scoring": scoring, "cv": 4}
    ours = RidgeCV(tol=1e-14, **options).fit(store(X), y, sample_weight=s)
    scikits = theirs.RidgeCV(**options).fit(X, y, sample_weight=s)
    assert_same(ours, scikits, ["alpha_", "best_score_", "coef_", "intercept_"])


def test_folds_that_are_no_partition():
    X, y, _ = data()
    cv = [(np.arange(30), np.arange(30, 40)), (np.arange(20, 60), np.arange(5)), (np.arange(60), np.arange(8))]
    ours = RidgeCV(ALPHAS, cv=cv, tol=1e-13).fit(X, y)
    assert_same(ours, theirs.RidgeCV(ALPHAS, cv=cv).fit(X, y), ["alpha_", "best_score_", "coef_"])


def test_threads_give_the_same():
    X, y, s = data()
    one, two = (RidgeCV(ALPHAS, cv=KFold(5), n_jobs=n).fit(X, y, sample_weight=s) for n in (1, 2))
    assert one.best_score_ == two.best_score_
    np.testing.assert_array_equal(one.coef_, two.coef_)


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 2.0}])
@WEIGHTED
@INTERCEPT
@pytest.mark.parametrize("cv", [None, 3])
@pytest.mark.parametrize("store", [np.asarray, sp.csr_array])
def test_classifier(count, class_weight, weighted, intercept, cv, store):
    X, y, s = data()
    codes = np.digitize(y, np.quantile(y, np.arange(1, count) / count))
    s = s if weighted else None
    options = {"alphas": ALPHAS, "class_weight": class_weight, "fit_intercept": intercept, "cv": cv}
    ours = RidgeClassifierCV(tol=1e-14, store_cv_results=cv is None, **options).fit(store(X), codes, sample_weight=s)
    scikits = theirs.RidgeClassifierCV(store_cv_results=cv is None, **options).fit(X, codes, sample_weight=s)
    names = ["alpha_", "best_score_", "coef_", "classes_"] + ["cv_results_"] * (cv is None)
    assert_same(ours, scikits, names + ["intercept_"] * intercept)
    np.testing.assert_array_equal(ours.predict(X), scikits.predict(X))


@pytest.mark.parametrize("count", [2, 3])
def test_scores_of_a_classifier_with_one_sample_left_out(count):
    X, y, _ = data(n=40)
    names = np.array(["a", "b", "c"])[np.digitize(y, np.quantile(y, np.arange(1, count) / count))]
    found = RidgeClassifierCV(ALPHAS, scoring="accuracy").fit(X, names)
    right = []
    for i in range(40):
        rest = np.arange(40) != i
        # a model without the sample knows all classes
        right.append(RidgeClassifier(found.alpha_, tol=1e-13).fit(X[rest], names[rest]).predict(X[[i]])[0] == names[i])
    assert found.best_score_ == pytest.approx(np.mean(right))


def test_the_last_fit_is_certified():
    X, y, _ = data()
    for cv in (None, 4):
        found = RidgeCV(ALPHAS, cv=cv, tol=1e-8).fit(X, y)
        alone = Ridge(found.alpha_, tol=1e-12).fit(X, y)
        np.testing.assert_allclose(found.coef_, alone.coef_, atol=1e-4 * np.abs(alone.coef_).max())
        assert found.dual_gap_ <= 1e-8 * np.mean(y**2) / 2
        assert found.result_.converged


def test_a_single_alpha_and_float32():
    X, y, _ = data()
    assert RidgeCV(2.0).fit(X, y).alpha_ == 2.0
    found = RidgeCV(ALPHAS, store_cv_results=True).fit(X.astype(np.float32), y)
    assert found.coef_.dtype == found.cv_results_.dtype == np.float32
    np.testing.assert_allclose(found.coef_, theirs.RidgeCV(ALPHAS).fit(X, y).coef_, rtol=1e-3, atol=1e-4)


def test_wrong_input():
    X, y, _ = data()
    with pytest.raises(ValueError, match=r"alphas\[1\] == -1"):
        RidgeCV([1.0, -1.0]).fit(X, y)
    with pytest.raises(ValueError, match=r"alphas == -1.0, must be >= 0"):
        RidgeCV([-1.0]).fit(X, y)
    with pytest.raises(ValueError, match="cv!=None and store_cv_results=True are incompatible"):
        RidgeCV(cv=3, store_cv_results=True).fit(X, y)
    with pytest.raises(ValueError, match="cv!=None and alpha_per_target=True are incompatible"):
        RidgeCV(cv=3, alpha_per_target=True).fit(X, y)
    with pytest.raises(ValueError, match="'gcv_mode' parameter of RidgeCV"):
        RidgeCV(gcv_mode="qr").fit(X, y)


def test_what_does_not_fit_into_memory_is_refused():
    X = sp.random_array((20_000, 30_000), density=1e-5, format="csr", rng=np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"dense matrix of 20000 x 20000 numbers \(3 GB\).* Give cv=5"):
        RidgeCV().fit(X, np.arange(20_000.0))
    found = RidgeCV(cv=2, tol=1e-2).fit(X, np.arange(20_000.0))
    assert found.alpha_ in (0.1, 1.0, 10.0)


def test_a_scorer_without_weights_says_so():
    X, y, s = data()

    def scorer(model, X, y):
        return model.score(X, y)

    with pytest.warns(UserWarning, match="does not support sample_weight"):
        found = RidgeCV(ALPHAS, cv=3, scoring=scorer).fit(X, y, sample_weight=s)
    assert found.alpha_ in ALPHAS
