"""What multinomial models share."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import softmax

from coordwise.fitting.weighted import Gram
from coordwise.validation import FloatArray

__all__ = ["best_intercepts", "hessian_blocks"]


def best_intercepts(s: FloatArray, t: FloatArray, hot: FloatArray, c: FloatArray) -> FloatArray:
    """The intercepts that minimise the loss for given scores, by Newton's method: the columns of Y add up to 0."""
    c = c - c.mean()
    for _ in range(50):
        q = softmax(t + c, axis=1)
        gradient = s @ (q - hot)
        if np.max(np.abs(gradient)) <= 1e-15 * s.sum():
            break
        hessian = np.diag(s @ q) - (q * s[:, None]).T @ q
        step = np.linalg.lstsq(hessian, gradient, rcond=1e-12)[0]
        limit = np.max(np.abs(step))
        c = c - step * min(1.0, 2.0 / limit if limit > 0 else 1.0)
    return c - c.mean()


def hessian_blocks(gram: Gram, s: FloatArray, q: FloatArray) -> Iterator[tuple[int, int, FloatArray]]:
    """(j, k, block) for classes j <= k: second derivatives of sum_i s_i log sum_k exp(t_ik) in their weights."""
    for j in range(q.shape[1]):
        for k in range(j, q.shape[1]):
            yield j, k, gram(s * q[:, j] * ((j == k) - q[:, k]))
