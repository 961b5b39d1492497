"""Equations that say the same twice, or contradict each other: rows that are multiples of one another."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from coordwise.linalg.products import Products
from coordwise.validation import FloatArray

__all__ = ["about_parallel_rows"]

ROWS, ENTRIES = 5_000, 1_000_000  # up to which they are looked for: a millisecond or two
ROUNDING = 16 * np.finfo(float).eps


def about_parallel_rows(products: Products, norms2: FloatArray, b: FloatArray, goal: FloatArray) -> tuple[str, ...]:
    """Notes on rows that are multiples of others, up to rounding; nothing on systems too large to look cheaply.

    With a_j = c a_i every x has |b - Ax| >= |b_j - c b_i| / sqrt(1 + c^2).
    """
    m, n = products.shape
    if m > ROWS or products.matrix.nnz > ENTRIES:
        return ()
    lengths = np.sqrt(norms2)
    found = np.flatnonzero(norms2 > 0)
    marks = products.forward(np.random.default_rng(0).standard_normal((n, 1)))[found, 0] / lengths[found]
    order = np.argsort(np.abs(marks))
    marks, found = marks[order], found[order]
    near = np.flatnonzero(np.diff(np.abs(marks)) <= 1e-9 * np.abs(marks[1:]))
    if not len(near):
        return ()
    one, other = found[near], found[near + 1]
    signs = np.sign(marks[near] * marks[near + 1])
    same = _largest_difference(products, one, 1 / lengths[one], other, signs / lengths[other]) <= ROUNDING
    if not same.any():
        return ()
    one, other, signs = one[same], other[same], signs[same]
    count = len(one)
    notes = [f"{count} row{'s are multiples' if count > 1 else ' is a multiple'} of others"]
    c = (signs * lengths[other] / lengths[one])[:, None]
    least = np.abs(b[other] - c * b[one]) / np.hypot(1.0, c)
    if np.any(least > goal):
        k = int(np.argmax((least / goal).max(axis=1)))
        i, j = sorted((int(one[k]), int(other[k])))
        notes.append(f"rows {i} and {j} contradict each other: |b - Ax| >= {least[k].max():.3g} for every x")
    return tuple(notes)


def _largest_difference(products: Products, one: Any, scale: FloatArray, other: Any, scales: FloatArray) -> FloatArray:
    """max_k |scale_i a_ik - scale_j a_jk| for every pair of rows."""
    if products.dense is not None:
        A = products.dense
        return np.abs(A[one] * scale[:, None] - A[other] * scales[:, None]).max(axis=1)
    rows = products.rows()
    A = sp.csr_array(rows.arrays, shape=products.shape)
    return abs(sp.diags_array(scale) @ A[one] - sp.diags_array(scales) @ A[other]).max(axis=1).toarray().ravel()
