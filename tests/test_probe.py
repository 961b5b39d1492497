"""Newton's method by conjugate gradients as a probe: begun, given up within its budget, and handed over."""

import numpy as np
import pytest
import scipy.sparse as sp

import coordwise as cw
from coordwise.fitting import probe
from coordwise.fitting.fit import fit
from coordwise.fitting.model import LinearModel
from coordwise.fitting.strategies import choose


def texts(n=20_000, d=3000, words=6, loss="logistic", kappa=3e4, intercept=False, outputs=1):
    """Short texts: many samples, thousands of features, few entries a row."""
    rng = np.random.default_rng(0)
    p = 1 / np.arange(1, d + 1)
    index = rng.choice(d, n * words, p=p / p.sum()).astype(np.int32)
    A = sp.csr_array((np.ones(n * words), index, np.arange(0, n * words + 1, words, dtype=np.int32)), shape=(n, d))
    A.sum_duplicates()
    t = A @ rng.standard_normal((d, outputs)) + rng.logistic(size=(n, outputs))
    b = np.where(t > np.median(t, axis=0), 1.0, -1.0)
    lam = A.multiply(A).sum() / n / (kappa * n)
    return LinearModel(cw.ERM(A, b, loss=loss, lam=lam), intercept)


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kappa", [30.0, 3e4])
def test_short_rows_and_thousands_of_features_are_left_to_the_probe(kappa, intercept, outputs):
    model = texts(kappa=kappa, intercept=intercept, outputs=outputs)
    found = fit(model, tol=1e-6)
    assert found.strategy.startswith("newton_cg")
    assert found.converged
    assert found.passes < 400
    assert np.all(found.gap <= 1e-6 * found.scale)


@pytest.mark.parametrize("intercept", [False, True])
def test_a_probe_that_leads_nowhere_costs_no_more_than_its_budget(intercept):
    rng = np.random.default_rng(1)
    A = rng.standard_normal((3000, 1200)) * 10 ** rng.uniform(-3, 3, 1200)  # and not by columns alone:
    A = A @ np.linalg.qr(rng.standard_normal((1200, 1200)))[0]
    model = LinearModel(cw.ERM(A, np.sign(A[:, 0] + rng.standard_normal(3000)), "logistic", lam=1e-6), intercept)
    name, _ = choose(model, 1e-8)
    B = probe.budget(model, name, 1e-8)
    assert B is not None
    spent = []
    inner = probe._Probe.rounds

    def rounds(self):
        yield from inner(self)
        spent.append(self.cost / self.B)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(probe._Probe, "rounds", rounds)
        found = fit(model, tol=1e-8, max_passes=2000)
    assert found.strategy.startswith(name)
    assert "passes of newton_cg" in found.strategy
    plain = fit(model, tol=1e-8, strategy=name, max_passes=1000)
    one_visit = (2 * probe.ENTRY * A.size + probe.VISIT + probe.SAMPLE * 3000) / B
    assert len(spent) == 1
    assert spent[0] <= probe.CAP + one_visit
    assert np.all(found.value <= plain.value + plain.gap)


def test_limits_hold_inside_the_probe():
    model = texts()
    assert fit(model, tol=1e-6, max_passes=20).passes <= 23
    few = fit(model, tol=1e-6, max_passes=20, strategy="newton_cg")
    assert few.passes <= 23
    assert few.status == "max_passes"
    late = fit(model, tol=1e-6, time_limit=0.0)
    assert late.status == "time_limit"
    assert np.all(late.value <= late.scale)
    asked = []
    stopped = fit(model, tol=1e-6, callback=lambda progress: asked.append(progress.passes) or len(asked) == 3)
    assert stopped.status == "stopped"
    assert asked == sorted(asked)


def test_where_there_is_no_probe():
    wide = texts(n=1000, d=3000)
    assert probe.budget(wide, "dual", 1e-6) is None
    model = texts()
    assert probe.budget(model, "dual", 0.0) is None
    assert probe.budget(model, "semismooth", 1e-6) is None
    assert probe.budget(model.penalised(cw.penalties.ElasticNet(1e-3, 1e-3)), "dual", 1e-6) is None
    hinge = LinearModel(cw.ERM(model.A, model.b, "hinge", lam=1e-4), False)
    assert probe.budget(hinge, "dual", 1e-6) is None
