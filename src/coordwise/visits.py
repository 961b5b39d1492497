"""What is done to a block of samples: the pure functions that the oracle sends to where the samples are.

Each takes a block, the arrays that were kept beside it, and small arrays, and returns an array to keep (or None) and
small arrays to be summed over the blocks.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from coordwise.losses import Loss
from coordwise.samples.base import rowless
from coordwise.samples.block import Block
from coordwise.validation import FloatArray

__all__ = [
    "SILENT",
    "Kind",
    "along",
    "at_scores",
    "bent",
    "curvatures",
    "dual",
    "first_moments",
    "formed",
    "formed_here",
    "formed_together",
    "moved",
    "one",
    "product",
    "scaled",
    "second_moments",
    "shifted",
    "slope_and_size",
    "slope_of_shift",
    "slope_of_shifts",
    "slopes_of_shifts",
    "times",
    "times_together",
    "value",
    "zeros",
]

FLAT = 1e-2  # curvature that a straight and steep part of a loss gets where it must have some, relative to the largest
DAMP = 1e-9  # curvature of every sample at least, relative to the largest: far out a logistic loss has none

Kind = Literal["exact", "damped", "majorant"]
Visited = tuple[Any, list[FloatArray]]


@rowless
def one(block: Block) -> Visited:
    """1, so that the sum is the number of blocks: there may be several in one partition of a cluster."""
    return None, [np.ones(())]


@rowless
def zeros(block: Block) -> Visited:
    """Keep the scores of w = 0."""
    return np.zeros((block.m, block.outputs)), []


@rowless
def value(block: Block, t: FloatArray, *, loss: Loss) -> Visited:
    """The sum of the losses at scores t."""
    return None, [block.terms(loss).value(t)]


def product(block: Block, *, w: FloatArray) -> Visited:
    """Keep the scores A w."""
    return block.product(w), []


def at_scores(block: Block, t: FloatArray, *, loss: Loss, sized: bool = False) -> Visited:
    """The sum of the losses at scores t, and A' of their derivatives, which are kept; `sized`, also the sum of the
    sizes of what the derivatives are differences of.
    """
    terms = block.terms(loss)
    y = terms.derivative(t)
    return y, [terms.value(t), block.adjoint(y), *([_size(block, t, y, loss)] if sized else [])]


def _size(block: Block, t: FloatArray, y: FloatArray, loss: Loss) -> FloatArray:
    """An upper bound of the rounding of sum_i y_i, divided by the machine's precision."""
    if loss.coupled:
        return np.full(block.outputs, float(block.m) if block.s is None else block.s.sum())
    size = np.abs(y)
    if loss.gamma > 0:
        size = size + block.terms(loss).second_derivative(t) * (np.abs(t) + np.abs(block.b))
    return np.asarray(size.sum(axis=0))


@rowless
def moved(block: Block, t: FloatArray, move: FloatArray, *, loss: Loss, step: FloatArray) -> Visited:
    """Keep t + step * move; the sum of the losses there."""
    there = t + step * move
    return there, [block.terms(loss).value(there)]


@rowless
def along(block: Block, t: FloatArray, move: FloatArray, *, loss: Loss, steps: FloatArray) -> Visited:
    """The sums of the losses at t + step * move, for several steps."""
    terms = block.terms(loss)
    return None, [np.stack([terms.value(t + step * move) for step in steps])]


@rowless
def shifted(block: Block, t: FloatArray, *, by: FloatArray) -> Visited:
    """Keep t + by."""
    return t + by, []


@rowless
def slope_and_size(block: Block, t: FloatArray, *, loss: Loss) -> Visited:
    """`slope_of_shift` at t, and the sum of the moduli of the derivatives, or of what they are differences of."""
    terms = block.terms(loss)
    size = _size(block, t, terms.derivative(t), loss)
    return None, [*slope_of_shift(block, t, loss=loss, by=np.zeros(block.outputs))[1], size]


@rowless
def slope_of_shift(block: Block, t: FloatArray, *, loss: Loss, by: FloatArray) -> Visited:
    """Sums of the derivatives and of the curvatures of the losses at t + by."""
    ones = np.ones((block.m, 1))
    found = [
        block.terms(loss, k).slope_and_curvature(np.ascontiguousarray(t[:, k : k + 1]), ones, float(by[k]))
        for k in range(block.outputs)
    ]
    slopes, curvatures = (np.array(column) for column in zip(*found, strict=True))
    return None, [slopes, curvatures]


@rowless
def slopes_of_shifts(block: Block, t: FloatArray, *, loss: Loss, by: FloatArray) -> Visited:
    """Sums of the derivatives of the losses at t + by[j], for every j."""
    terms = block.terms(loss)
    return None, [np.stack([terms.derivative(t + shift).sum(axis=0) for shift in by])]


def bent(block: Block, t: FloatArray, *, loss: Loss, kind: Kind = "exact") -> Visited:
    """Keep the curvatures h_i of the losses at scores t (coupled ones: the probabilities); the diagonal of
    A' diag(h) A.
    """
    if loss.coupled:
        return block.terms(loss).probabilities(t), [block.squares(block.terms(loss).second_derivative(t))]
    h = curvatures(block, t, loss, kind)
    return h, [block.squares(h)]


def curvatures(block: Block, t: FloatArray, loss: Loss, kind: Kind, k: int | None = None) -> FloatArray:
    """Those of the losses at scores t (`exact`); no less than a little of the largest one, and more on straight parts
    that are steep (`damped`); or those of parabolas that lie above the losses and touch them at t (`majorant`). Of all
    outputs or of output k, which t has alone then.
    """
    terms, b = block.terms(loss, k), block.b if k is None else block.b[:, k : k + 1]
    if kind == "exact":
        return terms.second_derivative(t)
    largest = np.broadcast_to(loss.smoothness * (1.0 if block.s is None else block.s[:, None]), t.shape)
    y = terms.derivative(t)
    if kind == "damped":
        h = terms.second_derivative(t)
        return np.where((h <= 0) & (y != 0), FLAT * largest, np.maximum(h, DAMP * largest))
    if loss.shape.logistic or loss.shape.kink > 0 or loss.shape.dead > 0:
        return np.ascontiguousarray(largest)
    r = np.abs(t - b)  # linear far out: with the vertex at the target
    return np.where(y == 0, largest, np.minimum(np.abs(y) / np.where(r > 0, r, 1.0), largest))


def times(block: Block, h: FloatArray, *, p: FloatArray) -> Visited:
    """A' diag(h) A p, and <p, A' diag(h) A p> as a sum of squares."""
    u = block.product(p)
    hu = h * u
    return None, [block.adjoint(hu), np.einsum("ik,ik->k", hu, u)]


def times_together(block: Block, q: FloatArray, *, p: FloatArray, loss: Loss) -> Visited:
    """`times` of a coupled loss with probabilities q: one square for all outputs."""
    u = block.product(p)
    hu = block.terms(loss).bend(q, u)
    return None, [block.adjoint(hu), np.array([np.einsum("ik,ik->", hu, u)])]


def dual(block: Block, y: FloatArray, *, loss: Loss) -> Visited:
    """The sum of the conjugates at y, A'y, and the sum of |y|."""
    return None, [block.terms(loss).conjugate(np.ascontiguousarray(y)), block.adjoint(y), np.abs(y).sum(axis=0)]


def squares_along(block: Block, *, w: FloatArray) -> Visited:
    """sum_i s_i <a_i, w_k>^2 for every column of w."""
    t = block.product(w)
    return None, [np.einsum("ik,ik,i->k", t, t, np.ones(block.m) if block.s is None else block.s)]


def first_moments(block: Block) -> Visited:
    """Sums of the features, of their squares, and of the targets."""
    s = np.ones((block.m, 1)) if block.s is None else block.s[:, None]
    return None, [block.adjoint(s)[:, 0], block.squares(s)[:, 0], s[:, 0] @ block.b]


def second_moments(block: Block, *, shift: FloatArray, level: FloatArray) -> Visited:
    """Of the features less `shift` (without the constant) and the targets less `level`: the sums of the products of
    features, features, features and targets, targets, and squares of targets.
    """
    s = np.ones(block.m) if block.s is None else block.s
    d, r = len(shift), block.b - level
    sums = [s @ r, s @ (r * r)]
    if shift.any():
        table = block.gram(s, shift=shift, beside=np.hstack([np.ones((block.m, 1)), r]))
        return None, [table[:d, :d], table[:d, -1 - block.outputs], table[:d, -block.outputs :], *sums]
    first, cross = block.adjoint(s[:, None])[:d, 0], block.adjoint(s[:, None] * r)[:d]
    return None, [block.gram(s)[:d, :d], first, cross, *sums]


def formed(
    block: Block, t: FloatArray, *, loss: Loss, kind: Kind, k: int, columns: NDArray[np.intp] | None = None
) -> Visited:
    """A' diag(h_k) A of all features or of some, that of the constant last, h being the curvatures at scores t."""
    own = np.ascontiguousarray(t[:, k : k + 1])
    return None, [block.gram(curvatures(block, own, loss, kind, k)[:, 0], columns=columns)]


def formed_together(block: Block, t: FloatArray, *, loss: Loss, columns: NDArray[np.intp] | None = None) -> Visited:
    """The second derivatives of coupled losses in the weights of all features or of some, in the order of w.ravel()."""
    q = block.terms(loss).probabilities(t)
    s, K = np.ones(block.m) if block.s is None else block.s, block.outputs
    width = block.sizes.d if columns is None else len(columns) + bool(block.constant)
    hessian = np.empty((width, K, width, K))
    for j in range(K):
        for k in range(j, K):
            found = block.gram(s * q[:, j] * ((j == k) - q[:, k]), columns=columns)
            hessian[:, j, :, k] = hessian[:, k, :, j] = found
    return None, [hessian.reshape(width * K, width * K)]


def formed_here(block: Block, h: FloatArray | None, *, k: int) -> Visited:
    """A' diag(h_k) A and the sum of the weights of one block; nothing of others, whose h is None."""
    if h is None:
        return None, [np.zeros(()), np.zeros(())]
    return None, [block.gram(h[:, k]), np.array(float(block.m) if block.s is None else block.s.sum())]


@rowless
def slope_of_shifts(block: Block, t: FloatArray, *, loss: Loss, by: FloatArray) -> Visited:
    """Sums of the derivatives and of the Hessians of coupled losses at t + by, and of the targets."""
    terms = block.terms(loss)
    there = t + by
    q = terms.probabilities(there)
    s = np.ones(block.m) if block.s is None else block.s
    return None, [terms.derivative(there).sum(axis=0), np.diag(s @ q) - (q * s[:, None]).T @ q, s @ block.b]


@rowless
def scaled(block: Block, y: FloatArray, *, loss: Loss, by: FloatArray) -> Visited:
    """Keep y times a number per output; the sum of the conjugates there."""
    there = np.ascontiguousarray(by * y)
    return there, [block.terms(loss).conjugate(there)]


# They return no small arrays, so that nobody has to wait for them.
SILENT = frozenset({product, shifted, zeros})
