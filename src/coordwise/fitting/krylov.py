"""Ridge regression over Krylov spaces, both problems at once.

Golub and Kahan's bidiagonalisation of A, begun with the targets, takes a product with A and one with A' per step. What
it gives minimises P over the vectors v_1 .. v_k (that is LSQR) and D over u_1 .. u_k (conjugate gradients over the
samples), both by short recurrences and with their values known on the way: the gap P(w_k) + D(y_k) costs nothing, and
neither of the two is spoiled by the other, as w would be if it were computed from y.

Large singular values are dealt with one by one, so that weak penalties cost less than what the condition number
suggests. Steps over the samples need as many passes as S/n = mean sqrt(1 + |a_i|^2/(l2 W)) per e-fold.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from coordwise.fitting.model import Candidate, LinearModel
from coordwise.validation import FloatArray

__all__ = ["krylov", "worth_it"]

LOOK = 25  # steps between certificates, which cost as much as one
WEAK, WORTH = 80.0, 3.0  # see `worth_it`
POWER = 6  # steps of the power method


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
    """min |Bw - f|^2/2 + l2 W |w|^2/2 for one output: B and f are A and b with rows weighted by sqrt(s) and centred."""

    def __init__(self, model: LinearModel, k: int) -> None:
        self.model = model
        self.shift = model.penalty.l2 * model.total  # the square of LSQR's damping
        self.roots = None if model.weights is None else np.sqrt(model.weights)
        self.ones: FloatArray | None = None  # the direction that an intercept takes out
        if model.intercept:
            ones = np.ones(model.n) if self.roots is None else self.roots
            self.ones = ones / np.linalg.norm(ones)
        f = self._centred(self._weighted(model.b[:, k]))
        self.w, self.y = np.zeros(model.d), np.zeros(model.n)
        self.phi, self.residual, self.value = float(np.linalg.norm(f)), 0.0, 0.0
        self.u = f / self.phi if self.phi > 0 else f
        self.v = self._backward(self.u)
        self.alpha = float(np.linalg.norm(self.v))
        self.ended = not self.alpha > 1e-300
        if self.ended:
            return
        self.v /= self.alpha
        self.rho, self.h = self.alpha, self.v.copy()
        self.pivot = 1 + self.alpha**2 / self.shift
        self.d, self.zeta = self.u.copy(), -self.phi / self.pivot
        self._add_dual()

    def _weighted(self, r: FloatArray) -> FloatArray:
        return np.array(r) if self.roots is None else self.roots * r

    def _centred(self, r: FloatArray) -> FloatArray:
        if self.ones is not None:
            r -= (self.ones @ r) * self.ones
        return r

    def _forward(self, v: FloatArray) -> FloatArray:
        return self._centred(self._weighted(self.model.problem.product(v[:, None])[:, 0]))

    def _backward(self, u: FloatArray) -> FloatArray:
        return self.model.problem.moments(self._weighted(u)[:, None])[:, 0] * self.model.total

    @property
    def dual(self) -> FloatArray:
        """The dual variables."""
        return self._weighted(self.y)

    @property
    def gap(self) -> float:
        """P + D of the present w and y."""
        return ((self.phi**2 + self.residual) / 2 + self.value) / self.model.total

    def advance(self, goal: float) -> int:
        """Some steps, until the gap is <= goal, and how many they were."""
        for count in range(LOOK):
            if self.ended:
                return count
            self._step()
            if self.gap <= goal:
                return count + 1
        return LOOK

    def _step(self) -> None:
        u = self._forward(self.v)
        u -= self.alpha * self.u
        beta, before = float(np.linalg.norm(u)), self.alpha
        if beta > 0:
            u /= beta
        v = self._backward(u)
        v -= beta * self.v
        self.alpha = float(np.linalg.norm(v))
        if self.alpha > 0:
            v /= self.alpha
        # w: a rotation takes the damping out, another one beta
        damped = math.hypot(self.rho, math.sqrt(self.shift))
        self.residual += (math.sqrt(self.shift) / damped * self.phi) ** 2
        self.phi *= self.rho / damped
        rho = math.hypot(damped, beta)
        cosine, sine = damped / rho, beta / rho
        self.w += (cosine * self.phi / rho) * self.h
        self.h *= -sine * self.alpha / rho
        self.h += v
        self.rho, self.phi = -cosine * self.alpha, sine * self.phi
        self.u, self.v = u, v
        if not (beta > 0 and self.alpha > 0):  # nothing is left
            self.ended = True
            return
        # y: the next row of a Cholesky factor of the tridiagonal matrix I + LL'/shift
        factor = before * beta / self.shift / self.pivot
        pivot = 1 + (self.alpha**2 + beta**2) / self.shift - factor**2 * self.pivot
        self.d *= -factor
        self.d += u
        self.zeta *= -factor * self.pivot / pivot
        self.pivot = pivot
        self._add_dual()

    def _add_dual(self) -> None:
        self.y += self.zeta * self.d
        self.value -= self.pivot * self.zeta**2 / 2


def worth_it(model: LinearModel) -> bool:
    """Whether Krylov spaces are expected to be faster than steps over the samples, for the squared loss and l2.

    Conjugate gradients take sqrt(sigma^2/(l2 W))/4 steps per e-fold at most, with sigma the largest singular value, and
    ever fewer than that as penalties become weak. They were found to be ahead where S/n >= WEAK and that bound is at
    most sqrt(S/n / WORTH) times S/n.
    """
    passes = model.passes_over_samples()
    if passes < WEAK:
        return False
    shift = model.penalty.l2 * model.total
    v = np.random.default_rng(0).standard_normal((model.d, 1))
    size = 0.0
    for _ in range(POWER):
        v /= max(float(np.linalg.norm(v)), 1e-300)
        v = model.problem.moments(model.s * model.problem.product(v)) * model.total
        size = float(np.linalg.norm(v))
    return WORTH * (math.sqrt(size / shift) / 4 / passes) ** 2 <= passes
