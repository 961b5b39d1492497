"""Fits of samples on the disk: converted once, then read chunk after chunk, with the same answer as in memory.

A few megabytes stand for data that would not fit; the memory that a fit takes is that of two chunks and some numbers
per sample, however large the folder is.
"""

import resource
import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from coordwise import datasets
from coordwise.estimators import LogisticRegression, Ridge

FEATURES = 200


def batches(count=40, rows=2000):
    """Sparse samples with labels, as they may come from a database or from files, a batch at a time."""
    truth = np.random.default_rng(0).standard_normal(FEATURES)
    for k in range(count):
        rng = np.random.default_rng([1, k])
        A = sp.csr_array(sp.random_array((rows, FEATURES), density=0.05, rng=rng, format="csr"))
        yield A, np.where(A @ truth + 0.3 * rng.standard_normal(rows) > 0, 1.0, -1.0)


def peak():
    """The largest memory of this process so far, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main():
    """Fit a folder, a folder with targets beside it, and batches."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = datasets.convert(batches(), Path(scratch) / "samples", chunk_bytes=1 << 20)
        print(folder)
        before = peak()
        model = LogisticRegression(C=0.1, tol=1e-6).fit(folder)
        print(f"logistic regression: duality gap {model.dual_gap_:.1e} after {model.passes_:.0f} passes")
        print(f"  by {model.strategy_}")
        print(f"  accuracy {model.score(folder):.3f}, {peak() - before:.0f} MB more at the peak")

        numbers = np.random.default_rng(2).standard_normal(folder.shape[0])  # targets may also stand beside a folder
        ridge = Ridge(alpha=1.0).fit(folder, numbers)
        print(f"ridge regression: duality gap {ridge.dual_gap_:.1e} by {ridge.strategy_}")

    again = LogisticRegression(C=0.1, tol=1e-6).fit_batches(batches)  # without a folder: made anew for every pass
    print(f"the same from batches: coefficients within {np.abs(again.coef_ - model.coef_).max():.1e}")


if __name__ == "__main__":
    main()
