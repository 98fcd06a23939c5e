"""Exact and approximate search of nearest neighbours (Shahid et al. 2016, Sec. III, strategies 1 and 2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from frpcag.graphs.inverted_lists import InvertedLists, half_squared_norms, nearest, train_centroids
from frpcag.graphs.metric import EUCLIDEAN, Metric
from frpcag.graphs.points import Points, prepare_points, prepare_queries, rank_candidates, reduce_dimension
from frpcag.graphs.robust_candidates import MOST_ROUNDS, SETTLED, robust_candidates
from frpcag.graphs.robust_neighbors import absolute_neighbors
from frpcag.graphs.shared_entries import completed_components, nearest_shared, rank_shared
from frpcag.runtime.threads import block_pool

Neighbors = tuple[NDArray[np.int64], NDArray[np.float64]]

# Rows per block of queries, and of fewer queries than eight blocks: threads get like shares. Constants, since a matrix
# product may depend on its size in the last bit.
BLOCK, _SMALL_BLOCK = 512, 128

# Rows whose neighbours' neighbours are listed at a time.
_WIDE_BLOCK = 1 << 14

# Lists a point looks at, of 2 sqrt(n). Of the 10 nearest neighbours this finds 99 % on MNIST, 92 % on word
# vectors.
N_PROBES = 24
# Among so few points that would be all lists.
SMALL = N_PROBES**2 // 4


def choose_search(n: int, p: int, *, method: str = "auto", metric: Metric = EUCLIDEAN) -> str:
    """Return which search ``method`` means: for "auto" "exact" while brute force takes a few seconds.

    Two cores do about 1e11 of ``n^2 p`` a second, a fifth of that in absolute differences; picking the smallest of
    ``n`` scores costs as much as 64 features more. The rule ignores the number of cores, so that the same data gives
    the same graph on every machine. "approximate" is "exact" among so few points that every list would be looked at.
    """
    if method != "auto":
        return "exact" if n <= SMALL else method
    return "exact" if n * n * (p + 64) <= (2e11 if metric.euclidean else 4e10) else "approximate"


def exact_neighbors(
    X: NDArray | sp.csr_array, n_neighbors: int, *, metric: Metric = EUCLIDEAN, n_jobs: int | None = None
) -> Neighbors:
    """Return the nearest neighbours of every row by brute force, ``O(n^2 p)``.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, p)
        Finite real numbers, any layout; NaN is missing, see `frpcag.graphs.shared_entries`.
    n_neighbors : int
        Less than ``n``.
    metric : Metric, default=EUCLIDEAN
        See `frpcag.graphs.metric`.
    n_jobs : int, optional
        Number of threads, which does not change the result; None is all cores.

    Returns
    -------
    indices : ndarray of shape (n, n_neighbors)
        Neighbours of each row, never the row itself, sorted by distance, then by index.
    distances : ndarray of shape (n, n_neighbors)
        Distances, with the accuracy of float32.

    Examples
    --------
    >>> from frpcag.graphs.neighbors import exact_neighbors
    >>> indices, distances = exact_neighbors(np.array([[0.0], [1.0], [3.0]]), 1)
    >>> indices.ravel(), distances.ravel().round(5)
    (array([1, 0, 1]), array([1., 1., 2.]))
    """
    with block_pool(n_jobs) as run:
        points = prepare_points(X, run, metric=metric)
        everyone = np.arange(len(points.Z))
        indices, distances = brute_force(points, points, n_neighbors, run=run, skip=everyone)
    return indices, points.lengths(distances)


def query_neighbors(
    X: NDArray | sp.csr_array,
    rows: NDArray | sp.csr_array,
    n_neighbors: int,
    *,
    metric: Metric = EUCLIDEAN,
    n_jobs: int | None = None,
) -> Neighbors:
    """Return the nearest rows of ``X`` to each of some other rows by brute force.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, p)
        Finite real numbers, any layout; NaN is missing, see `frpcag.graphs.shared_entries`.
    rows : ndarray or csr_array of shape (m, p)
        The same features of other points. What is found for one does not depend on the others.
    n_neighbors : int
        At most ``n``.
    metric : Metric, default=EUCLIDEAN
        See `frpcag.graphs.metric`.
    n_jobs : int, optional
        Number of threads, which does not change the result; None is all cores.

    Returns
    -------
    indices : ndarray of shape (m, n_neighbors)
        Rows of ``X``, sorted by distance, then by index.
    distances : ndarray of shape (m, n_neighbors)
        Distances, with the accuracy of float32.

    Examples
    --------
    >>> from frpcag.graphs.neighbors import query_neighbors
    >>> indices, distances = query_neighbors(np.array([[0.0], [1.0], [3.0]]), np.array([[2.5]]), 2)
    >>> indices, distances.round(5)
    (array([[2, 1]]), array([[0.5, 1.5]]))
    """
    with block_pool(n_jobs) as run:
        points = prepare_points(X, run, metric=metric)
        queries = prepare_queries(rows, points, run)
        indices, distances = brute_force(queries, points, n_neighbors, run=run)
    return indices, points.lengths(distances)


def approximate_neighbors(
    X: NDArray | sp.csr_array,
    n_neighbors: int,
    *,
    metric: Metric = EUCLIDEAN,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
) -> Neighbors:
    """Return most of the nearest neighbours of every row, in ``O(n^1.5)`` distances.

    Inverted lists around k-means centroids, in a space reduced by PCA when there are many features, give
    candidates; these are ranked by their distances in the full space. Robust metrics find their candidates in a space
    of their own (`frpcag.graphs.robust_candidates`).

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, p)
        Finite real numbers, any layout; NaN is missing, see `frpcag.graphs.shared_entries`.
    n_neighbors : int
        Less than ``n``.
    metric : Metric, default=EUCLIDEAN
        See `frpcag.graphs.metric`.
    random_state : int, RandomState or None, default=None
        Seed of the samples that PCA and centroids are trained on. An int gives the same result in every call.
    n_jobs : int, optional
        Number of threads, which does not change the result; None is all cores.

    Returns
    -------
    indices : ndarray of shape (n, n_neighbors)
        Neighbours of each row, never the row itself, sorted by distance, then by index.
    distances : ndarray of shape (n, n_neighbors)
        Their true distances, with the accuracy of float32.

    Notes
    -----
    Shahid et al. 2016 use FLANN, which is no longer maintained.

    Examples
    --------
    >>> from frpcag.graphs.neighbors import approximate_neighbors
    >>> X = np.random.default_rng(0).standard_normal((3000, 5))
    >>> indices, distances = approximate_neighbors(X, 10, random_state=0)
    >>> indices.shape
    (3000, 10)
    """
    rng = check_random_state(random_state)
    with block_pool(n_jobs) as run:
        points = prepare_points(X, run, metric=metric)
        indices, distances = search_lists(points, n_neighbors, rng=rng, run=run)
    return indices, points.lengths(distances)


def search_lists(
    points: Points,
    n_neighbors: int,
    *,
    rng: np.random.RandomState,
    run: Callable,
    least_common: float = 1.0,
) -> Neighbors:
    """Return most of the nearest neighbours of every point, in units of ``points.Z``."""
    if points.metric.euclidean:
        return _best_candidates(points, _list_candidates(points, n_neighbors, rng, run), n_neighbors, run)
    everyone = np.arange(len(points.Z))
    candidates = robust_candidates(points, n_neighbors, rng=rng, run=run)
    indices, distances = absolute_neighbors(
        points, points, n_neighbors, run=run, skip=everyone, candidates=candidates, least_common=least_common
    )
    options: dict[str, Any] = {"run": run, "least_common": least_common}
    for _ in range(MOST_ROUNDS):
        # Neighbours of neighbours are likely neighbours too.
        known = indices.copy()
        for start in range(0, len(known), _WIDE_BLOCK):
            rows = everyone[start : start + _WIDE_BLOCK]
            near = np.sort(known[known[rows]].reshape(len(rows), -1), axis=1)
            found = known[rows], distances[rows]
            indices[rows], distances[rows] = absolute_neighbors(
                points.take(rows), points, n_neighbors, skip=rows, candidates=near, known=found, **options
            )
        if np.mean(indices != known) < SETTLED:
            break
    _search_lonely(points, indices, distances, run)
    return indices, distances


def _list_candidates(points: Points, n_neighbors: int, rng: np.random.RandomState, run: Callable) -> NDArray:
    """Return candidates from inverted lists, the more of them the less their order can be trusted."""
    n = len(points.Z)
    if points.seen is None:
        reduced = reduce_dimension(points.Z, rng=rng, run=run)
        n_candidates = (n_neighbors if reduced is points.Z else 4 * n_neighbors) + 9
    else:
        reduced = completed_components(points, rng=rng, run=run)
        n_candidates = 10 * n_neighbors + 9
    centroids = train_centroids(reduced, int(2 * np.sqrt(n)), rng=rng, run=run)
    return InvertedLists(reduced, centroids, run=run).search(min(n, n_candidates), n_probes=N_PROBES, run=run)


def _best_candidates(points: Points, candidates: NDArray, n_neighbors: int, run: Callable) -> Neighbors:
    """Return the nearest candidates of every point; points with too few candidates are searched exactly."""
    everyone = np.arange(len(points.Z))

    def rank(rows: slice) -> Neighbors:
        return _rank(points, rows, points, candidates[rows], n_neighbors, skip=everyone[rows])

    indices, distances = _stack(run(rank, _blocks(len(points.Z))))
    _search_lonely(points, indices, distances, run)
    return indices, distances


def _search_lonely(points: Points, indices: NDArray, distances: NDArray, run: Callable) -> None:
    """Search points with too few candidates exactly, and write what is found into their rows."""
    lonely = np.flatnonzero(np.isinf(distances[:, -1]))
    if len(lonely):
        k = indices.shape[1]
        found = brute_force(points.take(lonely), points, k, run=run, skip=lonely)
        indices[lonely], distances[lonely] = found


def brute_force(
    queries: Points,
    points: Points,
    n_neighbors: int,
    *,
    run: Callable,
    skip: NDArray[np.int64] | None = None,
    least_common: float = 1.0,
) -> Neighbors:
    """Return the nearest points of each query by brute force, in units of ``points.Z``; see `absolute_neighbors`."""
    if not points.metric.euclidean:
        return absolute_neighbors(queries, points, n_neighbors, run=run, skip=skip, least_common=least_common)
    complete = queries.seen is None and points.seen is None
    half_squares = half_squared_norms(points.Z)
    # The true neighbours are among somewhat more candidates than are kept: their order is that of rounded
    # scores.
    n_candidates = min(len(points.Z), n_neighbors + 9 + n_neighbors // 2)

    def search(rows: slice) -> Neighbors:
        if complete:
            candidates = nearest(queries.Z[rows], points.Z, half_squares, n_candidates)
        else:
            candidates = nearest_shared(queries, rows, points, n_candidates)
        return _rank(queries, rows, points, candidates, n_neighbors, skip=None if skip is None else skip[rows])

    return _stack(run(search, _blocks(len(queries.Z))))


def _rank(queries: Points, rows: slice, points: Points, candidates, n_neighbors: int, *, skip) -> Neighbors:
    if queries.seen is None and points.seen is None:
        return rank_candidates(queries.Z[rows], points.Z, candidates, n_neighbors, skip=skip)
    return rank_shared(queries, rows, points, candidates, n_neighbors, skip=skip)


def _blocks(n: int) -> list[slice]:
    step = BLOCK if n >= 8 * BLOCK else _SMALL_BLOCK
    return [slice(start, start + step) for start in range(0, max(n, 1), step)]


def _stack(parts: list[Neighbors]) -> Neighbors:
    indices, distances = zip(*parts, strict=True)
    return np.concatenate(indices), np.concatenate(distances)
