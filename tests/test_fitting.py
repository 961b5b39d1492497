"""Linear models with an intercept: certificates, and every formulation against the others."""

import numpy as np
import pytest
import scipy.sparse as sp
from fitting_cases import PENALTIES, SHAPES, data, model_of
from scipy.optimize import minimize_scalar

import coordwise as cw
from coordwise.fitting.fit import fit
from coordwise.fitting.model import LinearModel
from coordwise.fitting.strategies import STRATEGIES
from coordwise.losses import LOSSES
from coordwise.results import Status
from coordwise.samples.appended import with_column

each_loss = pytest.mark.parametrize("loss", LOSSES)
each_penalty = pytest.mark.parametrize("penalty", PENALTIES)
with_and_without = pytest.mark.parametrize("intercept", [False, True], ids=["through_0", "intercept"])
weighted_or_not = pytest.mark.parametrize("weighted", [False, True], ids=["equal", "weighted"])


def objective(model, w, c):
    """P(w, c), from the formula."""
    A = model.A.toarray() if sp.issparse(model.A) else model.A
    s = np.ones(model.n) if model.weights is None else model.weights
    losses = model.loss.value(A @ w + c, model.b)
    return s @ losses / s.sum() + model.penalty.value(w)


def dual_objective(model, y):
    """D(y), from the formula; inf off the constraint of the intercept."""
    A = model.A.toarray() if sp.issparse(model.A) else model.A
    s = np.ones(model.n) if model.weights is None else model.weights
    total = s.sum()
    value = model.loss.conjugate(y, model.b, s[:, None]).sum(0) / total + model.penalty.conjugate(-A.T @ y / total)
    off = np.abs(y.sum(0)) > 1e-12 * np.maximum(np.abs(y).sum(0), 1)
    return np.where(off, np.inf, value) if model.intercept else value


def applies(model, strategy):
    """Whether `fit` takes this strategy, from the documented rules."""
    loss, penalty = model.loss, model.penalty
    plain = penalty.l1 == 0 and not penalty.positive
    return {
        "gram": loss.name == "squared",
        "newton": loss.gamma > 0 and plain,
        "newton_cg": loss.gamma > 0 and plain and penalty.l2 > 0,
        "interior": loss.gamma == 0 and plain and penalty.l2 > 0,
        "krylov": loss.name == "squared" and plain and penalty.l2 > 0,
        "semismooth": loss.gamma > 0 and loss.name not in ("squared", "logistic") and plain and penalty.l2 > 0,
        "primal": loss.gamma > 0,
        "working_set": loss.gamma > 0,
        "dual": penalty.l2 > 0 and (plain or not model.intercept),
    }[strategy]


# Certificates


@each_loss
@weighted_or_not
@with_and_without
def test_feasible_lands_in_the_domain_and_on_the_constraint(loss, weighted, intercept):
    model = model_of(loss, intercept=intercept, weighted=weighted)
    low, high = (np.broadcast_to(end, model.b.shape) for end in model.loss.domain(model.b, model.s))
    rng = np.random.default_rng(1)
    for size in (1e-3, 1.0, 30.0):
        y = model.feasible(size * rng.standard_normal(model.b.shape) + size * rng.uniform(-1, 1))
        assert np.all(y >= low)
        assert np.all(y <= high)
        if intercept:
            assert np.all(np.abs(y.sum(0)) <= 1e-12 * np.maximum(np.abs(y).sum(0), 1))
            again = model.feasible(y)
            np.testing.assert_allclose(again, y, rtol=0, atol=1e-12 * max(size, 1))


@each_loss
@weighted_or_not
def test_best_intercept_minimises(loss, weighted):
    model = model_of(loss, weighted=weighted)
    s = np.ones(model.n) if model.weights is None else model.weights
    t = np.random.default_rng(2).standard_normal(model.b.shape) * 2
    found = model.best_intercept(t)
    for k in range(model.outputs):

        def value(c, k=k):
            return float(s @ model.loss.value(t[:, k] + c, model.b[:, k]))

        best = minimize_scalar(value, bracket=(found[k] - 1, found[k] + 1.5), tol=1e-12).fun
        assert value(found[k]) <= best + 1e-9 * max(abs(best), 1)


def test_there_is_no_intercept_without_one():
    model = model_of("squared", intercept=False)
    np.testing.assert_array_equal(model.best_intercept(model.b + 5), 0.0)


@each_loss
@pytest.mark.parametrize("penalty", ["l2", "elastic_net", "l2_positive", "elastic_net_positive"])
@with_and_without
@weighted_or_not
def test_gaps_from_dual_points(loss, penalty, intercept, weighted):
    model = model_of(loss, penalty, intercept, weighted)
    y = np.random.default_rng(3).standard_normal(model.b.shape)
    found = model.from_dual(y)
    check_candidate(model, found)


@pytest.mark.parametrize("loss", [name for name in LOSSES if LOSSES[name]().gamma > 0])
@each_penalty
@with_and_without
@weighted_or_not
def test_gaps_from_primal_points(loss, penalty, intercept, weighted):
    model = model_of(loss, penalty, intercept, weighted)
    w = np.random.default_rng(4).standard_normal((model.d, model.outputs))
    w = np.abs(w) if model.penalty.positive else w
    check_candidate(model, model.from_primal(w))
    check_candidate(model, model.from_primal(w, np.array([0.3, -0.2]) if intercept else None))


def check_candidate(model, found):
    value = objective(model, found.w, found.c)
    np.testing.assert_allclose(found.value, value, rtol=1e-10)
    np.testing.assert_allclose(found.gap, value + dual_objective(model, found.y), rtol=1e-8, atol=1e-11 * value.max())
    best = optimum(model)
    if best is None:
        return
    suboptimality = found.value - best
    assert np.all(suboptimality >= -1e-8 * model.scale)
    assert np.all(found.gap >= suboptimality - 1e-8 * model.scale)


OPTIMA = {}


def optimum(model):
    """min P, certified to 1e-9 of P(0), computed once per problem."""
    key = (model.loss, model.penalty, model.intercept, model.weights is None)
    if key not in OPTIMA:
        if model.loss.gamma == 0 and not applies(model, "dual"):
            return None  # there is no strategy
        found = fit(model, tol=1e-9, max_passes=50_000)
        assert found.converged
        OPTIMA[key] = found.value
    return OPTIMA[key]


def test_better_takes_the_smaller_gap_of_each_output():
    model = model_of("squared")
    one = model.from_primal(np.zeros((model.d, 2)))
    other = fit(model, tol=1e-10)
    w = np.column_stack([other.w[:, 0], np.zeros(model.d)])
    both = model.from_primal(w).better(one)
    assert both.gap[0] < one.gap[0]
    assert both.gap[1] <= one.gap[1]
    assert one.better(None) is one


# Strategies


@each_loss
@each_penalty
@with_and_without
@weighted_or_not
@pytest.mark.parametrize("shape", SHAPES)
def test_strategies_converge_and_agree(loss, penalty, intercept, weighted, shape):
    tol = 1e-8
    values = {}
    for strategy in STRATEGIES:
        store = sp.csr_array if strategy in ("dual", "newton") else np.asarray
        model = model_of(loss, penalty, intercept, weighted, shape, store=store)
        if strategy == "auto" and not any(applies(model, name) for name in STRATEGIES[1:]):
            with pytest.raises(ValueError, match=r"no strategy applies here: .* has a kink, and"):
                fit(model, tol=tol)
            continue
        if strategy != "auto" and not applies(model, strategy):
            others = [name for name in STRATEGIES[1:] if applies(model, name)]
            said = f"strategy='{strategy}' does not apply here: .*Use strategy='auto', or one of {', '.join(others)}[.]"
            with pytest.raises(ValueError, match=said if others else "no strategy applies here: .* has a kink, and"):
                fit(model, tol=tol, strategy=strategy)
            continue
        found = fit(model, tol=tol, strategy=strategy, max_passes=100_000)
        assert found.converged, (strategy, found.status, found.gap / found.scale)
        assert found.status is Status.CONVERGED
        np.testing.assert_allclose(found.scale, objective(model, np.zeros((model.d, 2)), np.zeros(2)), rtol=1e-12)
        assert np.all(found.gap <= tol * found.scale)
        value = objective(model, found.w, found.c)
        np.testing.assert_allclose(found.value, value, rtol=1e-10)
        assert np.all(value + dual_objective(model, found.y) <= 1.001 * tol * found.scale + 1e-12 * value)
        if not intercept:
            np.testing.assert_array_equal(found.c, 0.0)
        if model.penalty.positive:
            assert np.all(found.w >= 0)
        values[strategy] = value
    for value in values.values():
        assert np.all(np.abs(value - next(iter(values.values()))) <= 2 * tol * model.scale)


@pytest.mark.parametrize("loss", ["squared", "huber", "logistic", "squared_hinge", "squared_epsilon_insensitive"])
@with_and_without
def test_newton_on_rank_deficient_data(loss, intercept):
    A, b, _ = data(loss)
    A = np.hstack([A, A, A.sum(1, keepdims=True)])
    model = LinearModel(cw.ERM(A, b, loss, cw.penalties.L2(1e-9)), intercept)
    found = fit(model, tol=1e-10, strategy="newton")
    assert found.converged
    gap = objective(model, found.w, found.c) + dual_objective(model, found.y)
    np.testing.assert_allclose(found.gap, gap, atol=1e-9)


@pytest.mark.parametrize("delta", [1e-3, 1e-6])
def test_newton_where_all_residuals_are_far_out(delta):
    A, b, _ = data("huber")
    model = LinearModel(cw.ERM(A, b, cw.losses.Huber(delta), cw.penalties.L2(1e-4 * delta)), True)
    assert fit(model, tol=1e-6, strategy="newton").converged


def test_newton_with_badly_scaled_columns():
    A, b, _ = data("logistic")
    scales = np.logspace(-6, 6, A.shape[1])
    found = fit(LinearModel(cw.ERM(A * scales, b, "logistic", cw.penalties.L2(1e-3)), True), tol=1e-9)
    assert found.converged


def awkward(name):
    rng = np.random.default_rng(5)
    A = rng.standard_normal((20, 3))
    if name == "constant_column":
        A[:, 1] = 2.0
    elif name == "zero_rows":
        A[::3] = 0.0
    elif name == "zero_column":
        A[:, 0] = 0.0
    elif name == "zero_matrix":
        A[:] = 0.0
    elif name == "one_feature":
        A = A[:, :1]
    elif name == "one_per_class":
        A = A[:2]
    return A, np.where(np.arange(len(A)) % 2 == 0, 1.0, -1.0)


@pytest.mark.parametrize(
    "case", ["constant_column", "zero_rows", "zero_column", "zero_matrix", "one_feature", "one_per_class"]
)
@pytest.mark.parametrize("store", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge", "squared_hinge"])
def test_awkward_data(case, store, loss):
    A, b = awkward(case)
    for penalty in ("l2", "l1"):
        for intercept in (False, True):
            for strategy in STRATEGIES[1:]:
                model = LinearModel(cw.ERM(store(A), b, loss, PENALTIES[penalty]), intercept)
                if not applies(model, strategy):
                    continue
                found = fit(model, tol=1e-8, strategy=strategy, max_passes=50_000)
                assert found.converged, (penalty, intercept, strategy, found.gap)
                value = objective(model, found.w, found.c[None, :])
                np.testing.assert_allclose(found.gap, value + dual_objective(model, found.y), atol=1e-9)


def test_targets_of_zero():
    for strategy in ("gram", "newton", "dual", "primal"):
        model = LinearModel(cw.ERM(np.eye(4), np.zeros(4), "squared", "l2", 0.1), True)
        found = fit(model, tol=1e-6, strategy=strategy)
        assert found.converged, strategy
        np.testing.assert_allclose(found.w, 0, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("store", [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_array])
def test_with_column_appends_a_constant(store, dtype):
    A = np.array([[1, 0, 2], [0, 0, 0], [0, 3, 0]], dtype)
    found = with_column(store(A), 1.5)
    assert found.dtype == dtype
    dense = found.toarray() if sp.issparse(found) else found
    np.testing.assert_array_equal(dense, np.column_stack([A, np.full(3, 1.5)]))


# Fixed intercepts in the primal


@pytest.mark.parametrize("loss", ["squared", "logistic", "huber"])
@pytest.mark.parametrize("penalty", ["l2", "l1", "elastic_net", "l1_positive"])
@weighted_or_not
def test_the_certificate_with_an_offset(loss, penalty, weighted):
    A, b, s = data(loss)
    s = s if weighted else None
    offset = np.array([0.7, -1.3])
    problem = cw.ERM(A, b, loss, PENALTIES[penalty], sample_weight=s)
    result = cw.solve(problem.primal(offset=offset), tol=1e-8, max_passes=20_000)
    assert result.converged
    weights = np.ones(len(b)) if s is None else s
    total = weights.sum()

    def value(w):
        return weights @ problem.loss.value(A @ w + offset, b) / total + problem.penalty.value(w)

    np.testing.assert_allclose(result.value, value(result.w), rtol=1e-10)
    # the gap bounds what any other point would gain
    other = cw.solve(problem.primal(offset=offset), tol=1e-11, max_passes=50_000, random_state=1)
    assert np.all(value(result.w) - value(other.w) <= result.gap + 1e-12)
    assert np.all(result.gap <= 1e-8 * problem.value_at_zero)
    # and is that of shifted losses: phi(t + c) has the conjugate phi*(y) - c y
    early = cw.solve(problem.primal(offset=offset), tol=1e-1, max_passes=3)
    assert np.all(early.gap >= value(early.w) - value(other.w) - 1e-12)


# Ends


@pytest.mark.parametrize("strategy", ["dual", "primal", "newton"])
def test_callbacks_stop(strategy):
    seen = []

    def callback(progress):
        seen.append(progress)
        return len(seen) == 2

    found = fit(model_of("logistic", "l2"), tol=1e-14, strategy=strategy, callback=callback, max_passes=1000)
    assert len(seen) == 2
    assert found.status is Status.STOPPED
    assert not found.converged
    assert np.all(found.gap > 1e-14 * found.scale)


def test_a_gram_matrix_reports_once():
    seen = []
    assert fit(model_of("squared"), tol=1e-6, strategy="gram", callback=seen.append).converged
    assert len(seen) == 1


@pytest.mark.parametrize("strategy", ["dual", "primal", "newton"])
def test_max_passes_and_time_limit(strategy):
    model = model_of("logistic", cw.penalties.L2(1e-6))
    few = fit(model, tol=1e-12, strategy=strategy, max_passes=2)
    assert few.status is Status.MAX_PASSES
    assert 0 < few.passes <= 4
    assert np.all(few.gap > 1e-12 * few.scale)
    assert np.all(objective(model, few.w, few.c) <= model.scale * (1 + 1e-12))
    short = fit(model, tol=1e-13, strategy=strategy, time_limit=0.0)
    assert short.status is Status.TIME_LIMIT


@pytest.mark.parametrize("strategy", ["dual", "primal", "newton"])
def test_a_start_saves_passes(strategy):
    model = model_of("logistic", "l2")
    first = fit(model, tol=1e-8, strategy=strategy)
    start = model.from_primal(first.w, first.c)
    again = fit(model, tol=1e-8, strategy=strategy, start=start)
    assert again.converged
    assert again.passes < first.passes


@pytest.mark.parametrize("penalty", ["l1", "elastic_net_positive"])
def test_limits_end_a_gram_matrix_with_active_sets(penalty):
    A = np.random.default_rng(5).standard_normal((80, 40))
    b = A @ np.ones((40, 2)) + np.random.default_rng(6).standard_normal((80, 2))
    weak = {"l1": cw.penalties.L1(1e-3), "elastic_net_positive": cw.penalties.ElasticNet(1e-3, 1e-3, True)}[penalty]
    model = LinearModel(cw.ERM(A, b, penalty=weak), True)
    few = fit(model, tol=1e-12, strategy="gram", max_passes=1)
    assert few.status is Status.MAX_PASSES
    assert few.passes == 1
    assert np.all(few.gap > 1e-12 * few.scale)
    assert fit(model, tol=1e-12, strategy="gram", time_limit=0.0).status is Status.TIME_LIMIT
    whole = fit(model, tol=1e-12, strategy="gram")
    assert whole.converged
    assert not whole.results  # no coordinate descent was needed
    assert fit(model, tol=1e-14, strategy="gram", start=model.from_primal(whole.w * 1.001)).passes < whole.passes


@pytest.mark.parametrize("weighted", [False, True])
def test_few_samples_far_from_zero_with_an_intercept(weighted):
    """Centred before they are multiplied: of their products nothing but the distance would be left."""
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((40, 200)), rng.standard_normal(40)
    s = rng.integers(1, 4, 40).astype(float) if weighted else None
    near, far = (
        fit(LinearModel(cw.ERM(X, b, penalty=cw.penalties.L2(1e-3), sample_weight=s), True), tol=1e-9, strategy="gram")
        for X in (A, A + 1e6)
    )
    assert near.converged
    assert far.converged
    np.testing.assert_allclose(far.w, near.w, atol=1e-6)
