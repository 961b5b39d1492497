"""Lemmas 5.3 to 5.6, 6.3 and 6.4 with the expectation over i as an exact finite sum, on points met along real runs."""

import numpy as np
import pytest

BETAS = (0.0, 0.2, 0.5, 0.8, 1.0)
SLACK = 1e-11


class Problem:
    """A strongly convex f with unequal L_i: quadratic plus a smooth non-quadratic part."""

    def __init__(self, seed, n=7):
        rng = np.random.default_rng(seed)
        B = rng.standard_normal((n, n)) * 10 ** rng.uniform(-1, 1, n)
        self.H = B.T @ B / n + 0.05 * np.eye(n)
        self.c = rng.standard_normal(n)
        self.d = rng.uniform(0, 2, n)
        self.n = n
        self.L = np.diag(self.H) + self.d / 4
        self.x_star = np.zeros(n)
        for _ in range(200):  # Newton
            s = 1 / (1 + np.exp(-self.x_star))
            self.x_star -= np.linalg.solve(self.H + np.diag(self.d * s * (1 - s)), self.gradient(self.x_star))
        assert np.abs(self.gradient(self.x_star)).max() < 1e-9

    def f(self, x):
        return x @ self.H @ x / 2 - self.c @ x + self.d @ np.logaddexp(0, x)

    def gradient(self, x):
        return self.H @ x - self.c + self.d / (1 + np.exp(-x))

    def sigma(self, beta):
        """Strong convexity in the L_beta norm: smallest eigenvalue of D^-1/2 H D^-1/2, D = diag(L^beta)."""
        scale = self.L ** (-beta / 2)
        return np.linalg.eigvalsh(self.H * np.outer(scale, scale))[0]


def steps_of_algorithm_1(problem, beta, steps, rng, x0):
    """(x, y_k, z_k, all y^(i), all z^(i)) along a run of Algorithm 1."""
    L, sigma = problem.L, problem.sigma(beta)
    alpha = (1 - beta) / 2
    S = np.sum(L**alpha)
    p = L**alpha / S
    tau = 2 / (1 + np.sqrt(4 * S**2 / sigma + 1))
    eta = 1 / (tau * S**2)
    y = z = x0
    for _ in range(steps):
        x = tau * z + (1 - tau) * y
        g = problem.gradient(x)
        ys = x - np.diag(g / L)
        zs = (z + eta * sigma * x - np.diag(eta / (p * L**beta) * g)) / (1 + eta * sigma)
        yield x, y, z, ys, zs, (p, S, tau, eta, sigma, g)
        i = rng.choice(problem.n, p=p)
        y, z = ys[i], zs[i]


def norm2(v, L, beta):
    return np.sum(L**beta * v**2, axis=-1)


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("seed", range(4))
def test_strongly_convex_lemmas(seed, beta):
    problem = Problem(seed)
    rng = np.random.default_rng(100 + seed)
    L, f = problem.L, problem.f
    for x, y, z, ys, zs, (p, S, tau, eta, sigma, g) in steps_of_algorithm_1(
        problem, beta, 40, rng, 3 * rng.standard_normal(problem.n)
    ):
        f_ys = np.array([f(v) for v in ys])
        scale = SLACK * (1 + abs(f(x)) + eta * np.abs(g).sum() * 10)
        assert np.all(f_ys <= f(x) - g**2 / (2 * L) + scale)  # 5.3

        for u in (rng.standard_normal(problem.n) * 3, problem.x_star, x):
            inner = eta / p * g * (np.diag(zs) - u)
            left = inner - eta * sigma / 2 * norm2(x - u, L, beta)
            right = (
                -norm2(z - zs, L, beta) / 2 + norm2(z - u, L, beta) / 2 - (1 + eta * sigma) / 2 * norm2(zs - u, L, beta)
            )
            bound = SLACK * (1 + np.abs(left).max() + np.abs(right).max() + np.abs(norm2(z - u, L, beta)))
            assert np.all(left <= right + bound)  # 5.4

            left = eta * g @ (z - u) - eta * sigma / 2 * norm2(u - x, L, beta)
            right = (
                eta**2 * S**2 * (f(x) - p @ f_ys)
                + norm2(z - u, L, beta) / 2
                - (1 + eta * sigma) / 2 * p @ norm2(zs - u, L, beta)
            )
            assert left <= right + SLACK * (1 + abs(left) + abs(right) + eta**2 * S**2 * abs(f(x)))  # 5.5

        best = f(problem.x_star)
        terms = (
            (1 - tau) * eta / tau * (f(y) - best),
            -eta / tau * (p @ f_ys - best),
            norm2(z - problem.x_star, L, beta) / 2,
            -(1 + eta * sigma) / 2 * p @ norm2(zs - problem.x_star, L, beta),
        )
        assert sum(terms) >= -SLACK * (1 + sum(map(abs, terms)) + eta / tau * abs(best))  # 5.6
        assert 1 + eta * sigma == pytest.approx(1 / (1 - tau), rel=1e-12)


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("seed", range(4))
def test_non_strongly_convex_lemmas(seed, beta):
    problem = Problem(seed)
    rng = np.random.default_rng(200 + seed)
    L, f, n = problem.L, problem.f, problem.n
    alpha = (1 - beta) / 2
    S = np.sum(L**alpha)
    p = L**alpha / S
    y = z = 3 * rng.standard_normal(n)
    for k in range(40):
        eta = (k + 2) / (2 * S**2)
        tau = 1 / (eta * S**2)
        x = tau * z + (1 - tau) * y
        g = problem.gradient(x)
        ys = x - np.diag(g / L)
        zs = z - np.diag(eta / (p * L**beta) * g)
        f_ys = np.array([f(v) for v in ys])
        for u in (3 * rng.standard_normal(n), problem.x_star):
            left = eta * g @ (z - u)
            drop = norm2(z - u, L, beta) / 2 - p @ norm2(zs - u, L, beta) / 2
            right = eta**2 * S**2 * (f(x) - p @ f_ys) + drop
            assert left <= right + SLACK * (1 + abs(left) + abs(right) + eta**2 * S**2 * abs(f(x)))  # 6.3
            terms = ((eta**2 * S**2 - eta) * (f(y) - f(u)), -(eta**2) * S**2 * (p @ f_ys - f(u)), drop)
            size = sum(map(abs, terms)) + eta**2 * S**2 * abs(f(u)) + norm2(z - u, L, beta)
            assert sum(terms) >= -SLACK * (1 + size)  # 6.4
        i = rng.choice(n, p=p)
        y, z = ys[i], zs[i]


def test_lemma_5_6_fails_for_a_sigma_that_is_too_large():
    """The lemmas are tests that can fail: with 50 times the true sigma, Lemma 5.6 breaks somewhere along a run."""
    problem = Problem(0)
    true = problem.sigma
    problem.sigma = lambda beta: 50 * true(beta)
    rng = np.random.default_rng(0)
    worst = np.inf
    for _, y, z, ys, zs, (p, _, tau, eta, sigma, _) in steps_of_algorithm_1(
        problem, 0.0, 400, rng, 3 * rng.standard_normal(problem.n)
    ):
        best = problem.f(problem.x_star)
        terms = (
            (1 - tau) * eta / tau * (problem.f(y) - best),
            -eta / tau * (p @ np.array([problem.f(v) for v in ys]) - best),
            norm2(z - problem.x_star, problem.L, 0) / 2,
            -(1 + eta * sigma) / 2 * p @ norm2(zs - problem.x_star, problem.L, 0),
        )
        worst = min(worst, sum(terms) / (1e-300 + sum(map(abs, terms))))
    assert worst < -1e-6


@pytest.mark.parametrize("seed", range(5))
def test_theta_is_minimised_by_the_papers_distribution(seed):
    """Theta(p) = max_i L_i/(w_i p_i^2) has its minimum S^2 at p ~ sqrt(L/w); for w = L^beta, p ~ L^((1-beta)/2)."""
    rng = np.random.default_rng(seed)
    n = 9
    L = 10 ** rng.uniform(-3, 3, n)
    for w in [L**beta for beta in BETAS] + [rng.uniform(0.1, 10, n)]:
        best = np.sqrt(L / w) / np.sqrt(L / w).sum()

        def theta(p, w=w):
            return np.max(L / (w * p**2))

        assert theta(best) == pytest.approx(np.sqrt(L / w).sum() ** 2, rel=1e-12)
        for _ in range(200):
            other = best * np.exp(rng.normal(0, rng.choice([1e-3, 0.1, 1.0]), n))
            assert theta(other / other.sum()) >= theta(best) * (1 - 1e-12)
