"""Whether the formulas of a loss or a penalty fit together, by numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from coordwise.custom import CustomPenalty
from coordwise.validation import FloatArray, check_array

__all__ = ["check"]

GRID = np.concatenate([np.linspace(-4.0, 4.0, 33), [-30.0, -0.01, 0.01, 30.0]])
STEPS = (0.1, 1.0, 10.0)  # of proximal steps
NEAR = 1e-5  # of differences
TOLERANCE = 1e-5  # of a comparison, as a share of what is compared and 1
Function = Callable[[FloatArray], FloatArray]


def check(loss: Any, targets: Any = None) -> None:
    """Compare the formulas of a loss or a penalty with its `value`, and say which of them is wrong.

    `value` has to be convex, and that of a loss not negative; `derivative` a subgradient (by finite differences);
    `conjugate` has to satisfy phi(t) + phi*(y) >= t y, with equality where y is a subgradient at t (Fenchel and Young),
    and to be finite on `domain` alone; `prox` has to be where phi(u) + (u - t)^2/(2 step) is least; and `smoothness`
    must be no less than what the derivatives show. Of a penalty, `derivative_of_conjugate` and `strong_convexity` are
    compared as well. What no number shows is not found.

    Parameters
    ----------
    loss : CustomLoss, Loss or CustomPenalty
    targets : array of shape (m,), optional
        Targets b to look at: -1 and 1 for classification, else -1.3, 0 and 2 by default.

    Raises
    ------
    ValueError
        With a sentence for each formula that is wrong, and the numbers that show it.

    Examples
    --------
    >>> import numpy as np, coordwise as cw
    >>> class Wrong(cw.penalties.CustomPenalty):
    ...     def value(self, w):
    ...         return np.abs(w)
    ...     def conjugate(self, v):
    ...         return np.where(np.abs(v) <= 1, 0.0, np.inf)
    ...     def prox(self, t, step):
    ...         return np.sign(t) * np.maximum(np.abs(t) - 1, 0.0)
    ...     def domain_of_conjugate(self):
    ...         return -1.0, 1.0
    >>> cw.losses.check(Wrong())  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: Wrong(): prox is wrong: at t=-30, step=0.1 it is -29, where value + (u - t)^2/(2 step) is 34, but ...
    """
    if isinstance(loss, type) or not (isinstance(loss, CustomPenalty) or hasattr(loss, "classification")):
        what = "the class itself; make an object of it" if isinstance(loss, type) else type(loss).__name__
        raise TypeError(f"loss must be a loss or a CustomPenalty, not {what}.")
    if isinstance(loss, CustomPenalty):
        wrong = [*_wrong_in_penalty(loss)]
    else:
        default = (-1.0, 1.0) if loss.classification else (-1.3, 0.0, 2.0)
        at = check_array("targets", default if targets is None else targets, (None,))
        wrong = [sentence for b in at for sentence in _wrong_in_loss(loss, float(b))]
    first: dict[str, str] = {}  # of every formula
    for sentence in filter(None, wrong):
        first.setdefault(sentence.partition(" is ")[0], sentence)
    if first:
        raise ValueError(f"{loss!r}: " + " ".join(f"{sentence}." for sentence in first.values()))


def _wrong_in_loss(loss: Any, b: float) -> Iterator[str]:
    """A sentence for what is wrong at a target, without its full stop; empty ones for what is not."""

    def of(function: str) -> Function:
        return lambda at: np.asarray(getattr(loss, function)(at, np.full(np.shape(at), b)), np.float64)

    def ending(sentence: str) -> str:
        return f"{sentence} (b={b:g})" if sentence else ""

    grid, value = _grid(b), of("value")
    if sentence := _not_convex("value", value, grid):
        yield ending(sentence)
        return
    values = value(grid)  # 0 within rounding counts as 0
    yield ending(_worst("value is negative, {:.4g} at t={:.4g}", -values, np.full(values.shape, 1e-9), values, grid))
    slopes = _slopes(value, grid)
    low, high = (float(np.asarray(end)) for end in loss.domain(b))
    yield ending(_wrong_derivative(of("derivative"), slopes))
    wrong = _wrong_conjugate(value, of("conjugate"), grid, slopes)
    yield ending(wrong or _wrong_domain("domain", of("conjugate"), low, high))
    if hasattr(loss, "prox"):  # losses of the library are given by that of their conjugate
        yield from (ending(_wrong_prox(value, partial(_at_target, loss, b), grid, step)) for step in STEPS)
    steepest = _steepest(slopes)
    if steepest > loss.smoothness * (1 + 1e-3) + 1e-6:
        yield ending(f"smoothness is {loss.smoothness:g}, but the derivative changes {steepest:.4g} times as fast as t")


def _at_target(loss: Any, b: float, t: float, step: float) -> Any:
    return loss.prox(t, step, b)


def _wrong_in_penalty(penalty: CustomPenalty) -> Iterator[str]:
    """The same for a penalty."""

    def of(function: str) -> Function:
        return lambda at: np.asarray(getattr(penalty, function)(at), np.float64)

    value, grid, mu = of("value"), _grid(0.0), penalty.strong_convexity
    grid = grid[np.isfinite(value(grid))]
    if sentence := _not_convex("value", value, grid):
        yield sentence
        return
    slopes = _slopes(value, grid)
    wrong = _wrong_conjugate(value, of("conjugate"), grid, slopes)
    yield wrong or _wrong_domain("domain_of_conjugate", of("conjugate"), *penalty.domain_of_conjugate())
    yield from (_wrong_prox(value, penalty.prox, grid, step) for step in STEPS)
    if mu > 0:
        name = f"strong_convexity is {mu:g}, but value - (strong_convexity/2) w^2"
        yield _not_convex(name, lambda w: value(w) - mu / 2 * w**2, grid)
        v = slopes[1]
        w = of("derivative_of_conjugate")(v)
        apart = np.abs(value(w) + of("conjugate")(v) - v * w)
        text = "derivative_of_conjugate is wrong: at v={:.4g} it is {:.4g}, which does not attain the conjugate there"
        yield _worst(text, apart, TOLERANCE * (1 + np.abs(v * w)), v, w)


def _grid(b: float) -> FloatArray:
    """Points with the places where losses have their kinks."""
    special = [b, b - 1, b + 1, -b, 1 / b if b else 0.0]
    return np.unique(np.concatenate([GRID, special]))


def _slopes(value: Function, grid: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Points t, a subgradient y at each, and the slopes to the left and to the right of it."""
    with np.errstate(invalid="ignore"):
        left, right = ((value(grid + d) - value(grid)) / d for d in (-NEAR, NEAR))
    finite = np.isfinite(left) & np.isfinite(right)
    left, right, t = left[finite], right[finite], grid[finite]
    return t, (left + right) / 2, left, right


def _allowed(slopes: tuple[FloatArray, ...]) -> FloatArray:
    """By how much a slope may be off: the curvature over the distance of the difference, and rounding."""
    _, y, left, right = slopes
    return TOLERANCE * (10 + np.abs(y)) + np.minimum(right - left, 10 * NEAR * (1 + np.abs(y)))


def _not_convex(name: str, value: Function, grid: FloatArray) -> str:
    points = np.sort(np.concatenate([grid, (grid[:-1] + grid[1:]) / 2]))  # kinks are among them, and what lies between
    before, at, after = points[:-2], points[1:-1], points[2:]
    share = (after - at) / (after - before)
    chord = share * value(before) + (1 - share) * value(after)
    return _worst(f"{name} is not convex near {{:.4g}}", value(at) - chord, 1e-9 * (1 + np.abs(chord)), at)


def _wrong_derivative(derivative: Function, slopes: tuple[FloatArray, ...]) -> str:
    t, _, left, right = slopes
    found, most = derivative(t), _allowed(slopes)
    off = np.maximum(left - found, found - right)
    text = "derivative is wrong: at t={:.4g} it is {:.6g}, but value has slopes {:.6g} and {:.6g} there"
    return _worst(text, off, most, t, found, left, right)


def _wrong_conjugate(value: Function, conjugate: Function, grid: FloatArray, slopes: tuple[FloatArray, ...]) -> str:
    t, y, left, right = slopes
    reached = t * y - value(t)  # the supremum, where y is a subgradient at t
    inside = (y >= left) & (y <= right)
    found = conjugate(y)
    rounding = TOLERANCE * (1 + np.abs(reached) + np.abs(t))
    with np.errstate(invalid="ignore"):
        # at the end of a bounded domain, a difference may be outside by its rounding: look a little further inside
        shifted = conjugate(y * (1 - 1e-6))
        found = np.where(np.isinf(found) & np.isfinite(shifted), shifted, found)
        off = np.where(inside, np.abs(found - reached), 0.0)
    text = "conjugate is wrong: at y={:.6g} it is {:.6g}, but t y - value is {:.6g} at t={:.4g}, its largest value"
    if sentence := _worst(text, off, rounding, y, found, reached, t):
        return sentence
    one, other = np.meshgrid(grid, y)
    short = one * other - value(one) - conjugate(other)
    text = "conjugate is wrong: at y={:.6g} it is {:.6g}, less than t y - value at t={:.4g}"
    return _worst(text, short, TOLERANCE * (1 + np.abs(one * other)), other, conjugate(other), one)


def _wrong_domain(name: str, conjugate: Function, low: float, high: float) -> str:
    def finite(y: float) -> bool:
        return bool(np.isfinite(conjugate(np.array([y]))[0]))

    width = max(high - low, 1e-6) if np.isfinite(high - low) else 1.0
    for end, beyond in ((low, low - 1e-3 * width), (high, high + 1e-3 * width)):
        if np.isfinite(end) and not finite(end):
            return f"{name} is wrong: conjugate is infinite at its end {end:g}"
        if np.isfinite(end) and finite(beyond):
            return f"{name} is wrong: conjugate is finite beyond its end {end:g}"
    for far in (-1e3, 1e3):
        if low < far < high and not finite(far):
            return f"{name} is wrong: conjugate is infinite at {far:g}, inside {low:g}..{high:g}"
    return ""


def _wrong_prox(value: Function, prox: Callable[[float, float], Any], grid: FloatArray, step: float) -> str:
    moves = np.concatenate([-np.logspace(1, -4, 26), np.logspace(-4, 1, 26)])
    for t in map(float, grid):
        at = float(prox(t, step))
        others = np.concatenate([[at], at + moves, [t], t + step * moves])
        reached = value(others) + (others - t) ** 2 / (2 * step)
        here, best = float(reached[0]), int(np.argmin(reached))
        if not here <= reached[best] + 1e-9 * (1 + abs(reached[best])):
            return (
                f"prox is wrong: at t={t:g}, step={step:g} it is {at:g}, where value + (u - t)^2/(2 step) is {here:g}, "
                f"but {reached[best]:g} at {others[best]:g}"
            )
    return ""


def _steepest(slopes: tuple[FloatArray, ...]) -> float:
    t, y, left, right = slopes
    between = np.max(np.diff(y) / np.diff(t), initial=0.0)
    return float(max(between, np.max((right - left) / NEAR * (right - left > 1e-3), initial=0.0)))


def _worst(text: str, off: FloatArray, most: FloatArray, *numbers: FloatArray) -> str:
    """The text with the numbers of the largest excess of `off` over `most`, or "" if there is none; nan is one."""
    excess = np.where(np.isnan(off), np.inf, off - most).ravel()
    worst = int(np.argmax(excess))
    return text.format(*(np.ravel(n)[worst] for n in numbers)) if excess[worst] > 0 else ""
