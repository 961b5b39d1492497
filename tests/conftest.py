"""Shared fixtures: the paper's datasets where they are at hand, and small problems with very unequal rows."""

import os

import numpy as np
import pytest
import scipy.sparse as sp

from coordwise import datasets

DATA = os.environ.get("COORDWISE_DATA")


def unequal_rows(n, d, seed=0, density=None, spread=2.0):
    """A random matrix whose row norms spread over `spread` orders of magnitude."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) * 10 ** rng.uniform(-spread / 2, spread / 2, (n, 1))
    if density is not None:
        A *= rng.random((n, d)) < density
        A[np.arange(n), rng.integers(0, d, n)] += 1.0  # no empty row
    return A


STORAGES = {
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "csr64": lambda A: _int64(sp.csr_array(A)),
    "dense_c": np.ascontiguousarray,
    "dense_f": np.asfortranarray,
}


def _int64(A):
    A.indices, A.indptr = A.indices.astype(np.int64), A.indptr.astype(np.int64)
    return A


@pytest.fixture(scope="session", autouse=True)
def _no_network_and_a_cache_of_our_own(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COORDWISE_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("COORDWISE_MIRROR", "http://127.0.0.1:9/")
        yield


@pytest.fixture(scope="session")
def paper_dataset():
    """(A, b) of news20, w8a or covtype with labels +1/-1; the test is skipped if COORDWISE_DATA does not hold it."""
    loaded = {}

    def get(name):
        if name not in loaded:
            if not DATA:
                pytest.skip("COORDWISE_DATA is not set")
            try:
                loaded[name] = datasets.load(name, folder=DATA, mmap=False)
            except FileNotFoundError as error:
                pytest.skip(str(error))
        return loaded[name].A, loaded[name].b

    return get
