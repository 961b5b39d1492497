"""Checks of what users pass in: every refusal names the argument, what was wrong and what would work."""

from __future__ import annotations

import difflib
import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def check_choice(argument: str, value: object, choices: Iterable[str]) -> str:
    """Return `value` if it is one of `choices`; otherwise say which are, and which was probably meant."""
    names = sorted(choices)
    if isinstance(value, str):
        if value in names:
            return value
        near = difflib.get_close_matches(value.lower().replace("-", "_"), names, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"{argument}={value!r} is not known.{hint} Known: {', '.join(names)}.")
    raise TypeError(
        f"{argument} must be one of {', '.join(names)} or an object of that kind, not {type(value).__name__}."
    )


def check_number(
    argument: str,
    value: object,
    *,
    low: float = -np.inf,
    high: float = np.inf,
    strictly: bool = False,
    infinite: bool = False,
) -> float:
    """Return `value` as a float inside [low, high] (low excluded if `strictly`; inf allowed if `infinite`)."""
    if not isinstance(value, numbers.Real) or isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{argument} must be a real number, not {type(value).__name__}.")
    try:
        number = float(value)
    except OverflowError:  # an integer beyond the range of floats
        number = np.inf if value > 0 else -np.inf  # type: ignore[operator]
    allowed = f"{'>' if strictly else '>='} {low:g}" if np.isfinite(low) else "finite"
    allowed += f" and <= {high:g}" if np.isfinite(high) else ""
    if np.isnan(number) or (np.isinf(number) and not infinite):
        raise ValueError(f"{argument}={value} is not a finite number; it must be {allowed}.")
    if number < low or number > high or (strictly and number == low):
        raise ValueError(f"{argument}={value} is out of range; it must be {allowed}.")
    return number


def check_array(
    argument: str, value: object, shape: tuple[int | None, ...] | None = None, *, finite: bool = True
) -> FloatArray:
    """Return `value` as a C-contiguous float64 array (no copy if it is one) of the given shape (None: any length)."""
    try:
        given = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{argument} must be an array of real numbers ({error}).") from None
    if given.dtype.kind not in "biuf":  # strings and complex numbers would convert, and say nothing
        found = type(value).__name__ if given.ndim == 0 else f"dtype {given.dtype}"
        raise TypeError(f"{argument} must be an array of real numbers, not {found}; {remedy(given.dtype)}")
    check_unmasked(argument, value)
    with np.errstate(over="ignore"):  # a long double too large becomes infinite, which is refused below
        array: FloatArray = np.ascontiguousarray(given, dtype=np.float64).reshape(given.shape)
    if shape is not None:
        fits = array.ndim == len(shape) and all(s is None or s == a for s, a in zip(shape, array.shape, strict=True))
        if not fits:
            wanted = "(" + ", ".join("any" if s is None else str(s) for s in shape) + (",)" if len(shape) == 1 else ")")
            raise ValueError(f"{argument} has shape {array.shape}; it must have shape {wanted}.")
    if finite and not np.all(np.isfinite(array)):
        where: Any = np.argwhere(~np.isfinite(array))[0].tolist()
        raise ValueError(f"{argument} holds NaN or infinity (first at index {where}); remove or impute such entries.")
    return array


def remedy(dtype: np.dtype[Any]) -> str:
    """What to do with entries that are no real numbers."""
    if dtype.kind == "c":
        return "pass the real and the imaginary parts as separate real rows or columns, or the part that is meant."
    return "convert it to float64."


SMALLEST, LARGEST = 1e-40, 1e40  # squares of gradients, with the fourth power of A, stay within floating point


def check_range(argument: str, largest: float | FloatArray, *, low: float = SMALLEST, high: float = LARGEST) -> None:
    """Refuse numbers (an array, or the largest modulus of one) that are 0 or infinite in products of a few of them."""
    most = max(float(np.max(largest)), -float(np.min(largest))) if np.size(largest) else 0.0
    if most > 0 and not low <= most <= high:
        raise ValueError(
            f"{argument} has entries of size {most:.3g}, products of which leave the range of floating point; rescale "
            f"it so that the largest is between {low:g} and {high:g} (divide it by {most:.1g}, say)."
        )


def check_count(argument: str, value: object, *, low: int = 0) -> int:
    """Return `value` as an int >= low; floats must be whole."""
    number = check_number(argument, value, low=low)
    if number != int(number):
        raise ValueError(f"{argument}={value} is not a whole number; it must be an integer >= {low}.")
    return int(number)


def check_callable(argument: str, value: object, *, optional: bool = True) -> None:
    """Refuse what cannot be called; None passes if `optional`."""
    if not callable(value) and not (optional and value is None):
        raise TypeError(f"{argument} must be callable, not {type(value).__name__}.")


def check_unmasked(argument: str, value: object) -> None:
    """A masked array whose mask hides something is refused: NumPy would go on with what is under the mask."""
    if np.ma.is_masked(value):
        raise ValueError(f"{argument} has masked entries; fill or remove them first.")


def check_labels(argument: str, labels: FloatArray, loss: str) -> None:
    """Classification losses take labels +1 and -1."""
    if not np.all(np.abs(labels) == 1):
        found = np.unique(labels)[:5]
        raise ValueError(
            f"{argument} holds labels other than -1 and +1 (found {', '.join(f'{v:g}' for v in found)}), which "
            f"loss={loss!r} needs; map your two classes to -1.0 and 1.0, or several to one column each (shape (n, K))."
        )


def seed_of(random_state: object) -> int:
    """A 64-bit seed from an int, None (fresh entropy), or a NumPy generator (which advances)."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(0, 2**64, dtype=np.uint64))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(0, 2**63, dtype=np.int64))
    if isinstance(random_state, numbers.Integral) and not isinstance(random_state, (bool, np.bool_)):
        if int(random_state) < 0:
            raise ValueError(f"random_state={random_state} is negative; give an integer >= 0, a Generator or None.")
        return int(random_state) % 2**64
    raise TypeError(
        f"random_state must be an int, numpy.random.Generator, RandomState or None, not {type(random_state).__name__}."
    )
