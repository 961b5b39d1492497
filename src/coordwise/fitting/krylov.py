"""Ridge regression over Krylov spaces, both problems at once.

Conjugate gradients over the features minimise P over the vectors they have seen, and over the samples D. Each takes a
product with A and one with A' per step; where both go ahead these are computed side by side, which costs a third more
than one. The values are known on the way, so that the gap P(w_k) + D(y_k) costs nothing, and neither of the two is
spoiled by the other, as w would be if it were computed from y. Steps are taken where the gap falls: if one of the
problems is about to be done, or does not move yet, the other goes on alone.

Both are preconditioned by square roots of diagonals. In texts few words have nearly all of the entries, and conjugate
gradients begin with these; diagonals themselves would make rare words as important as all others, of which there are
many, and the last digits slow.

Large singular values are dealt with one by one, so that weak penalties cost less than what the condition number
suggests. Steps over the samples need as many passes as S/n = mean sqrt(1 + |a_i|^2/(l2 W)) per e-fold.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator

import numpy as np

from coordwise.fitting.model import Candidate, LinearModel
from coordwise.validation import FloatArray

__all__ = ["krylov", "worth_it"]

LOOK = 25  # steps between certificates, which cost as much as one
WEAK, WORTH = 8.0, 3.0  # see `worth_it`
POWER = 6  # steps of the power method
ROOT = 0.5  # power of the diagonals that precondition
RECENT = 5  # steps
SLOW = 0.1  # of the gain per step of the other problem: not worth a step


def krylov(
    model: LinearModel, tol: float, *, start: Candidate | None = None, steps: list[int] | None = None
) -> Iterator[Candidate]:
    """Minimise P(w, c), output by output, for the squared loss and an l2 penalty.

    Yields the best candidate at the start and every `LOOK` steps, until every gap is <= tol * scale, or until rounding
    errors stop the gaps from falling. What was taken before each of them, by the output that took most, is appended to
    `steps`.
    """
    best = model.from_dual(np.zeros_like(model.b)) if start is None else model.recertified(start)
    yield best
    outputs = [_Output(model, k) for k in range(model.outputs)]
    while (active := best.gap > tol * model.scale).any():
        before = best.gap
        taken = [outputs[k].advance(0.9 * tol * float(model.scale[k])) for k in np.flatnonzero(active)]
        if steps is not None:
            steps.append(max(taken))
        w = np.stack([output.w for output in outputs], axis=1)
        y = np.stack([output.dual for output in outputs], axis=1)
        t = model.scores(w, np.zeros(model.outputs))
        c = model.best_intercept(t)
        best = model.paired(w, c, t + c, y).better(best)
        ended = [output.ended or not best.gap[k] < before[k] for k, output in enumerate(outputs)]
        yield best
        if all(end for end, more in zip(ended, active, strict=True) if more):
            return


class _Output:
    """min |Bw - f|^2/2 + shift |w|^2/2 for one output, shift = l2 W: B and f are A and b with rows weighted by sqrt(s),
    and centred if there is an intercept.
    """

    def __init__(self, model: LinearModel, k: int) -> None:
        self.model = model
        self.roots = None if model.weights is None else np.sqrt(model.weights)
        self.ones: FloatArray | None = None  # the direction that an intercept takes out
        if model.intercept:
            ones = np.ones(model.n) if self.roots is None else self.roots
            self.ones = ones / np.linalg.norm(ones)
        shift = model.penalty.l2 * model.total
        rows = model.problem.rows("rows")
        f = np.ascontiguousarray(self._centred(self._weighted(model.b[:, k : k + 1]))[:, 0])
        norms2 = rows.norms2() if model.weights is None else rows.norms2() * model.weights
        if model.n > model.d:  # most eigenvalues of 1 + BB'/shift are 1, which should not be spread
            norms2[:] = 0
        self.features = _Features(f, rows.squares(model.weights), shift)
        self.samples = _Samples(f, norms2, shift, self.ones)
        self._turn(self.features, self.samples)

    @property
    def w(self) -> FloatArray:
        """The weights."""
        return self.features.x

    @property
    def dual(self) -> FloatArray:
        """The dual variables."""
        return -self._weighted(self.samples.x[:, None])[:, 0]

    @property
    def gap(self) -> float:
        """P + D of the present w and y."""
        return (self.features.value + self.samples.value) / self.model.total

    @property
    def ended(self) -> bool:
        """Whether nothing is left."""
        return self.features.ended and self.samples.ended

    def advance(self, goal: float) -> int:
        """Some steps, until the gap is <= goal, and how many they were."""
        for count in range(LOOK):
            if self.ended:
                return count
            self._step(*self._worth())
            if self.gap <= goal:
                return count + 1
        return LOOK

    def _worth(self) -> list[_Side]:
        """Where the next step is taken."""
        sides = [side for side in (self.features, self.samples) if not side.ended]
        most = max(side.pace for side in sides)
        return [side for side in sides if side.pace >= SLOW * most]

    def _step(self, *sides: _Side) -> None:
        moves = self._product(*(side.ahead for side in sides))
        for j, side in enumerate(sides):
            side.step(moves[:, j])
        self._turn(*sides)

    def _turn(self, *sides: _Side) -> None:
        products = self.model.problem.adjoint(self._weighted(np.stack([side.back for side in sides], axis=1)))
        for j, side in enumerate(sides):
            side.turn(products[:, j])

    def _product(self, *vectors: FloatArray) -> FloatArray:
        return self._centred(self._weighted(self.model.problem.product(np.stack(vectors, axis=1))))

    def _weighted(self, r: FloatArray) -> FloatArray:
        return r if self.roots is None else self.roots[:, None] * r

    def _centred(self, r: FloatArray) -> FloatArray:
        return r if self.ones is None else r - self.ones[:, None] * (self.ones @ r)


class _Side:
    """Preconditioned conjugate gradients for one quadratic function: a point, its value and a direction.

    A step asks for B times `ahead`, and a turn to the next direction for B' times `back`.
    """

    ahead: FloatArray
    back: FloatArray

    def __init__(self, x: FloatArray, value: float) -> None:
        self.x, self.value = x, value
        self.direction = np.zeros_like(x)
        self.slope = 0.0  # along the direction
        self.ended = False  # nothing is left
        self.gains: deque[float] = deque(maxlen=RECENT)

    @property
    def pace(self) -> float:
        """What recent steps gained, each; infinity if there were too few."""
        return sum(self.gains) / RECENT if len(self.gains) == RECENT else math.inf

    def step(self, move: FloatArray) -> None:
        """A step along the direction, B times `ahead` being `move`."""
        raise NotImplementedError

    def turn(self, product: FloatArray) -> None:
        """The next direction, B' times `back` being `product`."""
        raise NotImplementedError

    def _length(self, curvature: float) -> float:
        """The length of a step that was taken along a direction of this curvature."""
        if not curvature > 0:
            self.ended = True
            return 0.0
        length = self.slope / curvature
        self.x += length * self.direction
        self.gains.append(length * self.slope / 2)
        self.value -= self.gains[-1]
        return length

    def _towards(self, residual: FloatArray, preconditioned: FloatArray) -> None:
        """The next direction; residual is minus the gradient."""
        slope = float(residual @ preconditioned)
        if not slope > 1e-300:
            self.ended, slope = True, 0.0
        self.direction *= slope / self.slope if self.slope > 0 else 0.0
        self.direction += preconditioned
        self.slope = slope


class _Features(_Side):
    """|Bw - f|^2/2 + shift |w|^2/2."""

    def __init__(self, f: FloatArray, squares: FloatArray, shift: float) -> None:
        super().__init__(np.zeros(len(squares)), float(f @ f) / 2)
        size = max(shift, float(squares.max()))
        self.inverse = np.maximum((squares + shift) / size, 1e-30) ** -ROOT
        self.shift, self.back = shift, f.copy()  # f - Bw

    def step(self, move: FloatArray) -> None:
        self.back -= self._length(float(move @ move) + self.shift * float(self.ahead @ self.ahead)) * move

    def turn(self, product: FloatArray) -> None:
        residual = self.shift * self.x
        np.subtract(product, residual, out=residual)
        self._towards(residual, self.inverse * residual)
        self.ahead = self.direction


class _Samples(_Side):
    """The dual: |x|^2/2 + |B'x|^2/(2 shift) - <f, x>, x = -y, orthogonal to `ones` if these are given."""

    def __init__(self, f: FloatArray, norms2: FloatArray, shift: float, ones: FloatArray | None) -> None:
        super().__init__(np.zeros(len(f)), 0.0)
        self.inverse = (1 + norms2 / shift) ** -ROOT
        self.shift, self.ones, self.residual = shift, ones, f.copy()
        self._turn()

    def step(self, move: FloatArray) -> None:
        product = move / self.shift
        product += self.direction
        self.residual -= self._length(float(self.direction @ product)) * product
        self._turn()

    def turn(self, product: FloatArray) -> None:
        self.ahead = product

    def _turn(self) -> None:
        z = self.inverse * self.residual
        if self.ones is not None:
            along = self.inverse * self.ones
            z -= along * ((self.ones @ z) / (self.ones @ along))
        self._towards(self.residual, z)
        self.back = self.direction


def worth_it(model: LinearModel) -> bool:
    """Whether Krylov spaces are expected to be faster than steps over the samples, for the squared loss and l2.

    Conjugate gradients take sqrt(sigma^2/(l2 W))/4 steps per e-fold at most, with sigma the largest singular value, and
    ever fewer than that as penalties become weak: the factor between this bound and S/n does not depend on l2. They
    were found to be ahead where S/n is at least `WORTH` times that factor.
    """
    passes = model.passes_over_samples()
    if passes < WEAK:
        return False
    shift = model.penalty.l2 * model.total
    v = np.random.default_rng(0).standard_normal((model.d, 1))
    size = 0.0
    for _ in range(POWER):
        v /= max(float(np.linalg.norm(v)), 1e-300)
        v = model.problem.adjoint(model.s * model.problem.product(v))
        size = float(np.linalg.norm(v))
    return passes >= WORTH * math.sqrt(size / shift) / 4 / passes
