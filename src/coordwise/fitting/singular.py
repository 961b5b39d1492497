"""Least squares and ridge regression by the singular values of the data: accurate however weak the penalty is."""

from __future__ import annotations

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from coordwise.fitting.model import LinearModel
from coordwise.fitting.newton import FEW
from coordwise.validation import FloatArray

__all__ = ["Singular", "decomposes"]

DENSE = 2**26  # entries of a matrix that may be decomposed as a dense one


def decomposes(model: LinearModel) -> bool:
    """Whether the loss is squared, and the data are small enough to be decomposed."""
    small = min(model.n, model.d) <= FEW and model.n * model.d <= DENSE
    return model.loss.name == "squared" and small


class Singular:
    """Solutions for the squared loss by the singular values of the centered data that are not rounding."""

    def __init__(self, model: LinearModel) -> None:
        s = np.ones(model.n) if model.weights is None else model.weights
        self.intercept, self.p = model.intercept, s / model.total
        self.root = np.sqrt(s)
        if "singular" not in model.shared:
            A = model.A.toarray() if sp.issparse(model.A) else model.A
            B = np.asarray(A, np.float64)
            means = self.p @ B if model.intercept else np.zeros(model.d)
            U, values, Vt = scipy.linalg.svd((B - means) * self.root[:, None], full_matrices=False, check_finite=False)
            kept = values > max(B.shape) * np.finfo(float).eps * np.max(values, initial=0.0)
            model.shared["singular"] = U[:, kept], values[kept], Vt[kept], means
        self.U, self.values, self.Vt, self.means = model.shared["singular"]

    def step(self, y: FloatArray, h: FloatArray, most: float) -> tuple[FloatArray, float, int]:
        """(u, e) with A'(h (Au + e)) = A'y and sum_i h_i (<a_i, u> + e) = sum_i y_i, and what it took.

        Of several u it is the smallest.
        """
        r = np.divide(y, self.root, out=np.zeros_like(y), where=self.root > 0)
        u = self.Vt.T @ ((self.U.T @ r) / self.values)
        e = float(y.sum() / (self.root @ self.root) - self.means @ u) if self.intercept else 0.0
        return u, e, 1

    def ridge(self, b: FloatArray, alpha: float) -> FloatArray:
        """w (d x K) that minimises sum_i s_i (b_i - <a_i, w> - c)^2 + alpha |w|^2 over w and c."""
        z = self.root[:, None] * (b - self.p @ b if self.intercept else b)
        return self.Vt.T @ ((self.values / (self.values**2 + alpha))[:, None] * (self.U.T @ z))
