"""Solvers that know samples by the oracle's verbs alone, so that they run wherever the samples are."""

from coordwise.solvers.base import Solver
from coordwise.solvers.newton import NewtonCG

__all__ = ["SOLVERS", "NewtonCG", "Solver"]

SOLVERS: tuple[Solver, ...] = (NewtonCG(),)  # among which the choice is made
