"""Leave-one-out errors of ridge regression against refits without the sample, in long double."""

import numpy as np
import pytest
import scipy.sparse as sp
from refits import errors_left_out

from coordwise.estimators import RidgeClassifierCV, RidgeCV
from coordwise.fitting import leave_one_out
from coordwise.fitting.leave_one_out import LeaveOneOut

EPS = np.finfo(float).eps
DATA = {
    "plain": lambda r, X: X,
    "columns of all scales": lambda r, X: X * 10 ** r.uniform(-6, 6, X.shape[1]),
    "rows of all scales": lambda r, X: X * 10 ** r.uniform(-3, 3, (len(X), 1)),
    "repeated samples": lambda r, X: X[r.integers(0, max(len(X) // 2, 1), len(X))],
    "low rank": lambda r, X: X[:, :3] @ r.standard_normal((min(3, X.shape[1]), X.shape[1])),
    "a feature of one sample": lambda r, X: np.where(np.arange(X.shape[1]) > 0, X, 1e4 * np.eye(*X.shape)),
    "categories": lambda r, X: (r.integers(0, X.shape[1], len(X))[:, None] == np.arange(X.shape[1])).astype(float),
    "a constant feature": lambda r, X: np.where(np.arange(X.shape[1]) > 0, X, 3.0),
    "far from 0": lambda r, X: X + 10 ** r.uniform(0, 8),
    "mostly zeros": lambda r, X: X * (r.random(X.shape) < 0.2),
}
WEIGHTS = {
    "equal": lambda r, n: np.ones(n),
    "alike": lambda r, n: r.uniform(0.1, 2, n),
    "of all scales": lambda r, n: 10 ** r.uniform(-4, 4, n),
    "some of them 0": lambda r, n: r.uniform(0.1, 2, n) * (np.arange(n) % 4 > 0),
}


def problem(rng, kind, rows, columns):
    """X, y, weights, alphas: from samples far outnumbered by features to the opposite, and all that is between."""
    n, d = int(rng.integers(*rows)), int(rng.integers(*columns))
    if rng.random() < 0.4:  # about as many
        d = max(n + int(rng.integers(-3, 3)), 2)
    X = DATA[kind](rng, rng.standard_normal((n, d))) * 10 ** rng.uniform(-6, 6)
    s = WEIGHTS[rng.choice(list(WEIGHTS))](rng, n)
    Y = rng.standard_normal((n, int(rng.choice([1, 3])))) + rng.choice([0, 100]) + 3 * X[:, :1] / np.abs(X).max()
    largest = float(np.sum(s[:, None] * X**2))
    alphas = 10 ** rng.uniform(-4, 4, 2) if rng.random() < 0.5 else largest * 10 ** rng.uniform(-14, 2, 2)
    return X, Y, s, np.maximum(alphas, 1e-14 * largest), largest


def check(seed, kind, rows, columns):
    rng = np.random.default_rng(seed)
    X, Y, s, alphas, largest = problem(rng, kind, rows, columns)
    intercept = bool(rng.random() < 0.7)
    exact = errors_left_out(X, Y, s, alphas, intercept)
    size = np.abs(exact) + 1e-2 * np.abs(Y - intercept * Y.mean(0)).max()
    # data whose entries are known to 1e-16 leave no more than this to be known
    most = 1e-6 + 1000 * EPS * np.sqrt(largest / alphas)
    for A, svd in ((X, False), (X, True), (sp.csr_array(X), False)):
        found = LeaveOneOut(A, Y, None if np.all(s == 1) else s, intercept=intercept, svd=svd).errors(alphas)
        wrong = np.max(np.abs(found - exact) / size, axis=(0, 1))
        assert np.all(wrong <= most), (seed, kind, X.shape, intercept, svd, wrong, alphas)


@pytest.mark.parametrize("kind", DATA)
def test_every_error_is_that_of_a_refit(kind):
    for seed in range(8):
        check(seed, kind, (2 if seed < 2 else 5, 20), (2, 30))


@pytest.mark.slow
@pytest.mark.parametrize("kind", DATA)
def test_every_error_is_that_of_a_refit_for_many_shapes(kind):
    for seed in range(100, 140):
        check(seed, kind, (5, 61), (2, 101))


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("mode", [None, "svd"])
def test_the_choice_with_fewer_samples_than_features(storage, mode):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 30)) * 1e4, rng.standard_normal(20)
    alphas = np.array([0.1, 1e8, 1e9])
    found = RidgeCV(alphas, store_cv_results=True, gcv_mode=mode).fit(storage(X), y)
    exact = errors_left_out(X, y[:, None], np.ones(20), alphas, True)[:, 0]
    np.testing.assert_allclose(found.cv_results_, (exact**2).astype(float), rtol=1e-6)
    assert found.alpha_ == 1e9
    assert np.mean(found.cv_results_[:, 0]) == pytest.approx(1.5876, abs=1e-4)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(("n", "d"), [(30, 8), (8, 30), (12, 12), (20, 5)])
@pytest.mark.parametrize("intercept", [True, False])
def test_no_penalty_is_least_squares(n, d, intercept, storage):
    """Of several solutions the shortest one, which is the limit of small penalties."""
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, d))
    X[:, -1] = X[:, 0] if n == 20 else X[:, -1]
    y, s = rng.standard_normal(n), rng.uniform(0.5, 2, n)
    found = RidgeCV([0, 1e3], fit_intercept=intercept, store_cv_results=True).fit(storage(X), y, sample_weight=s)
    for i in range(n):
        rest, root = np.arange(n) != i, np.sqrt(np.delete(s, i))[:, None]
        means = np.average(X[rest], axis=0, weights=s[rest]) * intercept
        center = np.average(y[rest], weights=s[rest]) * intercept
        w = np.linalg.lstsq(root * (X[rest] - means), root[:, 0] * (y[rest] - center), rcond=1e-10)[0]
        error = y[i] - center - (X[i] - means) @ w
        assert found.cv_results_[i, 0] == pytest.approx(s[i] * error**2, rel=1e-6, abs=1e-9)
    least = RidgeCV([0], fit_intercept=intercept).fit(storage(X), y, sample_weight=s)
    assert least.alpha_ == 0
    means, center = np.average(X, axis=0, weights=s) * intercept, np.average(y, weights=s) * intercept
    w = np.linalg.lstsq(np.sqrt(s)[:, None] * (X - means), np.sqrt(s) * (y - center), rcond=1e-10)[0]
    np.testing.assert_allclose(least.coef_, w, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("n", [2, 3, 12, 31, 32])
def test_the_choice_of_a_classifier_at_any_number_of_samples(n):
    rng = np.random.default_rng(n)
    X, y = 1e5 * rng.standard_normal((n, 30)), np.arange(n) % 3 if n > 2 else np.arange(2)
    alphas = np.array([1e-2, 1e6, 1e12])
    found = RidgeClassifierCV(alphas, store_cv_results=True).fit(X, y)
    signs = np.where(y[:, None] == (found.classes_ if n > 2 else found.classes_[1:]), 1.0, -1.0)
    exact = errors_left_out(X, signs, np.ones(n), alphas, True).astype(float)
    np.testing.assert_allclose(found.cv_results_, exact**2, rtol=1e-6)
    if n > 2:  # two samples are each predicted by the other, whatever alpha is
        assert found.alpha_ == alphas[np.argmin(np.mean(exact**2, axis=(0, 1)))]


def test_a_large_sparse_matrix_with_tiny_penalties_says_what_it_loses(monkeypatch):
    rng = np.random.default_rng(1)
    X, y = sp.csr_array(1e6 * rng.standard_normal((15, 40))[np.arange(30) % 15]), rng.standard_normal((30, 1))
    monkeypatch.setattr(leave_one_out, "LARGEST", 8 * 30 * 40 - 1)
    held = LeaveOneOut(X, y, None, intercept=True)
    with pytest.warns(UserWarning, match=r"known to less than seven digits, and 30 x 40 sparse data"):
        held.errors(np.array([1e-6]))
    held.errors(np.array([1e8]))  # which says nothing


def test_one_sample_alone_has_no_intercept_without_itself():
    with pytest.raises(ValueError, match="there is only 1 sample"):
        RidgeCV().fit(np.ones((1, 2)), [1.0])
    with pytest.raises(ValueError, match="at least 2 samples of positive weight"):
        RidgeCV().fit(np.ones((3, 2)), [1.0, 2.0, 3.0], sample_weight=[0.0, 1.0, 0.0])
    assert RidgeCV([1.0], fit_intercept=False).fit([[2.0]], [3.0]).best_score_ == pytest.approx(-9)
