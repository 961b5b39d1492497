"""Accelerated randomized coordinate descent with non-uniform sampling, for linear models and linear systems."""

from coordwise import losses, penalties, theory
from coordwise.erm import ERM
from coordwise.methods import ACDM, APCG, APPROX, NUACDM, RCDM, SDCA, ACDMns, Kaczmarz, NUACDMns
from coordwise.minimize import Minimum, minimize
from coordwise.objectives import LeastSquares, LinearSystem, SymmetricSystem
from coordwise.recording import Progress
from coordwise.results import Constants, History, Result, Status
from coordwise.solve import solve

__version__ = "0.1.0"

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
    "Kaczmarz",
    "LeastSquares",
    "LinearSystem",
    "Minimum",
    "NUACDMns",
    "Progress",
    "Result",
    "Status",
    "SymmetricSystem",
    "losses",
    "minimize",
    "penalties",
    "solve",
    "theory",
]
