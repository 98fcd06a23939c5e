"""Rows that are alike to the last bit: they get one label."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np

Array = np.ndarray


def distinct_rows(X: Array) -> tuple[Array, Array]:
    """Return the first row of each kind, and the kind of every row.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        NaN equals NaN.

    Returns
    -------
    first : ndarray of shape (n_distinct,)
        In the order in which they come up.
    kind : ndarray of shape (n,)
        ``X[first][kind]`` is ``X``.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag.labels.distinct import distinct_rows
    >>> distinct_rows(np.array([[1.0], [2.0], [1.0]]))
    (array([0, 1]), array([0, 1, 0]))
    """
    places: dict[bytes, int] = {}
    first: list[int] = []
    kind = np.empty(len(X), np.int64)
    for i, row in enumerate(X):
        # Adding zero makes one zero of the two; every NaN gets the same bits.
        key = blake2b(np.where(np.isnan(row), np.nan, row + 0.0).tobytes(), digest_size=16).digest()
        if (place := places.setdefault(key, len(first))) == len(first):
            first.append(i)
        kind[i] = place
    return np.array(first), kind
