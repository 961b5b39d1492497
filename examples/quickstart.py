"""A badly scaled ridge regression by three methods, then a logistic regression and a linear system.

The samples of the regressions have norms over three orders of magnitude. That is where the sampling of NU_ACDM,
p_i ~ sqrt(L_i), differs most from that of older methods.
"""

import numpy as np
import scipy.sparse as sp

import coordwise as cw


def unequal_rows(n, d, orders, rng, per_row=10):
    """A sparse n x d matrix with row norms in [10^(1 - orders), 10], spread evenly in the logarithm."""
    rows, columns = np.repeat(np.arange(n), per_row), rng.integers(0, d, n * per_row)
    A = sp.csr_array(sp.coo_array((rng.standard_normal(n * per_row), (rows, columns)), shape=(n, d)))
    norms = np.sqrt(A.multiply(A).sum(axis=1))
    return sp.csr_array(sp.diags_array(10 ** rng.uniform(1 - orders, 1, n) / norms) @ A)


def ridge(A, b):
    """Passes over the data until P(w) + D(y) <= 1e-8 P(0), for three methods."""
    problem = cw.ERM(A, b, loss="squared", penalty="l2", lam=1e-4)
    print(f"ridge regression, {problem.n_samples} x {problem.n_features}, to gap <= 1e-8 P(0)")
    print(f"{'method':10} {'passes':>8} {'iterations':>12} {'gap / P(0)':>12}")
    for method in ("nu_acdm", "acdm", "sdca"):
        res = cw.solve(problem.dual(), method, tol=1e-8, record_growth=0)
        print(f"{method:10} {res.passes:8.1f} {res.iterations:12d} {res.gap / res.scale:12.1e}")


def logistic(A, labels):
    """A classifier, by the default method."""
    res = cw.solve(cw.ERM(A, labels, loss="logistic", penalty="l2", lam=1e-4).dual(), tol=1e-8)
    print(f"\nlogistic regression, {res.method}\n{res.message}")
    print(f"training accuracy {np.mean(np.sign(A @ res.x) == labels):.3f}")


def linear_system(A, x):
    """Ax = b with fewer equations than unknowns: the solution of smallest norm."""
    b = A @ x
    res = cw.solve(cw.LinearSystem(A, b), tol=1e-8)
    print(f"\nlinear system, {A.shape[0]} x {A.shape[1]}, {res.method}\n{res.message}")
    print(f"|b - Ax| / |b| = {np.linalg.norm(b - A @ res.x) / np.linalg.norm(b):.1e}")


def main():
    """Run all three."""
    rng = np.random.default_rng(0)
    A = unequal_rows(4000, 1000, 3, rng)
    w = rng.standard_normal(A.shape[1])
    b = A @ w + 0.1 * rng.standard_normal(A.shape[0])
    ridge(A, b)
    logistic(A, np.sign(b))
    linear_system(unequal_rows(500, 1000, 1, rng), w)


if __name__ == "__main__":
    main()
