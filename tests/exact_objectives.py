"""Linear models in extended precision: P(w, c), D(y) and lower bounds of min P, from their definitions alone.

Nothing here comes from coordwise, so that a mistake there is not made twice. The model is

    P(w, c) = (1/W) sum_i s_i phi(<x_i, w> + c; b_i) + l1 |w|_1 + (l2/2) |w|^2,   W = sum_i s_i,

and for every y in the domain of the conjugates (with sum_i y_i = 0 if c is free) min P >= -D(y),

    D(y) = (1/W) sum_i s_i phi*(y_i/s_i; b_i) + r*(-(1/W) X'y).
"""

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

LONG = np.longdouble
EPS = float(np.finfo(np.float64).eps)
TINY = 1e-300  # about where double precision ends
FAR = 64.0  # times its spread: how far from 0 a column may lie that the library does not move


def dense(X):
    return (X.toarray() if sp.issparse(X) else np.asarray(X)).astype(LONG)


def squares(a):
    return np.sum(a * a, axis=0)


def phi(loss, t, b, e):
    """The losses of predictions t, with the parameter e where there is one."""
    r = t - b
    a = np.abs(r)
    m = -b * t
    return {
        "squared": lambda: r * r / 2,
        "l2l1": lambda: r * r / 2 + a,
        "huber": lambda: np.where(a <= e, r * r / 2, e * (a - e / 2)),
        "epsilon": lambda: np.maximum(a - e, 0),
        "squared_epsilon": lambda: np.maximum(a - e, 0) ** 2 / 2,
        "logistic": lambda: np.maximum(m, 0) + np.log1p(np.exp(-np.abs(m))),
        "hinge": lambda: np.maximum(1 + m, 0),
        "squared_hinge": lambda: np.maximum(1 + m, 0) ** 2 / 2,
    }[loss]()


def conjugate(loss, u, b, e):
    """phi* at u, which is in its domain."""
    a = np.clip(-b * u, 0, 1)

    def entropy(p):
        return p * np.log(np.where(p > 0, p, 1))

    return {
        "squared": lambda: u * u / 2 + b * u,
        "l2l1": lambda: b * u + np.maximum(np.abs(u) - 1, 0) ** 2 / 2,
        "huber": lambda: u * u / 2 + b * u,
        "epsilon": lambda: b * u + e * np.abs(u),
        "squared_epsilon": lambda: b * u + e * np.abs(u) + u * u / 2,
        "logistic": lambda: entropy(a) + (1 - a) * np.log1p(-np.where(a < 1, a, 0)),
        "hinge": lambda: b * u,
        "squared_hinge": lambda: b * u + u * u / 2,
    }[loss]()


def slope(loss, t, b, e):
    """phi' of losses without kinks; None for others."""
    r = t - b
    m = -b * t
    return {
        "squared": lambda: r,
        "huber": lambda: np.clip(r, -e, e),
        "squared_epsilon": lambda: np.sign(r) * np.maximum(np.abs(r) - e, 0),
        "logistic": lambda: -b / (1 + np.exp(np.minimum(-m, 11000))),
        "squared_hinge": lambda: -b * np.maximum(1 + m, 0),
    }.get(loss, lambda: None)()


def domain(loss, b, e):
    inf = LONG(np.inf)
    low, high = {
        "huber": (-e, e),
        "epsilon": (-1, 1),
        "logistic": (np.minimum(-b, 0), np.maximum(-b, 0)),
        "hinge": (np.minimum(-b, 0), np.maximum(-b, 0)),
        "squared_hinge": (np.where(b > 0, -inf, 0), np.where(b > 0, 0, inf)),
    }.get(loss, (-inf, inf))
    return np.broadcast_to(low, b.shape), np.broadcast_to(high, b.shape)


@dataclass
class Exact:
    """One output of a linear model; features and targets are centred if the intercept is free, which changes nothing.

    What is computed from centred data has next to no rounding, however far from 0 the data are.
    """

    X: np.ndarray
    b: np.ndarray
    s: np.ndarray
    loss: str
    l1: float
    l2: float
    e: float = 0.0
    intercept: bool = True
    positive: bool = False
    means: np.ndarray = field(init=False)
    level: float = field(init=False, default=0.0)

    def __post_init__(self):
        self.total = self.s.sum()
        self.e, self.l1, self.l2 = LONG(self.e), LONG(self.l1), LONG(self.l2)
        self.means = np.zeros(self.X.shape[1], LONG)
        self.raw = self.X
        if self.intercept:
            self.means = self.s @ self.X / self.total
            self.X = self.X - self.means
            if self.loss not in ("logistic", "hinge", "squared_hinge"):
                self.level = self.s @ self.b / self.total
                self.b = self.b - self.level

    def centred(self, w, c):
        """The intercept beside centred data."""
        return LONG(c) + self.means @ w - self.level

    def value(self, w, c):
        """P at an intercept for centred data."""
        losses = self.s @ phi(self.loss, self.X @ w + c, self.b, self.e) / self.total
        return losses + self.l1 * np.abs(w).sum() + self.l2 * squares(w) / 2

    def at_zero(self):
        """P(0, 0) for the data as they are."""
        return self.value(np.zeros(self.X.shape[1], LONG), LONG(0) - self.level)

    def feasible(self, y):
        """The dual variables in the domain, up to extended precision."""
        low, high = domain(self.loss, self.b, self.e)
        with np.errstate(invalid="ignore"):  # 0 inf: a weight of 0 beside an unbounded domain
            low, high = (np.where(self.s > 0, self.s * end, 0) for end in (low, high))
        y = np.clip(y, low, high)
        if self.intercept:
            up, down = np.maximum(y, 0).sum(), -np.minimum(y, 0).sum()
            share = min(up, down) / max(up, down) if max(up, down) > 0 else LONG(1)
            y = np.where((y > 0) == (up >= down), share * y, y)
        if self.l2 == 0 and self.l1 > 0:
            v = -(self.X.T @ y) / self.total
            most = np.max(v if self.positive else np.abs(v))
            y = y * (self.l1 / most if most > self.l1 else 1)
        return y

    def dual(self, y):
        """D(y) for feasible y, with an l1 or an l2 part; -D(y) bounds min P from below."""
        used = self.s > 0
        u = np.divide(y, self.s, out=np.zeros_like(y), where=used)
        losses = self.s @ conjugate(self.loss, u, self.b, self.e) / self.total
        v = -(self.X.T @ y) / self.total
        excess = np.maximum((v if self.positive else np.abs(v)) - self.l1, 0)
        return losses + (squares(excess) / (2 * self.l2) if self.l2 > 0 else LONG(0))

    def slopes(self, w, c):
        """The dual variables that belong to w and c where the loss has no kinks; else None."""
        found = slope(self.loss, self.X @ w + c, self.b, self.e)
        return None if found is None else self.s * found

    def of_moments(self, y):
        """What D(y) owes to y and its moments in double precision: moments v move by d, and r* by (v d + d^2/2)/l2."""
        if self.l2 == 0:
            return LONG(0)
        d = 16 * EPS * (np.abs(self.X).T @ np.abs(y)) / self.total
        v = -(self.X.T @ y) / self.total
        excess = np.maximum((v if self.positive else np.abs(v)) - self.l1, 0)
        return np.sum(excess * d + d * d / 2) / self.l2

    def rounding(self, w, c, y):
        """What is lost, to first order, where P and D are computed in double precision.

        A score is off by e_i = eps (sum_j |x_ij w_j| + |c| + |b_i|), also because w is rounded. That changes P by
        |y_i| e_i/W to first order, for losses with kinks by up to s_i e_i/W, to second order by s_i e_i^2/(2W), and the
        products in D as much. Columns may be as far as FAR times their spread from 0. Sums of n and d terms lose about
        the square root of as many eps, for n, d <= 200 less than 16.
        """
        spread = np.sqrt(self.s @ (self.X * self.X) / self.total)
        size = np.abs(self.X) + np.minimum(np.abs(self.means), FAR * spread)
        off = 16 * EPS * (size @ np.abs(w) + abs(c) + np.abs(self.b))
        found = self.slopes(w, c)  # y may be 0 where P is already small
        steep = np.maximum(np.abs(y), self.s if found is None else np.abs(found))
        return TINY + 16 * EPS * abs(self.value(w, c)) + (steep @ off + self.s @ (off * off) / 2) / self.total

    def of_intercept(self, w, c):
        """What rounding the intercept for the data as they are may change P by; P is convex in it."""
        if not self.intercept:
            return LONG(0)
        off = 4 * EPS * (abs(c) + abs(self.level) + np.abs(self.means) @ np.abs(w))
        here = self.value(w, c)
        return max(self.value(w, c + off), self.value(w, c - off)) - here


@dataclass
class ExactMultinomial:
    """P(W, c) = (1/S) sum_i s_i (log sum_k exp(t_ik) - t_iy) + r(W),   t = XW + c, and D of Y = s (q - e_y)."""

    X: np.ndarray
    codes: np.ndarray
    count: int
    s: np.ndarray
    l1: float
    l2: float
    intercept: bool = True

    def __post_init__(self):
        self.total = self.s.sum()
        self.means = self.s @ self.X / self.total if self.intercept else np.zeros(self.X.shape[1], LONG)
        self.X = self.X - self.means
        self.hot = (self.codes[:, None] == np.arange(self.count)).astype(LONG)

    def centred(self, w, c):
        return c.astype(LONG) + self.means @ w

    def value(self, w, c):
        t = self.X @ w + c
        most = t.max(axis=1)
        losses = np.log(np.exp(t - most[:, None]).sum(axis=1)) + most - (t * self.hot).sum(axis=1)
        return self.s @ losses / self.total + self.l1 * np.abs(w).sum() + self.l2 * np.sum(w * w) / 2

    def at_zero(self):
        return np.log(LONG(self.count))

    def feasible(self, y):
        """Probabilities q with s'(q - e_y) = 0 with an intercept, and |v| <= l1 where r has no l2 part."""
        s = np.where(self.s > 0, self.s, 1)[:, None]
        q = np.maximum(y / s + self.hot, 0)
        if self.intercept:
            q = q * (self.s @ self.hot > 0)  # a class without samples that count
        q = np.where((self.s > 0) & (q.sum(axis=1) > 0), q.T, self.hot.T).T
        q = q / q.sum(axis=1, keepdims=True)
        y = self.s[:, None] * (q - self.hot)
        if self.intercept:
            y = self._balanced(y)
        if self.l2 == 0 and self.l1 > 0:
            most = np.max(np.abs(self.X.T @ y)) / self.total
            y = y * (self.l1 / most if most > self.l1 else 1)
        return y

    def _balanced(self, y):
        """y mixed with the dual point of the class frequencies so that its columns add up to 0 and q stays >= 0.

        A shift of q by the same amount in all samples makes the sums right; where it leaves the simplex, a mixture
        with the frequencies, which are inside of it, leads back.
        """
        frequencies = self.s @ self.hot / self.total
        middle = self.s[:, None] * (frequencies - self.hot)
        moved = y - self.s[:, None] * y.sum(axis=0) / self.total
        q = np.where(self.s[:, None] > 0, moved / np.where(self.s > 0, self.s, 1)[:, None] + self.hot, self.hot)
        lowest = np.divide(-q, frequencies - q, out=np.zeros_like(q), where=q < 0)
        share = min(np.max(lowest), LONG(1))
        return (1 - share) * moved + share * middle

    def dual(self, y):
        q = np.where(self.s[:, None] > 0, y / np.where(self.s > 0, self.s, 1)[:, None] + self.hot, self.hot)
        entropy = np.where(q > 0, q * np.log(np.where(q > 0, q, 1)), 0).sum(axis=1)
        excess = np.maximum(np.abs(self.X.T @ y) / self.total - self.l1, 0)
        penalty = np.sum(excess * excess) / (2 * self.l2) if self.l2 > 0 else LONG(0)
        return self.s @ entropy / self.total + penalty

    def slopes(self, w, c):
        """See `Exact.slopes`."""
        t = self.X @ w + c
        q = np.exp(t - t.max(axis=1, keepdims=True))
        return self.s[:, None] * (q / q.sum(axis=1, keepdims=True) - self.hot)

    def of_moments(self, y):
        """See `Exact.of_moments`."""
        if self.l2 == 0:
            return LONG(0)
        d = 16 * EPS * (np.abs(self.X).T @ np.abs(y)) / self.total
        excess = np.maximum(np.abs(self.X.T @ y) / self.total - self.l1, 0)
        return np.sum(excess * d + d * d / 2) / self.l2

    def rounding(self, w, c, y):
        """See `Exact.rounding`."""
        spread = np.sqrt(self.s @ (self.X * self.X) / self.total)
        size = np.abs(self.X) + np.minimum(np.abs(self.means), FAR * spread)
        off = 16 * EPS * (size @ np.abs(w) + np.abs(c))
        second = self.s @ np.max(off, axis=1) ** 2 / 2
        first = np.sum(np.maximum(np.abs(y), np.abs(self.slopes(w, c))) * off)
        # logarithms of probabilities next to 1 are off by the last digit of extended precision
        lost = 16 * float(np.finfo(LONG).eps) * (1 + np.max(np.abs(self.X @ w + c)))
        return TINY + lost + 16 * EPS * abs(self.value(w, c)) + (first + second) / self.total

    def of_intercept(self, w, c):
        """See `Exact.of_intercept`; every class has an intercept of its own."""
        if not self.intercept:
            return LONG(0)
        off = 4 * EPS * (np.abs(c) + np.abs(self.means) @ np.abs(w))
        t = self.X @ w + c
        q = np.exp(t - t.max(axis=1, keepdims=True))
        q = q / q.sum(axis=1, keepdims=True)
        first = np.abs(self.s @ (q - self.hot)) @ off / self.total
        return first + np.sum(off * off) / 2
