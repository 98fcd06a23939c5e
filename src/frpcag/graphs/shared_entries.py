"""Distances between points with missing entries: over the entries both have, scaled up to all features.

``d(x, y)^2 = p / c  sum_f (x_f - y_f)^2`` over the ``c`` features observed in both. Under entries missing at random its
expectation is the distance of the complete points. Points without a feature in common are infinitely far.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.extmath import randomized_svd

from frpcag.graphs.points import Points

# Numbers per block of differences: bounds memory at some 32 MB.
_BLOCK = 2**23
# Points the directions of a sketch are fitted on, and rounds of filling in.
_SAMPLE = 2000
_ROUNDS = 8


def nearest_shared(queries: Points, rows: slice, points: Points, k: int) -> NDArray[np.int64]:
    """Return the indices of the ``k`` points nearest to each query, in no order, by matrix products alone."""
    Q, M = queries.Z[rows], _observed(queries)[rows].astype(np.float32)
    # Z is 0 where it is missing, so each square is over the entries observed in its own point.
    squares = M @ np.square(points.Z).T - 2 * (Q @ points.Z.T)
    if points.seen is None:  # a common term of each row does not change its order
        return np.argpartition(squares, k - 1, axis=1)[:, :k].astype(np.int64)
    seen = points.seen.astype(np.float32)
    common = M @ seen.T
    squares += np.square(Q) @ seen.T
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = np.where(common > 0, squares / common, np.inf)
    return np.argpartition(scores, k - 1, axis=1)[:, :k].astype(np.int64)


def rank_shared(
    queries: Points,
    rows: slice,
    points: Points,
    candidates: NDArray[np.int64],
    n_neighbors: int,
    *,
    skip: NDArray[np.int64] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the nearest candidates by the differences themselves; as `frpcag.graphs.points.rank_candidates`."""
    absent = candidates < 0
    if skip is not None:
        absent |= candidates == skip[:, None]
    ids = np.where(absent, 0, candidates)
    Q, M, seen = queries.Z[rows], _observed(queries)[rows], _observed(points)
    p = Q.shape[1]
    squares = np.empty(ids.shape)
    height = max(1, _BLOCK // (ids.shape[1] * p))
    for start in range(0, len(Q), height):
        at = slice(start, start + height)
        both = M[at, None] & seen[ids[at]]
        differences = np.where(both, Q[at, None] - points.Z[ids[at]], np.float32(0))
        common = both.sum(axis=2)
        squares[at] = np.einsum("ijk,ijk->ij", differences, differences) * (p / np.maximum(common, 1))
        squares[at][common == 0] = np.inf
    squares[absent] = np.nan  # behind the infinitely far, which at least are points
    order = np.lexsort((ids, squares), axis=1)[:, :n_neighbors]
    distances = np.sqrt(np.take_along_axis(squares, order, axis=1))
    return np.take_along_axis(ids, order, axis=1), np.where(np.isnan(distances), np.inf, distances)


def completed_components(points: Points, *, rng: np.random.RandomState, run: Callable) -> NDArray[np.float32]:
    """Return principal components of the points, missing entries filled in by those of the others.

    Filling in and projecting take turns (the EM algorithm of a low-rank model), on a sample for the directions, then on
    all points for their components. This is a sketch to find candidates in; they are ranked by true masked distances.
    """
    Z, seen = points.Z, _observed(points)
    n = len(Z)
    at = rng.permutation(n)[:_SAMPLE]
    sample = Z[at]
    for _ in range(_ROUNDS):
        V = _directions(sample)
        sample = np.where(seen[at], Z[at], (sample @ V) @ V.T)

    def components(start: int) -> NDArray[np.float32]:
        rows = slice(start, start + 1024)
        filled = Z[rows]
        for _ in range(_ROUNDS):
            filled = np.where(seen[rows], Z[rows], (filled @ V) @ V.T)
        return filled @ V

    return np.concatenate(run(components, range(0, n, 1024)))


def _directions(sample: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the principal directions that hold 90 % of the variance, at most 64, as columns."""
    _, s, Vt = randomized_svd(sample, min(64, *sample.shape), random_state=0)
    share = np.cumsum(np.square(s)) / max(float(np.square(sample).sum()), np.finfo(np.float32).tiny)
    return np.ascontiguousarray(Vt[: 1 + int(np.searchsorted(share, 0.9))].T)


def _observed(points: Points) -> NDArray[np.bool_]:
    return np.ones(points.Z.shape, dtype=bool) if points.seen is None else points.seen
