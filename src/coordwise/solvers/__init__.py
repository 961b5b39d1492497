"""Solvers that know samples by the oracle's verbs alone, so that they run wherever the samples are."""

from coordwise.solvers.base import Solver
from coordwise.solvers.conjugate import NewtonCG
from coordwise.solvers.descent import Descent
from coordwise.solvers.gram import Gram
from coordwise.solvers.newton import Newton
from coordwise.solvers.working_set import WorkingSet

__all__ = ["SOLVERS", "Descent", "Gram", "Newton", "NewtonCG", "Solver", "WorkingSet"]

SOLVERS: tuple[Solver, ...] = (Gram(), Newton(), NewtonCG(), NewtonCG("part"), WorkingSet(), Descent())
"""For `coordwise.drive.drive`, which chooses among those that apply, by what they forecast."""
