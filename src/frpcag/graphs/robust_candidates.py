"""Rows in a space where Euclidean neighbours are robust ones: candidates for the robust searches at size.

The map ``x_f -> (cos w_f x_f, sin w_f x_f)`` with ``w_f ~ N(0, 1 / c^2)`` has squared distances whose expectation is a
bounded function of each difference (Welsch's: ``1 - exp(-d^2 / 2 c^2)``), so any Euclidean engine finds neighbours that
gross errors of single cells cannot push away. The metric itself then ranks them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from frpcag.graphs.inverted_lists import InvertedLists, train_centroids
from frpcag.graphs.metric import Metric
from frpcag.graphs.points import Points, reduce_dimension

# Rows mapped at a time.
_BLOCK = 1024
# Lists a point looks at, of 2 sqrt(n), and candidates for every neighbour that is kept.
N_PROBES = 24
PER_NEIGHBOR = 10


def robust_candidates(
    points: Points, n_neighbors: int, *, metric: Metric, rng: np.random.RandomState, run: Callable
) -> NDArray[np.int64]:
    """Return candidates for the neighbours of every point, -1 where the lists held too few."""
    n = len(points.Z)
    width = map_width(metric.cut / points.unit, float(np.abs(points.Z).mean(dtype=np.float64)))
    mapped = robust_map(points, width=width, rng=rng, run=run)
    mapped -= np.mean(mapped, axis=0, keepdims=True, dtype=np.float64)
    reduced = reduce_dimension(mapped, rng=rng, run=run)
    centroids = train_centroids(reduced, int(2 * np.sqrt(n)), rng=rng, run=run)
    lists = InvertedLists(reduced, centroids, run=run)
    return lists.search(min(n, PER_NEIGHBOR * n_neighbors + 9), n_probes=N_PROBES, run=run)


def map_width(cut: float, mean_size: float) -> float:
    """Return the width of the map for a bound of differences; without one it is that of twice the mean entry."""
    return max(cut if np.isfinite(cut) else 2 * mean_size, 1e-30)


def frequencies(p: int, width: float, rng: np.random.RandomState) -> NDArray[np.float32]:
    """Return the frequency of each feature."""
    return np.asarray(rng.standard_normal(p) / width, np.float32)


def robust_map(points: Points, *, width: float, rng: np.random.RandomState, run: Callable) -> NDArray[np.float32]:
    """Return the points in the space of the map, missing entries at its centre.

    Parameters
    ----------
    points : Points
    width : float
        Differences well beyond it count all the same, in units of ``points.Z``.
    rng : RandomState
    run : callable
        What `frpcag.runtime.threads.block_pool` gives.

    Returns
    -------
    ndarray of shape (n, 2 * n_features)
    """
    n, p = points.Z.shape
    waves = frequencies(p, width, rng)
    mapped = np.empty((n, 2 * p), np.float32)

    def fill(rows: slice) -> None:
        angles = points.Z[rows] * waves
        np.cos(angles, out=mapped[rows, :p])
        np.sin(angles, out=mapped[rows, p:])
        if points.seen is not None:
            mapped[rows, :p] *= points.seen[rows]
            mapped[rows, p:] *= points.seen[rows]

    run(fill, [slice(start, start + _BLOCK) for start in range(0, n, _BLOCK)])
    return mapped
