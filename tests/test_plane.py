"""Primal points in the plane of the last two that dual variables led to."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import unequal_rows

import coordwise as cw
from coordwise.fitting.fit import fit
from coordwise.fitting.model import LinearModel
from coordwise.losses import LOSSES
from coordwise.methods import SDCA
from coordwise.plane import Plane
from coordwise.starting import start


def make(loss, weighted=False, outputs=1, lam=1e-2, n=120, d=25, seed=0):
    rng = np.random.default_rng(seed)
    A = unequal_rows(n, d, seed=seed, spread=1.0)
    b = A @ rng.standard_normal((d, outputs)) + rng.standard_normal((n, outputs))
    if LOSSES[loss].classification:
        b = np.where(b > 0, 1.0, -1.0)
    weight = rng.integers(0, 4, n).astype(float) if weighted else None
    return cw.ERM(A, b, loss=loss, lam=lam, sample_weight=weight)


def seen(problem, steps=(60, 120)):
    """A plane that has seen a run of exact steps at two places, and the weights it saw."""
    objective = problem.dual()
    objective.any_weights = True
    run = start(objective, SDCA().schedule(objective), 0, objective.start(None))
    plane, weights = objective.plane(), []
    g = np.empty(problem.b.shape)
    assert isinstance(plane, Plane)
    assert not plane.known
    for count in steps:
        run.advance(steps=count)
        objective.certify_run(run, g)
        plane.see(run.image(), g)
        weights.append(objective.solution(run.image()))
    assert plane.known
    return plane, weights


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_point_is_in_the_plane_and_nearly_the_best_there(loss, weighted):
    problem = make(loss, weighted)
    plane, points = seen(problem)
    w, value = plane.best()
    assert value == pytest.approx(problem.value(w)[0], rel=1e-12)
    pair = np.hstack(points)
    shares, *_ = np.linalg.lstsq(pair, w, rcond=None)
    np.testing.assert_allclose(pair @ shares, w, atol=1e-10 * np.abs(w).max())
    here = problem.value(points[-1])[0]
    assert value < here
    moved = [pair @ (shares + np.array([[x], [y]])) for x in (-0.3, 0, 0.3) for y in (-0.3, 0, 0.3)]
    lowest = min(problem.value(point)[0] for point in moved)
    assert value - lowest <= 0.2 * (here - lowest)


def test_a_brief_look_stays_on_the_line_through_both():
    plane, (before, last) = seen(make("logistic"))
    w, _ = plane.best(brief=True)
    way = (last - before)[:, 0]
    share = way @ (w - last)[:, 0] / (way @ way)
    np.testing.assert_allclose(w[:, 0], last[:, 0] + share * way, atol=1e-12)
    assert share != 0


@pytest.mark.parametrize("loss", ["hinge", "absolute", "squared_hinge"])
def test_fits_end_with_a_pair_whose_gap_is_what_they_say_and_no_later(loss, monkeypatch):
    problem = make(loss, lam=1e-4, n=3000, d=400)
    model = LinearModel(problem, False)
    found = fit(model, tol=5e-3, strategy="dual")
    assert found.converged
    assert problem.gap(found.w, found.y)[0] == pytest.approx(found.gap[0], rel=1e-9)
    assert found.value[0] == pytest.approx(problem.value(found.w)[0], rel=1e-12)
    assert found.gap[0] <= 5e-3 * found.scale[0]
    assert not np.allclose(found.w, problem.primal_point(found.y), rtol=1e-3)
    monkeypatch.setattr("coordwise.plane.Plane.known", False)
    alone = fit(model, tol=5e-3, strategy="dual")
    np.testing.assert_allclose(alone.w, problem.primal_point(alone.y), rtol=1e-9, atol=1e-12)
    assert found.passes <= alone.passes


def test_kinks_and_weak_penalties_take_fewer_passes(monkeypatch):
    model = LinearModel(make("hinge", lam=1e-5, n=4000, d=600), False)
    passes = fit(model, tol=1e-2, strategy="dual").passes
    monkeypatch.setattr("coordwise.plane.Plane.known", False)
    assert passes < 0.8 * fit(model, tol=1e-2, strategy="dual").passes


def test_a_plane_that_does_not_hold_at_the_point_itself_is_left(monkeypatch):
    problem = make("hinge", lam=1e-4, n=2000, d=300)
    whole = problem.dual().__class__.beside
    asked = []

    def worse(self, primal, x):
        image, found = whole(self, primal, x)
        asked.append(found.gap[0])
        return image, replace(found, gap=found.gap + 1.0)

    monkeypatch.setattr("coordwise.erm.DualERM.beside", worse)
    found = fit(LinearModel(problem, False), tol=1e-2, strategy="dual")
    assert len(asked) == 1
    assert found.converged
    np.testing.assert_allclose(found.w, problem.primal_point(found.y), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("factor", [0.2, 5.0])
def test_the_best_point_may_be_behind_the_last_one_or_beyond(factor):
    problem = make("squared")
    best = cw.solve(problem.dual(), tol=1e-10)
    objective = problem.dual()
    objective.any_weights = True
    plane, image = objective.plane(), problem.A.T @ best.point
    for share in (0.1 * factor, factor):
        plane.see(share * image, -share * problem.A @ best.w / problem.total)
    _, value = plane.best()
    assert value - best.primal <= 0.02 * (problem.value(factor * best.w)[0] - best.primal)


def test_points_that_are_the_same_are_no_line():
    problem = make("squared")
    plane, points = seen(problem, (60, 0))
    w, value = plane.best()
    assert problem.value(w)[0] == pytest.approx(value)
    assert value <= problem.value(points[-1])[0]


def test_several_outputs_have_none():
    objective = make("hinge", outputs=3).dual()
    objective.any_weights = True
    assert objective.plane() is None


def test_results_of_solve_keep_the_weights_of_their_dual_variables():
    problem = make("hinge", lam=1e-4, n=2000, d=300)
    result = cw.solve(problem.dual(), tol=1e-2)
    np.testing.assert_allclose(result.w, problem.primal_point(result.point), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("size", [1e-38, 1e38])
def test_data_and_penalties_of_any_size(size):
    """P is the same for weights that are so many times larger or smaller."""
    plain = make("logistic")
    scaled = cw.ERM(plain.A * size, plain.b, loss="logistic", lam=1e-2 * size**2)
    (w, value), (other, there) = (seen(problem)[0].best() for problem in (plain, scaled))
    assert there == pytest.approx(value, rel=1e-9)
    np.testing.assert_allclose(other * size, w, rtol=1e-6)
