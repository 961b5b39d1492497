"""Reading curves: when they are down for good, and how many times sooner than others."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordwise.experiments import charts, curves
from coordwise.experiments.curves import Curve
from coordwise.experiments.units import Finding


def falling(rate, end=10.0, points=41, start=1.0):
    x = np.linspace(0, end, points)
    return Curve(x, start * np.exp(-rate * x))


def chart(lines, *, n=100, gap=1e-16, dual=-1.0, per_pass=None):
    """A finding with one or several curves per label; `per_pass` is iterations per pass by label, n by default."""
    columns = {name: [] for name in charts.COLUMNS}
    for label, found in lines.items():
        for seed, curve in enumerate([found] if isinstance(found, Curve) else found):
            count = len(curve.x)
            columns["method"] += [label] * count
            columns["seed"] += [seed] * count
            columns["iterations"] += np.round(curve.x * (per_pass or {}).get(label, n)).astype(int).tolist()
            columns["passes"] += curve.x.tolist()
            columns["dual"] += (curve.distance + dual).tolist()
            columns["primal"] += (3 * curve.distance - dual).tolist()
            columns["dual_distance"] += curve.distance.tolist()
            columns["primal_distance"] += (3 * curve.distance).tolist()
    minimum = {"dual": dual, "primal": -dual, "gap": gap}
    return Finding(columns, {"n": n, "minimum": minimum, "lines": {label: {} for label in lines}})


@pytest.mark.parametrize("rate", [0.1, 1.0, 2.5])
def test_reach_of_an_exponential(rate):
    level = math.exp(-0.7)
    assert curves.reach([falling(rate)], level) == pytest.approx(0.7 / rate, rel=1e-12)
    assert curves.reach([falling(rate, points=3)], level) == pytest.approx(0.7 / rate, rel=1e-12)


def test_reach_is_the_median_over_seeds():
    several = [falling(rate) for rate in (0.5, 1.0, 4.0)]
    assert curves.reach(several, math.exp(-1)) == pytest.approx(1.0)
    assert curves.reach([falling(0.01), falling(0.02), falling(1.0)], math.exp(-1)) == math.inf
    assert curves.reach([falling(0.01), falling(1.0), falling(1.0)], math.exp(-1)) == pytest.approx(1.0)


def test_reach_counts_from_where_the_curve_stays_down():
    x = np.arange(6.0)
    curve = Curve(x, np.array([1.0, 1e-3, 1.0, 1e-2, 1e-4, 1e-4]))
    assert curves.reach([curve], 1e-1) == pytest.approx(2.5)
    assert curves.reach([curve], 1.0) == 0.0
    assert curves.reach([curve], 1e-5) == math.inf
    rising = Curve(x, np.array([1.0, 1e-3, 1e-3, 1e-3, 1e-3, 1.0]))
    assert curves.reach([rising], 1e-1) == math.inf


@settings(deadline=None)
@given(st.lists(st.floats(1e-9, 1e3), min_size=2, max_size=20), st.floats(1e-9, 1e3), st.floats(1, 10))
def test_reach_holds_from_there_on_and_falls_with_the_level(distance, level, factor):
    curve = Curve(np.arange(float(len(distance))), np.array(distance))
    at = curves.reach([curve], level)
    assert np.all(curve.distance[curve.x >= at] <= level * (1 + 1e-9))
    assert curves.reach([curve], factor * level) <= at
    assert math.isinf(at) == (distance[-1] > level)


def test_the_common_level_is_the_highest_end():
    found = chart({"slow": [falling(0.1), falling(0.2)], "fast": falling(1.0)})
    assert curves.level_of(found, ("slow", "fast")) == pytest.approx(math.exp(-1))
    assert curves.level_of(found, ["fast"]) == pytest.approx(math.exp(-10))
    assert curves.level_of(found, ["fast"], "primal") == pytest.approx(3 * math.exp(-10))
    assert math.isfinite(curves.reach(curves.curves_of(found, "slow"), curves.level_of(found, ("slow", "fast"))))


def test_the_common_level_stays_ten_times_above_the_floor():
    found = chart({"a": falling(5.0), "b": falling(0.1)}, gap=1e-6)
    assert curves.floor_of(found) == pytest.approx(1e-5)
    assert curves.level_of(found, ["a"]) == pytest.approx(1e-4)
    assert curves.level_of(found, ["a", "b"]) == pytest.approx(math.exp(-1))


def test_depth_is_the_level_as_a_share_of_the_start():
    found = chart({"a": falling(0.1, start=5.0), "b": falling(1.0, start=5.0)})
    assert curves.depth(found, ("a", "b")) == pytest.approx(math.exp(-1))
    assert curves.depth(found, ("b",), "primal") == pytest.approx(math.exp(-10))
    assert curves.depth(chart({"a": falling(5.0, start=2.0)}, gap=1e-6), ["a"]) == pytest.approx(5e-5)


def test_speedup_of_exponentials_is_the_ratio_of_their_rates():
    found = chart({"a": falling(0.4), "b": falling(1.0)}, per_pass={"a": 200, "b": 50})
    assert curves.speedup(found, "a", "b", "passes") == pytest.approx(2.5)
    assert curves.speedup(found, "b", "a", "passes") == pytest.approx(0.4)
    assert curves.speedup(found, "a", "b", "passes", "primal") == pytest.approx(2.5)
    assert curves.speedup(found, "a", "b", "iterations") == pytest.approx(4 * 2.5)  # a makes four times as many a pass


def test_speedup_of_noisy_curves():
    rng = np.random.default_rng(0)

    def noisy(rate):
        curve = falling(rate, points=201)
        return Curve(curve.x, curve.distance * np.exp(0.2 * rng.standard_normal(201)))

    found = chart({"a": [noisy(0.5) for _ in range(5)], "b": [noisy(1.0) for _ in range(5)]})
    assert curves.speedup(found, "a", "b", "passes") == pytest.approx(2.0, rel=0.1)


def test_speedup_over_what_never_moved_is_not_a_number():
    still = Curve(np.arange(3.0), np.ones(3))
    assert math.isnan(curves.speedup(chart({"a": still, "b": still}), "a", "b", "passes"))


@pytest.mark.parametrize(("slow", "fast"), [("still", "up"), ("up", "still"), ("down", "up"), ("up", "down")])
def test_speedup_at_a_level_that_needs_no_run_is_not_a_number(slow, fast):
    """Where a method ends above its start, the level both come down to is one that the other was never above."""
    x = np.arange(4.0)
    lines = {
        "still": Curve(x, np.ones(4)),
        "down": Curve(x, np.exp(-x)),
        "up": Curve(x, np.array([1.0, 3.0, 2.5, 2.0])),
    }
    assert math.isnan(curves.speedup(chart(lines), slow, fast, "passes"))


def test_distances_end_at_the_floor():
    found = chart({"a": falling(5.0)}, gap=1e-6, dual=-2.0)
    assert curves.floor_of(found) == pytest.approx(1e-5)
    (curve,) = curves.curves_of(found, "a")
    assert curve.distance.min() == pytest.approx(1e-5)
    assert curve.distance[0] == 1.0
    assert curves.floor_of(chart({"a": falling(1.0)}, gap=0.0, dual=-2.0)) == pytest.approx(4e-14)


def test_curves_are_split_by_seed_and_counted_in_passes_or_n_iterations():
    found = chart({"a": [falling(1.0), falling(2.0)], "b": falling(3.0)}, n=100, per_pass={"a": 300})
    first, second = curves.curves_of(found, "a", "iterations")
    np.testing.assert_allclose(first.x, 3 * falling(1.0).x)
    np.testing.assert_allclose(second.distance, falling(2.0).distance)
    assert len(curves.curves_of(found, "b")) == 1
    assert curves.labels_of(found) == ["a", "b"]


def test_fall_of_an_exponential():
    found = chart({"a": [falling(0.5), falling(1.0), falling(3.0, end=4.0)]}, n=100, per_pass={"a": 200})
    fall, steps = curves.fall(found, "a")
    assert fall == pytest.approx(10.0, rel=1e-12)  # of 5, 10 and 12
    assert steps == pytest.approx(2000)  # of 2000, 2000 and 800
    assert curves.fall(chart({"a": Curve(np.arange(3.0), np.ones(3))}), "a") == (0.0, 0.0)


def test_fall_stops_where_the_floor_begins():
    found = chart({"a": falling(2.0, points=101)}, n=100, gap=1e-6)
    fall, steps = curves.fall(found, "a")
    assert fall == pytest.approx(math.log(1e5), rel=1e-12)
    assert steps == pytest.approx(100 * math.log(1e5) / 2, abs=10)  # ten iterations from one record to the next


def test_fall_ends_at_the_lowest_point():
    rising = Curve(np.arange(4.0), np.array([1.0, 1e-2, 1e-3, 0.1]))
    assert curves.fall(chart({"a": rising}), "a") == pytest.approx((math.log(1e3), 200))


def test_band_is_median_and_range_on_the_points_of_the_first():
    several = [falling(1.0, points=11), falling(3.0, points=31), falling(2.0, points=7)]
    found = curves.band(several)
    np.testing.assert_array_equal(found.x, several[0].x)
    np.testing.assert_allclose(found.median, np.exp(-2 * found.x))
    np.testing.assert_allclose(found.low, np.exp(-3 * found.x))
    np.testing.assert_allclose(found.high, np.exp(-found.x))
