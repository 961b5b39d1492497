"""Weights of a fit on disk, written while it goes on, so that the same call resumes it in another process."""

from __future__ import annotations

import hashlib
import os
import pickle
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from coordwise.recording import Progress
from coordwise.validation import FloatArray

__all__ = ["Checkpoint", "Kept"]

EVERY = 5.0  # seconds between two writes
VERSION = 1


class Checkpoint:
    """A file with the best weights so far of the fits that one call of an estimator makes.

    It is written to a file beside it, which then takes its name, so that it is there in whole or not at all. What it
    holds are arrays of numbers (``numpy.load`` without pickle).

    Parameters
    ----------
    path : path
    problem : str
        What the weights are for. A file for another problem is refused.

    Raises
    ------
    ValueError
        If there is a file that is no checkpoint, or one of another problem.
    """

    def __init__(self, path: str | os.PathLike[str], problem: str) -> None:
        self.path, self.problem = Path(path).expanduser(), problem
        self._arrays = self._read()
        self._written = 0.0

    def of(self, *parts: Any) -> Kept:
        """The weights of one fit, which is told from others by these parts of its data."""
        return Kept(self, hashlib.sha256(pickle.dumps(parts, protocol=4)).hexdigest()[:32])

    def _read(self) -> dict[str, FloatArray]:
        if not self.path.exists():
            return {}
        try:
            with np.load(self.path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            version, problem = int(arrays.pop("version")), str(arrays.pop("problem"))
        except (ValueError, KeyError, EOFError, OSError, zipfile.BadZipFile) as error:
            raise ValueError(f"checkpoint={str(self.path)!r} is no checkpoint ({error}); give another path.") from None
        if version > VERSION:
            raise ValueError(f"checkpoint={str(self.path)!r} was written by a newer version; give another path.")
        if problem != self.problem:
            raise ValueError(
                f"checkpoint={str(self.path)!r} is of another problem: {problem}. This one is {self.problem}. "
                "Remove the file, or give another path."
            )
        return arrays

    def _write(self) -> None:
        partial = self.path.with_name(f"{self.path.name}.{os.getpid()}.partial")
        arrays: dict[str, Any] = {"version": np.array(VERSION), "problem": np.array(self.problem), **self._arrays}
        try:
            with open(partial, "wb") as file:
                np.savez(file, **arrays)
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, self.path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
        self._written = time.monotonic()


class Kept:
    """The weights of one fit in a checkpoint."""

    def __init__(self, file: Checkpoint, name: str) -> None:
        self.file, self.name = file, name

    def weights(self, shape: tuple[int, int]) -> FloatArray | None:
        """Those of last time, if there are any of this shape."""
        found = self.file._arrays.get(self.name)
        return found if found is not None and found.shape == shape and np.isfinite(found).all() else None

    def watching(self, callback: Callable[[Progress], object] | None) -> Callable[[Progress], object]:
        """A callback that writes every few seconds, besides another one."""

        def see(progress: Progress) -> object:
            if time.monotonic() - self.file._written >= EVERY:
                self.keep(progress.solution())
            return None if callback is None else callback(progress)

        return see

    def keep(self, w: FloatArray) -> None:
        """Write these now."""
        self.file._arrays[self.name] = np.array(w)
        self.file._write()
