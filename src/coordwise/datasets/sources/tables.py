"""Rows from tables (CSV, Parquet, Arrow) by pyarrow, a batch at a time; categorical columns become one-hot features."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from coordwise.datasets.sources.base import Part, State, file_identity, gathered
from coordwise.extras import require

__all__ = ["TABLES", "TableSource", "table"]

TABLES = (".csv", ".csv.gz", ".csv.bz2", ".parquet", ".arrow", ".feather")
PIECE = 1 << 23  # bytes of numbers that are made into rows at a time
BLOCK = 1 << 20  # bytes of CSV text that are read at a time


def table(path: Path, target: Any, weight: Any, categorical: tuple[str, ...]) -> TableSource:
    """The source for a table."""
    require("pyarrow", extra="arrow", wanted_by=f"reading {path.name}")
    for argument, name in (("target", target), ("weight", weight)):
        if name is not None and not isinstance(name, str):
            raise TypeError(f"{argument} must be the name of a column of {path.name}, not {type(name).__name__}.")
    return TableSource(path, target, weight, categorical)


@dataclass(frozen=True)
class Columns:
    """The features of a table: names of columns, and where the features of each begin."""

    names: tuple[str, ...]
    levels: dict[str, list[str]]

    @property
    def starts(self) -> list[int]:
        """The first feature of every column, and the number of all."""
        widths = [len(self.levels[name]) if name in self.levels else 1 for name in self.names]
        return [int(start) for start in np.cumsum([0, *widths])]

    @property
    def feature_names(self) -> tuple[str, ...]:
        """One per feature; `column=value` for those of a categorical column."""
        nothing: list[Any] = [None]
        return tuple(
            f"{name}={level}" if level is not None else name
            for name in self.names
            for level in self.levels.get(name, nothing)
        )


class TableSource:
    """Rows of a table: dense, or CSR without the zeros if there are categorical columns.

    The values of categorical columns have to be known before the first row can be written, so the file is read once
    more, these columns alone.
    """

    def __init__(self, path: Path, target: str | None, weight: str | None, categorical: tuple[str, ...]) -> None:
        self.path, self.target, self.weight = path, target, weight
        self.identity: dict[str, Any] | None = {
            **file_identity(path),
            "target": target,
            "weight": weight,
            "categorical": list(categorical),
        }
        self.total: int | None = path.stat().st_size
        self.file = _Opened(path, frozenset(categorical))
        if self.file.csv and path.suffix != ".csv":
            self.total = None  # the bytes that were read are counted after decompression
        names = self.file.names
        self._check_names(names, categorical)
        kept = tuple(name for name in names if name not in (target, weight))
        if not kept:
            raise ValueError(f"{path.name} has no column that is a feature.")
        levels = self._levels(categorical)
        self.held = Columns(kept, levels)
        self.levels = levels
        self.feature_names: tuple[str, ...] | None = self.held.feature_names
        self.columns: int | None = self.held.starts[-1]
        numeric = [name for name in kept if name not in levels]
        single = bool(numeric) and all(self.file.single(name) for name in numeric)
        self.dtype = np.float32 if single else np.float64

    def _check_names(self, names: list[str], categorical: tuple[str, ...]) -> None:
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"{self.path.name} has two columns {twice!r}; every column must have a name of its own.")
        asked = [("target", self.target), ("weight", self.weight), *(("categorical", name) for name in categorical)]
        for argument, name in asked:
            if name is not None and name not in names:
                shown = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
                raise ValueError(f"{argument}: {self.path.name} has no column {name!r}; it has {shown}.")
        given = [name for _, name in asked if name is not None]
        if len(set(given)) < len(given):
            raise ValueError("a column is named twice among target, weight and categorical; each has one part to play.")

    def _levels(self, categorical: tuple[str, ...]) -> dict[str, list[str]]:
        found: dict[str, set[str]] = {name: set() for name in categorical}
        if found:
            for batch, _ in self.file.batches(list(categorical)):
                for name, seen in found.items():
                    seen.update(value for value in _texts(batch.column(name).unique()) if value is not None)
        return {name: sorted(seen) for name, seen in found.items()}

    def parts(self, after: State | None, size: int) -> Iterator[Part]:
        """See `Source.parts`."""
        return gathered(self._parts(int(after["rows"]) if after else 0), size)

    def _parts(self, first: int) -> Iterator[Part]:
        wanted = [*self.held.names, *(name for name in (self.target, self.weight) if name is not None)]
        batches = self.file.batches(wanted)
        row = 0  # of the file, the next to be read
        step = max(1, PIECE // (8 * len(wanted)))
        for batch, done in batches:
            end = row + batch.num_rows
            if end > first and batch.num_rows:
                self._refuse_missing(batch, batches, wanted, row)
                for begin in range(max(0, first - row), batch.num_rows, step):
                    some = batch.slice(begin, step)
                    yield self._part(some, wanted, row + begin + some.num_rows, done)
            row = end

    def _part(self, batch: Any, wanted: list[str], end: int, done: int) -> Part:
        numbers = {name: _numbers(batch.column(name), name) for name in wanted if name not in self.levels}
        y, s = (None if name is None else numbers[name] for name in (self.target, self.weight))
        X = self._sparse(batch, numbers) if self.levels else self._dense(numbers)
        return Part(X, y, s, {"rows": end}, done)

    def _dense(self, numbers: dict[str, NDArray[Any]]) -> NDArray[Any]:
        return np.column_stack([numbers[name] for name in self.held.names]).astype(self.dtype, copy=False)

    def _sparse(self, batch: Any, numbers: dict[str, NDArray[Any]]) -> Any:
        """An entry per row and column of the table, from which zeros are dropped."""
        m, p = batch.num_rows, len(self.held.names)
        indices, values = np.empty((m, p), np.int64), np.ones((m, p), self.dtype)
        for j, (name, start) in enumerate(zip(self.held.names, self.held.starts, strict=False)):
            if name in self.levels:
                indices[:, j] = start + self._codes(batch.column(name), name)
            else:
                indices[:, j], values[:, j] = start, numbers[name]
        there = values != 0
        indptr = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
        X = sp.csr_array((values[there], indices[there], indptr), shape=(m, self.held.starts[-1]))
        X.has_sorted_indices = X.has_canonical_format = True
        return X

    def _codes(self, column: Any, name: str) -> NDArray[Any]:
        """The position of every value among the levels, found once for each value of the batch."""
        encoded = column if _is_dictionary(column.type) else column.dictionary_encode()
        place: dict[str | None, int] = {level: k for k, level in enumerate(self.levels[name])}
        places = np.array([place.get(value, -1) for value in _texts(encoded.dictionary)], np.int64)
        return places[encoded.indices.to_numpy(zero_copy_only=False)]

    def _refuse_missing(self, batch: Any, others: Iterator[Any], wanted: list[str], before: int) -> None:
        """With the number of missing values in the whole file, which is read to its end for that."""
        lacking = {name: count for name in wanted if (count := _missing(batch.column(name)))}
        if not lacking:
            return
        name = next(iter(lacking))
        count = lacking[name] + sum(_missing(later.column(name)) for later, _ in others)
        raise ValueError(
            f"column {name!r} of {self.path.name} has {count} missing value{'s' * (count > 1)} (the first after row "
            f"{before}); remove these rows or impute the values."
        )


class _Opened:
    """A table's columns and types, and its batches."""

    def __init__(self, path: Path, categorical: frozenset[str]) -> None:
        self.path, self.categorical = path, categorical
        self.csv = ".csv" in path.suffixes[-2:]
        schema = self._schema()
        self.names = [str(name) for name in schema.names]
        self._types = dict(zip(self.names, schema.types, strict=True))

    def single(self, name: str) -> bool:
        """Whether a column holds float32."""
        return not self.csv and str(self._types[name]) == "float"

    def _schema(self) -> Any:
        with _Refusing(self.path):
            if self.csv:
                with self._reader(None) as reader:
                    return reader.schema
            if self.path.suffix == ".parquet":
                import pyarrow.parquet as pq

                with pq.ParquetFile(self.path) as file:
                    return file.schema_arrow
            import pyarrow as pa

            with pa.memory_map(str(self.path)) as mapped:
                return pa.ipc.open_file(mapped).schema

    def _reader(self, wanted: list[str] | None) -> Any:
        """Of CSV text: names from its first line; all columns are numbers, but the categorical ones text."""
        import pyarrow as pa
        from pyarrow import csv

        types = {
            name: pa.string() if name in self.categorical else pa.float64()
            for name in ([] if wanted is None else wanted)
        }
        convert = csv.ConvertOptions(column_types=types, include_columns=wanted, strings_can_be_null=True)
        return csv.open_csv(self.path, csv.ReadOptions(block_size=BLOCK), convert_options=convert)

    def batches(self, wanted: list[str]) -> Iterator[tuple[Any, int]]:
        """Record batches of some columns, and about how many bytes of the file were read for them."""
        total = self.path.stat().st_size
        with _Refusing(self.path, self.names):
            if self.csv:
                most = total if self.path.suffix == ".csv" else 1 << 62
                with self._reader(wanted) as reader:
                    for k, batch in enumerate(reader):
                        yield batch, min(most, (k + 1) * BLOCK)
            elif self.path.suffix == ".parquet":
                import pyarrow.parquet as pq

                # With pre_buffer, row groups that were read would stay in memory until the end.
                with pq.ParquetFile(self.path, pre_buffer=False) as file:
                    row, rows = 0, max(1, file.metadata.num_rows)
                    for batch in file.iter_batches(max(64, PIECE // (8 * len(wanted))), columns=wanted):
                        row += batch.num_rows
                        yield batch, total * row // rows
            else:
                import pyarrow as pa

                with pa.OSFile(str(self.path)) as file:  # a map would stay in memory
                    opened = pa.ipc.open_file(file)
                    for k in range(opened.num_record_batches):
                        yield opened.get_batch(k).select(wanted), total * (k + 1) // opened.num_record_batches


class _Refusing:
    """Turns pyarrow's errors into sentences with the file's name."""

    def __init__(self, path: Path, names: Sequence[str] = ()) -> None:
        self.path, self.names = path, names

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, _: Any) -> None:
        import pyarrow as pa

        if isinstance(error, pa.ArrowException):
            said = re.sub(r"In CSV column #(\d+)", self._named, " ".join(str(error).split()).rstrip("."))
            advice = "; a column of text has to be named in categorical" if "conversion error" in said else ""
            raise ValueError(f"{self.path.name} cannot be read: {said}{advice}.") from None

    def _named(self, found: re.Match[str]) -> str:
        """A column by its name, as pyarrow gives its number."""
        at = int(found[1])
        return f"column {self.names[at]!r}" if at < len(self.names) else found[0]


def _is_dictionary(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_dictionary(kind))


def _texts(column: Any) -> list[str | None]:
    """Values as text."""
    if _is_dictionary(column.type):
        column = column.dictionary_decode()
    return [None if value is None else str(value) for value in column.to_pylist()]


def _missing(column: Any) -> int:
    """Nulls, and NaN among floating-point numbers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_floating(column.type):
        return int(column.null_count)
    return int(pc.sum(pc.is_null(column, nan_is_null=True)).as_py() or 0)


def _numbers(column: Any, name: str) -> NDArray[Any]:
    """A numeric column; refused if it is none, or holds integers that float64 rounds."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_float32(kind) or pa.types.is_float64(kind):
        return np.asarray(column.to_numpy(zero_copy_only=False))
    numeric = pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind)
    if not (numeric or pa.types.is_float16(kind)):
        raise ValueError(
            f"column {name!r} holds {kind}, which is no number; name it in categorical, or leave it out of the file."
        )
    try:
        return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False))
    except pa.ArrowInvalid as error:
        raise ValueError(f"column {name!r} does not fit into float64: {error}.") from None
