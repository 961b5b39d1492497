"""Threads of linear algebra: one while kernels have theirs, and the number that was there comes back."""

import numpy as np
import pytest

from coordwise.blas import LARGE, _Limit, _of_scipy, one_blas_thread, one_scipy_thread
from coordwise.erm import ERM
from coordwise.fitting import fit as module
from coordwise.fitting.fit import fit
from coordwise.fitting.model import LinearModel
from coordwise.penalties import L2

threadpoolctl = pytest.importorskip("threadpoolctl")


def counts(*, scipy=None):
    """Threads of every BLAS, or of scipy's own or the others alone."""
    pools = [pool for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"]
    return [pool["num_threads"] for pool in pools if scipy is None or _of_scipy(pool["filepath"]) == scipy]


@pytest.fixture(autouse=True)
def two_threads():
    with threadpoolctl.threadpool_limits(2, "blas"):
        yield


@pytest.mark.parametrize("limited", [one_blas_thread, one_scipy_thread])
def test_the_number_comes_back(limited):
    before = counts()
    with limited():
        assert set(counts(scipy=True)) <= {1}
        assert counts(scipy=False) == ([1] if limited is one_blas_thread else [2]) * len(counts(scipy=False))
    assert counts() == before


@pytest.mark.parametrize("limited", [one_blas_thread, one_scipy_thread])
def test_large_systems_keep_their_threads(limited):
    before = counts()
    with limited(LARGE + 1):
        assert counts() == before


def test_it_comes_back_where_the_limit_itself_is_interrupted():
    class Library:
        def __init__(self, name, fails=False):
            self.filepath, self.threads, self.fails = name, 2, fails

        def get_num_threads(self):
            return self.threads

        def set_num_threads(self, count):
            self.threads = count
            if self.fails:
                self.fails = False
                raise KeyboardInterrupt

    first, second = Library("one"), Library("other", fails=True)
    limit = _Limit()
    with pytest.raises(KeyboardInterrupt), limit.held([first, second]):
        raise AssertionError("never reached")
    assert (first.threads, second.threads) == (2, 2)
    with limit.held([first, second]):
        assert (first.threads, second.threads) == (1, 1)
    assert (first.threads, second.threads) == (2, 2)


def test_it_comes_back_after_an_error():
    before = counts()
    with pytest.raises(RuntimeError), one_blas_thread():
        raise RuntimeError
    assert counts() == before


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("second", [one_blas_thread, one_scipy_thread])
def test_it_comes_back_when_the_last_is_done(order, second):
    """Callers in several threads need not end in the order they began in."""
    before = counts()
    callers = [one_blas_thread(), second()]
    for caller in callers:
        caller.__enter__()
    callers[order[0]].__exit__(None, None, None)
    assert set(counts(scipy=True)) <= {1}
    callers[order[1]].__exit__(None, None, None)
    assert counts() == before


@pytest.mark.parametrize(
    ("path", "own"),
    [
        ("/env/lib/python3.12/site-packages/scipy.libs/libscipy_openblas-1.so", True),
        ("/env/lib/python3.12/site-packages/scipy/.dylibs/libscipy_openblas.dylib", True),
        ("/env/lib/python3.12/site-packages/numpy.libs/libscipy_openblas64_-1.so", False),
        ("/home/scipy.libs/env/lib/libopenblas.so", False),
        ("/usr/lib/libopenblas.so.0", False),
    ],
)
def test_which_library_is_scipys_own(path, own):
    assert _of_scipy(path) == own


def test_wide_dense_data_leave_numpy_its_threads():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((400, 200))
    model = LinearModel(ERM(A, np.sign(A[:, 0]), loss="logistic", penalty=L2(0.01)), False)
    seen = []
    found = fit(
        model, tol=1e-6, strategy="newton", callback=lambda _: seen.append((counts(scipy=True), counts(scipy=False)))
    )
    assert found.converged
    assert seen
    for own, others in seen:
        assert set(own) <= {1}
        assert set(others) <= {2}


def test_what_decides_about_a_strategy_has_one_thread_too(monkeypatch):
    """A thread that helped with a single product would go on spinning beside the kernels."""
    seen = []

    def watched(*args):
        seen.append(set(counts()))
        return choose(*args)

    choose = module.choose
    monkeypatch.setattr(module, "choose", watched)
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((60, 3)), np.where(rng.random(60) < 0.5, -1.0, 1.0)
    assert fit(LinearModel(ERM(A, b, "logistic", L2(1e-2)), False), tol=1e-3).converged
    assert seen == [{1}]
