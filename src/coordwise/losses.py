"""Losses phi(t; b): convex functions of a prediction t and a target b.

A loss is written down once, by the shape of its conjugate (`Shape`); value, derivative, conjugate, domain, proximal
step and constants follow from that shape, here in NumPy and in the compiled core alike. With a sample weight s the loss
is s phi(t; b), whose conjugate is s phi*(y/s; b).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from coordwise.checking import check
from coordwise.custom import CustomLoss
from coordwise.kernels import Shape, Terms
from coordwise.validation import FloatArray, check_choice, check_number

__all__ = [
    "L2L1",
    "LOSSES",
    "Absolute",
    "CustomLoss",
    "EpsilonInsensitive",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "Quantile",
    "SmoothHinge",
    "Squared",
    "SquaredEpsilonInsensitive",
    "SquaredHinge",
    "check",
    "get_loss",
]


@dataclass(frozen=True)
class Loss:
    """Base of all losses; subclasses give `name`, `shape` and, if labels must be -1 or +1, `classification`.

    A loss is `coupled` if it is one function of the predictions of all outputs (`coordwise.coupled`).
    """

    name: ClassVar[str] = ""
    classification: ClassVar[bool] = False
    coupled: ClassVar[bool] = False

    @property
    def shape(self) -> Shape:
        """The conjugate phi*(y; b), with the target b as centre."""
        raise NotImplementedError

    @property
    def gamma(self) -> float:
        """Strong convexity of phi*; phi is (1/gamma)-smooth. 0 for losses with a kink."""
        return self.shape.curvature

    @property
    def smoothness(self) -> float:
        """Lipschitz constant of phi' (inf for losses with a kink)."""
        return 1 / self.gamma if self.gamma > 0 else np.inf

    @property
    def strong_convexity(self) -> float:
        """Strong convexity of phi (0 if none)."""
        s = self.shape
        return 1 / s.quad if s.quad > 0 and s.differentiable else 0.0

    def terms(self, scale: float, b: FloatArray, weights: FloatArray | None, threads: int) -> Terms:
        """scale * s_i phi(.; b_i) with their conjugates, of many samples at once."""
        return Terms(self.shape, scale, b, weights, threads)

    def domain(self, b: ArrayLike, weight: ArrayLike = 1.0) -> tuple[FloatArray, FloatArray]:
        """Ends of the interval on which the conjugate is finite."""
        return self.shape.domain(b, weight)

    def value(self, t: ArrayLike, b: ArrayLike, weight: ArrayLike = 1.0) -> FloatArray:
        """weight * phi(t; b)."""
        t, b, weight = _arrays(t, b, weight)
        s = self.shape
        if s.logistic:
            return weight * np.logaddexp(0, -b * t)
        y = self.derivative(t, b)
        r = np.where(y == 0, 0.0, t - b)
        return weight * (r * y - s.kink * np.abs(y) - s.quad / 2 * np.maximum(np.abs(y) - s.dead, 0) ** 2)

    def derivative(self, t: ArrayLike, b: ArrayLike, weight: ArrayLike = 1.0) -> FloatArray:
        """weight * phi'(t; b); at a kink, the subgradient of smallest modulus."""
        t, b, weight = _arrays(t, b, weight)
        s = self.shape
        if s.logistic:
            return -b * weight * _sigmoid(-b * t)
        r = t - b
        excess = np.abs(r) - s.kink
        with np.errstate(divide="ignore", invalid="ignore"):
            size = np.where(excess > 0, s.dead + excess / s.quad if s.quad > 0 else np.inf, 0.0)
        return weight * np.clip(np.copysign(size, r), *self.domain(b))

    def second_derivative(self, t: ArrayLike, b: ArrayLike, weight: ArrayLike = 1.0) -> FloatArray:
        """weight * phi''(t; b) where phi is twice differentiable; where phi' bends, the value of one side."""
        t, b, weight = _arrays(t, b, weight)
        s = self.shape
        if s.logistic:
            p = _sigmoid(-b * t)
            return weight * p * (1 - p)
        y = self.derivative(t, b)
        low, high = self.domain(b)
        bends = (np.abs(t - b) > s.kink) & (y > low) & (y < high)
        return weight * np.where(bends, 1 / s.quad if s.quad > 0 else 0.0, 0.0)

    def conjugate(self, y: ArrayLike, b: ArrayLike, weight: ArrayLike = 1.0) -> FloatArray:
        """The conjugate of weight * phi(.; b) at y; inf outside its domain."""
        y, b, weight = _arrays(y, b, weight)
        s = self.shape
        low, high = self.domain(b, weight)
        inside = (y >= low) & (y <= high)
        with np.errstate(divide="ignore", invalid="ignore"):
            if s.logistic:
                a = np.clip(np.where(weight > 0, -b * y / weight, 0.0), 0, 1)
                value = weight * (_xlogx(a) + np.where(a < 1, (1 - a) * np.log1p(-a), 0.0))
            else:
                over = np.maximum(np.abs(y) - weight * s.dead, 0)
                curved = np.where(weight > 0, s.quad / 2 * over**2 / weight, 0.0)
                value = b * y + s.kink * np.abs(y) + curved
        return np.where(inside, value, np.inf)

    def prox_conjugate(self, z: ArrayLike, step: ArrayLike, b: ArrayLike, weight: ArrayLike = 1.0) -> FloatArray:
        """argmin over y of step * (weight phi)^*(y; b) + (y - z)^2 / 2."""
        z, step, b, weight = np.broadcast_arrays(*(np.asarray(v, float) for v in (z, step, b, weight)))
        if not (np.all(step > 0) and np.all(weight >= 0)):
            raise ValueError("step must be positive and weight non-negative.")
        out = np.empty(z.shape)
        for at in np.ndindex(z.shape):
            terms = Terms(self.shape, float(step[at]), np.array([[b[at]]]), np.array([weight[at]]))
            out[at] = terms.prox(0, 0, float(z[at]), 1.0)
        return out


@dataclass(frozen=True)
class Squared(Loss):
    """phi(t; b) = (t - b)^2 / 2, phi*(y) = y^2/2 + b y."""

    name: ClassVar[str] = "squared"

    @property
    def shape(self) -> Shape:
        """See `Loss.shape`."""
        return Shape(quad=1.0)


@dataclass(frozen=True)
class L2L1(Loss):
    """phi(t; b) = (t - b)^2 / 2 + |t - b| (section 7.2), phi*(y) = b y + max(|y| - 1, 0)^2 / 2."""

    name: ClassVar[str] = "l2l1"

    @property
    def shape(self) -> Shape:
        """See `Loss.shape`."""
        return Shape(quad=1.0, dead=1.0)


@dataclass(frozen=True)
class Huber(Loss):
    """phi = r^2/2 for |r| <= delta, else delta |r| - delta^2/2, r = t - b; phi*(y) = y^2/2 + b y on |y| <= delta."""

    name: ClassVar[str] = "huber"
    delta: float = 1.35

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", check_number("delta", self.delta, low=0, strictly=True))

    @property
    def shape(self) -> Shape:
        """See `Loss.shape`."""
        return Shape(quad=1.0, lower=-self.delta, upper=self.delta)


@dataclass(frozen=True)
class Absolute(Loss):
    """phi(t; b) = |t - b|, phi*(y) = b y on |y| <= 1."""

    name: ClassVar[str] = "absolute"

    @property
    def shape(self) -> Shape:
        """See `Loss.shape`."""
        return Shape(lower=-1.0, upper=1.0)


@dataclass(frozen=True)
class Quantile(Loss):
    """phi(t; b) = q max(b - t, 0) + (1 - q) max(t - b, 0) for the quantile q, phi*(y) = b y on -q <= y <= 1 - q."""

    name: ClassVar[str] = "quantile"
    quantile: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "quantile", check_number("quantile", self.quantile, low=0, high=1))

    @property
    def shape(self) -> Shape:
        """See `Loss.shape`."""
        return Shape(lower=-self.quantile, upper=1 - self.quantile)


@dataclass(frozen=True)
class EpsilonInsensitive(Loss):
    """phi(t; b) = max(|t - b| - epsilon, 0), phi*(y) = b y + epsilon |y| on |y| <= 1."""

    name: ClassVar[str] = "epsilon_insensitive"
    epsilon: float = 0.1

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_number("epsilon", self.epsilon, low=0))

    @property
    def shape(self) -> Shape:
        """See `Loss.shape`."""
        return Shape(kink=self.epsilon, lower=-1.0, upper=1.0)


@dataclass(frozen=True)
class SquaredEpsilonInsensitive(Loss):
    """phi(t; b) = max(|t - b| - epsilon, 0)^2 / 2, phi*(y) = b y + epsilon |y| + y^2/2."""

    name: ClassVar[str] = "squared_epsilon_insensitive"
    epsilon: float = 0.1

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_number("epsilon", self.epsilon, low=0))

    @property
    def shape(self) -> Shape:
        """See `Loss.shape`."""
        return Shape(quad=1.0, kink=self.epsilon)


@dataclass(frozen=True)
class Logistic(Loss):
    """phi(t; b) = log(1 + exp(-b t)), b = -1 or +1; phi*(y) = a log a + (1-a) log(1-a) with a = -b y in [0, 1]."""

    name: ClassVar[str] = "logistic"
    classification: ClassVar[bool] = True

    @property
    def shape(self) -> Shape:
        """See `Loss.shape`."""
        return Shape(logistic=True)


@dataclass(frozen=True)
class SquaredHinge(Loss):
    """phi(t; b) = max(1 - b t, 0)^2 / 2, b = -1 or +1; phi*(y) = b y + y^2/2 on b y <= 0."""

    name: ClassVar[str] = "squared_hinge"
    classification: ClassVar[bool] = True

    @property
    def shape(self) -> Shape:
        """See `Loss.shape`."""
        return Shape(quad=1.0, upper=0.0, mirrored=True)


@dataclass(frozen=True)
class SmoothHinge(Loss):
    """The hinge with its corner rounded over a width delta; phi*(y) = b y + (delta/2) y^2 on -1 <= b y <= 0.

    phi(t; b) = 0 for b t >= 1, (1 - b t)^2 / (2 delta) for 1 - delta <= b t <= 1, and 1 - b t - delta/2 below.
    """

    name: ClassVar[str] = "smooth_hinge"
    classification: ClassVar[bool] = True
    delta: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", check_number("delta", self.delta, low=0, strictly=True))

    @property
    def shape(self) -> Shape:
        """See `Loss.shape`."""
        return Shape(quad=self.delta, lower=-1.0, upper=0.0, mirrored=True)


@dataclass(frozen=True)
class Hinge(Loss):
    """phi(t; b) = max(1 - b t, 0), b = -1 or +1; phi*(y) = b y on -1 <= b y <= 0."""

    name: ClassVar[str] = "hinge"
    classification: ClassVar[bool] = True

    @property
    def shape(self) -> Shape:
        """See `Loss.shape`."""
        return Shape(lower=-1.0, upper=0.0, mirrored=True)


LOSSES: dict[str, type[Loss]] = {
    loss.name: loss
    for loss in (
        Squared,
        L2L1,
        Huber,
        Absolute,
        Quantile,
        Logistic,
        SquaredHinge,
        SmoothHinge,
        Hinge,
        EpsilonInsensitive,
        SquaredEpsilonInsensitive,
    )
}


def get_loss(loss: Any) -> Any:
    """A loss by name with its default parameters, or the loss itself."""
    if isinstance(loss, type) and issubclass(loss, (Loss, CustomLoss)):
        raise TypeError(f"loss is the class {loss.__name__}; make a loss of it: {loss.__name__}().")
    return loss if isinstance(loss, (Loss, CustomLoss)) else LOSSES[check_choice("loss", loss, LOSSES)]()


def _arrays(*values: Any) -> tuple[FloatArray, ...]:
    return tuple(np.asarray(v, dtype=np.float64) for v in values)


def _sigmoid(t: FloatArray) -> FloatArray:
    e = np.exp(-np.abs(t))
    return np.where(t >= 0, 1 / (1 + e), e / (1 + e))


def _xlogx(a: FloatArray) -> FloatArray:
    return np.where(a > 0, a * np.log(np.where(a > 0, a, 1.0)), 0.0)
