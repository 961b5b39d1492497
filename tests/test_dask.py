"""coordwise.dask on workers in processes of their own: the answers and gaps of one machine, for any partitions."""

import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest
from dask_cases import chunked, cluster, limited, parts, problem, rows
from sklearn.base import clone

import coordwise as cw
import coordwise.dask as cd
from coordwise import datasets
from coordwise import estimators as ce
from coordwise.samples import base

A, T, TWO, THREE, S = problem()
TOL = 1e-6


@pytest.fixture(scope="module")
def client():
    with cluster() as (_, client):
        yield client


@pytest.fixture(autouse=True)
def _no_test_hangs():
    with limited():
        yield


def ridge_value(w, c, s=S, alpha=1.0):
    return s @ (T - A @ w - c) ** 2 / 2 / s.sum() + alpha / 2 / s.sum() * w @ w


@pytest.mark.parametrize("count", [1, 2, 4, 7])
def test_answers_and_gaps_are_those_of_one_machine(client, count):
    X, t, s = chunked(count, A, T, S)
    there, here = cd.Ridge(tol=TOL).fit(X, t, s), ce.Ridge(tol=1e-13).fit(A, T, S)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-9)
    best = ridge_value(here.coef_, here.intercept_)
    assert ridge_value(there.coef_, there.intercept_) - best <= there.dual_gap_ + 1e-15
    scale = ridge_value(np.zeros(6), np.average(T, weights=S))
    assert there.dual_gap_ <= TOL * scale


def logistic_value(w, two=TWO):
    return np.logaddexp(0, -np.where(two == 2, 1.0, -1.0) * (A @ w)).sum() / len(A) + w @ w / 2 / len(A)


@pytest.mark.parametrize(("count", "storage"), [(2, "dense"), (7, "sparse")])
def test_logistic_regression(client, count, storage):
    X, two = chunked(count, A, TWO, storage=storage)
    there = cd.LogisticRegression(tol=1e-4, fit_intercept=False).fit(X, two)
    here = ce.LogisticRegression(tol=1e-12, fit_intercept=False).fit(A, TWO)
    gained = logistic_value(there.coef_[0]) - logistic_value(here.coef_[0])
    assert -1e-12 <= gained <= there.dual_gap_
    assert there.dual_gap_ <= 1e-4 * np.log(2)
    np.testing.assert_array_equal(there.classes_, [1.0, 2.0])


def test_several_classes(client):
    X, three, s = chunked(4, A, THREE, S)
    there = cd.LogisticRegression(tol=1e-8, C=0.1, fit_intercept=False).fit(X, three, s)
    here = ce.LogisticRegression(tol=1e-12, C=0.1, fit_intercept=False).fit(A, THREE, S)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-3)
    np.testing.assert_allclose(there.predict_proba(X).compute(), here.predict_proba(A), atol=1e-3)
    assert there.dual_gap_ <= 1e-8 * np.log(3)


OTHERS = {
    "Lasso": (T, {"alpha": 0.05}),
    "ElasticNet": (T, {"alpha": 0.1}),
    "RidgeClassifier": (THREE, {}),
    "LinearSVC": (TWO, {"fit_intercept": False}),
    "LinearSVR": (T, {"loss": "squared_epsilon_insensitive", "fit_intercept": False}),
    "HuberRegressor": (T, {"fit_intercept": False}),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_estimators(client, name):
    y, options = OTHERS[name]
    X, target = chunked(3, A, y)
    there, here = getattr(cd, name)(tol=1e-6, **options).fit(X, target), getattr(ce, name)(tol=1e-12, **options)
    np.testing.assert_allclose(there.coef_, here.fit(A, y).coef_, atol=2e-3)
    assert np.all(np.isfinite(there.dual_gap_))
    assert there.score(X, target) == pytest.approx(here.score(A, y), abs=1e-3)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_losses_with_kinks(client):
    """By coordinate steps on the parts; what is reached in a limited number of passes is certified."""
    X, t = chunked(2, A, T)
    there = cd.LinearSVR(tol=1e-3, C=0.1, fit_intercept=False, max_iter=100).fit(X, t)
    here = ce.LinearSVR(tol=1e-10, C=0.1, fit_intercept=False).fit(A, T)
    values = [np.abs(T - A @ w).sum() + w @ w / 2 / 0.1 for w in (there.coef_, here.coef_)]
    assert -1e-9 <= (values[0] - values[1]) / len(A) <= there.dual_gap_
    assert there.dual_gap_ <= 0.05 * np.abs(T).mean()


def folders(tmp_path):
    paths = []
    for k, (X, y) in enumerate(parts(3, A, T)):
        datasets.convert(X, tmp_path / str(k), target=y, chunk_bytes=2000)
        paths.append(str(tmp_path / str(k)))
    return paths


def frames():
    dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    frame, target = pd.DataFrame(A, columns=list("abcdef")), pd.Series(T)
    return dd.from_pandas(frame, npartitions=3), dd.from_pandas(target, npartitions=3)


KINDS = {
    "sparse": lambda client, path: chunked(4, A, T, storage="sparse"),
    "columns in several chunks": lambda client, path: (da.from_array(A, chunks=(50, 4)), da.from_array(T, chunks=70)),
    "single precision": lambda client, path: chunked(2, A.astype(np.float32), T),
    "unknown chunk sizes": lambda client, path: [(x[da.from_array(T, chunks=70) < 9]) for x in chunked(4, A, T)],
    "other unknown chunk sizes": lambda client, path: (chunked(4, A)[0][chunked(4, T)[0] < 9], chunked(3, T)[0]),
    "empty chunks": lambda client, path: [x[chunked(4, np.arange(280))[0] % 280 < 280] for x in chunked(4, A, T)],
    "dataframes": lambda client, path: frames(),
    "delayed": lambda client, path: ([dask.delayed(rows)(k, 3) for k in range(3)],),
    "futures": lambda client, path: (client.map(rows, range(3), count=3),),
    "futures of weights": lambda client, path: (client.scatter(parts(3, A, T, np.ones(280)), hash=False),),
    "paths": lambda client, path: (folders(path),),
}


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_data(client, tmp_path, kind):
    data = KINDS[kind](client, tmp_path)
    model = cd.Ridge(tol=TOL).fit(*data)
    expected = ce.Ridge(tol=1e-12).fit(A, T)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-5 if kind == "single precision" else 1e-9)
    assert model.n_features_in_ == 6
    if kind == "dataframes":
        assert list(model.feature_names_in_) == list("abcdef")
        np.testing.assert_allclose(model.predict(data[0]).compute(), expected.predict(A), atol=1e-9)
        with pytest.raises(ValueError, match=r"X has the columns .*, which must be the same, in the same order"):
            model.predict(data[0][list("bacdef")])


def test_partitions_without_rows_or_without_a_class_are_no_exception(client):
    order = np.argsort(TWO, kind="stable")
    a, two = A[order], TWO[order]
    first = (two == 1.0).sum()
    pieces = [(a[:first], two[:first]), (a[:0], two[:0]), (a[first:], two[first:]), (a[:0], two[:0])]
    X = [dask.delayed(piece) for piece in pieces]
    there = cd.LogisticRegression(tol=TOL, fit_intercept=False).fit(X)
    here = ce.LogisticRegression(tol=1e-12, fit_intercept=False).fit(A, TWO)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-2)
    assert logistic_value(there.coef_[0]) - logistic_value(here.coef_[0]) <= there.dual_gap_


def test_rows_stay_where_they_are(client):
    X, t = (x.persist() for x in chunked(4, A, T))
    source = cd.DaskSource(X, t, client=client)
    samples = source.samples(constant=True)
    _ = samples.sizes
    before = client.who_has(samples.partitions)
    assert len({place for places in before.values() for place in places}) == 2
    for _ in range(3):
        samples.visit(ones, w=np.ones((7, 1)))
    assert client.who_has(samples.partitions) == before


def ones(block, *, w):
    return block.product(w), [block.adjoint(np.ones((block.m, 1)))]


def test_predictions_are_lazy(client):
    X, two = chunked(4, A, TWO)
    model = cd.LogisticRegression(tol=1e-3, fit_intercept=False).fit(X, two)
    here = ce.LogisticRegression()
    here.coef_, here.intercept_, here.classes_ = model.coef_, model.intercept_, model.classes_
    here.n_features_in_ = 6
    sparse = chunked(3, A, storage="sparse")[0]
    for method, shape in (("predict", (280,)), ("decision_function", (280,)), ("predict_proba", (280, 2))):
        expected = getattr(here, method)(A)
        for data in (X, sparse):
            found = getattr(model, method)(data)
            assert isinstance(found, da.Array)
            assert found.shape == shape
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found.compute(), expected, rtol=1e-12)
        np.testing.assert_allclose(getattr(model, method)(A), expected, rtol=1e-12)
    with pytest.raises(ValueError, match="expecting 6 features"):
        model.predict(X[:, :5])
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(A), model.predict(A))
    assert clone(cd.Ridge(alpha=3.0, client=client)).client is client
    assert cd.Ridge(alpha=3.0).get_params()["alpha"] == 3.0


class Stop:
    """A callback that ends a fit after so many looks."""

    def __init__(self, looks, how=None):
        self.left, self.how = looks, how

    def __call__(self, progress):
        self.left -= 1
        if self.left == 0 and self.how is not None:
            self.how()
        return self.left == 0 and self.how is None


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_checkpoint_is_resumed_with_the_same_answer(client, tmp_path):
    X, two = chunked(3, A, TWO)
    options = {"tol": 1e-6, "C": 10.0, "fit_intercept": False, "checkpoint": tmp_path / "w.npz"}
    best = ce.LogisticRegression(C=10.0, fit_intercept=False, tol=1e-12).fit(A, TWO).result_.value[0]
    cut = cd.LogisticRegression(**options, callbacks=Stop(4)).fit(X, two)
    assert not cut.result_.converged
    with np.load(tmp_path / "w.npz", allow_pickle=False) as file:
        kept = [file[name] for name in file.files if name not in ("version", "problem")]
    np.testing.assert_array_equal(kept[0][:, 0], cut.coef_[0])
    found = cd.LogisticRegression(**options).fit(X, two)
    assert found.result_.converged
    assert found.dual_gap_ <= 1e-6 * np.log(2)
    assert found.result_.results[0].history[0].value[0] == pytest.approx(cut.result_.value[0], rel=1e-12)
    assert -1e-12 <= found.result_.value[0] - best <= found.dual_gap_
    with pytest.raises(ValueError, match=r"is of another problem: LogisticRegression\(C=10\.0, "):
        cd.LogisticRegression(**{**options, "C": 1.0}).fit(X, two)
    (tmp_path / "w.npz").write_bytes(b"nothing of the kind")
    with pytest.raises(ValueError, match="is no checkpoint"):
        cd.LogisticRegression(**options).fit(X, two)
    assert not list(tmp_path.glob("*.partial"))


def test_ctrl_c_leaves_the_best_point(client):
    X, two = chunked(3, A, TWO)

    def interrupt():
        os.kill(os.getpid(), signal.SIGINT)

    model = cd.LogisticRegression(tol=1e-10, fit_intercept=False, callbacks=Stop(3, interrupt))
    with pytest.raises(cw.Interrupted) as caught:
        model.fit(X, two)
    assert caught.value.result.gap[0] < np.inf
    assert logistic_value(model.coef_[0]) == pytest.approx(caught.value.result.value[0])


def slow(block):
    time.sleep(4)
    return None, [np.zeros(1)]


@pytest.mark.parametrize("how", ["Ctrl-C", "limit"])
def test_waiting_for_workers_can_be_ended(client, how):
    samples = cd.DaskSource(*chunked(1, A, T), client=client).samples()
    _ = samples.sizes
    begun = time.monotonic()
    if how == "Ctrl-C":
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            samples.visit(slow)
    else:

        def poll():
            if time.monotonic() > begun + 0.5:
                raise TimeoutError("so late")

        with pytest.raises(TimeoutError, match="so late"):
            samples.visit(slow, poll=poll)
    assert not samples.transport._fetching  # nothing is waited for any more


def broken(k):
    raise FileNotFoundError(f"part {k} is on no disk")


def test_errors_of_functions_come_as_they_are(client):
    with pytest.raises(FileNotFoundError, match="part 1 is on no disk"):
        cd.Ridge().fit([dask.delayed(rows)(0, 2), dask.delayed(broken)(1)])
    bad = A.copy()
    bad[5, 2] = np.nan
    with pytest.raises(ValueError, match="X holds NaN or infinity"):
        cd.Ridge().fit(*chunked(2, bad, T))


def test_what_is_refused(client, monkeypatch):
    X, t = chunked(4, A, T)
    with pytest.raises(TypeError, match="X is a ndarray; it must be a dask array or dataframe"):
        cd.Ridge().fit(A, T)
    with pytest.raises(TypeError, match="y is a ndarray; beside a dask X it must be a dask array or series"):
        cd.Ridge().fit(X, T)
    with pytest.raises(TypeError, match="y is missing"):
        cd.Ridge().fit(X)
    with pytest.raises(TypeError, match="leave y and sample_weight out"):
        cd.Ridge().fit([dask.delayed(rows)(0, 2)], t)
    with pytest.raises(TypeError, match="X holds a int"):
        cd.Ridge().fit([3])
    with pytest.raises(ValueError, match="y has 279 rows where X has 280"):
        cd.Ridge().fit(X, t[1:])
    with pytest.raises(ValueError, match="X has no partitions"):
        cd.Ridge().fit([])
    with pytest.raises(ValueError, match="only one class"):
        cd.LogisticRegression().fit(X, da.ones_like(t))
    with pytest.raises(ValueError, match="positive=True needs the samples in memory"):
        cd.Lasso(positive=True).fit(X, t)
    with pytest.raises(TypeError, match="client is a str"):
        cd.Ridge(client="here").fit(X, t)
    with pytest.raises(ValueError, match="'patience' parameter of Ridge must be a float"):
        cd.Ridge(patience=0).fit(X, t)
    monkeypatch.setattr("distributed.Client.current", staticmethod(_none))
    with pytest.raises(ValueError, match=r"there is no Dask client; start one, as in client = distributed.Client\(\)"):
        cd.Ridge().fit(X, t)
    cd.Ridge(client=client).fit(X, t)
    assert issubclass(base.RowsLost, RuntimeError)


def _none():
    raise ValueError("No clients found")


@pytest.mark.slow
def test_the_example_of_the_documentation_works_as_printed(tmp_path):
    text = (Path(__file__).parents[1] / "docs" / "scaling.md").read_text()
    program = tmp_path / "example.py"
    program.write_text(text.split("```python\n")[1].split("```")[0])
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert re.match(r"\S+ 0\.\d+ dask\.array<_applied, shape=\(100000,\)", done.stdout)
