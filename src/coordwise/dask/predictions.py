"""Predictions that are computed where the samples are, when somebody asks for them."""

from __future__ import annotations

from typing import Any

import dask
import dask.array as da
import numpy as np
import scipy.sparse as sp

__all__ = ["lazily", "score"]


def lazily(estimator: Any, model: Any, method: str, X: Any) -> Any:
    """A method of `model`, for every chunk of rows of a dask array or dataframe, as a dask array.

    `model` is the estimator as workers know it, without a client.
    """
    if hasattr(X, "columns"):
        names = getattr(estimator, "feature_names_in_", None)
        if names is not None and list(names) != [str(name) for name in X.columns]:
            raise ValueError(
                f"X has the columns {list(X.columns)}; {type(estimator).__name__} was fitted with {list(names)}, which "
                "must be the same, in the same order."
            )
        X = X.to_dask_array()
    if X.ndim != 2 or X.shape[1] != model.n_features_in_:
        raise ValueError(
            f"X has shape {X.shape}; {type(estimator).__name__} is expecting {model.n_features_in_} features as input."
        )
    if len(X.chunks[1]) > 1:
        X = X.rechunk({1: -1})
    like = np.asarray(getattr(model, method)(np.zeros((1, model.n_features_in_))))
    meta = np.empty((0,) * like.ndim, like.dtype)
    # graphs would copy a large model for every task
    shared = dask.delayed(model, pure=False) if model.coef_.nbytes > 2**20 else model
    if like.ndim == 1:
        return da.map_blocks(_applied, X, shared, method, dtype=like.dtype, drop_axis=1, meta=meta)
    chunks = (X.chunks[0], (like.shape[1],))
    return da.map_blocks(_applied, X, shared, method, dtype=like.dtype, chunks=chunks, meta=meta)


def _applied(X: Any, model: Any, method: str) -> Any:
    X = sp.csr_array(X) if sp.issparse(X) else np.asarray(X)
    if X.shape[0] == 0:
        like = getattr(model, method)(np.zeros((1, model.n_features_in_)))
        return np.asarray(like)[:0]
    return getattr(model, method)(X)


def score(predicted: Any, y: Any, sample_weight: Any, *, classes: bool) -> float:
    """The share of right predictions, or R^2 (the mean over several targets); the sums are computed on the workers."""
    if y is None:
        raise ValueError("y is missing; the score of dask collections needs their targets.")
    y = y.to_dask_array(lengths=True) if hasattr(y, "to_dask_array") else y
    s = sample_weight.to_dask_array(lengths=True) if hasattr(sample_weight, "to_dask_array") else sample_weight
    y = y if dask.is_dask_collection(y) else np.asarray(y)
    s = s if s is None or dask.is_dask_collection(s) else np.asarray(s)
    if classes and y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if classes and y.ndim != 1:
        raise ValueError(f"y has shape {y.shape}; the labels need one column.")
    for name, given in (("y", y), ("sample_weight", s)):
        if given is not None and len(given) != len(predicted):
            raise ValueError(f"{name} has {len(given)} entries, and X has {len(predicted)} rows.")
    if classes:
        right = (predicted == y).astype(float)
        total, found = dask.compute(*((right.size, right.sum()) if s is None else (s.sum(), (s * right).sum())))
        return float(found / total)
    if predicted.ndim != y.ndim:
        predicted, y = (one if one.ndim == 2 else one[:, None] for one in (predicted, y))
    w = 1.0 if s is None else s if y.ndim == 1 else s[:, None]
    ones = da.ones_like(y, dtype=float)
    total, sums = dask.compute((w * ones).sum(axis=0), (w * y).sum(axis=0))
    mean = np.where(total > 0, sums / total, 0.0)
    left, spread = dask.compute((w * (y - predicted) ** 2).sum(axis=0), (w * (y - mean) ** 2).sum(axis=0))
    found = np.where(spread > 0, 1 - left / np.where(spread > 0, spread, 1.0), np.where(left > 0, 0.0, 1.0))
    return float(np.mean(found))
