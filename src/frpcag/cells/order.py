"""An order of rows and columns that follows from the data alone; random choices are made in it.

What is drawn for a cell then does not depend on where the cell stands, nor on the unit or sign of its column.
"""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def canonical_order(X: Array) -> tuple[Array, Array]:
    """Return an order of the rows and one of the columns, the same for every arrangement of the table.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        NaN is missing. Only the ranks of a column count, from its ends to its middle.

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
    cells = np.empty(X.shape, np.uint64)
    for j, column in enumerate(X.T):
        kinds, place = np.unique(column, return_inverse=True)  # NaN is the last kind
        last = len(kinds) - 1 - bool(np.isnan(kinds[-1]))
        cells[:, j] = np.where(place > last, 2 * len(X), np.abs(2 * place - last))
    # Sums modulo 2^64 of mixed bits: the same in every order of what is summed.
    columns = _mixed(cells).sum(axis=0)
    rows = _mixed(cells ^ columns).sum(axis=1)
    columns = _mixed(cells ^ rows[:, None]).sum(axis=0)
    return np.argsort(rows, kind="stable"), np.argsort(columns, kind="stable")


def _mixed(bits: Array) -> Array:
    """Return numbers of 64 bits in which every bit depends on all bits of the given ones (SplitMix64)."""
    bits = bits + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
