"""Nearest rows under a sum of bounded absolute differences: wrong cells must not choose the neighbours.

A gross error of one cell moves a Euclidean distance by its square. A sum of absolute differences grows with it once, a
truncated sum never by more than the bound.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frpcag.graphs.points import Points

Neighbors = tuple[NDArray[np.int64], NDArray[np.float64]]

# Rows of a block of queries; the result does not depend on it.
BLOCK = 128
_NOBODY = np.iinfo(np.int64).max


def absolute_neighbors(
    queries: Points,
    points: Points,
    n_neighbors: int,
    *,
    run: Callable,
    skip: NDArray[np.int64] | None = None,
    candidates: NDArray[np.int64] | None = None,
    known: Neighbors | None = None,
    least_common: float = 1.0,
) -> Neighbors:
    """Return the nearest points of each query by ``sum min(|x - y|, cut)``, over all points or some candidates.

    Parameters
    ----------
    queries, points : Points
        In the same units. Over missing entries the sum is taken of those that both have, scaled up to all features.
    n_neighbors : int
    run : callable
        What `frpcag.runtime.threads.block_pool` gives.
    skip : ndarray of shape (n_queries,), optional
        The index of each query among the points: it is not its own neighbour.
    candidates : ndarray of shape (n_queries, n_candidates), optional
        Points to look at; they may repeat, -1 is none.
    known : (indices, distances), optional
        Neighbours found before, which stay unless a candidate is nearer.
    least_common : float, default=1
        Pairs that share fewer entries are infinitely far from each other.

    Returns
    -------
    indices, distances : ndarray of shape (n_queries, n_neighbors)
        By distance, then by index. Where too few candidates were given, the index is 0 and the distance infinite.
    """
    from frpcag.graphs import robust_kernels as kernels

    m, k = len(queries.Z), n_neighbors
    indices = np.full((m, k), _NOBODY, np.int64)
    lengths = np.full((m, k), np.inf, np.float32)
    if known is not None:
        lengths[:] = known[1]
        indices[:] = np.where(np.isinf(known[1]), _NOBODY, known[0])
    own = np.full(m, -1, np.int64) if skip is None else np.asarray(skip, np.int64)
    bound, least = np.float32(min(points.cut, float(np.finfo(np.float32).max))), np.float32(least_common)
    masked = queries.seen is not None or points.seen is not None
    B = points.Z
    Am, Bm = (_weights(queries), _weights(points)) if masked else (queries.Z, B)

    def search(rows: slice) -> None:
        A = np.ascontiguousarray(queries.Z[rows])
        lists: tuple[Any, ...] = () if candidates is None else (np.ascontiguousarray(candidates[rows]),)
        out = own[rows], indices[rows], lengths[rows]
        if masked:
            kernel = kernels.nearest_of_all_shared if candidates is None else kernels.nearest_of_some_shared
            kernel(A, Am[rows], B, Bm, *lists, bound, least, *out)
        else:
            kernel = kernels.nearest_of_all if candidates is None else kernels.nearest_of_some
            kernel(A, B, *lists, bound, *out)

    run(search, [slice(start, start + BLOCK) for start in range(0, m, BLOCK)])
    indices[indices == _NOBODY] = 0
    return indices, lengths.astype(np.float64)


def _weights(points: Points) -> NDArray[np.float32]:
    return np.ones_like(points.Z) if points.seen is None else points.seen.astype(np.float32, order="C")
