"""Centring and scaling of the features before the solve, and back to the units of X after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import validate_data

Array = np.ndarray

# Entries converted to float64 at a time: 8 MiB of scratch, whatever the size of X.
_BLOCK_ENTRIES = 1 << 20


def validate_matrix(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Return ``X`` as a float array or CSR matrix, NaN allowed, for a scikit-learn estimator.

    Parameters
    ----------
    estimator : BaseEstimator
        Whose features are noted (``reset=True``, in fit) or compared with.
    X : array-like, frame or sparse matrix of shape (n_samples, n_features)
        Finite numbers or NaN; every row, and in fit every column, has something observed.
    reset : bool
        True in fit.

    Returns
    -------
    ndarray or csr_matrix of shape (n_samples, n_features)
        float32 where ``X`` is float32, float64 otherwise.
    """
    if hasattr(X, "detach"):  # a tensor: its dtype is not NumPy's, and float32 would become float64
        X = X.detach().cpu().numpy()
    with np.errstate(over="ignore", invalid="ignore"):  # sums of finite entries may leave the range
        X = validate_data(
            estimator,
            X,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_all_finite="allow-nan",
            ensure_min_samples=2 if reset else 1,
            reset=reset,
        )
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isnan(X.sum()):  # one pass, no array of flags: the usual case
            return X
    missing = np.isnan(X.toarray() if sparse.issparse(X) else X)
    for what, axis in (("row", 1), ("column", 0)):
        empty = np.flatnonzero(missing.all(axis=axis))
        if len(empty) and (reset or what == "row"):
            raise ValueError(f"{what} {empty[0]} of X has no observed entry (NaN throughout); drop it.")
    return X


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
        mean, std = _column_moments(X, eps=np.finfo(dtype).eps, with_mean=center or scale, with_std=scale)
    if not center:
        mean = np.zeros(X.shape[1])
    if out is None:
        out = np.empty(X.shape, dtype=dtype)
    largest = np.zeros(X.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        for rows in _row_blocks(X.shape):
            block = (X[rows] - mean) / std
            largest = np.fmax(largest, np.fmax.reduce(np.abs(block), axis=0))
            out[rows] = block
        reach = float(np.maximum(largest, largest * std + np.abs(mean)).max())
    # Sums of a few entries, such as X - U, must stay in the range of the dtype; an infinite std gives NaN here.
    if not reach < float(np.finfo(dtype).max) / 16:
        raise ValueError(f"X has entries at the end of the range of {dtype} ({reach:.3g}); divide X by a constant.")
    return out, mean, std


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


def _column_moments(X: Array, *, eps: float, with_mean: bool, with_std: bool) -> tuple[Array, Array]:
    """Return the float64 mean and standard deviation of each column, in two passes over row blocks."""
    mean, std = np.zeros(X.shape[1]), np.ones(X.shape[1])
    if with_mean:
        # Deviations from the first row: a constant column then gets its value as mean, without rounding.
        first = np.nan_to_num(X[0].astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf)
        mean = first + _column_mean(X, lambda block: block - first)
    if with_std:
        std = np.sqrt(_column_mean(X, lambda block: np.square(block - mean)))
        # A spread below the rounding of the values is noise; dividing by it would blow that noise up.
        std[std <= eps * np.abs(mean)] = 1.0
    return mean, std


def _column_mean(X: Array, function: Callable[[Array], Array]) -> Array:
    """Return the mean of ``function(X)`` over the observed entries of each column."""
    total, count = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for rows in _row_blocks(X.shape):
        values = function(X[rows])
        total += np.nansum(values, axis=0)
        count += len(values) - np.isnan(values).sum(axis=0)
    return total / np.maximum(count, 1)


def _row_blocks(shape: tuple[int, ...]) -> list[slice]:
    n, p = shape
    step = max(1, _BLOCK_ENTRIES // max(1, p))
    return [slice(start, start + step) for start in range(0, n, step)]


def _float_dtype(dtype: np.dtype) -> np.dtype:
    return np.dtype(np.float32 if dtype == np.float32 else np.float64)
