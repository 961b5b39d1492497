"""Elastic nets: steps for the smooth part before those over all features."""

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import interruption

import coordwise as cw
from coordwise.estimators import ElasticNet
from coordwise.fitting.fit import fit
from coordwise.fitting.krylov import LOOK, Run
from coordwise.fitting.model import LinearModel
from coordwise.fitting.smooth_part import smooth_part
from coordwise.fitting.strategies import choose, may_be_smooth
from coordwise.results import Status

N, D = 400, 1500


def data(n=N, d=D, outputs=1):
    rng = np.random.default_rng(0)
    A = sp.random_array((n, d), density=0.03, rng=rng, format="csr")
    A.data = 1 + rng.random(A.nnz)
    A = sp.csr_array(A.multiply(np.logspace(0, -1, d)))
    w = rng.standard_normal((d, outputs)) * (rng.random((d, outputs)) < 0.2)
    b = A @ w
    return A, b + 0.1 * b.std() * rng.standard_normal(b.shape)


def model_of(l1=1e-6, l2=1e-6, *, outputs=1, intercept=False, weighted=False, positive=False, loss="squared", n=N, d=D):
    A, b = data(n, d, outputs)
    weights = np.random.default_rng(1).integers(0, 3, n).astype(float) if weighted else None
    penalty = cw.penalties.ElasticNet(l1, l2, positive=positive)
    return LinearModel(cw.ERM(A, b, loss=loss, penalty=penalty, sample_weight=weights), intercept)


def recomputed(model, w, c, y):
    """P(w, c) + D(y), by their definitions."""
    A, s = model.A.toarray(), np.ones(model.n) if model.weights is None else model.weights
    l1, l2 = model.penalty.l1, model.penalty.l2
    t = A @ w + c
    P = (s @ (t - model.b) ** 2) / 2 / s.sum() + l1 * np.abs(w).sum(0) + l2 / 2 * (w**2).sum(0)
    v = np.maximum(np.abs(A.T @ y) / s.sum() - l1, 0.0)
    quotient = np.divide(y**2, s[:, None], out=np.zeros_like(y), where=s[:, None] > 0)
    D = (quotient / 2 + y * model.b).sum(0) / s.sum() + (v**2).sum(0) / 2 / l2
    return P + D


@pytest.mark.parametrize("weighted", [False, True], ids=["equal", "weighted"])
@pytest.mark.parametrize("intercept", [False, True], ids=["none", "intercept"])
@pytest.mark.parametrize("outputs", [1, 3])
def test_the_gap_is_at_most_that_of_ridge_regression_and_the_l1_part(weighted, intercept, outputs):
    model = model_of(1e-3, 1e-3, weighted=weighted, intercept=intercept, outputs=outputs)
    run = Run(model)
    for _ in range(30):
        run.step()
        w, y = run.weights, run.dual_variables
        c = model.best_intercept(model.scores(w, np.zeros(outputs)))
        if intercept:
            np.testing.assert_allclose(y.sum(0), 0, atol=1e-10 * np.abs(y).max())
        heavy = model.penalty.l1 * np.abs(w).sum(0)
        gap = recomputed(model, w, c, y)
        assert np.all(gap >= -1e-12 * model.scale)
        assert np.all(gap <= run.gap + heavy + 1e-12 * model.scale)
        np.testing.assert_allclose(run.value + heavy, model.value(w, model.scores(w, c)), rtol=1e-9)


@pytest.mark.parametrize("weighted", [False, True], ids=["equal", "weighted"])
@pytest.mark.parametrize("intercept", [False, True], ids=["none", "intercept"])
@pytest.mark.parametrize("outputs", [1, 2])
def test_weak_penalties_are_done_by_it(weighted, intercept, outputs):
    model = model_of(1e-6, 1e-5, weighted=weighted, intercept=intercept, outputs=outputs)
    found = fit(model, tol=1e-2)
    assert found.strategy.startswith("krylov: ")
    assert "beside which the l1 penalty is small" in found.strategy
    assert found.converged
    assert found.passes == found.iterations > 0
    gap = recomputed(model, found.w, found.c, found.y)
    np.testing.assert_allclose(found.gap, gap, rtol=1e-6, atol=1e-12)
    assert np.all(gap <= 1e-2 * model.scale)


@pytest.mark.parametrize("intercept", [False, True], ids=["none", "intercept"])
@pytest.mark.parametrize("l1", [1e-5, 1e-3, 1e-2])
def test_steps_over_the_features_go_on_from_there(intercept, l1):
    model = model_of(l1, l1, intercept=intercept)
    assert may_be_smooth(model, 1e-10)
    found = fit(model, tol=1e-10, max_passes=1e4)
    name = "working_set" if intercept else "primal"
    assert found.strategy.startswith(f"{name}: coordinates are all features, after ")
    assert found.converged
    assert np.all(recomputed(model, found.w, found.c, found.y) <= 1e-10 * model.scale)
    other = fit(model, tol=1e-12, strategy=name, max_passes=1e4)
    assert "after" not in other.strategy
    np.testing.assert_allclose(found.value, other.value, rtol=0, atol=2e-10 * model.scale.max())


def test_it_ends_where_p_falls_too_little_and_the_tolerance_is_out_of_reach():
    model, steps = model_of(1e-3, 1e-3), []
    rounds = list(smooth_part(model, 1e-8, steps=steps))
    assert len(rounds) == len(steps) + 1
    values = np.array([found.value[0] for found in rounds])
    assert np.all(np.diff(values) <= 0)
    assert 0 < sum(steps) <= 2 * LOOK
    best = fit(model, tol=1e-10, strategy="primal", max_passes=1e4)
    assert values[-1] - best.value[0] < 0.3 * (values[0] - best.value[0])
    run, lowest = Run(model), values[0]  # one step less, and each step would have taken off enough
    for _ in range(sum(steps) - 1):
        run.step()
        value = run.value[0] + 1e-3 * np.abs(run.weights).sum()
        assert value < 0.95 * lowest
        lowest = value


def test_a_certificate_that_is_far_away_is_left_to_the_features(monkeypatch):
    model, steps, all_steps = model_of(1e-12, 1e-9), [], []  # an l1 part that is never in the way
    *_, last = smooth_part(model, 1e-9, steps=all_steps)
    assert np.all(last.gap <= 1e-9 * model.scale)
    monkeypatch.setattr("coordwise.fitting.smooth_part.LONG", 10)
    *_, last = smooth_part(model, 1e-9, steps=steps)
    assert np.all(last.gap > 1e-9 * model.scale)
    assert sum(steps) < sum(all_steps)


@pytest.mark.parametrize(
    "changed",
    [{"l1": 0.0}, {"l2": 0.0}, {"positive": True}, {"d": 900}, {"l1": 0.5}, {"l1": 1e-2, "l2": 10.0}],
    ids=["ridge", "lasso", "positive", "few features", "few in use", "easy"],
)
def test_where_it_is_not_asked_for(changed):
    model = model_of(**{"l1": 1e-5, "l2": 1e-5} | changed)
    assert not may_be_smooth(model, 1e-4) or choose(model, 1e-4)[0] not in ("primal", "working_set")
    assert "smooth part" not in fit(model, tol=1e-2).strategy


@pytest.mark.parametrize("intercept", [False, True], ids=["none", "intercept"])
@pytest.mark.parametrize("tol", [0.0, 1e-3])
def test_outputs_without_anything_to_explain(intercept, tol):
    A, b = data(outputs=2)
    b[:, 1] = 0.0
    model = LinearModel(cw.ERM(A, b, penalty=cw.penalties.ElasticNet(1e-6, 1e-5)), intercept)
    *_, last = smooth_part(model, tol, steps=[], most=60)
    assert last.gap[0] < 0.1 * model.scale[0]
    assert last.gap[1] == 0
    np.testing.assert_array_equal(last.w[:, 1], 0)


def test_a_start_is_kept():
    model = model_of(1e-5, 1e-5)
    found = fit(model, tol=1e-6, max_passes=1e4)
    again = fit(model, tol=1e-6, start=found.candidate)
    assert "smooth part" not in again.strategy
    assert again.passes <= 3 < found.passes


def test_limits_on_passes_are_kept():
    model = model_of(1e-5, 1e-5)
    for most in (1, 4, 30):
        found = fit(model, tol=1e-12, max_passes=most)
        assert found.status is Status.MAX_PASSES
        assert found.passes <= most + 1
        assert found.value[0] < 0.6 * model.scale[0]
    assert fit(model, tol=1e-12, max_passes=1).strategy == "krylov: 1 steps for the smooth part"


def test_no_time_leaves_the_start():
    model = model_of(1e-5, 1e-5)
    found = fit(model, tol=1e-12, time_limit=0.0)
    assert found.status is Status.TIME_LIMIT
    assert found.passes == 0


@pytest.mark.parametrize("how", ["stop", "interrupt"])
@pytest.mark.parametrize("when", [0, 3])
def test_a_callback_ends_it_and_the_best_is_kept(how, when):
    seen = []

    def callback(progress):
        seen.append((progress.passes, float(progress.value[0])))
        if len(seen) > when:
            if how == "interrupt":
                raise KeyboardInterrupt
            return True
        return False

    model = model_of(1e-5, 1e-5)
    ended = interruption if how == "interrupt" else lambda call, *args, **options: call(*args, **options)
    found = ended(fit, model, tol=1e-12, callback=callback)
    assert found.status is (Status.INTERRUPTED if how == "interrupt" else Status.STOPPED)
    passes = [p for p, _ in seen]
    assert found.value[0] <= min(value for _, value in seen) * (1 + 1e-12)
    assert passes[0] > 0
    assert np.all(np.diff(passes) >= 0)


@pytest.mark.parametrize("intercept", [False, True], ids=["none", "intercept"])
def test_an_interrupt_between_the_two_keeps_the_first(intercept, monkeypatch):
    model, steps = model_of(1e-5, 1e-5, intercept=intercept), []
    *_, first = smooth_part(model, 1e-12, steps=steps)

    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(f"coordwise.fitting.trials.run_{'working_set' if intercept else 'primal'}", interrupted)
    found = interruption(fit, model, tol=1e-12)
    assert found.status is Status.INTERRUPTED
    assert found.passes == sum(steps)
    np.testing.assert_array_equal(found.w, first.w)


def test_the_last_step_is_kept_where_one_is_enough():
    """Two singular values, one of which is 0: conjugate gradients end after one step."""
    d = 1500
    A = sp.csr_array(sp.vstack([sp.eye_array(d)] * 2))
    b = np.tile(np.random.default_rng(0).standard_normal(d), 2)[:, None]
    model, steps = LinearModel(cw.ERM(A, b, penalty=cw.penalties.ElasticNet(1e-5, 1e-5)), False), []
    *_, last = smooth_part(model, 1e-6, steps=steps)
    assert sum(steps) in (1, 2)  # rounding may ask for another
    assert last.value[0] < 0.1 * model.scale[0]


@pytest.mark.parametrize("size", [1e-38, 1e38])
def test_data_of_any_size(size):
    A, b = data()
    penalty = cw.penalties.ElasticNet(1e-5 * size, 1e-5 * size**2)
    found = fit(LinearModel(cw.ERM(A * size, b, penalty=penalty), False), tol=1e-3)
    plain = fit(LinearModel(cw.ERM(A, b, penalty=cw.penalties.ElasticNet(1e-5, 1e-5)), False), tol=1e-3)
    assert "smooth part" in found.strategy
    np.testing.assert_allclose(found.w * size, plain.w, rtol=1e-6, atol=1e-6)


def test_coefficients_are_those_of_scikit_learn():
    linear_model = pytest.importorskip("sklearn.linear_model")
    A, b = data()
    options = {"alpha": 1e-2, "l1_ratio": 0.3, "max_iter": 100_000}
    ours = ElasticNet(**options, tol=2e-12).fit(A, b[:, 0])
    assert "smooth part" in ours.strategy_
    peer = linear_model.ElasticNet(**options, tol=1e-12).fit(A, b[:, 0])
    away = np.linalg.norm(ours.coef_ - peer.coef_)
    assert away <= np.sqrt(2 * ours.dual_gap_ / 7e-3) + 1e-7  # P is strongly convex, by its l2 part
    assert away < 1e-5
    assert ours.intercept_ == pytest.approx(peer.intercept_, abs=1e-5)
