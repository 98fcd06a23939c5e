"""Cells that one value has overwritten, found cheaply: for what comes after and takes them as missing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from frpcag.cells.feature_graphs import find_shape, grid_weights
from frpcag.cells.repeats import MOST_RATE, Repeat, find_repeats
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
    rule = find_overwriting(X[judged_rows(len(X))], shape=shape)
    marked = rule.mark(X)
    if marked.mean() > MOST_RATE:
        return np.zeros(X.shape, bool)
    marked[:, ~(~np.isnan(X) & ~marked).any(axis=0)] = False
    return marked


@dataclass(frozen=True, eq=False)
class Overwriting:
    """Values that overwrote cells, and the grid that their patches lie on."""

    repeats: list[Repeat]
    W2: sp.csr_array | None

    def mark(self, X: Array) -> Array:
        """Return where they stand in some rows, but for rows of which nothing would be left."""
        marked = np.zeros(X.shape, bool)
        for start in range(0, len(X) if self.repeats else 0, CHUNK):
            rows = slice(start, start + CHUNK)
            given, observed = np.nan_to_num(X[rows]), ~np.isnan(X[rows])
            for one in self.repeats:
                marked[rows] |= one.posterior(given, observed, self.W2) > 0.5
        marked[~(~np.isnan(X) & ~marked).any(axis=1)] = False
        return marked


def judged_rows(n: int) -> Array:
    """Return the rows that show which values overwrote cells, some 2000 of them."""
    return np.unique(np.linspace(0, n - 1, min(n, JUDGED_ROWS)).astype(int))


def find_overwriting(rows: Array, *, shape: tuple[int, int] | None = None) -> Overwriting:
    """Return the values that overwrote cells of some rows; no value where the rows are too few to tell."""
    if len(rows) < LEAST_ROWS:
        return Overwriting([], None)
    seen = ~np.isnan(rows)
    if shape is None:
        shape = find_shape(find_units(rows, seen, one_level=False).apply(rows), seen)
    W2 = None if shape is None else grid_weights(*shape)
    return Overwriting(find_repeats(np.where(seen, rows, 0), seen, W2), W2)
