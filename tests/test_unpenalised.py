"""No penalty: scikit-learn's solutions where they are unique, dual points from their definition, and an end anyhow."""

import numpy as np
import pytest
import scipy.sparse as sp

pytest.importorskip("sklearn")

from sklearn import linear_model as lm
from sklearn.exceptions import ConvergenceWarning

import coordwise as cw
from coordwise import estimators as E
from coordwise.fitting.fit import fit
from coordwise.fitting.model import LinearModel
from coordwise.fitting.unpenalised import NoPenalty, penalty_of
from coordwise.results import Status

weighted_or_not = pytest.mark.parametrize("weighted", [False, True], ids=["equal", "weighted"])
with_and_without = pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "through_0"])
stores = pytest.mark.parametrize("store", [np.asarray, sp.csr_array], ids=["dense", "csr"])


def data(n=150, d=6, seed=0):
    """(X, y, weights, noisy classes 0, 1, 2): columns of different sizes and means; some weights are 0."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * 10 ** rng.uniform(-1, 1, d) + rng.uniform(-1, 1, d)
    t = X @ (rng.standard_normal(d) / np.abs(X).mean(0))
    y = t + 2 + 2 * t.std() * rng.standard_normal(n)
    return X, y, np.where(rng.random(n) < 0.1, 0.0, rng.uniform(0.1, 2, n)), np.digitize(y, np.quantile(y, [0.3, 0.6]))


def assert_same(ours, theirs, rtol=1e-6):
    size = max(np.max(np.abs(theirs.coef_)), np.max(np.abs(theirs.intercept_)))
    for name in ("coef_", "intercept_"):
        a, b = np.squeeze(getattr(ours, name)), np.squeeze(getattr(theirs, name))
        np.testing.assert_allclose(a, np.broadcast_to(b, a.shape), rtol=0, atol=rtol * size)


@stores
@weighted_or_not
@with_and_without
@pytest.mark.parametrize("ours", [E.Ridge(alpha=0), E.Lasso(alpha=0), E.ElasticNet(alpha=0)], ids=["r", "l", "e"])
@pytest.mark.parametrize("positive", [False, True])
def test_least_squares(store, weighted, intercept, ours, positive):
    X, y, s, _ = data()
    s = s if weighted else None
    ours.set_params(tol=1e-12, fit_intercept=intercept, positive=positive).fit(store(X), y, s)
    theirs = lm.LinearRegression(fit_intercept=intercept, positive=positive).fit(X, y, s)
    assert_same(ours, theirs)
    assert ours.result_.converged
    if not positive:
        assert_same(ours, lm.Ridge(alpha=0, solver="svd", fit_intercept=intercept).fit(X, y, s))


@stores
@with_and_without
@pytest.mark.parametrize("shape", ["wide", "repeated", "constant"])
def test_the_smallest_of_many_solutions(store, intercept, shape):
    X, y, _, _ = data()
    if shape == "wide":
        X, y = np.random.default_rng(1).standard_normal((20, 50)), y[:20]
    elif shape == "repeated":
        X = np.column_stack([X, X[:, :2]])
    else:
        X = np.column_stack([X, np.full(len(X), 3.0)])
    ours = E.Ridge(alpha=0, tol=1e-12, fit_intercept=intercept).fit(store(X), np.column_stack([y, -(y**2)]))
    theirs = lm.LinearRegression(fit_intercept=intercept).fit(X, np.column_stack([y, -(y**2)]))
    assert_same(ours, theirs)
    assert ours.result_.converged


@with_and_without
@pytest.mark.parametrize("shape", [(300, 60), (40, 90)])
def test_many_features(intercept, shape, monkeypatch):
    monkeypatch.setattr("coordwise.fitting.unpenalised.FEW", 10)
    rng = np.random.default_rng(2)
    X = sp.random_array(shape, density=0.3, rng=rng, format="csr")
    y = X @ np.ones(shape[1]) + 1 + rng.standard_normal(shape[0])
    ours = E.Ridge(alpha=0, tol=1e-13, fit_intercept=intercept).fit(X, y)
    assert_same(ours, lm.LinearRegression(fit_intercept=intercept).fit(X.toarray(), y))
    if shape[0] > shape[1]:
        b = np.where(rng.random(shape[0]) < 0.5, "no", "yes")
        ours = E.LogisticRegression(C=np.inf, tol=1e-12, fit_intercept=intercept, max_iter=10_000).fit(X, b)
        theirs = lm.LogisticRegression(C=np.inf, tol=1e-12, solver="newton-cholesky", fit_intercept=intercept)
        assert_same(ours, theirs.fit(X.toarray(), b))


@stores
@weighted_or_not
@with_and_without
@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("few", [True, False], ids=["newton", "lbfgs"])
def test_logistic_regression(store, weighted, intercept, count, few, monkeypatch):
    if not few:
        monkeypatch.setattr("coordwise.fitting.multinomial.FEW", 0)
    X, _, s, y = data()
    y, s = np.minimum(y, count - 1), s if weighted else None
    ours = E.LogisticRegression(C=np.inf, tol=1e-12, max_iter=2000, fit_intercept=intercept).fit(store(X), y, s)
    theirs = lm.LogisticRegression(C=np.inf, tol=1e-12, solver="newton-cholesky", fit_intercept=intercept)
    assert_same(ours, theirs.fit(X, y, s), 1e-6 if few else 1e-5)  # L-BFGS ends at a gap of 1e-12, Newton far below
    assert ours.dual_gap_ <= 1e-12 * np.log(count)


@with_and_without
@pytest.mark.parametrize("count", [2, 3])
def test_ridge_classifier(intercept, count):
    X, _, s, y = data()
    y = np.minimum(y, count - 1)
    ours = E.RidgeClassifier(alpha=0, tol=1e-12, fit_intercept=intercept).fit(X, y, s)
    assert_same(ours, lm.RidgeClassifier(alpha=0, solver="cholesky", fit_intercept=intercept).fit(X, y, s))


@with_and_without
def test_huber(intercept):
    X, y, s, _ = data()
    ours = E.HuberRegressor(alpha=0, tol=1e-11, fit_intercept=intercept).fit(X, y, s)
    theirs = lm.HuberRegressor(alpha=0, tol=1e-8, max_iter=100_000, fit_intercept=intercept).fit(X, y, s)
    assert ours.result_.converged
    assert_same(ours, theirs, 1e-3)  # L-BFGS stops there

    def value(model):
        z = np.abs(y - model.predict(X)) / model.scale_
        return s @ (model.scale_ * (1 + np.where(z <= 1.35, z**2, 2.7 * z - 1.35**2)))

    assert value(ours) <= value(theirs) * (1 + 1e-9)


@weighted_or_not
@with_and_without
@pytest.mark.parametrize("loss", ["squared", "logistic", "huber"])
@pytest.mark.parametrize("tol", [1e-2, 1e-9])
def test_the_dual_point_from_its_definition(loss, weighted, intercept, tol):
    X, y, s, codes = data()
    s = s if weighted else np.ones(len(y))
    b = np.where(codes > 0, 1.0, -1.0) if loss == "logistic" else y
    model = LinearModel(cw.ERM(X, b, loss, NoPenalty(), sample_weight=s), intercept)
    found = fit(model, tol=tol)
    assert found.converged
    dual = found.y[:, 0]
    assert np.all(np.abs(X.T @ dual) <= 1e-10 * np.linalg.norm(X, axis=0) * np.linalg.norm(dual))
    if intercept:
        assert abs(dual.sum()) <= 1e-10 * np.abs(dual).sum()
    value = s @ model.loss.value(X @ found.w[:, 0] + found.c[0], b) / s.sum()
    gap = value + model.loss.conjugate(dual, b, s).sum() / s.sum()
    assert value == pytest.approx(found.value[0], rel=1e-12)
    assert gap <= tol * s @ model.loss.value(np.zeros(len(b)), b) / s.sum()
    assert found.gap[0] == pytest.approx(gap, abs=1e-10 * value)
    exact = fit(model, tol=1e-12).value[0]
    assert found.gap[0] >= found.value[0] - exact - 1e-12 * value


def test_kkt_conditions_of_nonnegative_least_squares():
    X, y, s, _ = data()
    found = E.Ridge(alpha=0, positive=True, tol=1e-12).fit(X, y - 3 * X[:, 0], s)
    moments = X.T @ (s * (y - 3 * X[:, 0] - found.predict(X)))
    size = np.abs(X).T @ (s * np.abs(y))
    assert np.all(found.coef_ >= 0)
    assert np.any(found.coef_ == 0)
    assert np.any(found.coef_ > 0)
    assert np.all(moments <= 1e-10 * size)
    assert np.all(np.abs(moments[found.coef_ > 0]) <= 1e-10 * size[found.coef_ > 0])


@pytest.mark.parametrize(
    "case", ["separated", "touching", "fewer samples than features", "three classes", "three wide"]
)
@pytest.mark.parametrize("few", [True, False])
def test_separable_classes_end_with_a_warning(case, few, monkeypatch):
    if not few:
        monkeypatch.setattr("coordwise.fitting.unpenalised.FEW", 0)
        monkeypatch.setattr("coordwise.fitting.multinomial.FEW", 0)
    X = np.random.default_rng(3).standard_normal((40, 3))
    y = (X[:, 0] > 0).astype(int)
    if case == "touching":  # separated but for samples on the hyperplane itself
        X[:10], y[:10] = 0.0, np.arange(10) % 2
    elif case == "fewer samples than features":
        X, y = np.random.default_rng(4).standard_normal((10, 30)), np.arange(10) % 2
    elif case == "three classes":
        y = np.digitize(X[:, 0], [-0.5, 0.5])
    elif case == "three wide":
        X, y = np.random.default_rng(4).standard_normal((12, 30)), np.arange(12) % 3
    with pytest.warns(ConvergenceWarning, match="hyperplane separates the classes there is no minimum"):
        found = E.LogisticRegression(C=np.inf).fit(X, y)
    assert np.all(np.isfinite(found.coef_))
    assert found.dual_gap_ == np.inf
    assert found.n_iter_ <= 100
    assert found.result_.status in (Status.DIVERGED, Status.MAX_PASSES, Status.STALLED)
    assert found.score(X, y) >= 0.85


def test_a_path_may_end_without_a_penalty():
    X, y, s, codes = data()
    path = E.Lasso(tol=1e-12).path(X, y, [1.0, 0.0], sample_weight=s)
    np.testing.assert_allclose(path.coefs[-1], lm.LinearRegression().fit(X, y, s).coef_, rtol=1e-6)
    assert path.converged.all()
    path = E.LogisticRegression(tol=1e-12).path(X, codes > 0, [0.1, np.inf])
    single = E.LogisticRegression(C=np.inf, tol=1e-12).fit(X, codes > 0)
    np.testing.assert_allclose(path.coefs[-1], single.coef_, rtol=1e-6)


def test_strategies():
    X, y, _, codes = data()
    for strategy in ("dual", "primal", "working_set", "gram"):
        with pytest.raises(ValueError, match=f"strategy='{strategy}' does not apply here: .* or one of newton"):
            E.Ridge(alpha=0, strategy=strategy).fit(X, y)
    assert E.Ridge(alpha=0, strategy="newton").fit(X, y).result_.converged
    b = np.where(codes > 0, 1.0, -1.0)
    with pytest.raises(ValueError, match=r"w >= 0 alone is for the squared loss\. Give a penalty"):
        fit(LinearModel(cw.ERM(X, b, "logistic", NoPenalty(positive=True)), True), tol=1e-3)
    wide = sp.csr_array((3, 20_000))
    with pytest.raises(ValueError, match="needs a Gram matrix of all 20000 features"):
        E.Ridge(alpha=0, positive=True).fit(wide, [1.0, 2.0, 3.0])


def test_limits_and_callbacks():
    X, y, _, codes = data()
    with pytest.warns(ConvergenceWarning, match=r"\(max_passes\)"):
        E.LogisticRegression(C=np.inf, tol=1e-12, max_iter=1).fit(X, codes > 0)
    with pytest.warns(ConvergenceWarning, match=r"\(time_limit\)"):
        E.LogisticRegression(C=np.inf, tol=1e-12, time_limit=0.0).fit(X, codes > 0)
    with pytest.warns(ConvergenceWarning, match=r"\(stopped\)"):
        E.LogisticRegression(C=np.inf, tol=1e-12, callbacks=lambda progress: True).fit(X, codes > 0)
    assert E.Ridge(alpha=0, tol=1e-12).fit(X, np.zeros(len(y))).dual_gap_ == 0


def test_no_penalty():
    nothing = penalty_of(0.0, 0.0)
    assert isinstance(nothing, NoPenalty)
    assert penalty_of(0.0, 1.0) == cw.penalties.ElasticNet(0.0, 1.0)
    v = np.array([[0.0, 1.0, -1.0]])
    np.testing.assert_array_equal(nothing.value(v), 0.0)
    np.testing.assert_array_equal(nothing.conjugate(v), [0, np.inf, np.inf])
    np.testing.assert_array_equal(NoPenalty(positive=True).conjugate(v), [0, np.inf, 0])
    np.testing.assert_array_equal(NoPenalty(positive=True).value(v), [0, 0, np.inf])
    assert repr(NoPenalty(positive=True)) == "NoPenalty(positive=True)"
    with pytest.raises(ValueError, match="penalty is zero"):
        cw.penalties.ElasticNet(0.0, 0.0)
