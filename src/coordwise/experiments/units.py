"""Units of work: what is computed, stored and resumed as a whole."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from coordwise.datasets import Dataset
from coordwise.experiments.settings import Settings

__all__ = ["Finding", "Interrupted", "Unit", "Watch"]

Library = Callable[[str], Dataset]


class Interrupted(Exception):
    """A unit gave up because it was asked to."""


class Watch(Protocol):
    """Where a unit reports its progress, and learns that it should stop."""

    @property
    def stopped(self) -> bool:
        """Whether to give up."""

    def add(self, entries: float) -> None:
        """So many more entries of a matrix were touched."""


@dataclass(frozen=True)
class Finding:
    """What a unit found: a table with named columns, and facts about it (JSON)."""

    columns: dict[str, list[Any]]
    facts: dict[str, Any] = field(default_factory=dict)


class Unit(ABC):
    """One panel of a figure, or one table: the same inputs give the same numbers again."""

    key: str
    title: str
    datasets: tuple[str, ...] = ()

    @property
    @abstractmethod
    def spec(self) -> dict[str, Any]:
        """Everything the numbers depend on besides data and settings, as JSON."""

    def work(self, library: Library, settings: Settings) -> float:
        """About how many entries `run` will touch."""
        return 0.0

    @abstractmethod
    def run(self, library: Library, settings: Settings, watch: Watch) -> Finding:
        """Do it."""
