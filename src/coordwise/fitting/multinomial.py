"""Multinomial logistic regression with an l2 penalty or none, by Newton's method or L-BFGS, with a duality gap."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax, xlogy

from coordwise.fitting.fit import Fit
from coordwise.fitting.model import Candidate
from coordwise.fitting.newton import FEW, direction
from coordwise.fitting.quadratic import Columns
from coordwise.fitting.softmax import (
    Round,
    best_intercepts,
    certificate_with_rounding,
    dual_point,
    entropy,
    hessian_blocks,
    losses,
    nothing,
    rounds_to_the_end,
    sizes,
)
from coordwise.fitting.unpenalised import ROUNDING, conjugate_gradients
from coordwise.fitting.weighted import Gram
from coordwise.lines import halved
from coordwise.penalties import L2
from coordwise.recording import Progress
from coordwise.results import Status
from coordwise.rows import Rows
from coordwise.validation import FloatArray

__all__ = ["multinomial"]

EPS = float(np.finfo(float).eps)
IN_VAIN = 5  # rounds without a gain after which rounding allows no more


def multinomial(
    X: Any,
    codes: Any,
    count: int,
    lam: float,
    weights: FloatArray | None,
    *,
    intercept: bool,
    tol: float,
    most: int,
    start: Candidate | None = None,
    time_limit: float | None = None,
    callback: Callable[[Progress], object] | None = None,
) -> Fit:
    r"""minimise over W (d x K), c   P = (1/S) sum_i s_i (log sum_k exp(t_ik) - t_iy) + (lam/2)|W|^2,   t = XW + c.

    The conjugate of the loss is sum_k q_k log q_k over the simplex, so Y = s (q - e_y), q = softmax(t), is a dual
    point; with an intercept its columns must add up to 0, which the best intercepts for W make them do. Then
    P(W, c) + D(Y) = |lam W + X'Y/S|^2/(2 lam) is the duality gap. Ends when it is <= tol * log K.

    Without a penalty (lam = 0) X'Y must vanish, which a Newton step makes it do, as in `unpenalised`: q_k becomes
    q_k (1 - u_k + sum_j q_j u_j) with the change u of the scores. Where that is not between q_k/2 and 3 q_k/2 the gap
    is infinite; so it is for all W where hyperplanes separate a class from the others.
    """
    rows = Rows(X, "rows")
    n, d = X.shape
    s = np.ones(n) if weights is None else weights
    total = float(s.sum())
    hot = np.zeros((n, count))
    hot[np.arange(n), codes] = 1.0
    norms = Columns(X).norms(None, False)[:, None]  # of the features
    row_norms, penalty = np.sqrt(rows.norms2()), L2(lam) if lam > 0 else None

    def scores(W: FloatArray, c: FloatArray) -> FloatArray:
        return np.asarray(rows.dots(np.ascontiguousarray(W))) + c

    def split(theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        table = theta.reshape(-1, count)
        return (table[:-1], table[-1]) if intercept else (table, np.zeros(count))

    def value_and_gradient(theta: FloatArray) -> tuple[float, FloatArray]:
        W, c = split(theta)
        t = scores(W, c)
        log_q = log_softmax(t, axis=1)
        value = -float(s @ log_q[np.arange(n), codes]) / total + lam / 2 * float(np.sum(W * W))
        y = s[:, None] * (np.exp(log_q) - hot) / total
        gradient = rows.combine(np.ascontiguousarray(y)) + lam * W
        if intercept:
            gradient = np.vstack([gradient, y.sum(0)])
        return value, gradient.reshape(-1)

    def certificate(theta: FloatArray) -> Candidate:
        W, c = split(theta)
        W = W - W.mean(axis=1, keepdims=True)  # the loss does not see a shift of all classes; the penalty does
        c = best_intercepts(s, scores(W, 0.0 * c), hot, c) if intercept else c
        t = scores(W, c)
        q = softmax(t, axis=1)
        value = float(s @ losses(t, hot)) / total + lam / 2 * float(np.sum(W * W))
        if penalty is None:
            return without_penalty(W, c, q, value)
        y = dual_point(q, s, hot, balanced=intercept)  # off the constraint D is infinite
        v = rows.combine(np.ascontiguousarray(y)) / total
        dual = entropy(y, s, hot) / total + float(np.sum(v * v)) / (2 * lam)
        y, gap = certificate_with_rounding(
            value, dual, y, s=s, hot=hot, t=t, v=-v, weights=(W, c), row_norms=row_norms, penalty=penalty
        )
        return Candidate(W, c, y, np.array([value]), np.array([gap]))

    def without_penalty(W: FloatArray, c: FloatArray, q: FloatArray, value: float) -> Candidate:
        """The certificate for lam = 0."""
        y = s[:, None] * (q - hot)
        theta = np.vstack([W, c[None, :]]) if intercept else W
        if small:
            step = newton_direction(theta.reshape(-1), q)
        else:
            gradient = level(value_and_gradient(theta.reshape(-1))[1])
            step = conjugate_gradients(lambda x: curved(x, q), gradient, 10 * most)[0]
        u = scores(*split(step))
        u -= np.sum(q * u, axis=1, keepdims=True)
        gap = np.inf
        if np.max(np.abs(u[s > 0])) <= 0.5:
            p = q * (1 - u)
            moved = s[:, None] * (p - hot)
            v, size = rows.combine(np.ascontiguousarray(moved)), np.linalg.norm(moved)
            fits = not intercept or np.max(np.abs(moved.sum(0))) <= ROUNDING * np.sqrt(n) * size
            if fits and np.all(np.abs(v) <= ROUNDING * norms * size):
                dual = float(s @ xlogy(p, p).sum(1)) / total
                dual += float(np.sum(np.abs(v * W))) / total
                y, gap = certificate_with_rounding(
                    value,
                    dual,
                    moved,
                    s=s,
                    hot=hot,
                    t=scores(W, c),
                    v=-v,
                    weights=(W, c),
                    row_norms=row_norms,
                    penalty=None,
                )
        return Candidate(W, c, y, np.array([value]), np.array([gap]))

    def curved(x: FloatArray, q: FloatArray) -> FloatArray:
        """The Hessian at probabilities q times x."""
        u = scores(*split(x))
        r = s[:, None] * q * (u - np.sum(q * u, axis=1, keepdims=True)) / total
        product = rows.combine(np.ascontiguousarray(r))
        return level((np.vstack([product, r.sum(0)]) if intercept else product).reshape(-1))

    def level(x: FloatArray) -> FloatArray:
        """Free of shifts of all classes, which rounding brings in and nothing takes away."""
        table = x.reshape(-1, count)
        return (table - table.mean(axis=1, keepdims=True)).reshape(-1)

    small = (d + intercept) * count <= FEW
    gram: Any = Gram(X, intercept) if small else None

    def newton_direction(theta: FloatArray, q: FloatArray) -> FloatArray:
        """The Newton direction; the Hessian couples the classes."""
        gradient = value_and_gradient(theta)[1]
        size = d + intercept
        hessian = np.zeros((size, count, size, count))
        for j, k, block in hessian_blocks(gram, s / total, q):
            hessian[:, j, :, k] = hessian[:, k, :, j] = block
        if lam == 0:  # a shift of all weights of a feature changes nothing
            sizes = np.einsum("jkjk->j", hessian)[:d] / count
            hessian[np.arange(d), :, np.arange(d), :] += np.where(sizes > 0, sizes, 1.0)[:, None, None] / count
        H = hessian.reshape(size * count, size * count)
        H[np.arange(d * count), np.arange(d * count)] += lam
        if intercept:  # a shift of all intercepts changes nothing
            H[-count:, -count:] += 1.0 / count
        return direction(H, gradient)

    def newton_step(theta: FloatArray) -> FloatArray:
        """One damped Newton step."""
        value, gradient = value_and_gradient(theta)
        step = newton_direction(theta, softmax(scores(*split(theta)), axis=1))
        length, _ = halved(lambda at: value_and_gradient(theta - at * step)[0], value, -float(gradient @ step))
        return theta - length * step

    unit = np.vstack([sizes(norms**2, n, lam), np.ones((1, 1))]) if intercept else sizes(norms**2, n, lam)
    unit = np.repeat(unit, count, axis=1).reshape(-1)

    def quasi_newton(theta: FloatArray, most: int) -> tuple[FloatArray, int]:
        """L-BFGS, and the steps that it took."""

        def scaled(x: FloatArray) -> tuple[float, FloatArray]:
            value, gradient = value_and_gradient(x / unit)
            return value, gradient / unit

        options = {"maxiter": most, "maxcor": 20, "gtol": 1e-14, "ftol": 0.0}
        found = minimize(scaled, theta * unit, jac=True, method="L-BFGS-B", options=options)
        return found.x / unit, max(int(found.nit), 1)

    def rounds() -> Iterator[Round]:
        theta = np.zeros((d + intercept) * count)
        if start is not None:
            theta = np.vstack([start.w, start.c[None, :]] if intercept else [start.w]).reshape(-1)
        best, steps, in_vain = certificate(theta), 0, 0
        yield best, steps, None
        while True:
            before, known = theta, best
            if small:
                theta, taken = newton_step(theta), 1
            else:
                theta, taken = quasi_newton(theta, min(max(10, steps), most - steps))
            best, steps = certificate(theta).better(best), steps + taken
            gained = best.value[0] < known.value[0] * (1 - EPS) or best.gap[0] < 0.9 * known.gap[0]
            in_vain = 0 if gained else in_vain + 1
            ended = Status.STALLED if np.array_equal(before, theta) or in_vain >= IN_VAIN else None
            if lam == 0 and best.value[0] <= np.finfo(float).eps * np.log(count):  # nothing is left of the losses
                ended = Status.DIVERGED
            yield best, steps, ended

    return rounds_to_the_end(
        rounds,
        nothing(n, d, count),
        tol=tol,
        most=most,
        time_limit=time_limit,
        callback=callback,
        strategy=f"multinomial: {'Newton' if small else 'L-BFGS'} on the primal",
    )
