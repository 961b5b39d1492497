"""Products, Gram matrices, sums of terms and certificates by several threads."""

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
import scipy.sparse as sp

import coordwise as cw
from coordwise.fitting import weighted
from coordwise.fitting.moments import Moments
from coordwise.fitting.weighted import Gram
from coordwise.kernels import Terms
from coordwise.losses import get_loss
from coordwise.methods import SDCA
from coordwise.rows import Rows
from coordwise.starting import start


@pytest.mark.parametrize("store", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("threads", [2, 7])
def test_products_by_several_threads(store, outputs, threads):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((40_000, 6)) * (rng.random((40_000, 6)) < 0.5)
    rows = Rows(store(A))
    v, u = rng.standard_normal((6, outputs)), rng.standard_normal((40_000, outputs))
    np.testing.assert_array_equal(rows.dots(v, threads), rows.dots(v))
    np.testing.assert_allclose(rows.combine(u, threads), rows.combine(u), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(rows.combine(u, threads), A.T @ u, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("beside", [0, 1, 9])
@pytest.mark.parametrize("width", [1, 7, 8, 21, 70])
@pytest.mark.parametrize("storage", [np.asarray, np.asfortranarray, np.float32, sp.csr_array, sp.csc_array])
def test_weighted_gram_matrix(storage, width, beside, threads):
    rng = np.random.default_rng(4)
    A = np.where(rng.random((5000, width)) < 0.5, rng.standard_normal((5000, width)), 0.0)
    more = rng.standard_normal((5000, beside)) if beside else None
    weights = rng.standard_normal(5000)
    weights[:100] = weights[-70:] = 0
    gram = Rows(storage(A), "rows").gram(weights, threads, more)
    whole = A.astype(np.float32).astype(float) if storage is np.float32 else A
    whole = whole if more is None else np.column_stack([whole, more])
    np.testing.assert_allclose(gram, whole.T @ (weights[:, None] * whole), rtol=1e-12, atol=1e-9)
    np.testing.assert_array_equal(gram, gram.T)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("row", [None, 0, 20_000, 39_999])
def test_entries_at_one_place_are_found_by_whichever_thread(row, threads):
    rng = np.random.default_rng(0)
    indices = rng.permuted(np.tile(np.arange(3, dtype=np.int32), (40_000, 1)), axis=1)
    if row is not None:
        indices[row, 2] = indices[row, 0]
    A = sp.csr_array((np.ones(120_000), indices.ravel(), np.arange(0, 120_001, 3, dtype=np.int32)), shape=(40_000, 3))
    rows = Rows(A, threads=threads)
    assert rows.copied == (row is not None)  # then they are summed
    np.testing.assert_array_equal(rows.dots(np.ones((3, 1)))[:, 0], np.full(40_000, 3.0))


def test_a_gram_matrix_of_rows_that_all_weigh_nothing():
    np.testing.assert_array_equal(Rows(np.ones((130, 3))).gram(np.zeros(130), 2), np.zeros((3, 3)))


def test_gram_matrix_checks_its_arguments():
    matrix = Rows(np.ones((4, 2)), "rows")
    with pytest.raises(ValueError, match="weights have the wrong length"):
        matrix.gram(np.ones(3))
    with pytest.raises(ValueError, match="columns beside have the wrong shape"):
        matrix.gram(np.ones(4), 1, np.ones((3, 1)))


@pytest.mark.parametrize("store", [np.asarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kind", ["equal", "positive", "with zeros", "of both signs", "none"])
def test_gram_matrices(store, intercept, kind):
    rng = np.random.default_rng(0)
    n = weighted.BLOCK + 100
    A = rng.standard_normal((n, 5)) * (rng.random((n, 5)) < 0.2)
    weights = {
        "equal": np.full(n, 0.3),
        "positive": rng.random(n) + 0.1,
        "with zeros": rng.random(n) * (rng.random(n) < 0.5),
        "of both signs": rng.standard_normal(n),
        "none": np.zeros(n),
    }[kind]
    B = np.column_stack([A, np.ones(n)]) if intercept else A
    for threads in (1, 2):
        found = Gram(store(A), intercept, threads)(weights)
        np.testing.assert_allclose(found, B.T @ (weights[:, None] * B), atol=1e-10)


@pytest.mark.parametrize("store", [np.asarray, np.float32, sp.csr_array])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("wide", [1000, 5])  # features from where BLAS takes over
def test_gram_matrices_with_further_columns(store, intercept, wide, monkeypatch):
    monkeypatch.setattr(weighted, "WIDE", wide)
    rng = np.random.default_rng(0)
    A = rng.standard_normal((6000, 6)) * (rng.random((6000, 6)) < 0.2)
    A = A.astype(np.float32).astype(float)
    b, h = rng.standard_normal((6000, 2)), rng.standard_normal(6000)
    h[rng.random(6000) < 0.3] = 0
    whole = np.column_stack([A, np.ones((6000, int(intercept))), b])
    gram = Gram(store(A), intercept, 2)
    np.testing.assert_allclose(gram(h, b), whole.T @ (h[:, None] * whole), rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(gram(h), gram(h, b)[:-2, :-2], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("loss", ["logistic", "squared", "squared_hinge", "l2l1"])
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_terms_by_several_threads(loss, outputs, weighted):
    rng = np.random.default_rng(0)
    t, b = rng.standard_normal((200_000, outputs)), np.sign(rng.standard_normal((200_000, outputs)))
    s = rng.random(200_000) if weighted else None
    one, three = (Terms(get_loss(loss).shape, 0.5, b, s, threads) for threads in (1, 3))
    y = one.subgradients(t)
    np.testing.assert_array_equal(three.derivative(t), one.derivative(t))
    np.testing.assert_array_equal(three.second_derivative(t), one.second_derivative(t))
    np.testing.assert_array_equal(three.subgradients(t), y)
    np.testing.assert_allclose(three.value(t), one.value(t), rtol=1e-14)
    np.testing.assert_allclose(three.conjugate(y), one.conjugate(y), rtol=1e-13)


@pytest.mark.parametrize("threads", [2, 7])
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("store", [np.asarray, sp.csr_array])
def test_certificates_do_not_depend_on_threads(store, outputs, threads):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((9001, 15)) * (rng.random((9001, 15)) < 0.5)  # enough entries to be packed
    objective = cw.ERM(store(A), np.sign(rng.standard_normal((9001, outputs))), loss="logistic", lam=1e-3).dual()
    found = []
    for count in (1, threads):
        run = start(objective, SDCA().schedule(objective), 0, objective.start(None), count)
        run.advance(steps=9001)
        g = np.full((9001, outputs), np.nan)
        found.append((objective.certify_run(run, g), g, run.point()))
    (one, g, x), (other, same_g, _) = found
    np.testing.assert_array_equal(other.gap, one.gap)
    np.testing.assert_array_equal(same_g, g)
    np.testing.assert_allclose(one.gap, objective.certify(x).gap, rtol=1e-9)


def test_many_targets_are_not_columns_of_the_gram_matrix():
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((50, 3)), rng.standard_normal((50, 40))
    s = rng.random(50)
    many = Moments.of(A, b, s)
    few = [Moments.of(A, b[:, k : k + 1], s) for k in range(40)]
    assert many.gram.shape == (3, 3)
    np.testing.assert_allclose(many.cross, np.hstack([one.cross for one in few]), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(many.sums, few[0].sums)


def products(rows, v, threads, found, at):
    for _ in range(20):
        found[at] = rows.dots(v, threads)


def test_several_callers_at_once():
    """Threads are lent to one caller at a time; the others do their work themselves."""
    rng = np.random.default_rng(0)
    rows, v = Rows(rng.standard_normal((40_000, 6))), rng.standard_normal((6, 1))
    found = [None] * 4
    callers = [threading.Thread(target=products, args=(rows, v, 1 + at, found, at)) for at in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    for one in found:
        np.testing.assert_array_equal(one, rows.dots(v))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_threads_after_a_fork():
    rng = np.random.default_rng(0)
    rows, v = Rows(rng.standard_normal((40_000, 6))), rng.standard_normal((6, 1))
    before = rows.dots(v, 3)
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # threads that do not come: better killed than waited for
        os._exit(0 if np.array_equal(rows.dots(v, 3), before) else 1)
    assert os.waitpid(child, 0)[1] == 0
    np.testing.assert_array_equal(rows.dots(v, 3), before)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="threads have no affinity that can be read here")
def test_threads_that_help_stay_off_the_processor_of_the_caller():
    """Woken there they would wait until it is done."""
    code = """
import os
import numpy as np
from coordwise.rows import Rows
tasks = lambda: {int(task) for task in os.listdir("/proc/self/task")}
rows, v = Rows(np.ones((100_000, 8))), np.ones((8, 1))
where = lambda: int(open("/proc/thread-self/stat").read().rsplit(")", 1)[1].split()[36])
allowed, before = os.sched_getaffinity(0), tasks()
rows.dots(v, 2)
(helper,) = tasks() - before

def check(expected):
    wrong = 0
    for _ in range(100):
        here = where()
        rows.dots(v, 2)
        wrong += where() == here and os.sched_getaffinity(helper) != expected(here)
    assert wrong <= 10, wrong  # it may have been elsewhere for a moment

check(lambda here: allowed - {here} or allowed)
os.sched_setaffinity(0, {min(allowed)})
check(lambda here: {here})
os.sched_setaffinity(0, allowed)
check(lambda here: allowed - {here} or allowed)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
