"""Inverted lists: points grouped around centroids, so that a search looks at the groups near a query only.

Queries, the points themselves or other rows, that look at the same list are handled together, by one matrix product,
which is several times faster than scanning the lists query by query.
"""

from __future__ import annotations

from collections.abc import Callable

import faiss
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from frpcag.graphs.points import Points, half_squared_norms, nearest
from frpcag.graphs.sketch import Sketch

# Rows per block of queries, and of rows that are sketched; constants, since a matrix product may depend on its size in
# the last bit.
BLOCK, _SKETCHED = 8192, 1024

# Lists a point looks at, of 2 sqrt(n). Of the 10 nearest neighbours this finds 99 % on MNIST, 92 % on word
# vectors.
N_PROBES = 24

TRAINING_POINTS_PER_LIST = 32
TRAINING_STEPS = 10


def train_centroids(
    Z: NDArray[np.float32], n_lists: int, *, rng: np.random.RandomState, run: Callable
) -> NDArray[np.float32]:
    """Return centroids of shape (n_lists, d) by k-means on a sample of the points, ``O(n_lists^2 d)``."""
    sample = np.ascontiguousarray(Z[rng.permutation(len(Z))[: TRAINING_POINTS_PER_LIST * n_lists]])
    centroids = sample[:n_lists].copy()
    for _ in range(TRAINING_STEPS):
        centroids = moved(centroids, *cell_sums(sample, centroids, run))
    return centroids


def cell_sums(
    sample: NDArray[np.float32], centroids: NDArray[np.float32], run: Callable
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return the sums of the points nearest to every centroid, and their numbers."""
    assigned, columns = _assign(sample, centroids, run), np.arange(len(sample))
    members = sp.csr_array((np.ones(len(sample), np.float32), (assigned, columns)), (len(centroids), len(sample)))
    return members @ sample, np.bincount(assigned, minlength=len(centroids))


def moved(centroids: NDArray[np.float32], sums: NDArray[np.float32], sizes: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the centroids at the means of their points; one that no point is nearest to stays: its list is empty."""
    out, filled = centroids.copy(), sizes > 0
    out[filled] = sums[filled] / sizes[filled, None].astype(np.float32)
    return out


class InvertedLists:
    """Points, sketched, sorted by their nearest centroid.

    Parameters
    ----------
    points : Points
    rng : RandomState
        For the samples that sketch and centroids are fitted on.
    run : callable
        What `block_pool` gives.
    """

    def __init__(self, points: Points, *, rng: np.random.RandomState, run: Callable) -> None:
        self.sketch, n = Sketch(points, rng), len(points.Z)
        Z = points.Z
        if not self.sketch.is_identity:
            blocks = [slice(start, start + _SKETCHED) for start in range(0, n, _SKETCHED)]
            Z = np.concatenate(run(lambda rows: self.sketch(points.take(rows)), blocks))
        centroids = train_centroids(Z, int(2 * np.sqrt(n)), rng=rng, run=run)
        assigned = _assign(Z, centroids, run)
        self._order = np.argsort(assigned, kind="stable")
        self._starts, centroid = split_long_lists(np.bincount(assigned, minlength=len(centroids)))
        self._centroids = centroids[centroid]
        self._centroid_half_squares = half_squared_norms(self._centroids)
        # The half squares as one more column: against queries (-q, 1) the matrix product is the score itself.
        self._points = np.empty((n, Z.shape[1] + 1), np.float32)
        self._points[:, :-1] = Z[self._order]
        self._points[:, -1] = half_squared_norms(self._points[:, :-1])

    def search(self, n_candidates: int, *, run: Callable) -> NDArray[np.int64]:
        """Return for every point candidates from the `N_PROBES` lists nearest to it.

        Returns
        -------
        candidates : ndarray of shape (n, n_candidates)
            In no order, the point itself among them as a rule; -1 where the lists held too few.
        """
        candidates = np.empty((len(self._points), min(len(self._points), n_candidates)), np.int64)

        def search_block(block: slice) -> None:
            found = self._search_block(self._points[block, :-1], candidates.shape[1])
            candidates[self._order[block]] = np.where(found < 0, -1, self._order[found])

        run(search_block, _blocks(len(self._points)))
        return candidates

    def query(self, queries: Points, n_candidates: int, *, run: Callable) -> NDArray[np.int64]:
        """Return candidates for other points, as `search` does for the points themselves."""

        def search_block(rows: slice) -> NDArray[np.int64]:
            found = self._search_block(self.sketch(queries.take(rows)), min(len(self._points), n_candidates))
            return np.where(found < 0, -1, self._order[found])

        starts = range(0, len(queries.Z), _SKETCHED)
        return np.concatenate(run(search_block, [slice(start, start + _SKETCHED) for start in starts]))

    def _search_block(self, points: NDArray[np.float32], n_candidates: int) -> NDArray[np.int64]:
        n_probes = min(N_PROBES, len(self._centroids))
        probes = nearest(points, self._centroids, self._centroid_half_squares, n_probes)
        # From "the lists of each query" to "the queries of each list".
        asking = np.argsort(probes, axis=None, kind="stable") // n_probes
        ends = np.concatenate([[0], np.cumsum(np.bincount(probes.ravel(), minlength=len(self._centroids)))])
        queries = np.column_stack([-points, np.ones(len(points), np.float32)])
        heap = faiss.ResultHeap(len(queries), n_candidates)
        for i in range(len(self._centroids)):
            who = asking[ends[i] : ends[i + 1]]
            start, stop = self._starts[i], self._starts[i + 1]
            if len(who) and stop > start:
                heap.add_result_subset(who, queries[who] @ self._points[start:stop].T, np.arange(start, stop))
        return heap.I


def split_long_lists(sizes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the bounds of the lists and the centroid of each, lists of over 8 times the mean size cut up.

    Points that coincide share a list however many they are, and each of them would look through all of it.
    The pieces share the centroid; a query looks at some of them, which is enough to find points that coincide
    with it.
    """
    longest = 1 + 8 * int(sizes.sum()) // len(sizes)
    n_pieces = np.maximum(1, -(-sizes // longest))
    pieces = [np.diff(np.arange(n + 1) * size // n) for size, n in zip(sizes, n_pieces, strict=True)]
    return np.concatenate([[0], np.cumsum(np.concatenate(pieces))]), np.repeat(np.arange(len(sizes)), n_pieces)


def _assign(Z: NDArray[np.float32], centroids: NDArray[np.float32], run: Callable) -> NDArray[np.int64]:
    """Return the index of the centroid nearest to each point."""
    half_squares = half_squared_norms(centroids)
    return np.concatenate(run(lambda block: nearest(Z[block], centroids, half_squares, 1)[:, 0], _blocks(len(Z))))


def _blocks(n: int) -> list[slice]:
    return [slice(start, start + BLOCK) for start in range(0, n, BLOCK)]
