"""What users pass as X: masked arrays, sparse matrices and frames become what they mean, or are refused."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

Array = np.ndarray

# How pandas, PyArrow and polars name the dtypes of numbers, in lower case.
_NUMBERS = re.compile(r"(u?int\d+|float\d*|half_?float|double|bool(ean)?|decimal\S*|null)([\[(].*)?")
_FLOAT32 = ("float32", "float[pyarrow]")
# And what the other names begin with.
_CONTENTS = {
    "categor": "categories",
    "enum": "categories",
    "dictionary": "categories",
    "datetime": "dates",
    "timestamp": "dates",
    "date": "dates",
    "timedelta": "time spans",
    "duration": "time spans",
    "time": "times of day",
    "period": "periods",
    "interval": "intervals",
    "str": "text",
    "large_string": "text",
    "utf8": "text",
    "complex": "complex numbers",
}
# Columns that a message names.
_MOST_NAMED = 100


def unmasked(X: Any) -> Any:
    """Return a masked array, or a list of masked rows, with NaN where the mask hides something; others as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag.data.inputs import unmasked
    >>> unmasked(np.ma.array([[1, -9999]], mask=[[False, True]]))
    array([[ 1., nan]])
    """
    if isinstance(X, list | tuple) and any(isinstance(row, np.ma.MaskedArray) for row in X):
        X = np.ma.array(X)
    if not isinstance(X, np.ma.MaskedArray):
        return X
    if not np.ma.is_masked(X):
        return X.data
    return np.ma.filled(X if X.dtype.kind in "fc" else X.astype(np.float64), np.nan)


def check_sparse(X: Any) -> Any:
    """Return a sparse matrix whose indices all lie inside it; raise ValueError for any other.

    Parameters
    ----------
    X : object
        Sparse matrices and arrays of SciPy are checked, without a copy in the formats csr, csc, bsr and coo; everything
        else is returned as it is.
    """
    if not sparse.issparse(X) or X.ndim != 2:
        return X
    if X.format in ("lil", "dok"):
        X = X.tocsr()
    if X.format in ("csr", "csc", "bsr"):
        _check_compressed(X)
    elif X.format == "coo":
        for axis, indices in enumerate((X.row, X.col)):
            _check_range(indices, X.shape[axis], ("row", "column")[axis])
    return X


def _check_compressed(X: Any) -> None:
    rows, columns = X.shape
    if X.format == "bsr":
        rows, columns = rows // X.blocksize[0], columns // X.blocksize[1]
    long, short = (columns, rows) if X.format == "csc" else (rows, columns)
    indptr, indices = X.indptr, X.indices
    whole = indptr.dtype.kind in "iu" and indices.dtype.kind in "iu" and indptr.shape == (long + 1,)
    if not whole or indptr[0] != 0 or indptr[-1] > min(len(indices), len(X.data)) or (indptr[1:] < indptr[:-1]).any():
        raise ValueError(
            f"X is a sparse {X.format} matrix of shape {X.shape} whose indptr is broken: it must have {long + 1} "
            "integers that start at 0, never fall and end at the number of entries; build X again, such as with "
            "scipy.sparse.csr_array((data, (rows, columns)), shape=shape)."
        )
    what = "row" if X.format == "csc" else "column"
    _check_range(indices[: indptr[-1]], short, what if X.format != "bsr" else "block column")


def _check_range(indices: Array, size: int, what: str) -> None:
    if len(indices) and (indices.min() < 0 or indices.max() >= size):
        wrong = int(indices.min()) if indices.min() < 0 else int(indices.max())
        raise ValueError(
            f"X is a sparse matrix with {what} index {wrong}, which is not in 0 to {size - 1}; build X again with "
            "indices inside its shape."
        )


def frame_values(X: Any) -> Array | None:
    """Return the numbers of a frame, NaN where a value is missing.

    Parameters
    ----------
    X : object
        A frame of pandas or polars, a table of PyArrow, or of a library that looks like them. Its columns hold numbers
        or truth values, as NumPy, pandas or PyArrow store them, or Python objects that are numbers.

    Returns
    -------
    ndarray of shape (n_samples, n_features) or None
        float32 if all columns are, float64 otherwise. None if ``X`` is no frame, or one that scikit-learn reads itself.

    Raises
    ------
    ValueError
        Names that come twice, and columns that hold something other than numbers; all of them are named.
    """
    if type(X).__name__ == "LazyFrame":
        raise ValueError("X is a lazy frame, which holds no numbers yet; pass X.collect().")
    if hasattr(X, "column_names") and hasattr(X, "itercolumns"):  # a table of PyArrow
        X = _ArrowFrame(X)
    if not all(hasattr(X, name) for name in ("shape", "columns", "dtypes")) or hasattr(X, "dask"):
        return None
    twice = [name for name, times in Counter(X.columns).items() if times > 1]
    if twice:
        raise ValueError(f"X has {_listed(map(repr, twice))} more than once among its columns; rename or drop them.")
    dtypes = list(X.dtypes)
    if hasattr(X, "iloc") and all(_is_plain(dtype) for dtype in dtypes):
        return None
    foreign = [
        f"{name!r} ({content})" for name, column in _columns(X) if (content := column_content(column)) is not None
    ]
    if foreign:
        raise ValueError(
            f"X has columns that hold no numbers: {_listed(foreign)}; drop them, or turn them into numbers (one column "
            "for each category or word, seconds for dates and time spans)."
        )
    single = all(str(dtype).lower() in _FLOAT32 for dtype in dtypes)
    out = np.empty(X.shape, np.float32 if single else np.float64, order="F")
    for j, (_, column) in enumerate(_columns(X)):
        out[:, j] = _floats(column)
    return out


class _ArrowColumn:
    """A column of a table of PyArrow under the names that frames use."""

    def __init__(self, values: Any) -> None:
        self.dtype, self._values = str(values.type), values

    def to_numpy(self) -> Array:
        """Return numbers, or objects where some are missing."""
        if self._values.null_count == 0 and not self.dtype.startswith(("decimal", "null")):
            return np.asarray(self._values.to_numpy())
        return np.array(self._values.to_pylist(), dtype=object)


class _ArrowFrame:
    """A table of PyArrow under the names that frames use."""

    def __init__(self, table: Any) -> None:
        self.shape, self.columns = (table.num_rows, table.num_columns), list(table.column_names)
        self._columns = [_ArrowColumn(column) for column in table.itercolumns()]
        self.dtypes = ["float32" if column.dtype == "float" else column.dtype for column in self._columns]

    def __getitem__(self, name: str) -> _ArrowColumn:
        return self._columns[self.columns.index(name)]


def _columns(X: Any) -> Iterator[tuple[Any, Any]]:
    for j, name in enumerate(X.columns):
        yield name, X.iloc[:, j] if hasattr(X, "iloc") else X[name]


def _is_plain(dtype: Any) -> bool:
    """Say whether a column of pandas holds numbers as NumPy does, or sparse ones, which scikit-learn keeps sparse."""
    plain = isinstance(dtype, np.dtype) or (str(dtype).startswith("Sparse") and dtype.fill_value == 0)
    return plain and dtype.kind in "biuf"


def column_content(column: Any) -> str | None:
    """Return what a column of a frame holds, None for numbers and truth values."""
    dtype = column.dtype
    name = str(dtype).lower()
    if name.startswith("sparse["):
        name = name.removeprefix("sparse[")
    if _NUMBERS.fullmatch(name.split(",")[0]) or _NUMBERS.fullmatch(name):
        return None
    if name.startswith("object"):
        return next((_word(value) for value in column if not _is_number(value)), None)
    return next((content for start, content in _CONTENTS.items() if name.startswith(start)), str(dtype))


def _is_number(value: Any) -> bool:
    return (
        value is None or isinstance(value, Real | Decimal | np.bool_) or type(value).__name__ in ("NAType", "NaTType")
    )


def _word(value: Any) -> str:
    name = type(value).__name__
    return next((content for start, content in _CONTENTS.items() if name.lower().startswith(start)), f"{name} objects")


def _floats(column: Any) -> Array:
    if hasattr(column, "isna"):  # pandas: its missing values are no numbers, and float() refuses them
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    values = column.to_numpy()
    if values.dtype != object:
        return values
    return np.array([np.nan if value is None else float(value) for value in values])


def _listed(words: Any) -> str:
    words = list(words)
    more = f" and {len(words) - _MOST_NAMED} more" if len(words) > _MOST_NAMED else ""
    return ", ".join(words[:_MOST_NAMED]) + more
