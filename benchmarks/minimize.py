"""Steps per second of `minimize` on compiled functions, over those on the same functions in Python; prints a table.

    python benchmarks/minimize.py [--repeats 7]

Needs a C compiler (cc). Both take turns in this run; ratios are of medians, checks included: every n steps in Python
and every max(n, 1000) of compiled functions ("default"), or every max(n, 1000) of both ("as rare").
"""

from __future__ import annotations

import argparse
import ctypes
import pathlib
import statistics
import subprocess
import tempfile
import time
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy import LowLevelCallable

import coordwise as cw
from coordwise.callables import Functions
from coordwise.minimize import APART
from coordwise.recursions import Recursion

SOURCE = """
#include <math.h>
#include <stdint.h>
typedef struct { const int64_t *starts, *places; const double *values, *c; } data;
double quadratic(int64_t i, const double* x, void* user_data) {
  const data* d = user_data;
  double sum = -d->c[i];
  for (int64_t t = d->starts[i]; t < d->starts[i + 1]; ++t) sum += d->values[t] * x[d->places[t]];
  return sum;
}
double logistic(int64_t i, double x_i, const double* v, void* user_data) {
  const data* d = user_data;
  double sum = x_i;
  for (int64_t t = d->starts[i]; t < d->starts[i + 1]; ++t) sum += d->values[t] / (1 + exp(-v[d->places[t]]));
  return sum;
}
"""
INTEGERS, DOUBLES = ctypes.POINTER(ctypes.c_int64), ctypes.POINTER(ctypes.c_double)


class Data(ctypes.Structure):
    """A matrix by the direction that a step reads, and a vector."""

    _fields_ = (("starts", INTEGERS), ("places", INTEGERS), ("values", DOUBLES), ("c", DOUBLES))

    def __init__(self, A: Any, c: np.ndarray) -> None:
        self.arrays = A.indptr.astype(np.int64), A.indices.astype(np.int64), A.data.astype(float), c
        kinds = INTEGERS, INTEGERS, DOUBLES, DOUBLES
        super().__init__(*(array.ctypes.data_as(kind) for array, kind in zip(self.arrays, kinds, strict=True)))


def library() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        made = pathlib.Path(folder) / "functions.so"
        build = ["cc", "-O2", "-shared", "-fPIC", "-x", "c", "-", "-o", str(made), "-lm"]
        subprocess.run(build, input=SOURCE.encode(), check=True)
        found = ctypes.CDLL(str(made))
    for function in (found.quadratic, found.logistic):
        function.restype = ctypes.c_double
    found.quadratic.argtypes = ctypes.c_int64, DOUBLES, ctypes.c_void_p
    found.logistic.argtypes = ctypes.c_int64, ctypes.c_double, DOUBLES, ctypes.c_void_p
    return found


def given(function: Any, data: Data) -> LowLevelCallable:
    return LowLevelCallable(function, ctypes.cast(ctypes.pointer(data), ctypes.c_void_p))


def rate(problem: dict[str, Any], steps: int, every: int) -> float:
    """Steps per second of the default method with checks, going on where `minimize` would have ended."""
    n = len(problem["L"])
    functions = Functions.of(problem["value"], problem["partial"], None, problem.get("B"), problem.get("reads"), n)
    recursion = Recursion.of(cw.NUACDMns(), problem["L"], None, False)
    begun = time.perf_counter()
    run = functions.descent(recursion, np.zeros(n), 0)
    while run.steps < steps:
        run.advance(every, -1.0)
        x = run.point()
        run.error(x), functions.value(x)
    return run.steps / (time.perf_counter() - begun)


def compare(name: str, fast: dict[str, Any], slow: dict[str, Any], steps: tuple[int, int], repeats: int) -> None:
    """Of the two at their default distances between checks, and of both at that of compiled functions."""
    n = len(fast["L"])
    for label, every in (("default", n), ("as rare", max(n, APART))):
        ours, theirs = [], []
        for _ in range(repeats):
            ours.append(rate(fast, steps[0], max(n, APART)))
            theirs.append(rate(slow, steps[1], every))
        one, other = statistics.median(ours), statistics.median(theirs)
        print(f"{name + ', checks ' + label:60} {one:12,.0f} {other:10,.0f} {one / other:7.0f}", flush=True)
        if n >= APART:
            return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats
    lib, rng = library(), np.random.default_rng(0)
    print(f"{'steps per second':60} {'compiled':>12} {'Python':>10} {'ratio':>7}")

    H, c = np.array([[2.0, 0.5], [0.5, 30.0]]), np.array([1.0, 3.0])
    data = Data(sp.csr_array(H), c)
    slow = dict(value=lambda x: x @ H @ x / 2 - c @ x, partial=lambda i, x: H[i] @ x - c[i], L=np.diag(H).copy())
    fast = slow | dict(partial=given(lib.quadratic, data))
    compare("example of the docstring, n = 2", fast, slow, (2_000_000, 20_000), repeats)

    n = 2000
    T = sp.diags_array([-1.0, 2.5, -1.0], offsets=[-1, 0, 1], shape=(n, n)).tocsr()
    ones, dense = np.ones(n), np.full(n, 2.5)
    chain = Data(T, ones)
    rows = given(lib.quadratic, chain)

    def at(i: int, x: np.ndarray) -> float:
        return 2.5 * x[i] - (x[i - 1] if i > 0 else 0.0) - (x[i + 1] if i + 1 < n else 0.0) - 1.0

    def energy(x: np.ndarray) -> float:
        return x @ (T @ x) / 2 - x.sum()

    slow = dict(value=energy, partial=at, L=dense)
    fast = slow | dict(partial=rows)
    compare("tridiagonal, n = 2000, all of x", fast, slow, (400_000, 20_000), repeats)
    compare("tridiagonal, n = 2000, reads=...", fast | dict(reads=T), slow, (4_000_000, 20_000), repeats)

    B = sp.random_array((5000, n), density=0.002, format="csc", rng=rng)
    wanted = B.power(2).sum(0) / 4 + 1
    columns = Data(B, np.zeros(n))
    image = given(lib.logistic, columns)

    def slope(i: int, x_i: float, v: np.ndarray) -> float:
        part = slice(B.indptr[i], B.indptr[i + 1])
        return x_i + B.data[part] @ (1 / (1 + np.exp(-v[B.indices[part]])))

    def loss(x: np.ndarray) -> float:
        return np.logaddexp(0, B @ x).sum() + x @ x / 2

    slow = dict(value=loss, partial=slope, L=wanted, B=B)
    fast = slow | dict(partial=image)
    compare("logistic, n = 2000, 10 entries a column, B=...", fast, slow, (1_000_000, 8_000), repeats)


if __name__ == "__main__":
    main()
