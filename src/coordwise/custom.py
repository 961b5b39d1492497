"""Losses and penalties of one's own, by formulas in NumPy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from coordwise.validation import FloatArray, check_number

__all__ = ["CustomLoss", "CustomPenalty", "SeparablePenalty"]


class CustomLoss(ABC):
    """A loss phi(t; b) of one's own, by four formulas that work element by element on arrays and on numbers.

    Subclasses give `value`, `derivative`, `conjugate` and `prox`, and set what applies of the attributes below.
    `coordwise.losses.check` compares the formulas with each other and says which is wrong. Sample weights, scaling by
    1/n and several outputs need nothing of the formulas.

    Attributes
    ----------
    name : str, default "custom"
        For messages.
    classification : bool, default False
        Whether b must be -1 or +1.
    smoothness : float, default inf
        Lipschitz constant of the derivative. If it is finite, `ERM.primal` is possible, and `ERM.dual` converges
        linearly.

    Notes
    -----
    The loop stays in the core and calls back once a step, which is slow. Duals of `ERM` call `prox` with numbers: with
    formulas of NumPy a step takes some 7 microseconds, about 100 times as long as with a loss of the library. Primals
    call `derivative` with the arrays of a column, 10 times as long for columns of 250 entries
    (`benchmarks/custom.py`). Formulas in plain Python numbers, where `prox` is given numbers, are faster.

    Examples
    --------
    >>> import numpy as np, coordwise as cw
    >>> class Absolute(cw.losses.CustomLoss):
    ...     def value(self, t, b):
    ...         return np.abs(t - b)
    ...     def derivative(self, t, b):
    ...         return np.sign(t - b)
    ...     def conjugate(self, y, b):
    ...         return np.where(np.abs(y) <= 1, b * y, np.inf)
    ...     def prox(self, t, step, b):
    ...         return t - np.clip(t - b, -step, step)
    ...     def domain(self, b):
    ...         return -1.0, 1.0
    >>> cw.losses.check(Absolute())
    >>> A = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 0.5]])
    >>> result = cw.solve(cw.ERM(A, np.array([1.0, 2.0, 3.0]), loss=Absolute(), lam=0.1).dual(), tol=1e-6)
    >>> result.converged
    True
    """

    name: str = "custom"
    classification: ClassVar[bool] = False
    smoothness: float = np.inf

    @abstractmethod
    def value(self, t: Any, b: Any) -> Any:
        """phi(t; b), convex in t and not negative: its mean at t = 0 is the scale of the stopping inequality."""

    @abstractmethod
    def derivative(self, t: Any, b: Any) -> Any:
        """phi'(t; b); at a kink, any subgradient."""

    @abstractmethod
    def conjugate(self, y: Any, b: Any) -> Any:
        """phi*(y; b) = sup over t of t y - phi(t; b); inf outside its domain."""

    @abstractmethod
    def prox(self, t: Any, step: Any, b: Any) -> Any:
        """argmin over u of phi(u; b) + (u - t)^2/(2 step)."""

    def domain(self, b: Any) -> tuple[Any, Any]:
        """Ends of the interval on which the conjugate is finite: the whole line, unless a subclass says otherwise."""
        return -np.inf, np.inf

    @property
    def gamma(self) -> float:
        """Strong convexity of phi*."""
        return 1 / self.smoothness

    @property
    def strong_convexity(self) -> float:
        """Strong convexity of phi, which is not known."""
        return 0.0

    def terms(self, scale: float, b: FloatArray, weights: FloatArray | None, threads: int) -> Any:
        """See `Loss.terms`."""
        from coordwise.custom_terms import LossTerms  # it needs this module

        return LossTerms.of(self, scale, b, weights)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class CustomPenalty(ABC):
    """A penalty r(w) = sum_j r_j(w_j) of one's own, by formulas that work element by element.

    Subclasses give `value`, `conjugate` and `prox`; `derivative_of_conjugate` and `strong_convexity` are for
    `ERM.dual`, which needs both. `coordwise.losses.check` compares the formulas with each other and says which is
    wrong. The weight of the penalty, lam, is the subclass's own matter.

    Attributes
    ----------
    name : str, default "custom"
        For messages.
    strong_convexity : float, default 0
        r(w) - (strong_convexity/2) |w|^2 is convex.

    Notes
    -----
    As slow as a `CustomLoss`: primals of `ERM` call `prox` with numbers once a step, duals call
    `derivative_of_conjugate` with the arrays of a row.
    """

    name: str = "custom"
    strong_convexity: float = 0.0

    @abstractmethod
    def value(self, w: Any) -> Any:
        """r_j(w_j), convex and bounded below; inf where w_j is not allowed."""

    @abstractmethod
    def conjugate(self, v: Any) -> Any:
        """r_j*(v_j) = sup over w of v w - r_j(w); inf outside its domain."""

    @abstractmethod
    def prox(self, t: Any, step: Any) -> Any:
        """argmin over w of r_j(w) + (w - t)^2/(2 step)."""

    def derivative_of_conjugate(self, v: Any) -> Any:
        """The w that attains r_j*(v_j); for penalties with strong convexity."""
        raise NotImplementedError(
            f"{type(self).__name__} has no derivative_of_conjugate, which ERM.dual needs of a penalty; define it, or "
            "use ERM.primal."
        )

    def domain_of_conjugate(self) -> tuple[float, float]:
        """Ends of the interval on which r_j* is finite: the whole line, unless a subclass says otherwise."""
        return -np.inf, np.inf

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class SeparablePenalty:
    """What `coordwise.ERM` sees of a `CustomPenalty`: the interface of `coordwise.penalties.ElasticNet`."""

    l1, positive, quadratic = 0.0, False, False

    def __init__(self, custom: CustomPenalty) -> None:
        self.custom = custom
        self.l2 = check_number("strong_convexity", custom.strong_convexity, low=0)

    def __repr__(self) -> str:
        return repr(self.custom)

    def value(self, w: FloatArray) -> FloatArray:
        """r(w), summed over the first axis."""
        return np.asarray(self.custom.value(w), np.float64).sum(0)

    def conjugate(self, v: FloatArray) -> FloatArray:
        """r*(v), summed over the first axis."""
        return np.asarray(self.custom.conjugate(v), np.float64).sum(0)

    def conjugate_gradient(self, v: FloatArray) -> FloatArray:
        """The w that attains r*(v)."""
        return np.asarray(self.custom.derivative_of_conjugate(v), np.float64)

    def smoothed(self, l2: float) -> Any:
        """Not known."""
        raise ValueError("smoothing is for penalty='l1'; give a penalty of your own with its l2 part included.")

    def shrink(self, lowest: FloatArray, highest: FloatArray) -> FloatArray:
        """The largest factor <= 1 that takes -m into the domain of r* for all moments m in [lowest, highest]."""
        low, high = self.custom.domain_of_conjugate()
        inside = 1 - 1e-13  # so that the moments recomputed with other rounding still fit
        share = np.ones(np.shape(lowest))
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(-lowest > high, inside * high / -lowest, share)
            return np.where(-highest < low, np.minimum(share, inside * low / -highest), share)

    def terms(self) -> Any:
        """The terms of the coordinates of a primal."""
        from coordwise.custom_terms import PenaltyTerms

        return PenaltyTerms.of(self)

    def dual_terms(self, n: float) -> Any:
        """r*(-v/n) as a function of v."""
        from coordwise.custom_terms import ConjugateTerms

        return ConjugateTerms.of(self, n)
