"""Random linear systems and least-squares problems: problem `seed` is the same on every machine."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from coordwise import linalg

FUNCTIONS = {
    "solve": linalg.solve,
    "lstsq": linalg.lstsq,
    "spd_solve": linalg.spd_solve,
    "nuacdm": linalg.nuacdm,
    "acdm": linalg.acdm,
    "kaczmarz": linalg.kaczmarz,
}
METHODS = {
    "solve": ("auto", "auto", "auto", "cgls", "direct", "kaczmarz", "nuacdm", "acdm"),
    "lstsq": ("auto", "auto", "columns", "rows", "cgls", "direct"),
    "spd_solve": ("auto", "nuacdm", "acdm", "gauss_seidel", "cg"),
}
MOST = 100  # equations, and unknowns


@dataclass
class Case:
    """A function of coordwise.linalg and its arguments."""

    name: str
    A: Any
    b: Any
    options: dict[str, Any]

    def __str__(self):
        kind = type(self.A).__name__ if sp.issparse(self.A) else "dense"
        some = {k: v if np.ndim(v) == 0 else f"array {np.shape(v)}" for k, v in self.options.items()}
        return f"{self.name}(A {self.A.shape} {self.A.dtype} {kind}, b {self.b.shape}, {some})"


def chance(rng, share):
    return rng.random() < share


def length(rng):
    return int(np.exp(rng.uniform(0, np.log(MOST + 1))))


def case(seed):
    """Problem number `seed`."""
    rng = np.random.default_rng([2, seed])
    name = list(FUNCTIONS)[seed % len(FUNCTIONS)]
    A = definite(rng) if name == "spd_solve" else rectangular(rng)
    scale = 10 ** (rng.uniform(-38, 38) if chance(rng, 0.15) else rng.uniform(-3, 3) if chance(rng, 0.3) else 0.0)
    b = right_side(rng, A)
    x0 = start(rng, A, b)
    A = stored(rng, A * scale)
    if chance(rng, 0.12):
        b = b * 10 ** rng.uniform(-38, 38)
    elif chance(rng, 0.7):
        b, x0 = b * scale, x0  # the same solution
    return Case(name, A, b, options(rng, name, x0, b))


def rectangular(rng):
    """A of full rank or not, with zero or repeated rows and columns, of any scaling."""
    m, n = length(rng), length(rng)
    if chance(rng, 0.2):
        n = m
    A = rng.standard_normal((m, n))
    if chance(rng, 0.2):
        rank = int(rng.integers(1, min(m, n) + 1))
        A = rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n))
    if chance(rng, 0.15):  # a bad condition
        k = min(m, n)
        u, _, v = np.linalg.svd(A, full_matrices=False)
        A = u * np.logspace(0, -rng.uniform(0, 18), k) @ v
    if chance(rng, 0.3):
        A[rng.random((m, n)) > 10 ** rng.uniform(-2, 0)] = 0.0
    if chance(rng, 0.2):
        A = A * 10 ** rng.uniform(-3, 3, (m, 1))
    if chance(rng, 0.2):
        A = A * 10 ** rng.uniform(-4, 4, n)
    if chance(rng, 0.1):
        A[rng.integers(0, m, m // 3)] = 0.0
    if chance(rng, 0.1):
        A[:, rng.integers(n)] = 0.0
    if chance(rng, 0.1):
        A[rng.integers(0, m, m // 2)] = A[rng.integers(0, m, m // 2)] * rng.choice([1.0, -2.0])
    return A


def definite(rng):
    """Symmetric positive definite up to rounding, or a graph Laplacian, which is singular."""
    n = length(rng)
    if chance(rng, 0.15) and n > 1:
        W = np.triu(rng.random((n, n)) < 0.3, 1) * rng.random((n, n))
        W[np.arange(n - 1), np.arange(1, n)] += 0.5
        W = W + W.T
        return np.diag(W.sum(axis=1)) - W
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    A = Q * 10 ** rng.uniform(-rng.choice([1.0, 4.0, 10.0]), 0, n) @ Q.T
    if chance(rng, 0.3):
        size = 10 ** rng.uniform(-4, 4, n)
        A = size[:, None] * A * size
    return (A + A.T) / 2


def right_side(rng, A):
    m, n = A.shape
    several = (int(rng.integers(1, 4)),) if chance(rng, 0.2) else ()
    b = A @ rng.standard_normal((n, *several))
    if chance(rng, 0.35):  # inconsistent where A has fewer columns than rows
        b = b + 10 ** rng.uniform(-12, 2) * (np.linalg.norm(b) or 1.0) * rng.standard_normal(b.shape) / np.sqrt(m)
    if chance(rng, 0.05):
        b = np.zeros_like(b)
    if several and chance(rng, 0.2):
        b[:, 0] = 0.0
    return b


def start(rng, A, b):
    if chance(rng, 0.75):
        return None
    x0 = rng.standard_normal((A.shape[1], *b.shape[1:])) * 10 ** rng.uniform(-3, 3)
    if chance(rng, 0.3):  # near a solution
        x0 = np.linalg.lstsq(A, b, rcond=None)[0] + 1e-8 * x0
    return x0


def stored(rng, A):
    if chance(rng, 0.15) and np.max(np.abs(A)) < 1e37:
        A = A.astype(np.float32)
    kind = rng.choice(["C", "F", "csr", "csc"], p=[0.45, 0.15, 0.25, 0.15])
    if kind in "CF":
        return np.array(A, order=kind)
    return {"csr": sp.csr_array, "csc": sp.csc_array}[kind](A)


def options(rng, name, x0, b):
    given = {"random_state": int(rng.integers(1000)), "rtol": 10 ** rng.uniform(-14, -2)}
    if chance(rng, 0.05):
        given["rtol"] = float(rng.choice([0.0, 1e-17, 0.9, 2.0]))
    if chance(rng, 0.1):
        given["atol"] = float(np.linalg.norm(b) * 10 ** rng.uniform(-12, 0))
    given["maxiter"] = int(rng.choice([1, 2, 7, 50, 300], p=[0.1, 0.1, 0.1, 0.3, 0.4]))
    if x0 is not None:
        given["x0"] = x0
    if name in METHODS:
        given["method"] = str(rng.choice(METHODS[name]))
    if name == "lstsq" and chance(rng, 0.3):
        given["damp"] = 10 ** rng.uniform(-8, 4)
    if name in ("nuacdm", "acdm", "kaczmarz") and chance(rng, 0.4):
        given["scaling"] = "rows"
    if name in ("nuacdm", "acdm", "spd_solve") and chance(rng, 0.2):
        given["sigma"] = "adaptive"
    return given
