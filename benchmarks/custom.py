"""Steps per second with one loss of the library, a mixture of losses, and a loss of one's own; prints a table.

    python benchmarks/custom.py [--repeats 7]

Dual and primal of 5000 samples by 200 features, ten entries a row, with the Huber loss. The three take turns in this
run; "slower" is the ratio of medians to the first.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
import scipy.sparse as sp

import coordwise as cw
from coordwise.starting import start


class Huber(cw.losses.CustomLoss):
    """As losses.Huber(1.0), by formulas that work on numbers and arrays."""

    smoothness = 1.0

    def value(self, t, b):
        """phi(t; b)."""
        r = np.abs(t - b)
        return np.where(r <= 1, r**2 / 2, r - 0.5)

    def derivative(self, t, b):
        """phi'(t; b)."""
        return np.clip(t - b, -1, 1)

    def conjugate(self, y, b):
        """phi*(y; b)."""
        return np.where(np.abs(y) <= 1, y**2 / 2 + b * y, np.inf)

    def prox(self, t, step, b):
        """argmin over u of phi(u; b) + (u - t)^2/(2 step)."""
        r = t - b
        return b + np.where(np.abs(r) <= 1 + step, r / (1 + step), r - np.sign(r) * step)

    def domain(self, b):
        """Of phi*."""
        return -1.0, 1.0


def rate(objective: cw.objectives.Objective, steps: int) -> float:
    """Steps of NU_ACDM per second."""
    run = start(objective, cw.NUACDM().schedule(objective), 0, objective.start(None))
    run.advance(steps=steps // 10)
    begun = time.perf_counter()
    run.advance(steps=steps)
    return steps / (time.perf_counter() - begun)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats
    rng = np.random.default_rng(0)
    A = sp.random_array((5000, 200), density=0.05, format="csr", rng=rng)
    b, codes = rng.standard_normal(5000), rng.integers(0, 2, 5000)
    kinds = {
        "one loss": dict(loss=cw.losses.Huber(1.0)),
        "mixture": dict(loss=[cw.losses.Huber(1.0), cw.losses.Huber(2.0)], loss_codes=codes),
        "custom": dict(loss=Huber()),
    }
    print(f"{'':24} {'steps/s':>12} {'slower':>8}")
    for by, few in (("dual", 20_000), ("primal", 2_000)):
        objectives = {name: getattr(cw.ERM(A, b, lam=1e-3, **kind), by)() for name, kind in kinds.items()}
        rates: dict[str, list[float]] = {name: [] for name in kinds}
        for _ in range(repeats):
            for name, objective in objectives.items():
                rates[name].append(rate(objective, few if name == "custom" else 20 * few))
        medians = {name: statistics.median(found) for name, found in rates.items()}
        for name, found in medians.items():
            print(f"{by + ', ' + name:24} {found:12,.0f} {medians['one loss'] / found:8.1f}")


if __name__ == "__main__":
    main()
