"""Solvers that know samples by the oracle's verbs alone, so that they run wherever the samples are."""

from coordwise.solvers.base import Solver
from coordwise.solvers.conjugate import NewtonCG
from coordwise.solvers.gram import Gram
from coordwise.solvers.newton import Newton
from coordwise.solvers.working_set import WorkingSet

__all__ = ["SOLVERS", "Gram", "Newton", "NewtonCG", "Solver", "WorkingSet"]

SOLVERS: tuple[Solver, ...] = (Gram(), Newton(), NewtonCG(), WorkingSet())  # among which the choice is made
