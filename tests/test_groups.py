"""Problems with group penalties: certified gaps, agreement with a slow solver, corners, storages, refusals."""

import numpy as np
import pytest
from conftest import STORAGES, interruption
from group_cases import GROUPS, LOSSES, D, N, problem, proximal_gradient, smooth_gradient
from problem_cases import refused

import coordwise as cw
from coordwise.penalties import L1, ElasticNet, GroupL1

KINDS = {
    "group": {},
    "weights": dict(weights=[1.0, 0.5, 2.0, 0.3, 1.0, 1.5, 0.7]),
    "curved": dict(l2=0.02),
    "sparse": dict(feature_l1=0.02),
    "all": dict(l2=0.02, feature_l1=0.02, weights=[0.0, 0.5, 2.0, 0.3, 1.0, 1.5, 0.7]),
}
each_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.mark.parametrize("loss", LOSSES)
@each_kind
def test_agrees_with_proximal_gradient_descent(kind, loss):
    erm, A = problem(loss, weighted=kind == "weights", **KINDS[kind])
    w = proximal_gradient(erm, A)
    result = cw.solve(erm.primal(), tol=1e-12, max_passes=1e5)
    assert result.converged
    assert result.gap <= 1e-12 * result.scale
    assert erm.value(result.w) - erm.value(w) <= 1e-12 * result.scale
    assert erm.value(w) - erm.value(result.w) <= 1e-12 * result.scale
    np.testing.assert_allclose(result.w, w, atol=2e-5 * np.abs(w).max())


@pytest.mark.parametrize("method", ["auto", "nu_acdm", "nu_acdm_ns", "acdm", "acdm_ns", "approx", "rcdm", "sdca"])
@each_kind
def test_the_gap_bounds_the_suboptimality(kind, method):
    erm, A = problem("logistic", **KINDS[kind])
    least = erm.value(proximal_gradient(erm, A))
    seen = []

    def look(progress):
        seen.append((progress.gap, erm.value(progress.solution()) - least))

    result = cw.solve(erm.primal(), method, tol=1e-7, max_passes=20_000, record_growth=0.2, callback=look)
    assert result.converged
    assert len(seen) > 3
    for gap, above in seen:
        assert -1e-13 <= above <= gap + 1e-13
    above = erm.value(result.w) - least
    assert -1e-13 <= above <= result.gap + 1e-13
    assert result.gap == pytest.approx(erm.gap(result.w, result.y), rel=1e-6, abs=1e-14)


@each_kind
def test_the_dual_variables_can_be_checked_from_their_definition(kind):
    erm, A = problem("huber", **KINDS[kind])
    result = cw.solve(erm.primal(), tol=1e-4)
    v = -A.T @ result.y / N
    assert erm.penalty.conjugate(v) < np.inf
    conjugates = np.mean(result.y**2 / 2 + erm.b[:, 0] * result.y)  # of the Huber loss, |y| <= delta
    assert np.max(np.abs(result.y)) <= erm.loss.delta
    assert result.gap == pytest.approx(result.value + conjugates + erm.penalty.conjugate(v), abs=1e-13)
    np.testing.assert_allclose(erm.dual_point(result.w), result.y, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_storage_and_precision_change_nothing(loss, dtype, storage):
    erm, A = problem(loss, storage, dtype=dtype, feature_l1=0.01)
    result = cw.solve(erm.primal(), tol=1e-10, max_passes=1e5)
    assert result.converged
    assert result.gap <= 1e-10 * result.scale
    dense = cw.ERM(A.astype(np.float64), erm.b[:, 0], loss=loss, penalty=erm.penalty)
    exact = cw.solve(dense.primal(), tol=1e-12, max_passes=1e5)
    assert dense.value(result.w) - exact.value <= 1e-10 * result.scale + 1e-14
    np.testing.assert_allclose(result.w, exact.w, atol=1e-4 * np.abs(exact.w).max())


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_groups_of_one_are_the_lasso(loss):
    erm, A = problem(loss, groups=np.arange(D), l1=0.03)
    plain = cw.ERM(A, erm.b[:, 0], loss=loss, penalty=L1(0.03))
    for method in ("auto", "nu_acdm", "sdca"):
        one, other = (cw.solve(p.primal(), method, tol=1e-11, max_passes=1e5) for p in (erm, plain))
        np.testing.assert_array_equal(one.w == 0, other.w == 0)
        np.testing.assert_allclose(one.w, other.w, rtol=1e-5, atol=1e-7)
        assert one.value == pytest.approx(other.value, abs=1e-11 * one.scale)
        assert one.gap == pytest.approx(plain.gap(one.w, one.y), abs=1e-14)
    scalar = cw.solve(plain.primal(), "sdca", tol=1e-6)
    blocks = cw.solve(erm.primal(), "sdca", tol=1e-6)
    assert (blocks.iterations, blocks.passes) == (scalar.iterations, scalar.passes)
    np.testing.assert_allclose(blocks.history.gap, scalar.history.gap, rtol=1e-6, atol=1e-13)


def test_one_group_without_norm_is_the_elastic_net():
    erm, A = problem(l1=0.0, l2=0.1, feature_l1=0.05)
    plain = cw.ERM(A, erm.b[:, 0], penalty=ElasticNet(0.05, 0.1))
    one, other = (cw.solve(p.primal(), tol=1e-12, max_passes=1e5) for p in (erm, plain))
    np.testing.assert_allclose(one.w, other.w, atol=1e-5)


def largest_l1(erm, A):
    """From which l1 on w = 0: the largest |A_g' s phi'(0)|/(W weights_g), without feature_l1."""
    g = smooth_gradient(erm, A, np.zeros(D))
    norms = np.sqrt(np.bincount(GROUPS, g**2))
    return np.max(norms / np.asarray(erm.penalty.weights))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("l2", [0.0, 0.1])
def test_beyond_the_largest_l1_the_solution_is_zero_at_once(loss, l2):
    erm, A = problem(loss, l2=l2)
    most = largest_l1(erm, A)
    for factor in (1 + 1e-9, 2.0):
        penalty = GroupL1(most * factor, GROUPS, l2)
        result = cw.solve(cw.ERM(A, erm.b[:, 0], loss=loss, penalty=penalty).primal(), tol=1e-14)
        assert result.converged
        assert result.iterations == 0
        np.testing.assert_array_equal(result.w, np.zeros(D))
        assert result.gap <= 1e-15 * result.scale
    penalty = GroupL1(most * 0.99, GROUPS, l2)
    result = cw.solve(cw.ERM(A, erm.b[:, 0], loss=loss, penalty=penalty).primal(), tol=1e-10)
    assert result.converged
    assert len(np.unique(GROUPS[result.w != 0])) == 1


def test_sparse_groups_beyond_the_dual_norm():
    """With both l1 parts, w = 0 exactly where |S(g_g)| <= l1 weights_g for every group."""
    erm, A = problem(feature_l1=0.02)
    g = smooth_gradient(erm, A, np.zeros(D))
    soft = np.maximum(np.abs(g) - 0.02, 0)
    most = np.max(np.sqrt(np.bincount(GROUPS, soft**2)) / np.asarray(erm.penalty.weights))
    for factor, some in ((1 + 1e-9, False), (0.99, True)):
        penalty = GroupL1(most * factor, GROUPS, feature_l1=0.02)
        result = cw.solve(cw.ERM(A, erm.b[:, 0], penalty=penalty).primal(), tol=1e-11)
        assert result.converged
        assert np.any(result.w != 0) == some


def test_the_order_of_groups_and_features_does_not_matter():
    erm, A = problem("logistic")
    order = np.random.default_rng(0).permutation(D)
    names = np.random.default_rng(1).permutation(GROUPS.max() + 1)
    weights = np.empty(len(names))
    weights[names] = np.asarray(erm.penalty.weights)
    penalty = GroupL1(0.05, names[GROUPS[order]], weights=weights)
    other = cw.ERM(A[:, order], erm.b[:, 0], loss="logistic", penalty=penalty)
    one, two = (cw.solve(p.primal(), tol=1e-12, max_passes=1e5) for p in (erm, other))
    np.testing.assert_allclose(two.w, one.w[order], atol=1e-5 * np.abs(one.w).max())


@pytest.mark.parametrize("method", ["auto", "nu_acdm"])
def test_zero_columns_and_a_group_of_them(method):
    erm, A = problem()
    A = A.copy()
    A[:, GROUPS == 2] = 0
    A[:, 0] = 0
    erm = cw.ERM(A, erm.b[:, 0], penalty=GroupL1(0.05, GROUPS))
    x0 = np.ones(D)
    result = cw.solve(erm.primal(), method, tol=1e-10, x0=x0, max_passes=1e5)
    assert result.converged
    np.testing.assert_array_equal(result.w[GROUPS == 2], 0)
    assert abs(result.w[0]) <= 1e-9
    assert erm.value(result.w) - erm.value(proximal_gradient(erm, A)) <= 1e-10 * result.scale


def test_a_matrix_of_zeros():
    erm = cw.ERM(np.zeros((5, D)), np.ones(5), penalty=GroupL1(0.05, GROUPS))
    result = cw.solve(erm.primal(), x0=np.ones(D))
    assert result.converged
    np.testing.assert_array_equal(result.w, np.zeros(D))


@each_kind
def test_an_offset_is_a_fixed_intercept(kind):
    erm, A = problem("logistic", **KINDS[kind])
    result = cw.solve(erm.primal(offset=0.7), tol=1e-10, max_passes=1e5)
    assert result.converged

    def value(w):
        return np.mean(np.logaddexp(0, -erm.b[:, 0] * (A @ w + 0.7))) + erm.penalty.value(w)

    assert result.value == pytest.approx(value(result.w), rel=1e-12)
    rng = np.random.default_rng(0)
    for size in (1e-1, 1e-3, 1e-5):
        others = result.w + size * rng.standard_normal((100, D))
        assert min(value(w) for w in others) >= result.value - 1e-10 * result.scale


def test_sample_weights_are_repeated_rows():
    erm, A = problem("logistic")
    times = np.random.default_rng(0).integers(0, 4, N)
    repeated = cw.ERM(np.repeat(A, times, 0), np.repeat(erm.b[:, 0], times), loss="logistic", penalty=erm.penalty)
    weighted = cw.ERM(A, erm.b[:, 0], loss="logistic", penalty=erm.penalty, sample_weight=times)
    one, other = (cw.solve(p.primal(), tol=1e-12, max_passes=1e5) for p in (repeated, weighted))
    assert one.value == pytest.approx(other.value, abs=1e-12 * one.scale)
    np.testing.assert_allclose(one.w, other.w, atol=1e-5)


@pytest.mark.parametrize("kind", ["group", "curved"])
def test_active_sets_of_groups_are_only_a_shortcut(kind):
    """More features than samples, few groups in the solution: auto holds the others, and ends where it should."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(60), 5)
    A = rng.standard_normal((80, 300))
    b = A[:, :15] @ rng.standard_normal(15) + 0.1 * rng.standard_normal(80)
    penalty = GroupL1(0.1, groups, l2=KINDS[kind].get("l2", 0.0))
    erm = cw.ERM(A, b, penalty=penalty)
    auto = cw.solve(erm.primal(), tol=1e-10, max_passes=1e5)
    careful = cw.solve(erm.primal(), "sdca", tol=1e-10, max_passes=1e5)
    assert auto.converged
    assert careful.converged
    assert "active set" in auto.method
    assert abs(auto.value - careful.value) <= 1e-10 * auto.scale  # gaps bound what either has above the minimum
    np.testing.assert_array_equal(auto.w[15:], 0)
    np.testing.assert_allclose(auto.w, careful.w, atol=1e-3)


def test_mixtures_and_losses_of_ones_own_are_refused():
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((20, 4)), rng.standard_normal(20)
    mixed = cw.ERM(A, b, ["squared", "huber"], cw.penalties.GroupL1(0.1, [0, 0, 1, 1]), loss_codes=[0, 1] * 10)
    with pytest.raises(ValueError, match="loss must be one of the library's for penalty=GroupL1"):
        mixed.primal()


def test_results_tell_what_was_done():
    erm, _ = problem()
    objective = erm.primal()
    assert repr(objective).startswith(f"<GroupERM: {GROUPS.max() + 1} blocks of {D} coordinates; dense columns")
    result = cw.solve(objective, "nu_acdm", tol=1e-8, max_passes=1e5)
    assert result.certificate == "duality gap"
    assert result.x is not None
    assert result.w.shape == (D,)
    assert "packed" not in result.storage
    again = cw.solve(objective, "nu_acdm", tol=1e-8, max_passes=1e5)
    np.testing.assert_array_equal(result.w, again.w)


def test_warm_starts_limits_and_interrupts():
    erm, _ = problem("logistic")
    result = cw.solve(erm.primal(), tol=1e-8)
    warm = cw.solve(erm.primal(), tol=1e-8, x0=result.point)
    assert warm.iterations == 0
    few = cw.solve(erm.primal(), tol=0, max_passes=3)
    assert few.status == "max_passes"
    assert few.gap < np.inf

    def ctrl_c(progress):
        if progress.passes > 2:
            raise KeyboardInterrupt

    stopped = interruption(cw.solve, erm.primal(), tol=0, max_passes=100, callback=ctrl_c)
    assert stopped.status == "interrupted"


def test_weights_of_a_method_are_those_of_groups():
    erm, _ = problem(l2=0.05)
    weights = np.linspace(0.5, 2, GROUPS.max() + 1)
    assert cw.solve(erm.primal(), cw.NUACDM(weights=weights), tol=1e-9, max_passes=1e5).converged
    with refused(r"^weights has shape \(23,\); it must have shape \(7,\)"):
        cw.solve(erm.primal(), cw.NUACDM(weights=np.ones(D)))


A_SMALL, B_SMALL = np.eye(4), np.array([1.0, -1.0, 1.0, -1.0])
PAIRS = GroupL1(0.1, [0, 0, 1, 1])


def test_refusals():
    with refused(r"^penalty=GroupL1 ties features together.* Use problem.primal\(\)"):
        cw.ERM(A_SMALL, B_SMALL, penalty=PAIRS).dual()
    with refused(r"^penalty=GroupL1 ties features together"):
        cw.ERM(A_SMALL, B_SMALL, penalty=PAIRS).dual(smoothing=0.1)
    for loss in ("hinge", "absolute", "l2l1"):
        with refused(rf"^loss='{loss}' has a kink, which penalty=GroupL1 cannot be solved with; use a smooth loss"):
            cw.ERM(A_SMALL, B_SMALL, loss=loss, penalty=PAIRS).primal()
    with refused(r"^b has 3 columns, and penalty=GroupL1 takes one; solve a problem for each column"):
        cw.ERM(A_SMALL, np.ones((4, 3)), penalty=PAIRS).primal()
    with refused(r"^lam, l1_ratio and positive belong to a penalty given by name"):
        cw.ERM(A_SMALL, B_SMALL, penalty=PAIRS, positive=True)
    with refused(r"^penalty=GroupL1 without an l2 part gives no w for a y; solve the primal"):
        cw.ERM(A_SMALL, B_SMALL, penalty=PAIRS).primal_point(B_SMALL)
    with refused(r"^kaczmarz solves linear systems only"):
        cw.solve(cw.ERM(A_SMALL, B_SMALL, penalty=PAIRS).primal(), "kaczmarz")


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_the_strongly_convex_form_converges_at_the_predicted_rate(loss):
    """The gap falls per pass by (1 - tau)^(iterations per pass) at least, once the run has begun."""
    erm, _ = problem(loss, l2=0.05, feature_l1=0.01)
    ratios = []
    for seed in range(5):
        result = cw.solve(erm.primal(), "nu_acdm", tol=1e-10, max_passes=1e5, random_state=seed)
        assert result.converged
        assert result.constants.sigma == pytest.approx(0.05)
        h, rate = result.history, result.constants.rate_per_pass
        half = len(h) // 2
        measured = np.log(h.gap[-2] / h.gap[half]) / (h.passes[-2] - h.passes[half])
        ratios.append(measured / np.log(rate))
    assert np.median(ratios) >= 0.95


@pytest.mark.parametrize("kind", ["group", "sparse", "curved"])
@pytest.mark.parametrize("scale", [2.0**-126, 2.0**126])
def test_units_do_not_matter(scale, kind):
    """A in other units, w in theirs: the same steps up to rounding, far from 1 as well."""
    erm, A = problem("logistic", **KINDS[kind])
    penalty = GroupL1(0.05 * scale, GROUPS, erm.penalty.l2 * scale**2, feature_l1=erm.penalty.feature_l1 * scale)
    other = cw.ERM(A * scale, erm.b[:, 0], loss="logistic", penalty=penalty)
    one, two = (cw.solve(p.primal(), tol=1e-9) for p in (erm, other))
    assert one.converged
    assert (one.iterations, one.status) == (two.iterations, two.status)
    np.testing.assert_allclose(two.w * scale, one.w, rtol=1e-6, atol=1e-9)
