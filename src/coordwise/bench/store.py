"""Rows on disk as they come, and optima for another time."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import math
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from coordwise.bench.race import Rules
from coordwise.bench.rows import Row
from coordwise.bench.runner import Optimum
from coordwise.bench.worker import Field
from coordwise.experiments.store import code_digest, write_whole

__all__ = ["Store", "versions_of"]


def versions_of(libraries: Iterable[str]) -> dict[str, str]:
    """Versions of what is installed."""
    found = {}
    for library in libraries:
        try:
            found[library] = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            found[library] = ""
    return found


class Store:
    """Results in a folder: ``rows/*.json``, each valid for the code, the libraries and the rules it was measured with.

    Limits of time are not among them: a row that was measured is valid whatever time it was given.

    Parameters
    ----------
    folder : Path
    rules : Rules
    libraries : iterable of str
        Whose versions count.
    """

    def __init__(self, folder: Path, rules: Rules, libraries: Iterable[str]) -> None:
        self.folder = folder
        kept = {name: value for name, value in asdict(rules).items() if name != "limit"}
        inputs = {"code": code_digest(), "rules": kept, "versions": versions_of(sorted(set(libraries)))}
        self.digest = hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()

    def get(self, row: Row, *, any_digest: bool = False) -> dict[str, Any] | None:
        """A row's result, unless there is none or it was measured with something else."""
        held = _read(self.folder / "rows" / f"{row.key}.json")
        if held is None or not isinstance(held.get("goals"), list) or held.get("row") != row.spec():
            return None
        return held if any_digest or held.get("digest") == self.digest else None

    def put(self, row: Row, result: dict[str, Any]) -> None:
        """Keep a row's result."""
        write_json(self.folder / "rows" / f"{row.key}.json", result | {"digest": self.digest})

    def optimum(self, at: Field) -> Optimum | None:
        """What is known of a problem's minimum."""
        held = _read(self.folder / "optima" / f"{at.digest[:32]}.json")
        if held is None or held.get("digest") != at.digest:
            return None
        return Optimum(float(held["best"]), -math.inf if held["lower"] is None else float(held["lower"]))

    def keep_optimum(self, at: Field, optimum: Optimum) -> None:
        """Keep what is known of a problem's minimum."""
        about = {"digest": at.digest, "statement": at.statement, "n": at.n, "d": at.d} | asdict(optimum)
        write_json(self.folder / "optima" / f"{at.digest[:32]}.json", about)


def write_json(path: Path, value: Any) -> None:
    """Plain values as JSON, which knows no inf and no nan: null."""
    write_whole(path, json.dumps(_plain(value), indent=1, ensure_ascii=False, allow_nan=False).encode())


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _read(path: Path) -> dict[str, Any] | None:
    try:
        held = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return held if isinstance(held, dict) else None
