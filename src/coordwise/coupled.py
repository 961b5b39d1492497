"""A loss that couples the outputs: softmax, for several classes at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import softmax

from coordwise.fitting.softmax import dual_point, entropy, losses
from coordwise.kernels import Shape
from coordwise.losses import Loss
from coordwise.validation import FloatArray

__all__ = ["OneHot", "Softmax", "SoftmaxTerms"]


@dataclass(frozen=True)
class Softmax(Loss):
    """phi(t; b) = log sum_k exp(t_k) - <b, t>, b being 1 at the class of the sample and 0 elsewhere.

    phi*(y) = sum_k q_k log q_k with q = y + b in the simplex, inf elsewhere. Its Hessian diag(q) - qq', q = softmax(t),
    is at most 1/2.
    """

    name: ClassVar[str] = "softmax"
    classification: ClassVar[bool] = True
    coupled: ClassVar[bool] = True

    @property
    def shape(self) -> Shape:
        """None: the conjugate is no sum over outputs."""
        raise TypeError("the softmax loss couples the outputs; it is for coordwise.oracle, not for coordinate steps.")

    @property
    def gamma(self) -> float:
        """See `Loss.gamma`."""
        return 2.0

    def terms(self, scale: float, b: FloatArray, weights: FloatArray | None, threads: int) -> Any:
        """scale * s_i phi(.; b_i) of many samples."""
        s = np.full(len(b), scale) if weights is None else scale * weights
        return SoftmaxTerms(b, s)


@dataclass(frozen=True)
class SoftmaxTerms:
    """sum_i s_i phi(t_i; b_i), and the conjugates; sums have one entry for all outputs."""

    b: FloatArray
    s: FloatArray

    def value(self, t: FloatArray) -> FloatArray:
        """Their sum."""
        return np.array([self.s @ losses(t, self.b)])

    def derivative(self, t: FloatArray) -> FloatArray:
        """s_i (q_i - b_i)."""
        return dual_point(self.probabilities(t), self.s, self.b, balanced=False)

    def second_derivative(self, t: FloatArray) -> FloatArray:
        """The diagonals s_i q_i (1 - q_i) of the Hessians."""
        q = self.probabilities(t)
        return self.s[:, None] * q * (1 - q)

    def conjugate(self, y: FloatArray) -> FloatArray:
        """The sum of the conjugates."""
        return np.array([entropy(y, self.s, self.b)])

    def probabilities(self, t: FloatArray) -> FloatArray:
        """q_i = softmax(t_i)."""
        return np.asarray(softmax(t, axis=1))

    def bend(self, q: FloatArray, u: FloatArray) -> FloatArray:
        """s_i (diag(q_i) - q_i q_i') u_i."""
        return self.s[:, None] * q * (u - np.sum(q * u, axis=1, keepdims=True))


@dataclass(frozen=True)
class OneHot:
    """Targets of the softmax loss: y of shape (m,) -> (m, K), 1 at the place of y_i among the `classes`, ascending."""

    classes: tuple[Any, ...]

    def __call__(self, y: Any) -> FloatArray:
        """The targets."""
        y, classes = np.ravel(y), np.asarray(self.classes)
        places = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
        if np.any(classes[places] != y):
            unknown = y[classes[places] != y][0]
            raise ValueError(f"y has the class {unknown}, which is not among the classes {self.classes}.")
        return np.eye(len(classes))[places]
