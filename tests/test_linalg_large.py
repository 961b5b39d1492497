"""Systems of the size that coordwise.linalg is made for: the inequality, and what `solve` chooses."""

import doctest
import importlib

import numpy as np
import pytest
import scipy.sparse as sp

from coordwise import linalg
from coordwise.datasets.tomography import parallel_beams, phantom
from coordwise.experiments.systems import random_system


def sparse_rows(m, n, per_row, rng):
    columns = rng.integers(0, n, m * per_row).astype(np.int32)
    A = sp.csr_array(
        (rng.standard_normal(m * per_row), columns, np.arange(0, m * per_row + 1, per_row, np.int32)), (m, n)
    )
    A.sum_duplicates()
    return A


def check(A, b, x, rtol):
    assert np.linalg.norm(b - A @ x) <= rtol * np.linalg.norm(b)


@pytest.mark.parametrize("name", ["auto", "leastsquares", "rowaction", "spd"])
def test_examples_of_the_docstrings(name):
    failed, tried = doctest.testmod(importlib.import_module(f"coordwise.linalg.{name}"))
    assert tried > 0
    assert failed == 0


def test_rays_go_to_row_action():
    A = parallel_beams(48, 90)
    b = A @ phantom(48).ravel()
    result = linalg.solve(A, b, rtol=1e-5, random_state=0, full_output=True)
    assert result.converged
    assert result.method == "nu_acdm on all rows"
    assert any("times a typical row norm" in note for note in result.notes)
    check(A, b, result.w, 1e-5)
    x, info = linalg.solve(A, np.column_stack([b, -2 * b]), rtol=1e-5, random_state=0)
    assert info == 0
    check(A, b, x[:, 0], 1e-5)
    check(A, -2 * b, x[:, 1], 1e-5)


@pytest.mark.slow
def test_section_8_scaled_up():
    A, b, _ = random_system(0.2, 0, shape=(30_000, 1000))
    result = linalg.solve(A, b, rtol=1e-6, random_state=0, full_output=True)
    assert result.converged
    assert result.method == "cgls on 4000 of 30000 rows"
    check(A, b, result.w, 1e-6)
    for solver in (linalg.kaczmarz, linalg.nuacdm):
        result = solver(A, b, rtol=1e-6, random_state=0, full_output=True)
        assert result.converged
        assert result.passes < 10
        check(A, b, result.w, 1e-6)


@pytest.mark.slow
def test_massively_overdetermined():
    rng = np.random.default_rng(0)
    A = sparse_rows(500_000, 2000, 30, rng)
    b = A @ rng.standard_normal(2000)
    result = linalg.solve(A, b, rtol=1e-6, random_state=0, full_output=True)
    assert result.converged
    assert result.method == "kaczmarz on 32000 of 500000 rows"
    assert result.passes < 2
    check(A, b, result.w, 1e-6)
    result = linalg.kaczmarz(A, b, rtol=1e-6, random_state=0, full_output=True)
    assert result.converged
    assert result.passes < 0.5
    check(A, b, result.w, 1e-6)


@pytest.mark.slow
def test_memory_mapped_rows(tmp_path):
    rng = np.random.default_rng(1)
    A = sparse_rows(120_000, 3000, 20, rng)
    parts = {}
    for name in ("data", "indices", "indptr"):
        np.save(tmp_path / f"{name}.npy", getattr(A, name))
        parts[name] = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
    mapped = sp.csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=A.shape, copy=False)
    b = A @ rng.standard_normal(3000)
    for solver in (linalg.solve, linalg.nuacdm, linalg.lstsq):
        result = solver(mapped, b, rtol=1e-7, random_state=0, full_output=True)
        assert result.converged
        assert "used in place" in result.storage
    check(A, b, linalg.solve(mapped, b, rtol=1e-7)[0], 1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("orders", [1, 3])
def test_unequal_rows(orders):
    rng = np.random.default_rng(2)
    A = sparse_rows(100_000, 20_000, 20, rng)
    norms = np.sqrt(A.multiply(A).sum(axis=1))
    A = sp.csr_array(sp.diags_array(10 ** rng.uniform(-orders, 0, A.shape[0]) / norms) @ A)
    b = A @ rng.standard_normal(20_000)
    for solver in (linalg.solve, linalg.nuacdm, linalg.acdm):
        x, info = solver(A, b, rtol=1e-6, random_state=0)
        assert info == 0
        check(A, b, x, 1e-6)
