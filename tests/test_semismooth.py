"""Newton steps over many features for losses with straight parts, and dual variables solved for at once."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import interruption

import coordwise as cw
from coordwise.fitting import runners
from coordwise.fitting import semismooth as module
from coordwise.fitting.fit import fit
from coordwise.fitting.model import LinearModel
from coordwise.fitting.semismooth import Semismooth, _Output, has_straight_parts
from coordwise.fitting.strategies import choose
from coordwise.results import Status

LOSSES = ["squared_hinge", "smooth_hinge", "huber", "squared_epsilon_insensitive"]


def model_of(loss="squared_hinge", lam=1e-6, *, n=500, d=1200, outputs=1, intercept=False, weighted=False, store=None):
    """Texts: few words are in most of them, and most words in few. Some are there twice, with both labels."""
    rng = np.random.default_rng(0)
    words = np.minimum((d * rng.random((n, 40)) ** 4).astype(int), d - 1)
    words[: n // 20] = words[n // 20 : 2 * (n // 20)]
    A = sp.csr_array((np.ones(40 * n), (np.repeat(np.arange(n), 40), words.ravel())), shape=(n, d))
    A.sum_duplicates()
    t = A @ rng.standard_normal((d, outputs)) / 3 + 0.5 + rng.standard_normal((n, outputs))
    t[: n // 20] = -t[n // 20 : 2 * (n // 20)]
    b = np.where(t > 0, 1.0, -1.0) if cw.losses.get_loss(loss).classification else t
    weights = rng.integers(0, 3, n).astype(float) if weighted else None
    problem = cw.ERM(A if store is None else store(A), b, loss=loss, lam=lam, sample_weight=weights)
    return LinearModel(problem, intercept)


@pytest.mark.parametrize("weighted", [False, True], ids=["equal", "weighted"])
@pytest.mark.parametrize("intercept", [False, True], ids=["none", "intercept"])
@pytest.mark.parametrize("loss", LOSSES)
def test_solutions_are_those_of_newtons_method(loss, intercept, weighted):
    model = model_of(loss, lam=1e-4, intercept=intercept, weighted=weighted, outputs=2)
    found = fit(model, tol=1e-9, strategy="semismooth", max_passes=5000)
    other = fit(model, tol=1e-12, strategy="newton")
    assert found.converged
    assert other.converged
    np.testing.assert_allclose(found.value, other.value, atol=1e-9 * model.scale.max())
    again = model.recertified(found.candidate)
    assert np.all(again.gap <= 1e-9 * model.scale)
    np.testing.assert_allclose(again.value, found.value, rtol=1e-12)
    assert np.all(np.abs(found.y.sum(0)) < 1e-9) or not intercept


@pytest.mark.parametrize("store", [sp.csr_array, sp.csc_array, sp.csr_array.toarray])
def test_any_storage(store):
    model = model_of(lam=1e-8, store=store)
    found = fit(model, tol=1e-5, strategy="semismooth")
    assert found.converged
    assert found.passes < 60


def test_weak_penalties_cost_no_more_than_others():
    passes = []
    for lam in (1e-8, 1e-9, 1e-10):
        model = model_of(lam=lam)
        found = fit(model, tol=1e-6, strategy="semismooth")
        assert found.converged
        passes.append(found.passes)
    assert max(passes) < 60
    slow = fit(model, tol=1e-6, strategy="dual", max_passes=300)
    assert not slow.converged


@pytest.mark.parametrize("intercept", [False, True], ids=["none", "intercept"])
@pytest.mark.parametrize("loss", LOSSES)
def test_dual_variables_are_those_of_a_newton_step(loss, intercept):
    model = model_of(loss, lam=1e-3, n=60, d=100, intercept=intercept, weighted=True)
    rng = np.random.default_rng(1)
    w = rng.standard_normal((100, 1))
    output = _Output(Semismooth(model, 0), model.from_primal(w, np.array([0.3]) if intercept else np.zeros(1)), 0)
    y = output.dual(otherwise=np.zeros(60))
    assert 0 < output.bends < 60
    derivative, h = output.terms.derivative(output.t)[:, 0], output.terms.second_derivative(output.t)[:, 0]
    ones = np.ones((60, int(intercept)))
    A = np.hstack([model.A.toarray(), ones])
    l2 = np.append(np.full(100, model.penalty.l2), np.zeros(int(intercept)))
    here = np.append(w[:, 0], np.full(int(intercept), 0.3))
    gradient = A.T @ derivative / model.total + l2 * here
    step = np.linalg.solve(A.T @ (h[:, None] * A) / model.total + np.diag(l2), gradient)
    np.testing.assert_allclose(y, derivative - h * (A @ step), atol=1e-8)
    if intercept:
        assert output.center == pytest.approx(here[-1] - step[-1], rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("intercept", [False, True], ids=["none", "intercept"])
def test_candidates_have_the_gaps_they_claim_and_values_fall(intercept):
    model = model_of(intercept=intercept, outputs=2)
    method = Semismooth(model, 0)
    found = list(method.round(None, 1e-12))
    assert len(found) == module.STEPS + 2
    assert method.passes > module.PASSES
    assert np.all(found[-1].gap < 0.01 * found[-2].gap)  # dual variables
    for before, after in itertools.pairwise(found):
        assert np.all(after.value <= before.value)
    for one in found:
        again = model.recertified(one)
        np.testing.assert_allclose(again.value, one.value, rtol=1e-9)
        np.testing.assert_allclose(again.gap, one.gap, rtol=1e-6, atol=1e-12)


def test_too_many_samples_to_solve_for(monkeypatch):
    monkeypatch.setattr(module, "MOST", 20)
    model = model_of(lam=1e-4)
    method = Semismooth(model, 0)
    assert len(list(method.round(None, 1e-9))) == 1
    assert method.hopeless
    assert method.passes == module.PASSES
    found = fit(model, tol=1e-6, strategy="semismooth", max_passes=3000)
    assert found.converged
    assert len(found.results) == 1


def test_rows_that_repeat_and_almost_no_penalty():
    rng = np.random.default_rng(0)
    A = np.repeat(rng.integers(-3, 4, (40, 60)).astype(float), 5, axis=0)
    b = rng.choice([-1.0, 1.0], 200)
    model = LinearModel(cw.ERM(A, b, loss="squared_hinge", lam=1e-18), False)
    found = fit(model, tol=1e-3, strategy="semismooth", max_passes=100)
    other = fit(model, tol=1e-3, strategy="newton")
    assert found.status in (Status.CONVERGED, Status.MAX_PASSES)
    assert found.value[0] <= other.value[0] + found.gap[0]
    assert np.isfinite(found.gap[0])


def test_no_loss_bends():
    model = LinearModel(cw.ERM(np.eye(30), np.ones(30), loss="huber", lam=1e-3), False)
    output = _Output(Semismooth(model, 0), model.from_primal(np.full((30, 1), 50.0)), 0)
    assert output.bends == 0
    before = output.value
    np.testing.assert_array_equal(output.dual(otherwise=np.full(30, 7.0)), 7.0)
    output.step()
    assert output.value < before


def test_an_output_without_weights_beside_others():
    model = LinearModel(
        cw.ERM(np.zeros((30, 8)), np.sign(np.arange(60.0).reshape(30, 2) - 29.5), "squared_hinge", lam=1e-9), True
    )
    found = fit(model, tol=1e-6, strategy="semismooth")
    assert found.converged
    np.testing.assert_array_equal(found.w, 0.0)


def test_outputs_that_begin_worse_than_zero_begin_at_zero(monkeypatch):
    model = model_of(lam=1e-9, outputs=2)
    whole = model.value
    monkeypatch.setattr(model, "value", lambda w, t: np.where(w.any(0) & [True, False], np.inf, whole(w, t)))
    begun = Semismooth(model, 0)._begun()
    assert not begun.w[:, 0].any()
    assert begun.w[:, 1].any()
    assert np.all(np.isfinite(begun.value))


def test_auto_takes_it_for_weak_penalties_and_many_features():
    assert choose(model_of(lam=1e-8))[0] == "semismooth"
    assert choose(model_of(lam=1e-2))[0] == "dual"
    assert choose(model_of("logistic", lam=1e-8))[0] == "dual"
    assert choose(model_of(lam=1e-8, d=200))[0] == "newton"
    assert not has_straight_parts(model_of("squared"))
    assert not has_straight_parts(model_of("hinge"))
    with pytest.raises(ValueError, match="smooth losses with straight parts and an l2 penalty"):
        fit(model_of("logistic"), tol=1e-3, strategy="semismooth")


def test_limits_and_callbacks():
    model = model_of()
    short = fit(model, tol=1e-12, strategy="semismooth", max_passes=3)
    assert short.status is Status.MAX_PASSES
    assert short.passes == module.PASSES  # no step after them
    several = fit(model_of(outputs=5), tol=1e-12, strategy="semismooth", max_passes=100)
    assert several.passes <= 130
    assert fit(model, tol=1e-12, strategy="semismooth", time_limit=0.0).status is Status.TIME_LIMIT
    seen = []

    def stop(progress):
        seen.append(float(progress.gap[0]))
        return len(seen) == 2

    found = fit(model, tol=1e-12, strategy="semismooth", callback=stop)
    assert found.status is Status.STOPPED
    assert len(seen) == 2
    assert found.gap[0] == pytest.approx(seen[-1], rel=1e-12)

    def interrupt(progress):
        raise KeyboardInterrupt

    found = interruption(fit, model, tol=1e-12, strategy="semismooth", callback=interrupt)
    assert found.status is Status.INTERRUPTED
    assert np.all(found.value < model.scale)


def test_a_start_is_used():
    model = model_of()
    whole = fit(model, tol=1e-5, strategy="semismooth")
    again = fit(model, tol=1e-5, strategy="semismooth", start=whole.candidate)
    assert again.passes == 0
    near = fit(model.penalised(cw.penalties.L2(1.1e-6)), tol=1e-5, strategy="semismooth", start=whole.candidate)
    assert near.converged
    assert near.passes < whole.passes


def test_rounds_go_on_where_one_is_not_enough(monkeypatch):
    monkeypatch.setattr(module, "STEPS", 1)
    monkeypatch.setattr(module, "PASSES", 1)
    monkeypatch.setattr(runners, "SHORT", 1)
    found = fit(model_of(lam=1e-7), tol=1e-9, strategy="semismooth", max_passes=5000)
    assert found.converged
    assert len(found.results) > 1
