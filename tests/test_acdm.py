"""ACDM as published: its constants, what its proof covers, and what becomes of it beyond that (docs/acdm.md)."""

import math

import numpy as np
import pytest

import coordwise as cw
from coordwise import reference
from coordwise.results import Status

SHAPES = {
    "equal": np.ones(40),
    "one long": np.array([1600.0] + 39 * [1.0]),
    "one at the mean": np.array([1600.0, 41.0] + 38 * [1.0]),
    "spread": np.geomspace(1, 1e5, 40),
}


def theta_of(L, constants, beta=0.0):
    """sigma/theta^2 of a method on a system with L_i = |a_i|^2, and the smallest Theta that the proof allows."""
    objective = cw.LinearSystem(np.diag(np.sqrt(L)), np.ones(len(L)))
    method = cw.ACDM(sigma=float(np.min(L ** (1 - beta))), beta=beta, constants=constants)
    p = reference.acdm_probabilities(L, beta)
    return method.schedule(objective).constants, float(np.max(L ** (1 - beta) / p**2))


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_constants(shape, beta):
    """n S <= n R^2/S <= 4 n S, the smallest Theta of the proof is below n R^2/S, and the three names mean these."""
    L = SHAPES[shape]
    n, power = len(L), L ** (1 - beta)
    S = power.sum()
    R = np.maximum(power, S / n).sum()
    (published, needed), (proved, _), (tight, _) = (theta_of(L, c, beta) for c in ("published", "proved", "tight"))
    assert published.Theta == pytest.approx(n * S)
    assert proved.Theta == pytest.approx(n * R**2 / S)
    assert tight.Theta == pytest.approx(needed)
    assert n * S <= proved.Theta * (1 + 1e-12)
    assert proved.Theta <= 4 * n * S
    assert needed <= proved.Theta * (1 + 1e-12)
    assert published.tau == pytest.approx(math.sqrt(power.min() / (n * S)))  # theta
    assert (published.rate_per_pass is None) == (needed > n * S * (1 + 1e-9))
    assert proved.rate_per_pass == pytest.approx((1 - proved.tau) ** published.iterations_per_pass)


def test_the_proof_is_attained_at_the_mean():
    """An L_i at the mean needs all of n R^2/S, which is almost 4 n S where one L_i is nearly the whole sum."""
    L = np.ones(2000)
    L[0] = 2000.0**2
    L[1] = L.sum() / 1999 + 1e-9
    L[1] = (L.sum() - L[1]) / 1999  # now it is the mean of all
    constants, needed = theta_of(L, "proved")
    assert needed == pytest.approx(constants.Theta, rel=1e-6)
    assert constants.Theta > 3.9 * len(L) * L.sum()


def step(x, v, i, g, *, L, p, theta, sigma, w):
    """One step of the recursion, with g the gradient at y."""
    y = (x + theta * v) / (1 + theta)
    x, v = y.copy(), (1 - theta) * v + theta * y
    x[i] -= g(y)[i] / L[i]
    v[i] -= theta * g(y)[i] / (sigma * p[i] * w[i])
    return x, v


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_what_a_step_promises(seed, beta):
    """E[f(x+) - f* + (sigma/2)|v+ - x*|_w^2] <= (1 - theta)(the same at x and v), the expectation computed exactly."""
    rng = np.random.default_rng(seed)
    n = 7
    B = rng.standard_normal((n, n)) * 10 ** rng.uniform(-1, 1, n)
    H = B.T @ B + 0.1 * np.eye(n)
    L = np.diag(H)
    w, p = L**beta, reference.acdm_probabilities(L, beta)
    sigma = np.linalg.eigvalsh(H / np.sqrt(np.outer(w, w)))[0]
    theta = math.sqrt(sigma / reference.acdm_theta(L, beta, proved=True))

    def left(x, v):  # x* = 0 and f* = 0
        return x @ H @ x / 2 + sigma / 2 * np.sum(w * v**2)

    for _ in range(20):
        x, v = rng.standard_normal((2, n)) * 10 ** rng.uniform(-2, 2, (2, n))
        after = [left(*step(x, v, i, lambda y: H @ y, L=L, p=p, theta=theta, sigma=sigma, w=w)) for i in range(n)]
        assert p @ after <= (1 - theta) * left(x, v) * (1 + 1e-12)


def test_beyond_the_proof_it_may_diverge():
    """Where an L_i lies at the mean, Theta = n S is too small by a factor of 4; with the proved one it converges."""
    n = 400
    L = np.ones(n)
    L[0] = 4.0 * n**2
    L[1] = (L.sum() - 1) / (n - 1)
    b = np.random.default_rng(0).standard_normal(n)
    objective = cw.LinearSystem(np.diag(np.sqrt(L)), b)
    run = {
        c: cw.solve(objective, cw.ACDM(sigma=1e-6, constants=c), tol=0, max_passes=600) for c in SAFE | {"published"}
    }
    start = float(np.linalg.norm(b))
    assert run["published"].status is Status.DIVERGED or run["published"].history.gap[-1] > 1e3 * start
    for constants in SAFE:
        assert run[constants].history.gap.max() < 1e3 * start


SAFE = {"proved", "tight"}


@pytest.mark.parametrize("constants", ["published", "proved"])
def test_callables_run_the_same_recursion(constants):
    rng = np.random.default_rng(5)
    A, b = rng.standard_normal((12, 6)) * 10 ** rng.uniform(-1, 0.5, (12, 1)), rng.standard_normal(12)
    H, sigma = A @ A.T + np.eye(12), 1.0
    method = cw.ACDM(constants=constants)
    found = cw.minimize(
        lambda y: y @ H @ y / 2 - b @ y,
        lambda i, y: H[i] @ y - b[i],
        np.diag(H).copy(),
        np.zeros(12),
        sigma=sigma,
        method=method,
        max_iterations=500,
        tol=0,
    )
    indices = list(reference_indices(np.diag(H), 500))
    *_, literal = reference.acdm(
        lambda i, y: H[i] @ y - b[i], np.diag(H), np.zeros(12), indices, sigma=sigma, proved=constants == "proved"
    )
    assert found.iterations == 500
    assert found.history[-1, 1] == pytest.approx(literal @ H @ literal / 2 - b @ literal, rel=1e-12)


def reference_indices(L, count):
    from coordwise import sampling

    return sampling.draw_weighted(0, sampling.alias_cells(reference.acdm_probabilities(L)), count).tolist()


@pytest.mark.parametrize(
    ("made", "message"), [(lambda: cw.ACDM(constants="tighter"), "tight"), (lambda: cw.APPROX(start="slow"), "fast")]
)
def test_unknown_constants_are_refused(made, message):
    with pytest.raises(ValueError, match=message):
        made()
