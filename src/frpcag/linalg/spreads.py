"""How far the values of each column spread, without regard to a few wild ones; and whether the columns share a unit."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray

# Columns whose spreads differ by more than this have different units.
FACTOR = 100.0
# Rows and columns that are looked at, evenly spaced: enough for quartiles, and a few milliseconds.
_MOST_ROWS = _MOST_COLUMNS = 500
# With fewer different values a column is a switch or a few rows over and over, and its spread is an accident.
_FEWEST_VALUES = 10


class Spreads(NamedTuple):
    """The widest and the narrowest column that vary."""

    ratio: float
    widest: int
    narrowest: int


def column_spreads(X: Array) -> Array:
    """Return the distance between the 1st and the 99th percentile of each column; zero where half of it is one value.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        NaN is missing.

    Notes
    -----
    A pixel at the edge of an image is black in most images: it is no measure of anything, so it counts as constant.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag.linalg.spreads import column_spreads
    >>> column_spreads(np.column_stack([np.arange(101.0), np.r_[np.zeros(100), 1e9]]))
    array([98.,  0.])
    """
    X = np.sort(np.asarray(X, dtype=np.float64), axis=0)  # NaN last
    n = np.maximum((~np.isnan(X)).sum(axis=0), 1)
    low, quarter, three, high = (
        np.take_along_axis(X, np.round(q * (n - 1)).astype(np.intp)[None], axis=0)[0] for q in (0.01, 0.25, 0.75, 0.99)
    )
    with np.errstate(over="ignore", invalid="ignore"):
        spread = np.where(three > quarter, high - low, 0.0)
    return np.where(np.isfinite(spread), spread, 0.0)


def compare_spreads(X: Any) -> Spreads | None:
    """Return how much the spreads of the columns differ, from some rows and columns; None if they share a unit."""
    rows, columns = (
        np.unique(np.linspace(0, size - 1, min(size, most)).astype(int))
        for size, most in zip(X.shape, (_MOST_ROWS, _MOST_COLUMNS), strict=True)
    )
    some = X[rows]
    some = np.asarray(some.toarray() if hasattr(some, "toarray") else some)[:, columns]
    spread = column_spreads(some)
    n_values = 1 + (np.diff(np.sort(some, axis=0), axis=0) > 0).sum(axis=0)
    moving = np.flatnonzero((spread > 0) & (n_values >= _FEWEST_VALUES))
    if len(moving) < 2:
        return None
    widest, narrowest = moving[spread[moving].argmax()], moving[spread[moving].argmin()]
    ratio = float(spread[widest] / spread[narrowest])
    return Spreads(ratio, int(columns[widest]), int(columns[narrowest])) if ratio > FACTOR else None


def column_units(X: Any) -> Array | None:
    """Return what to divide each column by, so that their spreads compare; None if they share a unit."""
    if compare_spreads(X) is None:
        return None
    rows = np.unique(np.linspace(0, X.shape[0] - 1, min(X.shape[0], _MOST_ROWS)).astype(int))
    spread = column_spreads(np.asarray(X[rows]))
    return np.where(spread > 0, spread, np.inf)
