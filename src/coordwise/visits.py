"""What is done to a block of samples: the pure functions that the oracle sends to where the samples are.

Each takes a block, the arrays that were kept beside it, and small arrays, and returns an array to keep (or None) and
small arrays to be summed over the blocks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coordwise.losses import Loss
from coordwise.samples.block import Block
from coordwise.validation import FloatArray

__all__ = [
    "along",
    "at_scores",
    "bent",
    "dual",
    "moved",
    "product",
    "shifted",
    "size_of_slopes",
    "slope_of_shift",
    "slopes_of_shifts",
    "times",
    "value",
    "zeros",
]

Visited = tuple[Any, list[FloatArray]]


def zeros(block: Block) -> Visited:
    """Keep the scores of w = 0."""
    return np.zeros((block.m, block.outputs)), []


def value(block: Block, t: FloatArray, *, loss: Loss) -> Visited:
    """The sum of the losses at scores t."""
    return None, [block.terms(loss).value(t)]


def product(block: Block, *, w: FloatArray) -> Visited:
    """Keep the scores A w."""
    return block.product(w), []


def at_scores(block: Block, t: FloatArray, *, loss: Loss) -> Visited:
    """The sum of the losses at scores t, and A' of their derivatives, which are kept."""
    terms = block.terms(loss)
    y = terms.derivative(t)
    return y, [terms.value(t), block.adjoint(y)]


def moved(block: Block, t: FloatArray, move: FloatArray, *, loss: Loss, step: FloatArray) -> Visited:
    """Keep t + step * move; the sum of the losses there."""
    there = t + step * move
    return there, [block.terms(loss).value(there)]


def along(block: Block, t: FloatArray, move: FloatArray, *, loss: Loss, steps: FloatArray) -> Visited:
    """The sums of the losses at t + step * move, for several steps."""
    terms = block.terms(loss)
    return None, [np.stack([terms.value(t + step * move) for step in steps])]


def shifted(block: Block, t: FloatArray, *, by: FloatArray) -> Visited:
    """Keep t + by."""
    return t + by, []


def size_of_slopes(block: Block, t: FloatArray, *, loss: Loss) -> Visited:
    """The sum of the moduli of the derivatives of the losses at t, or of what they are differences of."""
    terms = block.terms(loss)
    h = terms.second_derivative(t)
    return None, [(np.abs(terms.derivative(t)) + h * (np.abs(t) + np.abs(block.b))).sum(axis=0)]


def slope_of_shift(block: Block, t: FloatArray, *, loss: Loss, by: FloatArray) -> Visited:
    """Sums of the derivatives and of the curvatures of the losses at t + by."""
    ones = np.ones((block.m, 1))
    found = [
        block.terms(loss, k).slope_and_curvature(np.ascontiguousarray(t[:, k : k + 1]), ones, float(by[k]))
        for k in range(block.outputs)
    ]
    slopes, curvatures = (np.array(column) for column in zip(*found, strict=True))
    return None, [slopes, curvatures]


def slopes_of_shifts(block: Block, t: FloatArray, *, loss: Loss, by: FloatArray) -> Visited:
    """Sums of the derivatives of the losses at t + by[j], for every j."""
    terms = block.terms(loss)
    return None, [np.stack([terms.derivative(t + shift).sum(axis=0) for shift in by])]


def bent(block: Block, t: FloatArray, *, loss: Loss) -> Visited:
    """Keep the curvatures h_i of the losses at scores t; the diagonal of A' diag(h) A."""
    h = block.terms(loss).second_derivative(t)
    return h, [block.squares(h)]


def times(block: Block, h: FloatArray, *, p: FloatArray) -> Visited:
    """A' diag(h) A p, and <p, A' diag(h) A p> as a sum of squares."""
    u = block.product(p)
    hu = h * u
    return None, [block.adjoint(hu), np.einsum("ik,ik->k", hu, u)]


def dual(block: Block, y: FloatArray, *, loss: Loss) -> Visited:
    """The sum of the conjugates at y, A'y, and the sum of |y|."""
    return None, [block.terms(loss).conjugate(np.ascontiguousarray(y)), block.adjoint(y), np.abs(y).sum(axis=0)]
