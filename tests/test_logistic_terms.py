"""The logistic loss at the limits of floating point, and its tables of many scores."""

import mpmath
import numpy as np
import pytest
import scipy.special

from coordwise.kernels import Terms
from coordwise.losses import Logistic

EXTREMES = [0.0, 1e-20, 1e-8, 0.5, 3.0, 36.0, 37.5, 40.0, 700.0, 708.0, 708.1, 720.0, 745.0, 1e3, 1e8]


def close_to_exact(found, exact, rel=4e-15, least=2.0**-1073):
    return abs(mpmath.mpf(float(found)) - exact) <= rel * abs(exact) + mpmath.mpf(least)


@pytest.mark.parametrize("b", [-1.0, 1.0])
@pytest.mark.parametrize("t", EXTREMES + [-t for t in EXTREMES[1:]])
def test_logistic_value_and_derivative_are_exact_to_rounding(t, b):
    terms = Terms(Logistic().shape, 1.0, np.array([[b]]), None)
    with mpmath.workdps(600):
        value = mpmath.log1p(mpmath.exp(-b * mpmath.mpf(t)))
        derivative = -b / (1 + mpmath.exp(b * mpmath.mpf(t)))
        assert close_to_exact(Logistic().value(t, b), value)
        assert close_to_exact(Logistic().derivative(t, b), derivative)
        # those of many scores are 0 where they would leave the normal numbers
        assert close_to_exact(terms.value(np.array([[t]]))[0], value, least=4e-308)
        assert close_to_exact(terms.derivative(np.array([[t]]))[0, 0], derivative, least=4e-308)


@pytest.mark.parametrize("columns", [1, 3, 300])
@pytest.mark.parametrize("rows", [1, 255, 256, 257, 1000])
def test_logistic_tables_of_any_shape(rows, columns):
    rng = np.random.default_rng(rows + columns)
    b, s = np.where(rng.random((rows, columns)) < 0.5, -1.0, 1.0), rng.integers(0, 3, rows) * rng.random(rows)
    t = rng.standard_normal((rows, columns)) * 10 ** rng.uniform(-9, 2, (rows, columns))
    terms, weight, margin = Terms(Logistic().shape, 0.5, b, s), 0.5 * s[:, None], b * t
    e = np.exp(-np.abs(margin))
    value = weight * (np.log1p(e) + np.maximum(-margin, 0))
    np.testing.assert_allclose(terms.value(t), value.sum(0), rtol=1e-13)
    derivative = -weight * b * np.where(margin > 0, e, 1) / (1 + e)
    np.testing.assert_allclose(terms.derivative(t), derivative, rtol=1e-13)
    np.testing.assert_allclose(terms.second_derivative(t), weight * e / (1 + e) ** 2, rtol=1e-13)
    a = np.where(rng.random((rows, columns)) < 0.1, rng.integers(0, 2, (rows, columns)), rng.random((rows, columns)))
    entropy = weight * -(scipy.special.entr(a) + scipy.special.entr(1 - a))
    np.testing.assert_allclose(terms.conjugate(-b * a * s[:, None]), entropy.sum(0), rtol=1e-12, atol=1e-300)
    outside = -b * a * s[:, None]
    outside[-1, 0] = b[-1, 0] * 1e-3
    found = terms.conjugate(outside)
    assert np.isinf(found[0])
    assert np.all(np.isfinite(found[1:]))


def test_logistic_tables_of_scores_that_are_no_numbers():
    t = np.array([[np.nan], [np.inf], [-np.inf], [-0.0]])
    one = Terms(Logistic().shape, 1.0, np.ones((4, 1)), None)
    np.testing.assert_array_equal(one.derivative(t)[:, 0], [np.nan, 0.0, -1.0, -0.5])
    np.testing.assert_array_equal(one.second_derivative(t)[:, 0], [np.nan, 0.0, 0.0, 0.25])
    assert np.isnan(one.value(t)[0])
    t[0] = 0.0
    assert np.isinf(one.value(t)[0])
    t[0] = np.nan
    none = Terms(Logistic().shape, 1.0, np.ones((4, 1)), np.array([0.0, 1.0, 0.0, 1.0]))  # a weight of 0 hides them
    np.testing.assert_array_equal(none.derivative(t)[:, 0], [0.0, 0.0, 0.0, -0.5])
    assert none.value(t)[0] == pytest.approx(np.log(2))


@pytest.mark.parametrize("a", [0.0, 1e-300, 1e-20, 1e-10, 1e-3, 0.25, 0.5, 0.75, 1 - 1e-10, 1 - 2**-53, 1.0])
def test_logistic_conjugate_is_exact_to_rounding(a):
    with mpmath.workdps(400):
        exact = mpmath.mpf(0)
        for share in (mpmath.mpf(a), 1 - mpmath.mpf(a)):
            exact += share * mpmath.log(share) if share > 0 else 0
        for b in (-1.0, 1.0):
            assert close_to_exact(Logistic().conjugate(-b * a, b), exact, rel=1e-13)
            terms = Terms(Logistic().shape, 1.0, np.array([[b]]), None)
            # 1 - a is rounded in the core, so its error is relative to 1
            assert abs(terms.conjugate(np.array([[-b * a]]))[0] - float(exact)) <= 2e-16


def exact_logistic_root(kappa, rhs):
    """a in (0, 1) with log(a/(1-a)) + kappa a = rhs, by bisection in the logit."""
    kappa, rhs = mpmath.mpf(kappa), mpmath.mpf(rhs)
    low, high = rhs - kappa, rhs
    while high - low > mpmath.mpf(10) ** -25 * (1 + abs(low) * mpmath.mpf(10) ** -10):
        middle = (low + high) / 2
        if middle + kappa / (1 + mpmath.exp(-middle)) > rhs:
            high = middle
        else:
            low = middle
    return 1 / (1 + mpmath.exp(-(low + high) / 2))


@pytest.mark.parametrize("kappa", [1e-12, 1e-3, 1.0, 1e3, 1e6, 1e8, 1e12, 1e16, 1e20, 1e40])
def test_logistic_prox_with_tiny_and_huge_kappa(kappa):
    terms = Terms(Logistic().shape, 1.0, np.array([[-1.0], [1.0]]), None)
    places = [-30.0, -1.0, 0.0, 1.0, 30.0, 1e-13 * kappa, 0.3 * kappa, 0.999 * kappa, kappa, kappa + 20.0]
    with mpmath.workdps(80):
        for rhs in places:
            a = exact_logistic_root(kappa, rhs)
            assert close_to_exact(terms.prox(0, 0, rhs, kappa), a, rel=1e-10), (kappa, rhs)
            assert close_to_exact(terms.prox(1, 0, -rhs, kappa), -a, rel=1e-10), (kappa, rhs)


@pytest.mark.parametrize("k", [1e-300, 1e-9, 0.01, 1.0, 30.0, 1e4, 1e12, 1e99, 1e101, 1e200, 1e280])
def test_exact_steps_are_exact_to_rounding(k):
    """The root a of logit(a) + k a = r, whichever side and however small it is."""
    one = Terms(Logistic().shape, 1.0, np.array([[-1.0]]), None)
    shares = [0.5, 0.49, 0.3, 0.06, 0.04, 1e-3, 1e-30, 1e-200]
    right = [*(share * k for share in shares), *(k - share * k for share in shares)]
    right += [-600.0, -30.0, -5.0, -1.0, -1e-9, 0.0, 1.0, 3.0, 20.0, 900.0, 1100.0]
    with mpmath.workdps(400):
        for r in right:
            if -r > max(0.6 * k, 600):  # the root is no normal number
                continue
            a = one.prox(0, 0, r, k)
            assert 0 <= a <= 1
            if a == 1:  # up to rounding
                assert one.prox(0, 0, k - r, k) <= 1.2e-16
                continue
            exact = mpmath.mpf(a)
            slope = 1 / (exact * (1 - exact)) + k
            off = (mpmath.log(exact / (1 - exact)) + k * exact - r) / slope
            rounding = (abs(r) + k * exact) / slope + exact  # of r, of the product, and of a itself
            assert abs(off) <= 2e-15 * rounding
