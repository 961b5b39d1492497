"""The experiments: reading curves, certified minima, the units behind tables and charts, and their storage."""

import itertools
import json
import math
import os
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import unequal_rows
from hypothesis import given, settings
from hypothesis import strategies as st

import coordwise as cw
from coordwise import datasets
from coordwise.experiments import EXPERIMENTS, Settings, charts, curves, minima, page, paper, store, systems, tables
from coordwise.experiments.curves import Curve
from coordwise.experiments.run import experiments_named, reproduce
from coordwise.experiments.store import Store, write_whole
from coordwise.experiments.units import Finding, Interrupted, Unit


class Watch:
    """Lets everything go on, and counts."""

    def __init__(self, stopped=False):
        self.stopped, self.entries = stopped, 0.0

    def add(self, entries):
        self.entries += entries


def column(finding, name, **where):
    """One column of a finding, restricted to the rows where other columns have given values."""
    rows = zip(finding.columns[name], *(finding.columns[other] for other in where), strict=True)
    return np.array([value for value, *others in rows if others == list(where.values())])


SMALL = Settings(
    seeds=(0, 1),
    accuracy=1e-3,
    most_passes=12,
    most_entries=1e8,
    passes=8,
    sigmas=4,
    reference=1e-9,
    records=12,
    quick=True,
)


# Curves


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


# Certified minima

SHAPES = {"tall": (120, 12), "wide": (20, 45), "square": (30, 30)}


def problem_of(shape, loss, seed=0, lam=0.05):
    n, d = SHAPES[shape]
    A = sp.csr_array(unequal_rows(n, d, seed, density=0.5, spread=1.0))
    b = np.random.default_rng(seed + 1).standard_normal(n)
    return cw.ERM(A, b, loss=loss, penalty="l2", lam=lam)


def check_certificate(found, y, problem, tol):
    """What `Certified` says, from the problem alone; returns the weights."""
    w = minima._newton(problem, tol, Watch())[0] if found.how.startswith("Newton") else problem.primal_point(y)
    rounding = 1e-14 * problem.value(np.zeros(problem.n_features))
    assert 0 < found.gap <= tol * 1e14 * rounding
    assert found.primal == pytest.approx(problem.value(w), abs=rounding)
    assert found.dual == pytest.approx(problem.dual_value(y), abs=rounding)
    assert found.gap == pytest.approx(problem.gap(w, y), abs=rounding)
    return w


@pytest.mark.parametrize("shape", SHAPES)
def test_minimum_of_ridge_regression_against_a_direct_solve(shape):
    problem = problem_of(shape, "squared")
    A, b, n = problem.A.toarray(), problem.b[:, 0], problem.n_samples
    found, y = minima.certified_minimum(problem.dual(), 1e-12, Watch())
    best = np.linalg.solve(A.T @ A / n + 0.05 * np.eye(problem.n_features), A.T @ b / n)
    least = np.mean((A @ best - b) ** 2) / 2 + 0.05 / 2 * best @ best
    w = check_certificate(found, y, problem, 1e-12)
    np.testing.assert_allclose(w, best, atol=1e-5)
    assert found.primal == pytest.approx(least, rel=1e-11)
    assert found.dual == pytest.approx(-least, rel=1e-11)
    assert found.how.startswith("Newton" if shape == "tall" else "nu_acdm")


@pytest.mark.parametrize(
    ("lam", "shape"),
    [(0.5, "tall"), pytest.param(1e-3, "tall"), *itertools.product([0.5, 1e-3], ["wide", "square"])],
)
def test_minimum_of_l2l1_regression_against_solve(shape, lam):
    problem = problem_of(shape, "l2l1", lam=lam)
    found, y = minima.certified_minimum(problem.dual(), 1e-9, Watch())
    check_certificate(found, y, problem, 1e-9)
    other = cw.solve(problem.dual(), tol=1e-10, max_passes=20_000, random_state=5)
    assert other.converged
    assert abs(found.dual - other.value) <= found.gap + other.gap
    assert abs(found.primal - other.primal) <= found.gap + other.gap
    assert found.how.startswith("Newton") == (shape == "tall")


def test_newton_certifies_far_below_what_is_drawn():
    problem = problem_of("tall", "l2l1", lam=1e-4)
    found, _ = minima.certified_minimum(problem.dual(), 1e-12, Watch())
    assert found.how.startswith("Newton")
    assert found.gap <= 1e-11 * problem.value(np.zeros(12))


@pytest.mark.parametrize("shape", ["tall", "wide"])  # Newton's method, and `solve`
@pytest.mark.parametrize("loss", ["squared", "l2l1"])
def test_a_minimum_is_given_up_when_asked(loss, shape):
    with pytest.raises(Interrupted):
        minima.certified_minimum(problem_of(shape, loss).dual(), 1e-9, Watch(stopped=True))


@pytest.mark.parametrize("shape", SHAPES)
def test_minimum_of_the_smoothed_lasso(shape):
    n, d = SHAPES[shape]
    A = sp.csr_array(unequal_rows(n, d, 3, density=0.5, spread=1.0))
    b = np.random.default_rng(4).standard_normal(n)
    lasso = charts._lasso(SimpleNamespace(A=A, b=b), 0.02)
    l1 = np.abs(A.T @ b).max() / n / 10
    smoothed = cw.ERM(A, b, loss="squared", penalty="elastic_net", lam=l1 + 0.02, l1_ratio=l1 / (l1 + 0.02))
    found, y = minima.certified_minimum(lasso, 1e-11, Watch())
    check_certificate(found, y, smoothed, 1e-11)
    other = cw.solve(smoothed.primal(), tol=1e-12, max_passes=20_000)
    assert found.primal == pytest.approx(float(other.value), abs=2e-11 * float(other.scale))
    assert lasso.smoothing_error == pytest.approx(0.01 * (np.mean(b**2) / 2 / l1) ** 2)


def test_the_lasso_starts_to_be_zero_at_ten_times_its_lambda():
    rng = np.random.default_rng(0)
    data = SimpleNamespace(A=sp.csr_array(rng.standard_normal((40, 8))), b=rng.standard_normal(40))
    lam = charts.lasso_lambda(data)
    zero = cw.solve(cw.ERM(data.A, data.b, penalty="l1", lam=10.001 * lam).primal(), tol=1e-10)
    some = cw.solve(cw.ERM(data.A, data.b, penalty="l1", lam=9.9 * lam).primal(), tol=1e-10)
    assert not zero.w.any()
    assert some.w.any()


# Tables


def library_of(**found):
    return found.__getitem__


@pytest.mark.parametrize("name", paper.DATASETS)
def test_table_2_on_stand_ins(name):
    data = datasets.stand_in(name)
    columns = tables.Table2(name).run(library_of(**{name: data}), SMALL, Watch()).columns
    assert columns["lambda"] == list(paper.LAMBDAS[name])
    np.testing.assert_allclose(columns["computed"], columns["printed"], rtol=0.01)


@pytest.mark.parametrize("name", paper.DATASETS)
def test_table_2_on_the_papers_data(name, paper_dataset):
    A, _ = paper_dataset(name)
    columns = tables.Table2(name).run(library_of(**{name: SimpleNamespace(A=A)}), SMALL, Watch()).columns
    assert columns["printed"] == [paper.TABLE_2[name, lam] for lam in paper.LAMBDAS[name]]
    assert [round(value, 5) for value in columns["computed"]] == columns["printed"]


def two_norms(k, m=300):
    """sqrt(m sum L)/sum sqrt(L) for k rows with L = 100 among m with L = 1."""
    return math.sqrt(m * (100 * k + m - k)) / (10 * k + m - k)


def test_table_3():
    columns = tables.Table3().run(library_of(), SMALL, Watch()).columns
    for k, share in enumerate(paper.SHARES):
        printed, computed = columns["printed"][k], columns["computed"][k]
        assert f"{computed:.{len(printed.partition('.')[2])}f}" == printed == paper.TABLE_3[share]
        assert computed == pytest.approx(two_norms(columns["long_rows"][k]), rel=1e-12)
        assert columns["exact_share"][k] == pytest.approx(two_norms(round(300 * share)), rel=1e-12)
        assert columns["q05"][k] <= columns["median"][k] <= columns["q95"][k]
        assert columns["q05"][k] <= columns["exact_share"][k] <= columns["q95"][k]
        assert columns["median"][k] == pytest.approx(columns["exact_share"][k], rel=0.01)
        assert columns["q05"][k] <= computed <= columns["q95"][k]
    again = tables.Table3().run(library_of(), SMALL, Watch()).columns
    assert again == columns


def test_the_long_rows_of_table_3_are_the_only_ones_that_print_its_digits():
    for share, printed in paper.TABLE_3.items():
        digits = len(printed.partition(".")[2])
        near = [k for k in range(301) if abs(k / 300 - share) <= 0.1 and f"{two_norms(k):.{digits}f}" == printed]
        assert paper.LONG_ROWS[share] in near
        if share < 1:
            assert near == [paper.LONG_ROWS[share]]


BETAS = (0.0, 0.5, 1.0)


def hand_bounds(L, n, epsilon, sigma, square):
    """Table 1, cell by cell: `sigma` and `square` give strong convexity and |y*|^2 in the norm L_beta."""
    log, found = math.log(1 / epsilon[0]), {}
    for beta in BETAS:
        full, half = np.sum(L ** (1 - beta)), np.sum(L ** ((1 - beta) / 2))
        s, R2, eps = sigma(beta), square(beta), epsilon[1]
        found["rcdm", beta, True] = full / s * log
        found["acdm", beta, True] = math.sqrt(n * full) / math.sqrt(s) * log
        found["nu_acdm", beta, True] = half / math.sqrt(s) * log
        found["rcdm", beta, False] = full * R2 / eps
        found["acdm", beta, False] = math.sqrt(n * full * R2 / eps) * math.log(1 / eps)
        found["nu_acdm", beta, False] = half * math.sqrt(R2 / eps)
    found["apcg", 1.0, True] = n / math.sqrt(sigma(1.0)) * log
    found["apcg", 1.0, False] = n * math.sqrt(square(1.0) / epsilon[1])
    return found


def test_bounds_of_table_1():
    lam, share = 0.02, 1e-3
    n, d = 60, 12
    A = sp.csr_array(unequal_rows(n, d, 7, spread=1.0))
    data = SimpleNamespace(A=A, b=np.sign(np.random.default_rng(0).standard_normal(n)))
    L = 1 / n + np.sum(A.toarray() ** 2, 1) / (lam * n**2)  # of both duals: their conjugates have curvature 1/n at most
    for strongly_convex, family in ((True, "ridge"), (False, "l2l1")):
        objective = charts.FAMILIES[family].objective(data, lam)
        minimum, y = minima.certified_minimum(objective, 1e-10, Watch())
        expected = hand_bounds(
            L,
            n,
            (share, share * -minimum.dual),  # D(0) = 0
            lambda beta: float(np.min(1 / n / L**beta)),
            lambda beta, y=y: float(np.sum(L**beta * y**2)),
        )
        cells = tables._cells(0.5, strongly_convex)
        assert {(name, beta, strongly_convex) for name, beta, _ in cells} == {
            key for key in expected if key[2] == strongly_convex
        }
        for name, beta, _ in cells:
            got = tables.bounds(objective, name, beta, strongly_convex, share, y, minimum.dual)
            assert got == pytest.approx(expected[name, beta, strongly_convex], rel=1e-9), (name, beta)


def test_table_1_measures_what_it_says():
    data = datasets.stand_in("w8a", scale=0.01)
    unit = tables.Table1(lam=0.1)
    settings = Settings(**(SMALL.spec() | {"passes": 12, "quick": False}))  # with 12 records: one a pass
    found = unit.run(library_of(w8a=data), settings, Watch())
    objective = charts._ridge(data, 0.1)
    least = found.facts["minima"]["ridge"]["dual"]
    cells = zip(found.columns["method"], found.columns["beta"], strict=True)
    at = list(cells).index(("nu_acdm", 0.0))
    counts = []
    for seed in SMALL.seeds:
        run = cw.solve(
            objective,
            cw.NUACDM(),
            tol=0,
            max_passes=12,
            random_state=seed,
            record_every=1.0,
            record_growth=0,
        ).history
        down = [np.all(run.value[k:] - least <= 1e-3 * -least) for k in range(len(run.value))]  # for good
        counts.append(run.iterations[down.index(True)])
    assert found.columns["tried"][at] == run.iterations[-1]
    assert (found.columns["least"][at], found.columns["most"][at]) == (min(counts), max(counts))
    assert found.columns["measured"][at] == np.median(counts)
    for k, measured in enumerate(found.columns["measured"]):
        assert measured <= found.columns["tried"][k] or measured == found.columns["passes"][k] == math.inf
    bound = column(found, "bound", method="nu_acdm", beta=0.0, strongly_convex=True)
    assert bound == [unit_bound(data, 0.1)]


def unit_bound(data, lam):
    n = data.A.shape[0]
    L = 1 / n + np.asarray(data.A.multiply(data.A).sum(1)).reshape(-1) / (lam * n**2)
    return pytest.approx(np.sum(np.sqrt(L)) * math.sqrt(n) * math.log(1000))


def test_norms_of_figure_1():
    data = datasets.stand_in("covtype", scale=0.002)
    norms = np.asarray(data.A.multiply(data.A).sum(1)).reshape(-1)
    found = tables.Norms("covtype").run(library_of(covtype=data), SMALL, Watch())
    low, high, rows = (np.array(found.columns[name]) for name in ("from", "to", "rows"))
    np.testing.assert_allclose(low[1:], high[:-1])
    for k in range(0, len(low), 7):
        inside = np.sum((norms >= low[k]) & ((norms < high[k]) | (k == len(low) - 1)) & (norms > 0))
        assert rows[k] == inside
    assert rows.sum() + found.facts["zero_rows"] == len(norms) == found.facts["rows"]
    assert found.facts["quantiles"]["0.5"] == pytest.approx(np.median(norms))


# Linear systems


@pytest.mark.parametrize("long", [0, 25, 300])
def test_random_system(long):
    A, b, x = systems.random_system(0.5, seed=3, long_rows=long)
    assert A.shape == (300, 100)
    norms = np.linalg.norm(A, axis=1)
    assert np.sum(np.abs(norms / 10 - 1) < 1e-13) == long
    assert np.sum(np.abs(norms - 1) < 1e-13) == 300 - long
    assert A.min() >= 0
    np.testing.assert_allclose(b, A @ x, rtol=1e-12)
    again = systems.random_system(0.5, seed=3, long_rows=long)
    assert all(np.array_equal(one, two) for one, two in zip((A, b, x), again, strict=True))
    assert not np.array_equal(A, systems.random_system(0.5, seed=4, long_rows=long)[0])


def test_random_system_with_each_row_long_by_chance():
    counts = [np.sum(np.linalg.norm(systems.random_system(0.2, seed)[0], axis=1) > 5) for seed in range(40)]
    assert len(set(counts)) > 3
    assert np.mean(counts) == pytest.approx(60, abs=4 * math.sqrt(300 * 0.2 * 0.8 / 40))
    assert np.sum(np.linalg.norm(systems.random_system(1.0, 0)[0], axis=1) > 5) == 300


def test_the_distance_of_a_system_is_that_of_its_solution():
    A, b, x = systems.random_system(0.4, seed=0, long_rows=115)
    run = cw.solve(
        cw.LinearSystem(A, b), cw.NUACDM(sigma=np.linalg.svd(A, compute_uv=False)[-1] ** 2), tol=0, max_passes=5
    )
    assert float(run.value) + x @ x / 2 == pytest.approx(np.sum((run.w - x) ** 2) / 2, rel=1e-6)


def test_system_chart():
    unit = systems.SystemChart(0.2)
    found = unit.run(library_of(), SMALL, Watch())
    assert list(found.facts["lines"]) == ["Kaczmarz", "ACDM", "NU_ACDM"]
    for k, seed in enumerate(SMALL.seeds):
        A, _, x = systems.random_system(0.2, seed, 61)
        assert found.facts["systems"][k]["sigma"] == pytest.approx(np.linalg.eigvalsh(A.T @ A)[0], rel=1e-8)
        for label in found.facts["lines"]:
            distance = column(found, "dual_distance", method=label, seed=seed)
            assert distance[0] == pytest.approx(x @ x / 2)
            assert distance.min() >= -1e-12 * distance[0]
            assert distance[-1] < distance[0]
    assert found.facts["lines"]["NU_ACDM"]["speedup"] == pytest.approx(two_norms(61))


# Charts


@pytest.fixture(scope="module")
def small_data():
    return datasets.stand_in("w8a", scale=0.01)


def chart_of(family, lam=0.01):
    return charts.ErmChart(charts.FAMILIES[family], "w8a", lam)


@pytest.mark.parametrize("family", charts.FAMILIES)
def test_a_chart(family, small_data):
    unit, watch = chart_of(family), Watch()
    library = library_of(w8a=small_data)
    found = unit.run(library, SMALL, watch)
    minimum = found.facts["minimum"]
    assert list(found.facts["lines"]) == list(charts.FAMILIES[family].methods)
    assert set(found.columns) == set(charts.COLUMNS)
    for label, seed in itertools.product(found.facts["lines"], SMALL.seeds):
        dual, primal, passes, iterations = (
            column(found, name, method=label, seed=seed)
            for name in ("dual_distance", "primal_distance", "passes", "iterations")
        )
        assert dual.min() >= -minimum["gap"]
        assert primal.min() >= -minimum["gap"]
        assert dual[0] == -minimum["dual"]  # D(0) = 0
        at_zero = 0.5 if family in ("ridge", "lasso") else 1.5  # r = -b = -1 or 1
        assert primal[0] == pytest.approx(at_zero - minimum["primal"])
        assert (passes[0], iterations[0]) == (0, 0)
        assert np.all(np.diff(passes) > 0)
        assert np.all(np.diff(iterations) > 0)
        assert passes[-1] == pytest.approx(found.facts["passes"], rel=0.05)
        assert dual[-1] < dual[0]
    np.testing.assert_allclose(column(found, "dual") - minimum["dual"], column(found, "dual_distance"))
    assert watch.entries == pytest.approx(unit.work(library, SMALL), rel=0.3)
    assert unit.run(library, SMALL, Watch()) == found
    other = unit.run(library, Settings(**(SMALL.spec() | {"seeds": (2, 3)})), Watch())
    assert other.columns["dual"] != found.columns["dual"]


def test_what_smoothing_costs_the_lasso(small_data):
    """The certificate of the Lasso itself, at the smoothed problem's solution, against the Lasso's minimum."""
    facts = chart_of("lasso").run(library_of(w8a=small_data), SMALL, Watch()).facts
    lasso = cw.ERM(small_data.A, small_data.b, penalty="l1", lam=facts["lambda"])
    scale = lasso.value(np.zeros(lasso.n_features))
    least = cw.solve(lasso.primal(), tol=1e-10, max_passes=20_000)
    objective = charts._lasso(small_data, 0.01)
    w = cw.solve(objective, tol=1e-10, max_passes=20_000).w
    assert 0 < facts["smoothing_error"] < objective.smoothing_error / scale  # less than what is known beforehand
    assert lasso.value(w) - float(least.value) <= (facts["smoothing_error"] + 1e-8) * scale
    assert facts["smoothing_error"] == pytest.approx(lasso.gap(w, lasso.dual_point(w)) / scale, rel=1e-2)


def test_seeds_of_a_chart_are_runs_of_solve(small_data):
    found = chart_of("l2l1").run(library_of(w8a=small_data), SMALL, Watch())
    run = cw.solve(
        cw.ERM(small_data.A, small_data.b, loss="l2l1", penalty="l2", lam=0.01).dual(),
        "nu_acdm_ns",
        tol=0,
        max_passes=SMALL.passes,
        random_state=1,
        record_every=SMALL.passes / SMALL.records,
        record_growth=0,
    )
    np.testing.assert_array_equal(column(found, "dual", method="NU_ACDM", seed=1), run.history.value)
    np.testing.assert_array_equal(column(found, "primal", method="NU_ACDM", seed=1), run.history.primal)
    assert found.facts["lines"]["NU_ACDM"]["Theta"] == run.constants.Theta


def test_the_length_of_a_chart_is_what_theory_asks_for(small_data):
    unit = chart_of("ridge", lam=1.0)
    objective = charts._ridge(small_data, 1.0)
    n = small_data.A.shape[0]
    L = 1 / n + np.asarray(small_data.A.multiply(small_data.A).sum(1)).reshape(-1) / n**2
    tau = 2 / (1 + math.sqrt(4 * n * np.sum(np.sqrt(L)) ** 2 + 1))
    entries = np.diff(small_data.A.indptr) @ np.sqrt(L) / np.sum(np.sqrt(L))  # touched by an iteration, on average
    theory = math.log(SMALL.accuracy) / math.log1p(-tau) * entries / small_data.A.nnz
    settings = Settings(**(SMALL.spec() | {"most_passes": 1e6}))
    assert theory <= unit.passes(objective, settings) <= 1.1 * theory + 1
    assert unit.passes(objective, SMALL) == min(SMALL.most_passes, unit.passes(objective, settings))


@pytest.mark.parametrize("lam", [0.1, 0.001])
def test_apcg_is_tuned_to_the_fastest_of_those_tried(lam, small_data):
    found = chart_of("ridge", lam).run(library_of(w8a=small_data), SMALL, Watch())
    table, minimum = found.facts["tuning"], found.facts["minimum"]
    sigmas = [row["sigma"] for row in table]
    assert len(sigmas) == SMALL.sigmas
    assert sigmas[0] / sigmas[-1] == pytest.approx(50_000)
    np.testing.assert_allclose(np.diff(np.log(sigmas)), np.log(sigmas[1] / sigmas[0]))
    objective = charts._ridge(small_data, lam)
    half, records = found.facts["passes"] / 2, SMALL.records // 2
    runs = []
    for row in table:
        history = charts.trace(objective, cw.APCG(sigma=row["sigma"]), 0, half, records, Watch()).history
        runs.append(Curve(history.passes, history.value - minimum["dual"]))
        assert row["dual_distance"] == pytest.approx(runs[-1].distance[-1])
    goal = min(curve.distance[-1] for curve in runs)
    first = [next((x for k, x in enumerate(c.x) if np.all(c.distance[k:] <= goal)), math.inf) for c in runs]
    for row, x, curve in zip(table, first, runs, strict=True):  # between records, log distances are interpolated
        assert x - 1.01 * np.diff(curve.x).max() <= row["passes"] <= x if math.isfinite(x) else row["passes"] == x
    chosen = [k for k, row in enumerate(table) if row["chosen"]]
    assert chosen == [int(np.argmin(first))]
    assert found.facts["lines"]["APCG*"]["sigma"] == sigmas[chosen[0]]


@pytest.mark.parametrize("family", charts.FAMILIES)
def test_a_chart_gives_up_when_asked(family, small_data):
    with pytest.raises(Interrupted):
        chart_of(family).run(library_of(w8a=small_data), SMALL, Watch(stopped=True))


def test_the_charts_of_the_paper():
    assert [unit.key for unit in charts.charts_of("ridge")][:4] == [
        "ridge-news20-0.001",
        "ridge-news20-0.01",
        "ridge-news20-0.1",
        "ridge-w8a-1e-05",
    ]
    keys = {unit.key: unit for e in EXPERIMENTS.values() for unit in e.units}
    assert len(keys) == 44
    assert [len(EXPERIMENTS[f"fig{k}"].units) for k in range(1, 8)] == [3, 9, 9, 9, 3, 6, 9]
    assert EXPERIMENTS["fig7"].units == EXPERIMENTS["fig2"].units  # the same runs


# Settings and names


def test_settings():
    full, quick = Settings.full(seed=3), Settings.quick_look()
    assert full.seeds == (3, 4, 5, 6, 7)
    assert quick.seeds == (0, 1)
    assert Settings.quick_look(5, 3).seeds == (5, 6, 7)
    assert (full.quick, quick.quick) == (False, True)
    assert full.sigmas == 14
    assert quick.seeds_for(2_000_000) == (0, 1)
    assert quick.seeds_for(2_000_001) == (0,)
    assert full.seeds_for(10**9) == full.seeds
    assert full.limit(1000, 10) == 200
    assert full.limit(7, 10) == 7
    assert full.limit(1000, int(1.5e8)) == pytest.approx(10)
    assert full.limit(1000, 10**12) == 5
    assert Settings(**full.spec()) == full


def test_experiments_come_in_the_papers_order():
    assert [e.name for e in experiments_named(["fig6", "table3", "fig2", "fig6"])] == ["table3", "fig2", "fig6"]
    assert [e.name for e in experiments_named(["fig2", "all"])] == list(EXPERIMENTS)
    assert list(EXPERIMENTS) == ["table1", "table2", "table3", *(f"fig{k}" for k in range(1, 8))]


def test_unknown_experiments_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"fig8.*all, fig1.*fig7, table1, table2, table3"):
        experiments_named(["fig2", "fig8"])
    with pytest.raises(ValueError, match="fig8"):
        reproduce("fig8", out=tmp_path / "out")
    with pytest.raises(ValueError, match=r"names is empty; give some of table1, .*fig7, or all"):
        reproduce([], out=tmp_path / "out")
    with pytest.raises(ValueError, match="seed"):
        reproduce("table3", seed=-1, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("seconds", "day"), [("0", "1970-01-01"), ("1700000000", "2023-11-14")])
def test_the_day_of_a_reproducible_build(seconds, day, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", seconds)
    assert page._today() == day


# Storage


class Something(Unit):
    key, title, datasets = "something", "Something", ("w8a",)

    def __init__(self, spec=None):
        self._spec = {"a": 1} if spec is None else spec

    @property
    def spec(self):
        return self._spec

    def run(self, library, settings, watch):
        raise AssertionError


def library_with(fingerprint):
    return lambda name: SimpleNamespace(fingerprint=f"{name} {fingerprint}")


@pytest.fixture
def stored(tmp_path):
    """A store with one finding in it."""
    folder = Store(tmp_path, library_with(1), SMALL)
    folder.put(Something(), FINDING, 0.1)
    return folder


FINDING = Finding(
    {
        "x": [0.1, 1 / 3, 1e-310, 5e-324, 1.7976931348623157e308, -0.0, math.inf, -math.inf, math.nan, 2.0],
        "k": [0, -1, 2**70, 3, 4, 5, 6, 7, 8, 9],
        "on": [True, False] * 5,
        "text": ["β = 0.2", "APCG*", "a,b", 'a "quoted" one', "", "line\nbreak", "NU_ACDM", "x", "y", "λ"],
    },
    {"n": 3, "minimum": {"dual": 0.1 + 0.2}, "none": None, "of": [1, 2.5, "β"]},
)


def bits(values):
    return [np.float64(value).tobytes() for value in values]


def test_findings_come_back_bit_by_bit(stored):
    found = stored.get(Something())
    assert bits(found.columns["x"]) == bits(FINDING.columns["x"])
    assert {type(value) for value in found.columns["x"]} == {float}
    for name in ("k", "on", "text"):
        assert found.columns[name] == FINDING.columns[name]
        assert [type(value) for value in found.columns[name]] == [type(value) for value in FINDING.columns[name]]
    assert found.facts == FINDING.facts


@settings(deadline=None)
@given(st.lists(st.floats(), max_size=30))
def test_any_floats_come_back(values):
    text = "x\n" + "".join(f"{value}\n" for value in values)
    back = store._parse(text)["x"]
    same = [a == b or (math.isnan(a) and math.isnan(b)) for a, b in zip(back, values, strict=True)]
    assert all(same)


def test_every_table_comes_back(tmp_path, small_data):
    library = library_of(w8a=small_data)
    folder = Store(tmp_path, library, SMALL)
    for unit in (tables.Table2("w8a"), tables.Norms("w8a"), chart_of("l2l1")):
        found = unit.run(library, SMALL, Watch())
        folder.put(unit, found, 0.0)
        assert folder.get(unit) == found


def test_a_finding_of_other_inputs_is_none(stored, tmp_path):
    def asked(unit=None, fingerprint=1, **changes):
        settings = Settings(**(SMALL.spec() | changes))
        return Store(tmp_path, library_with(fingerprint), settings).get(unit or Something())

    assert asked() is not None
    assert asked(fingerprint=2) is None
    assert asked(Something({"a": 2})) is None
    assert asked(seeds=(1, 2)) is None
    assert asked(accuracy=1e-4) is None
    assert asked(quick=False) is None


def test_a_finding_of_other_code_is_none(stored, monkeypatch):
    monkeypatch.setattr(store, "code_digest", lambda: "other")
    assert stored.get(Something()) is None
    monkeypatch.undo()
    assert stored.get(Something()) is not None


def test_the_code_digest_changes_with_the_code(tmp_path, monkeypatch):
    """With any source or compiled file, its name and the version, but not with what gives no numbers."""
    package = tmp_path / "package"
    (package / "inner").mkdir(parents=True)
    for name in ("__init__.py", "inner/one.py", "_core.so", "page.html"):
        (package / name).write_bytes(name.encode())
    monkeypatch.setattr(cw, "__file__", str(package / "__init__.py"))
    seen = []

    def digest():
        store.code_digest.cache_clear()
        seen.append(store.code_digest())
        return seen[-1]

    try:
        first = digest()
        (package / "page.html").write_bytes(b"other")
        assert digest() == first == store.code_digest()
        for name in ("inner/one.py", "_core.so", "inner/two.py"):
            (package / name).write_bytes(b"other")
            digest()
        (package / "inner" / "two.py").rename(package / "inner" / "three.py")
        digest()
        monkeypatch.setattr(cw, "__version__", "0.0.0")
        digest()
        assert len(seen) == 7
        assert len(set(seen)) == 6
    finally:
        store.code_digest.cache_clear()


def claimed(folder, data, **changes):
    """A store in the folder, which now holds its results."""
    held = Store(folder, library_with(1), Settings(**(SMALL.spec() | changes)), data)
    held.claim(force=False)
    return held


def test_a_folder_is_claimed_by_its_settings_and_data(tmp_path):
    folder = tmp_path / "out" / "data"
    assert store.quick_of(folder) is None
    claimed(folder, {"w8a": "1"})
    claimed(folder, {"news20": "2"})  # data it has not seen
    claimed(folder, {})
    assert store.quick_of(folder) is True
    before = (folder / "settings.json").read_bytes()
    assert json.loads(before)["data"] == {"w8a": "1", "news20": "2"}
    for data, changes, said in (
        ({"w8a": "3"}, {}, r"a quick look on other data \(w8a\)"),
        ({"w8a": "1"}, {"seeds": (3, 4, 5)}, "a quick look with seeds 0 to 1"),
        ({}, {"quick": False}, "a quick look with seeds 0 to 1"),
    ):
        with pytest.raises(ValueError, match=rf"out=.*out' holds {said}, which .* another folder, or force=True"):
            claimed(folder, data, **changes)
        assert (folder / "settings.json").read_bytes() == before
    Store(folder, library_with(1), Settings(**(SMALL.spec() | {"quick": False})), {"w8a": "3"}).claim(force=True)
    assert store.quick_of(folder) is False
    claimed(folder, {"w8a": "3"}, quick=False)
    with pytest.raises(ValueError, match="holds a full run"):
        claimed(folder, {"w8a": "3"})


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"settings": {}, "data": {}}', b'{"data": {}}', b"\xff"])
def test_a_damaged_mark_is_none(content, tmp_path):
    (tmp_path / "settings.json").write_bytes(content)
    assert store.quick_of(tmp_path) is None
    claimed(tmp_path, {"w8a": "1"})
    assert store.quick_of(tmp_path) is True


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_a_missing_file_is_no_finding(kind, stored):
    (stored.folder / f"something.{kind}").unlink()
    assert stored.get(Something()) is None


def test_a_changed_table_is_no_finding(stored):
    path = stored.folder / "something.csv"
    path.write_bytes(path.read_bytes().replace(b"0.1,", b"0.2,", 1))
    assert stored.get(Something()) is None


@pytest.mark.parametrize("keep", [0.0, 0.3, 0.99])
def test_half_a_json_file_is_no_finding(keep, stored):
    path = stored.folder / "something.json"
    content = path.read_bytes()
    path.write_bytes(content[: int(keep * len(content))])
    assert stored.get(Something()) is None


@pytest.mark.parametrize("content", [b"[]", b"3", b"null", b'{"digest": 1}', b"\xff\xfe"])
def test_another_json_file_is_no_finding(content, stored):
    (stored.folder / "something.json").write_bytes(content)
    assert stored.get(Something()) is None


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "folder" / "file"
    write_whole(path, b"old")

    def full(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(path, b"new")
    assert [p.name for p in path.parent.iterdir()] == ["file"]
    assert path.read_bytes() == b"old"


def test_half_a_finding_is_none(stored, monkeypatch):
    def refuse(path, content):
        if path.suffix == ".json":
            raise OSError("No space left on device")
        write_whole(path, content)

    monkeypatch.setattr(store, "write_whole", refuse)
    with pytest.raises(OSError, match="No space"):
        stored.put(Something(), Finding({"x": [2.0]}), 0.1)
    assert stored.get(Something()) is None
    monkeypatch.undo()
    stored.put(Something(), Finding({"x": [2.0]}), 0.1)
    assert stored.get(Something()) == Finding({"x": [2.0]}, {})
