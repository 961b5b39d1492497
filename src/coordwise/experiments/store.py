"""Findings on disk: a CSV file for people, and a JSON file beside it that tells what they were computed from."""

from __future__ import annotations

import csv
import functools
import hashlib
import io
import json
import math
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import coordwise
from coordwise.experiments.settings import Settings
from coordwise.experiments.units import Finding, Library, Unit

__all__ = ["Store", "code_digest", "write_csv", "write_whole"]

FORMAT = 1


class Store:
    """Findings in a folder, each valid only for the inputs it was computed from."""

    def __init__(
        self,
        folder: Path,
        library: Library,
        settings: Settings,
        data: Mapping[str, str] | None = None,
        stand_ins: float | None = None,
    ) -> None:
        self.folder, self.library, self.settings = folder, library, settings
        self.data, self.stand_ins = dict(data or {}), stand_ins

    def claim(self, *, force: bool) -> None:
        """Make the folder this store's own; refused if it holds results of other seeds or data, or of a full run.

        The settings and the data's fingerprints stand in ``settings.json``; data that a folder has not seen yet are
        added to it.
        """
        path = self.folder / "settings.json"
        ours: dict[str, Any] = {"settings": self.settings.spec(), "stand_ins": self.stand_ins, "data": self.data}
        held = _read(path)
        if held is not None and held["settings"]["quick"] and not self.settings.quick:
            held = None  # a quick look never stands in the way of a full run
        if held is not None and not force:
            others = [name for name, found in held["data"].items() if ours["data"].get(name, found) != found]
            if not self.data and self.stand_ins is None:  # this call needs no data: what the folder has stays
                ours["stand_ins"] = self.stand_ins = held.get("stand_ins")
            elif held.get("stand_ins") != self.stand_ins and not others and held["data"]:
                others = ["stand-ins of another share, or none"]
            if others or json.loads(json.dumps(ours["settings"])) != held["settings"]:
                mode = "a quick look" if held["settings"]["quick"] else "a full run"
                seeds = held["settings"]["seeds"]
                what = f"on other data ({', '.join(others)})" if others else f"with seeds {seeds[0]} to {seeds[-1]}"
                raise ValueError(
                    f"{str(self.folder.parent)!r} holds {mode} {what}, which this one would replace; give another "
                    "folder with out=DIR, or force=True."
                )
            ours["data"] = held["data"] | ours["data"]
        write_whole(path, json.dumps(ours, indent=1).encode())

    def digest(self, unit: Unit) -> str:
        """A hash of everything the unit's numbers depend on."""
        inputs = {
            "format": FORMAT,
            "code": code_digest(),
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
        write_whole(
            self.folder / f"{unit.key}.json",
            json.dumps(_plain(about), indent=1, ensure_ascii=False, allow_nan=False).encode(),
        )


@functools.cache
def code_digest() -> str:
    """A hash of the package itself, sources and compiled core: other code may give other numbers."""
    digest = hashlib.sha256(coordwise.__version__.encode())
    package = Path(coordwise.__file__).parent
    for path in sorted(p for p in package.rglob("*") if p.suffix in (".py", ".so", ".pyd")):
        digest.update(path.relative_to(package).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _read(path: Path) -> Any:
    try:
        held = json.loads(path.read_bytes())
        known = held["settings"]["seeds"] and "quick" in held["settings"] and isinstance(held["data"], dict)
        return held if known else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


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


def _plain(value: Any) -> Any:
    """The same for JSON, which knows no nan and no inf: null."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


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
