"""Several classes at once: the multinomial loss with an l2 penalty."""

import numpy as np
import pytest

import coordwise as cw
from coordwise.fitting.fit import fit
from coordwise.fitting.model import LinearModel
from coordwise.fitting.multinomial import multinomial


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("many", [False, True], ids=["newton", "lbfgs"])
def test_multinomial_gap(intercept, weighted, many, monkeypatch):
    if many:
        monkeypatch.setattr("coordwise.fitting.multinomial.FEW", 0)
    rng = np.random.default_rng(6)
    n, d, K, lam = 80, 4, 3, 0.02
    X = rng.standard_normal((n, d)) + 0.5
    codes = np.argmax(X[:, :K] + rng.standard_normal((n, K)) + [0, 1, 2], axis=1)
    s = rng.uniform(0, 2, n) if weighted else np.ones(n)

    def value(W, c):
        t = X @ W + c
        return s @ (np.log(np.exp(t).sum(1)) - t[np.arange(n), codes]) / s.sum() + lam / 2 * np.sum(W**2)

    values = []
    for most in (1, 2, 5, 500):
        found = multinomial(X, codes, K, lam, s if weighted else None, intercept=intercept, tol=1e-12, most=most)
        assert np.isclose(found.value[0], value(found.w, found.c), rtol=1e-12)
        values.append((found.value[0], found.gap[0]))
        if intercept:
            assert np.max(np.abs(found.y.sum(0))) <= 1e-12 * n
    assert found.converged
    assert found.gap[0] <= 1e-12 * np.log(K)
    for reached, gap in values:
        assert gap >= reached - found.value[0] - 1e-12


def test_multinomial_with_two_classes_is_logistic():
    rng = np.random.default_rng(7)
    X = rng.standard_normal((50, 3))
    codes = (X[:, 0] + rng.standard_normal(50) > 0.3).astype(int)
    several = multinomial(X, codes, 2, 0.2, None, intercept=True, tol=1e-14, most=100)
    # W = (-w/2, w/2), whose penalty is half that of w
    one = fit(LinearModel(cw.ERM(X, 2.0 * codes - 1, "logistic", "l2", 0.1), True), tol=1e-14)
    np.testing.assert_allclose(several.w[:, 1] - several.w[:, 0], one.w[:, 0], rtol=1e-6)
    np.testing.assert_allclose(several.c[1] - several.c[0], one.c[0], rtol=1e-6)


def test_multinomial_of_separable_data_with_hardly_a_penalty():
    X = np.repeat(np.eye(3), 5, axis=0) * 100
    found = multinomial(X, np.repeat(np.arange(3), 5), 3, 1e-8, None, intercept=True, tol=1e-8, most=500)
    assert found.converged


@pytest.mark.parametrize("size", [1.0, 1e3, 1e6])
@pytest.mark.parametrize("lam", [0.1, 1e-6, 1e-10])
def test_multinomial_with_rare_classes_and_features_of_any_size(size, lam):
    rng = np.random.default_rng(8)
    X = size * (rng.standard_normal((100, 5)) + np.array([10, 0, 0, 0, 0]))
    codes = np.where(np.arange(100) < 90, 0, rng.integers(0, 6, 100))
    codes[:6] = np.arange(6)
    found = multinomial(X, codes, 6, lam, None, intercept=True, tol=1e-6, most=200)
    assert found.converged
