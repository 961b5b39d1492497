"""Where Newton's method begins."""

import numpy as np
import pytest
from newton_cases import model_of, rare_features

import coordwise as cw
from coordwise.fitting.fit import fit
from coordwise.fitting.model import LinearModel
from coordwise.fitting.newton import newton
from coordwise.fitting.rough import BRIEF, CURVED, DENSE, EACH, ENOUGH, PART, WORTH, _shortened, rough_start, spread


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_a_rough_start_saves_steps(loss):
    model = model_of(loss)
    w, _, passes = rough_start(model, 0)
    assert passes == max(4000 // PART, (CURVED if loss == "logistic" else EACH) * 30) / 4000  # three entries per sample
    begin = model.from_primal(w)
    assert np.all(begin.value < model.scale)
    rough, zero = (len(list(newton(model, 1e-6, start=start))) for start in (begin, None))
    assert rough < zero
    assert fit(model, tol=1e-6, strategy="newton").passes == pytest.approx(rough - 1 + passes)


@pytest.mark.parametrize("kind", ["few entries", "dense", "many features"])
def test_a_rough_start_looks_at_some_of_very_many_samples(monkeypatch, kind):
    """Of samples with few entries, or few features in all, at one in PART, or at CURVED a feature."""
    monkeypatch.setattr("coordwise.fitting.rough.ENOUGH", 2500)
    monkeypatch.setattr("coordwise.fitting.rough.CURVED", 60)  # 100 would be all of 2500
    assert ENOUGH > 2500
    A, b = rare_features()
    assert A.nnz <= BRIEF * 4000
    assert A.shape[1] <= DENSE
    if kind != "few entries":
        A = A.toarray()
    if kind == "many features":
        A = np.hstack([A, np.zeros((4000, DENSE))])
    model = LinearModel(cw.ERM(A, b, loss="logistic", lam=1e-6), False)
    w, _, passes = rough_start(model, 0)
    assert passes == pytest.approx((2500 if kind == "many features" else max(2500 // PART, 60 * 30)) / 4000)
    assert np.all(model.from_primal(w).value < model.scale)
    other, *_ = rough_start(model, 1)
    assert np.any(w != other)


def test_a_rough_start_of_samples_without_weight():
    weights = np.zeros(4000)
    weights[:3] = 1.0  # hardly ever drawn
    for seed in range(5):
        w, _, passes = rough_start(model_of(weights=weights), seed)
        assert (w is None and passes == 0) or np.all(np.isfinite(w))
    assert fit(model_of(weights=weights), tol=1e-6, strategy="newton").converged


def test_samples_that_are_too_small_without_the_others_are_no_start():
    weights = np.full(4000, 1e-150)
    weights[7] = 1.0
    for seed in range(5):
        w, _, passes = rough_start(model_of(weights=weights), seed)
        assert (w is None and passes == 0) or np.all(np.isfinite(w))
    assert fit(model_of(weights=weights), tol=1e-6, strategy="newton").converged


def test_samples_are_drawn_all_over_the_data():
    assert np.array_equal(spread(10, 10, 0), np.arange(10))
    for n, count in ((10, 3), (1000, 999), (50_000, 12_345), (10**9, 5000)):
        which = spread(n, count, 1)
        ends = np.arange(count + 1) * n // count
        assert np.all((ends[:-1] <= which) & (which < ends[1:]))
    assert np.any(spread(1000, 100, 0) != spread(1000, 100, 1))


def test_a_start_that_is_too_long_is_made_shorter():
    model = model_of(lam=1e-3)
    w = 5 * model.from_primal(next(iter(newton(model, 1e-8, w=rough_start(model, 0)[0]))).w).w
    shorter, t = _shortened(model, w)
    np.testing.assert_allclose(t, model.scores(shorter, np.zeros(1)), rtol=1e-12, atol=1e-12)
    assert model.from_primal(shorter).value < model.from_primal(w).value
    np.testing.assert_array_equal(_shortened(model, 0.01 * w)[0], 0.01 * w)  # P falls all the way
    np.testing.assert_array_equal(_shortened(model, -w)[0], -w)  # or from the start rises


def test_few_samples_begin_at_zero():
    model = model_of(n=WORTH - 1)
    assert rough_start(model, 0) == (None, None, 0.0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("lam", [0.3, 0.01])
def test_steps_on_most_samples_need_no_copy_of_these(monkeypatch, lam, weighted):
    """And lead as far: what counts is l2 times the weight of the samples that steps are taken on."""
    rng = np.random.default_rng(0)
    n = 7400  # the share is 0.41
    model = model_of(lam=lam, weights=rng.uniform(0.5, 2, n) if weighted else None, n=n)
    values = []
    for most in (0.0, 2.0):
        monkeypatch.setattr("coordwise.fitting.rough.MOST", most)
        with monkeypatch.context() as patch:
            if most == 0:
                patch.setattr(LinearModel, "sampled", lambda self, which: pytest.fail("a copy"))
            starts = [rough_start(model, seed) for seed in range(8)]
        assert {start.passes for start in starts} == {CURVED * 30 / n}
        values.append([model.value(start.w, start.t)[0] for start in starts])
    without, copied = (np.array(value) / model.scale for value in values)
    best = fit(model, tol=1e-6).value / model.scale
    assert np.all(copied < 1)
    assert np.mean(without - best) == pytest.approx(np.mean(copied - best), rel=0.3)


def test_long_samples_of_which_some_are_looked_at_begin_with_their_share_of_the_penalty(monkeypatch):
    """With all of it, w would be shorter than what it is to come to by the share."""
    monkeypatch.setattr("coordwise.fitting.rough.ENOUGH", 2000)
    rng = np.random.default_rng(0)
    A = rng.standard_normal((8000, DENSE + 36))
    b = np.where(A @ rng.standard_normal(DENSE + 36) + rng.standard_normal(8000) > 0, 1.0, -1.0)
    model = LinearModel(cw.ERM(A, b, loss="logistic", lam=1.0), False)
    start = rough_start(model, 0)
    assert start.passes == 0.25
    best = fit(model, tol=1e-6)
    assert np.linalg.norm(start.w) == pytest.approx(np.linalg.norm(best.w), rel=0.3)
