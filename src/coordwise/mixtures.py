"""A loss per sample: mixtures of the losses that the library has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from coordwise.kernels import Terms
from coordwise.losses import Loss, get_loss
from coordwise.validation import FloatArray, check_labels
from coordwise.varied import MixedTerms, Summary

__all__ = ["Mixture"]

MOST = 256  # losses


@dataclass(frozen=True, eq=False)
class Mixture(Loss):
    """phi_i = losses[codes[i]]: what `coordwise.ERM` makes of a list of losses and `loss_codes`.

    The pointwise functions take arrays whose first axis is that of the samples.

    Parameters
    ----------
    losses : sequence of Loss or str
        At most 256.
    codes : array of int, shape (n,)
        Which of the losses each sample has.
    """

    name: ClassVar[str] = "mixture"
    losses: tuple[Loss, ...]
    codes: NDArray[np.uint8] = field(repr=False)

    def __init__(self, losses: Sequence[Loss | str], codes: Any, n: int | None = None) -> None:
        found = tuple(get_loss(loss) for loss in losses)
        for loss in found:
            if not isinstance(loss, Loss) or isinstance(loss, Mixture):
                raise TypeError(f"loss holds {type(loss).__name__}; several losses must be losses of coordwise.losses.")
        if not 1 <= len(found) <= MOST:
            raise ValueError(f"loss is a list of {len(found)} losses; give between 1 and {MOST}.")
        object.__setattr__(self, "losses", found)
        object.__setattr__(self, "codes", _codes(codes, len(found), n))

    @property
    def shape(self) -> Summary:
        """What the conjugates have in common."""
        return Summary.of(tuple(self.losses[code].shape for code in np.unique(self.codes)))

    @property
    def strong_convexity(self) -> float:
        """See `Loss.strong_convexity`."""
        return min(self.losses[code].strong_convexity for code in np.unique(self.codes))

    def check_labels(self, argument: str, b: FloatArray) -> None:
        """Rows of classification losses need labels -1 and +1."""
        for code, loss in enumerate(self.losses):
            if loss.classification:
                check_labels(argument, b[self.codes == code], loss.name)

    def terms(self, scale: float, b: FloatArray, weights: FloatArray | None, threads: int) -> Terms:
        """See `Loss.terms`."""
        shapes = tuple(loss.shape for loss in self.losses)
        return MixedTerms(self.shape, scale, b, weights, threads, shapes=shapes, codes=self.codes)

    def _each(self, function: str, *arguments: ArrayLike) -> FloatArray:
        n = len(self.codes)
        arrays = [np.asarray(a, np.float64) for a in arguments]
        like = np.broadcast_shapes(*(a.shape for a in arrays), (n,) if max(a.ndim for a in arrays) < 2 else ())
        arrays = [np.broadcast_to(a, like) for a in arrays]
        out = np.empty(like)
        for code, loss in enumerate(self.losses):
            which = self.codes == code
            if which.any():
                out[which] = getattr(loss, function)(*(a[which] for a in arrays))
        return out

    def value(self, t: ArrayLike, b: ArrayLike, weight: ArrayLike = 1.0) -> FloatArray:
        """See `Loss.value`."""
        return self._each("value", t, b, weight)

    def derivative(self, t: ArrayLike, b: ArrayLike, weight: ArrayLike = 1.0) -> FloatArray:
        """See `Loss.derivative`."""
        return self._each("derivative", t, b, weight)

    def second_derivative(self, t: ArrayLike, b: ArrayLike, weight: ArrayLike = 1.0) -> FloatArray:
        """See `Loss.second_derivative`."""
        return self._each("second_derivative", t, b, weight)

    def conjugate(self, y: ArrayLike, b: ArrayLike, weight: ArrayLike = 1.0) -> FloatArray:
        """See `Loss.conjugate`."""
        return self._each("conjugate", y, b, weight)

    def prox_conjugate(self, z: ArrayLike, step: ArrayLike, b: ArrayLike, weight: ArrayLike = 1.0) -> FloatArray:
        """See `Loss.prox_conjugate`."""
        return self._each("prox_conjugate", z, step, b, weight)

    def domain(self, b: ArrayLike, weight: ArrayLike = 1.0) -> tuple[FloatArray, FloatArray]:
        """See `Loss.domain`."""
        b, weight = np.broadcast_arrays(np.asarray(b, np.float64), np.asarray(weight, np.float64))
        b = np.broadcast_to(b, (len(self.codes), *b.shape[1:]))
        weight = np.broadcast_to(weight, b.shape)
        low, high = np.empty(b.shape), np.empty(b.shape)
        for code, loss in enumerate(self.losses):
            which = self.codes == code
            low[which], high[which] = loss.domain(b[which], weight[which])
        return low, high


def _codes(codes: Any, most: int, n: int | None) -> NDArray[np.uint8]:
    if codes is None:
        raise ValueError("loss is a list, so loss_codes must say which of its losses each row has: integers from 0 on.")
    array = np.asarray(codes)
    if array.dtype.kind not in "iu":
        raise TypeError(f"loss_codes must be an array of integers, not dtype {array.dtype}.")
    if array.ndim != 1 or (n is not None and len(array) != n):
        raise ValueError(f"loss_codes has shape {array.shape}; it must have shape ({'any' if n is None else n},).")
    if len(array) == 0 or array.min() < 0 or array.max() >= most:
        found = f"{array.min()} to {array.max()}" if len(array) else "nothing"
        raise ValueError(f"loss_codes holds {found}; with {most} losses it must hold integers from 0 to {most - 1}.")
    return array.astype(np.uint8)
