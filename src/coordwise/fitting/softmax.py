"""What multinomial models share."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np
from scipy.special import kl_div, softmax, xlogy

from coordwise.blas import one_scipy_thread
from coordwise.deadlines import TimeUp, within
from coordwise.fitting.fit import Fit
from coordwise.fitting.model import Candidate
from coordwise.fitting.rounding import EPS
from coordwise.fitting.weighted import Gram
from coordwise.kernels import Terms
from coordwise.penalties import ElasticNet
from coordwise.recording import Progress, says_stop
from coordwise.results import Status
from coordwise.validation import FloatArray

__all__ = [
    "Round",
    "best_intercepts",
    "certificate_with_rounding",
    "dual_point",
    "entropy",
    "hessian_blocks",
    "losses",
    "nothing",
    "rounds_to_the_end",
    "sizes",
]

Round = tuple[Candidate, int, Status | None]
"""The best candidate so far, the steps it took, and why there is no further round (None if there may be one)."""


def rounds_to_the_end(
    rounds: Callable[[], Iterator[Round]],
    first: Candidate,
    *,
    tol: float,
    most: int,
    time_limit: float | None,
    callback: Callable[[Progress], object] | None,
    strategy: str,
) -> Fit:
    """Round after round until the gap is <= tol * P(0, 0), the gap of `first`, or something else ends it."""
    begun = time.perf_counter()
    best, steps, scale = first, 0, first.gap

    def status_of(ask: Callable[[Progress], object] | None) -> Status:
        nonlocal best, steps
        for found, taken, ended in rounds():
            best, steps = found, taken
            if best.gap[0] <= tol * scale[0]:
                return Status.CONVERGED
            seconds, w = time.perf_counter() - begun, best.w
            progress = Progress(steps, float(steps), seconds, best.value, best.gap, scale, 0, np.nan, w.copy)
            if steps > 0 and ask is not None and says_stop(ask(progress)):
                return Status.STOPPED
            if time_limit is not None and seconds > time_limit:
                return Status.TIME_LIMIT
            if ended is not None:
                return ended
            if steps >= most:
                break
        return Status.MAX_PASSES

    try:
        with one_scipy_thread():
            status = within(None if time_limit is None else begun + time_limit, status_of, callback)
    except TimeUp:
        status = Status.TIME_LIMIT
    except KeyboardInterrupt:
        raise Fit.of(best, scale, Status.INTERRUPTED, begun, steps, strategy).interruption from None
    return Fit.of(best, scale, status, begun, steps, strategy)


def nothing(n: int, d: int, count: int) -> Candidate:
    """Zeros, whose gap is P(0, 0) = log K."""
    scale = np.array([np.log(count)])
    return Candidate(np.zeros((d, count)), np.zeros(count), np.zeros((n, count)), scale, scale)


def sizes(squares: FloatArray, total: float, l2: float) -> FloatArray:
    """Square roots of a feature's typical curvature, by which quasi-Newton methods do not see how it is scaled.

    `squares` are sum_i s_i a_ij^2; a probability varies by 1/4 at most. 1 for features that are 0.
    """
    curvature = squares / (4 * total) + l2
    return np.sqrt(np.where(squares > 0, curvature, 1.0))


def best_intercepts(s: FloatArray, t: FloatArray, hot: FloatArray, c: FloatArray) -> FloatArray:
    """The intercepts that minimise the loss for given scores, by Newton's method: the columns of Y add up to 0."""
    c = c - c.mean()
    for _ in range(50):
        q = softmax(t + c, axis=1)
        gradient = s @ (q - hot)
        if np.max(np.abs(gradient)) <= 1e-15 * s.sum():
            break
        hessian = np.diag(s @ q) - (q * s[:, None]).T @ q
        step = np.linalg.lstsq(hessian, gradient, rcond=1e-12)[0]
        limit = np.max(np.abs(step))
        c = c - step * min(1.0, 2.0 / limit if limit > 0 else 1.0)
    return c - c.mean()


def losses(t: FloatArray, hot: FloatArray) -> FloatArray:
    """log sum_k exp(t_ik - t_iy) of every sample, to full relative precision also where it is next to 0."""
    others = np.where(hot > 0, -np.inf, t - (t * hot).sum(axis=1, keepdims=True))
    most = np.maximum(others.max(axis=1), 0.0)
    summed = np.exp(others - most[:, None]).sum(axis=1)
    return np.asarray(most + np.log1p(summed + np.expm1(-most)))


def dual_point(q: FloatArray, s: FloatArray, hot: FloatArray, *, balanced: bool) -> FloatArray:
    """Y = s (q - hot) of probabilities q; with columns that add up to 0 where they have to be `balanced`.

    What q of a sample's own class lacks of 1 is the sum of the others, of which no digits are lost. To balance the
    columns all samples are shifted alike. Where that leaves the simplex, q is mixed with the frequencies of the
    classes, which are inside of it.
    """
    others = np.where(hot > 0, 0.0, q)
    if balanced:
        others *= s @ hot > 0  # a column of a class without weight adds up to 0 only if it is 0
    y = s[:, None] * (others - hot * others.sum(axis=1, keepdims=True))
    if not balanced:
        return y
    total = s.sum()
    y = y - s[:, None] * (y.sum(axis=0) / total)
    middle = s[:, None] * ((s @ hot) / total - hot)
    lowest = -s[:, None] * hot
    outside = y < lowest
    if not outside.any():
        return y
    share = np.max((lowest - y)[outside] / np.maximum(middle - y, 1e-300)[outside])
    return np.maximum(y + min(float(share), 1.0) * (middle - y), lowest)


def entropy(y: FloatArray, s: FloatArray, hot: FloatArray) -> float:
    """sum_i s_i sum_k q_ik log q_ik for Y = s (q - hot), what is next to 1 by its distance from 1."""
    u = np.divide(y, s[:, None], out=np.zeros_like(y), where=s[:, None] > 0)
    own = np.maximum(np.sum(u * hot, axis=1), -1.0)
    next_to_one = (1 + own) * np.log1p(np.where(own > -1, own, 0.0))
    return float(s @ (_xlogx(np.where(hot > 0, 0.0, u)).sum(axis=1) + next_to_one))


def _xlogx(q: FloatArray) -> FloatArray:
    return np.asarray(xlogy(q, q))


def certificate_with_rounding(
    value: float,
    dual: float,
    y: FloatArray,
    *,
    s: FloatArray,
    hot: FloatArray,
    t: FloatArray,
    v: FloatArray,
    weights: tuple[FloatArray, FloatArray],
    row_norms: FloatArray,
    penalty: ElasticNet | None,
) -> tuple[FloatArray, float]:
    """Dual variables and P + D, with what rounding may hide added as in `coordwise.fitting.rounding`.

    t are the scores and v = -X'Y/S the moments. With an l2 part P + D is also known as the sum of the divergences of
    the dual variables' probabilities from softmax(t) and of r(w) + r*(v) - <w, v>, all non-negative, where rounding
    matters to second order. With a penalty zeros take the place of dual variables with D > 0: D(0) = 0.
    """
    total, gap = float(s.sum()), max(value + dual, 0.0)
    lengths = np.abs(y).sum(axis=1)
    W, c = weights
    size = float(np.linalg.norm(W))
    delta = EPS * float(row_norms @ lengths) / total
    off = EPS * value + 2 * delta * size + EPS * float(np.max(np.abs(c))) * float(lengths.sum()) / total
    if penalty is not None and penalty.l2 > 0:
        off += delta * float(np.sqrt(2 * gap / penalty.l2)) + delta**2 / (2 * penalty.l2)
    elif penalty is not None:
        off += value * delta / penalty.l1
    gap += off
    if penalty is not None and penalty.l2 > 0:
        q = hot + np.divide(y, s[:, None], out=np.zeros_like(y), where=s[:, None] > 0)
        used = s > 0  # others may be infinitely far apart
        apart = float(s[used] @ kl_div(np.maximum(q[used], 0.0), softmax(t[used], axis=1)).sum(axis=1)) / total
        terms = Terms(penalty.shape, 1.0, None, None)
        apart += float(terms.fenchel_young(np.ascontiguousarray(W), -v, np.ones(len(W), bool)).sum())
        scores = EPS * (float(np.linalg.norm(row_norms)) * size + np.sqrt(len(s)) * float(np.max(np.abs(c))))
        second = np.sqrt(s.max() / (2 * total)) * scores + delta / np.sqrt(2 * penalty.l2)
        gap = min(gap, float(np.sqrt(max(apart, 0.0)) + second) ** 2 + EPS)
    if penalty is not None and not gap <= value * (1 + EPS):
        return np.zeros_like(y), value * (1 + EPS)
    return y, gap


def hessian_blocks(gram: Gram, s: FloatArray, q: FloatArray) -> Iterator[tuple[int, int, FloatArray]]:
    """(j, k, block) for classes j <= k: second derivatives of sum_i s_i log sum_k exp(t_ik) in their weights."""
    for j in range(q.shape[1]):
        for k in range(j, q.shape[1]):
            yield j, k, gram(s * q[:, j] * ((j == k) - q[:, k]))
