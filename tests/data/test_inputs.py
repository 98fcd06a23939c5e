"""Masked arrays, sparse matrices and frames: what they mean gets into the fit, and what means nothing is refused."""

import datetime
import decimal

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from frpcag import FRPCAG, FRPCAGClustering, RobustGraphImputer
from frpcag.data.preprocess import validate_matrix

N = 12


def validated(X):
    return validate_matrix(FRPCAG(), X, reset=True)


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(N, 4))


@pytest.fixture
def hidden(X):
    hidden = np.zeros(X.shape, bool)
    hidden[[1, 5, 5], [0, 2, 3]] = True
    return hidden


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int64", "int8", "bool"])
def test_what_a_mask_hides_is_missing(X, hidden, dtype):
    values = (10 * X).astype(dtype)
    kept = np.float32 if dtype == "float32" else np.float64
    seen = validated(np.ma.array(np.where(hidden, values.dtype.type(99), values), mask=hidden))
    assert seen.dtype == kept
    assert_array_equal(seen, np.where(hidden, kept(np.nan), values.astype(kept)))


def test_infinities_under_a_mask_are_missing_too(X, hidden):
    assert_array_equal(validated(np.ma.array(np.where(hidden, np.inf, X), mask=hidden)), np.where(hidden, np.nan, X))


def test_a_mask_that_hides_nothing_changes_nothing(X):
    assert_array_equal(validated(np.ma.array(X)), X)
    assert_array_equal(validated(np.ma.array(X, mask=np.zeros(X.shape, bool))), X)


def test_a_list_of_masked_rows_keeps_their_masks(X, hidden):
    rows = [np.ma.array(row, mask=mask) for row, mask in zip(X, hidden, strict=True)]
    assert_array_equal(validated(rows), np.where(hidden, np.nan, X))


def test_the_masked_array_is_left_as_it_was(X, hidden):
    masked = np.ma.array(X.copy(), mask=hidden.copy())
    validated(masked)
    assert_array_equal(masked.data, X)
    assert_array_equal(masked.mask, hidden)


@pytest.mark.parametrize(
    "model", [FRPCAG(tol=0.1), FRPCAGClustering(2, random_state=0), RobustGraphImputer()], ids=repr
)
def test_a_fit_of_a_masked_array_is_that_of_the_array_with_nan(model, X, hidden):
    answers = []
    for data in (np.ma.array(np.where(hidden, -9999.0, X), mask=hidden), np.where(hidden, np.nan, X)):
        model.fit(data)
        answers.append(getattr(model, "estimator_", model).low_rank_)
    assert_array_equal(*answers)


def test_new_rows_may_be_masked(X, hidden):
    model = FRPCAG(tol=0.1).fit(X)
    masked = np.ma.array(np.where(hidden, -9999.0, X), mask=hidden)
    assert_array_equal(model.denoise(masked), model.denoise(np.where(hidden, np.nan, X)))


# Sparse matrices that SciPy lets anybody put together, and kernels would follow out of their arrays.

BLOCKS = np.kron(np.eye(3), np.ones((2, 2)))


def broken(kind, change):
    A = sp.csr_array(BLOCKS).asformat(kind)
    change(A)
    return A


def put(name, position, value):
    def change(A):
        getattr(A, name)[position] = value

    return change


def shorten(A):
    A.indptr = A.indptr[:-1]


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr"])
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (put("indices", 0, 1000), "index 1000, which is not in 0 to"),
        (put("indices", -1, -3), "index -3, which is not in 0 to"),
        (put("indptr", 1, 10**6), "whose indptr is broken"),
        (put("indptr", -1, 10**6), "whose indptr is broken"),
        (put("indptr", 0, 1), "whose indptr is broken"),
        (put("indptr", 1, -4), "whose indptr is broken"),
        (shorten, "whose indptr is broken"),
    ],
)
def test_sparse_matrices_whose_indices_leave_them_are_refused(kind, change, words):
    with pytest.raises(ValueError, match=words):
        FRPCAG().fit(broken(kind, change))


@pytest.mark.parametrize(("name", "words"), [("row", "row index 77"), ("col", "column index 77")])
def test_coordinates_outside_are_refused(name, words):
    A = sp.coo_matrix(BLOCKS)
    getattr(A, name)[0] = 77
    with pytest.raises(ValueError, match=f"{words}, which is not in 0 to 5"):
        FRPCAG().fit(A)


def test_a_list_of_lists_with_an_index_outside_is_refused():
    A = sp.lil_array(BLOCKS)
    A.rows[2] = [3, 40]
    with pytest.raises(ValueError, match="column index 40"):
        FRPCAG().fit(A)


def test_new_sparse_rows_are_checked_too():
    model = FRPCAG(n_neighbors=2, tol=0.1).fit(BLOCKS)
    with pytest.raises(ValueError, match="index 1000"):
        model.transform(broken("csr", put("indices", 0, 1000)))


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo", "lil", "dok", "dia"])
def test_sound_sparse_matrices_come_through_unchanged(kind):
    A = sp.csr_array(BLOCKS).asformat(kind)
    assert_array_equal(validated(A).toarray(), BLOCKS)
    assert_array_equal(A.toarray(), BLOCKS)


def test_unsorted_and_repeated_entries_are_sound():
    A = sp.csr_array((np.ones(3), np.array([1, 0, 0]), np.array([0, 3, 3])), shape=(2, 2))
    A.data[:] = [1.0, 2.0, 3.0]
    assert_array_equal(validated(A).toarray(), [[5, 1], [0, 0]])


# Frames.

pandas, polars = (pytest.importorskip(name, reason=f"{name} is not installed") for name in ("pandas", "polars"))


def spread(count=N):
    """Return numbers with a gap in the third row."""
    return [None if i == 3 else i % 5 for i in range(count)]


def test_missing_values_of_pandas_are_missing(X):
    for dtype in ("Int64", "UInt8", "Float64", "boolean", "Float32"):
        values = [None if v is None else v > 2 if dtype == "boolean" else v for v in spread()]
        frame = pandas.DataFrame(X, columns=list("abcd")).assign(e=pandas.array(values, dtype=dtype))
        expected = np.array([np.nan if v is None else float(v) for v in values])
        assert_array_equal(validated(frame), np.column_stack([X, expected]), err_msg=dtype)


@pytest.mark.parametrize("dtype", ["int64[pyarrow]", "double[pyarrow]", "bool[pyarrow]", "decimal128(9,2)[pyarrow]"])
def test_missing_values_of_pyarrow_are_missing(X, dtype):
    pyarrow = pytest.importorskip("pyarrow", reason="PyArrow is not installed")
    values = [None if v is None else v > 2 if "bool" in dtype else v for v in spread()]
    kind = pandas.ArrowDtype(pyarrow.decimal128(9, 2)) if "decimal" in dtype else dtype
    column = [v if v is None or "decimal" not in dtype else decimal.Decimal(v) for v in values]
    frame = pandas.DataFrame(X, columns=list("abcd")).assign(e=pandas.array(column, dtype=kind))
    expected = np.array([np.nan if v is None else float(v) for v in values])
    assert_array_equal(validated(frame), np.column_stack([X, expected]))


@pytest.mark.parametrize(
    "values",
    [
        spread(),
        [v if v is None else v > 2 for v in spread()],
        [v if v is None else decimal.Decimal(v) for v in spread()],
    ],
    ids=["ints", "truths", "decimals"],
)
def test_objects_that_are_numbers_are_numbers(X, values):
    frame = pandas.DataFrame(X, columns=list("abcd")).assign(e=pandas.Series(values, dtype=object))
    expected = np.array([np.nan if v is None else float(v) for v in values])
    assert_array_equal(validated(frame), np.column_stack([X, expected]))


def test_nulls_of_polars_are_missing(X):
    truths = [None if v is None else v > 2 for v in spread()]
    frame = polars.DataFrame({"a": X[:, 0], "b": spread(), "c": truths, "d": X[:, 1]})
    expected = [np.array([np.nan if v is None else float(v) for v in values]) for values in (spread(), truths)]
    assert_array_equal(validated(frame), np.column_stack([X[:, 0], *expected, X[:, 1]]))


def test_frames_of_float32_stay_float32(X):
    X = X.astype(np.float32)
    assert validated(polars.DataFrame(X)).dtype == np.float32
    assert validated(pandas.DataFrame(X)).dtype == np.float32
    assert validated(pandas.DataFrame(X).astype("Float32")).dtype == np.float32
    assert validated(pandas.DataFrame(X, columns=list("abcd")).assign(more=1.0)).dtype == np.float64


def test_sparse_frames_come_through(X):
    X[X < 0.5] = 0
    for fill in (0.0, np.nan):
        frame = pandas.DataFrame(X).astype(pandas.SparseDtype(float, fill))
        seen = validated(frame)
        assert_array_equal(seen.toarray() if sp.issparse(seen) else seen, X)


PANDAS = {
    "text": lambda: ["x"] * N,
    "categories": lambda: pandas.Categorical(np.arange(N) % 3),
    "dates": lambda: pandas.date_range("2020", periods=N, tz="UTC"),
    "time spans": lambda: pandas.to_timedelta(np.arange(N), "s"),
    "periods": lambda: pandas.period_range("2020", periods=N),
    "list objects": lambda: [[1]] * N,
    "complex numbers": lambda: 1j * np.arange(N),
}
POLARS = {
    "text": lambda: ["x"] * N,
    "categories": lambda: polars.Series(["x"] * N, dtype=polars.Categorical),
    "dates": lambda: [datetime.date(2020, 1, 1)] * N,
    "time spans": lambda: [datetime.timedelta(1)] * N,
    "times of day": lambda: [datetime.time(1)] * N,
    "List(Int64)": lambda: [[1]] * N,
}


@pytest.mark.parametrize(("library", "columns"), [(pandas, PANDAS), (polars, POLARS)], ids=["pandas", "polars"])
def test_columns_without_numbers_are_all_named(X, library, columns):
    made = {f"is {content}": make() for content, make in columns.items()}
    frame = library.DataFrame({"a": X[:, 0], **made, "b": X[:, 1]})
    with pytest.raises(ValueError) as refused:
        FRPCAG().fit(frame)
    message = str(refused.value)
    assert message.count(".") == 1  # one sentence
    assert ", ".join(f"'is {content}' ({content})" for content in columns) in message
    assert "drop them, or turn them into numbers" in message
    assert "'a'" not in message


def test_dates_among_objects_are_named(X):
    dates = pandas.Series([None] + [datetime.date(2020, 1, 1)] * (N - 1), dtype=object)
    with pytest.raises(ValueError, match=r"'when' \(dates\)"):
        validated(pandas.DataFrame(X, columns=list("abcd")).assign(when=dates))


def test_numbers_written_as_text_are_text(X):
    frame = pandas.DataFrame(X, columns=list("abcd")).assign(e=[str(i) for i in range(N)])
    with pytest.raises(ValueError, match=r"'e' \(text\)"):
        validated(frame)


def test_names_that_come_twice_are_all_named(X):
    with pytest.raises(ValueError, match=r"X has 'a', 'b' more than once among its columns; rename or drop them\."):
        FRPCAG().fit(pandas.DataFrame(X, columns=["a", "b", "a", "b"]))


def test_new_rows_in_a_frame_are_checked_alike(X):
    model = FRPCAG(tol=0.1).fit(pandas.DataFrame(X, columns=list("abcd")))
    with pytest.raises(ValueError, match=r"'d' \(text\)"):
        model.transform(pandas.DataFrame(X, columns=list("abcd")).assign(d="x"))
    frame = pandas.DataFrame(X, columns=list("abcd")).assign(d=pandas.array(spread(), dtype="Int64"))
    with_gap = np.column_stack([X[:, :3], [np.nan if v is None else v for v in spread()]])
    # Sums over columns that lie in another order in memory; predictions are made in float32.
    assert_allclose(model.denoise(frame), FRPCAG(tol=0.1).fit(X).denoise(with_gap), rtol=1e-5)


@pytest.mark.parametrize("library", [pandas, polars], ids=["pandas", "polars"])
def test_names_of_features_are_kept_and_compared(X, library):
    gaps = pandas.array(spread(), dtype="Int64") if library is pandas else polars.Series(spread())
    columns = {name: X[:, j] for j, name in enumerate("abc")}
    model = FRPCAG(tol=0.1).fit(library.DataFrame({**columns, "d": gaps}))
    assert list(model.feature_names_in_) == list("abcd")
    assert model.n_features_in_ == 4
    with pytest.raises(ValueError, match="feature names should match"):
        model.transform(library.DataFrame({**columns, "other": gaps}))


def test_a_lazy_frame_asks_to_be_collected(X):
    with pytest.raises(ValueError, match=r"X is a lazy frame.*pass X\.collect\(\)"):
        FRPCAG().fit(polars.DataFrame(X).lazy())
