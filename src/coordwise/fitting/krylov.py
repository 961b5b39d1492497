"""Ridge regression over Krylov spaces, both problems at once.

Conjugate gradients over the features minimise P over the vectors they have seen. On the way they compute r = b - Aw and
A'r, which is what D(y) needs at the dual variables y = -r; its value there is spoiled by weak penalties, |grad P|^2/(2
l2) above its minimum, and goes up and down. But D is quadratic: the best point between the best y so far and the new
one is known without another product. (This smoothing makes the residuals of a minimal residual method of
those of conjugate gradients: R. Weiss, Parameter-Free Iterative Linear Solvers, 1996.) So the gap P(w_k) + D(y_k) falls
from step to step and costs nothing, and nobody has to take steps over the samples: y is in the same space.

They are preconditioned by the square root of the diagonal. In texts few words have nearly all of the entries, and
conjugate gradients begin with these; the diagonal itself would make rare words as important as all others, of which
there are many, and the last digits slow.

Large singular values are dealt with one by one, so that weak penalties cost less than what the condition number
suggests. Steps over the samples need as many passes as S/n = mean sqrt(1 + |a_i|^2/(l2 W)) per e-fold.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from coordwise.fitting.model import Candidate, LinearModel
from coordwise.validation import FloatArray

__all__ = ["FIRST", "GRAM", "LOOK", "TOGETHER", "Run", "krylov", "worth_it", "worth_trying"]

LOOK = 25  # steps between certificates at most, which cost as much as one
FIRST, GRAM = 3, 30  # steps that tell whether it is worth going on; columns or rows in a dense Gram matrix per step
TOGETHER = 2.0  # outputs whose steps cost as much as those of one
FEW, EVEN, WORTH = 2.0, 8.0, 3.0  # see `worth_it`
ROOT = 0.5  # power of the diagonal that preconditions
NOTHING = 1e-32  # of the steepest slope: what rounding leaves of a gradient, squared
STALE = 2  # looks in a row at which the gap has not fallen: rounding allows no more


def krylov(
    model: LinearModel,
    tol: float,
    *,
    start: Candidate | None = None,
    steps: list[int] | None = None,
    first: int = LOOK,
    most: float = math.inf,
) -> Iterator[Candidate]:
    """Minimise P(w, c) for the squared loss and an l2 penalty, from `start` or from zeros, all outputs side by side.

    Yields the best candidate at the start, after `first` steps, and from then on after twice as many as the last time,
    at most `LOOK`: until every gap is <= tol * scale, `most` steps were taken, or rounding errors stop the gaps from
    falling. What was taken before each of them is appended to `steps`.
    """
    best = model.from_dual(np.zeros_like(model.b)) if start is None else model.recertified(start)
    yield best
    run = Run(model, start)
    w, y = best.w.copy(), best.y.copy()
    last, stale = np.full(model.outputs, np.inf), np.zeros(model.outputs, int)
    count, left = first, max(1, math.ceil(most)) if most < math.inf else math.inf
    while (active := best.gap > tol * model.scale).any() and left > 0:
        run.keep(active)
        taken = run.advance(0.9 * tol * model.scale[active], int(min(count, left)))
        count, left = min(2 * count, LOOK), left - taken
        if steps is not None:
            steps.append(taken)
        w[:, active], y[:, active] = run.weights, run.dual_variables
        found = model.beside(w, y)
        stale = np.where(found.gap < last, 0, stale + 1)
        last, best = found.gap, found.better(best)
        yield best
        if np.all(run.ended | (stale[active] >= STALE)):
            return


class Run:
    """min |Bw - f|^2/2 + shift |w|^2/2 for some outputs, shift = l2 W: B and f are A and b with rows weighted by
    sqrt(s), and centred if there is an intercept. Arrays have one row per output.

    The dual is min |x|^2/2 + |B'x|^2/(2 shift) - <f, x>, with y = -sqrt(s) x.
    """

    def __init__(self, model: LinearModel, start: Candidate | None = None) -> None:
        self.model = model
        self.which = np.arange(model.outputs)
        self.roots = None if model.weights is None else np.sqrt(model.weights)
        self.ones: FloatArray | None = None  # the direction that an intercept takes out
        if model.intercept:
            ones = np.ones(model.n) if self.roots is None else self.roots
            self.ones = ones / np.linalg.norm(ones)
        f = self._centred(self._weighted(np.ascontiguousarray(model.b.T)))
        self.size = np.linalg.norm(f, axis=1)
        self.size[self.size == 0] = 1.0
        self.f = f / self.size[:, None]  # |f| = 1, so that nothing overflows
        self.shift = shift = model.penalty.l2 * model.total
        squares = _squares(model)
        largest = max(shift, float(squares.max(initial=0.0)))
        self.inverse = np.maximum((squares + shift) / largest, 1e-30) ** -ROOT / largest
        outputs = model.outputs
        self.w, self.r = np.zeros((outputs, model.d)), self.f.copy()  # and f - Bw
        self.x, self.image = np.zeros((outputs, model.n)), np.zeros((outputs, model.d))  # and B'x
        self.primal, self.dual = _dots(self.f, self.f) / 2, np.zeros(outputs)
        self.direction = np.zeros_like(self.w)
        self.slope, self.steepest = np.zeros(outputs), np.zeros(outputs)  # along the direction, and the largest so far
        self.ended = np.zeros(outputs, bool)  # nothing is left
        if start is not None:
            self._begin(start.w.T / self.size[:, None], start.y.T / self.size[:, None])
        self._turn()

    def _begin(self, w: FloatArray, y: FloatArray) -> None:
        """Begin with these, unless zeros are better."""
        r = self.f - self._product(w)
        value = (_dots(r, r) + self.shift * _dots(w, w)) / 2
        better = value < self.primal
        self.w[better], self.r[better], self.primal[better] = w[better], r[better], value[better]
        x = -y
        if self.roots is not None:
            x = np.divide(x, self.roots, out=np.zeros_like(x), where=self.roots > 0)
        x = self._centred(x)
        self._mix(x, self._adjoint(x))

    def keep(self, active: NDArray[np.bool_]) -> None:
        """Leave out the outputs that are done; `active` has all of the model's."""
        kept = active[self.which]
        if kept.all():
            return
        for name in STATE:
            setattr(self, name, getattr(self, name)[kept])

    @property
    def weights(self) -> FloatArray:
        """The weights (d x K)."""
        return (self.size[:, None] * self.w).T

    @property
    def dual_variables(self) -> FloatArray:
        """The dual variables (n x K)."""
        return -(self.size[:, None] * self._weighted(self.x)).T

    @property
    def gap(self) -> FloatArray:
        """P + D of the present w and y."""
        return np.asarray(self.size**2 * (self.primal + self.dual) / self.model.total)

    @property
    def value(self) -> FloatArray:
        """P of the present w, without an l1 part."""
        return np.asarray(self.size**2 * self.primal / self.model.total)

    def advance(self, goal: FloatArray, most: int) -> int:
        """Some steps, until the gaps are <= goal, and how many they were."""
        for count in range(most):
            if self.ended.all():
                return count
            self.step()
            if np.all(self.ended | (self.gap <= goal)):
                return count + 1
        return most

    def step(self) -> None:
        """One step of conjugate gradients."""
        move = self._product(self.direction)
        curvature = _dots(move, move) + self.shift * _dots(self.direction, self.direction)
        bent = (curvature > 0) & (curvature < math.inf)
        self.ended |= ~bent
        length = np.where(bent, self.slope / np.where(bent, curvature, 1.0), 0.0)
        self.w += length[:, None] * self.direction
        self.r -= length[:, None] * move
        self.primal -= length * self.slope / 2
        self._turn()

    def _turn(self) -> None:
        """The next direction, and the dual variables that r leads to."""
        image = self._adjoint(self.r)
        self._mix(self.r, image)
        residual = image
        residual -= self.shift * self.w
        preconditioned = self.inverse * residual
        slope = _dots(residual, preconditioned)
        self.steepest = np.maximum(self.steepest, slope)
        self.ended |= ~(slope > NOTHING * self.steepest)
        slope[self.ended] = 0.0
        self.direction *= np.where(self.slope > 0, slope / np.where(self.slope > 0, self.slope, 1.0), 0.0)[:, None]
        self.direction += preconditioned
        self.slope = slope

    def _mix(self, x: FloatArray, image: FloatArray) -> None:
        """Go to the best point between the present x and another one, whose B'x is `image`.

        Beyond them there is next to nothing to gain, and once x is as good as it gets, rounding errors lead there:
        differences of two points are then of no direction, and B'x does not belong to x after a long step along them.
        """
        change, moved = x - self.x, image - self.image
        curvature = _dots(change, change) + _dots(moved, moved) / self.shift
        slope = _dots(change, self.x - self.f) + _dots(moved, self.image) / self.shift
        bent = (curvature > 0) & (curvature < math.inf)
        curvature = np.where(bent, curvature, 1.0)
        length = np.where(bent, np.clip(-slope / curvature, 0.0, 1.0), 0.0)
        self.x += length[:, None] * change
        self.image += length[:, None] * moved
        self.dual += length * (slope + length * curvature / 2)

    def _product(self, w: FloatArray) -> FloatArray:
        return self._centred(self._weighted(np.ascontiguousarray(self.model.problem.product(w.T).T)))

    def _adjoint(self, x: FloatArray) -> FloatArray:
        return np.ascontiguousarray(self.model.problem.adjoint(self._weighted(x).T).T)

    def _weighted(self, r: FloatArray) -> FloatArray:
        return r if self.roots is None else self.roots * r

    def _centred(self, r: FloatArray) -> FloatArray:
        return r if self.ones is None else r - (r @ self.ones)[:, None] * self.ones


STATE = ("which", "size", "f", "w", "r", "x", "image", "primal", "dual", "direction", "slope", "steepest", "ended")


def _dots(a: FloatArray, b: FloatArray) -> FloatArray:
    """Products of rows; for long ones this is faster than ``np.einsum``."""
    return np.array([u @ v for u, v in zip(a, b, strict=True)])


def _squares(model: LinearModel) -> FloatArray:
    """The diagonal of B'B, before centring."""
    if "squares" not in model.shared:
        rows = model.problem.rows("rows")
        model.shared["squares"] = rows.squares(model.weights, model.problem.threads)
    found: FloatArray = model.shared["squares"]
    return found


def _largest(model: LinearModel) -> float:
    """The square of the largest singular value of B, roughly and from below: one step of the power method."""
    if "sigma2" not in model.shared:

        def product(v: FloatArray) -> FloatArray:
            t = model.problem.product(v)
            return t - (model.s * t).sum() / model.total if model.intercept else t

        v = np.random.default_rng(0).random((model.d, 1))  # as that of counts: nowhere negative
        v = model.problem.adjoint(model.s * product(v))
        v /= max(float(np.abs(v).max(initial=0.0)), 1e-300)
        v /= max(float(np.linalg.norm(v)), 1e-300)
        model.shared["sigma2"] = float((model.s * product(v) ** 2).sum())
    return float(model.shared["sigma2"])


def worth_trying(model: LinearModel) -> bool:
    """Whether `FIRST` steps cost little beside a Gram matrix: one of dense data takes as long as min(n, d)/`GRAM`."""
    return not sp.issparse(model.A) and min(model.n, model.d) >= FIRST * GRAM


def worth_it(model: LinearModel) -> bool:
    """Whether Krylov spaces are expected to be faster than steps over the samples, for the squared loss and l2.

    They were found to be wherever there are no more features than samples. Else they lose where few samples have most
    of the norm: conjugate gradients take sqrt(sigma^2/(l2 W))/4 steps per e-fold at most, with sigma the largest
    singular value, and ever fewer than that as penalties become weak, steps over the samples S/n passes. They were
    ahead where the former is at most `EVEN` times the latter, or the latter at least `WORTH` times that quotient. With
    less than `FEW` passes it makes no difference worth an estimate of sigma.
    """
    if model.n >= model.d:
        return True
    passes = model.passes_over_samples()
    if passes < FEW:
        return False
    quotient = math.sqrt(_largest(model) / (model.penalty.l2 * model.total)) / 4 / passes
    return quotient <= EVEN or passes >= WORTH * quotient
