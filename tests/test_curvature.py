"""Norm weights from local curvature, and coordinates held in corners."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import interruption, unequal_rows

import coordwise as cw
from coordwise.curvature import EARLY, FIRST, LAST, SOON, LocalWeights
from coordwise.ending import Ending
from coordwise.erm import NEAR
from coordwise.kernels import Shape, Terms
from coordwise.losses import get_loss
from coordwise.objectives import Look
from coordwise.recording import Log
from coordwise.schedules import Split, promised
from coordwise.starting import start

CORNERED = ["squared_hinge", "smooth_hinge", "huber", "squared_epsilon_insensitive"]
LOCAL = ["logistic", *CORNERED]


def look_at(objective, x, *, rate=0.0, left=math.inf, lost=False, restarted=False):
    image, certificate = objective.exact(x)
    w = objective.solution(image)
    g = -(objective.problem.A @ w) / objective.problem.total
    return Look(x, g, certificate, rate, left, lost, restarted)


def problem(loss, n=300, d=30, lam=1e-4, outputs=None, weighted=False, seed=0):
    rng = np.random.default_rng(seed)
    A = unequal_rows(n, d, seed=seed, density=0.5)
    b = A @ rng.standard_normal((d, outputs or 1)) + 0.3 * rng.standard_normal((n, outputs or 1))
    b = np.where(b > 0, 1.0, -1.0) if get_loss(loss).classification else b
    weights = rng.integers(0, 4, n).astype(float) if weighted else None
    return cw.ERM(A, b if outputs else b[:, 0], loss=loss, lam=lam, sample_weight=weights)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("outputs", [None, 3])
@pytest.mark.parametrize("loss", LOCAL)
def test_auto_converges_to_a_gap_that_can_be_recomputed(loss, outputs, weighted):
    erm = problem(loss, outputs=outputs, weighted=weighted)
    result = cw.solve(erm.dual(), tol=1e-9, max_passes=100_000)
    assert result.converged
    assert "local curvature" in result.method
    at_zero = erm.value(np.zeros((30, outputs) if outputs else 30))
    assert np.all(erm.gap(result.w, result.point) <= 1e-9 * at_zero)


@pytest.mark.parametrize("loss", LOCAL)
@pytest.mark.parametrize("seed", range(3))
def test_auto_costs_little_more_than_the_known_constants(loss, seed):
    erm = problem(loss, seed=seed)
    known = cw.solve(erm.dual(), "nu_acdm", tol=1e-7, max_passes=100_000, random_state=seed)
    auto = cw.solve(erm.dual(), tol=1e-7, max_passes=100_000, random_state=seed)
    assert known.converged
    assert auto.passes <= 1.5 * known.passes + 10


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "smooth_hinge"])
def test_auto_needs_fewer_passes_over_a_few_problems(loss):
    problems = [problem(loss, seed=seed, lam=1e-3) for seed in range(4)]
    known, auto = (
        sum(cw.solve(erm.dual(), method, tol=1e-6, max_passes=100_000).passes for erm in problems)
        for method in ("nu_acdm", "auto")
    )
    assert auto < 0.8 * known


def test_logistic_curvature_is_that_of_the_conjugate_where_the_run_is():
    erm = problem("logistic", n=6, d=3, lam=0.1)
    objective = erm.dual()
    rng = np.random.default_rng(1)
    x = -erm.b * rng.uniform(0, 1, (6, 1))
    look = look_at(objective, x)
    slack = 1.5
    own, places = objective.local_curvature(look, slack, 0.0)
    assert places is None
    margins = -6 * erm.b[:, 0] * look.g[:, 0]
    dual, implied = np.abs(x[:, 0]), 1 / (1 + np.exp(margins))
    ends = np.maximum(np.minimum(dual, 1 - dual), np.minimum(implied, 1 - implied))
    a = np.minimum(0.5, slack * ends + 1e-9)
    np.testing.assert_allclose(own, 1 / (6 * a * (1 - a)), rtol=1e-12)
    everywhere, _ = objective.local_curvature(look, 1e12, 1.0)
    np.testing.assert_allclose(everywhere, 4 / 6, rtol=1e-12)  # the worst case


@pytest.mark.parametrize("loss", CORNERED)
@pytest.mark.parametrize("weighted", [False, True])
def test_held_tells_how_far_scores_may_move(loss, weighted):
    rng = np.random.default_rng(2)
    phi = get_loss(loss)
    b = rng.choice([-1.0, 1.0], (400, 1)) if phi.classification else rng.standard_normal((400, 1))
    s = rng.uniform(0.5, 2, 400) if weighted else None
    terms = Terms(phi.shape, 1.0, b, s)
    t = 3 * rng.standard_normal((400, 1))
    there = terms.subgradients(t)
    slope, away, found = terms.held(there + 0.25, t)
    np.testing.assert_array_equal(found, there)
    np.testing.assert_allclose(away, 0.25)
    assert np.any(slope > 0)
    assert np.any(slope == 0)
    for direction in (-1, 1):
        moved = terms.subgradients(t + direction * 0.999 * slope)
        np.testing.assert_array_equal(moved[slope > 0], there[slope > 0])
    # a little more in the worse direction leaves the corner
    further = [terms.subgradients(t + direction * 1.001 * slope) != there for direction in (-1, 1)]
    assert np.all((further[0] | further[1])[slope > 1e-3])


def test_curvature_at_corners_is_at_least_that_of_the_conjugate_and_falls_with_slack():
    objective = problem("squared_hinge").dual()
    look = look_at(objective, cw.solve(objective, "sdca", tol=1e-3).point[:, None])
    few, many, all_ = (objective.local_curvature(look, slack, 1.0).weights for slack in (1.0, 10.0, 1e9))
    assert np.all(few >= many * (1 - 1e-12))
    assert np.all(many >= 1 / 300 * (1 - 1e-12))
    assert np.any(few > 10 / 300)
    np.testing.assert_allclose(all_[np.isfinite(all_)], 1 / 300, rtol=1e-6)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "smooth_hinge", "squared_epsilon_insensitive"])
def test_with_no_doubt_left_only_coordinates_that_are_there_at_the_solution_are_held(loss):
    erm = problem(loss, lam=1e-2)
    objective = erm.dual()
    best = cw.solve(objective, tol=1e-13, max_passes=100_000).point[:, None]
    held = 0
    for tol in (1e-2, 1e-4, 1e-6):
        look = look_at(objective, cw.solve(objective, "sdca", tol=tol, max_passes=100_000).point[:, None])
        weights, places = objective.local_curvature(look, FIRST, 1.0)
        sure = np.isinf(weights)
        held = max(held, int(sure.sum()))
        np.testing.assert_allclose(places[sure], best[sure], atol=1e-4)
        more = np.isinf(objective.local_curvature(look, FIRST, 0.0).weights)
        assert np.all(more[sure])
    assert held > 0


def test_somebody_is_always_drawn():
    objective = cw.ERM(np.eye(3), np.ones(3), loss="hinge", lam=1e-3).dual()
    x = -np.ones((3, 1))  # all margins are far above 1, and an exact step would take all x to 0
    look = look_at(objective, x)._replace(x=np.zeros((3, 1)))
    assert np.all(np.isfinite(objective.local_curvature(look, FIRST, 0.0).weights))


@pytest.mark.parametrize("loss", ["hinge", "absolute"])
@pytest.mark.parametrize("lam", [10, 100])
def test_steps_that_are_right_one_by_one_are_not_taken_all_at_once(loss, lam):
    """Strong penalties: every exact step leads into a corner, and all of them together to another solution's."""
    n, d = 2000, 50
    rng = np.random.default_rng(0)
    A = sp.csr_array((rng.random((n, d)) < 0.04).astype(float))
    b = np.where(A @ rng.standard_normal(d) > 0.5, 1.0, -1.0)
    assert cw.solve(cw.ERM(A, b, loss=loss, lam=lam / n).dual(), tol=1e-6, max_passes=30).converged


def test_coordinates_far_from_their_corner_are_not_held():
    objective = problem("hinge", lam=1e-2).dual()
    look = look_at(objective, cw.solve(objective, "sdca", tol=1e-2).point[:, None])
    weights, places = objective.local_curvature(look, FIRST, 0.0)
    held = np.isinf(weights)
    assert held.any()
    assert np.all(np.abs(look.x - places)[held] <= NEAR)
    far = look._replace(x=np.where(np.arange(300)[:, None] % 2 == 0, places, -objective.problem.b - places))
    assert not np.isinf(objective.local_curvature(far, FIRST, 0.0).weights)[1::2].any()


def test_the_first_look_holds_what_withstands_more_and_goes_on_with_exact_steps():
    objective = problem("hinge", lam=1e-2).dual()
    look = look_at(objective, cw.solve(objective, "sdca", tol=1e-2).point[:, None], rate=0.0)
    first = replace(course(objective), early=True).renew(look)
    assert not first.plan.accelerated
    sure = np.isinf(objective.local_curvature(look, FIRST, EARLY).weights)
    np.testing.assert_array_equal(first.idle, sure)
    assert sure.sum() < np.isinf(objective.local_curvature(look, FIRST, 0.0).weights).sum()
    assert first.renew(look).plan.accelerated


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "smooth_hinge", "epsilon_insensitive", "absolute", "huber"])
@pytest.mark.parametrize("seed", range(3))
def test_active_sets_are_certified_for_any_rows(loss, seed):
    rng = np.random.default_rng(seed)
    erm = problem(loss, n=200, d=20, lam=10.0 ** rng.integers(-5, 0), seed=seed, weighted=bool(seed % 2))
    result = cw.solve(erm.dual(), tol=1e-8, max_passes=100_000, random_state=seed)
    assert result.converged
    assert erm.gap(result.w, result.point) <= 1e-8 * erm.value(np.zeros(20))


def test_active_sets_need_a_fraction_of_the_passes_for_the_hinge():
    problems = [problem("hinge", seed=seed, n=600, lam=1e-3) for seed in range(3)]
    everyone, auto = (
        sum(cw.solve(erm.dual(), method, tol=1e-6, max_passes=100_000).passes for erm in problems)
        for method in (cw.NUACDM(beta=1.0, sigma="adaptive"), "auto")
    )
    assert auto < 0.6 * everyone


def course(objective, made=None):
    exact = cw.SDCA().schedule(objective)

    def weighted(own):
        if made is not None:
            made.append(own)
        return cw.NUACDM(sigma=1.0 if strong else "adaptive", weights=own).schedule(objective)

    strong = objective.coordinates.shape.curvature > 0
    promise = partial(promised, objective, Split.of(objective)) if strong else None
    return LocalWeights(objective, exact, weighted, promise, lambda: cw.NUACDM().schedule(objective))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "huber"])
def test_a_promise_is_the_rate_of_the_schedule(loss, weighted):
    objective = problem(loss, weighted=weighted).dual()
    x = cw.solve(objective, "sdca", tol=1e-2).point[:, None]
    weights = objective.local_curvature(look_at(objective, x), 3.0, 0.0).weights
    assert loss != "squared_hinge" or np.isinf(weights).any()
    for own in (weights, np.where(np.arange(300) < 299, np.inf, weights.min())):
        made = cw.NUACDM(sigma=1.0, weights=own).schedule(objective)
        assert promised(objective, Split.of(objective), own) == pytest.approx(made.constants.rate_per_pass, rel=1e-9)
    assert promised(objective, Split.of(objective), np.full(300, np.inf)) == 1.0


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "hinge"])
def test_accelerated_schedules_are_made_only_if_they_are_taken(loss):
    objective = problem(loss).dual()
    x, made = cw.solve(objective, "sdca", tol=1e-2).point[:, None], []
    assert not course(objective, made).renew(look_at(objective, x, rate=1e3)).plan.accelerated
    assert not made
    assert course(objective, made).renew(look_at(objective, x, rate=0.0)).plan.accelerated
    assert len(made) == 1


@pytest.mark.parametrize("left", [math.inf, 20.0])
@pytest.mark.parametrize(("loss", "begin", "share"), [("squared_hinge", 1.5, 0.5), ("logistic", 1.0, 0.4)])
def test_exact_steps_go_on_while_they_need_fewer_passes_than_acceleration(loss, begin, share, left):
    objective = problem(loss).dual()
    x = cw.solve(objective, "sdca", tol=1e-2).point[:, None]
    ahead = course(objective).renew(look_at(objective, x, rate=0.0, left=left))
    assert ahead.plan.accelerated
    promise = -math.log(ahead.constants.rate_per_pass)
    equal = left / (begin + share * left / promise) if left < math.inf else promise / share
    assert course(objective).renew(look_at(objective, x, rate=0.99 * equal, left=left)).plan.accelerated
    exact = course(objective).renew(look_at(objective, x, rate=1.01 * equal, left=left))
    assert not exact.plan.accelerated
    assert ahead.renew(look_at(objective, x, rate=10 * equal, left=left)).plan.accelerated  # there is no way back
    if loss == "logistic":
        assert exact.members is None
    else:
        drawn = np.setdiff1d(np.arange(300), exact.members)
        np.testing.assert_array_equal(drawn, np.flatnonzero(exact.idle))
        assert len(drawn) > 0


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_exact_steps_that_are_about_to_be_done_go_on(loss):
    objective = problem(loss).dual()
    x = cw.solve(objective, "sdca", tol=1e-1).point[:, None]
    rate = 1e-6  # slower than whatever acceleration promises
    assert course(objective).renew(look_at(objective, x, rate=rate, left=2.1 * SOON * rate)).plan.accelerated
    soon = course(objective).renew(look_at(objective, x, rate=rate, left=0.9 * SOON * rate))
    assert soon is None if loss == "logistic" else not soon.plan.accelerated


def test_doubt_grows_and_ends_with_the_known_weights():
    objective = problem("logistic").dual()
    x = objective.start(None)
    schedule = course(objective).renew(look_at(objective, x))
    assert f"slack={FIRST:g}" in schedule.description
    for count in range(1, 40):
        schedule = schedule.renew(look_at(objective, x, lost=True))
        if schedule.renew is None:
            break
        assert f"slack={FIRST * 2**count:g}" in schedule.description
    assert FIRST * 2**count > LAST
    assert math.isclose(schedule.constants.sigma, 4 / 300)


def test_with_restarts_a_set_is_kept_until_the_momentum_is_lost_or_it_was_chosen_in_vain():
    objective = problem("hinge").dual()
    x = cw.solve(objective, "sdca", tol=1e-1).point[:, None]
    restarted = cw.NUACDM(sigma="adaptive").weighted(objective)
    local = LocalWeights(objective, None, restarted, None, lambda: cw.NUACDM(beta=1.0).schedule(objective))
    schedule = local.renew(look_at(objective, x))
    assert schedule.restarts
    held = schedule.idle
    assert held.any()
    moved = np.where(held[:, None], schedule.places, x)
    look = look_at(objective, moved)
    assert np.all(objective.gap_of(look, held) <= look.certificate.gap / 2)
    assert schedule.renew(look) is None
    assert schedule.renew(look_at(objective, moved, restarted=True)) is not None
    wrong = np.where(held[:, None], -objective.problem.b - schedule.places, moved)  # at the other end
    look = look_at(objective, wrong)
    assert np.all(objective.gap_of(look, held) > look.certificate.gap / 2)
    assert schedule.renew(look) is not None


def test_the_gap_is_the_sum_of_its_parts():
    objective = problem("hinge", weighted=True).dual()
    look = look_at(objective, cw.solve(objective, "sdca", tol=1e-1).point[:, None])
    some = np.arange(300) % 3 == 0
    parts = objective.gap_of(look, some) + objective.gap_of(look, ~some)
    np.testing.assert_allclose(parts, look.certificate.gap, rtol=1e-9)


def test_losses_whose_curvature_is_the_same_everywhere_have_none():
    objective = problem("squared").dual()
    assert objective.local_curvature(look_at(objective, objective.start(None)), 1.0, 0.0) is None
    assert not Shape(quad=1.0).corners
    assert Shape(quad=1.0, lower=0.0).corners
    assert Shape(quad=1.0, kink=0.5).corners


def test_passes_count_the_exact_steps_too():
    erm = problem("logistic")
    result = cw.solve(erm.dual(), tol=1e-6, record_every=1.0)
    h = result.history
    assert h.iterations[0] == 0
    assert h.passes[1] == pytest.approx(1.0, abs=0.2)
    assert np.all(np.diff(h.iterations) > 0)
    assert result.passes == h.passes[-1]
    assert result.iterations == h.iterations[-1]


@pytest.mark.parametrize(("l1", "l2"), [(0.1, 0.0), (0.1, 1e-3), (0.3, 0.0)])
def test_features_at_zero_are_held(l1, l2, monkeypatch):
    """Over the features, those that an l1 penalty keeps at 0 are not drawn; the solution is the same."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, 300))
    b = A[:, :5].sum(1) + 0.1 * rng.standard_normal(60)
    most = np.abs(A.T @ b).max() / 60
    problem = cw.ERM(A, b, penalty=cw.penalties.ElasticNet(l1 * most, l2 * most))
    found = cw.solve(problem.primal(), tol=1e-9, max_passes=1e5)
    monkeypatch.setattr(type(problem.primal()), "local_curvature", lambda *_: None)
    plain = cw.solve(problem.primal(), tol=1e-9, max_passes=1e5)
    assert found.converged
    assert plain.converged
    assert problem.gap(found.x, problem.dual_point(found.x)) <= 1.01e-9 * problem.value(np.zeros(300))
    np.testing.assert_allclose(found.x, plain.x, atol=1e-4)
    assert found.passes < plain.passes


def test_a_feature_is_held_only_if_what_may_happen_does_not_move_it():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, 300))
    objective = cw.ERM(A, A[:, 0], penalty="l1", lam=0.3).primal()
    x = np.zeros((300, 1))
    x[1] = 1.0
    g = A.T @ (A @ x - A[:, :1]) / 60
    look = Look(x, g, objective.certify(x), 1.0, 1.0, False, False)
    far = np.sqrt(2 * objective.curvature * look.certificate.gap)
    for doubt in (0.0, 0.01, 0.1):
        held = np.isinf(objective.local_curvature(look, 1.0, doubt).weights)
        np.testing.assert_array_equal(held, (0.3 - np.abs(g[:, 0]) > doubt * far) & (x[:, 0] == 0))
        assert 0 < held.sum() < 300
    assert not np.isinf(objective.local_curvature(look, 1.0, 1e9).weights).any()
    assert cw.ERM(A, A[:, 0], penalty="l2", lam=0.3).primal().local_curvature(look, 1.0, 0.0) is None


def run_to(objective, looks):
    """The log of exact steps after some looks."""
    exact = cw.SDCA().schedule(objective)
    run = start(objective, exact, 0, objective.start(None))
    log = Log(objective, exact, run, tol=1e-9, every=1.0, growth=0.0, begun=0.0)
    log.record()
    for _ in range(looks):
        log.advance(100.0, math.inf, math.inf)
        log.record()
    return log


@pytest.mark.parametrize("loss", ["hinge", "absolute"])
def test_with_kinks_the_decreases_of_the_dual_tell_how_fast_exact_steps_are(loss):
    objective = problem(loss).dual()
    faster = 0
    for looks in range(2, 12):
        log = run_to(objective, looks)
        high, middle, low = (float(np.asarray(row[3])[0]) for row in log.rows[-3:])
        by_value = math.log((high - middle) / (middle - low)) if high - middle > middle - low > 0 else -math.inf
        assert log.speed() == pytest.approx(max(log.rate(), by_value), rel=1e-9)
        faster += by_value > log.rate()
    assert 0 < faster < 10


def test_elsewhere_the_error_tells_it():
    log = run_to(problem("squared_hinge").dual(), 5)
    assert log.speed() == log.rate() > 0


def test_ctrl_c_while_an_accelerated_run_begins_counts_no_pass_twice(monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("coordwise.recording.start", interrupted)
    found = interruption(cw.solve, problem("logistic", lam=1e-6).dual(), "auto", tol=1e-12)
    assert found.status is cw.Status.INTERRUPTED
    assert found.passes > 0
    assert found.history.passes[-1] == found.history.passes[-2] == found.passes
    assert found.iterations == found.history.iterations[-2]


def test_at_the_last_look_a_round_of_exact_steps_that_fails_is_no_reason_to_go_on(monkeypatch):
    """The point itself meets the tolerance, and there is no pass left to look for a better one."""
    monkeypatch.setattr(Ending, "_polished", lambda self, log, x: np.zeros_like(x))
    objective, tol = problem("squared_hinge").dual(), 1e-4
    longer = cw.solve(objective, "nu_acdm", tol=tol, record_growth=0)
    met = np.flatnonzero(longer.history.gap <= tol * longer.scale)
    assert longer.passes > longer.history.passes[met[0]]  # it went on
    found = cw.solve(objective, "nu_acdm", tol=tol, record_growth=0, max_passes=float(longer.history.passes[met[0]]))
    assert found.status is cw.Status.CONVERGED
    assert found.gap <= tol * found.scale
