"""Problems on which Newton steps are short."""

import numpy as np
import scipy.sparse as sp

import coordwise as cw
from coordwise.fitting.model import LinearModel


def rare_features(n=4000, d=30, seed=0):
    """Binary features, most of them rare, and few positive labels: Newton steps from 0 are short."""
    rng = np.random.default_rng(seed)
    A = sp.random_array((n, d), density=0.1, rng=rng, format="csr")
    A.data[:] = 1.0
    b = np.where(A @ rng.standard_normal(d) - 1.5 + 0.3 * rng.standard_normal(n) > 0, 1.0, -1.0)
    return A, b


def model_of(loss="logistic", lam=1e-6, intercept=False, weights=None, **shape):
    A, b = rare_features(**shape)
    return LinearModel(cw.ERM(A, b, loss=loss, lam=lam, sample_weight=weights), intercept)
