"""svmlight text: what is read, what is refused and why, whatever the blocks, the compression and the locale."""

import bz2
import gzip
import io
import itertools
import locale
import lzma
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from coordwise.datasets import read_svmlight
from coordwise.kernels import SvmlightParser

ANY = 2**62


def read(text, **options):
    return read_svmlight(io.BytesIO(text), **options)


def parse(text, cuts=(), lowest=0, highest=ANY):
    """Arrays of a text fed in pieces."""
    parser = SvmlightParser(lowest=lowest, highest=highest)
    ends = [0, *sorted(cuts), len(text)]
    for first, last in itertools.pairwise(ends):
        parser.feed(text[first:last])
    return parser.finish()


def test_all_that_a_file_may_hold():
    text = (
        b"# a comment\n"
        b"\n"
        b"+1 1:0.5\t3:-2.25e1  7:1E-3 # a comment\r\n"
        b"   \t \n"
        b"-1 qid:12 2:+4.\n"
        b"2.5 1:0 2:-0.0 3:.5#tail\n"
        b"3\n"
        b"1e2 7:1"
    )
    A, labels = read(text)
    expected = np.zeros((5, 7))
    expected[0, [0, 2, 6]] = 0.5, -22.5, 1e-3
    expected[1, 1], expected[2, 2], expected[4, 6] = 4, 0.5, 1
    np.testing.assert_array_equal(A.toarray(), expected)
    np.testing.assert_array_equal(labels, [1, -1, 2.5, 3, 100])
    assert A.nnz == 6  # explicit zeros are not stored
    assert A.format == "csr"
    assert A.has_canonical_format
    assert A.dtype == np.float64
    assert A.indices.dtype == A.indptr.dtype == np.int32


def test_first_column():
    for text, zero_based, columns in [
        (b"1 1:1 2:2\n", "auto", [0, 1]),
        (b"1 0:1 2:2\n", "auto", [0, 2]),
        (b"1 1:1 2:2\n1 0:0\n", "auto", [1, 2]),  # a zero that is not stored still tells
        (b"1 1:1 2:2\n", True, [1, 2]),
        (b"1 1:1 2:2\n", False, [0, 1]),
    ]:
        A, _ = read(text, zero_based=zero_based)
        assert A.indices.tolist() == columns
        assert A.shape[1] == columns[-1] + 1
    assert read(b"1 5:0\n")[0].shape == (1, 5)
    assert read(b"1\n2\n")[0].shape == (2, 0)


def test_number_of_columns():
    assert read(b"1 3:1\n", n_features=3)[0].shape == (1, 3)
    assert read(b"1 3:1\n", n_features=10)[0].shape == (1, 10)
    assert read(b"1 3:1\n", n_features=4, zero_based=True)[0].shape == (1, 4)
    with pytest.raises(ValueError, match=r"line 1: '3:1' has an index that is too large; at most 2 is allowed"):
        read(b"1 3:1\n", n_features=2)
    with pytest.raises(ValueError, match=r"line 1: '3:1' .* at most 2 is allowed"):
        read(b"1 3:1\n", n_features=3, zero_based=True)
    with pytest.raises(ValueError, match=r"has 4 columns.* n_features=3 is too small"):
        read(b"1 0:1 3:1\n", n_features=3)
    with pytest.raises(ValueError, match="n_features"):
        read(b"1 3:1\n", n_features=0)


def test_wide_indices():
    last = 2**31 - 2
    A, _ = read(b"1 1:1 2:2\n1 %d:3 %d:4\n2 5:6\n" % (last, 2**40))
    assert A.indices.dtype == A.indptr.dtype == np.int64
    assert A.indices.tolist() == [0, 1, last - 1, 2**40 - 1, 4]
    assert A.data.tolist() == [1, 2, 3, 4, 6]
    assert read(b"1 1:1 %d:3\n" % last)[0].indices.dtype == np.int32
    assert read(b"1 000000000000000000000000000007:3\n")[0].shape == (1, 7)


REFUSED = {
    b"abc 1:2": "'abc' as a label is not a number",
    b"1:2 3:4": "'1:2' stands where the label should be",
    b"nan 1:2": "'nan' as a label is not finite",
    b"1,2 1:2": "'1,2' lists several labels",
    b"1e999 1:2": "'1e999' as a label is too large",
    b"1 2": "'2' has no colon",
    b"1 abc": "'abc' has no colon",
    b"1 x:2": "'x:2' has an index that is not a whole number",
    b"1 1.5:2": "not a whole number",
    b"1 :2": "not a whole number",
    b"1 1:2 qid:3": "not a whole number",
    b"1 -3:2": "'-3:2' has a negative index",
    b"1 99999999999999999999999999:2": "too large",
    b"1 9223372036854775807:2": "too large",
    b"1 2:1 2:1": "index 2 comes after 2",
    b"1 3:1 2:1": "index 2 comes after 3",
    b"1 3:0 2:1": "index 2 comes after 3",
    b"1 1:": "'' as a value is not a number",
    b"1 1: 2": "'' as a value is not a number",
    b"1 1:abc": "'abc' as a value is not a number",
    b"1 1:2x": "'2x' as a value",
    b"1 1:1e": "'1e' as a value",
    b"1 1:1e+": "'1e\\+' as a value",
    b"1 1:-": "'-' as a value",
    b"1 1:.": "'.' as a value",
    b"1 1:1.2.3": "'1.2.3' as a value",
    b"1 1:0x1": "'0x1' as a value",
    b"1 1:1,5": "'1,5' as a value",
    b"1 1:NaN": "'NaN' as a value is not finite",
    b"1 1:-Infinity": "'-Infinity' as a value is not finite",
    b"1 1:+inf": "is not finite",
    b"1 1:1e400": "'1e400' as a value is too large for a double",
    b"1 qid:x 1:2": "'qid:x' is not qid: and a whole number",
    b"1 1:\0": r"'\\x00' as a value is not a number; this does not look like a text file",
    b"\x80\xff": r"'\\x80\\xff' as a label .* does not look like a text file",
    b"1 1:2 # \0": "NUL byte",
    b"1 " + b"a" * 1000: r"'a{24}\.\.\.' has no colon",
}


@pytest.mark.parametrize("line", REFUSED, ids=ascii)
def test_refusals_name_the_line_and_the_reason(line):
    for end in (b"\n", b"", b"\r\n", b" \n1 1:2\n"):
        with pytest.raises(ValueError, match=rf"the stream cannot be read as svmlight text: line 3: .*{REFUSED[line]}"):
            read(b"# first\n1 1:2\n" + line + end)


def test_index_zero_in_a_one_based_file():
    with pytest.raises(ValueError, match="line 2: index 0, but indices begin at 1"):
        read(b"1 1:1\n1 0:1\n", zero_based=False)


def test_refusals_of_arguments(tmp_path):
    with pytest.raises(ValueError, match="holds no samples"):
        read(b"")
    with pytest.raises(ValueError, match="holds no samples"):
        read(b"# nothing\n\n")
    with pytest.raises(FileNotFoundError):
        read_svmlight(tmp_path / "none")
    with pytest.raises(TypeError, match="mode 'rb'"):
        read_svmlight(io.StringIO("1 1:2"))
    with pytest.raises(TypeError, match="file must be a path"):
        read_svmlight(3)
    with pytest.raises(ValueError, match="zero_based='maybe'"):
        read(b"1 1:2", zero_based="maybe")
    with pytest.raises(ValueError, match="dtype"):
        read(b"1 1:2", dtype=np.int64)
    with pytest.raises(ValueError, match="too large for dtype=float32"):
        read(b"1 1:1e300", dtype=np.float32)
    assert read(b"1 1:0.1", dtype=np.float32)[0].data[0] == np.float32(0.1)


COMPRESS = {"xz": lzma.compress, "bz2": bz2.compress, "gz": gzip.compress, "plain": bytes}


@pytest.mark.parametrize("how", COMPRESS)
def test_compression_is_told_by_content(how, tmp_path):
    text = b"".join(b"%d 1:%d 3:0.25\n" % (i % 2, i + 1) for i in range(1000))
    packed = COMPRESS[how](text[:5000]) + COMPRESS[how](text[5000:])  # two streams in one file, as parallel tools write
    file = tmp_path / "data.txt"
    file.write_bytes(packed)

    class Slow(io.RawIOBase):
        """A stream that gives little at a time and cannot seek."""

        def __init__(self):
            self.rest = packed

        def read(self, size=-1):
            size = 3 if size < 0 else min(size, 3)
            found, self.rest = self.rest[:size], self.rest[size:]
            return found

    for source in (file, str(file), io.BytesIO(packed), Slow()):
        A, labels = read_svmlight(source)
        assert A.shape == (1000, 3)
        assert A.data[::2].tolist() == list(range(1, 1001))
        assert labels.sum() == 500


@pytest.mark.parametrize("how", ["xz", "bz2", "gz"])
def test_damaged_compression(how, tmp_path):
    rng = np.random.default_rng(0)
    text = "".join(f"1 1:{v!r}\n" for v in rng.standard_normal(5000).tolist()).encode()
    packed = COMPRESS[how](text)
    middle = len(packed) // 2
    for wrong in (packed[:-20], packed[:10], packed[:middle] + b"\0" * 50 + packed[middle + 50 :]):
        (tmp_path / "bad.svm").write_bytes(wrong)
        with pytest.raises(ValueError, match=r"bad\.svm cannot be read.*damaged or cut short"):
            read_svmlight(tmp_path / "bad.svm")


decimal = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda v: f"{v:.30e}"),
    st.integers(-(10**25), 10**25).map(str),
    st.decimals(allow_nan=False, allow_infinity=False).map(str),
    st.from_regex(r"[+-]?([0-9]{1,25}(\.[0-9]{0,25})?|\.[0-9]{1,25})([eE][+-]?[0-9]{1,3})?", fullmatch=True),
)


@settings(deadline=None)
@given(decimal)
@example("9007199254740993")
@example("9007199254740992e22")
@example("1e23")
@example("8.5e22")
@example("2.2250738585072014e-308")
@example("4.9e-324")
@example("2.4703282292062327e-324")  # rounds to zero
@example("1e-999")
@example("1.7976931348623157e308")
@example("1.7976931348623159e308")
@example("0." + "0" * 400 + "1e390")
@example("1" + "0" * 400 + "e-400")
@example("1e99999999999999999999")
@example("1e-99999999999999999999")
@example("0e99999999999999999999")
def test_numbers_are_rounded_once(text):
    expected = float(text)
    if math.isinf(expected):
        with pytest.raises(ValueError, match="too large for a double"):
            parse(f"{text}\n".encode())
        return
    _, _, _, labels, _, _ = parse(f"{text} 1:{text}\n".encode())
    assert labels.tolist() == [expected]
    values = parse(f"1 1:{text}\n".encode())[0]
    assert values.tolist() == [expected] * (expected != 0)


def test_the_locale_does_not_matter():
    before = locale.setlocale(locale.LC_NUMERIC)
    for name in ("de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "German_Germany.1252"):
        try:
            locale.setlocale(locale.LC_NUMERIC, name)
            break
        except locale.Error:
            continue
    else:
        pytest.skip("no locale with a decimal comma is installed")
    try:
        assert parse(b"1.5 1:0.12345678901234567890123 2:1.5\n")[0].tolist() == [0.12345678901234568, 1.5]
    finally:
        locale.setlocale(locale.LC_NUMERIC, before)


@st.composite
def matrices(draw):
    rows = draw(st.integers(1, 8))
    columns = draw(st.integers(1, 6))
    value = st.one_of(st.just(0.0), st.floats(-1e300, 1e300), st.integers(-9, 9).map(float))
    X = draw(st.lists(st.lists(value, min_size=columns, max_size=columns), min_size=rows, max_size=rows))
    y = draw(st.lists(st.floats(-1e6, 1e6), min_size=rows, max_size=rows))
    return np.array(X), np.array(y)


@settings(max_examples=60, deadline=None)
@given(matrices(), st.booleans(), st.booleans())
def test_as_scikit_learn(data, zero_based, comment):
    X, y = data
    file = io.BytesIO()
    dump_svmlight_file(X, y, file, zero_based=zero_based, comment="written" * comment or None)
    for how in (zero_based, "auto"):
        options = dict(n_features=X.shape[1], zero_based=how)
        if how == "auto" and zero_based and not np.any(X[:, 0]):
            continue  # the file does not tell where its columns begin
        A, labels = read(file.getvalue(), **options)
        theirs, their_labels = load_svmlight_file(io.BytesIO(file.getvalue()), **options)
        np.testing.assert_array_equal(A.toarray(), theirs.toarray())
        np.testing.assert_array_equal(labels, their_labels)


@settings(max_examples=60, deadline=None)
@given(matrices(), st.data())
def test_blocks_do_not_matter(data, draws):
    X, y = data
    file = io.BytesIO()
    dump_svmlight_file(X, y, file, zero_based=False, comment="a\nb")
    text = file.getvalue()[: draws.draw(st.sampled_from([None, -1]))]  # with and without the last newline
    cuts = draws.draw(st.lists(st.integers(0, len(text)), max_size=30))
    for whole, pieces in zip(parse(text), parse(text, cuts), strict=True):
        np.testing.assert_array_equal(whole, pieces)
    byte_by_byte = parse(text, range(len(text)))
    np.testing.assert_array_equal(byte_by_byte[0], parse(text)[0])


def test_lines_longer_than_a_block():
    text = b"1 " + b" ".join(b"%d:%d" % (j, j) for j in range(1, 400_000)) + b"\n2 1:1\n"
    A, labels = read(text)
    assert A.shape == (2, 399_999)
    assert A.data[:-1].tolist() == list(range(1, 400_000))
    assert labels.tolist() == [1, 2]


pieces = st.sampled_from(
    [bytes([c]) for c in b"01: \n\r\t\x0b\0\xff#e.-+,"]
    + [b"9" * 20, b"qid:", b"nan", b"inf", b"1 1:1\n", b"1 1:2 3:4.5e-3\n", b"1e308", b"2147483647:1 "]
)


@settings(max_examples=400, deadline=None)
@given(st.one_of(st.binary(max_size=200), st.lists(pieces, max_size=60).map(b"".join)), st.data())
def test_any_bytes_parse_or_are_refused(text, draws):
    cuts = draws.draw(st.lists(st.integers(0, len(text)), max_size=10))
    outcomes = []
    for at in (cuts, (), range(len(text))):
        try:
            values, indices, indptr, labels, smallest, largest = parse(text, at)
        except ValueError as error:
            outcomes.append(str(error))
            continue
        assert len(values) == len(indices) == indptr[-1]
        assert len(indptr) == len(labels) + 1
        assert np.all(np.isfinite(values))
        assert np.all(np.isfinite(labels))
        assert all(np.all(np.diff(indices[a:b]) > 0) for a, b in itertools.pairwise(indptr))
        assert len(indices) == 0 or smallest <= indices.min() <= indices.max() <= largest
        outcomes.append((values.tolist(), indices.tolist(), indptr.tolist(), labels.tolist()))
    assert outcomes[0] == outcomes[1] == outcomes[2]
    assert not isinstance(outcomes[0], str) or outcomes[0].startswith("line ")


def test_mutated_lines():
    rng = np.random.default_rng(0)
    line = np.frombuffer(b"-1 qid:3 1:0.5 7:-2.25e1 12:1E-3 # note\n+1 3:4\n", np.uint8)
    parsed = 0
    for _ in range(4000):
        text = line.copy()
        where = rng.integers(0, len(text), rng.integers(1, 4))
        text[where] = rng.choice(np.frombuffer(b"0159 :.-+e#\n\r\0\xffqidnaf,", np.uint8), len(where))
        try:
            parse(text.tobytes(), [int(rng.integers(0, len(text)))])
            parsed += 1
        except ValueError:
            pass
    assert 400 < parsed < 3600
