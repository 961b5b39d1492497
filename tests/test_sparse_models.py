"""l1 penalties: quadratic models, working sets, proximal Newton steps, and several classes."""

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import interruption, unequal_rows

import coordwise as cw
from coordwise.fitting import working
from coordwise.fitting.fit import fit
from coordwise.fitting.model import LinearModel
from coordwise.fitting.polish import polished
from coordwise.fitting.quadratic import OFTEN, Columns, Quadratic
from coordwise.fitting.sparse_multinomial import sparse_multinomial
from coordwise.fitting.working import nearest
from coordwise.penalties import ElasticNet
from coordwise.results import Status
from coordwise.rows import Rows

PENALTIES = {
    "l1": ElasticNet(0.02, 0.0),
    "elastic": ElasticNet(0.02, 0.01),
    "positive": ElasticNet(0.02, 0.0, True),
}


def data(n=80, d=30, seed=0):
    rng = np.random.default_rng(seed)
    A = unequal_rows(n, d, seed=seed, density=0.4) + (rng.random((n, d)) < 0.1)  # columns with means
    w = np.where(rng.random(d) < 0.3, rng.standard_normal(d), 0.0)
    return A, A @ w + 3.0 + 0.1 * rng.standard_normal(n), rng


def centred(A, z, h):
    root = np.sqrt(h)
    return (A - h @ A / h.sum()) * root[:, None], (z - h @ z / h.sum()) * root


@pytest.mark.parametrize("penalty", PENALTIES.values(), ids=PENALTIES)
@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array, sp.csc_array])
def test_quadratic_is_weighted_least_squares_with_the_best_intercept(penalty, center, storage):
    A, z, rng = data()
    h = rng.uniform(0.0, 2.0, 80)
    h[:5] = 0
    which = np.array([1, 4, 7, 20])
    objective = Quadratic(Columns(storage(A)), which, h, z, 50.0, penalty, center)
    result = cw.solve(objective, tol=1e-12, max_passes=10_000)
    assert result.converged
    B, u = centred(A[:, which], z, h) if center else (A[:, which] * np.sqrt(h)[:, None], np.sqrt(h) * z)

    def value(w):
        return np.sum((B @ w - u) ** 2) / 100.0 + penalty.value(w[:, None])[0]

    assert result.value == pytest.approx(value(result.x), rel=1e-12)
    assert result.scale == pytest.approx(np.sum(u**2) / 100.0, rel=1e-12)
    for _ in range(50):  # the gap holds at the solution, so nothing is better by more
        other = result.x + 1e-3 * rng.standard_normal(4)
        other = np.maximum(other, 0) if penalty.positive else other
        assert value(other) >= result.value - result.gap - 1e-14
    np.testing.assert_allclose(objective.curvature, (B**2).sum(0) / 50.0, rtol=1e-10)
    c = objective.intercept(result.x)
    slope = h @ (A[:, which] @ result.x + c - z)
    assert abs(slope) <= 1e-10 * np.abs(h * z).sum() if center else c == 0


@pytest.mark.parametrize("method", ["sdca", "auto", "nu_acdm_ns"])
def test_centred_columns_give_the_same_solution_sparse_and_dense(method):
    A, z, rng = data()
    h = rng.uniform(0.5, 2.0, 80)
    exact = [
        cw.solve(
            Quadratic(Columns(storage(A)), slice(None), h, z, 80.0, PENALTIES["l1"], True),
            method,
            tol=1e-9,
            max_passes=50_000,
        )
        for storage in (np.asarray, sp.csr_array)
    ]
    assert all(result.converged for result in exact)
    np.testing.assert_allclose(exact[0].x, exact[1].x, atol=1e-4)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("penalty", PENALTIES.values(), ids=PENALTIES)
@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge", "huber", "smooth_hinge"])
def test_working_sets_reach_the_minimum(loss, penalty, weighted, intercept, monkeypatch):
    monkeypatch.setattr("coordwise.fitting.working.FIRST", 4)
    A, b, rng = data(n=60, d=90, seed=3)
    b = np.column_stack([b, -b])
    if cw.losses.get_loss(loss).classification:
        b = np.where(b > np.median(b, axis=0), 1.0, -1.0)
    weights = rng.uniform(0, 3, 60) if weighted else None
    model = LinearModel(cw.ERM(sp.csr_array(A), b, loss=loss, penalty=penalty, sample_weight=weights), intercept)
    found = fit(model, tol=1e-9, strategy="working_set", max_passes=1e6)
    assert found.converged
    again = model.from_primal(found.w)
    assert np.all(again.gap <= 1e-9 * model.scale)
    assert np.any(found.w == 0)
    assert found.passes > 0
    # on all features at once, the same
    plain = fit(model, tol=1e-9, strategy="primal", max_passes=1e6)
    assert np.all(np.abs(plain.value - found.value) <= 2e-9 * model.scale)


def test_the_working_set_holds_what_is_used_and_what_is_nearest():
    A, b, _ = data()
    model = LinearModel(cw.ERM(A, b, penalty="l1", lam=0.5), False)
    norms = np.linalg.norm(A, axis=0)
    v = np.linspace(-0.4, 0.4, 30)
    which = nearest(model, v, np.array([15]), 5)
    assert 15 in which
    away = (0.5 - np.abs(v)) / norms
    away[15] = np.inf
    assert set(which) - {15} == set(np.argsort(away)[:4])
    assert nearest(model, v, np.array([15]), 30).tolist() == list(range(30))


@pytest.mark.parametrize(("part", "many"), [(3.0, False), (10.0, True)])
@pytest.mark.parametrize("dense", [False, True])
def test_the_first_working_set_has_room_for_those_that_are_expected(part, many, dense, monkeypatch):
    rng = np.random.default_rng(3)
    A = sp.random_array((400, 1600), density=0.05, rng=rng, format="csr")
    b = A[:, :60] @ rng.standard_normal(60) + 0.1 * rng.standard_normal(400)
    l1 = float(np.abs(A.T @ b).max()) / 400 / part
    model = LinearModel(cw.ERM(A.toarray() if dense else A, b, penalty=ElasticNet(l1, 0.0)), False)
    expected = working._expected(model, working.outside(model, model.certified_at_zero[1]))
    sizes, restricted = [], LinearModel.restricted

    def counted(self, which, k):
        sizes.append(len(which))
        return restricted(self, which, k)

    monkeypatch.setattr(LinearModel, "restricted", counted)
    assert fit(model, tol=1e-6, strategy="working_set").converged
    assert (working.TIMES * expected > working.FIRST) == many
    assert sizes[0] == (working.BEGIN if dense else max(working.FIRST, min(int(3 * expected), working.LARGEST)))


def test_limits_and_callbacks_end_working_sets():
    A, b, _ = data(n=60, d=400)
    model = LinearModel(cw.ERM(A, b, penalty="l1", lam=1e-4), True)
    few = fit(model, tol=1e-14, strategy="working_set", max_passes=0.5)
    assert few.status is Status.MAX_PASSES
    assert np.isfinite(few.gap).all()
    late = fit(model, tol=1e-14, strategy="working_set", time_limit=0.0)
    assert late.status is Status.TIME_LIMIT
    seen = []
    stopped = fit(model, tol=1e-14, strategy="working_set", callback=lambda p: seen.append(p) or len(seen) == 2)
    assert stopped.status is Status.STOPPED
    assert len(seen) == 2


def test_polishing_finds_the_last_digits_and_drops_weights_that_cross_zero():
    A, b, _ = data(n=200, d=12)
    model = LinearModel(cw.ERM(A, b, penalty="l1", lam=0.05), True)
    exact = fit(model, tol=1e-13, strategy="working_set", max_passes=1e6)
    near = model.from_primal(exact.w + 1e-4 * np.sign(exact.w))
    better = polished(model, near)
    assert near.gap[0] > 1e-8
    assert better.gap[0] <= 1e-12
    wrong = exact.w.copy()
    zero = np.flatnonzero(wrong[:, 0] == 0)[0]
    wrong[zero] = 1e-3
    start = model.from_primal(wrong)
    assert polished(model, start).gap[0] <= start.gap[0]


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("penalty", [ElasticNet(0.02, 0.0), ElasticNet(0.01, 0.01)], ids=["l1", "elastic"])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_sparse_multinomial(penalty, weighted, intercept, storage, monkeypatch):
    monkeypatch.setattr("coordwise.fitting.sparse_multinomial.FIRST", 5)
    A, b, rng = data(n=90, d=20, seed=2)
    codes = np.searchsorted(np.quantile(b, [0.3, 0.7]), b)
    s = rng.uniform(0.1, 2, 90) if weighted else None
    found = sparse_multinomial(storage(A), codes, 3, penalty, s, intercept=intercept, tol=1e-9, most=10_000)
    assert found.status is Status.CONVERGED
    assert found.gap[0] <= 1e-9 * np.log(3)
    weights = np.ones(90) if s is None else s

    def value(W, c):
        t = A @ W + c
        losses = np.log(np.exp(t).sum(1)) - t[np.arange(90), codes]
        return weights @ losses / weights.sum() + penalty.value(W).sum()

    assert found.value[0] == pytest.approx(value(found.w, found.c), rel=1e-12)
    assert np.any(found.w == 0)
    # the dual point, from its definition
    p = np.zeros((90, 3))
    p[np.arange(90), codes] = 1
    p += found.y / weights[:, None]
    assert p.min() >= -1e-12
    np.testing.assert_allclose(p.sum(1), 1, atol=1e-12)
    if intercept:
        np.testing.assert_allclose(found.y.sum(0), 0, atol=1e-8)
    v = -A.T @ found.y / weights.sum()
    dual = weights @ np.where(p > 0, p * np.log(np.where(p > 0, p, 1)), 0).sum(1) / weights.sum()
    assert found.gap[0] == pytest.approx(value(found.w, found.c) + dual + penalty.conjugate(v).sum(), abs=1e-12)
    for _ in range(30):
        W = found.w + 1e-3 * rng.standard_normal(found.w.shape)
        assert value(W, found.c) >= found.value[0] - found.gap[0] - 1e-13


@pytest.mark.parametrize("strategy", ["newton", "working_set", "gram", "dual"])
def test_ctrl_c_leaves_the_best_point_so_far(strategy):
    A, b, _ = data(n=60, d=20)
    squared = strategy == "gram"
    penalty = ElasticNet(1e-3, 0.0) if strategy == "working_set" else ElasticNet(0.0, 1e-3)
    signs = np.where(b > np.median(b), 1.0, -1.0)
    problem = cw.ERM(A, b if squared else signs, loss="squared" if squared else "logistic", penalty=penalty)
    model = LinearModel(problem, strategy != "dual")

    def interrupt(progress):
        raise KeyboardInterrupt

    found = interruption(fit, model, tol=1e-15, strategy=strategy, callback=interrupt)
    assert found.status is Status.INTERRUPTED
    assert np.all(found.value <= model.scale * (1 + 1e-12))
    assert np.isfinite(found.gap).all()


def test_ctrl_c_within_a_run_on_a_working_set_is_not_swallowed(monkeypatch):
    from coordwise.fitting import proximal

    def interrupted(*args, **options):
        return cw.solve(*args, **options | {"callback": _press})

    def _press(progress):
        raise KeyboardInterrupt

    monkeypatch.setattr(proximal, "solve", interrupted)
    A, b, _ = data(n=60, d=20)
    problem = cw.ERM(A, b, loss="huber", penalty="l1", lam=1e-3)
    found = interruption(fit, LinearModel(problem, True), tol=1e-12, strategy="working_set")
    assert found.status is Status.INTERRUPTED


@pytest.mark.parametrize("penalty", [ElasticNet(0.01, 0.0), ElasticNet(0.0, 0.01)], ids=["l1", "l2"])
def test_ctrl_c_with_several_classes(penalty):
    from coordwise.fitting.multinomial import multinomial

    A, b, _ = data()
    codes = np.searchsorted(np.quantile(b, [0.3, 0.7]), b)

    def interrupt(progress):
        raise KeyboardInterrupt

    how = sparse_multinomial if penalty.l1 else multinomial
    found = interruption(
        how,
        A,
        codes,
        3,
        penalty if penalty.l1 else penalty.l2,
        None,
        intercept=True,
        tol=1e-16,
        most=500,
        callback=interrupt,
    )
    assert found.status is Status.INTERRUPTED
    assert np.isfinite(found.value[0])


@pytest.mark.parametrize("center", [False, True])
def test_columns_from_rows_are_those_of_the_transposed_matrix(center):
    rng = np.random.default_rng(3)
    A = sp.random_array((30, 20), density=0.3, rng=rng, format="csr")
    s = rng.uniform(0.5, 2, 30)
    by_columns, by_rows = Columns(sp.csc_array(A)), Columns(A, Rows(A))
    assert by_rows.nnz == by_columns.nnz == A.nnz
    for weights in (None, s):
        np.testing.assert_allclose(by_rows.norms(weights, center), by_columns.norms(weights, center), rtol=1e-12)
    for _ in range(OFTEN + 2):  # from the rows first, then from the matrix transposed
        which = np.sort(rng.permutation(20)[:2])
        np.testing.assert_array_equal(by_rows.part(which).toarray(), A.toarray()[:, which])


def many_features(n=1500, d=1100):
    """More features outside of a weak l1 penalty than working sets are for, and an intercept."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((n, d))
    problem = cw.ERM(A, A[:, 0] + rng.standard_normal(n) + 3, penalty="l1", lam=1e-3)
    return LinearModel(problem, True)


def test_a_callback_can_end_the_one_round_over_all_features():
    model, seen = many_features(), []

    def stop(progress):
        seen.append(progress)
        return len(seen) == 3

    found = fit(model, tol=1e-9, callback=stop)
    assert found.strategy.startswith("working_set")
    assert found.status is Status.STOPPED
    assert np.count_nonzero(found.w) > 0
    assert len(found.results) == 1
    assert found.gap[0] < model.scale[0]


def test_ctrl_c_keeps_what_the_one_round_over_all_features_has_reached():
    model, seen = many_features(), []

    def interrupt(progress):
        seen.append(progress)
        if len(seen) == 3:
            raise KeyboardInterrupt

    found = interruption(fit, model, tol=1e-9, callback=interrupt)
    assert found.status is Status.INTERRUPTED
    assert np.count_nonzero(found.w) > 0
    np.testing.assert_allclose(found.gap, model.recertified(found.candidate).gap, rtol=1e-9)


def test_a_weak_penalty_on_many_features_and_an_intercept():
    model = many_features()
    found = fit(model, tol=1e-8, max_passes=1e5)
    assert found.converged
    other = fit(model.penalised(model.penalty), tol=1e-8, max_passes=1e5, start=model.from_primal(0.9 * found.w))
    np.testing.assert_allclose(found.value, other.value, atol=2e-8 * model.scale[0])


def test_working_sets_end_where_rounding_does():
    model = many_features(60, 6000)
    tightest = fit(model, tol=0.0, max_passes=1e5)
    assert tightest.passes < 1e5
    assert tightest.gap[0] <= 1e-12 * model.scale[0]


@pytest.mark.parametrize(("dense", "per_row"), [(False, 2), (False, 300), (True, 0)])
def test_how_many_features_are_too_many_for_linear_systems(dense, per_row):
    """A factor of those that are expected costs more than some passes; or, of sparse data, they are more than MANY, or
    more than FEWER for a rough solution.
    """
    rng = np.random.default_rng(0)
    n = d = 3000 if per_row else 60
    A = rng.standard_normal((n, d)) if dense else sp.random_array((n, d), density=per_row / d, rng=rng, format="csr")
    model = LinearModel(cw.ERM(A, rng.standard_normal(n), "squared", cw.penalties.L1(0.1)), False)
    entries = n * d if dense else A.nnz
    most = (working.COSTLY * entries) ** (1 / 3)
    if not dense:
        most = min((working.RARELY * entries) ** (1 / 3), working.MANY)
        assert (most == working.MANY) == (per_row == 300)
    for used in (most * 0.99, most * 1.01):
        assert working._too_many(model, min(used, n), 1e-4) == (used > most)
        assert not working._too_many(model, used, 1e-13)  # exact solutions are the only ones
        if not dense:
            assert working.many_used(model, round(used / working.SHARE), 1e-4) == (used > most)
    if per_row == 300:
        for used in (working.FEWER, working.FEWER + 1):
            assert working._too_many(model, used, working.COARSE) == (used > working.FEWER)
            assert not working._too_many(model, used, 0.99 * working.COARSE)


@pytest.mark.parametrize("shape", [(60, 25), (25, 60)])
def test_working_sets_without_l1_are_solved_as_ridge_regression_is(shape, monkeypatch):
    monkeypatch.setattr("coordwise.fitting.gram.ActiveSet", None)  # signs do not matter
    rng = np.random.default_rng(8)
    A = rng.standard_normal(shape) @ np.diag(10.0 ** -np.linspace(0, 6, shape[1]))  # badly conditioned
    b = rng.standard_normal(shape[0])
    problem = cw.ERM(A, b, loss="squared", penalty="l2", lam=1e-6)
    found = fit(LinearModel(problem, intercept=False), tol=1e-6, strategy="working_set")
    assert found.status == "converged"
