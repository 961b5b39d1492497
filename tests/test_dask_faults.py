"""coordwise.dask where workers die: a fit ends with a valid certificate, or with an error and the best point so far."""

import os
import signal
import warnings

import dask
import numpy as np
import pytest
from dask_cases import chunked, cluster, limited, parts, problem, rows
from distributed import Client

import coordwise.dask as cd
from coordwise import estimators as ce
from coordwise.interrupts import Failed

A, T, TWO, THREE, S = problem()
OPTIONS = {"C": 10.0, "tol": 1e-5, "fit_intercept": False}


@pytest.fixture(scope="module")
def both():
    with cluster() as (made, client):
        yield made, client


@pytest.fixture
def client(both):
    _, client = both
    client.wait_for_workers(2, timeout=30)
    return client


@pytest.fixture(autouse=True)
def _no_test_hangs():
    with limited():
        yield


@pytest.fixture(scope="module")
def usual(both):
    """The coefficients where nothing happens."""
    return cd.LogisticRegression(**OPTIONS, client=both[1]).fit(*data(4)).coef_


@pytest.fixture(scope="module")
def best():
    """The answer, and P of a model's weights."""
    expected = ce.LogisticRegression(**{**OPTIONS, "tol": 1e-12}).fit(A, TWO)
    signs = np.where(TWO == 2, 1.0, -1.0)

    def value(model):
        w = model.coef_[0]
        return np.logaddexp(0, -signs * (A @ w)).mean() + w @ w / 2 / 10.0 / len(A)

    return expected, value


class At:
    """A callback that does something once, at the k-th look."""

    def __init__(self, look, act):
        self.look, self.act = look, act

    def __call__(self, progress):
        self.look -= 1
        if self.look == 0:
            self.act()


def kill(pids):
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def certified(model, best):
    expected, value = best
    assert model.dual_gap_ <= OPTIONS["tol"] * np.log(2)
    assert value(model) - value(expected) <= model.dual_gap_ + 1e-12


def data(count=4):
    return chunked(count, A, TWO)


@pytest.mark.parametrize("which", [slice(1), slice(None)])
def test_killed_workers_are_replaced(client, best, usual, which):
    """One of them, or all; the nannies start new ones, and Dask loads and computes again what they held."""
    pids = list(client.run(os.getpid, on_error="ignore").values())[which]
    X, two = data()
    model = cd.LogisticRegression(**OPTIONS, callbacks=At(3, lambda: kill(pids))).fit(X, two)
    assert not set(pids) & set(client.run(os.getpid, on_error="ignore").values())
    certified(model, best)
    np.testing.assert_array_equal(model.coef_, usual)  # the same partitions, the same bits


def test_a_worker_is_killed_within_a_round(client, best):
    """While a block function runs, so that the round itself is lost, and not only what was there before it."""
    pids = client.run(os.getpid, on_error="ignore")
    source = cd.DaskSource(*data(2), client=client)
    samples = source.samples()
    _ = samples.sizes
    victim = pids[next(iter(client.who_has(samples.partitions).values()))[0]]
    _, sums = samples.visit(deadly, victim=victim)
    np.testing.assert_allclose(sums[0], A.T @ np.ones((280, 1)))
    assert victim not in client.run(os.getpid, on_error="ignore").values()


def deadly(block, *, victim):
    if os.getpid() == victim:
        os.kill(victim, signal.SIGKILL)
    return np.ones((block.m, 1)), [block.adjoint(np.ones((block.m, 1)))]


def test_what_was_scattered_is_gone_with_its_worker(client):
    items = client.scatter(parts(2, A, TWO), hash=False)
    pids = list(client.run(os.getpid, on_error="ignore").values())
    model = cd.LogisticRegression(**OPTIONS, callbacks=At(3, lambda: kill(pids)))
    with pytest.raises(Failed, match=r"Give data that workers can load again.* The best point so far") as caught:
        model.fit(items)
    assert caught.value.result.gap[0] < np.inf
    np.testing.assert_array_equal(model.coef_[0], caught.value.result.w[:, 0])
    assert model.dual_gap_ == caught.value.result.gap[0]


@pytest.mark.slow
def test_a_function_that_kills_its_workers_is_given_up(client):
    with dask.config.set({"distributed.scheduler.allowed-failures": 3}), pytest.raises(Failed, match="KilledWorker"):
        cd.Ridge(patience=20.0).fit([dask.delayed(fatal)()])


def fatal():
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_worker_is_added(both, client, best, usual):
    made, _ = both
    X, two = data()
    model = cd.LogisticRegression(**OPTIONS, callbacks=At(3, lambda: made.scale(3))).fit(X, two)
    np.testing.assert_array_equal(model.coef_, usual)
    certified(model, best)
    client.wait_for_workers(3, timeout=30)
    again = cd.LogisticRegression(**OPTIONS).fit(X, two)
    np.testing.assert_array_equal(again.coef_, usual)
    made.scale(2)


def test_a_worker_that_says_nothing_is_named(client):
    """It is stopped, not killed: connections stay open, and only its heartbeats are missing."""
    address, pid = next(iter(client.run(os.getpid, on_error="ignore").items()))
    model = cd.LogisticRegression(**OPTIONS, patience=3.0, callbacks=At(3, lambda: os.kill(pid, signal.SIGSTOP)))
    try:
        with pytest.raises(
            Failed, match=f"Nothing has happened on the cluster for . seconds: {address} was last heard"
        ):
            model.fit(*data())
    finally:
        os.kill(pid, signal.SIGCONT)
    assert model.result_.gap[0] < np.inf


def test_a_client_is_closed_in_mid_fit(both):
    made, _ = both
    with Client(made) as other:
        X = [dask.delayed(rows)(k, 3) for k in range(3)]
        model = cd.Ridge(tol=1e-12, client=other, strategy="newton_cg", callbacks=At(2, other.close))
        with pytest.raises(Failed, match=r"client was closed.* The best point so far") as caught:
            model.fit(X)
    assert caught.value.result.gap[0] < np.inf


def test_without_workers_a_fit_ends_after_the_patience(both, best):
    made, client = both

    def leave():
        made.scale(0)

    model = cd.LogisticRegression(**OPTIONS, client=client, patience=2.0, callbacks=At(3, leave))
    with pytest.raises(Failed, match=r"Nothing has happened on the cluster for .* seconds: there is no worker"):
        model.fit(*data())
    expected, value = best
    assert value(model) - value(expected) <= model.dual_gap_ + 1e-12
    with pytest.raises(Failed, match="The fit had not begun"), warnings.catch_warnings():
        cd.Ridge(client=client, patience=1.0).fit(*chunked(2, A, T))
