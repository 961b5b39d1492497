"""The choice among solvers on synthetic curves: its regret is what the docstring derives."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from coordwise.choose.chooser import HOPE, Choice, rate_left

FOLDS = math.log(1e6)


@dataclass(eq=False)
class Curve:
    """A solver whose error falls along a curve: `errors[i]` after i + 1 looks that cost `unit` each."""

    name: str
    sure: bool
    unit: float
    errors: np.ndarray
    theory: float
    looks: int = 0

    @property
    def total(self):
        """What it costs alone."""
        return self.unit * (1 + int(np.argmax(self.errors <= 1e-6)))


def ragged(rng, unit, theory_off):
    """An iterative solver with plateaus, slow and fast stretches, and a forecast that is off."""
    rates = rng.exponential(1.0, 4000) * rng.choice([0.0, 0.1, 1.0, 3.0], 40, p=[0.2, 0.3, 0.3, 0.2]).repeat(100)
    errors = np.exp(-np.cumsum(rates) * rng.uniform(0.002, 0.2))
    errors[-1] = 1e-7
    curve = Curve("iterative", False, unit, errors, 0.0)
    curve.theory = curve.total * theory_off
    return curve


def spent(able):
    """What the choice spends until one of the solvers is done."""
    cost, error, looks = 0.0, 1.0, {one.name: [] for one in able}

    def folds():
        return max(math.log(error / 1e-6), 0.0)

    def theory(one):
        return one.theory if one.sure else one.theory * folds() / FOLDS

    def seen(name):
        last = looks[name][-3:]
        return rate_left([c for c, _ in last], [e for _, e in last], [[e] for _, e in last], folds())

    choice = Choice(theory, seen)
    while error > 1e-6:
        one = choice.next(able, cost)
        cost += one.unit
        error = min(error, float(one.errors[one.looks]))
        one.looks += 1
        looks[one.name].append((cost, error))
    return cost


@pytest.mark.parametrize("seed", range(200))
def test_with_a_sure_thing_the_regret_is_at_most_3(seed):
    rng = np.random.default_rng(seed)
    probe = ragged(rng, 1.0, rng.uniform(0.1, HOPE))
    B = probe.total * 10 ** rng.uniform(-1, 1)
    steps = int(rng.integers(1, 9))
    sure = Curve("sure", True, B / steps, np.append(np.full(steps - 1, 1.0), 1e-7), B)
    assert spent([probe, sure]) <= 3 * min(B, probe.total) + 3 * probe.unit


@pytest.mark.parametrize("seed", range(50))
def test_a_hopeless_forecast_is_not_tried(seed):
    rng = np.random.default_rng(seed)
    probe = ragged(rng, 1.0, 1.0)
    B = probe.total / (HOPE * 1.01)
    sure = Curve("sure", True, B, np.array([1e-7]), B)
    assert spent([probe, sure]) == B


def test_a_solver_that_stands_still_is_left_for_the_other():
    good = Curve("good", False, 1.0, np.exp(-np.arange(1, 400) / 10), 400.0)
    stuck = Curve("stuck", False, 1.0, np.full(10**5, 0.5), 100.0)
    assert good.total < spent([good, stuck]) <= 10 * good.total


def test_rates_of_the_error_or_of_the_objective():
    assert rate_left([1, 2], [1, 0.5], [[1], [1]], 3.0) is None
    assert rate_left([1, 2, 3], [1, math.exp(-1), math.exp(-2)], [[1]] * 3, 5.0) == pytest.approx(5.0)
    assert rate_left([1, 2, 3], [1, 1, 1], [[1]] * 3, 5.0) == math.inf
    values = [[math.exp(-k)] for k in range(3)]  # the error stands still while the objective falls
    assert rate_left([1, 2, 3], [1, 1, 1], values, 5.0) == pytest.approx(5.0)
