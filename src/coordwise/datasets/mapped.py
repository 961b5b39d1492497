"""Arrays in .npy files: written with a checksum, mapped when they are wanted, and their pages given back afterwards."""

from __future__ import annotations

import contextlib
import io
import mmap
import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from coordwise.datasets.manifest import File

__all__ = ["Watch", "checksum", "forget_file", "give_back", "memory_size", "raw", "touch", "write_array"]

STEP = 1 << 20  # bytes that are read or written at a time


def write_array(folder: Path, name: str, array: NDArray[Any]) -> File:
    """Write a .npy file, on the disk when this returns; one that could not be written in whole is removed."""
    head = io.BytesIO()
    array = np.ascontiguousarray(array)
    np.lib.format.write_array_header_1_0(head, np.lib.format.header_data_from_array_1_0(array))
    flat = raw(array)
    path = folder / name
    try:
        with open(path, "wb") as file:
            crc, size = zlib.crc32(head.getvalue()), len(head.getvalue()) + len(flat)
            file.write(head.getvalue())
            for first in range(0, len(flat), STEP):
                piece = flat[first : first + STEP]
                crc = zlib.crc32(piece, crc)
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
            _advise(file.fileno(), "POSIX_FADV_DONTNEED")  # what is written is not read again soon
    except BaseException:
        with contextlib.suppress(OSError):
            path.unlink()
        raise
    return File(name, size, crc)


def raw(array: NDArray[Any]) -> memoryview:
    """The bytes of a contiguous array."""
    flat: Any = array.reshape(-1).view(np.uint8)
    return memoryview(flat) if array.size else memoryview(b"")


def checksum(path: Path) -> int:
    """CRC-32 of a file."""
    crc = 0
    with open(path, "rb", buffering=0) as file:
        while block := file.read(STEP):
            crc = zlib.crc32(block, crc)
    return crc


class Watch:
    """Maps files of a folder, and notices those that are not what they were when they were written.

    The checksum of a file is compared when it is mapped for the first time, and afterwards whenever its time of
    modification has changed. The size is compared every time.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._seen: dict[str, tuple[int, int, int]] = {}

    def sized(self, file: File) -> os.stat_result:
        """The file's status; refused if it is missing or has another size."""
        path = self.folder / file.name
        try:
            status = path.stat()
        except FileNotFoundError:
            raise FileNotFoundError(f"{path} is missing; convert the data again.") from None
        if status.st_size != file.bytes:
            word = "truncated" if status.st_size < file.bytes else "too long"
            raise ValueError(
                f"{path} is {word}: it has {status.st_size} bytes, not {file.bytes}; convert the data again."
            )
        return status

    def check(self, file: File) -> None:
        """Refuse a file that has changed."""
        status = self.sized(file)
        seen = (status.st_size, status.st_mtime_ns, status.st_ino)
        if self._seen.get(file.name) == seen:
            return
        if checksum(self.folder / file.name) != file.crc32:
            raise ValueError(
                f"{self.folder / file.name} was changed after it had been written (its checksum is another one); "
                "convert the data again."
            )
        self._seen[file.name] = seen

    def map(self, file: File, shape: tuple[int, ...], dtypes: tuple[str, ...]) -> NDArray[Any]:
        """The array of a file, read-only, in memory as it is read; refused if it is not what the folder says."""
        self.check(file)
        path = self.folder / file.name
        with open(path, "rb") as opened:
            _advise(opened.fileno(), "POSIX_FADV_WILLNEED")
        try:
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise ValueError(f"{path} is not a .npy file ({error}); convert the data again.") from None
        if array.shape != shape or array.dtype.name not in dtypes or not array.dtype.isnative:
            raise ValueError(
                f"{path} holds {array.dtype} of shape {array.shape}, not {' or '.join(dtypes)} of shape {shape}; "
                "convert the data again."
            )
        return array


def touch(X: Any) -> None:
    """Have every page of a mapped matrix read now, by a look at one of its numbers."""
    for array in (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,):
        flat = array.reshape(-1)
        flat[:: mmap.PAGESIZE // flat.itemsize].max(initial=0)


def give_back(array: Any) -> None:
    """Let the system take the pages of a read-only map out of this process; they are read again when touched."""
    while array is not None and not isinstance(array, mmap.mmap):
        array = getattr(array, "base", None)
    if array is not None and hasattr(mmap, "MADV_DONTNEED"):
        with contextlib.suppress(OSError, ValueError):
            array.madvise(mmap.MADV_DONTNEED)


def forget_file(path: Path) -> None:
    """Let the system drop its own copy of a file, too."""
    with contextlib.suppress(OSError), open(path, "rb") as file:
        _advise(file.fileno(), "POSIX_FADV_DONTNEED")


def memory_size() -> int:
    """Bytes of memory that this process may hope for: those of the machine, or of its control group."""
    try:
        found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # a system without them
        return 1 << 32
    with contextlib.suppress(OSError, ValueError):
        found = min(found, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return found


def _advise(descriptor: int, advice: str) -> None:
    if hasattr(os, "posix_fadvise"):
        with contextlib.suppress(OSError):
            os.posix_fadvise(descriptor, 0, 0, getattr(os, advice))
