"""K outputs share the drawn rows: each is the single-output run, whatever K, the storage or the number of threads."""

import numpy as np
import pytest
from conftest import STORAGES, unequal_rows

import coordwise as cw
from coordwise.methods import get_method
from coordwise.starting import start

N, D = 40, 12


def problem(outputs, storage="csr", loss="squared", penalty="l2", seed=0):
    rng = np.random.default_rng(seed)
    A = unequal_rows(N, D, seed=seed, density=0.4)
    b = rng.standard_normal((N, outputs))
    if loss in ("logistic", "hinge", "squared_hinge"):
        b = np.where(b > 0, 1.0, -1.0)
    ratio = 0.3 if penalty == "elastic_net" else None
    return cw.ERM(STORAGES[storage](A), b, loss=loss, penalty=penalty, lam=0.05, l1_ratio=ratio), A, b


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("outputs", [1, 2, 3, 5, 8, 13, 20])
def test_each_output_is_the_single_run(outputs, storage):
    many, A, b = problem(outputs, storage)
    result = cw.solve(many.dual(), "nu_acdm", tol=0, max_passes=20, record_every=20)
    assert result.point.shape == (N, outputs)
    assert result.w.shape == (D, outputs)
    assert result.gap.shape == (outputs,)
    for k in range(outputs):
        one = cw.solve(
            cw.ERM(STORAGES[storage](A), b[:, k], lam=0.05).dual(), "nu_acdm", tol=0, max_passes=20, record_every=20
        )
        assert one.iterations == result.iterations
        np.testing.assert_allclose(result.history.value[:, k], one.history.value, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(result.history.gap[:, k], one.history.gap, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("loss", ["squared", "l2l1", "logistic", "hinge", "squared_hinge", "huber"])
@pytest.mark.parametrize("penalty", ["l2", "elastic_net"])
def test_losses_and_penalties(loss, penalty):
    many, A, b = problem(5, loss=loss, penalty=penalty, seed=1)
    result = cw.solve(many.dual(), tol=1e-8, max_passes=50_000)
    assert result.converged
    at_zero = many.value(np.zeros((D, 5)))
    assert np.all(result.gap <= 1e-8 * at_zero)
    np.testing.assert_allclose(many.gap(result.w, result.point), result.gap, atol=1e-12)
    one = cw.ERM(A, b[:, 3], loss=loss, penalty=many.penalty)
    single = cw.solve(one.dual(), tol=1e-8, max_passes=50_000)
    assert abs(single.primal - result.primal[3]) <= 1e-8 * at_zero[3] + 1e-12


@pytest.mark.parametrize("loss", ["squared", "logistic", "huber"])
def test_primal_blocks(loss):
    many, _, _ = problem(6, loss=loss, seed=2)
    primal = cw.solve(many.primal(), tol=1e-9, max_passes=50_000)
    dual = cw.solve(many.dual(), tol=1e-9, max_passes=50_000)
    assert primal.converged
    assert dual.converged
    np.testing.assert_allclose(primal.primal, dual.primal, atol=2e-9 * dual.scale.max())


@pytest.mark.parametrize("method", ["nu_acdm", "nu_acdm_ns", "sdca", "rcdm"])
@pytest.mark.parametrize("jobs", [2, 3, 40])
def test_threads_do_not_change_the_result(method, jobs):
    many, _, _ = problem(13, seed=3)
    serial = cw.solve(many.dual(), method, tol=1e-7, max_passes=50)
    threaded = cw.solve(many.dual(), method, tol=1e-7, max_passes=50, n_jobs=jobs)
    assert serial.iterations == threaded.iterations
    assert serial.passes == threaded.passes
    np.testing.assert_allclose(threaded.point, serial.point, rtol=1e-9, atol=1e-12)
    again = cw.solve(many.dual(), method, tol=1e-7, max_passes=50, n_jobs=jobs)
    np.testing.assert_array_equal(again.point, threaded.point)


def test_time_limit_with_threads_keeps_outputs_level():
    many, _, _ = problem(9, seed=4)
    result = cw.solve(many.dual(), "rcdm", tol=0, max_passes=1e9, record_every=1e8, time_limit=0.2, n_jobs=2)
    assert result.status == "time_limit"
    objective = many.dual()
    serial = start(objective, cw.RCDM().schedule(objective), 0, objective.start(None))
    serial.advance(steps=result.iterations)
    value = objective.certify(serial.point()).value
    np.testing.assert_allclose(value, result.history.value[-1], rtol=1e-9)


def test_one_column_keeps_two_dimensions():
    many, _, _ = problem(1)
    result = cw.solve(many.dual())
    assert result.point.shape == (N, 1)
    assert result.w.shape == (D, 1)
    assert result.history.gap.shape == (len(result.history), 1)


def test_linear_systems_with_several_right_hand_sides():
    A = unequal_rows(60, 10, seed=5)
    X = np.random.default_rng(5).standard_normal((10, 4))
    for method in ("auto", "kaczmarz", "acdm"):
        result = cw.solve(cw.LinearSystem(A, A @ X), method, tol=1e-9, max_passes=50_000)
        assert result.converged
        np.testing.assert_allclose(result.w, X, atol=1e-5)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("method", ["sdca", "nu_acdm"])
@pytest.mark.parametrize("outputs", [1, 3, 13])
def test_a_run_whose_image_is_known_takes_the_same_steps(outputs, method, storage):
    objective = problem(outputs, storage)[0].dual()
    x = np.random.default_rng(1).standard_normal((N, outputs))
    schedule = get_method(method).schedule(objective)
    one, other = (start(objective, schedule, 0, x, image=image) for image in (None, objective.image(x)))
    np.testing.assert_allclose(other.image(), one.image(), rtol=1e-12, atol=1e-14)
    for run in (one, other):
        run.advance(steps=3 * N)
    np.testing.assert_allclose(other.point(), one.point(), rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(other.image(), one.image(), rtol=1e-11, atol=1e-13)


def test_an_image_that_is_known_may_have_an_offset_and_must_have_the_right_shape():
    A = unequal_rows(N, D, seed=0, density=0.4)
    objective = cw.ERM(A, np.random.default_rng(0).standard_normal(N), penalty="l1", lam=0.01).primal()
    assert objective.image0 is not None
    x = np.random.default_rng(1).standard_normal((D, 1))
    schedule = get_method("sdca").schedule(objective)
    run = start(objective, schedule, 0, x, image=objective.image(x))
    before = run.image()
    run.resync()
    np.testing.assert_allclose(run.image(), before, rtol=1e-12, atol=1e-14)
    with pytest.raises(ValueError, match="known has the wrong shape"):
        start(objective, schedule, 0, x, image=np.zeros((D, 1)))
