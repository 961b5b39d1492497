"""Ridge regression refitted without every sample in turn, in long double: what leave-one-out errors are compared to."""

import numpy as np

LONG = np.longdouble


def least_squares(A, b):
    """argmin |Ax - b| for a stack of matrices (k x m x n) and right-hand sides (k x m x t), by reflections."""
    A, b = A.copy(), b.copy()
    n = A.shape[2]
    for j in range(n):
        v = A[:, j:, j].copy()
        length = np.sqrt(np.sum(v * v, axis=1))
        v[:, 0] += np.where(v[:, 0] >= 0, length, -length)
        size = np.sum(v * v, axis=1)
        factor = np.where(size > 0, 2 / np.where(size > 0, size, 1), 0)[:, None, None]
        for M in (A[:, j:, j:], b[:, j:]):
            M -= factor * v[:, :, None] * np.sum(v[:, :, None] * M, axis=1)[:, None, :]
    x = np.zeros((len(A), n, b.shape[2]), LONG)
    for j in reversed(range(n)):
        x[:, j] = (b[:, j] - np.sum(A[:, j, j + 1 : n, None] * x[:, j + 1 :], axis=1)) / A[:, j, j, None]
    return x


def errors_left_out(X, Y, s, alphas, intercept):
    """y_i less its prediction by the model without sample i: n x K x alphas."""
    X, Y, s = X.astype(LONG), Y.astype(LONG), s.astype(LONG)
    n = len(X)
    if intercept:
        X, Y = X - X[0], Y - Y[0]
    if X.shape[1] > n:  # in the coordinates of an orthonormal basis of the samples
        X = triangle(X.T).T
    S = np.tile(s, (n, 1))
    S[np.arange(n), np.arange(n)] = 0
    W = S.sum(1)[:, None]
    means, centers = (S @ X / W, S @ Y / W) if intercept else (np.zeros_like(S @ X), np.zeros_like(S @ Y))
    root = np.sqrt(S)[:, :, None]
    found = np.empty((*Y.shape, len(alphas)), LONG)
    d = X.shape[1]
    for k, alpha in enumerate(alphas):
        ridge = np.tile(np.sqrt(LONG(alpha)) * np.eye(d, dtype=LONG), (n, 1, 1))
        A = np.concatenate([root * (X - means[:, None]), ridge], axis=1)
        b = np.concatenate([root * (Y - centers[:, None]), np.zeros((n, d, Y.shape[1]), LONG)], axis=1)
        w = least_squares(A, b)
        found[:, :, k] = Y - centers - np.sum((X - means)[:, :, None] * w, axis=1)
    return found


def triangle(A):
    """R of A = QR, for m x n with m >= n."""
    A = A.copy()
    for j in range(A.shape[1]):
        v = A[j:, j].copy()
        v[0] += np.copysign(np.sqrt(v @ v), v[0])
        if v @ v > 0:
            A[j:, j:] -= np.outer(v, (v @ A[j:, j:]) * 2 / (v @ v))
    return A[: A.shape[1]]
