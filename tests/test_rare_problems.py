"""Problems that random ones led to, each reduced to what it is about."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from coordwise import estimators as E
from coordwise import linalg


def test_a_scale_is_not_bracketed_by_fits_that_did_not_converge():
    """The model is exact at any scale: the objective is sigma, whose minimum is at the smallest scale there is."""
    X, y = np.array([[14.434716]]), np.array([-0.57027821])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = E.HuberRegressor(alpha=0.0, fit_intercept=False, max_iter=5, tol=1e-5).fit(X, y)
    if found.result_.converged:
        at_zero = np.abs(y[0]) * 2 * found.epsilon  # for scales next to 0
        assert found.scale_ <= 1e-4 * at_zero


@pytest.mark.parametrize("kind", [E.LinearSVC, E.LogisticRegression])
def test_balanced_classes_without_weight_are_as_left_out(kind):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 3)), np.arange(30) % 3
    s = np.where(y == 2, 0.0, 1.0 + rng.random(30))
    found = kind(class_weight="balanced", tol=1e-8, max_iter=10_000).fit(X, y, s)
    assert np.all(np.isfinite(found.coef_))
    assert np.all(found.dual_gap_ <= 1e-8 * np.log(3))


@pytest.mark.parametrize("kind", [E.L2L1Regressor, E.LinearSVR, E.HuberRegressor])
def test_tolerances_are_relative_to_the_targets_as_they_are(kind):
    """Weights gather where the target is 0, next to none where most targets are: their median helps nobody."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 4))
    y = np.where(np.arange(60) < 40, 5.0, 1e-3 * rng.standard_normal(60))
    s = np.where(np.arange(60) < 40, 1e-9, 1.0)
    options = {"intercept_scaling": np.inf} if kind is E.LinearSVR else {}
    found = kind(tol=1e-3, **options).fit(X, y, s)
    if kind is E.HuberRegressor:
        delta = found.epsilon * found.scale_
        a = np.abs(y)
        losses = np.where(a <= delta, a**2 / 2, delta * (a - delta / 2))
    else:
        losses = np.abs(y) + (y**2 / 2 if kind is E.L2L1Regressor else 0.0)
    assert found.dual_gap_ <= 1e-3 * (s @ losses) / s.sum() * (1 + 1e-9)


def test_zeros_certify_multinomial_models_that_are_nearly_perfect():
    """No loss is negative, so that P itself is a duality gap; and gaps are never less than rounding."""
    rng = np.random.default_rng(2)
    y = np.arange(30) % 3
    X = 50.0 * np.eye(3)[y] + rng.standard_normal((30, 3))
    for C in (1.0, 1e6, 1e12):
        found = E.LogisticRegression(C=C, fit_intercept=False, max_iter=1000).fit(X, y)
        assert 0 < found.dual_gap_ <= found.result_.value[0] * (1 + 1e-12)


def test_every_right_hand_side_keeps_its_own_best_point():
    """On contradictory equations residuals of row action rise and fall, each at another time."""
    rng = np.random.default_rng(3)
    for method in (linalg.acdm, linalg.nuacdm, linalg.kaczmarz):
        for seed in range(10):
            A = rng.standard_normal((12, 12)) * 10 ** rng.uniform(-2, 2, (12, 1))
            A[6:] = A[:6]
            b, x0 = rng.standard_normal((12, 3)), rng.standard_normal((12, 3))
            found = method(A, b, x0, rtol=1e-8, maxiter=30, random_state=seed, full_output=True)
            at_start = np.linalg.norm(b - A @ x0, axis=0)
            assert np.all(np.linalg.norm(b - A @ found.w, axis=0) <= at_start * (1 + 1e-12))


def test_zero_rows_count_in_the_residuals_of_all_right_hand_sides():
    """Those of the first are small enough to be met, those of the second are not."""
    A = np.array([[2.0, 1.0], [1.0, 3.0], [0.0, 0.0]])
    b = np.array([[1.0, 1.0], [1.0, 2.0], [1e-6, 1.0]])
    for method in (linalg.solve, linalg.nuacdm, linalg.kaczmarz):
        found = method(A, b, rtol=1e-3, random_state=0, full_output=True)
        assert found.status == "inconsistent"
        np.testing.assert_allclose(found.gap, np.linalg.norm(b - A @ found.w, axis=0), rtol=1e-9)


@pytest.mark.parametrize("method", ["rows", "columns", "cgls", "direct"])
@pytest.mark.parametrize("damp", [0.0, 1e-3])
def test_least_squares_are_no_worse_than_the_start(method, damp):
    rng = np.random.default_rng(4)
    A = rng.standard_normal((40, 20)) * 10 ** rng.uniform(-3, 3, 20)
    b = rng.standard_normal((40, 2))
    exact = np.linalg.lstsq(np.vstack([A, damp * np.eye(20)]), np.vstack([b, np.zeros((20, 2))]), rcond=None)[0]
    found = linalg.lstsq(A, b, damp, exact, method=method, rtol=1e-17, maxiter=3, random_state=0, full_output=True)

    def slope(x):
        return np.linalg.norm(A.T @ (b - A @ x) - damp**2 * x, axis=0)

    assert np.all(slope(found.w) <= slope(exact) * (1 + 1e-9) + 1e-13 * np.linalg.norm(A.T @ b, axis=0))
