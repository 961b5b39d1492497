"""Packages that only some modules need: a missing one is named together with the extra that installs it."""

from __future__ import annotations

import importlib.util

__all__ = ["require"]


def require(package: str, *, extra: str, wanted_by: str) -> None:
    """Refuse to go on without an importable package.

    Raises
    ------
    ModuleNotFoundError
        With the command that installs it.
    """
    if importlib.util.find_spec(package) is None:
        shown = {"sklearn": "scikit-learn"}.get(package, package)
        raise ModuleNotFoundError(f'{wanted_by} needs {shown}: pip install ".[{extra}]".', name=package)
