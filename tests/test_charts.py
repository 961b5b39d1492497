"""The charts of ERM problems: what they hold, how long they run, and how APCG is tuned."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from experiment_cases import SMALL, Watch, chart_of, column, library_of

import coordwise as cw
from coordwise.experiments import EXPERIMENTS, Settings, charts
from coordwise.experiments.curves import Curve
from coordwise.experiments.units import Interrupted


def test_the_lasso_starts_to_be_zero_at_ten_times_its_lambda():
    rng = np.random.default_rng(0)
    data = SimpleNamespace(A=sp.csr_array(rng.standard_normal((40, 8))), b=rng.standard_normal(40))
    lam = charts.lasso_lambda(data)
    zero = cw.solve(cw.ERM(data.A, data.b, penalty="l1", lam=10.001 * lam).primal(), tol=1e-10)
    some = cw.solve(cw.ERM(data.A, data.b, penalty="l1", lam=9.9 * lam).primal(), tol=1e-10)
    assert not zero.w.any()
    assert some.w.any()


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
        at_zero = 0.5 if family in ("ridge", "lasso", "remark") else 1.5  # r = -b = -1 or 1
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
    assert len(keys) == 51
    assert [len(EXPERIMENTS[f"fig{k}"].units) for k in range(1, 8)] == [3, 9, 9, 9, 3, 6, 9]
    assert EXPERIMENTS["fig7"].units == EXPERIMENTS["fig2"].units  # the same runs
