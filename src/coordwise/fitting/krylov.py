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
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator

import numpy as np

from coordwise.fitting.model import Candidate, LinearModel
from coordwise.validation import FloatArray

__all__ = ["krylov", "worth_it"]

LOOK = 25  # steps between certificates, which cost as much as one
WEAK, WORTH, LOOSE = 8.0, (3.0, 10.0), 1e-3  # see `worth_it`
POWER = 6  # steps of the power method
ROOT = 0.5  # power of the diagonals that precondition
RECENT = 5  # steps
TINY = 1e-16  # gains per step, relative to 2 P(0), that say nothing
NOTHING = 1e-32  # of the steepest slope: what rounding leaves of a gradient, squared
STALE = 2  # looks in a row at which the gap has not fallen: rounding allows no more


def krylov(
    model: LinearModel, tol: float, *, start: Candidate | None = None, steps: list[int] | None = None
) -> Iterator[Candidate]:
    """Minimise P(w, c), output by output, for the squared loss and an l2 penalty, from `start` or from zeros.

    Yields the best candidate at the start and every `LOOK` steps, until every gap is <= tol * scale, or until rounding
    errors stop the gaps from falling. What was taken before each of them, by the output that took most, is appended to
    `steps`.
    """
    best = model.from_dual(np.zeros_like(model.b)) if start is None else model.recertified(start)
    yield best
    outputs = [_Output(model, k, start) for k in range(model.outputs)]
    last, stale = np.full(model.outputs, np.inf), np.zeros(model.outputs, int)
    while (active := best.gap > tol * model.scale).any():
        taken = [outputs[k].advance(0.9 * tol * float(model.scale[k])) for k in np.flatnonzero(active)]
        if steps is not None:
            steps.append(max(taken))
        w = np.stack([output.w for output in outputs], axis=1)
        y = np.stack([output.dual for output in outputs], axis=1)
        t = model.scores(w, np.zeros(model.outputs))
        c = model.best_intercept(t)
        found = model.paired(w, c, t + c, y)
        stale = np.where(found.gap < last, 0, stale + 1)
        last, best = found.gap, found.better(best)
        yield best
        if all(output.ended or stale[k] >= STALE for k, output in enumerate(outputs) if active[k]):
            return


class _Output:
    """min |Bw - f|^2/2 + shift |w|^2/2 for one output, shift = l2 W: B and f are A and b with rows weighted by sqrt(s),
    and centred if there is an intercept.
    """

    def __init__(self, model: LinearModel, k: int, start: Candidate | None = None) -> None:
        self.model = model
        self.roots = None if model.weights is None else np.sqrt(model.weights)
        self.ones: FloatArray | None = None  # the direction that an intercept takes out
        if model.intercept:
            ones = np.ones(model.n) if self.roots is None else self.roots
            self.ones = ones / np.linalg.norm(ones)
        f = self._centred(self._weighted(model.b[:, k : k + 1]))[:, 0]
        self.size = float(np.linalg.norm(f)) or 1.0
        f = f / self.size  # |f| = 1, so that nothing overflows
        squares, norms2 = _diagonals(model)
        shift = model.penalty.l2 * model.total
        self.features = _Features(f, squares, shift)
        self.samples = _Samples(f, norms2, shift, self.ones)
        if start is not None:
            self._begin(start.w[:, k] / self.size, start.y[:, k] / self.size)
        self._turn(self.features, self.samples)

    def _begin(self, w: FloatArray, y: FloatArray) -> None:
        """Begin with these, unless zeros are better."""
        x = -y[:, None]
        if self.roots is not None:
            x = np.divide(x, self.roots[:, None], out=np.zeros_like(x), where=self.roots[:, None] > 0)
        x = self._centred(x)
        image = self.model.problem.adjoint(self._weighted(x))[:, 0]
        moves = self._product(w, image)
        self.features.begin(w, moves[:, 0])
        self.samples.begin(x[:, 0], image, moves[:, 1])

    @property
    def w(self) -> FloatArray:
        """The weights."""
        return self.size * self.features.x

    @property
    def dual(self) -> FloatArray:
        """The dual variables."""
        return -self.size * self._weighted(self.samples.x[:, None])[:, 0]

    @property
    def gap(self) -> float:
        """P + D of the present w and y."""
        return self.size**2 * (self.features.value + self.samples.value) / self.model.total

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
        return [side for side in sides if side.pace >= side.slow * most or most < TINY]

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


class _Side(ABC):
    """Preconditioned conjugate gradients for one quadratic function: a point, its value and a direction.

    A step asks for B times `ahead`, and a turn to the next direction for B' times `back`. Products are the caller's,
    who has those of two sides together (`coordwise.linalg.conjugate` computes its own, for one problem).
    """

    ahead: FloatArray
    back: FloatArray
    slow: float  # of the gain per step of the other side: not worth a step

    def __init__(self, x: FloatArray, value: float) -> None:
        self.x, self.value = x, value
        self.direction = np.zeros_like(x)
        self.slope = self.steepest = 0.0  # along the direction, and the largest so far
        self.ended = False  # nothing is left
        self.gains: deque[float] = deque(maxlen=RECENT)

    @property
    def pace(self) -> float:
        """What recent steps gained, each; infinity if there were too few."""
        return sum(self.gains) / RECENT if len(self.gains) == RECENT else math.inf

    @abstractmethod
    def step(self, move: FloatArray) -> None:
        """A step along the direction, B times `ahead` being `move`."""

    @abstractmethod
    def turn(self, product: FloatArray) -> None:
        """The next direction, B' times `back` being `product`."""

    def _move(self, curvature: float) -> float:
        """Take the best step along the direction, which has this curvature, and say how long it is."""
        if not 0 < curvature < math.inf:
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
        self.steepest = max(self.steepest, slope)
        if not slope > NOTHING * self.steepest:
            self.ended, slope = True, 0.0
        self.direction *= slope / self.slope if self.slope > 0 else 0.0
        self.direction += preconditioned
        self.slope = slope


class _Features(_Side):
    """|Bw - f|^2/2 + shift |w|^2/2; weights are what is asked for, so that it seldom rests."""

    slow = 0.01

    def __init__(self, f: FloatArray, squares: FloatArray, shift: float) -> None:
        super().__init__(np.zeros(len(squares)), float(f @ f) / 2)
        size = max(shift, float(squares.max()))
        self.inverse = np.maximum((squares + shift) / size, 1e-30) ** -ROOT / size
        self.shift, self.back = shift, f.copy()  # f - Bw

    def begin(self, w: FloatArray, scores: FloatArray) -> None:
        """Begin with w, Bw being `scores`, unless zeros are better."""
        errors = self.back - scores
        value = float(errors @ errors + self.shift * (w @ w)) / 2
        if value < self.value:
            self.x[:], self.back, self.value = w, errors, value

    def step(self, move: FloatArray) -> None:
        self.back -= self._move(float(move @ move) + self.shift * float(self.ahead @ self.ahead)) * move

    def turn(self, product: FloatArray) -> None:
        residual = self.shift * self.x
        np.subtract(product, residual, out=residual)
        self._towards(residual, self.inverse * residual)
        self.ahead = self.direction


class _Samples(_Side):
    """The dual: |x|^2/2 + |B'x|^2/(2 shift) - <f, x>, x = -y, orthogonal to `ones` if these are given."""

    slow = 0.1

    def __init__(self, f: FloatArray, norms2: FloatArray, shift: float, ones: FloatArray | None) -> None:
        super().__init__(np.zeros(len(f)), 0.0)
        self.inverse = (1 + np.minimum(norms2 / shift, 1e200)) ** -ROOT
        self.shift, self.ones, self.residual = shift, ones, f.copy()
        self._choose()

    def begin(self, x: FloatArray, image: FloatArray, moves: FloatArray) -> None:
        """Begin with x, B'x being `image` and BB'x `moves`, unless zeros are better."""
        value = float(x @ x / 2 + image @ image / (2 * self.shift) - self.residual @ x)
        if value < self.value:
            self.x[:], self.value = x, value
            self.residual -= x + moves / self.shift
            self.slope = 0.0
            self._choose()

    def step(self, move: FloatArray) -> None:
        product = move / self.shift
        product += self.direction
        self.residual -= self._move(float(self.direction @ product)) * product
        self._choose()

    def turn(self, product: FloatArray) -> None:
        self.ahead = product

    def _choose(self) -> None:
        """The next direction, before B' is applied to it."""
        z = self.inverse * self.residual
        if self.ones is not None:
            along = self.inverse * self.ones
            z -= along * ((self.ones @ z) / (self.ones @ along))
        self._towards(self.residual, z)
        self.back = self.direction


def _diagonals(model: LinearModel) -> tuple[FloatArray, FloatArray]:
    """Those of B'B and BB', before centring; zeros for the latter where n > d.

    There n - d eigenvalues of 1 + BB'/shift are 1, and should not be spread.
    """
    if "diagonals" not in model.shared:
        rows = model.problem.rows("rows")
        norms2 = np.zeros(model.n) if model.n > model.d else rows.norms2()
        if model.weights is not None:
            norms2 *= model.weights
        model.shared["diagonals"] = rows.squares(model.weights, model.problem.threads), norms2
    found: tuple[FloatArray, FloatArray] = model.shared["diagonals"]
    return found


def _largest(model: LinearModel) -> float:
    """The square of the largest singular value of B, by the power method."""
    if "sigma2" not in model.shared:
        v = np.random.default_rng(0).standard_normal((model.d, 1))
        size = 0.0
        for _ in range(POWER):
            v /= max(float(np.linalg.norm(v)), 1e-300)
            t = model.problem.product(v)
            if model.intercept:
                t -= (model.s * t).sum() / model.total
            v = model.problem.adjoint(model.s * t)
            size = float(np.linalg.norm(v))
        model.shared["sigma2"] = size
    return float(model.shared["sigma2"])


def worth_it(model: LinearModel, tol: float) -> bool:
    """Whether Krylov spaces are expected to be faster than steps over the samples, for the squared loss and l2.

    Conjugate gradients take sqrt(sigma^2/(l2 W))/4 steps per e-fold at most, with sigma the largest singular value, and
    ever fewer than that as penalties become weak: the factor between this bound and S/n does not depend on l2. They
    were found to be ahead where S/n is at least `WORTH` times that factor, for loose tolerances and for tight ones.
    """
    passes = model.passes_over_samples()
    if passes < WEAK:
        return False
    bound = math.sqrt(_largest(model) / (model.penalty.l2 * model.total)) / 4
    return passes >= WORTH[tol < LOOSE] * bound / passes
