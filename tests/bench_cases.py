"""Data that the tests of comparisons share."""

import numpy as np
import scipy.sparse as sp

from coordwise.bench.problems import Data


def small_data(classification, storage=sp.csr_array, n=120, d=15):
    rng = np.random.default_rng(3)
    A = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.6)
    scores = A @ rng.standard_normal(d) + 0.7 + rng.standard_normal(n)
    return Data(storage(A), np.where(scores > 0, 1.0, -1.0) if classification else scores)
