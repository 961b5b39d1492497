"""Several labels for every sample: targets of zeros and ones, a column for each label."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.multiclass import type_of_target

__all__ = ["Multilabel", "labels_of", "several_labels"]


def several_labels(y: Any) -> bool:
    """Whether y has several columns."""
    if sp.issparse(y):
        return False
    try:
        shape = y.shape if hasattr(y, "shape") else np.asarray(y).shape
    except ValueError:  # lists of different lengths, which scikit-learn's checks name
        return False
    return len(shape) == 2 and shape[1] > 1


def labels_of(y: Any) -> tuple[Any, Any]:
    """The numbers of the labels, and which of them each sample has (n x K)."""
    kind = type_of_target(y, input_name="y")
    if kind != "multilabel-indicator":
        raise ValueError(
            f"y of shape {y.shape} is {kind}; several columns must be zeros and ones, one column for every label. Give "
            "a y of one dimension for classes that exclude each other."
        )
    return np.arange(y.shape[1]), np.asarray(y) > 0


class Multilabel:
    """A classifier that also takes several labels for every sample, each decided by itself."""

    _several = False  # whether it was fitted to several labels

    def predict(self, X: Any) -> Any:
        """Classes of the samples, or zeros and ones for the labels of each.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_labels)
        """
        if self._several:
            return (self.decision_function(X) > 0).astype(int)  # type: ignore[attr-defined]
        return super().predict(X)  # type: ignore[misc]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.classifier_tags.multi_label = True
        return tags
