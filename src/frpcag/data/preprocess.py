"""Centring and scaling of the features before the solve, and back to the units of X after it."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array, validate_data

from frpcag.data.inputs import check_sparse, frame_values, unmasked

Array = np.ndarray

# Entries converted to float64 at a time: 8 MiB of scratch, whatever the size of X.
_BLOCK_ENTRIES = 1 << 20


def validate_matrix(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Return ``X`` as a float array or CSR matrix, NaN allowed, for a scikit-learn estimator.

    Parameters
    ----------
    estimator : BaseEstimator
        Whose features are noted (``reset=True``, in fit) or compared with.
    X : array-like, masked array, frame or sparse matrix of shape (n_samples, n_features)
        Finite numbers or NaN; every row, and in fit every column, has something observed. What a mask hides and what a
        frame calls missing is NaN.
    reset : bool
        True in fit.

    Returns
    -------
    ndarray or csr_matrix of shape (n_samples, n_features)
        float32 where ``X`` is float32, float64 otherwise.
    """
    if hasattr(X, "detach"):  # a tensor: its dtype is not NumPy's, and float32 would become float64
        X = X.detach().cpu().numpy()
    if type(X).__name__ == "AnnData":
        raise ValueError("X is an AnnData object; pass it to frpcag.anndata.denoise or cluster, or pass its X.")
    X = check_sparse(unmasked(X))
    values = frame_values(X)
    if values is None and isinstance(getattr(X, "shape", None), tuple) and reset:
        check_shape(estimator, X.shape, getattr(X, "dtype", None))
    rules: dict[str, Any] = {
        "accept_sparse": "csr",
        "dtype": [np.float64, np.float32],
        "ensure_all_finite": False,
        "ensure_min_samples": 2 if reset else 1,
    }
    with np.errstate(over="ignore", invalid="ignore"):  # sums of finite entries may leave the range
        if values is None:
            X = validate_data(estimator, X, reset=reset, **rules)
        else:
            validate_data(estimator, X, reset=reset, skip_check_array=True)  # names and number of the features
            X = check_array(values, estimator=estimator, input_name="X", **rules)
        if np.isfinite(X.sum()):  # one pass, no array of flags: the usual case
            return X
    entries = X.data if sparse.issparse(X) else X
    infinite, names = np.isinf(entries), getattr(estimator, "feature_names_in_", None)
    column = ""
    if names is not None and infinite.any():
        first = X.indices[infinite] if sparse.issparse(X) else np.argwhere(infinite)[:, 1]
        column = repr(str(names[int(first[0])]))
    refuse_infinite(int(infinite.sum()), column)
    missing = np.isnan(X.toarray() if sparse.issparse(X) else X)
    for what, axis in (("row", 1), ("column", 0)):
        if reset or what == "row":
            names = getattr(estimator, "feature_names_in_", None) if what == "column" else None
            refuse_lost(what, np.flatnonzero(missing.all(axis=axis)), names=names)
    return X


def check_shape(estimator: Any, shape: tuple[int, ...], dtype: Any = None) -> None:
    """Raise ValueError unless a matrix of this shape and dtype can be fitted, before any of its entries is read."""
    if len(shape) != 2:
        raise ValueError(
            f"X has shape {tuple(shape)} but must have two dimensions (n_samples, n_features). Reshape your data: "
            "X.reshape(-1, 1) for a single feature, X.reshape(1, -1) for a single sample."
        )
    kind = getattr(dtype, "kind", "c" if "complex" in str(dtype) else "f")  # PyTorch's have none
    if kind in "cUSmM":
        why = " (Complex data not supported)" if kind == "c" else ""
        raise ValueError(
            f"X has dtype {dtype} but must hold real numbers{why}; convert it, such as by X.astype(float)."
        )
    if shape[0] < 2 or shape[1] < 1:  # in scikit-learn's words
        empty = np.broadcast_to(np.float64(0), shape)
        check_array(empty, ensure_min_samples=2, estimator=estimator)


def refuse_infinite(count: int, column: str = "") -> None:
    """Raise ValueError if any entry is infinite; ``column`` is the name of the column of the first one."""
    if count:
        where = f", the first in column {column}" if column else ""
        raise ValueError(f"X has {count} infinite entries{where}; replace them or mark them as missing with NaN.")


def refuse_lost(what: str, lost: Any, *, names: Any = None) -> None:
    """Raise ValueError if any row or column has no observed entry; ``names`` are those of the columns."""
    if len(lost):
        which = int(lost[0]) if names is None else repr(str(names[int(lost[0])]))
        raise ValueError(f"{what} {which} of X has no observed entry (NaN throughout); drop it.")


def check_flags(**flags: Any) -> None:
    """Raise ValueError for a switch that is neither True nor False, such as the word "no", which counts as true."""
    for name, value in flags.items():
        if not isinstance(value, (bool, np.bool_)):
            raise ValueError(f"{name}={value!r} must be True or False.")


def center_and_scale(X: Any, *, center: bool, scale: bool) -> tuple[Array, Array, Array]:
    """Return a centred and scaled copy of ``X`` with the mean and standard deviation that undo it.

    Parameters
    ----------
    X : array-like or scipy sparse matrix of shape (n_samples, n_features)
        The data, left untouched. A sparse matrix is made dense. NaN is missing: it stays NaN, and mean and standard
        deviation are those of the observed entries.
    center : bool
        Subtract the mean of each feature.
    scale : bool
        Divide each feature by its standard deviation about its mean, also when ``center`` is False.
        A constant feature is divided by 1.

    Returns
    -------
    Xc : ndarray of shape (n_samples, n_features)
        A new C-ordered array, float32 where ``X`` is float32 and float64 otherwise.
    mean : ndarray of shape (n_features,)
        What was subtracted, float64; zeros without ``center``.
    std : ndarray of shape (n_features,)
        What was divided by, float64; ones without ``scale``.

    Notes
    -----
    Sums accumulate in float64 over blocks of rows, so a memory-mapped ``X`` is read block by block and
    the result is the only array of its size that is made.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag.data import center_and_scale
    >>> Xc, mean, std = center_and_scale(np.array([[1.0, 5.0], [3.0, 5.0]]), center=True, scale=True)
    >>> Xc
    array([[-1.,  0.],
           [ 1.,  0.]])
    >>> mean, std
    (array([2., 5.]), array([1., 1.]))
    """
    check_flags(center=center, scale=scale)
    if sparse.issparse(X):
        X = out = X.astype(_float_dtype(X.dtype)).toarray(order="C")
    else:
        X, out = np.asarray(X), None
    if X.ndim != 2 or X.shape[0] == 0:
        raise ValueError(
            f"X has shape {X.shape}; it must have two dimensions (n_samples, n_features) and at least one "
            "sample; reshape it or add samples."
        )
    dtype = _float_dtype(X.dtype)
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused below
        mean, std = column_moments(_ArraySums(X), eps=np.finfo(dtype).eps, center=center, scale=scale)
        if out is None:
            out = np.empty(X.shape, dtype=dtype)
        largest = np.zeros(X.shape[1])
        for rows in _row_blocks(X.shape):
            block = _moved(X[rows], mean, std)
            largest = np.fmax(largest, np.fmax(np.fmax.reduce(block, axis=0), -np.fmin.reduce(block, axis=0)))
            out[rows] = block
    check_range(largest, mean, std, dtype)
    return out, mean, std


class CentredRows:
    """The rows of ``(X - mean) / std``, made when they are asked for: those of :func:`center_and_scale`, bit for bit.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_samples, n_features)
        The data, float32 or float64.
    mean, std : ndarray of shape (n_features,)
        As returned by :func:`center_and_scale`.
    """

    def __init__(self, X: Any, mean: Array, std: Array) -> None:
        self._X, self._mean, self._std = X, mean, std
        self.shape, self.dtype = X.shape, X.dtype

    def __getitem__(self, rows: slice) -> Array:
        given = self._X[rows]
        dense = given.toarray() if sparse.issparse(given) else given
        with np.errstate(invalid="ignore"):  # a damaged file may hold NaN of the kind that signals
            return _moved(dense, self._mean, self._std).astype(self.dtype)

    def whole(self) -> Array:
        """Return all rows as one array."""
        out = np.empty(self.shape, dtype=self.dtype)
        for rows in _row_blocks(self.shape):
            out[rows] = self[rows]
        return out


class ColumnSums(Protocol):
    """What the moments of the columns of a matrix are made of; NaN is missing."""

    def lowest(self) -> Array:
        """Return the least entry of each column, float64."""

    def deviations(self, reference: Array) -> tuple[Array, Array]:
        """Return the sums of ``X - reference`` over the rows, and how many entries are observed."""

    def squares(self, mean: Array) -> Array:
        """Return the sums of ``(X - mean)**2`` over the rows."""


def column_moments(sums: ColumnSums, *, eps: float, center: bool, scale: bool) -> tuple[Array, Array]:
    """Return what to subtract from each column and what to divide it by, float64.

    Parameters
    ----------
    sums : ColumnSums
        Of the matrix; an engine supplies them for its kind of data.
    eps : float
        Relative rounding of its dtype.
    center, scale : bool
        As in :func:`center_and_scale`.
    """
    # Deviations from an entry of the column: a constant column then gets its value as mean, without rounding.
    lowest = sums.lowest()
    mean, std = np.zeros(len(lowest)), np.ones(len(lowest))
    if not (center or scale):
        return mean, std
    total, count = sums.deviations(lowest)
    about = lowest + total / np.maximum(count, 1)
    if scale:
        std = np.sqrt(sums.squares(about) / np.maximum(count, 1))
        # A spread below the rounding of the values is noise; dividing by it would blow that noise up.
        std[std <= eps * np.abs(about)] = 1.0
    return (about if center else mean), std


def check_range(largest: Array, mean: Array, std: Array, dtype: np.dtype) -> None:
    """Raise ValueError where entries lie at the end of the range of their dtype.

    Parameters
    ----------
    largest : ndarray of shape (n_features,)
        Largest centred and scaled magnitude of each column.
    mean, std : ndarray of shape (n_features,)
        What was subtracted and divided by.
    dtype : dtype
        Of the data.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        reach = float(np.maximum(largest, largest * std + np.abs(mean)).max())
    # Sums of a few entries, such as X - U, must stay in the range of the dtype; an infinite std gives NaN here.
    if not reach < float(np.finfo(dtype).max) / 16:
        raise ValueError(f"X has entries at the end of the range of {dtype} ({reach:.3g}); divide X by a constant.")


def restore(U: Array, mean: Array, std: Array) -> Array:
    """Bring ``U`` back to the units of the data, in place: the inverse of :func:`center_and_scale`.

    Parameters
    ----------
    U : ndarray of shape (n_samples, n_features)
        A floating-point array in centred and scaled units; overwritten.
    mean, std : ndarray of shape (n_features,)
        As returned by :func:`center_and_scale`.

    Returns
    -------
    ndarray of shape (n_samples, n_features)
        ``U`` itself.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag.data import restore
    >>> restore(np.array([[-1.0, 0.0], [1.0, 0.0]]), mean=np.array([2.0, 5.0]), std=np.ones(2))
    array([[1., 5.],
           [3., 5.]])
    """
    if U.dtype.kind != "f":
        raise ValueError(
            f"U has dtype {U.dtype}, which cannot hold restored values; pass a float array, such as U.astype(float)."
        )
    for rows in _row_blocks(U.shape):
        U[rows] = U[rows] * std + mean
    return U


class _ArraySums:
    """Sums over row blocks of an array."""

    def __init__(self, X: Array) -> None:
        self.X = X

    def lowest(self) -> Array:
        lowest = np.full(self.X.shape[1], np.inf)
        for rows in _row_blocks(self.X.shape):
            lowest = np.fmin(lowest, np.fmin.reduce(self.X[rows], axis=0))
        return np.where(np.isfinite(lowest), lowest, 0.0)

    def deviations(self, reference: Array) -> tuple[Array, Array]:
        total, count = np.zeros(len(reference)), np.zeros(len(reference))
        for rows in _row_blocks(self.X.shape):
            values = self.X[rows] - reference
            sums = values.sum(axis=0)
            if np.isfinite(sums).all():  # nothing is missing: the usual case
                total += sums
                count += len(values)
            else:
                total += np.nansum(values, axis=0)
                count += len(values) - np.isnan(values).sum(axis=0)
        return total, count

    def squares(self, mean: Array) -> Array:
        total = np.zeros(len(mean))
        for rows in _row_blocks(self.X.shape):
            total += np.nansum(np.square(self.X[rows] - mean), axis=0)
        return total


def _moved(X: Array, mean: Array, std: Array) -> Array:
    """Return ``(X - mean) / std``, computed in float64."""
    moved = X - mean
    if np.any(std != 1):
        moved /= std
    return moved


def _row_blocks(shape: tuple[int, ...]) -> list[slice]:
    n, p = shape
    step = max(1, _BLOCK_ENTRIES // max(1, p))
    return [slice(start, start + step) for start in range(0, n, step)]


def _float_dtype(dtype: np.dtype) -> np.dtype:
    return np.dtype(np.float32 if dtype == np.float32 else np.float64)
