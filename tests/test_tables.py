"""The tables of the paper, and the norms of figure 1."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import unequal_rows
from experiment_cases import SMALL, Watch, column, library_of, two_norms

import coordwise as cw
from coordwise import datasets
from coordwise.experiments import Settings, charts, minima, paper, tables


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
