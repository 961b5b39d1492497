"""What the estimators have besides scikit-learn's parameters: strategies, methods, callbacks, time limits, threads."""

import io
import re
import sys

import numpy as np
import pytest
from estimator_cases import MANY, assert_same, classes, data, each, target, with_and_without
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning

import coordwise as cw
from coordwise import estimators as E
from coordwise.estimators import base
from coordwise.fitting.fit import fit


@pytest.mark.parametrize("strategy", ["auto", "dual", "primal", "newton", "gram"])
def test_strategies_by_name(strategy):
    X, y, _ = data(spread=0.3)
    estimator = E.Ridge(strategy=strategy, tol=1e-10, max_iter=MANY).fit(X, y)
    if strategy != "auto":
        assert estimator.strategy_ == f"{strategy}: as asked"
    np.testing.assert_allclose(estimator.coef_, E.Ridge(tol=1e-14).fit(X, y).coef_, atol=1e-3)


def test_strategies_that_do_not_apply():
    X, y, _ = data()
    with pytest.raises(ValueError, match="strategy='gram' does not apply here"):
        E.LinearSVC(strategy="gram").fit(X, classes(y, 2))
    with pytest.raises(ValueError, match="strategy='dual' does not apply here"):
        E.LogisticRegression(strategy="dual").fit(X, classes(y, 3))
    with pytest.raises(ValueError, match="strategy='newton' does not apply here"):
        E.LogisticRegression(l1_ratio=1, strategy="newton").fit(X, classes(y, 3))


@pytest.mark.parametrize("method", ["auto", "nu_acdm", "acdm", "apcg", "rcdm", "sdca", cw.NUACDM(beta=0.5)])
def test_methods(method):
    X, y, _ = data(spread=0.3)
    found = E.LinearSVC(method=method, strategy="dual", max_iter=MANY, C=0.01).fit(X, classes(y, 2))
    assert found.result_.converged
    with pytest.raises(ValueError, match="method"):
        E.LinearSVC(method="newton").fit(X, classes(y, 2))


def test_beta():
    X, y, _ = data(spread=0.3)
    for method in ("auto", "nu_acdm", "acdm"):
        estimator = E.LinearSVC(method=method, beta=0.5, strategy="dual", C=0.01, max_iter=MANY).fit(X, classes(y, 2))
        assert "beta=0.5" in estimator.result_.results[0].method
    for count in (2, 3):
        with pytest.raises(ValueError, match=r"beta=0\.5 has no meaning for method='sdca'"):
            E.LogisticRegression(method="sdca", beta=0.5).fit(X, classes(y, count))


@pytest.mark.parametrize(
    "estimator",
    [
        E.LinearSVC(C=0.01, strategy="dual", max_iter=MANY, tol=1e-6),
        E.LogisticRegression(tol=1e-8),
        E.RidgeClassifier(strategy="dual", tol=1e-8, max_iter=MANY),
        E.Ridge(strategy="dual", tol=1e-8, max_iter=MANY),
        E.Lasso(strategy="primal", alpha=0.1, tol=1e-8, max_iter=MANY),
    ],
    ids=lambda e: type(e).__name__,
)
def test_threads_give_the_same_coefficients(estimator):
    X, y, s = data(outputs=3, spread=0.3)
    y = classes(y[:, 0], 4) if is_classifier(estimator) else y
    one = clone(estimator).fit(X, y, s)
    two = clone(estimator).set_params(n_jobs=2).fit(X, y, s)
    assert_same(two, one, 1e-12)  # groups of outputs are added up in another order


# Watching


@each
def test_callbacks_see_progress_and_stop(kind):
    X, y, _ = data(n=60, d=30, spread=0.3)
    y, seen = target(kind, y), []
    kind(callbacks=seen.append, max_iter=MANY).fit(X, y)
    assert seen
    assert all(isinstance(progress, cw.Progress) for progress in seen)
    strategy = "primal" if kind in (E.Lasso, E.ElasticNet) else "dual"
    calls = []

    def stop(progress):
        calls.append(progress)
        return True

    with pytest.warns(ConvergenceWarning, match="stopped"):
        kind(callbacks=[calls.append, stop], tol=1e-14, strategy=strategy, max_iter=MANY).fit(X, y)
    assert len(calls) == 2


def test_scikit_learn_callbacks():
    callback = pytest.importorskip("sklearn.callback")
    X, y, _ = data(spread=0.3)

    class Count(callback.FitCallback):
        def __init__(self, most=None):
            self.begun, self.ended, self.most = 0, 0, most

        def setup(self, estimator, context):
            pass

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context, **kwargs):
            self.begun += 1

        def on_fit_task_end(self, estimator, context, **kwargs):
            self.ended += 1
            return self.most is not None and self.ended >= self.most

    count = Count()
    E.LinearSVC(strategy="dual", max_iter=MANY).set_callbacks(count).fit(X, classes(y, 2))
    assert count.begun == count.ended > 2
    early = Count(most=2)
    with pytest.warns(ConvergenceWarning, match="stopped"):
        E.LinearSVC(strategy="dual", max_iter=MANY, tol=1e-14).set_callbacks(early).fit(X, classes(y, 2))
    assert early.ended < count.ended


@each
def test_time_limit(kind):
    X, y, _ = data(n=40, d=300, spread=0.3)
    strategy = "primal" if kind in (E.Lasso, E.ElasticNet) else "dual"
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        kind(time_limit=0.0, tol=1e-15, strategy=strategy, max_iter=MANY).fit(X, target(kind, y))


@with_and_without
def test_classes_with_weights_share_the_time_limit(intercept, monkeypatch):
    X, y, _ = data(spread=0.3)
    given = []

    def recorded(model, *, time_limit, **options):
        given.append(time_limit)
        return fit(model, time_limit=time_limit, **options)

    monkeypatch.setattr(base, "fit", recorded)
    E.LinearSVC(class_weight="balanced", time_limit=1e3, fit_intercept=intercept).fit(X, classes(y, 3))
    assert len(given) == 3
    assert np.all(np.diff([1e3, *given]) < 0)


def test_verbose_prints_lines_to_stderr(capsys, monkeypatch):
    X, y, _ = data(spread=0.3)
    clock = iter(np.arange(0, 1e6, 10.0))
    monkeypatch.setattr("coordwise.estimators.progress.time.perf_counter", lambda: next(clock))
    E.LinearSVC(verbose=1, strategy="dual", max_iter=MANY).fit(X, classes(y, 2))
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert lines
    assert all(line.startswith("LinearSVC: pass ") and "gap " in line and line.endswith(" s") for line in lines)
    assert "\r" not in err
    E.LinearSVC().fit(X, classes(y, 2))
    assert capsys.readouterr().err == ""


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_verbose_shows_one_live_line_in_a_terminal(monkeypatch):
    X, y, _ = data(spread=0.3)
    clock = iter(np.arange(0, 1e6, 10.0))
    monkeypatch.setattr("coordwise.estimators.progress.time.perf_counter", lambda: next(clock))
    monkeypatch.setattr("sys.stderr", Terminal())
    E.LinearSVC(verbose=1, strategy="dual", max_iter=MANY, tol=1e-6).fit(X, classes(y, 2))
    shown = sys.stderr.getvalue()
    assert shown.endswith("\n")
    assert shown.count("\n") == 1  # the line ends when the fit does
    updates = shown[:-1].split("\r")[1:]
    assert len(updates) >= 2
    pattern = r"LinearSVC: pass \d+(, about \d+ left)?, gap \d\.\d\de[+-]\d\d \(stops at .*\), \d+\.0 s *"
    assert all(re.fullmatch(pattern, update) for update in updates)
    assert len({len(update) for update in updates}) == 1  # every update covers the one before
    passes = [int(re.search(r"pass (\d+)", update)[1]) for update in updates]
    assert passes == sorted(passes)
    assert any("left" in update for update in updates)
