"""Hopeful weights and what happens when they hoped for too much."""

import math

import numpy as np
import pytest
from conftest import unequal_rows

import coordwise as cw
from coordwise.pace import Pace
from coordwise.recording import Log
from coordwise.restarts import Restarts
from coordwise.results import Certificate


def test_pace_is_lost_when_the_error_falls_slower_than_promised():
    pace = Pace(math.exp(-0.5))  # an e-fold in two passes
    assert pace.fold == pytest.approx(2)
    assert not pace.lost(0.0, 1.0)
    assert not pace.lost(1.0, 5.0)  # within an e-fold nothing is said
    assert not pace.lost(2.0, 0.3)
    assert not pace.lost(4.0, 0.3 * 0.36)
    assert pace.lost(6.0, 0.3 * 0.36 * 0.38)


def test_pace_compares_over_the_whole_window():
    pace = Pace(math.exp(-1.0))
    assert not pace.lost(0.0, 1.0)
    assert not pace.lost(10.0, 0.9 * math.exp(-10))
    pace = Pace(math.exp(-1.0))
    assert not pace.lost(0.0, 1.0)
    assert pace.lost(10.0, 1.1 * math.exp(-10))


def test_pace_counts_nan_as_lost_and_never_loses_without_a_promise():
    pace = Pace(0.5)
    assert not pace.lost(0.0, 1.0)
    assert pace.lost(9.0, math.nan)
    nothing = Pace(1.0)
    assert not nothing.lost(0.0, 1.0)
    assert not nothing.lost(1e9, 1.0)


def problem(loss="squared", n=400, d=40, lam=1e-4, spread=3.0, seed=0):
    rng = np.random.default_rng(seed)
    A = unequal_rows(n, d, seed=seed, density=0.5) * 10 ** rng.uniform(-spread / 2, spread / 2, (n, 1))
    w = rng.standard_normal(d)
    b = A @ w + rng.standard_normal(n)
    return cw.ERM(A, np.sign(b) if cw.losses.get_loss(loss).classification else b, loss=loss, lam=lam)


@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge", "huber"])
@pytest.mark.parametrize("seed", range(3))
def test_auto_is_certified_and_costs_little_more_than_the_known_constants(loss, seed):
    erm = problem(loss, seed=seed)
    known = cw.solve(erm.dual(), "nu_acdm", tol=1e-8, max_passes=50_000, random_state=seed)
    auto = cw.solve(erm.dual(), tol=1e-8, max_passes=50_000, random_state=seed)
    assert auto.converged
    assert erm.gap(auto.w, auto.point) <= 1e-8 * erm.value(np.zeros(40))
    # at most the passes until the pace is lost, seen at a look, and then those of the known constants
    assert auto.passes <= 1.6 * known.passes + 10


def test_hopeful_weights_need_fewer_passes_while_they_keep_the_pace():
    known, hopeful = (
        sum(cw.solve(problem(seed=seed).dual(), method, tol=1e-4, max_passes=50_000).passes for seed in range(4))
        for method in ("nu_acdm", "auto")
    )
    assert hopeful < 0.9 * known


def test_the_known_weights_take_over_and_say_so():
    erm = problem(lam=1e-3)
    exact = cw.solve(erm.dual(), tol=0, max_passes=2)
    assert "sdca" in exact.method
    hopeful = cw.solve(erm.dual(), tol=0, max_passes=10)
    assert "hoped for" in hopeful.method
    result = cw.solve(erm.dual(), tol=1e-11, max_passes=100_000)
    assert result.converged
    assert "hoped for" not in result.method
    assert result.constants.sigma == pytest.approx(1 / 400)


def test_equal_rows_need_no_hope():
    A = unequal_rows(50, 10, seed=1, density=1.0)
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    result = cw.solve(cw.ERM(A, np.ones(50), lam=0.1).dual(), tol=1e-3)
    assert "hoped for" not in result.method


def test_sample_weights_with_zeros():
    erm = problem()
    weights = np.random.default_rng(5).integers(0, 4, 400).astype(float)
    weighted = cw.ERM(erm.A, erm.b[:, 0], lam=1e-4, sample_weight=weights)
    repeated = cw.ERM(
        np.repeat(erm.A, weights.astype(int), axis=0), np.repeat(erm.b[:, 0], weights.astype(int)), lam=1e-4
    )
    one, other = (cw.solve(p.dual(), tol=1e-13, max_passes=100_000) for p in (weighted, repeated))
    apart = sum(np.sqrt(2 * result.gap / 1e-4) for result in (one, other))  # P is strongly convex
    assert np.linalg.norm(one.w - other.w) <= apart <= 0.01
    np.testing.assert_allclose(one.w, other.w, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("errors", "rate"),
    [
        ([(1.0, math.e), (3.0, 1.0)], 0.5),
        ([(1.0, 0.0), (2.0, 1e-9)], 0.0),  # an error of 0 that the point did not confirm
        ([(1.0, -1e-20), (2.0, 1e-9)], 0.0),
        ([(1.0, math.inf), (2.0, 1.0)], 0.0),
        ([(1.0, 1.0), (2.0, 0.0)], 0.0),
        ([(1.0, 1.0), (2.0, math.inf)], 0.0),
        ([(1.0, 2.0), (1.0, 1.0)], 0.0),
        ([(1.0, 1e-320), (2.0, 1e10)], pytest.approx(math.log(1e-320) - math.log(1e10))),
    ],
)
def test_measured_rates_of_any_errors(errors, rate):
    log = Log.__new__(Log)
    log.errors = errors
    assert log.rate() == rate


def test_the_rate_over_a_window_is_not_that_of_a_lucky_look():
    log = Log.__new__(Log)
    log.errors = [(float(k), 0.1 if k % 2 else 0.2) for k in range(10)]  # noise
    assert log.rate() > 0.5
    assert log.rate(window=4) == pytest.approx(0.0)
    assert log.rate(window=100) == pytest.approx(math.log(2) / 9)  # all there is


def log_of(objective, values, gaps):
    """A log with records one pass apart."""
    log = Log.__new__(Log)
    log.objective, log.tol = objective, 1e-3
    seen = zip(values, gaps, strict=True)
    log.rows = [(k, float(k), 0.0, np.array([v]), np.array([g]), None, 0) for k, (v, g) in enumerate(seen)]
    log.errors = [(float(k), g) for k, g in enumerate(gaps)]
    log.current = Certificate(np.array([values[-1]]), np.array([gaps[-1]]), np.ones(1), np.array([values[-1]]))
    return log


def lasso(**penalty):
    return cw.ERM(unequal_rows(20, 5, seed=3), np.ones(20), lam=0.1, **penalty).primal()


def test_where_the_gap_lags_behind_the_value_tells_the_speed():
    values = [1 + math.exp(-0.8 * k) for k in range(4)]
    assert log_of(lasso(penalty="l1"), values, [0.3] * 4).speed() == pytest.approx(0.4)  # the gap goes like the root
    assert log_of(lasso(penalty="l1"), values, [0.3, 0.2, 0.1, 0.01]).speed() == pytest.approx(math.log(10))
    assert log_of(lasso(penalty="elastic_net", l1_ratio=0.5), values, [0.3] * 4).speed() == 0.0
    assert log_of(lasso(penalty="l1"), [3.0, 2.0, 1.0], [0.3] * 3).speed() == 0.0  # nothing to be said
    assert log_of(lasso(penalty="l1"), [3.0, 1.0, 2.0], [0.3] * 3).speed() == 0.0


def test_logistic_rates_that_fall_are_expected_to_fall_once_more():
    b = np.tile([1.0, -1.0], 10)
    gaps = [1.0, math.exp(-3.0), math.exp(-4.0), math.exp(-4.2)]  # rates 3, 1 and 0.2
    for loss, speeds in (("logistic", [3.0, 1 / 3, 0.04]), ("squared", [3.0, 1.0, 0.2])):
        objective = cw.ERM(unequal_rows(20, 5, seed=3), b, loss=loss, lam=0.1).dual()
        found = [log_of(objective, gaps[:looks], gaps[:looks]).speed() for looks in (2, 3, 4)]
        np.testing.assert_allclose(found, speeds, rtol=1e-9)
        rising = log_of(objective, gaps[:3], [1.0, 0.5, 0.1])  # a rate that grows is taken as it is
        assert rising.speed() == pytest.approx(math.log(5))


def test_momentum_that_leads_upwards_is_given_up_where_the_gap_lags_behind():
    assert log_of(lasso(penalty="l1"), [2.0, 1.0, 1.1], [0.3] * 3).rising
    assert not log_of(lasso(penalty="l1"), [2.0, 1.0, 1.1], [0.3, 0.3, 1e-4]).rising  # it is there
    assert not log_of(lasso(penalty="l1"), [2.0, 1.1, 1.0], [0.3] * 3).rising
    assert not log_of(lasso(penalty="l1"), [2.0, 1.0, 1.0 + 1e-15], [0.3] * 3).rising
    assert not log_of(lasso(penalty="elastic_net", l1_ratio=0.5), [2.0, 1.0, 1.1], [0.3] * 3).rising
    restarts = Restarts()
    assert not restarts.due(1.0, rising=True)  # there is no momentum before the first look
    assert restarts.due(0.9, rising=True)
    assert not restarts.due(0.2)
    assert restarts.due(0.1)


@pytest.mark.parametrize("positive", [False, True])
def test_sets_that_grow_keep_the_momentum_unless_it_may_lead_out_of_the_domain(monkeypatch, positive):
    """A point outside would be clipped, and its image not."""
    rng = np.random.default_rng(2)
    A = rng.standard_normal((200, 400)) * 10 ** rng.uniform(-1, 1, 400)
    b = A @ np.maximum(rng.standard_normal(400) - 1, 0) + 0.1 * rng.standard_normal(200)
    objective = cw.ERM(A, b, penalty="l1", lam=1e-3 * np.abs(A.T @ b).max() / 200, positive=positive).primal()
    assert objective.coordinates.shape.bounded == positive
    grown, change = [], Log.change

    def watched(self, schedule):
        if self.schedule.restarts and schedule.restarts and self.restarted != self.passes:
            grown.append(self.passes)
        change(self, schedule)
        close = np.abs(self.run.image() - objective.image(self.run.point())).max()
        assert close <= 1e-9 * np.abs(b).max()

    monkeypatch.setattr(Log, "change", watched)
    assert cw.solve(objective, tol=1e-8, max_passes=20_000).converged
    assert bool(grown) != positive
