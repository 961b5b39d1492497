"""What tests of problems and their solution share: one small problem for every loss, and refusals."""

import numpy as np
import pytest

import coordwise as cw
from coordwise.losses import LOSSES

N, D = 12, 4


def data(n=N, d=D, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), rng.standard_normal(n)


A, B = data()
LABELS = np.where(B > 0, 1.0, -1.0)


def erm(loss="squared", **options):
    options = {"penalty": "l2", "lam": 0.1} | options
    return cw.ERM(A, LABELS if LOSSES[loss].classification else B, loss, **options)


def refused(message, error=ValueError):
    return pytest.raises(error, match=message)


def solve_or_refuse(make, *arguments):
    """The result, or None if the problem was refused with advice to rescale."""
    try:
        return cw.solve(make(*arguments), max_passes=300)
    except ValueError as error:
        if "rescale" not in str(error):
            raise
        return None
