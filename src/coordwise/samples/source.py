"""What estimators ask of data that are elsewhere: a source, which stands in the place of X and y."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from coordwise.samples.base import Samples
from coordwise.validation import FloatArray

__all__ = ["Source", "Targets", "Weights", "is_source"]

Targets = Callable[[FloatArray], FloatArray]
Weights = Callable[[FloatArray, FloatArray | None], FloatArray]


class Source(Protocol):
    """Samples with their targets that cannot be had as arrays: in a folder on disk, or on other machines.

    A source may have three more methods, which are used where it has them:

    * ``beside(y, s)``: the same samples with other targets or weights, arrays with a row for each (None: its own).
    * ``head()``: (X, y, s) of some first rows, which tell whether features or targets lie far from 0. `samples` then
      takes ``shift``, an array of d numbers that are taken off the features.
    * ``__iter__``: (X, y, s) of all rows, part by part in order, for predictions.
    """

    @property
    def shape(self) -> tuple[int, int]:
        """(n, d)."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64."""

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """One per feature."""

    @property
    def weighted(self) -> bool:
        """Whether samples have weights of their own."""

    @property
    def target_shape(self) -> tuple[int, ...] | None:
        """None without targets, () for one per sample, (K,) for K."""

    def labels(self) -> tuple[FloatArray, FloatArray]:
        """The distinct targets, ascending, and the sum of the weights of the samples with each (counts without)."""

    def samples(
        self,
        targets: Targets | None = None,
        *,
        weights: Weights | None = None,
        constant: bool = False,
        threads: int = 1,
    ) -> Samples:
        """The samples as solvers visit them.

        Parameters
        ----------
        targets : callable, optional
            targets(y) of shape (m,) or (m, K) in place of the source's own y, part by part. It can be pickled.
        weights : callable, optional
            weights(y, s) of shape (m,) in place of the source's own s, which is None without weights; likewise.
        constant : bool
            Whether every row ends with a 1 that is not stored: the feature of an intercept. A source may take another
            number in place of True, the feature of an intercept that is penalised (``intercept_scaling``).
        threads : int
            For products and sums.
        """


def is_source(X: Any) -> bool:
    """Whether X is a `Source`, going by its methods; TypeError for the path of one."""
    if isinstance(X, (str, os.PathLike)):
        raise TypeError(f"X is a path, {str(X)!r}; open it first: coordwise.datasets.open({str(X)!r}).")
    return callable(getattr(X, "samples", None)) and callable(getattr(X, "labels", None)) and hasattr(X, "target_shape")
