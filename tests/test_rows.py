"""The data matrix: every storage gives the same products, says truly whether it copied, and refuses broken input."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from coordwise.rows import Rows

BY = ["rows", "columns"]
by_both = pytest.mark.parametrize("by", BY)


def dense(n=7, d=5, seed=0, density=0.6):
    rng = np.random.default_rng(seed)
    A = np.round(rng.standard_normal((n, d)) * 4, 2) * (rng.random((n, d)) < density)
    A[2] = 0.0  # an empty row
    A[:, 1] = 0.0  # and an empty column
    return A


def int64(A):
    A.indices, A.indptr = A.indices.astype(np.int64), A.indptr.astype(np.int64)
    return A


def mixed(A):
    A.indptr = A.indptr.astype(np.int64)
    return A


def read_only(A):
    for array in (A.data, A.indices, A.indptr) if sp.issparse(A) else (A,):
        array.setflags(write=False)
    return A


def unaligned(A):
    raw = np.zeros(A.nbytes + 1, np.uint8)
    out = raw[1:].view(A.dtype).reshape(A.shape)
    out[...] = A
    assert not out.flags.aligned
    return out


def strided(A):
    twice = np.repeat(A, 2, axis=1)
    return twice[:, ::2]


def strided_data(A):
    A.data = np.repeat(A.data, 2)[::2]
    return A


NEVER, ROWS, COLUMNS = (), ("rows",), ("columns",)  # directions in which the storage is used in place

STORAGES = {
    "dense_c": (np.ascontiguousarray, ROWS),
    "dense_f": (np.asfortranarray, COLUMNS),
    "dense_float32": (lambda A: A.astype(np.float32), ROWS),
    "dense_float32_f": (lambda A: np.asfortranarray(A, dtype=np.float32), COLUMNS),
    "dense_read_only": (lambda A: read_only(A.copy()), ROWS),
    "dense_list": (lambda A: A.tolist(), None),  # becomes an array before anyone can tell
    "dense_strided": (strided, NEVER),
    "dense_reversed": (lambda A: A[::-1], NEVER),
    "dense_unaligned": (unaligned, NEVER),
    "dense_int": (lambda A: (A * 100).round().astype(np.int64), NEVER),
    "dense_int8": (lambda A: A.round().astype(np.int8), NEVER),
    "dense_uint8": (lambda A: np.abs(A.round()).astype(np.uint8), NEVER),
    "dense_bool": (lambda A: A > 0, NEVER),
    "dense_float16": (lambda A: A.astype(np.float16), NEVER),
    "dense_longdouble": (lambda A: A.astype(np.longdouble), NEVER),
    "dense_big_endian": (lambda A: A.astype(">f8"), NEVER),
    "dense_big_endian_float32": (lambda A: A.astype(">f4"), NEVER),
    "masked_nowhere": (lambda A: np.ma.masked_array(A), ROWS),
    "csr": (sp.csr_array, ROWS),
    "csr_matrix": (sp.csr_matrix, ROWS),
    "csr_float32": (lambda A: sp.csr_array(A.astype(np.float32)), ROWS),
    "csr_int64": (lambda A: int64(sp.csr_array(A)), ROWS),
    "csr_float32_int64": (lambda A: int64(sp.csr_array(A.astype(np.float32))), ROWS),
    "csr_mixed_indices": (lambda A: mixed(sp.csr_array(A)), NEVER),
    "csr_read_only": (lambda A: read_only(sp.csr_array(A)), ROWS),
    "csr_strided_data": (lambda A: strided_data(sp.csr_array(A)), NEVER),
    "csr_int_values": (lambda A: sp.csr_array((A * 100).round().astype(np.int32)), NEVER),
    "csr_bool": (lambda A: sp.csr_array(A > 0), NEVER),
    "csc": (sp.csc_array, COLUMNS),
    "csc_matrix": (sp.csc_matrix, COLUMNS),
    "csc_float32": (lambda A: sp.csc_array(A.astype(np.float32)), COLUMNS),
    "csc_int64": (lambda A: int64(sp.csc_array(A)), COLUMNS),
    "coo": (sp.coo_array, NEVER),
    "coo_matrix": (sp.coo_matrix, NEVER),
    "bsr": (lambda A: sp.bsr_array(A, blocksize=(1, 5)), NEVER),
    "lil": (sp.lil_array, NEVER),
    "dok": (sp.dok_array, NEVER),
    "dia": (sp.dia_array, NEVER),
}


def as_float64(A):
    return np.asarray(A.toarray() if sp.issparse(A) else A, dtype=np.float64)


def check_products(rows, A, by, rtol=1e-13):
    """norms2, squares, dots and combine against NumPy on the dense float64 matrix A."""
    B = A if by == "rows" else A.T
    assert (rows.count, rows.width) == B.shape
    rng = np.random.default_rng(1)
    weights = rng.uniform(0.1, 2, rows.width)
    np.testing.assert_allclose(rows.norms2(), np.square(B).sum(1), rtol=rtol)
    np.testing.assert_allclose(rows.norms2(weights), np.square(B) @ weights, rtol=rtol)
    weights = rng.uniform(0.1, 2, rows.count)
    np.testing.assert_allclose(rows.squares(), np.square(B).sum(0), rtol=rtol)
    for threads in (1, 3):
        np.testing.assert_allclose(rows.squares(weights, threads), weights @ np.square(B), rtol=rtol)
    for outputs in (1, 2, 3, 4, 5, 8, 11, 17):  # every group width of the core, and remainders
        vectors, x = rng.standard_normal((rows.width, outputs)), rng.standard_normal((rows.count, outputs))
        np.testing.assert_allclose(rows.dots(vectors), B @ vectors, rtol=rtol, atol=rtol * np.abs(B).sum())
        np.testing.assert_allclose(rows.combine(x), B.T @ x, rtol=rtol, atol=rtol * np.abs(B).sum())


@by_both
@pytest.mark.parametrize("name", STORAGES)
def test_every_storage_gives_the_same_products(name, by):
    make, in_place = STORAGES[name]
    A = make(dense())
    rows = Rows(A, by)
    check_products(rows, as_float64(A), by)
    if in_place is not None:
        assert rows.copied == (by not in in_place)
        assert rows.storage.endswith("used in place") == (by in in_place)
        assert ("copied once: " in rows.storage) == rows.copied
    kind = "sparse" if sp.issparse(A) else "dense"
    width = "float32" if "float32" in name and "endian" not in name else "float64"
    assert rows.storage.startswith(f"{kind} {by}, {width}")
    if sp.issparse(A):
        assert ("int64 indices" in rows.storage) == ("int64" in name or "mixed" in name)


@by_both
@pytest.mark.parametrize("name", STORAGES)
def test_counts_of_stored_entries(name, by):
    A = STORAGES[name][0](dense())
    rows = Rows(A, by)
    nonzero = (as_float64(A) != 0).sum(1 if by == "rows" else 0)
    if not sp.issparse(A):
        nonzero = np.full(rows.count, rows.width)
    if name != "bsr":  # stores zeros inside its blocks
        np.testing.assert_array_equal(rows.lengths, nonzero)
    assert rows.nnz == rows.lengths.sum() >= nonzero.sum()
    assert rows.lengths.dtype == np.int64


WRITABLE = ["dense_c", "dense_f", "dense_float32", "csr", "csr_matrix", "csr_float32", "csr_int64", "csc", "csc_int64"]
WRITABLE += ["coo", "dense_int", "dense_strided", "csr_int_values"]


@by_both
@pytest.mark.parametrize("name", WRITABLE)
def test_changes_show_through_exactly_when_nothing_was_copied(name, by):
    make, in_place = STORAGES[name]
    A = make(dense())
    rows = Rows(A, by)
    ones = np.ones((rows.width, 1))
    before = rows.dots(ones)
    stored = A.data if sp.issparse(A) else A
    stored *= 2
    assert rows.copied == (by not in in_place)
    np.testing.assert_allclose(rows.dots(ones), before * (1 if rows.copied else 2))


@by_both
def test_the_source_may_go_away(by):
    """The core keeps the arrays alive that it reads."""
    A = dense()
    for make in (np.ascontiguousarray, np.asfortranarray, sp.csr_array, sp.csc_array):
        rows = Rows(make(A.copy()), by)
        _ = [np.full(A.shape, np.nan) for _ in range(50)]
        check_products(rows, A, by)


@pytest.mark.parametrize("mode", ["r", "r+", "c"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("order", "by"), [("C", "rows"), ("F", "columns"), ("C", "columns"), ("F", "rows")])
def test_memory_mapped(tmp_path, mode, dtype, order, by):
    A = dense().astype(dtype)
    file = tmp_path / "A.bin"
    created = np.memmap(file, dtype=dtype, mode="w+", shape=A.shape, order=order)
    created[...] = A
    created.flush()
    mapped = np.memmap(file, dtype=dtype, mode=mode, shape=A.shape, order=order)
    rows = Rows(mapped, by)
    assert rows.copied == ((order == "C") != (by == "rows"))
    check_products(rows, A.astype(np.float64), by)
    if mode == "r+":
        mapped[0, 0] = 1000.0
        shown = rows.dots(np.eye(rows.width, 1))[0, 0] == 1000
        assert shown != rows.copied


def test_memory_mapped_sparse(tmp_path):
    A = sp.csr_array(dense())
    reference = A.toarray()
    for part in ("data", "indices", "indptr"):
        file = tmp_path / f"{part}.npy"
        np.save(file, getattr(A, part))
        setattr(A, part, np.load(file, mmap_mode="r"))
    rows = Rows(A)
    assert not rows.copied
    check_products(rows, reference, "rows")


@by_both
@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (6, 1), (300, 2), (2, 300)])
def test_thin_matrices(shape, by):
    A = np.random.default_rng(0).standard_normal(shape)
    for make in (np.ascontiguousarray, np.asfortranarray, sp.csr_array, sp.csc_array):
        check_products(Rows(make(A), by), A, by)
    if 1 in shape:  # both directions are contiguous
        assert not Rows(A, by).copied


@by_both
def test_matrix_without_entries(by):
    for A in (np.zeros((3, 4)), sp.csr_array((3, 4)), sp.csc_array((3, 4)), sp.coo_array((3, 4))):
        check_products(Rows(A, by), np.zeros((3, 4)), by)
    assert Rows(sp.csr_array((3, 4)), by).nnz == 0


@settings(deadline=None, max_examples=60)
@given(
    n=st.integers(1, 12),
    d=st.integers(1, 12),
    seed=st.integers(0, 1000),
    make=st.sampled_from([sp.csr_array, sp.csc_array, sp.coo_array, np.asfortranarray, np.ascontiguousarray]),
    dtype=st.sampled_from([np.float32, np.float64]),
    by=st.sampled_from(BY),
)
def test_products_of_random_matrices(n, d, seed, make, dtype, by):
    rng = np.random.default_rng(seed)
    A = (rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.5)).astype(dtype)
    check_products(Rows(make(A), by), A.astype(np.float64), by)


# --- sparse matrices that are valid but not canonical -----------------------------------------------------------------


def with_duplicates(make=sp.csr_array):
    """[[3, 0, 2], [0, 5, 0]] with 3 = 1 + 2 stored twice and the first row out of order."""
    parts = np.array([2.0, 1.0, 2.0, 5.0]), np.array([2, 0, 0, 1]), np.array([0, 3, 4])
    A = sp.csr_array(parts, shape=(2, 3))
    return A if make is sp.csr_array else sp.csc_array(parts, shape=(3, 2))


@by_both
@pytest.mark.parametrize("make", [sp.csr_array, sp.csc_array])
def test_duplicates_are_summed_before_norms_are_taken(make, by):
    A = with_duplicates(make)
    reference = np.array([[3.0, 0, 2], [0, 5, 0]])
    reference = reference if make is sp.csr_array else reference.T
    indices, data = A.indices.copy(), A.data.copy()
    rows = Rows(A, by)
    check_products(rows, reference, by)
    assert rows.copied
    assert "unsorted or duplicate entries" in rows.storage or "converted to" in rows.storage
    assert rows.nnz == 3
    np.testing.assert_array_equal(A.indices, indices)  # the caller's matrix is as it was
    np.testing.assert_array_equal(A.data, data)


def backwards(A):
    """The same CSR matrix with the entries of every row in the opposite order."""
    A = sp.csr_array(A)
    back = np.concatenate([np.arange(e, s, -1) - 1 for s, e in zip(A.indptr, A.indptr[1:], strict=False)])
    return sp.csr_array((A.data[back], A.indices[back], A.indptr), shape=A.shape)


def test_entries_in_any_order_are_used_in_place():
    A = backwards(dense())
    assert not A.has_sorted_indices
    rows = Rows(A)
    assert not rows.copied
    assert rows.arrays[0] is A.data
    check_products(rows, dense(), "rows")
    h = np.linspace(0.5, 2, rows.count)
    np.testing.assert_allclose(rows.gram(h), dense().T @ (h[:, None] * dense()), rtol=1e-12, atol=1e-12)


def test_unordered_rows_that_are_mostly_empty_space_are_sorted():
    """Marking every column would cost more than sorting the few entries."""
    A = sp.csr_array((np.array([2.0, 1.0]), np.array([900, 3]), np.array([0, 2])), shape=(1, 1000))
    rows = Rows(A)
    assert rows.copied
    check_products(rows, A.toarray(), "rows")


@by_both
def test_duplicates_in_coo(by):
    A = sp.coo_array((np.array([1.0, 2.0, 2.0, 5.0]), ([0, 0, 0, 1], [0, 0, 2, 1])), shape=(2, 3))
    check_products(Rows(A, by), np.array([[3.0, 0, 2], [0, 5, 0]]), by)


@by_both
def test_flags_of_scipy_are_not_trusted(by):
    """A matrix whose arrays were changed after scipy had found it canonical."""
    A = sp.csr_array(np.array([[1.0, 0, 2.0], [0, 5.0, 0]]))
    assert A.has_canonical_format
    A.indices = np.array([2, 0, 1], np.int32)
    assert A.has_canonical_format  # no longer true
    check_products(Rows(A, by), np.array([[2.0, 0, 1.0], [0, 5.0, 0]]), by)


@by_both
def test_big_endian_values_assigned_to_a_sparse_matrix(by):
    for make, reference in (
        (with_duplicates, [[3.0, 0, 2], [0, 5, 0]]),
        (lambda: sp.csr_array(np.eye(2, 3)), np.eye(2, 3)),
    ):
        A = make()
        A.data = A.data.astype(">f8")
        rows = Rows(A, by)
        check_products(rows, np.array(reference), by)
        assert rows.copied


@by_both
def test_duplicates_of_small_integers_are_summed_as_scipy_does(by):
    A = with_duplicates()
    for dtype in (np.int8, bool):
        A.data = A.data.astype(dtype)
        check_products(Rows(A, by), A.toarray().astype(float), by)


def test_index_arrays_of_two_types_are_converted():
    A = mixed(sp.csr_array(dense()))
    rows = Rows(A)
    assert "index arrays of two types" in rows.storage
    A.indices[...] = 0  # the copy is what counts
    check_products(rows, dense(), "rows")


@by_both
def test_room_behind_the_entries_is_ignored(by):
    A = sp.csr_array(np.array([[1.0, 0, 2.0], [0, 5.0, 0]]))
    A.data = np.append(A.data, [np.nan, 1e300])
    A.indices = np.append(A.indices, [77, -3]).astype(np.int32)
    check_products(Rows(A, by), np.array([[1.0, 0, 2.0], [0, 5.0, 0]]), by)


@by_both
def test_explicit_zeros_are_kept(by):
    A = sp.csr_array(np.ones((3, 4)))
    A.data[::2] = 0
    rows = Rows(A, by)
    assert rows.nnz == 12
    check_products(rows, A.toarray(), by)


# --- broken matrices --------------------------------------------------------------------------------------------------


def broken_parts():
    """(name, what to assign to a valid 4 x 3 CSR matrix (or to the CSC matrix of its transpose), message)."""
    huge = 2**31 - 1
    return {
        "index out of range": (
            dict(indices=np.array([0, 2, 1, 3, 2, 0], np.int32)),
            "index 3 at position 3 is outside 0..2",
        ),
        "index far out of range": (dict(indices=np.full(6, huge, np.int32)), "is outside 0..2"),
        "index beyond 32 bits": (dict(indices=np.full(6, 2**62)), "is outside 0..2"),
        "negative index": (
            dict(indices=np.array([0, 2, 1, -1, 2, 0], np.int32)),
            "index -1 at position 3 is outside 0..2",
        ),
        "very negative index": (dict(indices=np.full(6, -huge, np.int32)), "is outside 0..2"),
        "indptr decreases": (dict(indptr=np.array([0, 4, 2, 5, 6], np.int32)), "indptr decreases at position 2"),
        "indptr does not begin with 0": (dict(indptr=np.array([1, 2, 3, 5, 6], np.int32)), "indptr must begin with 0"),
        "negative indptr": (dict(indptr=np.array([-5, 2, 3, 5, 6], np.int32)), "indptr must begin with 0"),
        "indptr ends below 0": (dict(indptr=np.array([0, 2, 3, 5, -6], np.int32)), "indptr decreases at position 4"),
        "indptr beyond the data": (
            dict(indptr=np.array([0, 2, 3, 5, huge], np.int32)),
            "indptr ends beyond the stored entries",
        ),
        "indptr jumps beyond the data": (dict(indptr=np.array([0, huge, huge, huge, huge], np.int32)), "ends beyond"),
        "indptr too short": (dict(indptr=np.array([0, 2, 6], np.int32)), "indptr has 3 entries, not 5"),
        "indptr too long": (dict(indptr=np.array([0, 2, 3, 5, 6, 6], np.int32)), "indptr has 6 entries, not 5"),
        "indptr empty": (dict(indptr=np.array([], np.int32)), "indptr has 0 entries, not 5"),
        "data too short": (dict(data=np.ones(2)), "data and indices differ in length"),
        "data too long": (dict(data=np.ones(9)), "data and indices differ in length"),
        "data two-dimensional": (dict(data=np.ones((6, 2))), "data and indices differ in length"),
        "indices too short": (dict(indices=np.array([0], np.int32)), "data and indices differ in length"),
        "indices not integers": (dict(indices=np.array([0.0, 2, 1, 0, 2, 0.5])), "one-dimensional arrays of integers"),
        "indptr not integers": (dict(indptr=np.array([0, 2.5, 3, 5, 6])), "one-dimensional arrays of integers"),
        "indices two-dimensional": (dict(indices=np.zeros((6, 1), np.int32)), "one-dimensional arrays of integers"),
    }


@by_both
@pytest.mark.parametrize("wide", [False, True], ids=["int32", "int64"])
@pytest.mark.parametrize("make", [sp.csr_array, sp.csr_matrix, sp.csc_array])
@pytest.mark.parametrize("name", broken_parts())
def test_broken_compressed_matrices_are_refused(name, make, wide, by):
    parts, message = broken_parts()[name]
    shape = (4, 3) if make is not sp.csc_array else (3, 4)
    valid = np.array([0, 2, 1, 0, 2, 0], np.int32), np.array([0, 2, 3, 5, 6], np.int32)
    A = make((np.ones(6), *valid), shape=shape)
    if wide:
        int64(A)
        parts = {k: v.astype(np.int64) if v.dtype == np.int32 else v for k, v in parts.items()}
    for part, array in parts.items():
        setattr(A, part, array)
    kind = "CSC" if make is sp.csc_array else "CSR"
    with pytest.raises(ValueError, match=f"^A is not a valid {kind} matrix: .*{message}.*Rebuild it from its entries"):
        Rows(A, by)


def coo_with(row=None, col=None, data=None):
    A = sp.coo_array(np.arange(1.0, 13.0).reshape(4, 3))
    A.row = A.row if row is None else row.astype(np.int32)
    A.col = A.col if col is None else col.astype(np.int32)
    A.data = A.data if data is None else data
    return A


def bsr_with(**parts):
    A = sp.bsr_array(np.arange(16.0).reshape(4, 4), blocksize=(2, 2))
    for part, array in parts.items():
        setattr(A, part, array)
    return A


def lil_with(column):
    A = sp.lil_array(np.eye(4, 3))
    A.rows[0], A.data[0] = [column], [1.0]
    return A


def dia_with_offsets(count):
    A = sp.dia_array(np.eye(50))
    A.offsets = np.arange(count, dtype=np.int32)
    return A


@by_both
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: coo_with(row=np.arange(12) + 10**7), "A is not a valid COO matrix: axis 0 index .* exceeds"),
        (lambda: coo_with(row=np.arange(12) - 10**7), "A is not a valid COO matrix: negative axis 0 index"),
        (lambda: coo_with(col=np.arange(12) + 10**7), "A is not a valid COO matrix: axis 1 index .* exceeds"),
        (lambda: coo_with(col=np.arange(12) - 10**7), "A is not a valid COO matrix: negative axis 1 index"),
        (lambda: coo_with(data=np.ones(3)), "A is not a valid COO matrix: .*same length"),
        (lambda: bsr_with(indptr=np.array([0, 10**8, 10**8])), "A is not a valid BSR matrix: indptr ends beyond"),
        (lambda: bsr_with(indptr=np.array([10**8, 10**8, 10**8])), "A is not a valid BSR matrix: indptr must begin"),
        (lambda: bsr_with(indices=np.array([0, 1, 0, 10**8])), "A is not a valid BSR matrix: index 100000000"),
        (lambda: bsr_with(indices=np.array([0, 1, 0, -(10**8)])), "A is not a valid BSR matrix: index -100000000"),
        (lambda: bsr_with(data=np.ones((1, 2, 2))), "A is not a valid BSR matrix: data and indices differ"),
        (lambda: lil_with(10**8), "A is not a valid LIL matrix: axis 1 index 100000000 exceeds"),
        (lambda: lil_with(-(10**8)), "A is not a valid LIL matrix: negative axis 1 index"),
        (lambda: dia_with_offsets(10**6), "A is not a valid DIA matrix: data and offsets differ"),
    ],
)
def test_other_broken_sparse_matrices_are_refused(make, message, by):
    """scipy would read and write outside its arrays while converting these."""
    with pytest.raises(ValueError, match=message):
        Rows(make(), by)


@by_both
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("make", [np.ascontiguousarray, np.asfortranarray, sp.csr_array, sp.csc_array, sp.coo_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nan_and_infinity_are_refused(make, bad, dtype, by):
    for at in ((0, 0), (3, 2), (6, 4)):
        A = dense().astype(dtype)
        A[at] = bad
        with pytest.raises(ValueError, match=r"^A holds NaN or infinity .*remove or impute"):
            Rows(make(A), by)


def test_position_of_the_first_nan():
    A = np.ones((3, 4))
    A[1, 2] = np.nan
    with pytest.raises(ValueError, match="first at stored entry 6"):
        Rows(A)


def test_long_doubles_beyond_the_range_are_refused():
    A = np.full((2, 2), np.longdouble("1e4000")) if np.finfo(np.longdouble).max > 1e308 else np.full((2, 2), np.inf)
    with pytest.raises(ValueError, match=r"^A holds NaN or infinity"):
        Rows(A)


@by_both
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_empty_matrices_are_refused(shape, by):
    for A in (np.zeros(shape), sp.csr_array(shape), sp.csc_array(shape), sp.coo_array(shape)):
        with pytest.raises(
            ValueError, match=r"^A is empty: its shape is .* at least one row and one column are needed"
        ):
            Rows(A, by)


@pytest.mark.parametrize(
    ("A", "dimensions"),
    [
        (np.float64(3.0), 0),
        (np.ones(3), 1),
        ([1.0, 2.0], 1),
        (np.ones((2, 3, 4)), 3),
        (sp.coo_array(np.ones(4)), 1),
        (sp.csr_array(np.ones(4)), 1),
        ("matrix", 0),
    ],
)
def test_other_dimensions_are_refused(A, dimensions):
    with pytest.raises(ValueError, match=rf"^A must be two-dimensional .*it has {dimensions} dimension\(s\)"):
        Rows(A)


def complex_csr():
    return sp.csr_array(np.ones((2, 2)) * 1j)


def object_csr():
    A = sp.csr_array(np.ones((2, 2)))
    A.data = np.array([1, "a", None, 2.0], dtype=object)
    return A


@by_both
@pytest.mark.parametrize(
    "make",
    [
        lambda: np.array([["1", "2"], ["3", "4"]]),
        lambda: np.array([[1, "a"], [None, 2]], dtype=object),
        lambda: np.array([[1.0, 2.0]], dtype=object),
        lambda: np.ones((2, 2), complex),
        lambda: np.array([["2020-01-01"]], dtype="datetime64[D]"),
        lambda: np.zeros((2, 2), dtype=[("x", float)]),
        lambda: [[1.0, 2.0], [3.0]],
        lambda: None,
        complex_csr,
        object_csr,
    ],
    ids=[
        "strings",
        "objects",
        "numbers as objects",
        "complex",
        "dates",
        "records",
        "ragged",
        "None",
        "sparse complex",
        "sparse objects",
    ],
)
def test_what_is_not_a_matrix_of_real_numbers_is_refused(make, by):
    with pytest.raises(TypeError, match=r"^A must (hold real numbers|be a (numerical matrix|matrix of numbers))"):
        Rows(make(), by)


@by_both
def test_masked_entries_are_refused(by):
    A = np.ma.masked_array(np.ones((2, 3)), mask=[[0, 1, 0], [0, 0, 0]])
    with pytest.raises(ValueError, match=r"^A has masked entries; fill or remove them"):
        Rows(A, by)


def test_errors_use_the_given_name():
    with pytest.raises(ValueError, match=r"^X is empty"):
        Rows(np.zeros((0, 2)), argument="X")
    with pytest.raises(TypeError, match=r"^X must hold real numbers"):
        Rows(np.ones((2, 2), complex), argument="X")
    broken = sp.csr_array(np.ones((2, 2)))
    broken.indptr = np.array([0, 1], np.int32)
    with pytest.raises(ValueError, match=r"^X is not a valid CSR matrix"):
        Rows(broken, argument="X")


@by_both
@pytest.mark.parametrize("make", [np.ascontiguousarray, sp.csr_array])
def test_products_refuse_wrong_shapes(make, by):
    rows = Rows(make(dense()), by)
    n, m = rows.count, rows.width
    for wrong in (np.ones((m + 1, 2)), np.ones((m - 1, 2)), np.ones((m, 2, 2)), np.ones((0, 2))):
        with pytest.raises((TypeError, ValueError)):
            rows.dots(wrong)
    for wrong in (np.ones((n + 1, 2)), np.ones((n - 1, 2)), np.ones((n, 2, 2)), np.ones((0, 2))):
        with pytest.raises((TypeError, ValueError)):
            rows.combine(wrong)
    for wrong in (np.ones(m + 1), np.ones(m - 1), np.ones((m, 1)), np.ones(0)):
        with pytest.raises((TypeError, ValueError)):
            rows.norms2(wrong)
    # vectors without an axis of outputs, and other types
    for operation, length in ((rows.dots, m), (rows.combine, n)):
        with pytest.raises((IndexError, TypeError, ValueError)):
            operation(np.ones(length))
        with pytest.raises((TypeError, ValueError)):
            operation(np.full((length, 1), "a"))
    check_products(rows, dense(), by)  # still in order


@by_both
@pytest.mark.parametrize("storage", [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_array, np.float32])
@pytest.mark.parametrize("width", [3, 200])
def test_what_the_norms_do_not_tell_is_looked_for(width, storage, by):
    """Norms stand for the entries: they are right, and hide neither what is not finite nor what is extreme."""
    A = np.random.default_rng(0).standard_normal((width, width))
    np.testing.assert_allclose(Rows(storage(A), by).norms2(), np.square(A).sum(1 if by == "rows" else 0), rtol=1e-6)
    np.testing.assert_array_equal(Rows(storage(0 * A), by).norms2(), 0.0)
    for wrong in (np.nan, np.inf, -np.inf):
        B = A.copy()
        B[1, 2] = wrong
        with pytest.raises(ValueError, match="NaN or infinity"):
            Rows(storage(B), by)
    if storage is not np.float32:
        Rows(storage(1e39 * A / np.abs(A).max()), by)
        for factor in (1e45, 1e-45):
            with pytest.raises(ValueError, match="leave the range"):
                Rows(storage(factor * A), by)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("outputs", [1, 2, 3])
def test_dense_rows_of_any_length(dtype, outputs):
    """Vectors of entries, and what they leave over."""
    rng = np.random.default_rng(0)
    for d in [*range(1, 72), 255, 1000]:
        A = rng.standard_normal((5, d)).astype(dtype)
        wide, rows = A.astype(np.float64), Rows(A, "rows")
        w, y = rng.standard_normal((d, outputs)), rng.standard_normal((5, outputs))
        for threads in (1, 3):
            np.testing.assert_allclose(rows.dots(w, threads), wide @ w, rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(rows.combine(y, threads), wide.T @ y, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(rows.norms2(), (wide**2).sum(1), rtol=1e-13)


def test_products_of_long_dense_rows_do_not_depend_on_threads():
    rng = np.random.default_rng(1)
    A = rng.standard_normal((40, 30_000))
    rows, w, y = Rows(A, "rows"), rng.standard_normal((30_000, 1)), rng.standard_normal((40, 1))
    for threads in (2, 7):
        np.testing.assert_array_equal(rows.dots(w, threads), rows.dots(w, 1))
        np.testing.assert_allclose(rows.combine(y, threads), A.T @ y, rtol=1e-10, atol=1e-12)
