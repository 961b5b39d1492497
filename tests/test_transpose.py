"""Sparse matrices by the other direction."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import coordwise as cw
from coordwise.rows import Rows


def matrix(n=3000, d=70, dtype=np.float64, index=np.int32, *, shuffled=False):
    rng = np.random.default_rng(n + d)
    A = sp.random_array((n, d), density=0.1, rng=rng, format="csr", dtype=dtype)
    A = sp.csr_array(A * (np.arange(d) != 3))  # a column without entries
    A.eliminate_zeros()
    A.indices, A.indptr = A.indices.astype(index), A.indptr.astype(index)
    if shuffled:
        for i in range(n):
            mixed = A.indptr[i] + rng.permutation(A.indptr[i + 1] - A.indptr[i])
            part = slice(A.indptr[i], A.indptr[i + 1])
            A.indices[part], A.data[part] = A.indices[mixed], A.data[mixed]
        A.has_sorted_indices = False
    return A


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shuffled", [False, True], ids=["in order", "in any order"])
@pytest.mark.parametrize("shape", [(3000, 70), (20, 5000), (1, 1)])
def test_transposed_arrays_are_those_of_scipy(shape, shuffled, dtype, index, threads):
    A = matrix(*shape, dtype, index, shuffled=shuffled)
    values, indices, indptr = Rows(A).transposed(threads)
    assert (values.dtype, indices.dtype, indptr.dtype) == (dtype, index, index)
    expected = sp.csc_array(A)
    expected.sort_indices()
    np.testing.assert_array_equal(values, expected.data)
    np.testing.assert_array_equal(indices, expected.indices)
    np.testing.assert_array_equal(indptr, expected.indptr)


@pytest.mark.parametrize("by", ["rows", "columns"])
def test_a_problem_turns_its_matrix(by):
    A, other = matrix(), "columns" if by == "rows" else "rows"
    given = sp.csr_array(A) if other == "rows" else sp.csc_array(A)
    problem = cw.ERM(given, np.ones(A.shape[0]), lam=1.0)
    turned, direct = problem.rows(by), Rows(given, by)
    assert turned.storage == direct.storage
    assert turned.copied
    assert not problem.rows(other).copied
    for ours, theirs in zip(turned.arrays, direct.arrays, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(turned.norms2(), direct.norms2())


def test_what_was_converted_before_is_said_too():
    problem = cw.ERM(matrix().astype(np.int64), np.ones(3000), lam=1.0)
    assert problem.rows("columns").storage.endswith("int64 converted to float64, csr converted to csc")
    assert list(problem._rows) == ["columns"]  # one copy is enough


def test_unusual_arrays(tmp_path):
    A = matrix()
    expected = sp.csc_array(A)
    for name in ("data", "indices", "indptr"):
        np.save(tmp_path / f"{name}.npy", getattr(A, name))
    mapped = [np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("data", "indices", "indptr")]
    longer = [np.append(A.data, [7.0, 8.0]), np.append(A.indices, [1, 2]).astype(np.int32), A.indptr]
    for given in (
        sp.csr_matrix(A),
        sp.csr_array(tuple(mapped), shape=A.shape, copy=False),
        sp.csr_array(tuple(longer), shape=A.shape, copy=False),
    ):
        turned = cw.ERM(given, np.ones(3000), lam=1.0).rows("columns")
        again = pickle.loads(pickle.dumps(turned))
        assert again.storage == turned.storage
        for found in (turned, again):
            assert all(type(array) is np.ndarray for array in found.arrays)
            np.testing.assert_array_equal(found.arrays[0], expected.data)
            np.testing.assert_array_equal(found.arrays[1], expected.indices)


def test_a_wide_matrix_takes_no_counters_for_threads_that_do_not_pay():
    A = sp.csr_array(([1.0, 2.0], ([0, 4999], [3, 10**6])), shape=(5000, 2 * 10**6))
    values, indices, indptr = Rows(A).transposed(64)
    np.testing.assert_array_equal(values, [1.0, 2.0])
    np.testing.assert_array_equal(indices, [0, 4999])
    assert (indptr[3], indptr[4], indptr[10**6], indptr[-1]) == (0, 1, 1, 2)


def test_broken_matrices_are_refused_in_either_direction():
    A = matrix()
    A.indices[5] = 70
    for by in ("rows", "columns"):
        with pytest.raises(ValueError, match="outside"):
            cw.ERM(A, np.ones(3000), lam=1.0).rows(by)


def test_the_core_checks_what_it_writes_to():
    rows = Rows(matrix())
    values, indices, indptr = rows.transposed()
    with pytest.raises(ValueError, match="wrong length"):
        rows._core.transposed(1, values, indices, indptr[:-1].copy())
    with pytest.raises(ValueError, match="dense, or of other types"):
        rows._core.transposed(1, values.astype(np.float32), indices, indptr)
    with pytest.raises(ValueError, match="dense"):
        Rows(np.ones((3, 2)))._core.transposed(1, values, indices, indptr)
