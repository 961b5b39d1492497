"""Certified minima, from the problem alone and against other solvers."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import unequal_rows
from experiment_cases import Watch

import coordwise as cw
from coordwise.experiments import charts, minima
from coordwise.experiments.units import Interrupted

SHAPES = {"tall": (120, 12), "wide": (20, 45), "square": (30, 30)}


def problem_of(shape, loss, seed=0, lam=0.05):
    n, d = SHAPES[shape]
    A = sp.csr_array(unequal_rows(n, d, seed, density=0.5, spread=1.0))
    b = np.random.default_rng(seed + 1).standard_normal(n)
    return cw.ERM(A, b, loss=loss, penalty="l2", lam=lam)


def check_certificate(found, y, problem, tol):
    """What `Certified` says, from the problem alone; returns the weights."""
    w = minima._newton(problem, tol, Watch())[0] if found.how.startswith("Newton") else problem.primal_point(y)
    rounding = 1e-14 * problem.value(np.zeros(problem.n_features))
    assert 0 < found.gap <= tol * 1e14 * rounding
    assert found.primal == pytest.approx(problem.value(w), abs=rounding)
    assert found.dual == pytest.approx(problem.dual_value(y), abs=rounding)
    assert found.gap == pytest.approx(problem.gap(w, y), abs=rounding)
    return w


@pytest.mark.parametrize("shape", SHAPES)
def test_minimum_of_ridge_regression_against_a_direct_solve(shape):
    problem = problem_of(shape, "squared")
    A, b, n = problem.A.toarray(), problem.b[:, 0], problem.n_samples
    found, y = minima.certified_minimum(problem.dual(), 1e-12, Watch())
    best = np.linalg.solve(A.T @ A / n + 0.05 * np.eye(problem.n_features), A.T @ b / n)
    least = np.mean((A @ best - b) ** 2) / 2 + 0.05 / 2 * best @ best
    w = check_certificate(found, y, problem, 1e-12)
    np.testing.assert_allclose(w, best, atol=1e-5)
    assert found.primal == pytest.approx(least, rel=1e-11)
    assert found.dual == pytest.approx(-least, rel=1e-11)
    assert found.how.startswith("Newton" if shape == "tall" else "nu_acdm")


@pytest.mark.parametrize(
    ("lam", "shape"),
    [(0.5, "tall"), pytest.param(1e-3, "tall"), *itertools.product([0.5, 1e-3], ["wide", "square"])],
)
def test_minimum_of_l2l1_regression_against_solve(shape, lam):
    problem = problem_of(shape, "l2l1", lam=lam)
    found, y = minima.certified_minimum(problem.dual(), 1e-9, Watch())
    check_certificate(found, y, problem, 1e-9)
    other = cw.solve(problem.dual(), tol=1e-10, max_passes=20_000, random_state=5)
    assert other.converged
    assert abs(found.dual - other.value) <= found.gap + other.gap
    assert abs(found.primal - other.primal) <= found.gap + other.gap
    assert found.how.startswith("Newton") == (shape == "tall")


def test_newton_certifies_far_below_what_is_drawn():
    problem = problem_of("tall", "l2l1", lam=1e-4)
    found, _ = minima.certified_minimum(problem.dual(), 1e-12, Watch())
    assert found.how.startswith("Newton")
    assert found.gap <= 1e-11 * problem.value(np.zeros(12))


@pytest.mark.parametrize("shape", ["tall", "wide"])  # Newton's method, and `solve`
@pytest.mark.parametrize("loss", ["squared", "l2l1"])
def test_a_minimum_is_given_up_when_asked(loss, shape):
    with pytest.raises(Interrupted):
        minima.certified_minimum(problem_of(shape, loss).dual(), 1e-9, Watch(stopped=True))


@pytest.mark.parametrize("shape", SHAPES)
def test_minimum_of_the_smoothed_lasso(shape):
    n, d = SHAPES[shape]
    A = sp.csr_array(unequal_rows(n, d, 3, density=0.5, spread=1.0))
    b = np.random.default_rng(4).standard_normal(n)
    lasso = charts._lasso(SimpleNamespace(A=A, b=b), 0.02)
    l1 = np.abs(A.T @ b).max() / n / 10
    smoothed = cw.ERM(A, b, loss="squared", penalty="elastic_net", lam=l1 + 0.02, l1_ratio=l1 / (l1 + 0.02))
    found, y = minima.certified_minimum(lasso, 1e-11, Watch())
    check_certificate(found, y, smoothed, 1e-11)
    other = cw.solve(smoothed.primal(), tol=1e-12, max_passes=20_000)
    assert found.primal == pytest.approx(float(other.value), abs=2e-11 * float(other.scale))
    assert lasso.smoothing_error == pytest.approx(0.01 * (np.mean(b**2) / 2 / l1) ** 2)
