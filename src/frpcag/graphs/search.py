"""Neighbours of arrays by brute force and among candidates, Euclidean or by sums of absolute differences.

Of incomplete points the entries that both have count, scaled up to all features:
``d(x, y)^2 = p / c  sum_f (x_f - y_f)^2`` over the ``c`` features observed in both. Under entries missing at random its
expectation is the distance of the complete points. Points without a feature in common are infinitely far.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from frpcag.graphs.inverted_lists import InvertedLists
from frpcag.graphs.points import Points, half_squared_norms, nearest, prepare_queries

Neighbors = tuple[NDArray[np.int64], NDArray[np.float64]]

# Rows per block of queries, and of fewer queries than eight blocks: threads get like shares. Constants, since a matrix
# product may depend on its size in the last bit.
_BLOCK, FEW = 512, 128
# Rows whose neighbours' neighbours are listed at a time.
_WIDE_BLOCK = 1 << 14
# Numbers per block of differences: bounds memory at some 32 MB.
_DIFFERENCES = 2**23
_NOBODY = np.iinfo(np.int64).max


class HostSearch:
    """The points that others are compared with, as arrays.

    Parameters
    ----------
    points : Points
    run : callable
        What `frpcag.runtime.threads.block_pool` gives.
    least_common : float, default=1
        By absolute differences, points that share fewer entries are infinitely far from each other.
    """

    # Rounds of looking at the neighbours of neighbours, Euclidean and by absolute differences.
    rounds = 0, 3

    def __init__(self, points: Points, run: Callable, *, least_common: float = 1.0) -> None:
        self.points, self.run, self._least = points, run, least_common

    def queries(self, rows: Any) -> Points:
        """Return other rows in the units of the points."""
        return prepare_queries(rows, self.points, self.run)

    def lists(self, rng: np.random.RandomState) -> InvertedLists:
        """Return inverted lists of the points."""
        return InvertedLists(self.points, rng=rng, run=self.run)

    def listed(self, lists: InvertedLists, k: int) -> NDArray[np.int64]:
        """Return candidates for ``k`` neighbours of every point, -1 where the lists held too few."""
        return lists.search(k * lists.sketch.per_neighbor + 9, run=self.run)

    def wide_blocks(self, k: int) -> list[NDArray[np.int64]]:
        """Return all points in blocks whose neighbours' neighbours fit in memory."""
        n = len(self.points.Z)
        return [np.arange(start, min(start + _WIDE_BLOCK, n)) for start in range(0, n, _WIDE_BLOCK)]

    def exact(self, queries: Points, k: int, *, skip: NDArray[np.int64] | None = None) -> Neighbors:
        """Return the nearest points of each query by brute force, by distance, then by index, in units of ``Z``.

        ``skip`` is the index of each query among the points: a point is not its own neighbour, and only its index tells
        it from a duplicate.
        """
        points = self.points
        if not points.metric.euclidean:
            return self._absolute(queries, k, skip=skip)
        complete = queries.seen is None and points.seen is None
        half_squares = half_squared_norms(points.Z) if complete else np.empty(0, np.float32)
        # The true neighbours are among somewhat more candidates than are kept: their order is that of rounded
        # scores.
        n_candidates = min(len(points.Z), k + 9 + k // 2)

        def search(rows: slice) -> Neighbors:
            some = queries.take(rows)
            if complete:
                candidates = nearest(some.Z, points.Z, half_squares, n_candidates)
            else:
                candidates = _nearest_shared(some, points, n_candidates)
            return rank(some, points, candidates, k, skip=None if skip is None else skip[rows])

        return _stack(self.run(search, _blocks(len(queries.Z))))

    def among(
        self,
        queries: Points,
        candidates: NDArray[np.int64],
        k: int,
        *,
        skip: NDArray[np.int64] | None = None,
        known: Neighbors | None = None,
    ) -> Neighbors:
        """Return the nearest candidates of each query, and of what is ``known`` what is nearer; see `exact`.

        Candidates are of shape (n_queries, n_candidates), -1 for none. Where they are too few, distances are infinite.
        """
        if not self.points.metric.euclidean:
            return self._absolute(queries, k, skip=skip, candidates=candidates, known=known)

        def search(rows: slice) -> Neighbors:
            own = None if skip is None else skip[rows]
            return rank(queries.take(rows), self.points, candidates[rows], k, skip=own)

        return _stack(self.run(search, _blocks(len(queries.Z))))

    def refine(self, rows: NDArray[np.int64], indices: NDArray, distances: NDArray) -> Neighbors:
        """Return the neighbours of some points among those known and their neighbours."""
        near = np.sort(indices[indices[rows]].reshape(len(rows), -1), axis=1)
        known = indices[rows], distances[rows]
        return self.among(self.points.take(rows), near, indices.shape[1], skip=rows, known=known)

    def _absolute(self, queries: Points, k: int, *, skip: Any, candidates: Any = None, known: Any = None) -> Neighbors:
        """Return the nearest points of each query by ``sum min(|x - y|, cut)``, over all points or some candidates."""
        from frpcag.graphs import kernels

        points, m = self.points, len(queries.Z)
        indices = np.full((m, k), _NOBODY, np.int64)
        lengths = np.full((m, k), np.inf, np.float32)
        if known is not None:
            lengths[:] = known[1]
            indices[:] = np.where(np.isinf(known[1]), _NOBODY, known[0])
        own = np.full(m, -1, np.int64) if skip is None else np.asarray(skip, np.int64)
        bound, least = np.float32(min(points.cut, float(np.finfo(np.float32).max))), np.float32(self._least)
        masked = queries.seen is not None or points.seen is not None
        Am, Bm = (_weights(queries), _weights(points)) if masked else (None, None)

        def search(rows: slice) -> None:
            some = np.ascontiguousarray(queries.Z[rows]), None if Am is None else Am[rows], points.Z, Bm
            out = bound, least, own[rows], indices[rows], lengths[rows]
            if candidates is None:
                kernels.nearest_of_all(*some, *out)
            else:
                kernels.nearest_of_some(*some, np.ascontiguousarray(candidates[rows]), *out)

        self.run(search, [slice(start, start + FEW) for start in range(0, m, FEW)])
        indices[indices == _NOBODY] = 0
        return indices, lengths.astype(np.float64)


def rank(
    queries: Points, points: Points, candidates: NDArray[np.int64], k: int, *, skip: NDArray[np.int64] | None = None
) -> Neighbors:
    """Return the nearest candidates of each query, by Euclidean distance, then by index; see `HostSearch.among`.

    The searches rank by ``|z|^2 / 2 - <q, z>``, which cancels in float32 when two points are near each other; here the
    differences themselves are squared and summed.
    """
    absent = candidates < 0
    if skip is not None:
        absent |= candidates == skip[:, None]
    ids = np.ascontiguousarray(np.where(absent, 0, candidates))
    complete = queries.seen is None and points.seen is None
    squares = (_squares if complete else _shared_squares)(queries, points, ids)
    squares[absent] = np.nan  # behind the infinitely far, which at least are points
    order = np.lexsort((ids, squares), axis=1)[:, :k]
    distances = np.sqrt(np.take_along_axis(squares, order, axis=1).astype(np.float64))
    return np.take_along_axis(ids, order, axis=1), np.where(np.isnan(distances), np.inf, distances)


def _squares(queries: Points, points: Points, ids: NDArray[np.int64]) -> NDArray[np.float32]:
    Z, squares = np.ascontiguousarray(queries.Z), np.empty(ids.shape, np.float32)
    pointers = (faiss.swig_ptr(A) for A in (squares, Z, points.Z, ids))
    faiss.fvec_L2sqr_by_idx(*pointers, Z.shape[1], *ids.shape)  # type: ignore[attr-defined]
    return squares


def _shared_squares(queries: Points, points: Points, ids: NDArray[np.int64]) -> NDArray[np.float64]:
    M, seen = _observed(queries), _observed(points)
    p = queries.Z.shape[1]
    squares = np.empty(ids.shape)
    height = max(1, _DIFFERENCES // (ids.shape[1] * p))
    for start in range(0, len(ids), height):
        at = slice(start, start + height)
        both = M[at, None] & seen[ids[at]]
        differences = np.where(both, queries.Z[at, None] - points.Z[ids[at]], np.float32(0))
        common = both.sum(axis=2)
        squares[at] = np.einsum("ijk,ijk->ij", differences, differences) * (p / np.maximum(common, 1))
        squares[at][common == 0] = np.inf
    return squares


def _nearest_shared(queries: Points, points: Points, k: int) -> NDArray[np.int64]:
    """Return the indices of the ``k`` points nearest to each query, in no order, by matrix products alone."""
    Q, M, seen = queries.Z, _weights(queries), _weights(points)
    # Z is 0 where it is missing, so each square is over the entries observed in its own point.
    squares = M @ np.square(points.Z).T - 2 * (Q @ points.Z.T)
    if points.seen is None:  # a common term of each row does not change its order
        return np.argpartition(squares, k - 1, axis=1)[:, :k].astype(np.int64)
    common = M @ seen.T
    squares += np.square(Q) @ seen.T
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = np.where(common > 0, squares / common, np.inf)
    return np.argpartition(scores, k - 1, axis=1)[:, :k].astype(np.int64)


def _observed(points: Points) -> NDArray[np.bool_]:
    return np.ones(points.Z.shape, dtype=bool) if points.seen is None else points.seen


def _weights(points: Points) -> NDArray[np.float32]:
    return np.ones_like(points.Z) if points.seen is None else points.seen.astype(np.float32, order="C")


def _blocks(n: int) -> list[slice]:
    step = _BLOCK if n >= 8 * _BLOCK else FEW
    return [slice(start, start + step) for start in range(0, max(n, 1), step)]


def _stack(parts: list[Neighbors]) -> Neighbors:
    indices, distances = zip(*parts, strict=True)
    return np.concatenate(indices), np.concatenate(distances)
