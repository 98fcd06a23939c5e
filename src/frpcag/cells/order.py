"""An order of rows and columns that follows from the data alone; random choices are made in it.

What is drawn for a cell then does not depend on where the cell stands, nor on the unit or sign of its column.
"""

from __future__ import annotations

import numpy as np

Array = np.ndarray

# Of the mean of a column between its ends.
LEAN_DIGITS = 6


def canonical_order(X: Array) -> tuple[Array, Array]:
    """Return an order of the rows and one of the columns, the same for every arrangement of the table.

    Only rows and columns that are alike but for unit and sign of the columns keep the order that they came in.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        NaN is missing. The ranks of a column count, from its ends to its middle; where these tie, its longer end does.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag.cells.order import canonical_order
    >>> X = np.array([[1.0, 5.0], [2.0, 9.0], [4.0, 5.0]])
    >>> rows, columns = canonical_order(X)
    >>> more, others = canonical_order(-X[::-1, ::-1])
    >>> bool((X[rows][:, columns] == X[::-1, ::-1][more][:, others]).all())
    True
    """
    places, lean = np.empty(X.shape, np.int64), np.zeros(X.shape[1])
    for j, column in enumerate(X.T.astype(np.float64)):
        kinds, place = np.unique(column, return_inverse=True)  # NaN is the last kind
        last = len(kinds) - 1 - bool(np.isnan(kinds[-1]))
        places[:, j] = np.where(place > last, 2 * len(X), 2 * place - last)
        if (span := kinds[last] / 2 - kinds[0] / 2) > 0:
            # Which end is the longer one must not hang on rounding.
            lean[j] = round(float(np.nanmean((column / 2 - kinds[0] / 2) / span)) - 0.5, LEAN_DIGITS)
    sides = np.where(np.isnan(X), 0, np.sign(places) * np.sign(lean)).astype(np.int64).astype(np.uint64)
    cells = np.abs(places).astype(np.uint64)
    # Sums modulo 2^64 of mixed bits: the same in every order of what is summed.
    columns = _mixed(cells).sum(axis=0)
    mixed = _mixed(cells ^ columns)
    rows = mixed.sum(axis=1)
    columns = _mixed(cells ^ rows[:, None]).sum(axis=0)
    # Columns without ties hold the same ranks, and tell rows apart only once rows have told them apart.
    finer = _mixed(cells ^ columns).sum(axis=1)
    return np.lexsort((finer, _mixed(mixed + sides).sum(axis=1), rows)), np.lexsort((np.abs(lean), columns))


def _mixed(bits: Array) -> Array:
    """Return numbers of 64 bits in which every bit depends on all bits of the given ones (SplitMix64)."""
    bits = bits + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
