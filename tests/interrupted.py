"""Calls in a loop that only Ctrl-C ends, and what it leaves; run in a terminal of its own by test_interrupts.py."""

import itertools
import signal
import sys
import warnings

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import GridSearchCV, cross_val_score

import coordwise as cw
from coordwise import estimators as E
from coordwise import linalg

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.standard_normal((1500, 120)) * 10 ** rng.uniform(-1, 1, 120)
y = X @ (rng.standard_normal(120) * (rng.random(120) < 0.3)) + 20 * rng.standard_normal(1500)
S = sp.random_array((20_000, 2000), density=0.005, rng=rng, format="csr")
z = S @ rng.standard_normal(2000) + rng.standard_normal(20_000)
few, several = (y > 0).astype(int), np.digitize(y, np.quantile(y, [0.3, 0.6]))
A = rng.standard_normal((400, 300)) * 10 ** rng.uniform(-2, 2, (400, 1))
b = A @ rng.standard_normal(300)


def fitted(model, *data):
    """A fit; after Ctrl-C the attributes have to be there."""
    try:
        return model.fit(*data)
    except cw.Interrupted:
        for name in ("coef_", "intercept_", "dual_gap_", "n_iter_", "strategy_", "result_"):
            if not hasattr(model, name):
                print(f"AttributeError: {type(model).__name__} has no {name}")
        model.predict(data[0][:2])
        if not np.all(np.isfinite(model.coef_)):
            print(f"ValueError: {type(model).__name__} has coefficients that are not finite")
        raise


def fits(**options):
    fitted(E.Ridge(1e-6, tol=1e-12, **options), S, z)
    fitted(E.Lasso(alpha=1e-5, tol=1e-12, max_iter=10**6, **options), S, z)
    fitted(E.ElasticNet(alpha=1e-3, tol=1e-10, **options), X, y)
    fitted(E.LogisticRegression(C=1e3, tol=1e-10, max_iter=10**6, **options), S, z > 0)
    fitted(E.LinearSVC(C=10, loss="hinge", tol=1e-10, max_iter=10**6, **options), S, z > 0)
    fitted(E.RidgeClassifier(tol=1e-12, **options), X, several)


def several_classes():
    fitted(E.LogisticRegression(C=10, tol=1e-10, max_iter=10**5), X, several)
    fitted(E.LogisticRegression(C=1e-2, l1_ratio=1, tol=1e-10, max_iter=10**5), X, several)
    fitted(E.LinearSVC(tol=1e-10, max_iter=10**6, class_weight="balanced"), X, several)


def penalised_intercepts():
    fitted(E.LinearSVC(tol=1e-12, max_iter=10**6), S, z > 0)
    fitted(E.LinearSVR(tol=1e-10, max_iter=10**6), X, y)


def scales():
    fitted(E.HuberRegressor(tol=1e-10, max_iter=10**4), X, y)
    fitted(E.L2L1Regressor(alpha=1e-3, tol=1e-10, max_iter=10**5), X, y)


def paths():
    E.Lasso(tol=1e-10).path(S, z, 30)
    E.LogisticRegression(tol=1e-10, max_iter=10**5).path(X, few, 10)
    E.LogisticRegression(tol=1e-8, max_iter=10**5).path(X, several, 5)


def cross_validation(n_jobs=None):
    fitted(E.LassoCV(cv=3, tol=1e-8, n_jobs=n_jobs), S, z)
    fitted(E.ElasticNetCV(cv=3, tol=1e-8, n_jobs=n_jobs), X, y)
    fitted(E.RidgeCV(cv=3, n_jobs=n_jobs), S, z)
    fitted(E.LogisticRegressionCV(cv=3, Cs=4, n_jobs=n_jobs), X, few)
    fitted(E.LogisticRegressionCV(cv=3, Cs=3, n_jobs=n_jobs), X, several)


def leaving_out():
    fitted(E.RidgeCV(np.logspace(-3, 3, 20)), X[:, :100], y)
    fitted(E.RidgeCV(alpha_per_target=True), X, np.column_stack([y, few, several]))
    fitted(E.RidgeClassifierCV(), X[:600], several[:600])


def search():
    GridSearchCV(E.Lasso(tol=1e-8), {"alpha": np.logspace(-3, 0, 8)}, cv=3).fit(S, z)
    cross_val_score(E.LogisticRegression(C=100, tol=1e-8), S, z > 0, cv=3)


def systems():
    linalg.solve(A, b, rtol=1e-14)
    linalg.solve(sp.csr_array(A), b, rtol=1e-12)
    linalg.spd_solve(A.T @ A + np.eye(300), b[:300], rtol=1e-12)
    linalg.solve(S, S @ np.ones(2000), rtol=1e-8, random_state=0)


def row_action():
    for call in (linalg.nuacdm, linalg.acdm, linalg.kaczmarz):
        call(A, b, rtol=1e-12, maxiter=2000, random_state=0)
        call(S, S @ np.ones(2000), rtol=1e-10, maxiter=100)


def least_squares():
    for method in ("columns", "rows", "cgls", "direct"):
        linalg.lstsq(A, np.arange(400.0), method=method, rtol=1e-10, maxiter=500, random_state=0)
    linalg.lstsq(S, z, damp=0.1, rtol=1e-10)


def solve():
    problem = cw.ERM(X, np.where(few, 1.0, -1.0), "logistic", lam=1e-7)
    cw.solve(problem.dual(), tol=1e-12, max_passes=300)
    cw.solve(cw.ERM(X, y, penalty="l1", lam=1e-2).primal(), "nu_acdm", tol=1e-12, max_passes=300)
    cw.solve(cw.LinearSystem(A, b), "acdm", tol=1e-12, max_passes=300)


def minimize():
    L = np.sum(A**2, axis=0)
    f, partial = (lambda x: 0.5 * np.sum((A @ x - b) ** 2)), (lambda i, x: A[:, i] @ (A @ x - b))
    cw.minimize(f, partial, L, np.zeros(300), max_iterations=2000)


CASES = {
    "fits": fits,
    "fits with a time limit": lambda: fits(time_limit=0.2),
    "several classes": several_classes,
    "penalised intercepts": penalised_intercepts,
    "scales": scales,
    "paths": paths,
    "cross-validation": cross_validation,
    "cross-validation in threads": lambda: cross_validation(2),
    "leaving out": leaving_out,
    "search": search,
    "systems": systems,
    "row action": row_action,
    "least squares": least_squares,
    "solve": solve,
    "minimize": minimize,
}


def forever(call):
    for turn in itertools.count():
        try:
            if turn == 0:
                print("ready", flush=True)
            while True:
                call()
        except cw.Interrupted as stop:
            print("heard: carries a result" if stop.result is not None else "ValueError: no result", flush=True)
        except KeyboardInterrupt:
            print("heard", flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored, if whoever began this runs in the background
    forever(CASES[sys.argv[1]])
