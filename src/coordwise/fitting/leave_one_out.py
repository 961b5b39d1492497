"""Ridge regression with every sample left out in turn, for many penalties, by one eigendecomposition."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from coordwise.validation import FloatArray

__all__ = ["LeaveOneOut"]

LARGEST = 2**31  # bytes of the dense matrix that is decomposed
BLOCK = 2**21  # entries of the dense blocks of rows


class LeaveOneOut:
    r"""min over w, c   sum_i s_i (b_i - <a_i, w> - c)^2 + alpha |w|^2, and the same without sample i, for every i.

    With H = Z (Z'Z + alpha)^-1 Z', Z the weighted and centered samples sqrt(s_i) (a_i - mean), the error at a sample
    that was left out is its residual over 1 - H_ii - s_i/W (without an intercept, over 1 - H_ii): exact, not an
    approximation. Z'Z = V L V' gives H_ii = sum_j (Zv_j)_i^2/(L_j + alpha) for all alphas at once; with fewer samples
    than features ZZ' = Q L Q' does. Sparse samples stay sparse: centering is done on the products.

    Parameters
    ----------
    A : array or sparse array of shape (n, d)
    b : ndarray of shape (n, K)
    weights : ndarray of shape (n,), optional
    intercept : bool
    svd : bool, default False
        Decompose Z itself (dense A only), for data so badly scaled that the squares in Z'Z lose digits.

    Raises
    ------
    ValueError
        If the smaller one of n and d is so large that the matrix to decompose takes more than 2 GiB.
    """

    def __init__(
        self, A: Any, b: FloatArray, weights: FloatArray | None, *, intercept: bool, svd: bool = False
    ) -> None:
        n, d = A.shape
        if 8 * min(n, d) ** 2 > LARGEST:
            raise ValueError(
                f"Leaving out one sample at a time needs a dense matrix of {min(n, d)} x {min(n, d)} numbers "
                f"({8e-9 * min(n, d) ** 2:.0f} GB) for data of {n} x {d}. Give cv=5, or another number of folds: these "
                "are fitted without such a matrix."
            )
        self.sparse = sp.issparse(A)
        self.A: Any = sp.csr_array(A).astype(np.float64) if self.sparse else np.asarray(A, np.float64)
        self.s = np.ones(n) if weights is None else weights
        self.root = np.sqrt(self.s)[:, None]
        self.total = float(self.s.sum())
        self.intercept = intercept
        self.mean = np.asarray(self.s @ self.A) / self.total if intercept else np.zeros(d)
        self.center = self.s @ b / self.total if intercept else np.zeros(b.shape[1])
        self.b = b
        self.over_samples = n <= d
        self._decompose(svd and not self.sparse)

    def _weighted(self, rows: slice = slice(None)) -> FloatArray:
        """Rows of Z, dense."""
        A = self.A[rows].toarray() if self.sparse else self.A[rows]
        return self.root[rows] * (A - self.mean)

    def _decompose(self, svd: bool) -> None:
        z = self.root * (self.b - self.center)
        if svd:
            U, S, Vt = np.linalg.svd(self._weighted(), full_matrices=False)
            self.values, self.vectors = S**2, U if self.over_samples else Vt.T
            self.turned = U.T @ z if self.over_samples else S[:, None] * (U.T @ z)
            return
        gram = self._kernel() if self.over_samples else self._covariance()
        values, self.vectors = np.linalg.eigh(gram)
        self.values = np.maximum(values, 0)
        self.turned = self.vectors.T @ (z if self.over_samples else self._transposed(z))

    def _kernel(self) -> FloatArray:
        """ZZ'."""
        if not self.sparse:
            Z = self._weighted()
            return Z @ Z.T
        K = (self.A @ self.A.T).toarray()
        if self.intercept:
            ours = self.A @ self.mean
            K = K - ours[:, None] - ours + self.mean @ self.mean
        return self.root * K * self.root.T

    def _covariance(self) -> FloatArray:
        """Z'Z."""
        if not self.sparse:
            Z = self._weighted()
            return Z.T @ Z
        scaled = sp.csr_array(self.A.multiply(self.root))
        return (scaled.T @ scaled).toarray() - self.total * np.outer(self.mean, self.mean)

    def _transposed(self, z: FloatArray) -> FloatArray:
        """Z'z."""
        z = self.root * z
        return np.asarray(self.A.T @ z) - np.outer(self.mean, z.sum(0))

    def coefficients(self, alpha: float) -> tuple[FloatArray, FloatArray]:
        """(w, c) for all samples: d x K and K."""
        shrunk = self.vectors @ (self.turned / (self.values + alpha)[:, None])
        w = self._transposed(shrunk) if self.over_samples else shrunk
        return w, self.center - self.mean @ w

    def errors(self, alphas: FloatArray) -> FloatArray:
        """b_i less its prediction by the model without sample i: n x K x len(alphas)."""
        n, outputs = self.b.shape
        found = np.empty((n, outputs, len(alphas)))
        inverse = 1 / (self.values[:, None] + alphas)
        if self.over_samples:
            # residuals are alpha (ZZ' + alpha)^-1 z, and 1 - H_ii is alpha times the diagonal of the inverse
            left = alphas * (self.vectors**2 @ inverse)
            for k, alpha in enumerate(alphas):
                residuals = alpha * (self.vectors @ (self.turned * inverse[:, [k]]))
                found[:, :, k] = self._unweighted(residuals, alpha)
        else:
            left = np.empty((n, len(alphas)))
            step = max(BLOCK // max(len(self.vectors), 1), 1)
            shift = self.mean @ self.vectors
            centered = self.b - self.center
            for first in range(0, n, step):
                rows = slice(first, first + step)
                turned = np.asarray(self.A[rows] @ self.vectors) - shift
                left[rows] = 1 - self.s[rows, None] * (turned**2 @ inverse)
                for k in range(outputs):
                    fitted = turned @ (self.turned[:, [k]] * inverse)
                    found[rows, k] = centered[rows, [k]] - fitted
        if self.intercept:
            left = left - (self.s / self.total)[:, None]
        return found / left[:, None, :]

    def _unweighted(self, residuals: FloatArray, alpha: float) -> FloatArray:
        """Residuals b_i - <a_i, w> - c of weighted ones; those of samples without weight from the model itself."""
        some = self.root > 0
        found = residuals / np.where(some, self.root, 1.0)
        if not np.all(some):
            w, c = self.coefficients(alpha)
            found = np.where(some, found, self.b - np.asarray(self.A @ w) - c)
        return found
