"""Accelerated randomized coordinate descent with non-uniform sampling, for linear models and linear systems."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

from coordwise import losses, penalties, theory
from coordwise.erm import ERM
from coordwise.interrupts import Interrupted
from coordwise.methods import ACDM, APCG, APPROX, NUACDM, RCDM, SDCA, ACDMns, Kaczmarz, NUACDMns
from coordwise.minimize import Minimum, minimize
from coordwise.objectives import LeastSquares, LinearSystem, SymmetricSystem
from coordwise.recording import Progress
from coordwise.regularized import Regularized
from coordwise.results import Constants, History, Result, Status
from coordwise.solve import solve

if TYPE_CHECKING:
    from coordwise import (
        bench as bench,
        dask as dask,
        datasets as datasets,
        estimators as estimators,
        experiments as experiments,
        fitting as fitting,
        linalg as linalg,
        plotting as plotting,
        reference as reference,
        sampling as sampling,
    )

__version__ = "0.1.0"

_LOADED_ON_FIRST_USE = (
    "bench",
    "dask",
    "datasets",
    "estimators",
    "experiments",
    "fitting",
    "linalg",
    "plotting",
    "reference",
    "sampling",
)

__all__ = [
    "ACDM",
    "APCG",
    "APPROX",
    "ERM",
    "NUACDM",
    "RCDM",
    "SDCA",
    "ACDMns",
    "Constants",
    "History",
    "Interrupted",
    "Kaczmarz",
    "LeastSquares",
    "LinearSystem",
    "Minimum",
    "NUACDMns",
    "Progress",
    "Regularized",
    "Result",
    "Status",
    "SymmetricSystem",
    "losses",
    "minimize",
    "penalties",
    "solve",
    "theory",
]


def __getattr__(name: str) -> ModuleType:
    if name in _LOADED_ON_FIRST_USE:
        return importlib.import_module(f"coordwise.{name}")
    raise AttributeError(f"module 'coordwise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *_LOADED_ON_FIRST_USE, "__version__"]
