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
from frpcag.graphs.points import FITTED, MAX_DIMENSION, Points, principal_directions

# Rows mapped at a time.
_BLOCK = 1024
# Lists a point looks at, of 2 sqrt(n), and candidates for every neighbour that is kept.
N_PROBES = 24
PER_NEIGHBOR = 4
# Rounds of looking at the neighbours of neighbours: one, and more while this share of the places in the lists changes.
MOST_ROUNDS = 3
SETTLED = 0.15
# With missing entries the space is blurred: more of them.
PER_NEIGHBOR_MISSING = 12


def robust_candidates(
    points: Points, n_neighbors: int, *, rng: np.random.RandomState, run: Callable
) -> NDArray[np.int64]:
    """Return candidates for the neighbours of every point, -1 where the lists held too few.

    They are found by inverted lists in the first principal components of the mapped points.
    """
    n, p = points.Z.shape
    width = map_width(points.cut, float(np.abs(points.Z).mean(dtype=np.float64)))
    waves = frequencies(p, width, rng)
    sample = robust_map(points.take(np.sort(rng.permutation(n)[:FITTED])), waves)
    centre = sample.mean(axis=0)
    basis = principal_directions(sample - centre) if 2 * p > MAX_DIMENSION else np.eye(2 * p, dtype=np.float32)

    def project(start: int) -> NDArray[np.float32]:
        rows = points.take(np.arange(start, min(start + _BLOCK, n)))
        return (robust_map(rows, waves) - centre) @ basis

    reduced = np.concatenate(run(project, range(0, n, _BLOCK)))
    centroids = train_centroids(reduced, int(2 * np.sqrt(n)), rng=rng, run=run)
    lists = InvertedLists(reduced, centroids, run=run)
    n_candidates = count_candidates(n_neighbors, missing=points.seen is not None)
    return lists.search(min(n, n_candidates), n_probes=N_PROBES, run=run)


def count_candidates(n_neighbors: int, *, missing: bool) -> int:
    """Return how many candidates are ranked for so many neighbours."""
    return (PER_NEIGHBOR_MISSING if missing else PER_NEIGHBOR) * n_neighbors + 9


def map_width(cut: float, mean_size: float) -> float:
    """Return the width of the map for a bound of differences; without one it is that of twice the mean entry."""
    return max(cut if np.isfinite(cut) else 2 * mean_size, 1e-30)


def frequencies(p: int, width: float, rng: np.random.RandomState) -> NDArray[np.float32]:
    """Return the frequency of each feature; differences well beyond ``width`` count all the same."""
    return np.asarray(rng.standard_normal(p) / width, np.float32)


def robust_map(points: Points, waves: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the points in the space of the map, of shape (n, 2 * n_features), missing entries at its centre."""
    n, p = points.Z.shape
    angles = points.Z * waves
    mapped = np.empty((n, 2 * p), np.float32)
    np.cos(angles, out=mapped[:, :p])
    np.sin(angles, out=mapped[:, p:])
    if points.seen is not None:
        mapped[:, :p] *= points.seen
        mapped[:, p:] *= points.seen
    return mapped
