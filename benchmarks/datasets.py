"""The paper's three datasets for benchmarks, or stand-ins of the same shape where they are not at hand."""

from __future__ import annotations

import io
import lzma
import os
import pathlib

import numpy as np
import scipy.sparse as sp

SHAPES = {"news20": (15_935, 62_061, 80), "w8a": (49_749, 300, 12), "covtype": (581_012, 54, 12)}
FILES = {"news20": "news20.svm.xz", "w8a": "w8a.svm.xz", "covtype": "covtype.binary.svm.xz"}
POSITIVE = {"news20": 1, "w8a": 1, "covtype": 2}


def load(name: str) -> tuple[sp.csr_array, np.ndarray, np.ndarray, str]:
    """(A, labels +1/-1, raw classes, where it came from). COORDWISE_DATA names the folder of the svmlight files."""
    folder = os.environ.get("COORDWISE_DATA")
    file = pathlib.Path(folder, FILES[name]) if folder else None
    if file is None or not file.exists():
        return (*_stand_in(name), "generated stand-in")
    from sklearn.datasets import load_svmlight_file

    with lzma.open(file) as stream:
        A, y = load_svmlight_file(io.BytesIO(stream.read()))
    A = sp.csr_array(A)
    A.indices, A.indptr = A.indices.astype(np.int32), A.indptr.astype(np.int32)
    return A, np.where(y == POSITIVE[name], 1.0, -1.0), y, file.name


def _stand_in(name: str) -> tuple[sp.csr_array, np.ndarray, np.ndarray]:
    """Random rows with log-normal lengths and Zipf-like columns."""
    n, d, per_row = SHAPES[name]
    rng = np.random.default_rng(0)
    lengths = np.clip(rng.lognormal(np.log(per_row) - 0.3, 0.8, n).astype(int), 1, d // 2)
    popularity = 1 / np.arange(1, d + 1) if d > 1000 else np.ones(d)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    columns = rng.choice(d, indptr[-1], p=popularity / popularity.sum())
    A = sp.csr_array((rng.random(indptr[-1]) + 0.5, columns.astype(np.int32), indptr.astype(np.int32)), shape=(n, d))
    A.sum_duplicates()
    classes = rng.integers(1, 21, n).astype(float)
    return A, np.where(classes == 1, 1.0, -1.0), classes
