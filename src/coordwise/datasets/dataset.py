"""A dataset: a matrix, labels, and where they came from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from coordwise.validation import FloatArray

CHUNK = 1 << 20


class Source(StrEnum):
    """Where a dataset came from."""

    FOLDER = "folder"
    CACHE = "cache"
    DOWNLOAD = "download"
    STAND_IN = "stand-in"


@dataclass(frozen=True, eq=False)
class Dataset:
    """A sparse matrix with labels.

    Attributes
    ----------
    name : str
        "news20", "w8a" or "covtype".
    A : scipy.sparse.csr_array, shape (n, d)
        float64 values, int32 indices; read-only if it lies in a file (`mmap=True`).
    b : ndarray, shape (n,)
        Labels +1.0 and -1.0: class 1 against the rest for news20, class 2 against class 1 for covtype.
    classes : ndarray, shape (n,)
        Labels as they are in the file.
    source : Source
        "folder", "cache", "download" or "stand-in".
    origin : str
        The same in words: a file name, an address, or that the data are generated, and why.
    fingerprint : str
        SHA-256 of the content (shape, row starts, indices, values, labels), however it is stored.
    """

    name: str
    A: sp.csr_array = field(repr=False)
    b: FloatArray = field(repr=False)
    classes: FloatArray = field(repr=False)
    source: Source
    origin: str
    fingerprint: str

    @property
    def real(self) -> bool:
        """Whether these are the data themselves, and not a generated stand-in."""
        return self.source is not Source.STAND_IN


def fingerprint(A: sp.csr_array, labels: FloatArray) -> str:
    """SHA-256 of shape, indptr, indices, values and labels, as little-endian 64-bit numbers; zeros do not count."""
    if not A.has_canonical_format or np.any(A.data == 0):
        A = A.copy()
        A.sum_duplicates()
        A.eliminate_zeros()
    digest = hashlib.sha256(np.array([*A.shape, A.nnz], "<i8").tobytes())
    parts: list[tuple[NDArray[Any], str]] = [(A.indptr, "<i8"), (A.indices, "<i8"), (A.data, "<f8"), (labels, "<f8")]
    for array, kind in parts:
        for first in range(0, len(array), CHUNK):
            digest.update(np.ascontiguousarray(array[first : first + CHUNK], dtype=kind).data)
    return digest.hexdigest()
