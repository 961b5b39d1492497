"""Solvers that know samples by the oracle's verbs alone, so that they run wherever the samples are."""

from coordwise.solvers.base import Solver
from coordwise.solvers.conjugate import NewtonCG
from coordwise.solvers.descent import Descent
from coordwise.solvers.gram import Gram
from coordwise.solvers.newton import Newton
from coordwise.solvers.working_set import WorkingSet

__all__ = ["SOLVERS", "Descent", "Gram", "Newton", "NewtonCG", "Solver", "WorkingSet"]

# among which the choice is made
SOLVERS: tuple[Solver, ...] = (Gram(), Newton(), NewtonCG(), NewtonCG("part"), WorkingSet(), Descent())
