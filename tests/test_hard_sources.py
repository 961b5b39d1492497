"""Samples elsewhere at their worst: features that nearly depend on each other, arrays filled again, starts far out."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from coordwise.coupled import Softmax
from coordwise.drive import drive
from coordwise.estimators import Lasso, LinearSVC, LinearSVR, LogisticRegression, Ridge
from coordwise.losses import LOSSES, get_loss
from coordwise.oracle import Oracle, Problem
from coordwise.samples import Block, Memory
from coordwise.solvers import SOLVERS, Newton


def halves(X, y, s=None):
    cut = len(X) // 2
    parts = [(X[:cut], y[:cut]), (X[cut:], y[cut:])]
    return lambda: parts if s is None else [(*part, s[k * cut :][:cut]) for k, part in enumerate(parts)]


@pytest.mark.parametrize("apart", [0.0, 1e-13, 1e-10, 1e-8, 1e-7, 1e-6, 1e-4])
@pytest.mark.parametrize("model", [Ridge(alpha=0.0), Lasso(alpha=0.0)], ids=["ridge", "lasso"])
def test_without_a_penalty_no_gap_is_too_small(model, apart):
    x = np.random.default_rng(0).standard_normal((200, 2))
    X, y = np.column_stack([x[:, 0], x[:, 0] + apart * x[:, 1]]), x[:, 1]
    scale = 0.5 * np.mean((y - y.mean()) ** 2)
    least = 0.0 if apart > 0 else scale * (1 - np.corrcoef(x.T)[0, 1] ** 2)

    def off(found):
        return 0.5 * np.mean((y - X @ found.coef_ - found.intercept_) ** 2) - least

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = model.fit_batches(halves(X, y))
    assert off(found) <= found.dual_gap_ * (1 + 1e-6) + 1e-5 * apart + 1e-14
    assert found.result_.converged == (found.dual_gap_ <= 1e-4 * scale)
    assert found.result_.converged != any(issubclass(one.category, ConvergenceWarning) for one in caught)
    if apart == 0 or apart >= 1e-6:
        assert found.result_.converged
    if isinstance(model, Ridge):
        parts = Ridge(alpha=0.0).partial_fit(X[:100], y[:100]).partial_fit(X[100:], y[100:])
        assert off(parts) <= parts.dual_gap_ * (1 + 1e-6) + 1e-14


def test_a_generator_may_fill_the_same_arrays_again():
    rng = np.random.default_rng(0)
    X, y, s = rng.standard_normal((200, 2)), rng.standard_normal(200), np.repeat([1.0, 1, 1, 1000], 50)

    def again():
        A, b, w = np.empty((50, 2)), np.empty(50), np.empty(50)
        for k in range(4):
            some = slice(50 * k, 50 * k + 50)
            A[:], b[:], w[:] = X[some], y[some], s[some]
            yield A, b, w

    found = Ridge(tol=1e-10).fit_batches(again)
    np.testing.assert_allclose(found.coef_, Ridge(tol=1e-10).fit(X, y, s).coef_, rtol=1e-6)


def test_weights_that_change_from_pass_to_pass_are_refused():
    passes = 0

    def other():
        nonlocal passes
        passes += 1
        yield np.eye(4), np.arange(4.0), np.full(4, float(passes))

    with pytest.raises(ValueError, match="differs from batch 0 of the first one in shape, targets or weights"):
        Ridge().fit_batches(other)


@pytest.mark.parametrize("size", [0.0, 1.0, 30.0, 300.0, 725.0, 5000.0])
@pytest.mark.parametrize("loss", [name for name in sorted(LOSSES) if get_loss(name).gamma > 0] + ["softmax"])
def test_certificates_far_out_are_no_smaller_than_the_gap(loss, size):
    rng = np.random.default_rng(3)
    A, codes = rng.standard_normal((200, 2)), rng.integers(0, 3, 200)
    coupled = loss == "softmax"
    phi = Softmax() if coupled else get_loss(loss)
    b = np.eye(3)[codes] if coupled else np.where(codes > 0, 1.0, -1.0)[:, None]
    oracle = Oracle(Memory(Block(A, b, constant=True)), Problem(phi, 1e-2, True))
    best = drive(oracle, [Newton()], 1e-12)
    assert best.converged
    for w in (size * rng.standard_normal(oracle.shape), np.zeros(oracle.shape)):
        w[-1, 0] = size
        found = oracle.certificate(oracle.at(w))
        assert np.all(found.gap >= (found.value - best.value) * (1 - 1e-9) - 1e-12)


def test_several_classes_from_a_start_far_out():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 2)), rng.integers(0, 3, 60)
    for far in np.linspace(150, 200, 11):
        model = LogisticRegression(warm_start=True, tol=1e-6).fit_batches(halves(X + np.array([far, 0.0]), y))
        found = model.fit_batches(halves(0.01 * X, y))
        assert found.result_.converged
        alone = LogisticRegression(tol=1e-6).fit(0.01 * X, y)
        np.testing.assert_allclose(found.predict_proba(0.01 * X), alone.predict_proba(0.01 * X), atol=2e-3)


@pytest.mark.parametrize("scaling", [np.inf, 1.0, 7.0])
@pytest.mark.parametrize("n", [6, 80])
def test_losses_with_kinks_and_a_feature_far_from_0(n, scaling):
    rng = np.random.default_rng(n)
    X = 100 + 10 * rng.standard_normal((n, 1))
    y = X[:, 0] + 10 * rng.standard_normal(n)
    labels = (y > np.median(y)).astype(int)
    for model, target in (
        (LinearSVC(loss="hinge", C=1, tol=1e-6, intercept_scaling=scaling), labels),
        (LinearSVR(C=1, tol=1e-6, intercept_scaling=scaling), y),
    ):
        found = model.fit_batches(halves(X, target))
        assert found.result_.converged
        coef, intercept = found.coef_.copy(), np.copy(found.intercept_)
        here = model.fit(X, target)
        np.testing.assert_allclose(coef, here.coef_, rtol=0.02, atol=1e-3)
        np.testing.assert_allclose(X @ coef.T + intercept, X @ here.coef_.T + here.intercept_, rtol=0.02, atol=0.1)


def test_extreme_targets():
    A, b = np.zeros((50, 2)), 1e100 * (np.random.default_rng(0).standard_normal((50, 1)) + 0.5)
    for solver in SOLVERS:
        oracle = Oracle(Memory(Block(A, b, constant=True)), Problem(get_loss("squared"), 0.1, True))
        if not solver.refuses(oracle):
            found = drive(oracle, [solver], 1e-6)
            least = 0.5 * np.mean((b - b.mean()) ** 2)
            assert found.value[0] - least <= found.gap[0] * (1 + 1e-9) + 1e-9 * least
