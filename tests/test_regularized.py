"""Footnote 3: methods for strongly convex objectives where there is no strong convexity."""

import math

import numpy as np
import pytest
from conftest import STORAGES, unequal_rows

import coordwise as cw
from coordwise import reference, sampling
from coordwise.regularized import STEPS, WithSquare
from coordwise.starting import start

N, D, LAM = 23, 11, 0.05


@pytest.fixture
def l2l1():
    """The dual of l2-l1 penalty regression, (7.2), by hand, with its minimum and a minimiser."""
    A = unequal_rows(N, D, seed=1, density=0.6)
    b = np.random.default_rng(2).standard_normal(N)
    objective = cw.ERM(A, b, loss="l2l1", lam=LAM).dual()
    gram = A @ A.T

    def value(y):
        smooth = np.maximum(np.abs(y) - 1, 0) ** 2 / 2
        return np.sum(smooth + b * y) / N + y @ gram @ y / (2 * LAM * N**2)

    def partial(i, y):
        return (np.sign(y[i]) * max(abs(y[i]) - 1, 0) + b[i]) / N + gram[i] @ y / (LAM * N**2)

    best = cw.solve(objective, tol=1e-14, max_passes=1e5)
    return objective, value, partial, np.diag(gram) / (LAM * N**2) + 1 / N, best


def weighted(p, steps, seed):
    return sampling.draw_weighted(seed, sampling.alias_cells(np.asarray(p)), steps).tolist()


@pytest.mark.parametrize("constants", ["published", "proved", "tight"])
def test_a_stage_is_the_method_on_the_regularised_objective(l2l1, constants):
    objective, _, partial, L, _ = l2l1
    sigma, center = 0.003, np.random.default_rng(3).standard_normal(N)
    method = cw.ACDM(constants=constants)
    schedule = method.schedule(stage := WithSquare(objective, sigma, center[:, None]))
    assert schedule.constants.sigma == pytest.approx(sigma)
    run = start(stage, schedule, 5, np.zeros((N, 1)))
    run.advance(steps=400)

    def regularised(i, y):
        return partial(i, y) + sigma * (y[i] - center[i])

    p = reference.acdm_probabilities(L + sigma)
    indices = weighted(p, 400, 5)
    if constants == "tight":
        iterates = reference.linear_coupling(
            regularised, L + sigma, np.zeros(N), indices, p=p, weights=np.ones(N), sigma=sigma
        )
    else:
        iterates = reference.acdm(
            regularised, L + sigma, np.zeros(N), indices, sigma=sigma, proved=constants == "proved"
        )
    *_, literal = iterates
    np.testing.assert_allclose(run.point()[:, 0], literal, rtol=0, atol=1e-11)
    np.testing.assert_allclose(run.image()[:D], objective.image(run.point()), atol=1e-11)


@pytest.mark.parametrize("beta", [0.3, 1.0])
def test_the_norm_of_the_square(l2l1, beta):
    """sigma w_i is added to L_i, and the strong convexity is that in the norm of the larger L_i."""
    objective, _, _, L, _ = l2l1
    stage = WithSquare(objective, 0.01, np.zeros((N, 1)), beta)
    constants = cw.ACDM(beta=beta).schedule(stage).constants
    more = L + 0.01 * L**beta
    assert constants.L_sum == pytest.approx(more.sum())
    assert constants.sigma == pytest.approx(np.min(0.01 * L**beta / more**beta))
    first = cw.Regularized(cw.ACDM(beta=beta)).schedule(objective).constants.sigma
    assert 0.3 * np.mean(L ** (1 - beta)) < first <= np.mean(L ** (1 - beta))
    result = cw.solve(objective, cw.Regularized(cw.ACDM(beta=beta)), tol=1e-4, max_passes=1e5)
    assert result.converged


@pytest.mark.parametrize("storage", STORAGES)
def test_value_and_gap_are_those_of_the_objective_itself(storage):
    A, b = unequal_rows(N, D, seed=1, density=0.6), np.random.default_rng(2).standard_normal(N)
    problem = cw.ERM(STORAGES[storage](A), b, loss="l2l1", lam=LAM)
    result = cw.solve(problem.dual(), cw.Regularized(sigma=0.1), tol=0, max_passes=40)
    assert result.value == pytest.approx(problem.dual_value(result.y), rel=1e-10)
    assert result.gap == pytest.approx(problem.gap(result.x, result.y), rel=1e-8)
    assert result.primal == pytest.approx(problem.value(result.w), rel=1e-10)
    assert result.passes == pytest.approx(40, rel=0.02)
    assert np.all(np.diff(result.history.passes) > 0)
    assert result.history.passes[-1] == pytest.approx(result.passes)


def test_footnote_3_with_the_distance(l2l1):
    """sigma = epsilon/|y*|^2: E[D(y_T)] - min D <= epsilon after log(2 C/epsilon)/theta steps, C the potential at 0."""
    objective, value, _, _, best = l2l1
    distance2 = float(np.sum(best.point**2))
    for epsilon in (1e-1, 1e-2, 1e-3):
        epsilon *= value(np.zeros(N)) - float(best.value)
        sigma = epsilon / distance2
        stage = WithSquare(objective, sigma, np.zeros((N, 1)))
        schedule = cw.ACDM(constants="proved").schedule(stage)
        theta = schedule.constants.tau
        potential = value(np.zeros(N)) - float(best.value) + sigma / 2 * distance2
        steps = math.ceil(math.log(2 * potential / epsilon) / theta)
        early, ends = [], []
        for seed in range(8):
            run = start(stage, schedule, seed, np.zeros((N, 1)))
            for count, errors in ((steps // 40, early), (steps - steps // 40, ends)):
                run.advance(steps=count)
                errors.append(value(run.point()[:, 0]) - float(best.value))
        assert np.mean(ends) <= epsilon
        assert np.mean(early) > epsilon  # the bound says something: a fortieth of its steps is not enough


@pytest.mark.parametrize("constants", ["proved", "tight"])
def test_halving_keeps_its_promise(l2l1, constants):
    """D(y) - min D <= 0.6 sigma |y*|^2 after every stage but the first ones, on average over seeds."""
    objective, _, _, _, best = l2l1
    method = cw.Regularized(cw.ACDM(constants=constants))
    distance2, errors = float(np.sum(best.point**2)), []
    for seed in range(6):
        h = cw.solve(objective, method, tol=0, max_passes=3000, random_state=seed, record_every=1e9).history
        ends = [np.flatnonzero(h.restarts == k)[-1] for k in range(h.restarts[-1])]  # the last stage is cut short
        errors.append(h.value[ends] - float(best.value))
    sigma = method.schedule(objective).constants.sigma * 0.5 ** np.arange(len(errors[0]))
    assert len(sigma) >= 6
    late = slice(2, None)
    assert np.all(np.mean(errors, axis=0)[late] <= 0.6 * (sigma * distance2)[late])


def test_stages_are_as_long_as_they_should_be(l2l1):
    objective, _, _, _, _ = l2l1
    h = cw.solve(objective, cw.Regularized(), tol=0, max_passes=3000, record_every=1e9).history
    starts = np.array([0] + [h.iterations[h.restarts == k][-1] for k in range(h.restarts[-1])])
    sigma = cw.Regularized().schedule(objective).constants.sigma
    for k, steps in enumerate(np.diff(starts)):
        stage = WithSquare(objective, sigma / 2**k, np.zeros((N, 1)))
        theta = cw.ACDM().schedule(stage).constants.tau
        assert steps == pytest.approx(STEPS / theta, rel=0.1, abs=3)  # a stage is limited by its entries


@pytest.mark.parametrize("method", [cw.ACDM(), cw.NUACDM()])
@pytest.mark.parametrize("loss", ["hinge", "l2l1", "absolute"])
def test_it_converges(loss, method):
    A, b = unequal_rows(60, 8, seed=3), np.sign(np.random.default_rng(4).standard_normal(60))
    problem = cw.ERM(A, b, loss=loss, lam=0.3)
    seen = []
    result = cw.solve(
        problem.dual(), cw.Regularized(method), tol=1e-3, max_passes=1e5, callback=lambda p: seen.append(p.passes)
    )
    assert result.converged
    assert problem.gap(result.x, result.y) <= 1e-3 * problem.value(np.zeros(8)) * (1 + 1e-9)
    assert np.all(np.diff(seen) >= 0)
    assert result.passes - 2 <= seen[-1] <= result.passes  # the last step of a run may be one pass of exact steps


def test_systems_and_least_squares():
    rng = np.random.default_rng(6)
    A = rng.standard_normal((30, 12)) @ np.diag(np.geomspace(1, 0.1, 12))
    x = rng.standard_normal(12)
    assert cw.solve(cw.LinearSystem(A, A @ x), cw.Regularized(), tol=1e-4, max_passes=1e5).converged
    assert cw.solve(cw.LeastSquares(A, A @ x), cw.Regularized(), tol=1e-4, max_passes=1e5).converged


def test_stopping():
    A, b = unequal_rows(60, 8, seed=3), np.ones(60)
    objective = cw.ERM(A, b, loss="hinge", lam=0.01).dual()
    stopped = cw.solve(objective, cw.Regularized(), tol=0, max_passes=500, callback=lambda p: p.passes > 20)
    assert stopped.status is cw.Status.STOPPED
    assert 20 < stopped.passes < 60
    late = cw.solve(objective, cw.Regularized(), tol=0, max_passes=500, time_limit=0.0)
    assert late.status is cw.Status.TIME_LIMIT


@pytest.mark.parametrize("T", [1, 200, 700, 902, 1500])
def test_last_is_where_the_steps_ended_whatever_stage_was_the_best(T):
    A = unequal_rows(40, 15, seed=3)
    b = A @ np.ones(15)
    result = cw.solve(cw.LinearSystem(A, b), cw.Regularized(cw.NUACDM()), tol=0, max_iterations=T, record_every=0.2)
    assert result.iterations == T
    residual = np.linalg.norm(b - A @ (A.T @ result.last))
    assert result.history.gap[-1] == pytest.approx(residual, rel=1e-6)
    assert result.gap <= result.history.gap.min() * (1 + 1e-6)


def test_an_interrupt_carries_all_stages():
    A, b = unequal_rows(60, 8, seed=3), np.ones(60)
    objective, seen = cw.ERM(A, b, loss="hinge", lam=0.01).dual(), []

    def impatient(progress):
        seen.append(progress)
        if progress.passes > 100:
            raise KeyboardInterrupt

    with pytest.raises(cw.Interrupted) as stop:
        cw.solve(objective, cw.Regularized(), tol=0, max_passes=500, callback=impatient)
    result = stop.value.result
    assert result.status == "interrupted"
    assert result.passes >= seen[-1].passes - 1e-9
    assert result.iterations >= seen[-1].iterations
    assert result.method.startswith("regularized(")
    assert result.gap <= min(progress.gap for progress in seen) * (1 + 1e-9)


def test_a_system_without_a_solution():
    A = np.vstack([unequal_rows(10, 4, seed=3), np.zeros(4)])
    result = cw.solve(cw.LinearSystem(A, np.ones(11)), cw.Regularized(), tol=1e-6)
    assert result.status == "inconsistent"
    assert result.iterations == 0


def test_what_it_refuses():
    A, b = unequal_rows(10, 4, seed=3), np.ones(10)
    groups = cw.penalties.GroupL1(0.1, [0, 0, 1, 1])
    with pytest.raises(ValueError, match="regularized takes single coordinates; for groups use 'nu_acdm'"):
        cw.solve(cw.ERM(A, b, penalty=groups).primal(), cw.Regularized())
    with pytest.raises(ValueError, match="strongly convex already"):
        cw.solve(cw.ERM(A, b, lam=0.1).dual(), cw.Regularized())
    with pytest.raises(ValueError, match="not quadratic"):
        cw.solve(cw.ERM(A, b, loss="logistic", penalty="l1", lam=0.1).primal(), cw.Regularized())
    with pytest.raises(TypeError, match="ACDM or NUACDM"):
        cw.Regularized(cw.RCDM())
    with pytest.raises(ValueError, match="leave out sigma"):
        cw.Regularized(cw.ACDM(sigma=0.5))
    with pytest.raises(ValueError, match="sigma"):
        cw.Regularized(sigma=-1.0)
