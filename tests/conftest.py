"""Shared fixtures: the paper's datasets where they are at hand, and small problems with very unequal rows."""

import io
import lzma
import os
import pathlib

import numpy as np
import pytest
import scipy.sparse as sp


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


def load_paper_dataset(name):
    """(A, b) of news20, w8a or covtype with labels +1/-1, or a skip if COORDWISE_DATA does not hold them."""
    folder = os.environ.get("COORDWISE_DATA")
    file = pathlib.Path(folder or ".") / {"covtype": "covtype.binary"}.get(name, name)
    file = file.with_name(file.name + ".svm.xz")
    if folder is None or not file.exists():
        pytest.skip(f"COORDWISE_DATA does not hold {file.name}")
    from sklearn.datasets import load_svmlight_file

    with lzma.open(file) as stream:
        A, y = load_svmlight_file(io.BytesIO(stream.read()))
    positive = {"news20": 1, "w8a": 1, "covtype": 2}[name]
    return sp.csr_array(A), np.where(y == positive, 1.0, -1.0)


@pytest.fixture(scope="session")
def paper_dataset():
    cache = {}

    def get(name):
        if name not in cache:
            cache[name] = load_paper_dataset(name)
        return cache[name]

    return get
