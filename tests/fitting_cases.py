"""Small linear models of every loss and penalty."""

import functools

import numpy as np

import coordwise as cw
from coordwise.fitting.model import LinearModel
from coordwise.losses import LOSSES

PENALTIES = {
    "l2": cw.penalties.L2(0.05),
    "l1": cw.penalties.L1(0.2),
    "elastic_net": cw.penalties.ElasticNet(0.1, 0.05),
    "l2_positive": cw.penalties.L2(0.05, positive=True),
    "l1_positive": cw.penalties.L1(0.2, positive=True),
    "elastic_net_positive": cw.penalties.ElasticNet(0.1, 0.05, positive=True),
}
SHAPES = {"tall": (60, 6), "wide": (12, 20)}


@functools.cache
def data(loss, shape="tall", outputs=2, seed=0):
    """(A, b, weights): columns of different sizes and means; some weights are zero."""
    n, d = SHAPES[shape]
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) * 10 ** rng.uniform(-0.5, 0.5, d) + rng.uniform(-1, 1, d)
    t = A @ rng.standard_normal((d, outputs)) + 3 + rng.standard_normal((n, outputs))
    b = np.where(t > np.median(t, 0), 1.0, -1.0) if LOSSES[loss].classification else t
    return A, b, np.where(rng.random(n) < 0.1, 0.0, rng.uniform(0, 2, n))


def model_of(loss, penalty="l2", intercept=True, weighted=False, shape="tall", outputs=2, store=np.asarray):
    A, b, s = data(loss, shape, outputs)
    penalty = PENALTIES[penalty] if isinstance(penalty, str) else penalty
    return LinearModel(cw.ERM(store(A), b, loss, penalty, sample_weight=s if weighted else None), intercept)
