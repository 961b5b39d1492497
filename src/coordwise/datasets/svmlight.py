"""Reading svmlight (LIBSVM) text, plain or compressed."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import IO, Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from coordwise.kernels import SvmlightParser
from coordwise.validation import FloatArray, check_count

Report = Callable[[int], object]

BLOCK = 1 << 20
LARGEST = 2**63 - 2  # the number of columns, too, must fit into 64 bits


def read_svmlight(
    file: str | os.PathLike[str] | IO[bytes],
    *,
    n_features: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
    dtype: DTypeLike = np.float64,
) -> tuple[sp.csr_array, FloatArray]:
    """Read a sparse matrix and its labels from svmlight text.

    One sample a line, `label index:value index:value ...`, indices increasing; `# comments`, blank lines and `qid:n`
    are skipped, explicit zeros dropped.

    Parameters
    ----------
    file : path or binary file object
        Plain text, or compressed by xz, bzip2 or gzip, which the content tells, whatever the name.
    n_features : int, optional
        Number of columns; the largest index in the file by default.
    zero_based : bool or "auto"
        Whether the first column is written 0 or 1; "auto": 0 if the file has an index 0, otherwise 1.
    dtype : float64 or float32
        Of the values. Decimal numbers are rounded to the nearest double first.

    Returns
    -------
    A : scipy.sparse.csr_array
        With int32 indices if they fit, otherwise int64.
    labels : ndarray of float64
        One per row.

    Raises
    ------
    ValueError
        If a line is not svmlight text (the message has its number and the reason), holds NaN or infinity or several
        labels; if the file is empty or damaged, or has more columns than n_features.
    FileNotFoundError
        If there is no such file.
    """
    kind = np.dtype(dtype)
    if kind not in (np.float64, np.float32):
        raise ValueError(f"dtype={dtype!r} cannot hold the values; give float64 or float32.")
    A, labels = parse(file, n_features=n_features, zero_based=zero_based)
    if kind == np.float32:
        with np.errstate(over="ignore"):
            A = A.astype(np.float32)
        if not np.all(np.isfinite(A.data)):
            raise ValueError(f"{name_of(file)} has values too large for dtype=float32; give dtype=float64.")
    return A, labels


def parse(
    file: str | os.PathLike[str] | IO[bytes],
    *,
    n_features: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
    report: Report | None = None,
) -> tuple[sp.csr_array, FloatArray]:
    """As `read_svmlight`; `report` is called with the number of compressed bytes read so far."""
    if isinstance(file, io.TextIOBase) or not (isinstance(file, (str, os.PathLike)) or hasattr(file, "read")):
        kind = type(file).__name__
        raise TypeError(f"file must be a path or a file open for reading bytes (mode 'rb'), not {kind}.")
    if not isinstance(zero_based, (bool, np.bool_)) and zero_based != "auto":
        raise ValueError(f'zero_based={zero_based!r} is not known; give True, False or "auto".')
    width = None if n_features is None else check_count("n_features", n_features, low=1)
    base = None if zero_based == "auto" else 1 - int(zero_based)  # how the first column is written
    highest = LARGEST if width is None else min(LARGEST, width if base is None else width - 1 + base)
    parser = SvmlightParser(lowest=base or 0, highest=highest)
    try:
        with ExitStack() as stack:
            stream = stack.enter_context(open(file, "rb")) if isinstance(file, (str, os.PathLike)) else file
            pool = stack.enter_context(ThreadPoolExecutor(1))
            parsed: Future[None] | None = None
            for block in text_blocks(stream, report):  # the next one is decompressed while this one is parsed
                if parsed is not None:
                    parsed.result()
                parsed = pool.submit(parser.feed, block)
            if parsed is not None:
                parsed.result()
            arrays = parser.finish()
    except ValueError as error:
        raise ValueError(f"{name_of(file)} cannot be read as svmlight text: {error}.") from None
    return _assemble(*arrays, width=width, base=base, name=name_of(file))


def name_of(file: object) -> str:
    """What to call a file in an error: its name without its folder."""
    path = file if isinstance(file, (str, os.PathLike)) else getattr(file, "name", None)
    return os.path.basename(os.fspath(path)) if isinstance(path, (str, os.PathLike)) else "the stream"


def _assemble(
    values: FloatArray,
    indices: NDArray[Any],
    indptr: NDArray[np.int64],
    labels: FloatArray,
    smallest: int,
    largest: int,
    *,
    width: int | None,
    base: int | None,
    name: str,
) -> tuple[sp.csr_array, FloatArray]:
    if len(labels) == 0:
        raise ValueError(f"{name} holds no samples; every line must begin with a label.")
    if base is None:
        base = int(smallest > 0)
    found = max(largest + 1 - base, 0)
    if width is not None and found > width:
        raise ValueError(f"{name} has {found} columns, the first one written 0; n_features={width} is too small.")
    if base:
        indices -= base
    if len(values) > np.iinfo(np.int32).max:
        indices = indices.astype(np.int64, copy=False)
    A = sp.csr_array((values, indices, indptr.astype(indices.dtype)), shape=(len(labels), width or found))
    A.has_sorted_indices = A.has_canonical_format = True
    return A, labels


def text_blocks(stream: IO[bytes], report: Report | None) -> Iterator[bytes]:
    """The text of a file in blocks; compression is told by the first bytes."""
    head = _read(stream, 6)
    source = _Counted(head, stream, report)
    plain, damage = _decompressed(source, head)
    try:
        while block := plain.read(BLOCK):
            yield block
    except damage as error:
        raise ValueError(f"the compressed file is damaged or cut short ({error})") from None


def _decompressed(source: Any, head: bytes) -> tuple[Any, tuple[type[Exception], ...]]:
    """The stream to read text from, and what it raises if the compressed data are wrong."""
    if head == b"\xfd7zXZ\x00":
        import lzma

        return lzma.LZMAFile(source), (EOFError, OSError, lzma.LZMAError)
    if head[:3] == b"BZh":
        import bz2

        return bz2.BZ2File(source), (EOFError, OSError)
    if head[:2] == b"\x1f\x8b":
        import gzip
        import zlib

        return gzip.GzipFile(fileobj=source), (EOFError, OSError, zlib.error)
    return source, ()


def _read(stream: IO[bytes], size: int) -> bytes:
    """The next bytes, as many as asked for unless the stream ends."""
    found = b""
    while len(found) < size:
        more = stream.read(size - len(found))
        if not isinstance(more, (bytes, bytearray, memoryview)):
            raise TypeError(f"file must be open for reading bytes (mode 'rb'), but it gives {type(more).__name__}.")
        if not more:
            break
        found += more
    return found


class _Counted(io.RawIOBase):
    """A stream whose first bytes were read already, which reports how far it has been read."""

    def __init__(self, head: bytes, stream: IO[bytes], report: Report | None) -> None:
        self._head, self._stream, self._report = head, stream, report
        self._count = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if self._head:
            end = len(self._head) if size < 0 else size
            found, self._head = self._head[:end], self._head[end:]
        else:
            found = bytes(self._stream.read(size))
        self._count += len(found)
        if self._report is not None:
            self._report(self._count)
        return found
