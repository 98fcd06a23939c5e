"""Neighbours of the rows of a block, and of the rows of other blocks that ask there."""

from __future__ import annotations

from typing import Any, NamedTuple

import faiss
import numpy as np

from frpcag.dask.cells import Cells
from frpcag.dask.tasks import split_rows
from frpcag.graphs.index import SMALL, Index
from frpcag.graphs.inverted_lists import N_PROBES
from frpcag.graphs.metric import Metric
from frpcag.graphs.points import Points, half_squared_norms
from frpcag.graphs.search import rank
from frpcag.runtime.threads import block_pool

Array = np.ndarray

# Rows that look at the lists of a block at a time; scores computed at a time; rows whose candidates are ranked at a
# time. Constants, since a matrix product may depend on its size in the last bit.
_ROWS, _SCORES, _RANKED = 1 << 14, 1 << 17, 2048


class Options(NamedTuple):
    """How neighbours are searched."""

    n_neighbors: int
    search: str  # "exact" or "approximate"
    seed: int
    metric: Metric


def looks_at_lists(n: int, n_neighbors: int, *, search: str, metric: Metric, has_missing: bool) -> bool:
    """Say whether rows look at the lists near them, in whatever blocks these are, as on one machine.

    Otherwise they are sent as queries to the blocks near them, and whole blocks are searched: exactly, by a robust
    metric, or where entries are missing.
    """
    listed = N_PROBES * np.sqrt(n) / 2  # rows in the lists that one looks at
    return (
        search == "approximate"
        and metric.euclidean
        and not has_missing
        and n > SMALL
        and listed >= 4 * (n_neighbors + 9)
    )


def find_neighbors(
    X: Array,
    ids: Array,
    near: Array,
    queries: tuple[Array, ...] | None,
    cells: Cells | None,
    bounds: Array,
    block: int,
    options: Options,
) -> tuple[Any, Any]:
    """Return the neighbour lists of the block's own rows, and those of its remote queries, for their owners.

    Lists are positions over all blocks, -1 where there are too few, and distances.
    """
    start = int(bounds[block])
    if cells is None or not cells.are_lists:
        own, lists = _among_all(X, queries, start, options)
    else:
        own, lists = _among_lists(X, ids, near, queries, cells, start, block, options.n_neighbors)
    at = np.zeros(0, np.int64) if queries is None else queries[1]
    owner = np.searchsorted(bounds, at, side="right") - 1
    return own, split_rows((at, *lists), np.arange(len(at)), owner, len(bounds) - 1)


def _among_all(X: Array, queries: Any, start: int, options: Options) -> tuple[Any, Any]:
    """Search the rows of the block and its remote queries together."""
    metric, seed = options.metric, options.seed % 2**32
    rows, at = queries[:2] if queries is not None else (X[:0], np.zeros(0, np.int64))
    points = np.concatenate([X, rows]) if len(rows) else X
    positions = np.concatenate([start + np.arange(len(X)), at])
    n = len(points)
    k = min(options.n_neighbors, n - 1)
    if k < 1:
        indices, distances = np.zeros((n, 0), np.int64), np.zeros((n, 0))
    else:
        index = Index(points, metric, method=options.search, random_state=seed, n_jobs=1)
        indices, distances = index.build(k)
    indices = positions[indices]
    # float32: the search is no more accurate, and the lists travel.
    distances = distances.astype(np.float32)
    own = (indices[: len(X)], distances[: len(X)])
    # Lists of blocks with few rows are short: filled up, so that those of all blocks can be stacked.
    short = ((0, 0), (0, options.n_neighbors - k))
    return own, tuple(np.pad(A[len(X) :], short, constant_values=-1) for A in (indices, distances))


def _among_lists(
    X: Array, ids: Array, near: Array, queries: Any, cells: Cells, start: int, block: int, k: int
) -> tuple[Any, Any]:
    """Search the lists of the block that its rows, and its remote queries, look at."""
    Z = cells.view.points(X)
    lists = BlockLists(Z, cells.rank[cells.pieces(near[:, 0], ids)], cells, block)
    everyone = np.arange(len(Z))
    own = lists.search(Z, near, ids, k, skip=everyone)
    theirs = tuple(A[:0] for A in own)
    if queries is not None:
        rows, _, cells_near, index = queries
        theirs = lists.search(rows, cells_near, index, k)
    shifted = [(np.where(found < 0, -1, start + found), distances) for found, distances in (own, theirs)]
    return shifted[0], shifted[1]


class BlockLists:
    """The pieces of cells that are in a block, whose rows are in their order, as inverted lists.

    Parameters
    ----------
    Z : ndarray of shape (n, p)
        Rows of the block, float32.
    rank : ndarray of shape (n,)
        Of the piece of each row, ascending.
    cells : Cells
    block : int
    """

    def __init__(self, Z: Array, rank: Array, cells: Cells, block: int) -> None:
        self._Z, self._cells = Z, cells
        ranks = cells.rank[cells.block_of == block]
        self._first, n_lists = int(ranks.min()), int(np.ptp(ranks)) + 1
        self._starts = np.searchsorted(rank, self._first + np.arange(n_lists + 1))
        seen = cells.view.seen(Z)
        # The half squares as one more column: against queries (-q, 1) the matrix product is the score itself.
        self._points = np.empty((len(Z), seen.shape[1] + 1), np.float32)
        self._points[:, :-1] = seen
        self._points[:, -1] = half_squared_norms(seen)

    def search(self, Z: Array, near: Array, ids: Array, k: int, *, skip: Array | None = None) -> tuple[Array, Array]:
        """Return for rows the nearest of those in the lists they look at, -1 and infinity where there are too few.

        ``skip`` is the place of each row in the block where it is one of its own.
        """
        n_candidates = (k if self._cells.view.basis is None else 4 * k) + 9
        indices, distances = np.empty((len(Z), k), np.int64), np.empty((len(Z), k), np.float32)
        with block_pool(1):
            for start in range(0, len(Z), _ROWS):
                rows = slice(start, min(start + _ROWS, len(Z)))
                candidates = self._candidates(Z[rows], self._cells.looked_at(near[rows], ids[rows]), n_candidates)
                for first in range(start, rows.stop, _RANKED):
                    some = slice(first, min(first + _RANKED, rows.stop))
                    known = candidates[first - start : some.stop - start]
                    own = None if skip is None else skip[some]
                    found, distances[some] = rank(Points(Z[some]), Points(self._Z), known, k, skip=own)
                    indices[some] = np.where(np.isinf(distances[some]), -1, found)
        return indices, distances

    def _candidates(self, Z: Array, looks: Array, n_candidates: int) -> Array:
        """Return candidates from the lists that each row looks at."""
        n_lists = len(self._starts) - 1
        lists = np.where(looks < 0, -1, self._cells.rank[looks] - self._first)
        rows, column = np.nonzero((lists >= 0) & (lists < n_lists))
        asked = lists[rows, column].astype(np.uint16 if n_lists < 1 << 16 else np.int64)
        asking = rows[np.argsort(asked, kind="stable")]  # from "the lists of each row" to "the rows of each list"
        ends = np.concatenate([[0], np.cumsum(np.bincount(asked, minlength=n_lists))])
        queries = np.column_stack([-self._cells.view.seen(Z), np.ones(len(Z), np.float32)])
        heap = faiss.ResultHeap(len(Z), n_candidates)
        room = np.empty(max(_SCORES, int(np.diff(self._starts).max())), np.float32)
        for i in range(n_lists):
            start, stop = self._starts[i], self._starts[i + 1]
            if stop == start:
                continue
            points, height = self._points[start:stop].T, max(1, _SCORES // (stop - start))
            members = np.arange(start, stop)
            for at in range(ends[i], ends[i + 1], height):
                who = asking[at : min(at + height, ends[i + 1])]
                scores = room[: len(who) * len(members)].reshape(len(who), -1)
                heap.add_result_subset(who, np.matmul(queries[who], points, out=scores), members)
        return heap.I
