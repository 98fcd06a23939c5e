"""What the clusterer asks of its inputs: a number of clusters, common units, the range of squares."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from frpcag.cells import MIXED, find_units
from frpcag.engines.memory import fit_bytes, held_bytes
from frpcag.linalg.factorize import power_unit

Array = np.ndarray

# Each neighbour of a row that is labelled: its edges, in both directions, while clusters are merged.
_LABEL_BYTES = 170


def check_n_clusters(k: Any, n: int) -> None:
    """Raise ValueError unless ``k`` is "auto" or a number of clusters of ``n`` samples."""
    if isinstance(k, str) and k == "auto":
        return
    if not isinstance(k, Real) or isinstance(k, bool) or not 1 <= float(k) <= n or float(k) % 1:
        raise ValueError(f"n_clusters={k!r} must be 'auto' or an integer from 1 to n_samples={n}.")


def has_mixed_units(X: Array) -> bool:
    """Say whether both the spread and the size of the largest column are far beyond those of most.

    Counts that are mostly zero differ in spread alone: a rare one is as large as the others where it is there.
    """
    observed = ~np.isnan(X)
    if not find_units(X, observed, one_level=False).mixed:
        return False
    counted = observed & (X != 0)
    sizes = np.abs(np.where(counted, X, 0)).sum(axis=0) / np.maximum(counted.sum(axis=0), 1)
    return bool(sizes.max() > MIXED * np.median(sizes[sizes > 0]))


def in_range(points: Array) -> Array:
    """Return points in a unit in which their squares stay in the range of float64."""
    unit = power_unit(float(np.abs(points).max(initial=0.0)), 8)
    return points if unit == 1.0 else points / unit


def clustering_bytes(X: Any, model: Any, *, points: int, n_neighbors: int) -> int:
    """Return about how many bytes it takes to fit ``X`` and to label its rows, those of ``X`` not counted.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
    model : FRPCAG
    points : int
        Bytes of each row of what is labelled.
    n_neighbors : int
        Of each row, in the largest graph that labels are tried on.

    Returns
    -------
    int
        The fit, or its results and what labels them, whichever is larger.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag import FRPCAG
    >>> from frpcag.engines.memory import fit_bytes
    >>> from frpcag.estimators.cluster_inputs import clustering_bytes
    >>> X = np.zeros((20_000, 20))
    >>> clustering_bytes(X, FRPCAG(), points=320, n_neighbors=25) > 1.5 * fit_bytes(X, FRPCAG())
    True
    """
    n, p = X.shape
    k = model.n_neighbors if isinstance(model.n_neighbors, int) else 10
    results = 2 * n * p * X.dtype.itemsize + held_bytes(n, p, k)
    return int(max(fit_bytes(X, model), results + n * (points + _LABEL_BYTES * n_neighbors)))
