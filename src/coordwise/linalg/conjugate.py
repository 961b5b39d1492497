"""Conjugate gradients: on the normal equations (CGLS), and on a symmetric positive definite system itself.

Both are generators of iterates for K right-hand sides at once, each with step lengths of its own. What is yielded is
changed in place by the next step; the direction is that of the last step until then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg.blas import daxpy

from coordwise.linalg.products import Products
from coordwise.validation import FloatArray

__all__ = ["Iterate", "cg", "cgls"]


@dataclass
class Iterate:
    """x, its residual b - Ax, and the negative gradient of what is minimised, all by recursion."""

    x: FloatArray
    residual: FloatArray
    slope: FloatArray
    moving: bool = True  # False: the step had no direction left
    direction: FloatArray | None = None  # of the last step, and its length
    length: FloatArray | None = None

    def before(self) -> FloatArray:
        """The point before the last step."""
        assert self.direction is not None
        assert self.length is not None
        return self.x - self.length * self.direction


def cgls(
    products: Products, b: FloatArray, x: FloatArray, *, damp: float = 0.0, weights: FloatArray | None = None
) -> Iterator[Iterate]:
    """Minimise (1/2) |W(Ax - b)|^2 + (damp^2/2) |x|^2 over x, W^2 = diag(weights) (Hestenes and Stiefel).

    x is overwritten. From x = 0 the limit is the solution of smallest norm.
    """
    squared = None if weights is None else weights[:, None]
    long = np.empty_like(b)  # for products that are needed for a moment only

    def weighted(u: FloatArray) -> FloatArray:
        return u if squared is None else np.multiply(squared, u, out=long)

    r = b - products.forward(x) if x.any() else b.copy()
    s = products.backward(weighted(r)) - damp**2 * x
    p, gamma = s.copy(), _dots(s, s)
    now = Iterate(x, r, s, direction=p)
    yield now
    while True:
        q = products.forward(p)
        alpha = _ratio(gamma, _dots(weighted(q), q) + (damp**2 * _dots(p, p) if damp else 0.0))
        _add(x, alpha, p)
        _add(r, -alpha, q)
        s = products.backward(weighted(r))
        if damp:
            s -= damp**2 * x
        now.slope, now.length, before = s, alpha, gamma
        gamma = _dots(s, s)
        now.moving = bool((alpha > 0).any())
        yield now
        p *= _ratio(gamma, before)
        p += s


def cg(
    forward: Callable[[FloatArray], FloatArray], b: FloatArray, x: FloatArray, inverse: FloatArray | None
) -> Iterator[Iterate]:
    """Minimise (1/2) <x, Ax> - <b, x> for a positive definite A, preconditioned by the diagonal matrix `inverse`.

    `forward` multiplies by A; x is overwritten. `moving` becomes False where a direction p has <p, Ap> <= 0: A is not
    positive definite there, or nothing is left to do.
    """
    r = b - forward(x) if x.any() else b.copy()
    z = r if inverse is None else inverse[:, None] * r
    p, gamma = z.copy(), _dots(r, z)
    now = Iterate(x, r, r, direction=p)
    yield now
    while True:
        q = forward(p)
        alpha = _ratio(gamma, _dots(p, q))
        _add(x, alpha, p)
        _add(r, -alpha, q)
        now.length, now.moving = alpha, bool((alpha > 0).any())
        yield now
        if inverse is not None:
            np.multiply(inverse[:, None], r, out=z)
        before, gamma = gamma, _dots(r, z)
        p *= _ratio(gamma, before)
        p += z


def _add(y: FloatArray, alpha: FloatArray, v: FloatArray) -> None:
    """y += alpha v in place for every column; one column by BLAS, in one go."""
    if len(alpha) == 1 and y.flags.c_contiguous:
        daxpy(v.ravel(), y.ravel(), a=alpha[0])
    else:
        y += alpha * v


def _dots(u: FloatArray, v: FloatArray) -> FloatArray:
    """<u_k, v_k> for every column."""
    return np.array([u[:, 0] @ v[:, 0]]) if u.shape[1] == 1 else np.einsum("ik,ik->k", u, v)


def _ratio(top: FloatArray, bottom: FloatArray) -> FloatArray:
    """top / bottom, with 0 where bottom is not positive: such columns are at their end."""
    return np.array([t / b if b > 0 else 0.0 for t, b in zip(top.tolist(), bottom.tolist(), strict=True)])
