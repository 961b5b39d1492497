"""Ridge regression with every sample left out in turn, for many penalties, by one decomposition."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

from coordwise.fitting.centering import Centered
from coordwise.validation import FloatArray

__all__ = ["LeaveOneOut"]

LARGEST = 2**31  # bytes of the dense matrix that is decomposed
BLOCK = 2**21  # entries of the dense blocks of rows
EPS = float(np.finfo(float).eps)
DIGITS = 1e-8  # relative error, of what residuals are divided by, from which on singular values take over
LIGHT = 1e-6  # sqrt(s_i/W) of samples whose weighted residuals have too few digits
ROUNDING = 16 * EPS  # of the entries of singular vectors, times sqrt(n): smaller ones are 0
CLOSE = 1e-3  # share of a sample outside the span of the features, below which that share is computed by itself


class LeaveOneOut:
    r"""min over w, c   sum_i s_i (b_i - <a_i, w> - c)^2 + alpha |w|^2, and the same without sample i, for every i.

    With H = Z (Z'Z + alpha)^-1 Z', Z the weighted and centered samples sqrt(s_i) (a_i - mean), the error at a sample
    that was left out is its residual over 1 - H_ii - s_i/W (without an intercept, over 1 - H_ii): exact, not an
    approximation. Let q = sqrt(s/W), Q the left singular vectors of Z, which are orthogonal to q, and L the squares of
    its singular values. Then

        1 - H_ii - s_i/W = sum_j Q_ij^2 alpha/(L_j + alpha) + |C_i|^2,

    C_i the part of sample i outside the span of q and Q. This is a sum of positive terms, so that it keeps its digits
    however small it is: q is taken out of ZZ' by a reflection before the eigenvectors are computed, and not subtracted
    after. C is empty if there are at most d samples (d + 1 with an intercept). With more of them the difference on the
    left side is taken for ordinary data, by the eigenvectors of Z'Z.

    Eigenvalues of ZZ' and Z'Z carry an error of about 1e-16 max_j L_j. Where alpha and 1 - H_ii are so small that this
    would cost more than seven digits, the singular values of Z take their place, whose squares are good to 1e-32 of
    the largest. A warning says if sparse data are too large for that.

    Parameters
    ----------
    A : array or sparse array of shape (n, d)
    b : ndarray of shape (n, K)
    weights : ndarray of shape (n,), optional
    intercept : bool
    svd : bool, default False
        Decompose Z itself at once (dense A only).

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
        self.s = np.ones(n) if weights is None else weights
        self.root = np.sqrt(self.s)[:, None]
        self.total = float(self.s.sum())
        self.intercept = intercept
        self.data = Centered(A, self.s, intercept)
        targets = Centered(b, self.s, intercept)
        self.b, self.center, self.z = b, targets.mean, self.root * targets.A
        self.targets = targets.A
        self._reflect_to()
        self.basis: FloatArray | None = None  # Q, if it is known
        self.distinct: _Distinct | None = None  # what singular values of the distinct samples say, if they are needed
        if svd and not self.data.sparse:
            self._distinguish()
        else:
            self._decompose()

    # The reflection P with P q = -e_p, p the sample of largest weight: without row p it takes q out

    def _reflect_to(self) -> None:
        q = self.root[:, 0] / np.sqrt(self.total)
        self.pivot = int(np.argmax(q))
        self.normal = q.copy()
        self.normal[self.pivot] += 1
        self.q = q

    def _reflected(self, M: FloatArray) -> FloatArray:
        """P M without row p."""
        if not self.intercept:
            return M
        p, v = self.pivot, self.normal
        return np.delete(M - np.outer(v, (v @ M) / v[p]), p, axis=0)

    def _back(self, U: FloatArray) -> FloatArray:
        """P U, U with a row of zeros for p."""
        if not self.intercept:
            return U
        p, v = self.pivot, self.normal
        U = np.insert(U, p, 0.0, axis=0)
        return U - np.outer(v, (v @ U) / v[p])

    # Decompositions

    def _decompose(self) -> None:
        n, d = self.data.shape
        if n - self.intercept > d:
            values, self.vectors = np.linalg.eigh(self._covariance())
            self.values = np.maximum(values, 0)
            self.turned = self.vectors.T @ self._transposed(self.z)
            return
        values, U = np.linalg.eigh(self._reflected(self._reflected(self._kernel()).T))
        self.values = np.maximum(values, 0)
        self._keep_basis(U)

    def _keep_basis(self, U: FloatArray) -> None:
        """Q from its reflection."""
        Q = self._back(U)
        Q[np.abs(Q) < ROUNDING * np.sqrt(len(Q))] = 0.0
        self.basis, self.turned = Q, Q.T @ self.z
        self.outside, self.remainder = self._outside(Q)

    def _distinguish(self) -> None:
        """Take equal samples as one that has their weights together.

        Apart, they would be equal up to rounding only, which small alphas tell apart. For sample i of a group of weight
        S, what its residual is divided by is 1 - s_i/S + s_i/S times that of the group: `share` is s_i/S.
        """
        rows, group = np.unique(self.data.dense(), axis=0, return_inverse=True)
        count, self.group = len(rows), group.reshape(-1)
        weight: FloatArray = np.bincount(self.group, self.s, count).astype(np.float64)
        members = np.bincount(self.group, minlength=count)
        some = weight[self.group] > 0
        self.share = np.where(some, self.s / np.where(some, weight[self.group], 1.0), 0.0)
        means = np.zeros((count, self.b.shape[1]))
        np.add.at(means, self.group, np.where(some, self.share, 1 / members[self.group])[:, None] * self.targets)
        self.apart = self.targets - means[self.group]
        self.distinct = _Distinct(rows, means, weight, intercept=self.intercept)

    def _weighted(self, rows: slice = slice(None)) -> FloatArray:
        """Rows of Z, dense."""
        Z = self.data.dense(rows)
        Z *= self.root[rows]
        return Z

    def _kernel(self) -> FloatArray:
        """ZZ'."""
        if not self.data.sparse:
            Z = self._weighted()
            return Z @ Z.T
        A, mean = self.data.A, self.data.rest
        K = (A @ A.T).toarray()
        if self.intercept:
            ours = A @ mean
            K = K - ours[:, None] - ours + mean @ mean
        return self.root * K * self.root.T

    def _covariance(self) -> FloatArray:
        """Z'Z."""
        if not self.data.sparse:
            Z = self._weighted()
            return Z.T @ Z
        scaled = sp.csr_array(self.data.A.multiply(self.root))
        return (scaled.T @ scaled).toarray() - self.total * np.outer(self.data.rest, self.data.rest)

    def _transposed(self, z: FloatArray) -> FloatArray:
        """Z'z."""
        z = self.root * z
        return np.asarray(self.data.A.T @ z) - np.outer(self.data.rest, z.sum(0))

    def _outside(self, Q: FloatArray) -> tuple[FloatArray, FloatArray]:
        """|C_i|^2 for every sample, and C C'z: what of a sample, and of the targets, is outside the span of q and Q.

        Where it is small, as a difference it would be rounding: the samples themselves are projected, twice. These are
        about d at most, since the squared lengths inside sum to d + 1.
        """
        n, inside = len(Q), np.column_stack([self.q, Q]) if self.intercept else Q
        if inside.shape[1] >= n:
            return np.zeros(n), np.zeros_like(self.z)

        def project(M: FloatArray) -> FloatArray:
            for _ in range(2):
                M = M - inside @ (inside.T @ M)
            return M

        remainder = project(self.z)
        size = 1 - np.sum(inside**2, axis=1)
        close = np.flatnonzero(size < CLOSE)
        if len(close):
            each = np.zeros((n, len(close)))
            each[close, np.arange(len(close))] = 1
            each = project(each)
            size[close] = np.sum(each**2, axis=0)
            size[close[size[close] < n * EPS**2]] = 0.0  # rounding
            remainder[close] = np.where(size[close, None] > 0, each.T @ remainder, 0.0)
        return size, remainder

    # What is asked

    def coefficients(self, alpha: float) -> tuple[FloatArray, FloatArray]:
        """(w, c) for all samples: d x K and K."""
        w = self._coefficients(alpha) if self.distinct is None else self.distinct._coefficients(alpha)
        return w, self.center - self.data.mean @ w

    @property
    def _empty(self) -> Any:
        """Which directions the data do not have, up to rounding; of consequence for alpha = 0 alone."""
        return self.values <= max(self.data.shape) * EPS * self.values.max(initial=0.0)

    def _inverse(self, alpha: float) -> FloatArray:
        """1/(L_j + alpha), for alpha = 0 that of the directions which the data have."""
        return (
            1 / (self.values + alpha)
            if alpha > 0
            else np.where(self._empty, 0, 1 / np.where(self._empty, 1, self.values))
        )

    def _coefficients(self, alpha: float) -> FloatArray:
        shrunk = self.turned * self._inverse(alpha)[:, None]
        return self.vectors @ shrunk if self.basis is None else self._transposed(self.basis @ shrunk)

    def errors(self, alphas: FloatArray) -> FloatArray:
        """b_i less its prediction by the model without sample i: n x K x len(alphas).

        Raises
        ------
        ValueError
            If there is no other sample to fit the intercept to.
        """
        if self.intercept and np.count_nonzero(self.s) < 2:
            raise ValueError(
                "Leaving out one sample at a time needs at least 2 samples of positive weight to fit an intercept to; "
                "there is only 1 sample. Give more samples, or fit_intercept=False."
            )
        if self.distinct is None:
            smallest, largest = self.values.min(initial=np.inf), self.values.max(initial=0.0)
            if EPS * largest > DIGITS * (smallest + float(np.min(alphas))) and self._small():
                self._distinguish()
        if self.distinct is None:
            found, left = self._residuals(alphas)
            if self.basis is None and np.min(left[self.s > 0]) < len(self.values) * EPS / DIGITS and self._small():
                self._distinguish()
        if self.distinct is not None:
            found, left = (part[self.group] for part in self.distinct._residuals(alphas))
            found += self.apart[:, :, None]
            left = (1 - self.share)[:, None] + self.share[:, None] * left
        return found / left[:, None, :]

    def _small(self) -> bool:
        """Whether the data may be decomposed themselves; a warning says if they may not."""
        n, d = self.data.shape
        if 8 * n * d <= LARGEST:
            return True
        warnings.warn(
            "Penalties are so small beside the features that some errors of samples left out are known to less than "
            f"seven digits, and {n} x {d} sparse data are too many for singular values. Give larger alphas, scale the "
            "features, or give cv=5.",
            UserWarning,
            stacklevel=2,
        )
        return False

    def _residuals(self, alphas: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Residuals (n x K x alphas) and what they are to be divided by (n x alphas)."""
        n, outputs = self.b.shape
        found = np.empty((n, outputs, len(alphas)))
        left = np.empty((n, len(alphas)))
        inverse = np.column_stack([self._inverse(alpha) for alpha in alphas])
        if self.basis is not None:
            squares = self.basis**2
            for k, alpha in enumerate(alphas):
                kept = alpha * inverse[:, k] if alpha > 0 else self._empty.astype(float)
                left[:, k] = self.outside + squares @ kept
                found[:, :, k] = self._unweighted(self.remainder + self.basis @ (self.turned * kept[:, None]), alpha)
                if alpha == 0:  # samples of which nothing is left: the limit of small penalties
                    none = left[:, k] <= n * ROUNDING**2
                    limit = self.basis[none] @ (self.turned * inverse[:, [k]])
                    found[none, :, k] = limit / np.where(self.root[none] > 0, self.root[none], 1.0)
                    left[none, k] = squares[none] @ inverse[:, k]
            return found, left
        step = max(BLOCK // max(len(self.vectors), 1), 1)
        shift = self.data.rest @ self.vectors
        for first in range(0, n, step):
            rows = slice(first, first + step)
            turned = np.asarray(self.data.A[rows] @ self.vectors) - shift
            left[rows] = 1 - self.s[rows, None] * (turned**2 @ inverse)
            for k in range(outputs):
                found[rows, k] = self.targets[rows, [k]] - turned @ (self.turned[:, [k]] * inverse)
        if self.intercept:
            left -= (self.s / self.total)[:, None]
        return found, left

    def _unweighted(self, residuals: FloatArray, alpha: float) -> FloatArray:
        """Residuals b_i - <a_i, w> - c of weighted ones; of samples with next to no weight, from the model itself."""
        light = self.q < LIGHT
        found = residuals / np.where(light, 1.0, self.root[:, 0])[:, None]
        if np.any(light):
            w = self._coefficients(alpha)
            found[light] = self.targets[light] - (np.asarray(self.data.A[light] @ w) - self.data.rest @ w)
        return found


class _Distinct(LeaveOneOut):
    """The same by the singular values of Z, for samples no two of which are equal."""

    def _decompose(self) -> None:
        U, self.sizes, Vt = np.linalg.svd(self._reflected(self._weighted()), full_matrices=False)
        self.values, self.vectors = self.sizes**2, Vt.T
        self._keep_basis(U)

    def _coefficients(self, alpha: float) -> FloatArray:
        return self.vectors @ (self.turned * (self.sizes * self._inverse(alpha))[:, None])
