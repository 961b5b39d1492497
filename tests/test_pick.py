"""Some columns of sparse rows, against scipy."""

import numpy as np
import pytest
import scipy.sparse as sp

from coordwise.rows import Rows


def matrix(n, d, density, value=np.float64, index=np.int32, seed=0):
    A = sp.random_array((n, d), density=density, format="csr", rng=np.random.default_rng(seed)).astype(value)
    A.indices, A.indptr = A.indices.astype(index), A.indptr.astype(index)
    return A


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("value", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "d", "density"), [(6000, 40, 0.2), (5000, 900, 0.004), (3, 7, 1.0), (4000, 2, 0.001)])
def test_any_columns(n, d, density, value, index, threads):
    A = matrix(n, d, density, value, index)
    rng = np.random.default_rng(1)
    for count in {0, 1, d // 2, d}:
        which = np.sort(rng.permutation(d)[:count])
        values, places, starts = Rows(A).picked(which, threads)
        assert (values.dtype, places.dtype, starts.dtype) == (value, index, index)
        found = sp.csr_array((values, places, starts), shape=(n, count))
        expected = A[:, which]
        expected.sort_indices()
        np.testing.assert_array_equal(found.indptr, expected.indptr)
        np.testing.assert_array_equal(found.indices, expected.indices)
        np.testing.assert_array_equal(found.data, expected.data)


def test_empty_rows_where_the_part_of_a_thread_ends():
    """Nothing is written behind the entries of a thread, where those of the next one are."""
    A = matrix(5000, 30, 0.3)
    A = sp.csr_array(sp.diags_array((np.arange(5000) % 1250 < 1000).astype(float)) @ A)
    A.eliminate_zeros()
    which = np.array([3, 4, 29])
    for threads in (1, 2, 3, 4):
        values, places, starts = Rows(A).picked(which, threads)
        np.testing.assert_array_equal(
            sp.csr_array((values, places, starts), shape=(5000, 3)).toarray(), A.toarray()[:, which]
        )


def test_order_is_the_one_that_is_given():
    A = matrix(50, 8, 0.5)
    found = sp.csr_array(Rows(A).picked(np.array([5, 0, 7])), shape=(50, 3))
    np.testing.assert_array_equal(found.toarray(), A.toarray()[:, [5, 0, 7]])


def test_what_cannot_be_picked_from():
    with pytest.raises(ValueError, match="dense"):
        Rows(np.ones((4, 3)))._core.picked(np.zeros(3, np.int32), 1)
    rows = Rows(matrix(20, 6, 0.5))
    with pytest.raises(ValueError, match="length"):
        rows._core.picked(np.zeros(5, np.int32), 1)
    with pytest.raises(ValueError, match="types"):
        rows._core.picked(np.zeros(6, np.int64), 1)
