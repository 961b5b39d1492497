"""LassoCV and ElasticNetCV choose what scikit-learn's twins choose; and what all cross-validated estimators share."""

import pickle
import signal
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model as theirs
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from coordwise.estimators import ElasticNetCV, Lasso, LassoCV, LogisticRegressionCV, Ridge, RidgeClassifierCV, RidgeCV
from coordwise.estimators.base import threads_of
from coordwise.estimators.folds import in_threads, partition

ALL = [
    LassoCV(alphas=5, cv=3),
    ElasticNetCV(alphas=5, cv=3),
    RidgeCV(),
    RidgeCV(cv=3),
    RidgeClassifierCV(),
    RidgeClassifierCV(cv=3),
    LogisticRegressionCV(Cs=3, cv=3),
]
each = pytest.mark.parametrize("estimator", ALL, ids=lambda one: f"{type(one).__name__}_{one.cv}")


@parametrize_with_checks([LassoCV(alphas=5), ElasticNetCV(alphas=5)])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 15)) * rng.uniform(0.3, 3, 15)
    y = X[:, :4] @ np.array([1.0, -2.0, 0.5, 1.5]) + 3 + rng.standard_normal(120)
    return X, y, rng.uniform(0.2, 2, 120)


def same(ours, scikits):
    assert ours.alpha_ == pytest.approx(scikits.alpha_, rel=1e-9)
    np.testing.assert_allclose(ours.alphas_, scikits.alphas_, rtol=1e-9)
    np.testing.assert_allclose(ours.mse_path_, scikits.mse_path_, rtol=1e-5)
    np.testing.assert_allclose(ours.coef_, scikits.coef_, atol=1e-6 * np.abs(scikits.coef_).max())
    assert ours.intercept_ == pytest.approx(scikits.intercept_, rel=1e-6)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("weighted", [False, True])
def test_lasso(data, storage, weighted):
    X, y, s = data
    s = s if weighted else None
    cv = KFold(4, shuffle=True, random_state=1)
    ours = LassoCV(alphas=20, cv=cv, tol=1e-10).fit(storage(X), y, sample_weight=s)
    same(ours, theirs.LassoCV(alphas=20, cv=cv, tol=1e-12, max_iter=100_000).fit(X, y, sample_weight=s))


def test_elastic_net_over_ratios_and_given_alphas(data):
    X, y, _ = data
    for alphas in (10, [1.0, 0.01, 0.1]):
        ours = ElasticNetCV(l1_ratio=[0.2, 0.9], alphas=alphas, tol=1e-10).fit(X, y)
        twin = theirs.ElasticNetCV(l1_ratio=[0.2, 0.9], alphas=alphas, tol=1e-12, max_iter=100_000).fit(X, y)
        assert ours.l1_ratio_ == twin.l1_ratio_
        assert ours.mse_path_.shape == (2, 10 if alphas == 10 else 3, 5)
        assert ours.alpha_ == pytest.approx(twin.alpha_, rel=1e-9)
        np.testing.assert_allclose(ours.mse_path_, twin.mse_path_, rtol=1e-4)


def test_threads_give_the_same(data):
    X, y, s = data
    one = LassoCV(alphas=10).fit(X, y, sample_weight=s)
    two = LassoCV(alphas=10, n_jobs=2).fit(X, y, sample_weight=s)
    every = LassoCV(alphas=10, n_jobs=-1).fit(X, y, sample_weight=s)
    for other in (two, every):
        np.testing.assert_array_equal(one.mse_path_, other.mse_path_)
        np.testing.assert_array_equal(one.coef_, other.coef_)


def test_the_last_fit_is_on_all_data_and_certified(data):
    X, y, _ = data
    found = LassoCV(alphas=10, tol=1e-8).fit(X, y)
    alone = Lasso(alpha=found.alpha_, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(found.coef_, alone.coef_, atol=1e-6)
    assert found.dual_gap_ <= 1e-8 * np.mean(y**2) / 2


def test_wrong_input(data):
    X, y, _ = data
    with pytest.raises(ValueError, match=r"alpha grid generation is not supported for l1_ratio=0"):
        ElasticNetCV(l1_ratio=0).fit(X, y)
    with pytest.raises(ValueError, match="'eps' parameter of LassoCV"):
        LassoCV(eps=-1).fit(X, y)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_more_features_than_a_gram_matrix_is_for(n_jobs):
    rng = np.random.default_rng(5)
    X = sp.random_array((60, 1200), density=0.05, format="csr", rng=rng)
    y = X[:, :3].sum(axis=1) + 0.1 * rng.standard_normal(60)
    ours = LassoCV(alphas=6, eps=0.1, cv=3, tol=1e-10, max_iter=100_000, n_jobs=n_jobs).fit(X, y)
    same(ours, theirs.LassoCV(alphas=6, eps=0.1, cv=3, tol=1e-12, max_iter=100_000).fit(X.toarray(), y))


def test_folds_that_are_no_partition(data):
    X, y, s = data
    cv = [(np.arange(70), np.arange(70, 90)), (np.arange(40, 120), np.arange(30)), (np.arange(100), np.arange(90, 120))]
    assert not partition(cv, 120)
    assert partition(list(KFold(4).split(X)), 120)
    ours = LassoCV(alphas=10, cv=cv, tol=1e-10).fit(X, y, sample_weight=s)
    same(ours, theirs.LassoCV(alphas=10, cv=cv, tol=1e-12, max_iter=100_000).fit(X, y, sample_weight=s))


def test_data_whose_tested_samples_are_far_larger(data):
    X, y, _ = data
    X, y = X.copy(), y.copy()
    X[:24, 2] *= 1e5
    y = X[:, 0] + 1e-3 * np.minimum(X[:, 2], 10) + y
    ours = LassoCV(alphas=8, cv=5, tol=1e-11).fit(X, y)
    scikits = theirs.LassoCV(alphas=8, cv=5, tol=1e-13, max_iter=1_000_000).fit(X, y)
    assert ours.alpha_ == pytest.approx(scikits.alpha_, rel=1e-9)
    np.testing.assert_allclose(ours.mse_path_, scikits.mse_path_, rtol=1e-4)


def test_positive(data):
    X, y, _ = data
    ours = ElasticNetCV(l1_ratio=0.7, alphas=12, positive=True, tol=1e-11).fit(X, y)
    scikits = theirs.ElasticNetCV(l1_ratio=0.7, alphas=12, positive=True, tol=1e-13, max_iter=100_000).fit(X, y)
    assert ours.alpha_ == pytest.approx(scikits.alpha_)
    np.testing.assert_allclose(ours.mse_path_, scikits.mse_path_, rtol=1e-5)
    assert np.all(ours.coef_ >= 0)


def test_folds_that_do_not_converge_are_counted():
    rng = np.random.default_rng(5)
    X, y = rng.standard_normal((40, 1100)), rng.standard_normal(40)
    with pytest.warns(ConvergenceWarning) as caught:
        LassoCV(alphas=4, cv=3, tol=1e-15, max_iter=1).fit(X, y)
    assert any("fits of folds of LassoCV stopped before" in str(one.message) for one in caught)


# What all of them share


def target(estimator, y):
    return np.where(y > np.median(y), "high", "low") if is_classifier(estimator) else y


@each
def test_pickle_clone_and_pipeline(data, estimator):
    X, y, s = data
    y = target(estimator, y)
    fitted = clone(estimator).fit(X, y, sample_weight=s)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    assert not hasattr(clone(fitted), "coef_")
    before = fitted.get_params()
    assert make_pipeline(StandardScaler(), fitted).fit(X, y).score(X, y) > 0.5
    assert fitted.get_params() == before


@each
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(data, estimator, library):
    frames = pytest.importorskip(library)
    X, y, _ = data
    y = target(estimator, y)
    names = [f"f{j}" for j in range(X.shape[1])]
    frame = frames.DataFrame(dict(zip(names, X.T, strict=True)))
    found, plain = clone(estimator).fit(frame, frames.Series(y)), clone(estimator).fit(X, y)
    np.testing.assert_array_equal(found.feature_names_in_, names)
    np.testing.assert_allclose(found.coef_, plain.coef_, rtol=1e-9, atol=1e-12)
    assert found.score(frame, y) == pytest.approx(plain.score(X, y))


def test_n_jobs_is_read_in_one_way(data, monkeypatch):
    monkeypatch.setattr("coordwise.estimators.base.os.cpu_count", lambda: 8)
    assert [threads_of(n) for n in (None, 1, 3, -1, -2, -20)] == [1, 1, 3, 8, 7, 1]
    X, y, _ = data
    for estimator in (Ridge(n_jobs=0), LassoCV(n_jobs=0)):
        with pytest.raises(ValueError, match="n_jobs=0 has no meaning"):
            estimator.fit(X, y)
    targets = np.column_stack([y, -y])
    one, some = (Ridge(strategy="dual", n_jobs=n).fit(X, targets) for n in (None, -2))
    np.testing.assert_allclose(one.coef_, some.coef_)


# Threads


def test_tasks_keep_their_order_and_errors_come_out():
    assert in_threads(lambda task, halt: task**2, range(20), 3) == [k**2 for k in range(20)]
    assert in_threads(lambda task, halt: task, [], 3) == []
    begun = []

    def fails(task, halt):
        begun.append(task)
        if task == 1:
            raise RuntimeError("one is wrong")
        while True:  # until told to stop
            halt(None)
            time.sleep(1e-3)

    with pytest.raises(RuntimeError, match="one is wrong"):
        in_threads(fails, range(50), 2)
    assert len(begun) < 50


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_ends_all_threads(n_jobs):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 1500)) + rng.standard_normal((400, 1)) * 5
    y = X[:, :50].sum(axis=1) + rng.standard_normal(400)
    model = LassoCV(alphas=60, eps=1e-6, tol=1e-14, max_iter=10_000_000, n_jobs=n_jobs, cv=4)
    ended = threading.Event()

    def impatient():
        """Ctrl-C, and again if that came where Python ignores exceptions (in a finaliser)."""
        seconds = 0.5
        while not ended.wait(seconds):
            signal.raise_signal(signal.SIGINT)
            seconds = 20.0

    hand = threading.Thread(target=impatient)
    before = threading.active_count()
    hand.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
    finally:
        ended.set()
        hand.join()
    assert threading.active_count() == before
    assert not model.coef_.any()  # the fit of all samples had not begun


def test_errors_in_folds_are_errors_of_the_fit(data):
    X, y, _ = data

    def scorer(model, X, y):
        raise RuntimeError("no score today")

    for n_jobs in (1, 2):
        with pytest.raises(RuntimeError, match="no score today"):
            RidgeCV(cv=4, scoring=scorer, n_jobs=n_jobs).fit(X, y)


def test_given_alphas_are_one_grid(data):
    X, y, _ = data
    ours = ElasticNetCV(alphas=[0.1, 0.01], l1_ratio=[0.5, 0.9]).fit(X, y)
    scikits = theirs.ElasticNetCV(alphas=[0.1, 0.01], l1_ratio=[0.5, 0.9]).fit(X, y)
    np.testing.assert_array_equal(ours.alphas_, scikits.alphas_)
    assert ours.mse_path_.shape == scikits.mse_path_.shape


@pytest.mark.parametrize("kind", [LassoCV, ElasticNetCV, RidgeCV, RidgeClassifierCV])
@pytest.mark.parametrize(
    ("alphas", "error", "message"),
    [
        ((1, -1), ValueError, r"alphas\[1\] == -1, must be >= 0"),
        ((1, 1.0, "1"), TypeError, r"alphas\[2\] must be an instance of float, not str"),
        ((np.nan, 1.0), ValueError, r"alphas\[0\] is nan"),
    ],
)
def test_alphas_that_are_none(data, kind, alphas, error, message):
    X, y, _ = data
    with pytest.raises(error, match=message):
        kind(alphas=alphas).fit(X, y > 3 if kind is RidgeClassifierCV else y)
