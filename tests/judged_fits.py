"""What a fitted estimator claims, held against `exact_objectives`: a list of sentences about what is wrong."""

import warnings

import numpy as np
from exact_objectives import EPS, LONG, Exact, ExactMultinomial, dense
from fuzzed_fits import CLASSIFIERS
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from coordwise import estimators as E


def judged(case):
    """Everything that is wrong with a fit of this case."""
    estimator = clone(case.estimator)
    names = (*estimator.get_params(), "X", "y", "weight", "class", "strategy", "penalty")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            if case.again:
                mine = {name: getattr(estimator, name) for name in case.again}
                estimator.set_params(**case.again).fit(case.X, case.y, case.sample_weight)
                estimator.set_params(**mine)
                caught.clear()
            estimator.fit(case.X, case.y, case.sample_weight)
        except (ValueError, TypeError) as error:
            return [] if any(name in str(error) for name in names) else [f"refused without a name: {error}"]
        except Exception as error:
            return [f"raised {type(error).__name__}: {error}"]
    wrong = [
        f"warned: {w.category.__name__}: {w.message} at {w.filename}:{w.lineno}"
        for w in caught
        if not issubclass(w.category, ConvergenceWarning)
    ]
    told = any(issubclass(w.category, ConvergenceWarning) for w in caught)
    fits = estimator.result_ if isinstance(estimator.result_, list) else [estimator.result_]
    converged = all(fit.converged for fit in fits)
    if told == converged:
        wrong.append(f"converged={converged}, warned={told}")
    if not (np.all(np.isfinite(estimator.coef_)) and np.all(np.isfinite(estimator.intercept_))):
        return [*wrong, "coefficients that are not finite"]
    wrong += about_coefficients(estimator, fits, case)
    if getattr(estimator, "positive", False) and np.any(np.asarray(estimator.coef_) < 0):
        wrong.append("a negative coefficient")
    with np.errstate(over="ignore", under="ignore"):  # of exponentials
        for k, (exact, *rest) in enumerate(outputs(estimator, fits, case)):
            wrong += [f"output {k}: {text}" for text in about_output(estimator, exact, *rest)]
    if isinstance(estimator, E.HuberRegressor):
        wrong += about_scale(estimator, case)
    return wrong


def about_coefficients(estimator, fits, case):
    """coef_ and intercept_ are the fit's, rounded to the precision of X."""
    w = np.concatenate([fit.w.T for fit in fits])
    c = np.concatenate([fit.c for fit in fits])
    eps, least = 2 * float(np.finfo(case.X.dtype).eps), float(np.finfo(case.X.dtype).smallest_subnormal)
    coef, intercept = np.asarray(estimator.coef_), np.asarray(estimator.intercept_)
    same = np.allclose(coef.reshape(w.shape), w, rtol=eps, atol=least)
    same &= np.allclose(np.broadcast_to(intercept.reshape(-1), c.shape), c, rtol=eps, atol=least)
    return [] if same else ["coef_ or intercept_ are not those of result_"]


def weights_of(estimator, case):
    """Sample weights without those of the classes, as extended precision; codes of the classes."""
    n = case.X.shape[0]
    s = np.ones(n, LONG) if case.sample_weight is None else case.sample_weight.astype(LONG)
    if not isinstance(estimator, CLASSIFIERS):
        return s, None, None
    classes, codes = np.unique(case.y, return_inverse=True)
    each = np.ones(len(classes), LONG)
    if estimator.class_weight == "balanced":  # RidgeClassifier counts samples without their weights, as scikit-learn's
        counted = np.ones_like(s) if isinstance(estimator, E.RidgeClassifier) else s
        sums = np.array([counted[codes == k].sum() for k in range(len(classes))])
        each = np.divide(counted.sum(), len(classes) * sums, out=np.zeros_like(sums), where=sums > 0)
    elif estimator.class_weight is not None:
        each = np.array([estimator.class_weight[k] for k in classes.tolist()], LONG)
    return s, codes, each


def outputs(estimator, fits, case):
    """(exact problem, w, c, y, gap, scale, converged) of every output, c being the intercept for centred data."""
    X = dense(case.X)
    s, codes, each = weights_of(estimator, case)
    fitted = bool(estimator.fit_intercept)
    if isinstance(estimator, E.LogisticRegression) and len(each) > 2:
        s = s * each[codes]
        lam = 1 / (LONG(estimator.C) * s.sum())
        ratio = LONG(estimator.l1_ratio)
        exact = ExactMultinomial(X, codes, len(each), s, lam * ratio, lam * (1 - ratio), fitted)
        (fit,) = fits
        w = fit.w.astype(LONG)
        yield exact, w, exact.centred(w, fit.c), fit.y.astype(LONG), fit.gap[0], fit.scale[0], fit.converged
        return
    scaling = getattr(estimator, "intercept_scaling", np.inf)
    augmented = fitted and np.isfinite(scaling)
    if augmented:
        X = np.column_stack([X, np.full(len(X), LONG(scaling))])
    k = 0
    for fit in fits:
        for j in range(fit.w.shape[1]):
            b, own = target(case, codes, each, k), s
            if codes is not None:
                own = s * class_weights(estimator, codes, each, k)
            exact = Exact(X, b, own, **form(estimator, own.sum()), intercept=fitted and not augmented)
            w = fit.w[:, j].astype(LONG)
            w = np.append(w, LONG(fit.c[j]) / LONG(scaling)) if augmented else w
            c = LONG(0) if augmented else exact.centred(w, fit.c[j])
            yield exact, w, c, fit.y[:, j].astype(LONG), fit.gap[j], fit.scale[j], fit.converged
            k += 1


def target(case, codes, each, k):
    if codes is None:
        return np.asarray(case.y, np.float64).reshape(len(case.y), -1)[:, k].astype(LONG)
    return np.where(codes == (1 if len(each) == 2 else k), LONG(1), LONG(-1))


def class_weights(estimator, codes, each, k):
    """Of LinearSVC with several classes, 1 for the rest."""
    if isinstance(estimator, E.LinearSVC) and len(each) > 2:
        return np.where(codes == k, each[codes], LONG(1))
    return each[codes]


def form(estimator, total):
    """Loss and penalty of P, from the docstrings of the estimators and scikit-learn's."""
    e, total = estimator, LONG(total)
    if isinstance(e, (E.Ridge, E.RidgeClassifier)):
        return {"loss": "squared", "l1": 0, "l2": LONG(e.alpha) / total, "positive": e.positive}
    if isinstance(e, E.ElasticNet):  # Lasso, too
        alpha, ratio = LONG(e.alpha), LONG(getattr(e, "l1_ratio", 1))
        ratio = LONG(1) if type(e) is E.Lasso else ratio
        return {"loss": "squared", "l1": alpha * ratio, "l2": alpha * (1 - ratio), "positive": e.positive}
    if isinstance(e, E.L2L1Regressor):
        return {"loss": "l2l1", "l1": 0, "l2": e.alpha}
    if isinstance(e, E.HuberRegressor):
        return {"loss": "huber", "l1": 0, "l2": LONG(e.alpha) * LONG(e.scale_) / total, "e": e.epsilon * e.scale_}
    lam = 1 / (LONG(e.C) * total)
    if isinstance(e, E.LogisticRegression):
        return {"loss": "logistic", "l1": lam * LONG(e.l1_ratio), "l2": lam * (1 - LONG(e.l1_ratio))}
    if isinstance(e, E.LinearSVR):
        if e.loss == "epsilon_insensitive":
            return {"loss": "epsilon", "l1": 0, "l2": lam, "e": e.epsilon}
        return {"loss": "squared_epsilon", "l1": 0, "l2": lam / 2, "e": e.epsilon}
    lam = lam if e.loss == "hinge" else lam / 2
    return {"loss": e.loss, "l1": lam if e.penalty == "l1" else 0, "l2": 0 if e.penalty == "l1" else lam}


def about_output(estimator, exact, w, c, y, gap, scale, done):
    """P(w, c) - min P <= dual_gap_ <= tol P(0, 0), with a lower bound of min P that is computed here."""
    wrong = []
    value, zero = exact.value(w, c), exact.at_zero()
    if gap < 0 or np.isnan(gap):
        wrong.append(f"gap {gap}")
    y = exact.feasible(y) if np.all(np.isfinite(y)) else np.zeros_like(y)
    slack = exact.rounding(w, c, y) + exact.of_intercept(w, c)
    if value > zero + slack + 16 * EPS * zero:
        wrong.append(f"P(w, c) = {value:.6g} is above P(0, 0) = {zero:.6g}")
    if done and gap > float(estimator.tol) * zero * (1 + 1e-9) and scale > 0:
        wrong.append(f"converged with a gap of {gap:.3g} > tol P(0, 0) = {float(estimator.tol) * zero:.3g}")
    if exact.l1 > 0 or exact.l2 > 0:
        lower = -exact.dual(y) + exact.of_moments(y)
        if value - lower > gap + slack and (other := exact.slopes(w, c)) is not None:
            lower = max(lower, -exact.dual(exact.feasible(other)))
    else:
        lower = known_minimum(exact, w, c)
    if value - lower > gap * (1 + 1e-9) + slack:
        about = f"scale {zero:.3g}, slack {slack:.1g}, P {value:.2g}"
        wrong.append(f"P(w, c) - bound = {value - lower:.6g} is more than the gap {gap:.6g} ({about})")
    return wrong


def known_minimum(exact, w, c):
    """Without a penalty: the value at a least-squares solution or, for other losses, after Newton steps, if lower."""
    best = exact.value(w, c)
    if isinstance(exact, ExactMultinomial) or (exact.loss == "squared" and exact.positive):
        return best
    if exact.loss != "squared":
        return newton(exact, w, c)
    size = np.sqrt(np.sum(exact.X**2, axis=0))
    size[size == 0] = 1
    root = np.sqrt(exact.s)[:, None]
    A, r = root * (exact.X / size), root[:, 0] * exact.b
    if exact.intercept:
        A = np.column_stack([A, root])
    v = np.zeros(A.shape[1], LONG)
    for _ in range(3):  # with refinement
        v = v + np.linalg.lstsq(A.astype(float), (r - A @ v).astype(float), rcond=1e-13)[0]
    d = exact.X.shape[1]
    return min(best, exact.value(v[:d] / size, v[-1] if exact.intercept else LONG(0)))


def newton(exact, w, c):
    """The smallest value on a few Newton steps from w and c, the intercept as the weight of a last feature."""
    A = np.column_stack([exact.X, np.ones(len(exact.X), LONG)]) if exact.intercept else exact.X
    d, v = exact.X.shape[1], np.append(w, c) if exact.intercept else w

    def value(v):
        return exact.value(v[:d], v[d] if exact.intercept else LONG(0))

    for _ in range(5):
        t = A @ v
        bend = 1 / (2 + np.exp(t) + np.exp(-t)) if exact.loss == "logistic" else np.abs(t - exact.b) < exact.e
        root = np.sqrt(exact.s * bend)
        y = exact.slopes(v[:d], v[d] if exact.intercept else LONG(0))
        target = np.divide(y, root, out=np.zeros_like(y), where=root > 0)
        size = np.maximum(np.sqrt(np.sum(A * A, axis=0)), 1e-290)
        step = np.linalg.lstsq((root[:, None] * A / size).astype(float), target.astype(float), rcond=1e-12)[0] / size
        v = min((v - length * step for length in (1.0, 0.5, 0.1, 0.0)), key=value)
    return value(v)


def about_scale(estimator, case):
    """The whole objective of HuberRegressor: no other sigma is much better for the same w and c."""
    if not estimator.result_.converged:
        return []
    s, _, _ = weights_of(estimator, case)
    fit = estimator.result_
    r = np.abs(dense(case.X) @ fit.w[:, 0].astype(LONG) + LONG(fit.c[0]) - case.y.astype(LONG))
    off = 16 * EPS * (np.abs(dense(case.X)) @ np.abs(fit.w[:, 0]) + abs(fit.c[0]) + np.abs(case.y))
    r = np.maximum(r - off, 0)

    def objective(residual, sigma):
        z = residual / sigma
        inside = np.minimum(z, estimator.epsilon)
        return s @ (sigma + sigma * inside * (2 * z - inside))

    sigma, tol = LONG(estimator.scale_), float(estimator.tol)
    here = objective(r, sigma)
    others = [objective(r, sigma * 2.0**k) for k in np.linspace(-3, 3, 25) if sigma * 2.0**k > 3e-15]
    at_zero = objective(np.abs(case.y.astype(LONG)), sigma)
    # the fit's gap, twice W/sigma times that of P; and what was left to gain in sigma
    allowed = 2 * s.sum() / sigma * fit.gap[0] + tol * at_zero + 64 * EPS * here
    return [] if here - min(others) <= allowed else [f"another scale gains {here - min(others):.3g} > {allowed:.3g}"]
