"""The interior-point method: its pieces, its path, its solutions, and when it is chosen."""

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import interruption

import coordwise as cw
from coordwise.fitting import interior as module
from coordwise.fitting.fit import fit
from coordwise.fitting.interior import central, made_of_pieces
from coordwise.fitting.model import LinearModel
from coordwise.fitting.strategies import choose
from coordwise.fitting.trial import LATER, SOON, Trial
from coordwise.losses import LOSSES, get_loss
from coordwise.recording import Progress
from coordwise.results import Status

KINKED = [name for name, loss in LOSSES.items() if loss().gamma == 0]


def model_of(loss, l2=1e-3, *, n=300, d=12, outputs=1, intercept=False, weighted=False, sparse=False, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) * np.logspace(-2, 2, d)
    b = A / np.logspace(-2, 2, d) @ rng.standard_normal((d, outputs)) + rng.standard_normal((n, outputs)) + 1
    b = np.sign(b) if get_loss(loss).classification else b
    weights = rng.integers(0, 3, n).astype(float) if weighted else None
    A = sp.csr_array(A) if sparse else A
    return LinearModel(cw.ERM(A, b, loss=loss, penalty=cw.penalties.L2(l2), sample_weight=weights), intercept)


@pytest.mark.parametrize("loss", list(LOSSES))
def test_losses_with_kinks_are_made_of_pieces(loss):
    assert made_of_pieces(get_loss(loss).shape) == (loss in KINKED)


@pytest.mark.parametrize("loss", KINKED)
def test_the_pieces_are_the_loss(loss):
    rng = np.random.default_rng(1)
    t, b = 3 * rng.standard_normal(200), np.sign(rng.standard_normal(200))
    pieces = module._Pieces.of(get_loss(loss).shape, b)
    r = t[:, None] - pieces.centers
    value = np.maximum(pieces.lower * r, pieces.upper * r).sum(1) + pieces.quad / 2 * (t - b) ** 2
    np.testing.assert_allclose(value, get_loss(loss).value(t, b), atol=1e-12)


@pytest.mark.parametrize("mu", [1e-12, 1e-3, 1.0, 1e6])
def test_the_path_has_equal_products(mu):
    r = np.concatenate([-np.logspace(-8, 8, 30), [0.0], np.logspace(-8, 8, 30)])
    a, e = central(r, np.full(61, 2.0), mu)
    assert np.all((a > 0) & (e > 0))
    np.testing.assert_allclose(a + e, 2.0, rtol=1e-12)
    np.testing.assert_allclose(mu / e - mu / a, r, rtol=1e-6, atol=1e-9 * max(mu, 1.0))


@pytest.mark.parametrize("loss", KINKED)
@pytest.mark.parametrize("weighted", [False, True], ids=["equal", "weighted"])
@pytest.mark.parametrize("intercept", [False, True], ids=["none", "intercept"])
def test_it_converges_in_few_steps_whatever_the_scales(loss, weighted, intercept):
    model = model_of(loss, 1e-6, outputs=2, intercept=intercept, weighted=weighted)
    found = fit(model, tol=1e-9, strategy="interior")
    assert found.converged
    assert found.iterations <= 40
    assert not found.results  # no coordinate descent was needed
    # nothing near it is better
    rng = np.random.default_rng(2)
    for size in (1e-3, 1e-1, 10.0):
        w = found.w + size * rng.standard_normal(found.w.shape) / np.logspace(-2, 2, model.d)[:, None]
        c = found.c + size * rng.standard_normal(2) * intercept
        assert np.all(model.value(w, model.scores(w, c)) >= found.value - found.gap)


@pytest.mark.parametrize("loss", KINKED)
def test_sparse_and_dense_rows_give_the_same(loss):
    dense, sparse = (fit(model_of(loss, sparse=s), tol=1e-10, strategy="interior") for s in (False, True))
    np.testing.assert_allclose(dense.value, sparse.value, rtol=1e-9)
    np.testing.assert_allclose(dense.w, sparse.w, rtol=1e-3, atol=1e-4 * np.abs(dense.w).max())


def test_where_rounding_ends_it_steps_over_the_samples_go_on(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 0)  # as if the first step had not helped
    found = fit(model_of("hinge", 10.0, n=60, d=4), tol=1e-6, strategy="interior", max_passes=400)
    assert found.converged
    assert len(found.results) == 1
    assert found.passes == found.results[0].passes  # n is too small for a rough start


def test_limits_and_callbacks():
    model = model_of("absolute")
    few = fit(model, tol=1e-10, strategy="interior", max_passes=3)
    assert few.status is Status.MAX_PASSES
    assert few.iterations == 3
    assert np.all(few.value <= model.scale)
    assert fit(model, tol=1e-10, strategy="interior", time_limit=0.0).status is Status.TIME_LIMIT
    seen = []
    stopped = fit(model, tol=1e-10, strategy="interior", callback=lambda p: seen.append(p.gap) or len(seen) == 4)
    assert stopped.status is Status.STOPPED
    assert len(seen) == 4
    assert np.all(np.diff(np.array(seen)[:, 0]) <= 0)  # the best so far

    def interrupt(progress):
        raise KeyboardInterrupt

    found = interruption(fit, model, tol=1e-10, strategy="interior", callback=interrupt)
    assert found.status is Status.INTERRUPTED


def test_a_start_that_is_good_enough_is_returned():
    model = model_of("hinge", intercept=True)
    first = fit(model, tol=1e-8, strategy="interior")
    again = fit(model, tol=1e-7, strategy="interior", start=first.candidate)
    assert again.converged
    assert again.iterations == 0


@pytest.mark.parametrize("case", ["one label", "zero rows", "zero column", "constant column", "one sample", "zeros"])
@pytest.mark.parametrize("loss", ["hinge", "absolute", "l2l1"])
@pytest.mark.parametrize("intercept", [False, True], ids=["none", "intercept"])
def test_awkward_data(case, loss, intercept):
    rng = np.random.default_rng(3)
    A, b = rng.standard_normal((50, 3)), np.sign(rng.standard_normal(50))
    if case == "one label":
        b[:] = 1.0
    elif case == "zero rows":
        A[::2] = 0
    elif case == "zero column":
        A[:, 1] = 0
    elif case == "constant column":
        A[:, 1] = 5
    elif case == "one sample":
        A, b = A[:1], b[:1]
    else:
        A[:] = 0
    model = LinearModel(cw.ERM(A, b, loss=loss, penalty=cw.penalties.L2(1e-2)), intercept)
    found = fit(model, tol=1e-8, strategy="interior")
    assert found.converged
    other = fit(model, tol=1e-8, strategy="dual", max_passes=100_000)
    np.testing.assert_allclose(found.value, other.value, atol=2e-8 * float(model.scale[0]))


def test_it_is_chosen_for_regression_and_for_hard_classification():
    assert choose(model_of("absolute"))[0] == "interior"
    assert choose(model_of("l2l1"))[0] == "interior"
    assert choose(model_of("l2l1", 1e6))[0] == "dual"  # a strong penalty
    assert choose(model_of("hinge", 1e-2))[0] == "dual"
    assert choose(model_of("hinge", 1e-9))[0] == "interior"
    assert choose(model_of("absolute", n=5, d=1001))[0] == "dual"


def test_a_hinge_that_falls_too_slowly_over_the_samples_is_left():
    model = model_of("hinge", 0.2, n=2000, d=40)
    found = fit(model, tol=1e-9)
    assert found.converged
    assert found.strategy.startswith("interior: over the samples the gap was")
    assert found.passes > SOON
    easy = fit(model_of("hinge", 1e5, n=2000), tol=1e-3)
    assert easy.strategy == "dual: coordinates are samples"


def progress(passes, gap):
    return Progress(0, passes, 0.0, 0.0, np.array([gap / 2, gap]), np.ones(2), 0, np.nan, lambda: None)


@pytest.mark.parametrize(
    ("gaps", "left"),
    [
        ([0.9, 0.5], True),  # hopeless
        ([0.9, 0.1, 0.1], True),  # stuck
        ([0.9, 0.1, 0.01, 0.01], False),  # a tenth in four passes
        ([0.9, 1e-3, 1e-3], True),
        ([0.9, 1e-7], False),  # there already
    ],
)
def test_trials(gaps, left):
    trial = Trial(1e-6, None)
    asked = [trial(progress(passes, gap)) for passes, gap in zip([1, SOON, LATER, LATER + 4], gaps, strict=False)]
    assert any(asked) == left
    assert bool(trial.why) == left
    if left:
        assert asked[-1]


def test_a_trial_hands_on_what_the_user_says():
    seen = []
    trial = Trial(1e-6, lambda p: seen.append(p) or p.passes > 2)
    assert not trial(progress(1, 0.9))
    assert trial(progress(3, 0.9))
    assert len(seen) == 2
    assert not trial.why


def test_estimators_say_so():
    pytest.importorskip("sklearn")
    from coordwise.estimators import L2L1Regressor, LinearSVC

    model = model_of("l2l1")
    A, b = np.asarray(model.A), model.b[:, 0]
    fitted = L2L1Regressor(alpha=1e-3, tol=1e-8).fit(A, b)
    assert fitted.strategy_.startswith("interior")
    other = L2L1Regressor(alpha=1e-3, tol=1e-8, strategy="dual", max_iter=100_000).fit(A, b)
    np.testing.assert_allclose(fitted.predict(A), other.predict(A), atol=1e-2)
    with pytest.raises(ValueError, match="losses with kinks"):
        LinearSVC(loss="squared_hinge", strategy="interior").fit(A, np.sign(b))
