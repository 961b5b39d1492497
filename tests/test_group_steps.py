"""Blocks of coordinates (footnote 11): the compiled steps are the literal algorithms, and these keep the theorems."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import STORAGES
from group_cases import GROUPS, D, N, matrix, problem, prox_by_hand, smooth_gradient

import coordwise as cw
from coordwise import kernels, reference, sampling, theory
from coordwise.methods import get_method
from coordwise.starting import start

BETAS = (0.0, 0.5, 1.0)
STEPS, SEED = 500, 4321
COUNT = GROUPS.max() + 1
BLOCKS = [np.flatnonzero(g == GROUPS) for g in range(COUNT)]


def compiled(objective, method, steps=STEPS, fold_below=0.3, x0=None):
    """The kernel after `steps` steps, with folding forced every few of them and the run cut into uneven blocks."""
    schedule = get_method(method).schedule(objective)
    schedule = replace(schedule, plan=replace(schedule.plan, fold_below=fold_below))
    run = start(objective, schedule, SEED, objective.start(x0))
    for part in (1, 7, steps - 8):
        run.advance(steps=part)
    assert run.steps == steps
    return run


def drawn(p, steps=STEPS):
    return sampling.draw_weighted(SEED, sampling.alias_cells(np.asarray(p)), steps).tolist()


def last(iterates):
    *_, final = iterates
    return final


def close(actual, desired):
    np.testing.assert_allclose(actual, desired, rtol=0, atol=1e-10 * np.abs(desired).max())


def distribution(values):
    return values / values.sum()


def block_smoothness(H, blocks=BLOCKS):
    """The largest eigenvalue of each diagonal block of a Hessian bound."""
    return np.array([np.linalg.eigvalsh(H[np.ix_(at, at)])[-1] for at in blocks])


@pytest.fixture(params=list(STORAGES))
def ridge(request):
    """Ridge regression, f smooth as a whole: GroupL1 without norms, so that steps are those of Algorithms 1 and 2."""
    erm, A = problem(storage=request.param, l1=0.0, l2=0.02)
    H = A.T @ A / N + 0.02 * np.eye(D)

    def partial(i, w):
        return (smooth_gradient(erm, A, w) + 0.02 * w)[BLOCKS[i]]

    return erm.primal(), partial, H


@pytest.mark.parametrize("beta", BETAS)
def test_algorithms_1_and_2(ridge, beta):
    objective, partial, H = ridge
    L = block_smoothness(H)
    p, sigma = distribution(L ** ((1 - beta) / 2)), np.min(0.02 / L**beta)
    literal = last(reference.nu_acdm(partial, L, np.zeros(D), drawn(p), sigma=sigma, beta=beta, blocks=BLOCKS))
    close(compiled(objective, cw.NUACDM(beta=beta)).point()[:, 0], literal)
    literal = last(reference.nu_acdm_ns(partial, L, np.zeros(D), drawn(p), beta=beta, blocks=BLOCKS))
    close(compiled(objective, cw.NUACDMns(beta=beta)).point()[:, 0], literal)


def test_the_other_methods(ridge):
    objective, partial, H = ridge
    L, x0 = block_smoothness(H), np.random.default_rng(0).standard_normal(D)
    uniform = np.full(COUNT, 1 / COUNT)
    indices = drawn(distribution(L))
    close(
        compiled(objective, "rcdm", x0=x0).point()[:, 0],
        last(reference.rcdm(partial, L, x0, indices, blocks=BLOCKS)),
    )
    literal = last(reference.apcg(partial, L, x0, drawn(uniform), sigma=np.min(0.02 / L), blocks=BLOCKS))
    close(compiled(objective, "apcg", x0=x0).point()[:, 0], literal)
    options = dict(weights=L, sigma=None, blocks=BLOCKS)
    literal = last(reference.linear_coupling(partial, L, x0, drawn(uniform), p=uniform, **options))
    close(compiled(objective, "approx", x0=x0).point()[:, 0], literal)
    p = reference.acdm_probabilities(L)
    options = dict(weights=np.ones(COUNT), sigma=0.02, blocks=BLOCKS)
    literal = last(reference.linear_coupling(partial, L, x0, drawn(p), p=p, **options))
    close(compiled(objective, cw.ACDM(constants="tight"), x0=x0).point()[:, 0], literal)
    literal = last(reference.acdm(partial, L, x0, drawn(p), sigma=0.02, proved=True, blocks=BLOCKS))
    close(compiled(objective, "acdm", x0=x0).point()[:, 0], literal)


def proximal(storage, loss, **penalty):
    """An objective with norms, and what the literal algorithms need: partial, the blocks' L without l2, and prox."""
    weighted = loss == "huber"
    erm, A = problem(loss, storage, weighted=weighted, **penalty)
    s = np.ones(N) if erm.sample_weight is None else erm.sample_weight
    L = block_smoothness((A * s[:, None]).T @ A / (erm.total * erm.loss.gamma))

    def partial(i, w):
        return smooth_gradient(erm, A, w)[BLOCKS[i]]

    def prox(i, t, theta, less=0.0):
        """Of psi_i - less |.|^2/2."""
        full = np.zeros(D)
        full[BLOCKS[i]] = t / (1 - theta * less)
        return prox_by_hand(full, theta / (1 - theta * less), erm.penalty)[BLOCKS[i]]

    return erm.primal(), partial, L, prox


@pytest.mark.parametrize("loss", ["squared", "logistic", "huber"])
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("feature_l1", [0.0, 0.02])
def test_proximal_forms(loss, storage, feature_l1):
    weights = np.array([1.0, 0.5, 2.0, 0.1, 1.0, 1.5, 0.7])
    objective, partial, L, prox = proximal(storage, loss, l1=0.15, weights=weights, feature_l1=feature_l1)
    x0 = np.random.default_rng(2).standard_normal(D)
    options = dict(prox=prox, blocks=BLOCKS)
    p = distribution(np.sqrt(L))
    literal = last(
        reference.linear_coupling(partial, L, x0, drawn(p), p=p, weights=np.ones(COUNT), sigma=None, **options)
    )
    close(compiled(objective, cw.NUACDMns(), x0=x0).point()[:, 0], literal)
    literal = last(reference.rcdm(partial, L, x0, drawn(distribution(L)), **options))
    assert 0 < np.count_nonzero(literal) < D  # the prox has had both its cases
    close(compiled(objective, "rcdm", x0=x0).point()[:, 0], literal)
    indices = sampling.draw_permutations(SEED, COUNT, STEPS).tolist()
    literal = last(reference.rcdm(partial, L, x0, indices, **options))
    close(compiled(objective, "sdca", x0=x0).point()[:, 0], literal)


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("storage", ["csc", "dense_f"])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_the_strongly_convex_form_holds_the_penalty_s_convexity(loss, storage, beta):
    """f holds sigma w_b = sigma L_b^beta of the l2 that the proximal step has in whole (`Split.holding`)."""
    l2 = 0.05
    objective, partial, smooth, prox = proximal(storage, loss, l2=l2, feature_l1=0.01)
    L = smooth + l2
    sigma, weights = np.min(l2 / L**beta), L**beta
    moved = sigma * weights
    p = distribution(np.sqrt((smooth + moved) / weights))
    literal = last(
        reference.linear_coupling(
            lambda i, w: partial(i, w) + moved[i] * w[BLOCKS[i]],
            smooth + moved,
            np.zeros(D),
            drawn(p),
            p=p,
            weights=weights,
            sigma=sigma,
            prox=lambda i, t, theta: prox(i, t, theta, less=moved[i]),
            blocks=BLOCKS,
        )
    )
    close(compiled(objective, cw.NUACDM(beta=beta)).point()[:, 0], literal)


@pytest.mark.parametrize("method", ["nu_acdm", "nu_acdm_ns", "rcdm", "sdca"])
@pytest.mark.parametrize("storage", STORAGES)
def test_blocks_of_one_coordinate_are_the_scalar_kernel(method, storage):
    erm, _ = problem(storage=storage, groups=np.arange(D), l2=0.02)
    scalar = cw.ERM(erm.A, erm.b[:, 0], penalty=cw.penalties.ElasticNet(0.05, 0.02)).primal()
    one, other = (compiled(objective, method) for objective in (erm.primal(), scalar))
    assert one.entries == other.entries
    np.testing.assert_allclose(one.point(), other.point(), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_smoothness_is_the_largest_eigenvalue_of_the_block(storage, loss):
    for weighted in (False, True):
        erm, A = problem(loss, storage, weighted=weighted)
        s = np.ones(N) if erm.sample_weight is None else erm.sample_weight
        bound = block_smoothness((A * s[:, None]).T @ A / (erm.total * erm.loss.gamma))
        L = erm.primal().curvature
        np.testing.assert_allclose(L, bound, rtol=1e-12)
        assert np.all(bound * (1 - 1e-15 * D) <= L)
        rng = np.random.default_rng(0)
        for _ in range(50):  # the definition, with steps of every length
            w, g = rng.standard_normal(D), rng.integers(COUNT)
            h = rng.standard_normal(len(BLOCKS[g])) * 10 ** rng.uniform(-3, 1)
            moved = w.copy()
            moved[BLOCKS[g]] += h
            change = (smooth_gradient(erm, A, moved) - smooth_gradient(erm, A, w))[BLOCKS[g]]
            assert np.linalg.norm(change) <= L[g] * np.linalg.norm(h) * (1 + 1e-9)


def test_lemma_5_3_and_5_6_for_blocks():
    """The expectation over blocks as a finite sum, at points of a run of Algorithm 1."""
    rng = np.random.default_rng(5)
    A = matrix(3)
    H, c = A.T @ A / N + 0.05 * np.eye(D), rng.standard_normal(D)
    best = np.linalg.solve(H, c)
    L = block_smoothness(H)
    for beta in BETAS:
        spread = (L**beta)[GROUPS]
        sigma = np.linalg.eigvalsh(H / np.sqrt(np.outer(spread, spread)))[0]
        S, p = np.sum(L ** ((1 - beta) / 2)), distribution(L ** ((1 - beta) / 2))
        tau = 2 / (1 + np.sqrt(4 * S**2 / sigma + 1))
        eta = 1 / (tau * S**2)
        y = z = 3 * rng.standard_normal(D)
        above = lambda v: (v - best) @ H @ (v - best) / 2  # noqa: E731
        distance = lambda v, spread=spread: spread @ (v - best) ** 2 / 2  # noqa: E731
        for _ in range(40):
            x = tau * z + (1 - tau) * y
            g = H @ x - c
            ys, zs = [], []
            for b, at in enumerate(BLOCKS):
                step = np.where(b == GROUPS, g, 0.0)
                ys.append(x - step / L[b])
                zs.append((z + eta * sigma * x - eta / (p[b] * L[b] ** beta) * step) / (1 + eta * sigma))
                assert above(ys[b]) <= above(x) - g[at] @ g[at] / (2 * L[b]) + 1e-12 * (1 + above(x))  # 5.3
            terms = (
                (1 - tau) * eta / tau * above(y),
                -eta / tau * (p @ [above(v) for v in ys]),
                distance(z),
                -(1 + eta * sigma) * (p @ [distance(v) for v in zs]),
            )
            assert sum(terms) >= -1e-11 * (1 + sum(map(abs, terms)))  # 5.6
            b = rng.choice(COUNT, p=p)
            y, z = ys[b], zs[b]


@pytest.mark.parametrize("beta", BETAS)
def test_theorems_5_1_and_6_1_for_blocks(beta):
    """The compiled runs on ridge regression, averaged over seeds, against the bounds with the blocks' L."""
    erm, A = problem(l1=0.0, l2=0.02)
    objective, b = erm.primal(), erm.b[:, 0]
    H = A.T @ A / N + 0.02 * np.eye(D)
    best = np.linalg.solve(H, A.T @ b / N)
    L = block_smoothness(H)
    spread = (L**beta)[GROUPS]
    sigma = np.linalg.eigvalsh(H / np.sqrt(np.outer(spread, spread)))[0]
    distance = np.sqrt(spread @ best**2)
    least = erm.value(best)

    def errors(method, T):
        found = []
        for seed in range(40):
            run = start(objective, method.schedule(objective), seed, objective.start(None))
            run.advance(steps=T)
            found.append(erm.value(run.point()[:, 0]) - least)
        return np.mean(found) - 2 * np.std(found) / np.sqrt(len(found)), np.mean(found)

    gap0 = erm.value(np.zeros(D)) - least
    for T in (20, 200, 600):
        low, mean = errors(cw.NUACDM(beta=beta, sigma=sigma), T)
        assert low <= theory.strongly_convex_bound(L, sigma=sigma, beta=beta, T=T, gap0=gap0, distance=distance) + 1e-13
        low, _ = errors(cw.NUACDMns(beta=beta), T)
        assert low <= theory.ns_bound(L, beta=beta, T=T, distance=distance)
    assert mean < gap0 / 100


def test_constants_are_those_of_groups():
    erm, A = problem(l1=0.0, l2=0.02)
    c = cw.solve(erm.primal(), cw.NUACDM(beta=0.4)).constants
    L = block_smoothness(A.T @ A / N + 0.02 * np.eye(D))
    assert pytest.approx(np.sum(L**0.3)) == c.S
    assert pytest.approx(c.S**2) == c.Theta
    assert (c.L_min, c.L_max, c.L_sum) == pytest.approx((L.min(), L.max(), L.sum()))
    sizes = np.bincount(GROUPS)
    assert c.iterations_per_pass == pytest.approx(D / (distribution(L**0.3) @ sizes))
    assert c.speedup == pytest.approx(theory.speedup(L, beta=0.4))


@pytest.mark.parametrize("storage", ["csc", "dense_f"])
def test_passes_count_the_entries_of_groups(storage):
    erm, _ = problem(storage=storage)
    objective = erm.primal()
    run = compiled(objective, "rcdm", steps=100)
    lengths = np.array([objective.rows.lengths[at].sum() for at in BLOCKS])
    indices = drawn(distribution(objective.curvature), 100)
    assert run.entries == lengths[indices].sum()
    result = cw.solve(objective, "rcdm", tol=0, max_passes=10)
    assert 10 <= result.passes < 10 + lengths.max() / objective.rows.nnz + 1e-12


@pytest.mark.parametrize("method", ["sdca", "nu_acdm"])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_a_known_image_resync_settle_and_restart(method, loss):
    erm, _ = problem(loss, l2=0.01)
    objective = erm.primal()
    x = np.random.default_rng(1).standard_normal((D, 1))
    schedule = get_method(method).schedule(objective)
    one, other = (start(objective, schedule, 0, x, image=image) for image in (None, objective.image(x)))
    for run in (one, other):
        run.advance(steps=100)
    np.testing.assert_allclose(other.point(), one.point(), rtol=1e-11, atol=1e-13)
    places, here = np.full((D, 1), 0.25), one.point()
    one.settle(np.array([1, 4], np.uint32), places)
    inside = np.isin(GROUPS, [1, 4])
    np.testing.assert_allclose(one.point()[inside], 0.25, rtol=1e-12)
    np.testing.assert_array_equal(one.point()[~inside], here[~inside])
    np.testing.assert_allclose(one.image(), objective.image(one.point()), rtol=1e-11, atol=1e-13)
    before = one.image()
    one.resync()
    np.testing.assert_allclose(one.image(), before, rtol=1e-11, atol=1e-13)
    here = one.point()
    one.restart()
    np.testing.assert_allclose(one.point(), here, rtol=1e-12, atol=1e-14)


def test_replanned_runs_are_the_recursion_continued():
    """Other probabilities from the same y, z and tau (the proximal ns form), on some of the groups."""
    objective, partial, L, prox = proximal("dense_f", "squared")
    weights = np.where(np.arange(COUNT) % 2 == 0, 1.0, np.inf)
    first, second = cw.NUACDMns(), cw.NUACDM(sigma="adaptive", weights=weights)
    schedules = [method.schedule(objective) for method in (first, second)]
    run = start(objective, schedules[0], SEED, objective.start(None))
    run.advance(steps=100)
    run.replan(schedules[1].plan, schedules[1].cells)
    run.advance(steps=100)
    ps = [distribution(np.sqrt(L)), np.where(np.isinf(weights), 0.0, np.sqrt(L))]
    ps[1] = distribution(ps[1])
    ps[1] = distribution(np.where(np.isinf(weights), 0, np.maximum(ps[1], 0.5 / np.isfinite(weights).sum())))
    indices = drawn(ps[0], 100)
    indices += sampling.draw_weighted(SEED, sampling.alias_cells(ps[1]), 100, first=100).tolist()
    options = dict(sigma=None, prox=prox, blocks=BLOCKS)
    generator = reference.linear_coupling(
        partial, L, np.zeros(D), indices[:100], p=ps[0], weights=np.ones(COUNT), **options
    )
    while True:
        try:
            y = next(generator)
        except StopIteration as stop:
            z = stop.value
            break
    tau = ps[0].min()
    for _ in range(100):
        tau = (np.sqrt(tau**4 + 4 * tau**2) - tau**2) / 2
    held = np.where(np.isinf(weights), 0.0, L)
    finite = np.where(np.isinf(weights), 1.0, weights)
    literal = last(
        reference.linear_coupling(partial, held, y, indices[100:], p=ps[1], weights=finite, z0=z, tau0=tau, **options)
    )
    close(run.point()[:, 0], literal)


WRONG = {
    "a block must have 1 to 64": dict(starts=[0, 0, D]),
    "blocks must be of all coordinates": dict(starts=[0, 3, D - 1]),
    "a coordinate must be in one block": dict(order=[0] * D),
    "the arrays of the blocks do not fit": dict(order=list(range(D - 1))),
}


@pytest.mark.parametrize("message", WRONG)
def test_the_core_refuses_what_is_no_partition(message):
    objective = problem(groups=np.repeat([0, 1], [3, D - 3]))[0].primal()
    arrays = {"starts": [0, 3, D], "order": list(range(D))} | WRONG[message]
    objective.blocks = kernels.Blocks(
        *(np.array(arrays[name], np.uint32) for name in ("starts", "order")), np.ones(2), 0.0
    )
    with pytest.raises(ValueError, match=message):
        start(objective, get_method("sdca").schedule(objective), 0, objective.start(None))


def test_blocks_of_64_and_of_65():
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((80, 65)), rng.standard_normal(80)
    groups = np.append(np.zeros(64, int), 1)
    result = cw.solve(cw.ERM(A, b, penalty=cw.penalties.GroupL1(0.01, groups, l2=0.1)).primal(), tol=1e-10)
    assert result.converged
    with pytest.raises(ValueError, match=r"^groups has 65 features in group 0; .* up to 64 features"):
        cw.ERM(A, b, penalty=cw.penalties.GroupL1(0.01, np.zeros(65, int))).primal()
