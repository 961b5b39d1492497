"""Memory: what a run holds is free when it ends, and large arrays are made where others were."""

import gc
import os
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import unequal_rows

import coordwise as cw
from coordwise.kernels import LARGE, Matrix, empty


@pytest.mark.parametrize("side", ["dual", "primal"])
@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge"])
def test_a_run_leaves_nothing_behind_for_the_collector(loss, side):
    A = unequal_rows(120, 20, seed=1)
    b = np.where(np.random.default_rng(2).random(120) < 0.5, -1.0, 1.0)
    objective = getattr(cw.ERM(A, b, loss=loss, penalty="elastic_net", l1_ratio=0.5, lam=1e-2), side)()
    gone = weakref.ref(objective.rows)
    gc.disable()
    try:
        assert cw.solve(objective, tol=1e-6).converged
        del objective
        assert gone() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int32, np.uint32])
@pytest.mark.parametrize("shape", [(0,), (7,), (3, 5), (400_000,), (300_000, 2)])
def test_empty_arrays_are_as_asked_for(shape, dtype):
    found = empty(shape, dtype)
    assert found.shape == shape
    assert found.dtype == dtype
    assert found.flags.c_contiguous
    assert found.flags.writeable
    assert found.flags.aligned
    found[...] = 3
    assert np.all(found == 3)


@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="sanitizers see memory that is given back")
def test_memory_is_used_again_but_by_one_array_at_a_time():
    shape = (123 * LARGE // 8,)  # no other test leaves such
    first, second = empty(shape), empty(shape)
    assert not np.shares_memory(first, second)
    first.fill(1.0)
    part = first[5:9]  # keeps all of it
    where = first.ctypes.data
    del first
    third = empty(shape)
    assert third.ctypes.data != where
    third.fill(2.0)
    assert np.all(part == 1.0)
    del part
    assert empty((shape[0] - 10,)).ctypes.data == where  # a little less will do


def test_threads_do_not_get_the_same_memory():
    wrong = []

    def work(k):
        for _ in range(200):
            mine = empty((LARGE // 8 + 1000 * (k % 3),))
            mine.fill(k)
            if not np.all(mine == k):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_scipy_takes_such_arrays_as_they_are():
    A = sp.random_array((3000, 400), density=0.3, rng=np.random.default_rng(0), format="csr")
    arrays = Matrix(A.data, A.indices, A.indptr, width=400).transposed()
    assert arrays[0].nbytes >= LARGE
    turned = sp.csr_array(arrays, shape=(400, 3000), copy=False)
    assert np.shares_memory(turned.data, arrays[0])
    np.testing.assert_array_equal(turned.toarray(), A.toarray().T)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks /proc")
def test_what_is_kept_is_bounded_and_the_rest_goes_back():
    code = """
import resource
from coordwise.kernels import empty

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20

before = resident()
arrays = [empty((10**6,)) for _ in range(40)] + [empty((20 * 10**6,))]
for array in arrays:
    array.fill(1.0)
most = resident() - before
del arrays, array
print(most, resident() - before)
"""
    most, kept = map(
        float, subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.split()
    )
    assert most > 450
    assert kept < 140
