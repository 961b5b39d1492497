"""Stand-ins for scikit-learn's linear models: coordwise's estimators behind the constructors that its tests call.

A stand-in accepts every parameter of scikit-learn's class. Those that coordwise does not take are of two kinds:

* parameters that choose an algorithm (``solver``, ``dual``, ``precompute``, ``selection``, ``copy_X``): the solution is
  the same, so they are accepted and have no effect;
* parameters that change the problem: ``penalty`` of the logistic regressions becomes ``l1_ratio`` or ``C=inf``, and
  ``solver="liblinear"`` penalises the intercept as a feature of the size ``intercept_scaling``. ``multi_class=
  "crammer_singer"`` is a problem that coordwise does not have, and is refused.

Tolerances. scikit-learn's ``tol`` bounds a gradient, a change or a duality gap, by solver; ours bounds the duality gap
relative to the objective at zero, and the error of the coefficients is about its square root. Its tests compare
solutions, so a stand-in asks for ``tol * FINER``, and for no less than rounding allows (`FINEST`).
"""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import sklearn.linear_model
import sklearn.svm

from coordwise import estimators

__all__ = ["install", "used"]

FINER, FINEST = 1e-9, 1e-15
MORE = 100  # scikit-learn's max_iter times this, unless a test means it to be too few
FEW = 10  # up to this many iterations a test means them to be too few
used: list[str] = []  # stand-ins that were made or fitted, for the record of the test that runs


def install() -> None:
    """Put the stand-ins where ``from sklearn.linear_model import ...`` and ``sklearn.svm.LinearSVC`` find them."""
    for package in (sklearn.linear_model, sklearn.svm):
        for name in estimators.__all__:
            theirs = getattr(package, name, None)
            if inspect.isclass(theirs):
                setattr(package, name, stand_in(getattr(estimators, name), theirs))


def stand_in(ours: type, theirs: type) -> type:
    """A subclass of `ours` with the parameters of both."""
    own, parameters = inspect.signature(ours).parameters, dict(inspect.signature(theirs).parameters)
    ignored = {name: one for name, one in parameters.items() if name not in own}
    parameters |= {
        name: one.replace(kind=parameters[name].kind) if name in parameters else one for name, one in own.items()
    }
    constraints = {name: theirs._parameter_constraints[name] for name in ignored}
    unchecked = (_Unchecked,) if "check_input" in inspect.signature(theirs.fit).parameters else ()
    kind = type(
        ours.__name__,
        (*unchecked, _StandIn, ours),
        {
            "__init__": _constructor(parameters),
            "__module__": __name__,
            "__doc__": ours.__doc__,
            "_ignored": frozenset(ignored),
            "_parameter_constraints": {**ours._parameter_constraints, **constraints},
        },
    )
    globals()[ours.__name__] = kind  # where pickle looks for it
    return kind


def _constructor(parameters: dict[str, inspect.Parameter]) -> Any:
    """An ``__init__`` of this signature that stores what it is given, as scikit-learn's estimators do."""
    ordered = sorted(parameters.values(), key=lambda one: one.kind)
    me = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    signature = inspect.Signature([me, *ordered])

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        used.append(type(self).__name__)
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        for name, value in bound.arguments.items():
            if name != "self":
                setattr(self, name, value)

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    return __init__


class _StandIn:
    """What the stand-ins do differently: other values of some parameters while they fit."""

    _ignored: frozenset[str]  # parameters that coordwise does not take

    def _fit(self, *args: Any, **kwargs: Any) -> Any:
        used.append(type(self).__name__)
        if "solver" in self._ignored:
            self.solver_ = self.solver  # which scikit-learn's tests of ridge regression read
        with _changed(self, _translation(self)):
            return super()._fit(*args, **kwargs)  # type: ignore[misc]

    @property
    def _scaling(self) -> float:
        """LIBLINEAR penalises the intercept of logistic regression, other solvers do not."""
        if "intercept_scaling" not in self._ignored:
            return super()._scaling  # type: ignore[misc]
        return float(self.intercept_scaling) if self.solver == "liblinear" else np.inf


class _Unchecked:
    """Accepts scikit-learn's request not to check X and y; ours checks them always, which changes no solution."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, check_input: bool = True) -> Any:
        return super().fit(X, y, sample_weight)  # type: ignore[misc]


def _translation(model: Any) -> dict[str, Any]:
    """What a fit needs to be that of scikit-learn's problem, and accurate enough for solutions to be compared."""
    if "multi_class" in model._ignored and model.multi_class == "crammer_singer":
        raise NotImplementedError("multi_class='crammer_singer' is another problem, which coordwise does not have.")
    changes: dict[str, Any] = {}
    if isinstance(model.tol, numbers.Real):
        changes["tol"] = max(float(model.tol) * FINER, min(float(model.tol), FINEST))
    if model.max_iter is not None and model.max_iter > FEW:
        changes["max_iter"] = MORE * model.max_iter
    return changes | _penalty(model)


def _penalty(model: Any) -> dict[str, Any]:
    """Scikit-learn's ``penalty`` of the logistic regressions in ours: a share of l1, or no penalty."""
    if "penalty" not in model._ignored or model.penalty in ("deprecated", "elasticnet"):
        return {}
    penalty = model.penalty
    several = hasattr(model, "l1_ratios")
    if penalty is None:
        return {"Cs": [np.inf]} if several else {"C": np.inf}
    share = 1.0 if penalty == "l1" else 0.0
    return {"l1_ratios": [share]} if several else {"l1_ratio": share}


@contextmanager
def _changed(model: Any, changes: dict[str, Any]) -> Iterator[None]:
    """Other values of parameters for a while; tests read them afterwards as they were given."""
    before = {name: getattr(model, name) for name in changes}
    try:
        for name, value in changes.items():
            setattr(model, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(model, name, value)
