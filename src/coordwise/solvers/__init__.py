"""Solvers that know samples by the oracle's verbs alone, so that they run wherever the samples are."""

from coordwise.solvers.base import Solver
from coordwise.solvers.descent import Descent
from coordwise.solvers.newton import NewtonCG

__all__ = ["Descent", "NewtonCG", "Solver"]
