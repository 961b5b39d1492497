"""Ridge.partial_fit: the model of all batches is that of one fit, exactly."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from coordwise.estimators import Ridge


def data(storage="dense", targets=1, offset=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((240, 9)) * 10 ** rng.uniform(-2, 2, 9) + offset
    if storage != "dense":
        X = sp.csr_array(np.where(rng.random(X.shape) < 0.4, X, 0.0))
    y = X @ rng.standard_normal((9, targets)) + rng.standard_normal((240, targets)) + 3.0
    return (X if storage != "csc" else sp.csc_array(X)), (y[:, 0] if targets == 1 else y), rng.integers(0, 3, 240) * 1.0


CUTS = [(0, 1), (1, 5), (5, 120), (120, 240)]


def in_batches(model, X, y, s, cuts=CUTS):
    rows = sp.csr_array(X) if sp.issparse(X) else X
    for begin, end in cuts:
        weight = None if s is None else s[begin:end]
        if weight is not None and not weight.any():
            continue
        model.partial_fit(rows[begin:end], y[begin:end], sample_weight=weight)
    return model


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("storage", ["dense", "csr", "csc"])
def test_batches_give_the_model_of_all_samples(storage, intercept, targets, weighted):
    X, y, s = data(storage, targets)
    s = s if weighted else None
    options = dict(alpha=0.3, fit_intercept=intercept)
    parts = in_batches(Ridge(**options), X, y, s)
    whole = Ridge(**options, tol=1e-12).fit(X, y, sample_weight=s)
    np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(parts.intercept_, whole.intercept_, rtol=1e-7, atol=1e-8)
    assert parts.coef_.shape == whole.coef_.shape
    assert np.shape(parts.intercept_) == np.shape(whole.intercept_)
    assert parts.n_samples_seen_ == sum(end - begin for begin, end in CUTS if s is None or s[begin:end].any())
    assert np.all(np.asarray(parts.dual_gap_) <= 1e-12 * np.mean(np.square(y)))
    np.testing.assert_allclose(parts.predict(X), whole.predict(X), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_features_far_from_0(storage):
    X, y, _ = data(storage, offset=1e6)
    parts, whole = in_batches(Ridge(), X, y, None), Ridge(tol=1e-12).fit(X, y)
    np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=1e-5, atol=1e-6 * np.abs(whole.coef_).max())


def test_one_alpha_for_every_target_and_none():
    X, y, _ = data(targets=3)
    parts = in_batches(Ridge(np.array([0.0, 1.0, 100.0])), X, y, None)
    for k, alpha in enumerate((0.0, 1.0, 100.0)):
        alone = Ridge(alpha, tol=1e-12).fit(X, y[:, k])
        np.testing.assert_allclose(parts.coef_[k], alone.coef_, rtol=1e-7, atol=1e-9)


def test_without_a_penalty_the_smallest_solution_of_several():
    X, y, _ = data()
    X = np.column_stack([X, X[:, :2]])
    parts = in_batches(Ridge(0.0, fit_intercept=False), X, y, None)
    np.testing.assert_allclose(parts.coef_, np.linalg.lstsq(X, y, rcond=None)[0], rtol=1e-4, atol=1e-4)


def test_fit_begins_anew_and_pickles_go_on():
    X, y, _ = data()
    model = in_batches(Ridge(), X, y, None, CUTS[:3])
    again = pickle.loads(pickle.dumps(model))
    for one in (model, again):
        one.partial_fit(X[120:], y[120:])
        np.testing.assert_allclose(one.coef_, Ridge(tol=1e-12).fit(X, y).coef_, rtol=1e-8)
    model.fit(X[:50], y[:50])
    model.partial_fit(X[50:], y[50:])
    np.testing.assert_allclose(model.coef_, Ridge(tol=1e-12).fit(X[50:], y[50:]).coef_, rtol=1e-8)
    assert model.n_samples_seen_ == 190


def test_what_it_refuses():
    X, y, _ = data()
    model = Ridge().partial_fit(X[:9], y[:9])
    with pytest.raises(ValueError, match=r"8 features.*expecting 9"):
        model.partial_fit(X[:9, :8], y[:9])
    with pytest.raises(ValueError, match="y has 2 targets; the batches before had 1"):
        model.partial_fit(X[:9], np.column_stack([y[:9], y[:9]]))
    with pytest.raises(ValueError, match="partial_fit does not take positive=True"):
        Ridge(positive=True).partial_fit(X, y)
    with pytest.raises(ValueError, match="X has 10001 features; partial_fit takes at most 10000"):
        Ridge().partial_fit(sp.csr_array((3, 10_001)), np.ones(3))
    with pytest.raises(ValueError, match="NaN"):
        Ridge().partial_fit(np.full((3, 2), np.nan), np.ones(3))
    with pytest.raises(NotFittedError):
        Ridge().predict(X)
    before = model.coef_.copy()
    with pytest.raises(ValueError, match=r"(?i)sample.weight"):
        model.partial_fit(X[:3], y[:3], sample_weight=np.zeros(3))
    np.testing.assert_array_equal(model.coef_, before)
    assert model.n_samples_seen_ == 9
