"""What tests of `minimize` share: problems of 60 variables with known solutions, and every method that takes them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

import coordwise as cw

N = 60
METHODS = {
    "nu_acdm": cw.NUACDM(),
    "nu_acdm, beta 1/2": cw.NUACDM(beta=0.5),
    "nu_acdm, beta 1": cw.NUACDM(beta=1.0),
    "nu_acdm_ns": cw.NUACDMns(),
    "nu_acdm_ns, beta 1/2": cw.NUACDMns(beta=0.5),
    "acdm": cw.ACDM(),
    "acdm, published": cw.ACDM(constants="published"),
    "acdm, tight": cw.ACDM(constants="tight"),
    "acdm_ns": cw.ACDMns(),
    "apcg": cw.APCG(),
    "approx": cw.APPROX(),
    "approx, published": cw.APPROX(start="published"),
    "rcdm": cw.RCDM(),
    "rcdm, beta 1/2": cw.RCDM(beta=0.5),
}
NEED_SIGMA = tuple(name for name in METHODS if name.split(",")[0] in ("nu_acdm", "acdm", "apcg"))


@dataclass(frozen=True)
class Quadratic:
    """f(x) = <x, Hx>/2 - <c, x>, and psi by its proximal step; the solution is known by construction."""

    H: np.ndarray
    c: np.ndarray
    solution: np.ndarray
    psi: object = None
    prox: object = None

    @cached_property
    def L(self):
        return np.diag(self.H).copy()

    def smooth(self, x):
        return x @ self.H @ x / 2 - self.c @ x

    def value(self, x):
        return self.smooth(x) + (0.0 if self.psi is None else self.psi(x))

    def partial(self, i, x):
        return self.H[i] @ x - self.c[i]

    @cached_property
    def optimum(self):
        return self.value(self.solution)

    def sigma(self, method):
        """Strong convexity of f in the norm that a method works in, from its definition."""
        beta = 1.0 if isinstance(method, cw.APCG) else getattr(method, "beta", 0.0)
        root = self.L ** (-beta / 2)
        return float(np.linalg.eigvalsh(root[:, None] * self.H * root)[0])

    def error(self, x):
        """The certificate, written with full vectors."""
        g = self.H @ x - self.c
        if self.prox is None:
            return np.sqrt(np.sum(g**2 / self.L))
        moved = np.array([self.prox(i, x[i] - g[i] / self.L[i], 1 / self.L[i]) for i in range(len(x))])
        return np.sqrt(np.sum(self.L * (x - moved) ** 2))


def matrix(n=N, seed=0, spread=1.0):
    """Positive definite, with diagonal entries over `spread` orders of magnitude."""
    rng = np.random.default_rng(seed)
    half = rng.standard_normal((n, n)) / np.sqrt(n)
    root = 10 ** rng.uniform(-spread / 2, spread / 2, n)
    return root[:, None] * (half @ half.T + 0.3 * np.eye(n)) * root


def free():
    """Without psi: Hx = c."""
    rng = np.random.default_rng(1)
    H, x = matrix(), rng.standard_normal(N)
    return Quadratic(H, H @ x, x)


LAM = 0.3


def soft(i, t, theta):
    return np.copysign(max(abs(t) - LAM * theta, 0.0), t)


def sparse():
    """psi = LAM |x|_1: c is chosen so that 0 is in the subdifferential at a sparse x."""
    rng = np.random.default_rng(2)
    H, x = matrix(), rng.standard_normal(N)
    x[rng.permutation(N)[: N // 2]] = 0
    slope = np.where(x != 0, np.sign(x), rng.uniform(-0.9, 0.9, N))
    return Quadratic(H, H @ x + LAM * slope, x, lambda v: LAM * np.abs(v).sum(), soft)


def clip(i, t, theta):
    return min(max(t, -0.5), 1.0)


def boxed():
    """psi = indicator of [-1/2, 1]: c is chosen so that the multipliers at the bounds have the right sign."""
    rng = np.random.default_rng(3)
    H, x = matrix(), np.clip(rng.standard_normal(N), -0.5, 1.0)
    multiplier = rng.uniform(0.1, 1, N) * np.where(x == 1.0, 1.0, np.where(x == -0.5, -1.0, 0.0))

    def psi(v):
        return 0.0 if np.all((v >= -0.5) & (v <= 1.0)) else np.inf

    return Quadratic(H, H @ x + multiplier, x, psi, clip)


PROBLEMS = {"free": free(), "l1": sparse(), "box": boxed()}


def run(problem, method="nu_acdm_ns", **options):
    options = dict(partial=problem.partial, x0=np.zeros(len(problem.L)), prox=problem.prox) | options
    return cw.minimize(problem.value, options.pop("partial"), problem.L, options.pop("x0"), method=method, **options)
