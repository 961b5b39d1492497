"""Random problems for the estimators: problem `seed` is the same on every machine.

Sizes, ranks, scales, offsets, weights, classes, penalties, tolerances, limits and strategies are drawn from the whole
range of what users may pass, with the extremes more often than users would.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from coordwise import estimators as E
from coordwise.fitting.strategies import STRATEGIES

REGRESSORS = (E.Ridge, E.Lasso, E.ElasticNet, E.HuberRegressor, E.LinearSVR, E.L2L1Regressor)
CLASSIFIERS = (E.LogisticRegression, E.LinearSVC, E.RidgeClassifier)
SEVERAL = (E.Ridge, E.Lasso, E.ElasticNet, E.L2L1Regressor)  # that take targets in several columns
WARM = (E.Lasso, E.ElasticNet, E.HuberRegressor, E.L2L1Regressor, E.LogisticRegression)
MOST = 200  # samples, and features


@dataclass
class Case:
    """An estimator and the arguments of its fit."""

    estimator: Any
    X: Any
    y: Any
    sample_weight: Any
    again: Any = None  # parameters of a first fit, for a warm start

    def __str__(self):
        kind = type(self.X).__name__ if sp.issparse(self.X) else "dense"
        weights = (
            "none" if self.sample_weight is None else f"{self.sample_weight.min():.1g}..{self.sample_weight.max():.1g}"
        )
        what = f"X {self.X.shape} {self.X.dtype} {kind}, y {self.y.shape} {self.y.dtype}, weights {weights}"
        return f"{self.estimator!r} on {what}{', warm' if self.again else ''}".replace("\n", " ")


def case(seed):
    """Problem number `seed`."""
    rng = np.random.default_rng([1, seed])
    kinds = REGRESSORS + CLASSIFIERS + (E.LogisticRegression, E.LinearSVC)  # which have several losses and penalties
    kind = kinds[seed % len(kinds)]
    X, signal = features(rng)
    y = labels(rng, signal) if kind in CLASSIFIERS else targets(rng, signal, kind in SEVERAL and rng.random() < 0.15)
    weights = sample_weights(rng, len(signal), y if kind in CLASSIFIERS else None)
    X = stored(rng, X)
    estimator = kind(**options(rng, kind, X, y, weights))
    warm = kind in WARM and rng.random() < 0.15
    again = None
    if warm:
        estimator.set_params(warm_start=True)
        again = {"C" if kind in CLASSIFIERS else "alpha": penalty(rng, kind, X, y, weights, {})}
    return Case(estimator, X, y, weights, again)


def length(rng):
    return int(np.exp(rng.uniform(0, np.log(MOST + 1))))


def chance(rng, share):
    return rng.random() < share


def features(rng):
    """X as a dense float64 array, and something that depends on it to be learned."""
    n, d = length(rng), length(rng)
    if chance(rng, 0.1):
        n = d
    rank = int(rng.integers(1, min(n, d) + 1)) if chance(rng, 0.15) else None
    X = rng.standard_normal((n, d)) if rank is None else rng.standard_normal((n, rank)) @ rng.standard_normal((rank, d))
    if chance(rng, 0.3):
        X[rng.random((n, d)) > 10 ** rng.uniform(-2, 0)] = 0.0
    if chance(rng, 0.15):
        X = np.round(3 * X)
    signal = X @ (rng.standard_normal(d) * (rng.random(d) < rng.uniform(0.05, 1)))
    signal = signal / (np.std(signal) or 1.0) + 10 ** rng.uniform(-6, 1) * rng.standard_normal(n)
    if chance(rng, 0.2):
        X = X * 10 ** rng.uniform(-6, 6, d)
    if chance(rng, 0.15):
        X = X * 10 ** rng.uniform(-2, 2, (n, 1))
    if chance(rng, 0.15):
        X = X * 10 ** rng.uniform(-12, 12)
    if chance(rng, 0.15):  # far from 0, some columns or all of them
        X = X + np.std(X, axis=0) * 10 ** rng.uniform(0, 8, d) * (rng.random(d) < rng.uniform(0, 1)) * rng.choice(
            [-1, 1]
        )
    if chance(rng, 0.1):
        X[:, rng.integers(d)] = 0.0
    if chance(rng, 0.1):
        X[:, rng.integers(d)] = 10 ** rng.uniform(-6, 6)
    if chance(rng, 0.1):
        X[:, rng.integers(d)] = X[:, rng.integers(d)]
    if chance(rng, 0.1):
        X[rng.integers(0, n, n // 2)] = X[rng.integers(0, n, n // 2)]
    return X, signal


def stored(rng, X):
    if chance(rng, 0.25) and np.max(np.abs(X)) < 1e30:
        X = X.astype(np.float32)
    kind = rng.choice(["C", "F", "csr", "csc", "csr_matrix"], p=[0.45, 0.15, 0.2, 0.15, 0.05])
    if kind in "CF":
        return np.array(X, order=kind)
    return {"csr": sp.csr_array, "csc": sp.csc_array, "csr_matrix": sp.csr_matrix}[kind](X)


def targets(rng, signal, several):
    y = signal
    if several:
        y = np.column_stack([signal, rng.standard_normal((len(signal), int(rng.integers(0, 3))))])
    if chance(rng, 0.15):
        y = y + rng.standard_cauchy(y.shape)
    if chance(rng, 0.1):
        y = np.round(y)
    if chance(rng, 0.15):
        y = y * 10 ** rng.uniform(-30, 30)
    elif chance(rng, 0.3):
        y = y * 10 ** rng.uniform(-4, 4)
    if chance(rng, 0.15):
        y = y + (np.std(y) or 1.0) * 10 ** rng.uniform(0, 8)
    if chance(rng, 0.03):
        y = np.full_like(y, rng.choice([0.0, 1.0, -3e5]))
    return y


def labels(rng, signal):
    """Two classes or more, sometimes very unequal; separable where the noise is small."""
    n = len(signal)
    count = 2 if chance(rng, 0.7) else int(rng.integers(3, 6))
    ranks = np.argsort(np.argsort(signal)) / n
    cuts = np.sort(rng.uniform(0, 1, count - 1)) if chance(rng, 0.5) else np.arange(1, count) / count
    codes = np.searchsorted(cuts, ranks, side="right")
    if chance(rng, 0.3):
        codes = np.where(rng.random(n) < 0.2, rng.integers(0, count, n), codes)
    names = np.array(["a", "b", "c", "d", "e"]) if chance(rng, 0.3) else np.array([3, -1, 7, 0, 2])
    return names[codes]


def sample_weights(rng, n, y):
    """None, or weights with zeros or of very different sizes."""
    if chance(rng, 0.6):
        return None
    spread = rng.choice([0.0, 1.0, 8.0])
    s = 10 ** rng.uniform(-spread, spread, n) * 10 ** rng.choice([0.0, -10.0, 10.0], p=[0.8, 0.1, 0.1])
    if chance(rng, 0.4):
        s[rng.random(n) < rng.uniform(0, 0.8)] = 0.0
    if not s.any():
        s[:] = 1.0
    return s


def penalty(rng, kind, X, y, weights, given):
    """alpha or C, from none to enormous, by what the data make of it."""
    if chance(rng, 0.04) and kind in (E.Ridge, E.Lasso, E.ElasticNet, E.HuberRegressor, E.RidgeClassifier):
        return 0.0
    if chance(rng, 0.04) and kind is E.LogisticRegression:
        return float("inf")
    if chance(rng, 0.03):
        return 10 ** rng.uniform(-30, 30)
    n = X.shape[0]
    A = (X.toarray() if sp.issparse(X) else X).astype(float)
    if chance(rng, 0.8) and np.any(A - A.mean(axis=0)):
        A = A - A.mean(axis=0)
    total = n if weights is None else weights.sum()
    rows = max(float(np.mean(np.sum(A * A, axis=1))), 1e-60)
    if kind in (E.Lasso, E.ElasticNet):
        moments = A.T @ (y - y.mean(axis=0)) / n
        return float(np.max(np.abs(moments), initial=1e-60) or 1.0) * 10 ** rng.uniform(-5, 0.5)
    curvature = rows * 10 ** rng.uniform(-8, 2)
    if kind is E.L2L1Regressor:
        return curvature
    return 1 / (curvature * total) if kind in (*CLASSIFIERS[:2], E.LinearSVR) else curvature * total


def options(rng, kind, X, y, weights):
    """Parameters of the estimator."""
    given = {"tol": 10 ** rng.uniform(-10, -2) if chance(rng, 0.97) else 0.0}
    if chance(rng, 0.3):
        given["max_iter"] = int(rng.choice([1, 2, 5, 30, 100]))
    elif given["tol"] == 0:
        given["max_iter"] = 100
    given["fit_intercept"] = bool(chance(rng, 0.7))
    if chance(rng, 0.25):
        given["strategy"] = str(rng.choice(STRATEGIES))
    if chance(rng, 0.2) and kind is not E.HuberRegressor:
        given["random_state"] = int(rng.integers(1000))
    if chance(rng, 0.05):
        given["n_jobs"] = 2
    if kind in (E.Ridge, E.Lasso, E.ElasticNet, E.RidgeClassifier):
        given["positive"] = bool(chance(rng, 0.2))
    if kind is E.ElasticNet or (kind is E.LogisticRegression and chance(rng, 0.5)):
        given["l1_ratio"] = float(rng.choice([0.0, 1.0, rng.random(), 1e-6]))
    if kind is E.HuberRegressor:
        given["epsilon"] = float(rng.choice([1.0, 1.35, 3.0]))
    if kind is E.LinearSVR:
        given["epsilon"] = float(rng.choice([0.0, 0.1, 1.0]) * np.std(y))
        given["loss"] = str(rng.choice(["epsilon_insensitive", "squared_epsilon_insensitive"]))
    if kind is E.LinearSVC:
        given["loss"], given["penalty"] = [("hinge", "l2"), ("squared_hinge", "l2"), ("squared_hinge", "l1")][
            rng.integers(3)
        ]
    if kind in (E.LinearSVC, E.LinearSVR):
        given["intercept_scaling"] = float(rng.choice([1.0, 4.0, np.inf]))
    if kind in CLASSIFIERS and chance(rng, 0.2):
        names = np.unique(y).tolist()
        given["class_weight"] = "balanced" if chance(rng, 0.5) else {k: 10 ** rng.uniform(-2, 2) for k in names}
    name = "C" if kind in (*CLASSIFIERS[:2], E.LinearSVR) else "alpha"
    given[name] = float(penalty(rng, kind, X, y, weights, given))
    return given
