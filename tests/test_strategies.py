"""Which strategy is chosen for a model, and what is said where one does not apply."""

import numpy as np
import pytest
import scipy.sparse as sp
from fitting_cases import model_of

import coordwise as cw
from coordwise.fitting.fit import fit
from coordwise.fitting.model import LinearModel
from coordwise.fitting.strategies import choose
from coordwise.results import Status


@pytest.mark.parametrize(
    ("loss", "penalty", "strategy", "reason"),
    [
        ("logistic", "l2", "gram", "squared loss"),
        ("hinge", "l2", "newton", "smooth losses"),
        ("logistic", "l1", "newton", "l2 penalty"),
        ("hinge", "l2", "primal", "'hinge' has a kink"),
        ("logistic", "l1", "dual", "no l2 part"),
        ("logistic", "elastic_net", "dual", "needs the features"),
    ],
)
def test_refusals_say_why(loss, penalty, strategy, reason):
    with pytest.raises(ValueError, match=reason):
        fit(model_of(loss, penalty), tol=1e-3, strategy=strategy)


@pytest.mark.parametrize(
    ("penalty", "intercept", "cure"),
    [
        ("l1", True, "a penalty with an l2 part and no intercept"),
        ("l1", False, "a penalty with an l2 part"),
        ("elastic_net", True, "no intercept"),
        ("l2_positive", True, "no intercept"),
    ],
)
def test_what_a_refusal_advises_works(penalty, intercept, cure):
    with pytest.raises(ValueError, match=f"Use a smooth loss, or {cure}[.]"):
        fit(model_of("hinge", penalty, intercept), tol=1e-3)
    assert fit(model_of("squared_hinge", penalty, intercept), tol=1e-3).converged
    changed = model_of("hinge", "elastic_net" if penalty == "l1" else penalty, intercept and "intercept" not in cure)
    assert fit(changed, tol=1e-3, max_passes=10_000).converged


@pytest.mark.parametrize(
    ("loss", "l1", "l2", "strategy"),
    [
        ("squared", 0.5, 10.0, "dual"),
        ("squared", 0.5, 1e-3, "working_set"),
        ("squared", 0.5, 0.0, "working_set"),
        ("squared", 1e-9, 1e-3, "working_set"),
        ("squared", 1e-9, 0.0, "working_set"),
        ("logistic", 0.5, 1e-3, "dual"),
        ("logistic", 1e-9, 1e-3, "dual"),
        ("logistic", 0.5, 1e-9, "working_set"),
        ("logistic", 0.5, 0.0, "working_set"),
    ],
)
def test_l1_penalties_and_more_features_than_samples(loss, l1, l2, strategy):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((40, 5000)) / np.sqrt(5000)
    b = np.sign(A[:, 0] + 0.1 * rng.standard_normal(40))
    largest = np.abs(A.T @ b).max() / 80
    penalty = cw.penalties.ElasticNet(l1 * largest, l2)
    model = LinearModel(cw.ERM(A, b, loss=loss, penalty=penalty), False)
    assert choose(model)[0] == strategy
    found, other = fit(model, tol=1e-6, max_passes=1e5), fit(model, tol=1e-6, strategy="working_set", max_passes=1e5)
    assert found.converged
    assert other.converged
    np.testing.assert_allclose(found.value, other.value, atol=2e-6 * model.scale[0])


@pytest.mark.parametrize(
    ("l1", "l2", "strategy"),
    [
        (0.5, 0.0, "working_set"),
        (0.5, 1e-3, "working_set"),
        (1e-3, 0.0, "primal"),
        (1e-3, 1e-3, "primal"),
        (1e-3, 10.0, "primal"),
    ],
)
def test_squared_losses_and_l1_penalties_with_more_samples_than_features(l1, l2, strategy):
    rng = np.random.default_rng(0)
    A = sp.random_array((3000, 1200), density=0.02, rng=rng, format="csr")
    b = A @ rng.standard_normal(1200) + 0.1 * rng.standard_normal(3000)
    penalty = cw.penalties.ElasticNet(l1 * np.abs(A.T @ b).max() / 3000, l2)
    model = LinearModel(cw.ERM(A, b, penalty=penalty), False)
    assert choose(model)[0] == strategy
    assert choose(model, 1e-13)[0] == "working_set"
    found, other = fit(model, tol=1e-6, max_passes=1e5), fit(model, tol=1e-6, strategy="gram", max_passes=1e5)
    assert found.converged
    assert fit(model, tol=1e-12, max_passes=1e5).converged
    np.testing.assert_allclose(found.value, other.value, atol=2e-6 * model.scale[0])


@pytest.mark.parametrize(
    ("n", "l1", "everything"),
    [
        (400, 0.7, False),  # few features are outside of the penalty after the first working set
        (400, 0.02, True),
        (30, 0.02, False),  # and as few are used where there are few samples
    ],
)
def test_lassos_on_dense_data_look_at_the_first_working_set(n, l1, everything, monkeypatch):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((n, 2000))
    b = A[:, :100] @ rng.standard_normal(100) + rng.standard_normal(n)
    penalty = cw.penalties.L1(l1 * np.abs(A.T @ b).max() / n)
    model = LinearModel(cw.ERM(A, b, penalty=penalty), False)
    assert choose(model)[0] == "working_set"
    sizes, plain = [], LinearModel.restricted
    monkeypatch.setattr(
        LinearModel, "restricted", lambda self, which, k: (sizes.append(len(which)), plain(self, which, k))[1]
    )
    found = fit(model, tol=1e-7, max_passes=1e5)
    assert sizes[0] == 150
    assert (sizes[1:2] == [2000]) == everything
    other = fit(model, tol=1e-7, strategy="primal", max_passes=1e5)
    np.testing.assert_allclose(found.value, other.value, atol=2e-7 * model.scale[0])


def test_passes_that_a_callback_sees_do_not_go_back():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((400, 2000))
    b = A[:, :100] @ rng.standard_normal(100) + rng.standard_normal(400)
    model = LinearModel(cw.ERM(A, b, penalty=cw.penalties.L1(0.02 * np.abs(A.T @ b).max() / 400)), True)
    seen = []
    fit(model, tol=1e-4, max_passes=1e4, callback=lambda progress: seen.append(progress.passes))
    assert len(seen) > 4
    assert seen[-1] > 4
    assert seen == sorted(seen)


def test_an_unknown_strategy_is_refused():
    with pytest.raises(ValueError, match="strategy"):
        fit(model_of("squared"), tol=1e-3, strategy="grams")


@pytest.mark.parametrize(
    ("loss", "penalty", "shape", "expected"),
    [
        ("squared", "l2", "tall", "gram"),
        ("squared", "l2", "wide", "gram"),
        ("squared", "l1", "wide", "gram"),
        ("logistic", "l2", "tall", "newton"),
        ("logistic", "l1", "tall", "working_set"),
        ("hinge", "l2", "tall", "dual"),
    ],
)
def test_auto_says_what_it_chose_and_why(loss, penalty, shape, expected):
    model = model_of(loss, penalty, shape=shape)
    assert choose(model)[0] == expected
    found = fit(model, tol=1e-4, max_passes=10_000)
    assert found.strategy.startswith(f"{expected}: ")
    assert fit(model, tol=1e-4, strategy=expected, max_passes=10_000).strategy == f"{expected}: as asked"


def many_entries(loss="logistic", lam=1e-3, *, n=1000, d=500, density=0.5, intercept=False, dense=False):
    """Samples with many entries, whose Gram matrices cost more than some passes over them."""
    rng = np.random.default_rng(0)
    A = sp.random_array((n, d), density=density, rng=rng, format="csr")
    b = np.where(A @ rng.standard_normal(d) > 0, 1.0, -1.0)
    return LinearModel(cw.ERM(A.toarray() if dense else A, b, loss=loss, lam=lam), intercept)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_samples_with_many_entries_are_left_to_steps_over_them(loss, intercept):
    model = many_entries(loss, lam=0.1, n=2000, d=900, intercept=intercept)
    found, newton = (fit(model, tol=1e-6, strategy=name) for name in ("auto", "newton"))
    assert found.strategy.startswith("dual")
    np.testing.assert_allclose(found.w, newton.w, atol=1e-2 * np.abs(newton.w).max())
    few = many_entries(loss, lam=1e-3, n=5000, d=50, density=0.1, intercept=intercept)
    assert choose(few, 1e-3)[0] == "newton"


@pytest.fixture
def no_probe(monkeypatch):
    """Strategies without conjugate gradients before them."""
    monkeypatch.setattr("coordwise.fitting.fit.budget", lambda *_: None)


@pytest.mark.usefixtures("no_probe")
@pytest.mark.parametrize("intercept", [False, True])
def test_newton_takes_over_where_the_gap_does_not_fall(intercept):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((3000, 20)) @ rng.standard_normal((20, 900)) + 0.02 * rng.standard_normal((3000, 900))
    b = np.where(A[:, :20].sum(1) + 30 * rng.standard_normal(3000) > 0, 1.0, -1.0)  # not separable
    model = LinearModel(cw.ERM(A, b, loss="logistic", lam=1e-8), intercept)
    assert choose(model, 1e-4)[0] == "dual"
    found = fit(model, tol=1e-4)
    assert found.strategy.startswith("newton: over the samples the gap was")
    assert found.converged
    assert found.passes > 6
    assert fit(model, tol=1e-4, strategy="dual", max_passes=20).passes >= 20


def test_few_passes_may_be_expected_to_cost_less_than_steps():
    """A step costs less than a trial, but all steps more than what Theorem 5.1 asks for."""
    model = many_entries("squared_hinge", lam=1.0, n=20_000, d=100, density=0.2)
    assert choose(model, 1e-3)[0] == "dual"
    assert choose(model.penalised(cw.penalties.L2(1e-7)), 1e-3)[0] == "newton"
    assert choose(model.penalised(cw.penalties.L2(1e-7)), 0.0)[0] == "newton"


@pytest.mark.usefixtures("no_probe")
def test_newton_takes_over_where_more_passes_are_needed_than_allowed():
    model = many_entries("squared_hinge", lam=1e-4)
    assert choose(model, 1e-6)[0] == "dual"
    assert fit(model, tol=1e-6, max_passes=1000).strategy.startswith("dual")
    found = fit(model, tol=1e-6, max_passes=25)
    assert found.strategy.startswith("newton: over the samples")
    assert found.passes <= 26
    assert fit(model, tol=1e-6, max_passes=5).strategy == "newton: 5 passes are allowed"


@pytest.mark.parametrize("intercept", [False, True])
def test_a_tolerance_of_zero_ends(intercept):
    model = many_entries("squared_hinge", lam=0.1, n=2000, d=900, intercept=intercept)
    assert choose(model, 0.0)[0] == "dual"
    found = fit(model, tol=0.0, max_passes=40)
    assert found.gap <= 1e-9 * model.scale


@pytest.mark.usefixtures("no_probe")
def test_what_ends_steps_over_samples_does_not_begin_newton():
    model = many_entries("logistic", lam=1e-9, n=2000, d=900)
    asked = []
    found = fit(model, tol=1e-12, callback=lambda progress: asked.append(progress) or len(asked) > 2)
    assert found.status is Status.STOPPED
    assert found.strategy.startswith("dual")
    assert fit(model, tol=1e-12, time_limit=0.0).status is Status.TIME_LIMIT


def test_an_intercept_asks_for_steps_that_cost_twice_as_much():
    narrow, wide = ({"n": 1000, "d": 500}, {"n": 2000, "d": 900})
    assert [choose(many_entries(lam=1e-7, intercept=i, **narrow), 1e-3)[0] for i in (False, True)] == ["dual", "newton"]
    assert choose(many_entries(lam=1e-7, intercept=True, **wide), 1e-3)[0] == "dual"
