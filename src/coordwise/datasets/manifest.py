"""What a data folder says about itself: `meta.json` (docs/data-folder.md)."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["META", "VERSION", "Chunk", "File", "Manifest", "is_folder", "read"]

META = "meta.json"
FORMAT = "coordwise data folder"
VERSION = 1
MATRIX = {"csr": ("values", "indices", "indptr"), "dense": ("dense",)}


@dataclass(frozen=True)
class File:
    """One array: the name of its .npy file, the file's size and the CRC-32 of all its bytes."""

    name: str
    bytes: int
    crc32: int


@dataclass(frozen=True)
class Chunk:
    """Some consecutive rows: their number, stored entries, sum_i s_i, sum_i s_i |a_i|^2, and the file of every array.

    `columns` is the number of columns that the source had named until then; the widest chunk is as wide as the data.
    """

    rows: int
    columns: int
    nnz: int
    weight: float
    squares: float
    files: dict[str, File]

    @classmethod
    def of(cls, found: dict[str, Any]) -> Chunk:
        """The chunk that was written as JSON."""
        files = {
            str(role): File(str(f["name"]), int(f["bytes"]), int(f["crc32"])) for role, f in found["files"].items()
        }
        if any(Path(file.name).name != file.name for file in files.values()):
            raise ValueError("a file of a chunk lies outside of the folder")
        numbers = (int(found["rows"]), int(found["columns"]), int(found["nnz"]))
        return cls(*numbers, float(found["weight"]), float(found["squares"]), files)

    @property
    def bytes(self) -> int:
        """Of all its files."""
        return sum(file.bytes for file in self.files.values())


@dataclass(frozen=True)
class Manifest:
    """A whole folder.

    `target_shape` is None without targets, () for one target per sample and (K,) for K. `levels` has the values of
    every categorical column, in the order of its one-hot features. `source` describes the conversion; the same
    conversion has the same description, and None stands for a source that cannot be recognised.
    """

    shape: tuple[int, int]
    nnz: int
    dtype: str
    storage: str
    target_shape: tuple[int, ...] | None
    weighted: bool
    chunks: tuple[Chunk, ...]
    source: dict[str, Any] | None = None
    feature_names: tuple[str, ...] | None = None
    levels: dict[str, list[str]] = field(default_factory=dict)

    @property
    def roles(self) -> tuple[str, ...]:
        """The arrays that every chunk has."""
        targets = () if self.target_shape is None else ("targets",)
        return (*MATRIX[self.storage], *targets, *(("weights",) if self.weighted else ()))

    @property
    def text(self) -> str:
        """The content of `meta.json`."""
        return json.dumps({"format": FORMAT, "version": VERSION, **asdict(self)}, indent=1)


def is_folder(path: Path) -> bool:
    """Whether a path is a folder with a `meta.json` that claims to be of this format, of any version."""
    try:
        found = json.loads((path / META).read_text())
    except (OSError, ValueError):
        return (path / META).is_file()  # damaged: `read` says so
    return isinstance(found, dict) and found.get("format") == FORMAT


def read(path: Path) -> Manifest:
    """The description of a folder whose chunks fit together.

    Raises
    ------
    FileNotFoundError
        If there is no `meta.json`.
    ValueError
        If it is not of this format, of a newer version, or contradicts itself.
    """
    try:
        found = json.loads((path / META).read_text())
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(f"{path} is not a data folder: it has no {META}.") from None
    except ValueError as error:
        raise ValueError(f"{path / META} is damaged ({error}); convert the data again.") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise ValueError(f"{path / META} does not describe a {FORMAT}.")
    version = found.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise ValueError(
            f"{path} has version {version} of the format, and this coordwise reads up to {VERSION}; update coordwise, "
            "or convert the data again."
        )
    try:
        return _checked(found)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        reason = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"{path / META} is damaged ({reason}); convert the data again.") from None


def _checked(found: dict[str, Any]) -> Manifest:
    rows, columns = (int(size) for size in found["shape"])
    target_shape, names = found["target_shape"], found["feature_names"]
    manifest = Manifest(
        (rows, columns),
        int(found["nnz"]),
        str(found["dtype"]),
        str(found["storage"]),
        None if target_shape is None else tuple(int(size) for size in target_shape),
        bool(found["weighted"]),
        tuple(Chunk.of(chunk) for chunk in found["chunks"]),
        found["source"],
        None if names is None else tuple(str(name) for name in names),
        {str(column): [str(level) for level in levels] for column, levels in found["levels"].items()},
    )
    if manifest.storage not in MATRIX or manifest.dtype not in ("float32", "float64"):
        raise ValueError(f"unknown storage {manifest.storage!r} or dtype {manifest.dtype!r}")
    if any(sorted(chunk.files) != sorted(manifest.roles) for chunk in manifest.chunks):
        raise ValueError("a chunk lacks an array, or has one too many")
    chunks = manifest.chunks
    if (sum(chunk.rows for chunk in chunks), sum(chunk.nnz for chunk in chunks)) != (rows, manifest.nnz):
        raise ValueError("the chunks do not add up to the whole")
    if any(chunk.columns > columns for chunk in chunks) or (names is not None and len(names) != columns):
        raise ValueError("the number of columns is not that of the chunks or of the names")
    return manifest
