"""The counts of Theorems 2.1 to 2.3, the order of section 8, and what an estimate of sigma is."""

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import unequal_rows

import coordwise as cw
from coordwise import linalg
from coordwise.experiments import paper
from coordwise.experiments.systems import random_system
from coordwise.linalg.strength import cheap_strength
from coordwise.rows import Rows


def spectrum(m, n, values, seed=0):
    rng = np.random.default_rng(seed)
    U, V = np.linalg.qr(rng.standard_normal((m, n)))[0], np.linalg.qr(rng.standard_normal((n, n)))[0]
    return U * values @ V.T


SYSTEMS = {f"section 8, {share:.0%}": random_system(share, 0, paper.LONG_ROWS[share])[0] for share in paper.SHARES} | {
    "geometric spectrum": spectrum(80, 40, np.geomspace(1, 1e-2, 40)),
    "Gaussian": np.random.default_rng(0).standard_normal((150, 100)),
    "unequal rows": unequal_rows(200, 30),
}


def iterations(A, method, epsilon, seed):
    """Rows until |x - x*|^2 <= epsilon |x*|^2 (footnote 9), to a twentieth of a pass."""
    x = np.random.default_rng(seed).standard_normal(A.shape[1])
    reached = []

    def callback(progress):
        if np.sum((progress.solution() - x) ** 2) <= epsilon * (x @ x):
            reached.append(progress.iterations)
            return True
        return None

    cw.solve(
        cw.LinearSystem(A, A @ x),
        method,
        tol=0.0,
        max_passes=20_000,
        callback=callback,
        record_every=0.05,
        record_growth=0,
        random_state=seed,
    )
    return reached[0]


@pytest.mark.parametrize("sigma", ["known", "adaptive"])
@pytest.mark.parametrize("epsilon", [1e-4, 1e-8])
@pytest.mark.parametrize("name", SYSTEMS)
def test_iterations_of_theorem_2_3(name, epsilon, sigma):
    """Within a factor 3 of |A^-1| |A|_{2,1} log(1/epsilon), also where sigma is not known."""
    A = SYSTEMS[name]
    smallest = np.linalg.svd(A, compute_uv=False)[-1]
    theory = np.linalg.norm(A, axis=1).sum() / smallest * np.log(1 / epsilon)
    method = cw.NUACDM(sigma=smallest**2 if sigma == "known" else "adaptive")
    measured = np.median([iterations(A, method, epsilon, seed) for seed in range(3)])
    assert theory / 3 <= measured <= 3 * theory


@pytest.mark.parametrize("share", [1.0, 0.6, 0.2])
def test_iterations_of_theorems_2_1_and_2_2_are_bounds(share):
    A = SYSTEMS[f"section 8, {share:.0%}"]
    smallest, frobenius = np.linalg.svd(A, compute_uv=False)[-1], np.linalg.norm(A)
    log = np.log(1e6)
    plain = np.median([iterations(A, cw.Kaczmarz(), 1e-6, seed) for seed in range(3)])
    accelerated = np.median([iterations(A, cw.ACDM(sigma=smallest**2), 1e-6, seed) for seed in range(3)])
    assert plain <= (frobenius / smallest) ** 2 * log
    assert accelerated <= np.sqrt(len(A)) * frobenius / smallest * log


@pytest.mark.parametrize("exact", [True, False], ids=["exact", "random"])
@pytest.mark.parametrize("share", paper.SHARES)
def test_order_of_section_8(share, exact):
    """Passes to |x - x*|^2 <= 1e-12 |x*|^2, which figure 6 shows: NU_ACDM before ACDM before Kaczmarz.

    In the sum over seeds; for rows of one length (r = 100 %) the first two are the same method.
    """
    passes = dict.fromkeys(("nuacdm", "acdm", "kaczmarz"), 0)
    for seed in range(6):
        A, b, x = random_system(share, seed, paper.LONG_ROWS[share] if exact else None)
        for name in passes:
            done = []

            def close(xk, x=x, done=done):
                done.append(xk)
                return bool(np.sum((xk - x) ** 2) <= 1e-12 * (x @ x))

            result = getattr(linalg, name)(
                A, b, rtol=0.0, maxiter=20_000, callback=close, random_state=seed, full_output=True
            )
            assert result.status == "stopped"
            passes[name] += len(done) - 1
    assert passes["acdm"] < passes["kaczmarz"]
    if share == 1.0:
        assert passes["nuacdm"] == passes["acdm"]
    else:
        assert passes["nuacdm"] < passes["acdm"]


@pytest.mark.parametrize("beta", [0.0, 1.0])
@pytest.mark.parametrize("shape", [(120, 30), (30, 120)])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_estimated_sigma_is_the_smallest_eigenvalue(shape, beta, storage):
    A = unequal_rows(*shape, density=0.5)
    norms = np.linalg.norm(A, axis=1)
    scaled = A / norms[:, None] ** beta
    expected = np.linalg.svd(scaled, compute_uv=False)[-1] ** 2
    sigma, rank = cheap_strength(Rows(storage(A)), norms ** (2 * beta))
    assert sigma == pytest.approx(expected, rel=1e-6)
    assert rank == np.linalg.matrix_rank(A)


def test_estimated_sigma_leaves_the_null_space_out():
    A = spectrum(60, 30, np.r_[np.linspace(1, 0.5, 20), np.zeros(10)])
    sigma, rank = cheap_strength(Rows(A), np.ones(60))
    assert sigma == pytest.approx(0.25, rel=1e-6)
    assert rank == np.linalg.matrix_rank(A)


def test_sigma_is_not_estimated_where_it_is_dear_or_uncertain():
    assert cheap_strength(Rows(np.random.default_rng(0).standard_normal((400, 350))), np.ones(400)) is None
    assert cheap_strength(Rows(spectrum(60, 30, np.geomspace(1, 1e-5, 30))), np.ones(60)) is None
    assert cheap_strength(Rows(np.zeros((3, 2))), np.ones(3)) is None


def test_what_sigma_was_used_is_reported():
    A = unequal_rows(60, 20)
    b = A @ np.ones(20)
    smallest = np.linalg.svd(A, compute_uv=False)[-1] ** 2
    run = {s: linalg.nuacdm(A, b, sigma=s, random_state=0, full_output=True) for s in (None, "adaptive", smallest)}
    assert run[None].constants.sigma == pytest.approx(smallest, rel=1e-6)
    assert run[smallest].constants.sigma == smallest
    assert run["adaptive"].constants.sigma is None
    assert "sigma=adaptive" in run["adaptive"].method
    assert all(r.converged for r in run.values())


def test_scaling_is_the_same_as_scaling_the_rows():
    """scaling="rows" without a copy against the system with its rows divided by their norms, step by step."""
    A = unequal_rows(80, 25, spread=3.0)
    b = A @ np.ones(25)
    norms = np.linalg.norm(A, axis=1)
    for solver in (linalg.kaczmarz, linalg.nuacdm, linalg.acdm):
        one = solver(A, b, rtol=0.0, maxiter=4, scaling="rows", random_state=3)[0]
        other = solver(A / norms[:, None], b / norms, rtol=0.0, maxiter=4, random_state=3)[0]
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)
