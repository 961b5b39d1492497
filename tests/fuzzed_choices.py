"""Random problems for the estimators that choose by cross-validation, and what their choices are held against.

Scores are computed again by brute force: one sample left out after the other by a factorisation each, or one fit of one
fold to a tighter tolerance, whose solution the duality gaps bound from both sides.
"""

import warnings
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from fuzzed_fits import Case, chance, features, labels, sample_weights, stored, targets
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, StratifiedKFold

from coordwise import estimators as E

KINDS = (E.RidgeCV, E.LassoCV, E.ElasticNetCV, E.LogisticRegressionCV)


class Fold(NamedTuple):
    """A pair of index arrays, as splitters give them."""

    train: np.ndarray
    test: np.ndarray


def case(seed):
    """Problem number `seed`."""
    rng = np.random.default_rng([3, seed])
    kind = KINDS[seed % len(KINDS)]
    X, signal = features(rng)
    while not 6 <= len(signal) <= 60 or X.shape[1] > 60:
        X, signal = features(rng)
    classes = kind is E.LogisticRegressionCV
    y = labels(rng, signal) if classes else targets(rng, signal, kind is E.RidgeCV and chance(rng, 0.2))
    weights = sample_weights(rng, len(signal), None) if chance(rng, 0.5) else None
    X = stored(rng, X)
    given = {"tol": 10 ** rng.uniform(-10, -4), "fit_intercept": bool(chance(rng, 0.7))}
    if kind is E.RidgeCV:
        size = max(float(np.mean(X.multiply(X).sum() if sp.issparse(X) else np.sum(X.astype(float) ** 2))), 1e-60)
        given["alphas"] = size * 10 ** rng.uniform(-8, 2, int(rng.integers(1, 6)))
        given["store_cv_results"] = True
    elif classes:
        given |= {"Cs": 10 ** rng.uniform(-6, 4, int(rng.integers(1, 5))), "scoring": "neg_log_loss"}
        given |= {"cv": StratifiedKFold(3), "use_legacy_attributes": False}
        given["l1_ratios"] = (0.0, 0.5)[: rng.integers(1, 3)]
    else:
        given |= {"alphas": int(rng.integers(2, 12)), "cv": KFold(int(rng.integers(2, 5)))}
        given |= {"positive": bool(chance(rng, 0.2)), "eps": float(10 ** rng.uniform(-4, -0.5))}
    if kind is E.ElasticNetCV:
        given["l1_ratio"] = [0.1, 0.5, 0.9][: rng.integers(1, 4)]
    return Case(kind(**given), X, y, weights)


def judged(problem):
    """Everything that is wrong with the choice."""
    estimator, rng = clone(problem.estimator), np.random.default_rng(0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            estimator.fit(problem.X, problem.y, problem.sample_weight)
        except (ValueError, TypeError) as error:
            names = (*estimator.get_params(), "X", "y", "weight", "class", "n_splits", "fold")
            return [] if any(name in str(error) for name in names) else [f"refused without a name: {error}"]
        except Exception as error:
            return [f"raised {type(error).__name__}: {error}"]
    fold = "The least populated class"  # which scikit-learn's splitter warns of
    other = [w for w in caught if w.category is not ConvergenceWarning and fold not in str(w.message)]
    wrong = [f"warned: {w.category.__name__}: {w.message} at {w.filename}:{w.lineno}" for w in other]
    if not (np.all(np.isfinite(estimator.coef_)) and np.all(np.isfinite(estimator.intercept_))):
        wrong.append("coefficients that are not finite")
    unsure = any(issubclass(w.category, ConvergenceWarning) for w in caught)
    about = {E.RidgeCV: about_ridge, E.LogisticRegressionCV: about_logistic}.get(type(estimator), about_elastic_net)
    return wrong + about(estimator, problem, rng, unsure)


def dense(X):
    return (X.toarray() if sp.issparse(X) else np.asarray(X)).astype(float)


def about_ridge(estimator, problem, rng, unsure):
    """alpha_ has the smallest mean error, and the errors of one alpha are those of leaving out samples by hand."""
    n = len(problem.y)
    errors = estimator.cv_results_.reshape(n, -1, len(estimator.alphas))
    means = errors.mean(axis=(0, 1))
    wrong = []
    if estimator.alpha_ != estimator.alphas[int(np.argmin(means))] and not np.isclose(
        means.min(), means[list(estimator.alphas).index(estimator.alpha_)], rtol=1e-6
    ):
        wrong.append(f"alpha_ {estimator.alpha_} is not the best of {estimator.alphas}: {means}")
    k = int(rng.integers(len(estimator.alphas)))
    s = np.ones(n) if problem.sample_weight is None else problem.sample_weight
    if np.count_nonzero(s) < 3 or s.max() > 1e6 * s[s > 0].min() or problem.X.dtype != np.float64:
        return wrong  # no factorisation in double precision tells more
    X, Y = dense(problem.X), problem.y.reshape(n, -1)
    by_hand, off = left_out(X, Y, s, estimator.alphas[k], estimator.fit_intercept)
    if np.any(np.abs(np.sqrt(errors[:, :, k]) - by_hand) > off):
        worst = np.max(np.abs(np.sqrt(errors[:, :, k]) - by_hand) / off)
        wrong.append(f"errors of alpha {estimator.alphas[k]:.3g} are off by {worst:.3g} times what rounding explains")
    return wrong


def left_out(X, Y, s, alpha, intercept):
    """sqrt(s_i) |y_i - prediction without sample i|, and what rounding may change it by.

    A least-squares solution by QR is off by about eps cond^2 times its size, of rows with the largest singular value;
    the library's decomposition may square the condition number of the data with sqrt(alpha) below them.
    """
    n, d = X.shape
    errors, off = np.zeros(Y.shape), np.zeros(Y.shape)
    for i in range(n):
        keep = np.arange(n) != i
        mean = np.average(X[keep], axis=0, weights=s[keep]) if intercept and s[keep].any() else np.zeros(d)
        level = np.average(Y[keep], axis=0, weights=s[keep]) if intercept and s[keep].any() else np.zeros(Y.shape[1])
        root = np.sqrt(s[keep])[:, None]
        A = np.vstack([root * (X[keep] - mean), np.sqrt(alpha) * np.eye(d)])
        b = np.vstack([root * (Y[keep] - level), np.zeros((d, Y.shape[1]))])
        w = np.linalg.lstsq(A, b, rcond=None)[0]
        values = np.linalg.svd(A, compute_uv=False)
        errors[i] = np.sqrt(s[i]) * np.abs(Y[i] - level - (X[i] - mean) @ w)
        size = np.abs(Y).max() + np.linalg.norm(X, axis=1).max() * np.linalg.norm(w, axis=0)
        off[i] = 1e-13 * n * np.sqrt(s.max()) * size * max((values[0] / values[-1]) ** 2, 1e3)
    return errors, off + 1e-300


def about_elastic_net(estimator, problem, rng, unsure):
    """alpha_ and l1_ratio_ have the smallest mean error, and one error is that of a fit of one fold."""
    wrong = []
    ratios = np.atleast_1d(getattr(estimator, "l1_ratio", 1.0)) if type(estimator) is E.ElasticNetCV else np.ones(1)
    alphas = np.atleast_2d(estimator.alphas_)
    table = estimator.mse_path_.reshape(len(ratios), alphas.shape[1], -1)
    if estimator.alpha_ not in alphas:
        wrong.append(f"alpha_ {estimator.alpha_} is none of the alphas")
    known = ~np.isnan(table).any(axis=(0, 1))  # all but folds that test nothing but weights of 0
    means = table[:, :, known].mean(axis=-1)
    r, a = np.unravel_index(np.argmin(means), table.shape[:2])
    if estimator.alpha_ != alphas[r if len(alphas) > 1 else 0, a]:
        wrong.append(f"alpha_ {estimator.alpha_} is not the best of {alphas}: {means}")
    r, a = int(rng.integers(len(ratios))), int(rng.integers(alphas.shape[1]))
    if unsure or ratios[r] == 1:
        return wrong
    f, fold = one_fold(estimator, problem, rng)
    alpha = float(alphas[r if len(alphas) > 1 else 0, a])
    other = E.ElasticNet(alpha, l1_ratio=float(ratios[r]), tol=estimator.tol / 10, max_iter=10_000)
    other.set_params(fit_intercept=estimator.fit_intercept, positive=estimator.positive)
    found = again(other, problem, fold)
    if found is None or alpha == 0:
        return wrong
    away = apart(problem, fold, estimator.tol, found.result_.scale[0], alpha * (1 - ratios[r]))
    X, y = dense(problem.X)[fold.test], problem.y[fold.test]
    s = np.ones(len(y)) if problem.sample_weight is None else problem.sample_weight[fold.test]
    residual = np.abs(y - X @ found.result_.w[:, 0] - found.result_.c[0])
    if s.sum() == 0:
        return wrong
    off, mse = s @ ((2 * residual + away) * away) / s.sum(), s @ residual**2 / s.sum()
    if not abs(mse - table[r, a, f]) <= off * (1 + 1e-6) + 1e-9 * mse:
        wrong.append(f"mse {table[r, a, f]:.6g} of fold {f}, alpha {alpha:.3g} is {mse:.6g} by hand, +- {off:.2g}")
    return wrong


def about_logistic(estimator, problem, rng, unsure):
    """C_ and l1_ratio_ have the best mean score, and one score is that of a fit of one fold."""
    wrong = []
    scores = estimator.scores_.mean(axis=0)  # ratios x Cs
    if estimator.C_ not in estimator.Cs_:
        wrong.append(f"C_ {estimator.C_} is none of the Cs")
    at = scores[list(estimator.l1_ratios).index(estimator.l1_ratio_), list(estimator.Cs_).index(estimator.C_)]
    if np.any(scores > at + 1e-9 * abs(at)):
        wrong.append(f"score {at} of C_ is below {scores.max()}")
    if unsure:
        return wrong
    f, fold = one_fold(estimator, problem, rng)
    r, k = int(rng.integers(len(estimator.l1_ratios))), int(rng.integers(len(estimator.Cs_)))
    C, ratio = float(estimator.Cs_[k]), float(estimator.l1_ratios[r])
    other = E.LogisticRegression(C=C, l1_ratio=ratio, tol=estimator.tol / 10, max_iter=10_000)
    found = again(other.set_params(fit_intercept=estimator.fit_intercept), problem, fold)
    s = np.ones(len(problem.y)) if problem.sample_weight is None else problem.sample_weight
    if found is None or len(found.classes_) != len(estimator.classes_) or not s[fold.test].any():
        return wrong
    l2 = (1 - ratio) / (C * s[fold.train].sum())
    lengths = np.linalg.norm(dense(problem.X), axis=1).max()
    off = 4 * lengths * np.sqrt(2.2 * found.result_.scale[0] * estimator.tol / l2)  # of scores; intercepts are free
    own = np.searchsorted(found.classes_, problem.y[fold.test])
    P = np.clip(found.predict_proba(problem.X[fold.test]), np.finfo(float).eps, 1)  # as log_loss clips them
    by_hand = s[fold.test] @ np.log(P[np.arange(len(own)), own]) / s[fold.test].sum()
    said = estimator.scores_[f, r, k]
    if not estimator.fit_intercept and abs(by_hand - said) > off + 1e-6 * abs(by_hand) + 1e-9:
        wrong.append(f"score {said:.6g} of fold {f}, C {C:.3g} is {by_hand:.6g} by hand, +- {off:.2g}")
    return wrong


def one_fold(estimator, problem, rng):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folds = [Fold(*fold) for fold in estimator.cv.split(problem.X, problem.y)]
    f = int(rng.integers(len(folds)))
    return f, folds[f]


def again(estimator, problem, fold):
    """A fit of one fold; None if it does not converge."""
    weights = None if problem.sample_weight is None else problem.sample_weight[fold.train]
    X = sp.csr_array(problem.X)[fold.train] if sp.issparse(problem.X) else problem.X[fold.train]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = estimator.fit(X, problem.y[fold.train], weights)
        except ValueError:
            return None
    return found if found.result_.converged else None


def apart(problem, fold, tol, scale, l2):
    """How far predictions for the tested samples may be apart, of two fits with gaps of 1.1 tol * scale in all.

    P is l2-strongly convex in w, so that |w - w'| <= sqrt(2 gap/l2) + sqrt(2 gap'/l2); intercepts follow the means.
    """
    X = dense(problem.X)
    s = np.ones(len(X)) if problem.sample_weight is None else problem.sample_weight
    mean = np.average(X[fold.train], axis=0, weights=s[fold.train]) if s[fold.train].any() else 0
    lengths = np.maximum(np.linalg.norm(X[fold.test] - mean, axis=1), np.linalg.norm(X[fold.test], axis=1))
    return lengths * 2 * np.sqrt(2 * 1.1 * tol * scale / l2)
