"""scikit-learn's metadata routing in estimators that end in CV: fits, splitters and scorers get what they request.

Routing by itself changes no result.
"""

import signal

import numpy as np
import pytest
import sklearn
from sklearn.base import clone, is_classifier
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.metrics import get_scorer, make_scorer, mean_absolute_error
from sklearn.model_selection import GroupKFold, cross_validate

from coordwise.estimators import ElasticNetCV, LassoCV, LogisticRegressionCV, RidgeClassifierCV, RidgeCV

SCORED = [RidgeCV(), RidgeCV(cv=3), RidgeClassifierCV(), RidgeClassifierCV(cv=3), LogisticRegressionCV(Cs=3, cv=3)]
ALL = [LassoCV(alphas=5, cv=3), ElasticNetCV(alphas=5, cv=3), *SCORED]


def name_of(estimator):
    return f"{type(estimator).__name__}_{estimator.cv}"


each = pytest.mark.parametrize("estimator", ALL, ids=name_of)
each_scored = pytest.mark.parametrize("estimator", SCORED, ids=name_of)


@pytest.fixture(autouse=True)
def _ends():
    """A test that hangs fails after a minute."""

    def late(number, frame):
        raise TimeoutError("a fit with metadata routing did not end")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 15)) * rng.uniform(0.3, 3, 15)
    y = X[:, :4] @ np.array([1.0, -2.0, 0.5, 1.5]) + 3 + rng.standard_normal(120)
    return X, y, rng.uniform(0.2, 2, 120)


def target(estimator, y):
    return (y > np.median(y)).astype(int) if is_classifier(estimator) else y


def chosen(estimator):
    """What a fit chose."""
    return {
        name: getattr(estimator, name)
        for name in ("alpha_", "C_", "l1_ratio_", "best_score_", "scores_")
        if hasattr(estimator, name)
    }


def assert_equal(one, other):
    np.testing.assert_equal(chosen(one), chosen(other))
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.intercept_, other.intercept_)


@each
@pytest.mark.parametrize("scoring", [None, "by name", "by a function"])
def test_fits_without_metadata_are_those_without_routing(data, estimator, scoring):
    X, y, _ = data
    y = target(estimator, y)
    estimator = clone(estimator)
    if scoring and "scoring" in estimator.get_params():
        name = "accuracy" if is_classifier(estimator) else "neg_mean_absolute_error"
        estimator.set_params(scoring=name if scoring == "by name" else get_scorer(name))
    plain = clone(estimator).fit(X, y)
    with sklearn.config_context(enable_metadata_routing=True):
        assert_equal(clone(estimator).fit(X, y), plain)


@each
def test_weights_that_are_requested_are_those_without_routing(data, estimator):
    X, y, s = data
    y = target(estimator, y)
    plain = clone(estimator).fit(X, y, sample_weight=s)
    with sklearn.config_context(enable_metadata_routing=True):
        one = clone(estimator).set_fit_request(sample_weight=True)
        if isinstance(one, LogisticRegressionCV):  # its scorer is asked by name, and asks for weights only if told
            one.set_params(scoring=get_scorer("accuracy").set_score_request(sample_weight=True))
        one.fit(X, y, sample_weight=s)
    assert_equal(one, plain)


@each_scored
@pytest.mark.parametrize("asks", [True, False])
def test_scorers_get_the_weights_that_they_request(data, estimator, asks, routing):
    X, y, s = data
    y = target(estimator, y)
    seen = []

    def score(truth, predicted, sample_weight=None):
        seen.append(sample_weight)
        return -mean_absolute_error(truth, predicted, sample_weight=sample_weight)

    scorer = make_scorer(score).set_score_request(sample_weight=asks)
    one = clone(estimator).set_params(scoring=scorer).fit(X, y, sample_weight=s)
    assert seen
    assert all((weights is not None) == asks for weights in seen)
    if asks:  # as without routing, where scorers that take weights get them
        with sklearn.config_context(enable_metadata_routing=False):
            assert_equal(one, clone(estimator).set_params(scoring=make_scorer(score)).fit(X, y, sample_weight=s))


@each_scored
def test_weights_that_nobody_decided_about_are_refused(data, estimator, routing):
    X, y, s = data
    y = target(estimator, y)
    one = clone(estimator).set_params(scoring=get_scorer("accuracy" if is_classifier(estimator) else "r2"))
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        one.fit(X, y, sample_weight=s)


@each
def test_metadata_of_splitters_and_of_searches_around(data, estimator):
    X, y, s = data
    y = target(estimator, y)
    groups = np.arange(len(y)) % 4
    with sklearn.config_context(enable_metadata_routing=True):
        one = clone(estimator).set_fit_request(sample_weight=True)
        if isinstance(one, LogisticRegressionCV):
            one.set_params(scoring=get_scorer("accuracy").set_score_request(sample_weight=True))
        else:
            one.set_score_request(sample_weight=True)
        assert len(cross_validate(one, X, y, params={"sample_weight": s}, cv=3)["test_score"]) == 3
        assert len(cross_validate(clone(estimator), X, y, cv=3)["test_score"]) == 3
        if estimator.cv is not None:
            split = one.set_params(cv=GroupKFold(4)).fit(X, y, sample_weight=s, groups=groups)
            by_hand = clone(estimator).set_params(cv=list(GroupKFold(4).split(X, y, groups)))
            if isinstance(one, LogisticRegressionCV):
                by_hand.set_params(scoring=one.scoring)
            by_hand = by_hand.fit(X, y, sample_weight=s)
            np.testing.assert_array_equal(split.coef_, by_hand.coef_)
    with pytest.raises(ValueError, match="enable_metadata_routing=True"):
        clone(estimator).fit(X, y, groups=groups)
