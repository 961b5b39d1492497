"""Accelerated randomized coordinate descent with non-uniform sampling, for linear models and linear systems."""

from coordwise import losses, penalties, theory
from coordwise.erm import ERM
from coordwise.methods import ACDM, APCG, APPROX, NUACDM, RCDM, SDCA, Kaczmarz, NUACDMns
from coordwise.minimize import minimize
from coordwise.objectives import LeastSquares, LinearSystem
from coordwise.results import Result, Status
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
    "Kaczmarz",
    "LeastSquares",
    "LinearSystem",
    "NUACDMns",
    "Result",
    "Status",
    "losses",
    "minimize",
    "penalties",
    "solve",
    "theory",
]
