"""Newton's method for few features: where it begins, how steps are damped, and the Gram matrices it needs."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

import coordwise as cw
from coordwise.fitting import newton as module
from coordwise.fitting.blas import one_blas_thread
from coordwise.fitting.fit import fit
from coordwise.fitting.model import LinearModel
from coordwise.fitting.newton import newton
from coordwise.fitting.rough import ENOUGH, PASSES, WORTH, rough_start
from coordwise.fitting.search import stretched
from coordwise.kernels import Terms
from coordwise.losses import LOSSES, get_loss

SMOOTH = [name for name, loss in LOSSES.items() if loss().gamma > 0]


def rare_features(n=4000, d=30, seed=0):
    """Binary features, most of them rare, and few positive labels: Newton steps from 0 are short."""
    rng = np.random.default_rng(seed)
    A = sp.random_array((n, d), density=0.1, rng=rng, format="csr")
    A.data[:] = 1.0
    b = np.where(A @ rng.standard_normal(d) - 1.5 + 0.3 * rng.standard_normal(n) > 0, 1.0, -1.0)
    return A, b


def model_of(loss="logistic", lam=1e-6, intercept=False, weights=None, **shape):
    A, b = rare_features(**shape)
    return LinearModel(cw.ERM(A, b, loss=loss, lam=lam, sample_weight=weights), intercept)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", SMOOTH)
def test_the_gap_can_be_recomputed(loss, intercept):
    model = model_of(loss, lam=1e-4, intercept=intercept)
    found = fit(model, tol=1e-9, strategy="newton")
    assert found.converged
    again = model.recertified(found.candidate)
    assert np.all(again.gap <= 1e-9 * model.scale)
    np.testing.assert_allclose(again.value, found.value, rtol=1e-14)
    np.testing.assert_array_equal(again.y, found.y)  # as they are, feasible
    np.testing.assert_allclose(again.gap, found.gap, rtol=0.1, atol=1e-14)
    if not intercept:
        assert model.problem.gap(found.w[:, 0], found.y[:, 0]) <= 1e-9 * model.scale[0]


@pytest.mark.parametrize("intercept", [False, True])
def test_steps_lead_to_dual_points_that_weak_penalties_do_not_spoil(intercept):
    model = model_of(lam=1e-9, intercept=intercept)
    best = fit(model, tol=1e-12, strategy="newton").value[0]
    found = fit(model, tol=1e-3, strategy="newton")
    assert found.converged
    excess = (found.value[0] - best) / model.scale[0]
    derivatives = model.from_primal(found.w, found.c)
    assert derivatives.gap[0] > 10 * found.gap[0]
    assert found.gap[0] / model.scale[0] >= excess


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", SMOOTH)
def test_every_candidate_has_the_gap_it_claims_and_values_fall(loss, intercept):
    model = model_of(loss, lam=1e-5, intercept=intercept)
    w, _ = rough_start(model, 0)
    found = list(newton(model, 1e-9, w=w))
    assert found[0].value <= model.scale
    for before, after in itertools.pairwise(found):
        assert after.value[0] <= before.value[0] * (1 + 1e-12)
        assert after.gap[0] <= before.gap[0]
    for candidate in found:
        again = model.recertified(candidate)
        np.testing.assert_allclose(again.value, candidate.value, rtol=1e-9)
        np.testing.assert_allclose(again.gap, candidate.gap, rtol=1e-6, atol=1e-13)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_a_rough_start_saves_steps(loss):
    model = model_of(loss)
    w, passes = rough_start(model, 0)
    assert passes == PASSES
    begin = model.from_primal(w)
    assert np.all(begin.value < model.scale)
    rough, zero = (len(list(newton(model, 1e-6, start=start))) for start in (begin, None))
    assert rough < zero
    assert fit(model, tol=1e-6, strategy="newton").passes == pytest.approx(rough - 1 + PASSES)


def test_a_rough_start_looks_at_some_of_very_many_samples(monkeypatch):
    monkeypatch.setattr("coordwise.fitting.rough.ENOUGH", 2500)
    assert ENOUGH > 2500
    model = model_of()
    w, passes = rough_start(model, 0)
    assert passes == pytest.approx(PASSES * 2500 / 4000)
    assert np.all(model.from_primal(w).value < model.scale)
    other, _ = rough_start(model, 1)
    assert np.any(w != other)
    weights = np.zeros(4000)
    weights[:3] = 1.0  # hardly ever drawn
    w, _ = rough_start(model_of(weights=weights), 0)
    assert np.all(np.isfinite(w))


def test_few_samples_begin_at_zero():
    model = model_of(n=WORTH - 1)
    assert rough_start(model, 0) == (None, 0.0)


def test_a_start_that_is_worse_than_zero_is_not_used():
    model = model_of()
    far = model.from_primal(1e3 * np.ones((30, 1)))
    assert far.value[0] > model.scale[0]
    found = fit(model, tol=1e-8, strategy="newton", start=far)
    assert found.converged
    assert found.iterations < 30


def test_values_fall_and_steps_that_do_not_descend_are_damped(monkeypatch):
    model = model_of(lam=1e-9)
    damping = []
    solve = module._Output._solve

    def watched(self, hessian, gradient, damped):
        damping.append(damped)
        return solve(self, hessian, gradient, damped)

    monkeypatch.setattr(module._Output, "_solve", watched)
    monkeypatch.setattr(module, "WORSE", np.inf)
    far = model.from_primal(np.random.default_rng(0).standard_normal((30, 1)) * 5)
    values = [found.value[0] for found in newton(model, 1e-9, start=far)]
    assert np.all(np.diff(values) <= 1e-12)
    assert max(damping) > 0
    assert damping[-1] == 0


def test_steps_along_exponential_tails_are_stretched(monkeypatch):
    rng = np.random.default_rng(5)
    A = rng.standard_normal((3000, 10))
    b = np.sign(A @ rng.standard_normal(10))  # separable: with l2 -> 0 all losses become exponentials
    model = LinearModel(cw.ERM(A, b, loss="logistic", lam=1e-9), False)
    stretching = len(list(newton(model, 1e-8)))
    monkeypatch.setattr(module, "stretched", lambda fall, first: 1.0)
    assert stretching < 0.7 * len(list(newton(model, 1e-8)))


def test_a_line_is_followed_while_it_falls_and_not_beyond_its_minimum():
    assert stretched(lambda x: np.exp(-x), 1.0) == 4  # e^-4 is less than a tenth
    assert stretched(lambda x: 1 - x, 1.0) == 1  # a parabola: a full step is right
    assert 1 < stretched(lambda x: 1 - x / 1.5, 1.0) == pytest.approx(1.5)
    assert stretched(lambda x: 1.0, 1.0) == 64  # a straight line has no minimum


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("weighted", [False, True])
def test_compiled_curvatures_are_those_of_the_loss(loss, weighted):
    rng = np.random.default_rng(0)
    phi = get_loss(loss)
    t = 3 * rng.standard_normal((500, 2))
    b = rng.choice([-1.0, 1.0], (500, 2)) if phi.classification else rng.standard_normal((500, 2))
    s = rng.integers(0, 3, 500).astype(float) if weighted else None
    terms = Terms(phi.shape, 0.25, b, s)
    expected = 0.25 * phi.second_derivative(t, b, 1.0 if s is None else s[:, None])
    np.testing.assert_allclose(terms.second_derivative(t), expected, rtol=1e-9)


def test_singular_hessians_have_a_direction():
    rng = np.random.default_rng(0)
    B = rng.standard_normal((5, 9))
    H = B.T @ B
    g = H @ rng.standard_normal(9)
    found = module.direction(H, g)
    np.testing.assert_allclose(H @ found, g, atol=1e-9)


def test_linear_algebra_with_one_thread_comes_back():
    threadpoolctl = pytest.importorskip("threadpoolctl")

    def counts():
        return [pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"]

    with threadpoolctl.threadpool_limits(2, "blas"):
        before = counts()
        with one_blas_thread():
            assert all(count == 1 for count in counts())
        assert counts() == before
