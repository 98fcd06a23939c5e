"""Cells that one value has overwritten, found cheaply: for what comes after and takes them as missing."""

from __future__ import annotations

import numpy as np

from frpcag.cells.feature_graphs import find_shape, grid_weights
from frpcag.cells.repeats import MOST_RATE, find_repeats
from frpcag.cells.units import find_units

Array = np.ndarray

# Rows on which values are judged, and the fewest that say anything; all rows are then marked, so many at a time.
JUDGED_ROWS, LEAST_ROWS = 2000, 20
CHUNK = 4096


def overwritten_cells(X: Array, *, shape: tuple[int, int] | None = None) -> Array:
    """Return where a value that overwrote cells, here and there or in patches, stands.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        NaN is missing.
    shape : (height, width), optional
        Of the image behind a row; without it a grid is looked for.

    Returns
    -------
    bool ndarray of shape (n_samples, n_features)
        False throughout where nothing was found, where more than can be told from what is normal would be marked, and
        in rows and columns of which nothing would be left.
    """
    n = len(X)
    marked = np.zeros(X.shape, bool)
    if n < LEAST_ROWS:
        return marked
    some = X[np.unique(np.linspace(0, n - 1, min(n, JUDGED_ROWS)).astype(int))]
    seen = ~np.isnan(some)
    if shape is None:
        shape = find_shape(find_units(some, seen, one_level=False).apply(some), seen)
    W2 = None if shape is None else grid_weights(*shape)
    repeats = find_repeats(np.where(seen, some, 0), seen, W2)
    for start in range(0, n if repeats else 0, CHUNK):
        rows = slice(start, start + CHUNK)
        given, observed = np.nan_to_num(X[rows]), ~np.isnan(X[rows])
        for one in repeats:
            marked[rows] |= one.posterior(given, observed, W2) > 0.5
    if marked.mean() > MOST_RATE:
        return np.zeros(X.shape, bool)
    left = ~np.isnan(X) & ~marked
    marked[~left.any(axis=1)] = False
    marked[:, ~left.any(axis=0)] = False
    return marked
