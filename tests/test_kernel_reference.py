"""The compiled kernel is the literal algorithm: same stream, same iterates, for every method, storage and precision."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import STORAGES, unequal_rows

import coordwise as cw
from coordwise import kernels, reference, rows, sampling
from coordwise.methods import get_method
from coordwise.schedules import Split
from coordwise.starting import start

BETAS = (0.0, 0.2, 0.5, 0.8, 1.0)
N, D, LAM, STEPS, SEED = 23, 11, 0.05, 600, 12345
TOLERANCE = 1e-10


def compiled(objective, method, steps=STEPS, fold_below=0.3, x0=None, seed=SEED):
    """The kernel after `steps` steps, with folding forced every few of them and the run cut into uneven blocks."""
    schedule = get_method(method).schedule(objective)
    schedule = replace(schedule, plan=replace(schedule.plan, fold_below=fold_below))
    run = start(objective, schedule, seed, objective.start(x0))
    for block in (1, 7, steps - 8):
        run.advance(steps=block)
    assert run.steps == steps
    return run


def last(iterates):
    *_, final = iterates
    return final


def weighted(p, steps=STEPS, seed=SEED):
    return sampling.draw_weighted(seed, sampling.alias_cells(np.asarray(p)), steps).tolist()


def close(actual, desired):
    np.testing.assert_allclose(actual, desired, rtol=0, atol=TOLERANCE * np.abs(desired).max())


@pytest.fixture(params=list(STORAGES))
def ridge(request):
    """The ridge dual (7.1) with everything about it written out by hand."""
    A = unequal_rows(N, D, seed=1, density=0.4)
    b = np.random.default_rng(2).standard_normal(N)
    objective = cw.ERM(STORAGES[request.param](A), b, loss="squared", lam=LAM).dual()
    gram = A @ A.T

    def partial(i, y):
        return (y[i] + b[i]) / N + gram[i] @ y / (LAM * N**2)

    L = 1 / N + (A**2).sum(1) / (LAM * N**2)
    return objective, partial, L


@pytest.mark.parametrize("beta", BETAS)
def test_algorithm_1(ridge, beta):
    objective, partial, L = ridge
    sigma = np.min(1 / N / L**beta)
    p = L ** ((1 - beta) / 2) / np.sum(L ** ((1 - beta) / 2))
    literal = last(reference.nu_acdm(partial, L, np.zeros(N), weighted(p), sigma=sigma, beta=beta))
    close(compiled(objective, cw.NUACDM(beta=beta)).point()[:, 0], literal)
    # a given sigma is honoured
    literal = last(reference.nu_acdm(partial, L, np.zeros(N), weighted(p), sigma=sigma / 7, beta=beta))
    close(compiled(objective, cw.NUACDM(beta=beta, sigma=sigma / 7)).point()[:, 0], literal)


@pytest.mark.parametrize("beta", BETAS)
def test_algorithm_2(ridge, beta):
    objective, partial, L = ridge
    p = L ** ((1 - beta) / 2) / np.sum(L ** ((1 - beta) / 2))
    literal = last(reference.nu_acdm_ns(partial, L, np.zeros(N), weighted(p), beta=beta))
    close(compiled(objective, cw.NUACDMns(beta=beta)).point()[:, 0], literal)
    close(compiled(objective, cw.NUACDM(beta=beta, sigma="adaptive")).point()[:, 0], literal)


def test_algorithms_are_the_general_recursion(ridge):
    _, partial, L = ridge
    x0 = np.random.default_rng(0).standard_normal(N)
    for beta in BETAS:
        p = L ** ((1 - beta) / 2) / np.sum(L ** ((1 - beta) / 2))
        indices = weighted(p)
        one = last(reference.nu_acdm(partial, L, x0, indices, sigma=0.01, beta=beta))
        close(last(reference.linear_coupling(partial, L, x0, indices, p=p, weights=L**beta, sigma=0.01)), one)
        two = last(reference.nu_acdm_ns(partial, L, x0, indices, beta=beta))
        close(last(reference.linear_coupling(partial, L, x0, indices, p=p, weights=L**beta, sigma=None)), two)


def test_any_weights(ridge):
    objective, partial, L = ridge
    weights = np.random.default_rng(3).uniform(0.1, 3, N)
    sigma = np.min(1 / N / weights)
    p = np.sqrt(L / weights) / np.sum(np.sqrt(L / weights))
    literal = last(reference.linear_coupling(partial, L, np.zeros(N), weighted(p), p=p, weights=weights, sigma=sigma))
    close(compiled(objective, cw.NUACDM(weights=weights)).point()[:, 0], literal)


@pytest.mark.parametrize("beta", BETAS)
def test_acdm(ridge, beta):
    objective, partial, L = ridge
    p = reference.acdm_probabilities(L, beta)
    sigma = np.min(1 / N / L**beta)
    for constants in ("published", "proved"):
        proved = constants == "proved"
        literal = last(reference.acdm(partial, L, np.zeros(N), weighted(p), sigma=sigma, beta=beta, proved=proved))
        close(compiled(objective, cw.ACDM(beta=beta, constants=constants)).point()[:, 0], literal)
    literal = last(reference.linear_coupling(partial, L, np.zeros(N), weighted(p), p=p, weights=L**beta, sigma=sigma))
    close(compiled(objective, cw.ACDM(beta=beta, constants="tight")).point()[:, 0], literal)
    literal = last(reference.linear_coupling(partial, L, np.zeros(N), weighted(p), p=p, weights=L**beta, sigma=None))
    close(compiled(objective, cw.ACDMns(beta=beta)).point()[:, 0], literal)
    close(compiled(objective, cw.ACDM(beta=beta, sigma="adaptive")).point()[:, 0], literal)


@pytest.mark.parametrize("beta", [0.0, 0.4])
@pytest.mark.parametrize("constants", ["published", "proved"])
def test_acdm_with_a_proximal_step(beta, constants):
    """The logistic dual: f holds sigma w_i of the curvature of h_i, and the rest of h_i has a proximal step."""
    A, b = unequal_rows(N, D, seed=6, density=0.5), np.sign(np.random.default_rng(7).standard_normal(N))
    objective = cw.ERM(A, b, loss="logistic", lam=LAM).dual()
    L = (A**2).sum(1) / (LAM * N**2) + 4 / N
    sigma = np.min(4 / N / L**beta)
    move = sigma * L**beta
    L_held = L - 4 / N + move

    def partial(i, y):
        return A[i] @ (A.T @ y) / (LAM * N**2) + move[i] * y[i]

    def prox(i, t, theta):
        return objective.coordinates.prox(i, 0, t / theta, 1 / theta - move[i])

    # w and sigma belong to L, p and Theta to the L of what f holds
    p = reference.acdm_probabilities(L_held, beta)
    theta = np.sqrt(sigma / reference.acdm_theta(L_held, beta, proved=constants == "proved"))
    assert theta < p.min()
    x0 = objective.start(0.1 * b)[:, 0]
    x, v = x0.copy(), x0.copy()
    for i in weighted(p):
        y = (x + theta * v) / (1 + theta)
        v_hat = (1 - theta) * v + theta * y
        step = theta / (sigma * p[i] * L[i] ** beta)
        v, x = v_hat.copy(), y.copy()
        v[i] = prox(i, v_hat[i] - step * partial(i, y), step)
        x[i] += theta / p[i] * (v[i] - v_hat[i])
    close(compiled(objective, cw.ACDM(beta=beta, constants=constants), x0=x0).point()[:, 0], x)
    if beta == 0:
        indices = weighted(p)
        literal = last(
            reference.acdm(partial, L_held, x0, indices, sigma=sigma, proved=constants == "proved", prox=prox)
        )
        close(literal, x)


def test_apcg_and_approx(ridge):
    objective, partial, L = ridge
    p = np.full(N, 1 / N)
    literal = last(reference.apcg(partial, L, np.zeros(N), weighted(p), sigma=np.min(1 / N / L)))
    close(compiled(objective, "apcg").point()[:, 0], literal)
    literal = last(reference.linear_coupling(partial, L, np.zeros(N), weighted(p), p=p, weights=L, sigma=None))
    close(compiled(objective, "approx").point()[:, 0], literal)
    close(compiled(objective, cw.NUACDMns(beta=1.0)).point()[:, 0], literal)
    literal = last(reference.approx(partial, L, np.zeros(N), weighted(p)))
    close(compiled(objective, cw.APPROX(start="published")).point()[:, 0], literal)


@pytest.mark.parametrize("beta", BETAS)
def test_rcdm(ridge, beta):
    objective, partial, L = ridge
    p = L ** (1 - beta) / np.sum(L ** (1 - beta))
    literal = last(reference.rcdm(partial, L, np.zeros(N), weighted(p)))
    close(compiled(objective, cw.RCDM(beta=beta)).point()[:, 0], literal)


@pytest.mark.parametrize("order", ["permutation", "uniform", "norms"])
def test_sdca(ridge, order):
    objective, partial, L = ridge
    p = {"uniform": np.full(N, 1 / N), "norms": L / L.sum()}.get(order)
    indices = sampling.draw_permutations(SEED, N, STEPS).tolist() if p is None else weighted(p)
    literal = last(reference.rcdm(partial, L, np.zeros(N), indices))  # L is the exact curvature
    close(compiled(objective, cw.SDCA(order=order)).point()[:, 0], literal)


@pytest.mark.parametrize("storage", STORAGES)
def test_kaczmarz_and_linear_system(storage):
    rng = np.random.default_rng(4)
    A = unequal_rows(N, 5, seed=5)
    x_true = rng.standard_normal(5)
    b = A @ x_true
    objective = cw.LinearSystem(STORAGES[storage](A), b)
    p = (A**2).sum(1) / (A**2).sum()
    literal = last(reference.kaczmarz(A, b, np.zeros(5), weighted(p)))
    close(compiled(objective, "kaczmarz").image()[:, 0], literal)

    L = (A**2).sum(1)
    sigma = np.linalg.svd(A, compute_uv=False)[-1] ** 2
    gram = A @ A.T
    for beta in (0.0, 0.5):
        q = L ** ((1 - beta) / 2) / np.sum(L ** ((1 - beta) / 2))
        y = last(
            reference.nu_acdm(lambda i, y: gram[i] @ y - b[i], L, np.zeros(N), weighted(q), sigma=sigma, beta=beta)
        )
        close(compiled(objective, cw.NUACDM(beta=beta, sigma=sigma)).image()[:, 0], A.T @ y)


LOSSES = ("l2l1", "huber", "absolute", "logistic", "squared_hinge", "smooth_hinge", "hinge", "epsilon_insensitive")


@pytest.mark.parametrize("penalty", ["l2", "elastic_net"])
@pytest.mark.parametrize("loss", LOSSES)
def test_dual_of_every_shape(loss, penalty):
    A = unequal_rows(N, D, seed=6, density=0.5)
    b = np.sign(np.random.default_rng(7).standard_normal(N))
    weight = np.random.default_rng(8).uniform(0.2, 3, N)
    problem = cw.ERM(
        A, b, loss=loss, penalty=penalty, lam=LAM, l1_ratio=0.4 if penalty == "elastic_net" else None,
        sample_weight=weight,
    )  # fmt: skip
    objective = problem.dual()
    W, r = weight.sum(), problem.penalty
    norms = (A**2).sum(1)
    x0 = objective.start(0.1 * b)[:, 0]

    def smooth(i, y):
        return -A[i] @ r.conjugate_gradient(-(A.T @ y) / W) / W

    own = objective.term_curvature
    for method in (cw.NUACDM(beta=0.2), cw.NUACDMns(beta=0.5), cw.RCDM(beta=0.3)):
        strong = isinstance(method, cw.NUACDM) and problem.loss.gamma > 0
        if objective.coordinates.shape.differentiable:
            move, prox = np.zeros(N), None
            L = norms / (r.l2 * W**2) + own

            def partial(i, y):
                return smooth(i, y) + np.sign(y[i]) * max(abs(y[i]) - weight[i], 0) / weight[i] / W + b[i] / W

        else:
            L = norms / (r.l2 * W**2) + (own if strong else 0)
            w = L**method.beta  # the norm; f then holds sigma w_i of the terms' convexity
            move = np.min(own / w) * w if strong else np.zeros(N)
            L = norms / (r.l2 * W**2) + move

            def partial(i, y, move=move):
                return smooth(i, y) + move[i] * y[i]

            def prox(i, t, theta, move=move):
                return objective.coordinates.prox(i, 0, t / theta, 1 / theta - move[i])

        if not strong:
            np.testing.assert_allclose(Split.of(objective, move=False).L, L, rtol=1e-12)
        if isinstance(method, cw.RCDM):
            p = L ** (1 - method.beta)
            literal = last(reference.rcdm(partial, L, x0, weighted(p / p.sum()), prox=prox))
        else:
            w = w if strong else L**method.beta
            p = np.sqrt(L / w)
            p /= p.sum()
            if isinstance(method, cw.NUACDM) and prox is not None and not strong:  # no p below half of uniform
                p = np.maximum(p, 0.5 / N)
                p /= p.sum()
            sigma = np.min(move / w) if strong else None
            literal = last(
                reference.linear_coupling(partial, L, x0, weighted(p), p=p, weights=w, sigma=sigma, prox=prox)
            )
        close(compiled(objective, method, x0=x0).point()[:, 0], literal)


@pytest.mark.parametrize("loss", ["squared", "huber", "logistic", "squared_hinge", "smooth_hinge"])
@pytest.mark.parametrize("penalty", ["l2", "l1", "elastic_net"])
@pytest.mark.parametrize("storage", ["csc", "csr", "dense_f", "dense_c"])
def test_primal(loss, penalty, storage):
    A = unequal_rows(N, D, seed=9, density=0.6)
    b = np.sign(np.random.default_rng(10).standard_normal(N))
    problem = cw.ERM(
        STORAGES[storage](A), b, loss=loss, penalty=penalty, lam=LAM, l1_ratio=0.3 if penalty == "elastic_net" else None
    )
    objective = problem.primal()
    r = problem.penalty
    L = problem.loss.smoothness * (A**2).sum(0) / N
    strong = r.l2 > 0
    prox = None
    L = L + r.l2
    if penalty != "l2":

        def prox(j, t, theta):
            # psi = l1 |w|, plus the l2 part that is not moved into f
            return np.sign(t) * max(abs(t) - theta * r.l1, 0)

    def partial(j, w):
        return A[:, j] @ problem.loss.derivative(A @ w, b) / N + r.l2 * w[j]

    p = np.sqrt(L) / np.sqrt(L).sum()
    if not strong:  # adaptive: no p below half of uniform
        p = np.maximum(p, 0.5 / D)
        p /= p.sum()
    sigma = r.l2 if strong else None
    literal = last(
        reference.linear_coupling(partial, L, np.zeros(D), weighted(p), p=p, weights=np.ones(D), sigma=sigma, prox=prox)
    )
    close(compiled(objective, cw.NUACDM()).point()[:, 0], literal)


def test_curvature_moved_by_weights():
    """NUACDM(weights=w, sigma=1) moves w_i out of h_i: the curvature weights of the logistic dual."""
    A = unequal_rows(N, D, seed=11)
    b = np.sign(np.random.default_rng(12).standard_normal(N))
    objective = cw.ERM(A, b, loss="logistic", lam=LAM).dual()
    weights = np.random.default_rng(13).uniform(4, 9, N) / N
    L = (A**2).sum(1) / (LAM * N**2) + weights
    p = np.sqrt(L / weights) / np.sqrt(L / weights).sum()
    gram = A @ A.T
    literal = last(
        reference.linear_coupling(
            lambda i, y: gram[i] @ y / (LAM * N**2) + weights[i] * y[i],
            L,
            np.zeros(N),
            weighted(p),
            p=p,
            weights=weights,
            sigma=1.0,
            prox=lambda i, t, theta: objective.coordinates.prox(i, 0, t / theta, 1 / theta - weights[i]),
        )
    )
    close(compiled(objective, cw.NUACDM(weights=weights, sigma=1.0)).point()[:, 0], literal)


@pytest.mark.parametrize("method", ["nu_acdm", "nu_acdm_ns", "sdca"])
def test_single_precision_data(method):
    """float32 data are exact float64 numbers: the run is the float64 run on them."""
    A = unequal_rows(N, D, seed=14, density=0.5).astype(np.float32)
    b = np.random.default_rng(15).standard_normal(N)
    single = compiled(cw.ERM(A, b, lam=LAM).dual(), method).point()
    double = compiled(cw.ERM(A.astype(np.float64), b, lam=LAM).dual(), method).point()
    np.testing.assert_array_equal(single, double)


@pytest.mark.parametrize("method", ["nu_acdm", "nu_acdm_ns", "acdm", "apcg"])
def test_folding_changes_nothing(method):
    A = unequal_rows(N, D, seed=16)
    b = np.random.default_rng(17).standard_normal(N)
    objective = cw.ERM(A, b, lam=LAM).dual()
    often, never = (compiled(objective, method, fold_below=f).point() for f in (0.9, 1e-60))
    close(often, never)


def ended(generator):
    """The last iterate of a generator, and what it returns."""
    final = None
    while True:
        try:
            final = next(generator)
        except StopIteration as stop:
            return final, stop.value


def hand_over(run, schedule, fold_below=0.3):
    run.replan(replace(schedule.plan, fold_below=fold_below), schedule.cells)


@pytest.mark.parametrize("second", ["strong", "weak"])
@pytest.mark.parametrize("first", ["strong", "weak"])
def test_another_plan_goes_on_from_y_and_z(ridge, first, second):
    objective, partial, L = ridge
    kinds = {
        "strong": (cw.NUACDM(weights=L**0.3, sigma=0.02), L**0.3, 0.02),
        "weak": (cw.NUACDMns(beta=0.8), L**0.8, None),
    }
    y, z, done, run = np.zeros(N), None, 0, None
    for name, count in ((first, 150), (second, 333)):
        method, weights, sigma = kinds[name]
        p = np.sqrt(L / weights) / np.sqrt(L / weights).sum()
        cells = sampling.alias_cells(p)
        indices = sampling.draw_weighted(SEED, cells, count, first=done).tolist()
        z = z if sigma else None  # Algorithm 2 begins with tau = 1 and goes on from y alone
        y, z = ended(reference.linear_coupling(partial, L, y, indices, p=p, weights=weights, sigma=sigma, z0=z))
        done += count
        if run is None:
            schedule = method.schedule(objective)
            run = start(objective, schedule, SEED, objective.start(None))
        else:
            hand_over(run, method.schedule(objective))
        run.advance(steps=count)
        close(run.point()[:, 0], y)
    close(run.image(), objective.rows.combine(run.point()))


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_another_plan_with_a_proximal_step(loss):
    A = unequal_rows(N, D, seed=9, density=0.6)
    b = np.sign(np.random.default_rng(10).standard_normal((N, 5)))
    objective = cw.ERM(A, b, loss=loss, lam=LAM).dual()
    norms = (A**2).sum(1) / (LAM * N**2)
    gram = A @ A.T / (LAM * N**2)
    own = objective.term_curvature
    literal, state = [], []
    for k in range(5):
        y, z, done = np.zeros(N), None, 0
        for exponent, count in ((0.5, 100), (0.0, 200)):
            w = own ** (1 - exponent) * (norms + own) ** exponent
            sigma = np.min(own / w) if exponent == 0 else 1.0
            move = sigma * w
            L = norms + move
            p = np.sqrt(L / w) / np.sqrt(L / w).sum()
            indices = sampling.draw_weighted(SEED, sampling.alias_cells(p), count, first=done).tolist()
            steps = reference.linear_coupling(
                lambda i, y, move=move: gram[i] @ y + move[i] * y[i],
                L,
                y,
                indices,
                p=p,
                weights=w,
                sigma=sigma,
                prox=lambda i, t, theta, move=move, k=k: objective.coordinates.prox(
                    i, k, t / theta, 1 / theta - move[i]
                ),
                z0=z,
            )
            y, z = ended(steps)
            done += count
            if k == 0:
                state.append((cw.NUACDM(weights=w, sigma=sigma), count))
        literal.append(y)
    (method, count), (other, more) = state
    run = start(objective, method.schedule(objective), SEED, objective.start(None), threads=2)
    run.advance(steps=count)
    hand_over(run, other.schedule(objective))
    run.advance(steps=more)
    close(run.point(), np.column_stack(literal))


def test_another_plan_of_the_proximal_form_goes_on_with_its_momentum():
    """As when a set of coordinates grows: y, z and tau are those of the step before; after a restart they are not."""
    A = unequal_rows(N, D, seed=9, density=0.6)
    b = np.random.default_rng(10).standard_normal(N)
    objective = cw.ERM(A, b, penalty="l1", lam=LAM).primal()
    L = (A**2).sum(0) / N
    others = np.random.default_rng(11).uniform(0.5, 2.0, D)

    def goes_on(restarted):
        y, z, tau, done, run = np.zeros(D), None, 1.0, 0, None
        for weights, count in ((np.ones(D), 150), (others, 333)):
            method = cw.NUACDM(weights=weights, sigma="adaptive")
            p = np.sqrt(L / weights) / np.sqrt(L / weights).sum()
            p = np.maximum(p, 0.5 / D)
            p /= p.sum()
            indices = sampling.draw_weighted(SEED, sampling.alias_cells(p), count, first=done).tolist()
            steps = reference.linear_coupling(
                lambda j, w: A[:, j] @ (A @ w - b) / N,
                L,
                y,
                indices,
                p=p,
                weights=weights,
                sigma=None,
                prox=lambda j, t, theta: np.sign(t) * max(abs(t) - theta * LAM, 0),
                z0=z,
                tau0=tau,
            )
            y, z = ended(steps)
            tau = min(tau, p.min())
            for _ in range(count):
                tau = (np.sqrt(tau**4 + 4 * tau**2) - tau**2) / 2
            done += count
            if run is None:
                run = start(objective, method.schedule(objective), SEED, objective.start(None))
            else:
                hand_over(run, method.schedule(objective))
            run.advance(steps=count)
            close(run.point()[:, 0], y)
            if restarted:
                run.restart()
                z, tau = None, 1.0

    goes_on(restarted=False)
    goes_on(restarted=True)


def test_another_plan_of_permutations_keeps_the_place_in_the_stream(ridge):
    objective, *_ = ridge
    schedule = cw.SDCA().schedule(objective)
    one, other = (start(objective, schedule, SEED, objective.start(None)) for _ in range(2))
    one.advance(steps=2 * N + 5)
    other.advance(steps=N + 7)
    other.replan(schedule.plan, schedule.cells)
    other.advance(steps=N - 2)
    np.testing.assert_array_equal(one.point(), other.point())
    with pytest.raises(ValueError, match="accelerated"):
        other.replan(cw.NUACDM().schedule(objective).plan, None)


@pytest.mark.parametrize("method", ["nu_acdm", "sdca"])
def test_settled_coordinates_stay_where_they_are_put(ridge, method):
    objective, *_ = ridge
    schedule = cw.methods.get_method(method).schedule(objective)
    run = start(objective, schedule, SEED, objective.start(None))
    run.advance(steps=200)
    x = run.point()
    which = np.array([1, 4, N - 1], np.uint32)
    to = np.full_like(x, np.nan)
    to[which] = [[0.5], [-1.0], [0.0]]
    run.settle(which, to)
    x[which] = to[which]
    close(run.point(), x)
    close(run.image(), objective.image(x))
    rest = np.setdiff1d(np.arange(N), which).astype(np.uint32)
    if method == "nu_acdm":  # drawn no more, and z = y for them: nothing moves them
        weights = np.ones(N)
        weights[which] = np.inf
        held = cw.NUACDM(weights=weights).schedule(objective)
        run.replan(held.plan, held.cells)
    else:
        run.replan(schedule.plan, None, rest)
    before = objective.certify(run.point()).value
    run.advance(steps=50 * N)
    np.testing.assert_array_equal(run.point()[which], to[which])
    assert np.all(run.point()[rest] != x[rest])
    assert np.all(objective.certify(run.point()).value < before)
    close(run.image(), objective.image(run.point()))
    with pytest.raises(ValueError, match="out of range"):
        run.settle(np.array([N], np.uint32), to)
    with pytest.raises(ValueError, match="shape"):
        run.settle(which, to[1:])


def test_products_of_a_run_come_with_its_certificate(ridge):
    objective, *_ = ridge
    run = compiled(objective, "nu_acdm")
    g = np.empty((N, 1))
    certificate = objective.certify_run(run, g)
    assert certificate.gap == objective.certify_run(run).gap
    w = objective.solution(run.image())
    close(g, -objective.rows.dots(w) / N)


def test_restart_forgets_the_momentum(ridge):
    objective, partial, L = ridge
    run = compiled(objective, "nu_acdm_ns")
    middle = run.point()[:, 0]
    run.restart()
    close(run.point()[:, 0], middle)
    run.advance(steps=200)
    p = np.sqrt(L) / np.sqrt(L).sum()
    indices = weighted(p, STEPS + 200)[STEPS:]
    close(run.point()[:, 0], last(reference.nu_acdm_ns(partial, L, middle, indices)))


def test_resync_and_image(ridge):
    objective, _, _ = ridge
    run = compiled(objective, "nu_acdm")
    x, v = run.point(), run.image()
    close(v, objective.image(x))
    run.resync()
    close(run.image(), v)
    np.testing.assert_array_equal(run.point(), x)


@pytest.mark.parametrize("values", ["counts", "reals"])
@pytest.mark.parametrize("width", [300, 70_000])
@pytest.mark.parametrize("method", ["nu_acdm", "nu_acdm_ns", "sdca"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("outputs", [1, 7])
def test_packed_rows_change_nothing(values, width, method, dtype, outputs):
    """Narrow indices and values in single precision where that is exact: the same numbers, so the same bits."""
    rng = np.random.default_rng(0)
    A = sp.random_array((500, width), density=40_000 / 500 / width * 2, rng=rng, format="csr", dtype=np.float64)
    A.data = np.ceil(A.data * 5) if values == "counts" else A.data
    A = sp.csr_array(A.astype(dtype))
    objective = cw.ERM(A, rng.standard_normal((500, outputs)), lam=0.1).dual()
    single = values == "counts" or dtype == np.float32
    assert objective.rows.packing == (kernels.PACK_IN_SINGLE if single else kernels.PACK_AS_IT_IS)
    schedule = get_method(method).schedule(objective)
    points = []
    for pack in (True, False):
        run = start(objective, schedule, SEED, objective.start(None), pack=pack)
        run.advance(steps=3000)
        run.restart()
        run.advance(steps=500)
        run.resync()
        points.append((run.point(), run.image(), run.entries))
    for packed, apart in zip(*points, strict=True):
        np.testing.assert_array_equal(packed, apart)


def test_large_files_are_not_packed(tmp_path, monkeypatch):
    A = sp.random_array((400, 300), density=0.6, rng=np.random.default_rng(0), format="csr")
    mapped = np.memmap(tmp_path / "data", dtype=np.float64, mode="w+", shape=A.data.shape)
    mapped[:] = A.data
    from_file = sp.csr_array((mapped, A.indices, A.indptr), shape=A.shape)
    assert cw.ERM(A, np.ones(400), lam=1.0).dual().rows.packing
    assert "packed" in cw.solve(cw.ERM(A, np.ones(400), lam=1.0).dual(), "nu_acdm").storage
    assert "packed" not in cw.solve(cw.ERM(A, np.ones(400), lam=1.0).dual()).storage  # a few passes of exact steps
    assert not cw.ERM(sp.csc_array(A), np.ones(400), lam=1.0).dual().rows.packing  # copied once already
    assert cw.ERM(from_file, np.ones(400), lam=1.0).dual().rows.packing
    monkeypatch.setattr(rows, "LARGEST_MAPPED", A.data.nbytes)
    assert not cw.ERM(from_file, np.ones(400), lam=1.0).dual().rows.packing
    assert cw.ERM(A, np.ones(400), lam=1.0).dual().rows.packing
