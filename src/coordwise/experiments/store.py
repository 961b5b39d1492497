"""Findings on disk: a CSV file for people, and a JSON file beside it that tells what they were computed from."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import coordwise
from coordwise.experiments.settings import Settings
from coordwise.experiments.units import Finding, Library, Unit

__all__ = ["Store", "write_csv", "write_whole"]

FORMAT = 1


class Store:
    """Findings in a folder, each valid only for the inputs it was computed from."""

    def __init__(self, folder: Path, library: Library, settings: Settings) -> None:
        self.folder, self.library, self.settings = folder, library, settings

    def digest(self, unit: Unit) -> str:
        """A hash of everything the unit's numbers depend on."""
        inputs = {
            "format": FORMAT,
            "version": coordwise.__version__,
            "unit": unit.spec,
            "settings": self.settings.spec(),
            "data": {name: self.library(name).fingerprint for name in unit.datasets},
        }
        return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()

    def get(self, unit: Unit) -> Finding | None:
        """The stored finding, unless there is none, its inputs were others, or its files were changed."""
        try:
            table = (self.folder / f"{unit.key}.csv").read_bytes()
            about = json.loads((self.folder / f"{unit.key}.json").read_bytes())
            if about["digest"] != self.digest(unit) or about["sha256"] != hashlib.sha256(table).hexdigest():
                return None
            return Finding(_parse(table.decode()), about["facts"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, unit: Unit, finding: Finding, seconds: float) -> None:
        """Write the finding; the JSON file comes last, so that half a finding is none."""
        table = write_csv(self.folder / f"{unit.key}.csv", finding.columns)
        about = {
            "title": unit.title,
            "digest": self.digest(unit),
            "sha256": hashlib.sha256(table).hexdigest(),
            "seconds": round(seconds, 2),
            "facts": finding.facts,
        }
        write_whole(self.folder / f"{unit.key}.json", json.dumps(about, indent=1, ensure_ascii=False).encode())


def write_csv(path: Path, columns: dict[str, list[Any]]) -> bytes:
    """Columns as CSV; numbers read back as the same numbers."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    table = text.getvalue().encode()
    write_whole(path, table)
    return table


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that is never seen half written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _parse(table: str) -> dict[str, list[Any]]:
    rows = list(csv.reader(io.StringIO(table)))
    return {name: [_value(row[i]) for row in rows[1:]] for i, name in enumerate(rows[0])}


def _value(text: str) -> Any:
    if text in ("True", "False"):
        return text == "True"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
