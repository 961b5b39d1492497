"""What tests of groups of features share: a partition, a problem, and a slow solver that has no part in the core."""

import numpy as np
from conftest import STORAGES, unequal_rows

import coordwise as cw

N, D = 60, 23
GROUPS = np.array([3, 0, 1, 1, 2, 5, 0, 0, 4, 5, 3, 1, 0, 5, 4, 2, 1, 6, 3, 0, 5, 5, 0])  # neighbours or not; one alone
LOSSES = ("squared", "huber", "logistic", "squared_hinge", "smooth_hinge")


def matrix(seed=0, n=N, d=D, density=None):
    """Columns of unequal norms, correlated within what will be groups."""
    A = unequal_rows(d, n, seed=seed, density=density, spread=1.0).T.copy()
    return A + 0.5 * A[:, np.roll(np.arange(d), 1)]


def targets(A, loss, seed=0):
    rng = np.random.default_rng(seed)
    b = A @ (rng.standard_normal(A.shape[1]) * (GROUPS[: A.shape[1]] < 3)) + 0.3 * rng.standard_normal(len(A))
    return np.where(b > np.median(b), 1.0, -1.0) if cw.losses.LOSSES[loss].classification else b / b.std()


def problem(loss="squared", storage="dense_f", seed=0, weighted=False, groups=GROUPS, dtype=np.float64, **penalty):
    """An ERM with a GroupL1 penalty, and A."""
    A = matrix(seed, density=0.3 if storage.startswith("cs") else None).astype(dtype)
    penalty = cw.penalties.GroupL1(**({"l1": 0.05, "groups": groups} | penalty))
    s = np.random.default_rng(1).uniform(0.2, 2, N) if weighted else None
    return cw.ERM(STORAGES[storage](A), targets(A, loss), loss=loss, penalty=penalty, sample_weight=s), A


def prox_by_hand(w, step, penalty):
    """argmin over x of r(x) + |x - w|^2/(2 step), one group after the other."""
    out = np.empty_like(w)
    groups = np.asarray(penalty.groups)
    for g, weight in enumerate(np.asarray(penalty.weights)):
        at = np.flatnonzero(groups == g)
        v = np.sign(w[at]) * np.maximum(np.abs(w[at]) - step * penalty.feature_l1, 0)
        norm, kink = np.linalg.norm(v), step * penalty.l1 * weight
        out[at] = v * (norm - kink) / norm / (1 + step * penalty.l2) if norm > kink else 0.0
    return out


def smooth_gradient(erm, A, w):
    """(1/W) A' (s phi'(Aw))."""
    y = erm.terms.subgradients((A @ w)[:, None])[:, 0]
    return A.T @ y / erm.total


def proximal_gradient(erm, A, steps=200_000, tol=1e-14):
    """FISTA with restarts, all features at once."""
    s = np.ones(len(A)) if erm.sample_weight is None else erm.sample_weight
    L = np.linalg.eigvalsh((A * s[:, None]).T @ A)[-1] / (erm.total * erm.loss.gamma)
    w = z = np.zeros(A.shape[1])
    t = 1.0
    for _ in range(steps):
        new = prox_by_hand(z - smooth_gradient(erm, A, z) / L, 1 / L, erm.penalty)
        if np.dot(z - new, new - w) > 0:  # restart
            t, z = 1.0, w
            new = prox_by_hand(z - smooth_gradient(erm, A, z) / L, 1 / L, erm.penalty)
        after = (1 + np.sqrt(1 + 4 * t * t)) / 2
        z = new + (t - 1) / after * (new - w)
        moved, w, t = np.abs(new - w).max(), new, after
        if moved <= tol * np.abs(w).max():
            break
    return w
