"""Rows of a fitted graph that many other rows are linked to: searched again and again, prepared once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import nullcontext

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from frpcag.graphs.graph import Graph
from frpcag.graphs.inverted_lists import InvertedLists, train_centroids
from frpcag.graphs.laplacian import degrees, edge_entries
from frpcag.graphs.metric import Metric
from frpcag.graphs.neighbors import Neighbors, brute_force
from frpcag.graphs.points import (
    FITTED,
    MAX_DIMENSION,
    Points,
    prepare_points,
    prepare_queries,
    principal_directions,
    rank_candidates,
)
from frpcag.graphs.robust_candidates import count_candidates, frequencies, map_width, robust_map
from frpcag.graphs.robust_neighbors import BLOCK, absolute_neighbors
from frpcag.runtime.threads import block_pool

# Fewer anchors than this are all compared with every row: lists would not pay.
SMALL = 4000
# Lists a row looks at, of 2 sqrt(n).
N_PROBES = 24
# Rows of a block; a constant, since a matrix product may depend on its size in the last bit.
_BLOCK = 1024


class Anchors:
    """Fixed rows, and the search for those nearest to other rows.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        The anchors; NaN is missing.
    metric : Metric
    random_state : int, RandomState or None
        Seed of what the lists of the search are trained on.
    n_jobs : int, optional
        Threads; they do not change the result.
    """

    def __init__(self, X: NDArray, *, metric: Metric, random_state=None, n_jobs: int | None = None) -> None:
        self.n, self.metric, self.n_jobs = len(X), metric, n_jobs
        self._lists: InvertedLists | None = None
        with block_pool(n_jobs) as run:
            self._points = prepare_points(X, run, metric=metric)
            # Euclidean distances of incomplete rows are taken over common entries, which no list knows.
            if self.n >= SMALL and (self._points.seen is None or not metric.euclidean):
                self._train(check_random_state(random_state), run)

    def _train(self, rng: np.random.RandomState, run: Callable) -> None:
        """Prepare lists in the first principal components of the anchors, mapped where the metric is robust."""
        p = self._points.Z.shape[1]
        self._waves = None
        if not self.metric.euclidean:
            size = float(np.abs(self._points.Z).mean(dtype=np.float64))
            self._waves = frequencies(p, map_width(self._points.cut, size), rng)
        self._centre, self._basis = np.float32(0), None
        some = self._mapped(self._points.take(np.sort(rng.permutation(self.n)[:FITTED])))
        self._centre = some.mean(axis=0)
        if some.shape[1] > MAX_DIMENSION:
            self._basis = principal_directions(some - self._centre)
        parts = run(lambda rows: self._mapped(self._points.take(rows)), _blocks(self.n))
        reduced = np.concatenate(parts)
        centroids = train_centroids(reduced, int(2 * np.sqrt(self.n)), rng=rng, run=run)
        self._lists = InvertedLists(reduced, centroids, run=run)

    def _mapped(self, points: Points) -> NDArray[np.float32]:
        Z = points.Z if self._waves is None else robust_map(points, self._waves)
        Z = Z - self._centre
        return Z if self._basis is None else Z @ self._basis

    def nearest(self, rows: NDArray, n_neighbors: int) -> Neighbors:
        """Return the anchors nearest to each row, sorted by distance, and how far they are.

        Parameters
        ----------
        rows : ndarray of shape (m, p)
            NaN is missing.
        n_neighbors : int
            At most as many as there are anchors.

        Returns
        -------
        indices, distances : ndarray of shape (m, n_neighbors)
        """
        points = self._points
        # Sums of bounded differences need no BLAS: a few rows wait for no pool to be set up.
        alone = len(rows) <= BLOCK and self._lists is None and not self.metric.euclidean
        with nullcontext(_one_by_one) if alone else block_pool(self.n_jobs) as run:
            queries = prepare_queries(rows, points, run)
            if self._lists is None or (queries.seen is not None and self.metric.euclidean):
                indices, distances = brute_force(queries, points, n_neighbors, run=run)
            else:
                indices, distances = self._search(queries, n_neighbors, run)
        return indices, points.lengths(distances)

    def _search(self, queries: Points, k: int, run: Callable) -> Neighbors:
        lists, points = self._lists, self._points
        assert lists is not None  # for types: the caller looked
        n_candidates = k + 9 if self.metric.euclidean and self._basis is None else 4 * k + 9
        if not self.metric.euclidean:
            n_candidates = count_candidates(k, missing=True)  # as many: no round over neighbours' neighbours follows

        def search(rows: NDArray) -> NDArray[np.int64]:
            return lists.query(self._mapped(queries.take(rows)), min(self.n, n_candidates), n_probes=N_PROBES)

        blocks = _blocks(len(queries.Z))
        found = run(search, blocks)
        if self.metric.euclidean:
            ranked = run(
                lambda at: rank_candidates(queries.Z[at[0]], points.Z, at[1], k), zip(blocks, found, strict=True)
            )
            indices, distances = (np.concatenate(part) for part in zip(*ranked, strict=True))
        else:
            indices, distances = absolute_neighbors(queries, points, k, run=run, candidates=np.concatenate(found))
        lonely = np.flatnonzero(np.isinf(distances[:, -1]))
        if len(lonely):  # the lists held too few
            indices[lonely], distances[lonely] = brute_force(queries.take(lonely), points, k, run=run)
        return indices, distances


class Links:
    """Edges from other rows to the nodes of a fitted graph: what they weigh in its Laplacian.

    Parameters
    ----------
    graph : Graph
        Of the anchors.
    """

    def __init__(self, graph: Graph) -> None:
        self.sigma, self.normalized = graph.sigma, graph.normalized
        self._degrees = degrees(graph.weights)

    def of(self, indices: NDArray, distances: NDArray, *, joined: bool = False) -> tuple[NDArray, sp.csr_array]:
        """Return the diagonal entries of the rows and their edges, the entries off the diagonal without their sign.

        Parameters
        ----------
        indices, distances : ndarray of shape (m, k)
            Anchors near each row.
        joined : bool, default=False
            Whether an edge counts in the degree of its anchor, too, as if the row were the one to join the graph: no
            anchor of hardly any degree then counts beyond measure.
        """
        m, k = indices.shape
        A = np.ones_like(distances)
        if self.sigma is not None:
            # A corrupted row is far from all others: in its own mean distance it is linked as strongly as any.
            unit = np.maximum(distances.mean(axis=1, keepdims=True), max(self.sigma, 1e-300))
            A = np.exp(-np.square(distances / unit))
        diagonal = A.sum(axis=1)
        if self.normalized:
            fitted = self._degrees[indices] + (A if joined else 0)
            linked = -edge_entries(A, diagonal[:, None], np.where(fitted > 0, fitted, 1.0), normalized=True)
            A, diagonal = np.where(fitted > 0, linked, 0.0), np.ones(m)
        starts = np.arange(0, m * k + 1, k)
        return diagonal, sp.csr_array((A.ravel(), indices.ravel(), starts), shape=(m, len(self._degrees)))


def _one_by_one(function: Callable, blocks: Iterable) -> list:
    return [function(block) for block in blocks]


def _blocks(n: int) -> list[NDArray[np.int64]]:
    return [np.arange(start, min(start + _BLOCK, n)) for start in range(0, n, _BLOCK)]
