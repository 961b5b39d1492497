"""Samples elsewhere that fit into memory after all, for losses with kinks: these are far easier to fit at once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from coordwise.erm import ERM
from coordwise.fitting.fit import Fit, fit
from coordwise.fitting.model import LinearModel
from coordwise.interrupts import Interrupted
from coordwise.losses import Loss
from coordwise.penalties import ElasticNet
from coordwise.samples.appended import with_column
from coordwise.samples.base import InOrder
from coordwise.samples.block import Block

__all__ = ["MOST", "fit_gathered"]

MOST = 2**25  # entries of sparse rows, 400 MB; twice as many of dense ones


def fit_gathered(samples: InOrder, loss: Loss, penalty: ElasticNet, *, intercept: bool, **options: Any) -> Fit:
    """The fit of all samples in memory (`coordwise.fitting.fit.fit`, which takes the options), without its duals.

    The weight of a constant feature that is not the intercept is the last one.
    """
    parts: list[tuple[Any, Any, Any]] = samples.sweep(_collected, state=[], intercept=intercept)[1]
    A, b, s = zip(*parts, strict=True)
    table = sp.vstack(A, format="csr") if sp.issparse(A[0]) else np.concatenate(A)
    weights = None if s[0] is None else np.concatenate(s)
    problem = ERM(table, np.concatenate(b), loss=loss, penalty=penalty, sample_weight=weights)
    try:
        return _without_duals(fit(LinearModel(problem, intercept), **options))
    except Interrupted as stop:
        raise Interrupted(str(stop), _without_duals(stop.result)) from None


def _collected(block: Block, *, state: list[Any], intercept: bool) -> tuple[None, list[Any]]:
    """A sweep: copies of the rows, targets and weights of a block."""
    rows, dense = block.rows, block.rows.dense
    if dense is not None:
        A: Any = (dense if block.by_rows else dense.T).copy()
    else:
        kind = sp.csr_array if block.by_rows else sp.csc_array
        shape = (rows.count, rows.width) if block.by_rows else (rows.width, rows.count)
        A = sp.csr_array(kind(rows.arrays, shape=shape).copy())
    if block.constant and not intercept:
        A = with_column(A, float(block.constant))
    return None, [*state, (A, block.b.copy(), None if block.s is None else block.s.copy())]


def _without_duals(found: Fit) -> Fit:
    return replace(found, y=np.zeros((0, found.w.shape[1])), strategy=f"{found.strategy}; all samples in memory")
