"""Estimators on samples that are elsewhere: the answers, gaps and attributes of the same fits in memory."""

import itertools
import os

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import coordwise as cw
from coordwise import datasets
from coordwise.datasets.sources.base import size_of
from coordwise.estimators import (
    ElasticNet,
    HuberRegressor,
    L2L1Regressor,
    Lasso,
    LassoCV,
    LinearSVC,
    LinearSVR,
    LogisticRegression,
    LogisticRegressionCV,
    Ridge,
    RidgeClassifier,
    RidgeClassifierCV,
    RidgeCV,
)
from coordwise.interrupts import Failed, Interrupted
from coordwise.solvers import SOLVERS

N, D = 240, 12
CUTS = [0, 80, 160, 239, 240]  # one chunk has one row, and therefore one class
KNOWN = {solver.name for solver in SOLVERS}
KINKS = {"l2l1", "svc hinge", "svr with a kink"}


def data(storage="csr", dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D)) * 10 ** rng.uniform(-0.5, 0.5, D)
    X = np.where(rng.random(X.shape) < 0.6, X, 0.0).astype(dtype)
    t = X @ rng.standard_normal(D) + 0.5 * rng.standard_normal(N) + 0.7
    return (sp.csr_array(X) if storage == "csr" else X), t, rng.integers(0, 3, N) * 1.0


def targets(kind, t):
    if kind == "numbers":
        return t
    if kind == "table":
        return np.column_stack([t, np.abs(t), -2 * t + 1])
    return np.digitize(t, [0.0] if kind == "two" else [-1.0, 1.5]) * 2.0 - 1


def batches(X, y, s=None):
    for begin, end in itertools.pairwise(CUTS):
        yield (X[begin:end], y[begin:end]) if s is None else (X[begin:end], y[begin:end], s[begin:end])


def folder_of(path, X, y=None, s=None):
    """A folder whose chunks are cut as above."""
    parts = batches(X, np.zeros(N) if y is None else y, s)
    size = min(size_of(part) for part, *_ in list(batches(X, np.zeros(N)))[:3])
    made = datasets.convert(parts, path / "to", chunk_bytes=size)
    assert [chunk.rows for chunk in made.chunks] == [80, 80, 79, 1]
    return made


CASES = {
    "ridge": (Ridge(alpha=0.5), "numbers"),
    "ridge without intercept": (Ridge(alpha=0.5, fit_intercept=False), "numbers"),
    "ridge of several targets": (Ridge(alpha=2.0), "table"),
    "ridge of several alphas": (Ridge(alpha=np.array([0.1, 1.0, 1.0])), "table"),
    "l2l1": (L2L1Regressor(alpha=0.1), "numbers"),
    "huber": (HuberRegressor(alpha=0.01), "numbers"),
    "huber without intercept": (HuberRegressor(alpha=0.01, fit_intercept=False), "numbers"),
    "lasso": (Lasso(alpha=0.05), "numbers"),
    "elastic net": (ElasticNet(alpha=0.05, l1_ratio=0.3), "numbers"),
    "logistic": (LogisticRegression(C=0.3), "two"),
    "logistic without intercept": (LogisticRegression(C=0.3, fit_intercept=False), "two"),
    "logistic balanced": (LogisticRegression(C=0.3, class_weight="balanced"), "two"),
    "logistic l1": (LogisticRegression(C=0.3, l1_ratio=1.0), "two"),
    "logistic elastic net": (LogisticRegression(C=0.3, l1_ratio=0.5), "two"),
    "multinomial": (LogisticRegression(C=0.3), "three"),
    "multinomial weighted": (LogisticRegression(C=0.3, class_weight={-1.0: 3.0, 3.0: 0.5}), "three"),
    "ridge classifier": (RidgeClassifier(), "two"),
    "ridge classifier of three": (RidgeClassifier(class_weight="balanced"), "three"),
    "svc": (LinearSVC(C=0.1), "two"),
    "svc of three": (LinearSVC(C=0.1), "three"),
    "svc of three, weighted": (LinearSVC(C=0.1, class_weight={-1.0: 3.0}), "three"),
    "svc balanced": (LinearSVC(C=0.1, class_weight="balanced"), "three"),
    "svc with a large scaling": (LinearSVC(C=0.1, intercept_scaling=5.0), "two"),
    "svc with a free intercept": (LinearSVC(C=0.1, intercept_scaling=np.inf), "two"),
    "svc hinge": (LinearSVC(C=0.1, loss="hinge"), "two"),
    "svc l1": (LinearSVC(C=0.1, penalty="l1"), "two"),
    "svr": (LinearSVR(C=0.1, epsilon=0.2, loss="squared_epsilon_insensitive"), "numbers"),
    "svr with a kink": (LinearSVR(C=0.1, epsilon=0.2), "numbers"),
}
KINKS = {"l2l1", "svc hinge", "svr with a kink"}  # whose coordinate steps take long to fine tolerances


def accuracy(name):
    """The tolerance of a fit, and that of its coefficients."""
    return (1e-5, 2e-2) if name in KINKS else (1e-9, 2e-4)


def fitted(estimator, *args, tol=1e-9, **options):
    return clone(estimator).set_params(tol=tol, max_iter=5000).fit(*args, **options)


def assert_same_model(found, known, X, y, atol=2e-4):
    assert found.coef_.shape == known.coef_.shape
    assert np.shape(found.intercept_) == np.shape(known.intercept_)
    assert found.coef_.dtype == known.coef_.dtype
    assert np.shape(found.n_iter_) == np.shape(known.n_iter_)
    assert np.shape(found.dual_gap_) == np.shape(known.dual_gap_)
    size = np.abs(known.coef_).max()
    np.testing.assert_allclose(found.coef_, known.coef_, rtol=0, atol=atol * size)
    np.testing.assert_allclose(
        found.intercept_, known.intercept_, rtol=0, atol=atol * (1 + np.abs(known.intercept_).max())
    )
    assert found.n_features_in_ == known.n_features_in_
    if hasattr(known, "classes_"):
        np.testing.assert_array_equal(found.classes_, known.classes_)
        assert np.mean(found.predict(X) == known.predict(X)) > 0.98


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_a_folder_gives_the_model_of_the_same_samples_in_memory(name, weighted, tmp_path):
    (estimator, kind), (tol, atol) = CASES[name], accuracy(name)
    X, t, s = data()
    y, s = targets(kind, t), s if weighted else None
    folder = folder_of(tmp_path, X, y, s)
    found, known = fitted(estimator, folder, tol=tol), fitted(estimator, X, y, sample_weight=s)
    assert_same_model(found, known, X, y, atol=atol)
    assert np.all(
        found.dual_gap_ <= tol * np.concatenate([np.atleast_1d(r.scale) for r in np.atleast_1d(found.result_)])
    )
    assert ("all samples in memory" in found.strategy_) == (name in KINKS)
    assert name in KINKS or any(solver in found.strategy_ for solver in KNOWN)
    assert found.passes_ > 0
    np.testing.assert_array_equal(found.predict(folder), found.predict(X))
    assert found.score(folder) == pytest.approx(found.score(X, y, sample_weight=s), rel=1e-12)


@pytest.mark.parametrize("storage", ["csr", "dense"])
@pytest.mark.parametrize("name", ["ridge", "ridge of several targets", "logistic", "svc of three", "huber"])
def test_float32_stays(name, storage, tmp_path):
    estimator, kind = CASES[name]
    X, t, _ = data(storage, np.float32)
    y = targets(kind, t)
    found, known = fitted(estimator, folder_of(tmp_path, X, y), tol=1e-6), fitted(estimator, X, y, tol=1e-6)
    assert found.coef_.dtype == np.float32
    assert_same_model(found, known, X, y, atol=1e-2)


@pytest.mark.parametrize("name", ["ridge", "logistic balanced", "svc of three, weighted", "ridge classifier of three"])
def test_targets_and_weights_beside_a_folder(name, tmp_path):
    estimator, kind = CASES[name]
    X, t, s = data()
    y = targets(kind, t)
    folder = datasets.convert(X, tmp_path / "bare", chunk_bytes=2000)
    assert_same_model(fitted(estimator, folder, y, s), fitted(estimator, X, y, s), X, y)
    assert_same_model(fitted(estimator, folder, y), fitted(estimator, X, y), X, y)
    assert fitted(estimator, folder, y, 2.0).result_ is not None
    with pytest.raises(ValueError, match="y is missing"):
        fitted(estimator, folder)


def test_labels_of_any_kind_beside_a_folder(tmp_path):
    X, t, _ = data()
    y = np.array(["left", "middle", "right"])[np.digitize(t, [-1.0, 1.5])]
    folder = datasets.convert(X, tmp_path / "bare", chunk_bytes=2000)
    found, known = fitted(LinearSVC(), folder, y), fitted(LinearSVC(), X, y)
    assert_same_model(found, known, X, y)
    assert found.classes_.tolist() == ["left", "middle", "right"]
    assert found.score(folder, y) == known.score(X, y)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_batches_give_the_model_of_all_samples(name, weighted):
    (estimator, kind), (tol, atol) = CASES[name], accuracy(name)
    X, t, s = data()
    y, s = targets(kind, t), s if weighted else None
    found = clone(estimator).set_params(tol=tol, max_iter=5000).fit_batches(lambda: batches(X, y, s))
    assert_same_model(found, fitted(estimator, X, y, sample_weight=s), X, y, atol=atol)


def test_several_labels_per_sample(tmp_path):
    X, t, _ = data()
    y = np.column_stack([t > 0, t > 1, t < 0.5]).astype(float)
    folder = folder_of(tmp_path, X, y)
    found, known = fitted(RidgeClassifier(), folder), fitted(RidgeClassifier(), X, y)
    assert_same_model(found, known, X, y)
    np.testing.assert_array_equal(found.predict(folder), known.predict(X))
    with pytest.raises(ValueError, match="class_weight with several labels"):
        fitted(RidgeClassifier(class_weight="balanced"), folder)
    with pytest.raises(ValueError, match="takes one label per sample"):
        fitted(LogisticRegression(), folder)
    with pytest.raises(ValueError, match="takes one target per sample"):
        fitted(LinearSVR(), folder)


def test_features_far_from_zero(tmp_path):
    X, t, _ = data("dense")
    X = X + np.where(np.arange(D) % 2, 1e6, 0.0)
    t = t + 1e7
    for estimator, y in ((Ridge(alpha=0.5), t), (LogisticRegression(C=0.3), np.sign(t - 1e7))):
        path = tmp_path / type(estimator).__name__
        path.mkdir()
        found, known = fitted(estimator, folder_of(path, X, y)), fitted(estimator, X, y)
        assert found.dual_gap_ <= 1e-9 * found.result_.scale[0]
        np.testing.assert_allclose(found.coef_, known.coef_, rtol=0, atol=1e-4 * np.abs(known.coef_).max())
        scores = (X @ np.ravel(found.coef_) + found.intercept_) - (X @ np.ravel(known.coef_) + known.intercept_)
        assert np.abs(scores).max() < 1e-3


def test_feature_names_and_predictions(tmp_path):
    X, t, _ = data("dense")
    y = targets("two", t)
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    names = [f"f{j}" for j in range(D)]
    pyarrow.parquet.write_table(pa.table({**{n: X[:, j] for j, n in enumerate(names)}, "y": y}), tmp_path / "a.parquet")
    folder = datasets.convert(tmp_path / "a.parquet", tmp_path / "to", target="y", chunk_bytes=1000)
    found = fitted(LogisticRegression(), folder)
    assert found.feature_names_in_.tolist() == names
    np.testing.assert_allclose(found.decision_function(folder), X @ found.coef_[0] + found.intercept_[0], rtol=1e-12)
    P = found.predict_proba(folder)
    assert P.shape == (N, 2)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    np.testing.assert_allclose(P[:, 1], 1 / (1 + np.exp(-found.decision_function(folder))), rtol=1e-12)
    with pytest.raises(ValueError, match="is expecting 12 features"):
        found.predict(datasets.convert(X[:, :5], tmp_path / "narrow"))


def test_warm_start(tmp_path):
    X, t, _ = data()
    folder = folder_of(tmp_path, X, targets("two", t))
    model = LogisticRegression(tol=1e-9, warm_start=True, max_iter=1000).fit(folder)
    first = model.passes_
    assert model.fit(folder).passes_ < first / 2


def refuse(message, error, call):
    with pytest.raises(error, match=message):
        call()


def test_wrong_input(tmp_path):
    X, t, _ = data()
    folder = folder_of(tmp_path, X, t)
    labels = targets("two", t)
    nan = np.where(np.arange(N) == 3, np.nan, t)
    refuse(r"y has shape \(3,\)", ValueError, lambda: Ridge().fit(folder, np.ones(3)))
    refuse("y holds NaN", ValueError, lambda: Ridge().fit(folder, nan))
    refuse("contains NaN", ValueError, lambda: LogisticRegression().fit(folder, nan))
    refuse(r"y has shape \(3,\)", ValueError, lambda: LogisticRegression().fit(folder, np.array([1, 0, 1])))
    refuse("sample_weight has shape", ValueError, lambda: Ridge().fit(folder, sample_weight=np.ones(3)))
    refuse("sample_weight must be at least 0", ValueError, lambda: Ridge().fit(folder, sample_weight=-np.ones(N)))
    refuse("only one class", ValueError, lambda: LogisticRegression().fit(folder, np.ones(N)))
    refuse("Unknown label type", ValueError, lambda: LogisticRegression().fit(folder))
    refuse("positive=True needs", ValueError, lambda: Ridge(positive=True).fit(folder))
    refuse("needs the samples in memory; .*'newton_cg'", ValueError, lambda: Ridge(strategy="krylov").fit(folder))
    refuse(
        "penalty='l1' and loss='hinge'", ValueError, lambda: LinearSVC(penalty="l1", loss="hinge").fit(folder, labels)
    )
    refuse("no solver applies", ValueError, lambda: LinearSVR(strategy="newton_cg").fit(folder))
    assert not hasattr(Ridge(), "coef_")


@pytest.mark.parametrize("estimator", [RidgeCV(), LassoCV(), RidgeClassifierCV(), LogisticRegressionCV()])
def test_cross_validation_needs_memory(estimator, tmp_path):
    X, t, _ = data()
    name = type(estimator).__name__
    with pytest.raises(TypeError, match=f"{name} needs the samples in memory.* fit {name[:-2]} for each"):
        estimator.fit(folder_of(tmp_path, X, targets("two", t)))
    with pytest.raises(TypeError, match="needs the samples in memory"):
        estimator.fit_batches(lambda: batches(X, targets("two", t)))


def test_paths_and_partial_fits_need_memory(tmp_path):
    X, t, _ = data()
    folder = folder_of(tmp_path, X, t)
    for call in (
        lambda: Lasso().path(folder, t),
        lambda: LogisticRegression().path(folder, t),
        lambda: Ridge().partial_fit(folder, t),
    ):
        with pytest.raises(TypeError, match="needs the samples in memory, as arrays"):
            call()


def test_callbacks_stop_a_fit_and_see_progress(tmp_path):
    X, t, _ = data()
    folder = folder_of(tmp_path, X, targets("two", t))
    seen = []

    def callback(progress):
        seen.append(progress)
        return len(seen) == 2

    with pytest.warns(ConvergenceWarning, match="stopped before it converged .stopped"):
        model = LogisticRegression(tol=1e-12, callbacks=callback).fit(folder)
    assert len(seen) == 2
    assert seen[1].passes > seen[0].passes
    assert model.dual_gap_ == pytest.approx(float(seen[1].gap[0]), rel=1e-12)


def test_limits(tmp_path):
    X, t, _ = data()
    folder = folder_of(tmp_path, X, targets("two", t))
    with pytest.warns(ConvergenceWarning, match="max_passes"):
        model = LogisticRegression(tol=1e-12, max_iter=8).fit(folder)
    assert model.passes_ >= 8
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        model = LogisticRegression(tol=1e-12, time_limit=0.0).fit(folder)
    assert not model.coef_.any()


def interrupt_after(k):
    def callback(progress):
        callback.calls += 1
        if callback.calls > k:
            raise KeyboardInterrupt

    callback.calls = 0
    return callback


@pytest.mark.parametrize("k", [0, 1, 2])
@pytest.mark.parametrize("name", ["ridge", "ridge of several alphas", "logistic", "svc of three, weighted", "huber"])
def test_an_interrupt_leaves_the_best_point(name, k, tmp_path):
    estimator, kind = CASES[name]
    X, t, _ = data()
    y = targets(kind, t)
    folder = folder_of(tmp_path, X, y)
    options = {"tol": 1e-13, "callbacks": interrupt_after(k), "strategy": "newton_cg"}
    estimator = type(estimator)(**{**estimator.get_params(), **options})
    with pytest.raises(Interrupted) as stop:
        estimator.fit(folder)
    assert estimator.n_features_in_ == D
    assert estimator.predict(X).shape == y.shape
    assert stop.value.result is estimator.result_
    found = np.atleast_1d(estimator.result_)[0]
    assert found.status == "interrupted"
    assert np.all(np.isfinite(estimator.coef_))


def test_verbose_prints(tmp_path, capsys, monkeypatch):
    X, t, _ = data()
    monkeypatch.setattr("coordwise.estimators.progress.time.perf_counter", iter(np.arange(0.0, 1e6, 10.0)).__next__)
    LogisticRegression(verbose=1).fit(folder_of(tmp_path, X, targets("two", t)))
    assert "LogisticRegression: pass" in capsys.readouterr().err


def spoil(folder, how):
    """Change the third chunk's values: cut them off, write others of the same size, or remove them."""
    path = folder.path / "000002.values.npy"
    content = bytearray(path.read_bytes())
    if how == "truncated":
        os.truncate(path, len(content) - 8)
    elif how == "missing":
        path.unlink()
    else:
        content[-3] ^= 1
        path.write_bytes(bytes(content))
        os.utime(path, ns=(1, 1))


@pytest.mark.parametrize("how", ["truncated", "missing", "changed"])
@pytest.mark.parametrize("name", ["ridge of several alphas", "logistic", "svc of three, weighted", "huber"])
def test_a_file_that_fails_in_mid_fit(name, how, tmp_path):
    estimator, kind = CASES[name]
    X, t, _ = data()
    folder = folder_of(tmp_path, X, targets(kind, t))
    done = []

    def callback(progress):
        done.append(progress)
        if len(done) == 3:
            spoil(folder, how)

    options = {"tol": 1e-13, "callbacks": callback, "strategy": "newton_cg"}
    estimator = type(estimator)(**{**estimator.get_params(), **options})
    with pytest.raises(Failed, match=r"000002\.values\.npy") as failure:
        estimator.fit(folder)
    known = np.atleast_1d(failure.value.result)[0]
    assert np.all(np.isfinite(known.gap[:1]))
    if name != "huber":  # another scale, another gap
        assert known.gap[0] <= float(np.atleast_1d(done[2].gap)[0]) * (1 + 1e-12)
    assert np.all(np.isfinite(estimator.coef_))
    assert np.any(estimator.coef_)


@pytest.mark.parametrize("how", ["truncated", "missing", "changed"])
def test_a_file_that_fails_before_the_first_pass_leaves_no_model(how, tmp_path):
    X, t, _ = data()
    folder = folder_of(tmp_path, X, t)
    spoil(folder, how)
    model = Ridge()
    with pytest.raises(Failed, match=r"000002\.values\.npy"):
        model.fit(folder)
    assert not np.any(getattr(model, "coef_", 0.0))
    with pytest.raises((ValueError, OSError), match=r"000002\.values\.npy"):
        Ridge().fit(X, t).predict(folder)


def test_batches_that_are_wrong():
    X, t, s = data("dense")

    def of(*found):
        return lambda: iter(found)

    half = N // 2
    one, two = (X[:half], t[:half]), (X[half:], t[half:])
    refuse("make_batches must be callable", TypeError, lambda: Ridge().fit_batches([one, two]))
    refuse("must return an iterable", TypeError, lambda: Ridge().fit_batches(lambda: 3))
    refuse("yielded no samples", ValueError, lambda: Ridge().fit_batches(of()))
    refuse("batch 1 is a ndarray", TypeError, lambda: Ridge().fit_batches(of(one, X)))
    refuse("X of batch 1 has 5 columns", ValueError, lambda: Ridge().fit_batches(of(one, (X[:, :5], t))))
    refuse("y of batch 0 has shape", ValueError, lambda: Ridge().fit_batches(of((X, t[:4]))))
    refuse("y of batch 1 has shape", ValueError, lambda: Ridge().fit_batches(of(one, (X, np.column_stack([t, t])))))
    refuse("y of batch 0 holds NaN", ValueError, lambda: Ridge().fit_batches(of((X, np.full(N, np.nan)))))
    refuse("all batches must have weights", ValueError, lambda: Ridge().fit_batches(of(one, (*two, s[half:]))))
    refuse("negative", ValueError, lambda: Ridge().fit_batches(of((X, t, -s))))
    refuse("at least one positive", ValueError, lambda: Ridge().fit_batches(of((X, t, 0 * s))))
    refuse("is for classifiers", ValueError, lambda: Ridge().fit_batches(of(one, two), classes=[0, 1]))
    labels = np.sign(t)
    refuse("the labels in the batches", ValueError, lambda: LinearSVC().fit_batches(of((X, labels)), classes=[0, 1]))
    assert LinearSVC().fit_batches(of((X[:0], labels[:0]), (X, labels)), classes=[1, -1]).coef_.any()


def test_passes_that_disagree():
    X, t, _ = data("dense")
    calls = []

    def fewer():
        calls.append(0)
        return iter([(X[:100], t[:100]), (X[100:], t[100:])][: 2 if len(calls) == 1 else 1])

    def shuffled():
        calls.append(0)
        order = np.random.default_rng(len(calls)).permutation(N)
        return iter([(X[order], t[order])])

    once = iter([(X, t)])
    refuse("yielded 100 samples, and the first one 240", ValueError, lambda: Ridge().fit_batches(fewer))
    refuse("batch 0 of a later pass differs", ValueError, lambda: Ridge().fit_batches(shuffled))
    refuse("yielded 0 samples", ValueError, lambda: Ridge().fit_batches(lambda: once))


def test_threads_give_the_same_model(tmp_path):
    X, t, _ = data()
    folder = folder_of(tmp_path, X, targets("two", t))
    one, two = (LogisticRegression(tol=1e-9, n_jobs=n).fit(folder) for n in (1, 2))
    np.testing.assert_allclose(two.coef_, one.coef_, rtol=0, atol=1e-8)


def test_the_gap_is_that_of_the_problem_in_memory(tmp_path):
    X, t, s = data()
    y = targets("two", t)
    model = LogisticRegression(C=0.3, tol=1e-3, fit_intercept=False).fit(folder_of(tmp_path, X, y, s))
    problem = cw.ERM(X, y, loss="logistic", lam=1 / (0.3 * s.sum()), sample_weight=s)
    w = model.coef_[0]
    best = cw.solve(problem.dual(), tol=1e-12)
    assert problem.value(w) - problem.value(best.w) <= model.dual_gap_
    assert model.dual_gap_ <= 1e-3 * problem.value(np.zeros(D))
