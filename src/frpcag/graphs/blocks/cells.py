"""Rows in the order of coarse cells, so that neighbours mostly share a block and the others are few."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from frpcag.graphs.inverted_lists import TRAINING_POINTS_PER_LIST, half_squared_norms, nearest, train_centroids
from frpcag.graphs.robust_candidates import frequencies
from frpcag.runtime.tasks import Cluster, Here, Layout, deal, exchange, split_rows, tree_sum
from frpcag.runtime.threads import block_pool

Array = np.ndarray

# Cells per block, and never more than this many: the assignment of a row looks at all of them.
_CELLS_PER_BLOCK, _MAX_CELLS = 16, 4096
# Cells near a row whose blocks search neighbours for it, its own among them.
N_VISITS = 6
_ROWS_AT_A_TIME = 8192
# Directions in which rows that are near by a robust metric are told from others.
_MAPPED = 96


@dataclass
class Cells:
    """Cells around centroids, grouped into blocks of about as many rows each.

    A cell of very many rows (equal ones, say) is cut into pieces; which piece a row is in depends on its index.
    """

    centroids: Array  # (n_cells, p) float32
    first_piece: Array  # (n_cells,)
    n_pieces: Array  # (n_cells,)
    block_of: Array  # of each piece
    rank: Array  # of each piece in the order of the blocks

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return int(self.block_of.max()) + 1

    def pieces(self, cells: Array, index: Array) -> Array:
        """Return the pieces that rows with these cells and indices belong to."""
        return self.first_piece[cells] + index % self.n_pieces[cells]


def order_rows(
    cluster: Here | Cluster,
    chunks: Sequence[Any],
    sizes: Sequence[int],
    *,
    n_blocks: int,
    seed: int,
    width: float | None = None,
) -> tuple[Layout, list[Any], list[Any], list[Any], Cells | None]:
    """Move the rows to blocks of neighbouring cells.

    Parameters
    ----------
    chunks : sequence of results
        Row chunks, centred and scaled; NaN is missing.
    sizes : sequence of int
        Their numbers of rows.
    n_blocks : int
        Blocks wanted; there are fewer when the rows fall into fewer cells.
    width : float, optional
        Of the map of `frpcag.graphs.robust_candidates`, in which rows are then near that are so by a robust metric.

    Returns
    -------
    layout : Layout
    X, ids, visits : lists of results
        Of every block: its rows, where they come from, and the cells near each (none with a single block).
    cells : Cells or None
    """
    starts = np.concatenate([[0], np.cumsum(sizes)])
    n = int(starts[-1])
    n_blocks = min(n_blocks, n)
    if n_blocks == 1:
        homes = deal(cluster, 1)
        whole = cluster.submit(_concatenate, list(chunks), home=homes[0])
        ids = cluster.submit(np.arange, n, home=homes[0])
        return Layout(cluster, [n], homes), [whole], [ids], [cluster.submit(_nothing, n, home=homes[0])], None
    n_cells = max(n_blocks, min(_CELLS_PER_BLOCK * n_blocks, n // 8, _MAX_CELLS))
    share = min(1.0, TRAINING_POINTS_PER_LIST * n_cells / n)
    anywhere = [None for _ in chunks]
    views = list(chunks)
    if width is not None:
        views = cluster.map(_mapped, [(chunk, width, seed) for chunk in chunks], anywhere)
    samples = cluster.map(_sample, [(view, share, seed + i) for i, view in enumerate(views)], anywhere)
    centroids = cluster.submit(_train, samples, n_cells, seed)
    near = cluster.map(_assign, [(view, centroids) for view in views], anywhere)
    del views
    counts = tree_sum(cluster, cluster.map(_count, [(labels, n_cells) for labels in near], anywhere))
    cells = group_cells(cluster.gather(centroids), counts, n_blocks)
    shared = cluster.submit(_same, cells)
    homes = deal(cluster, cells.n_blocks)
    first_rows = [int(start) for start in starts[:-1]]
    routed = cluster.map(_send_home, list(zip(chunks, near, first_rows, [shared] * len(chunks), strict=True)), anywhere)
    blocks = exchange(cluster, routed, homes)
    del routed, near
    layout = Layout(cluster, [0] * len(homes), homes)
    blocks = layout.map(_in_order, blocks, [shared] * len(blocks))
    X, ids, visits = (layout.map(_part, blocks, [k] * len(blocks)) for k in range(3))
    layout.sizes = cluster.gather(layout.map(len, ids))
    return layout, X, ids, visits, cells


def group_cells(centroids: Array, counts: Array, n_blocks: int) -> Cells:
    """Cut cells of too many rows into pieces, and halve the pieces again and again across their widest direction.

    Parameters
    ----------
    centroids : ndarray of shape (n_cells, p)
    counts : ndarray of shape (n_cells,)
        Rows of each cell.
    n_blocks : int
        Blocks wanted; there are at most as many as cells with rows.
    """
    most = max(1, int(counts.sum()) // (4 * n_blocks))
    n_pieces = np.maximum(1, -(-counts // most))
    first_piece = np.concatenate([[0], np.cumsum(n_pieces)[:-1]])
    points = np.repeat(centroids.astype(np.float64), n_pieces, axis=0)
    weights = np.repeat(counts / n_pieces, n_pieces)
    block_of = np.zeros(len(points), np.int64)
    rank = np.zeros(len(points), np.int64)
    filled = np.flatnonzero(weights > 0)
    todo, n_ranked = [(filled, 0, min(n_blocks, len(filled)))], 0
    while todo:
        pieces, block, n_parts = todo.pop()
        spread = (points[pieces] - np.average(points[pieces], axis=0, weights=weights[pieces])) * np.sqrt(
            weights[pieces, None]
        )
        direction = np.linalg.svd(spread, full_matrices=False)[2][0]
        pieces = pieces[np.argsort(points[pieces] @ direction, kind="stable")]
        if n_parts == 1:
            block_of[pieces] = block
            rank[pieces] = np.arange(n_ranked, n_ranked + len(pieces))
            n_ranked += len(pieces)
            continue
        left = n_parts // 2
        share = np.cumsum(weights[pieces]) / weights[pieces].sum()
        cut = int(np.argmin(np.abs(share - left / n_parts))) + 1
        cut = min(max(cut, left), len(pieces) - (n_parts - left))
        todo += [(pieces[cut:], block + left, n_parts - left), (pieces[:cut], block, left)]
    return Cells(centroids, first_piece, n_pieces, block_of, rank)


def visitors(X: Array, visits: Array, ids: Array, cells: Cells, block: int, start: int) -> list[tuple[Array, ...]]:
    """Return for every other block the rows that look for neighbours there too, with their positions."""
    blocks = np.sort(cells.block_of[cells.pieces(visits, ids[:, None])], axis=1)
    away = blocks != block
    away[:, 1:] &= blocks[:, 1:] != blocks[:, :-1]
    rows = np.nonzero(away)[0]
    return split_rows((X, start + np.arange(len(X))), rows, blocks[away], cells.n_blocks)


def _mapped(chunk: Array, width: float, seed: int) -> Array:
    """Return rows in the space of `frpcag.graphs.robust_candidates`, projected to a few directions at random."""
    n, p = chunk.shape
    rng = np.random.RandomState(seed % 2**32)
    waves = frequencies(p, width, rng)
    mixing = (rng.standard_normal((2 * p, _MAPPED)) / np.sqrt(_MAPPED)).astype(np.float32)
    out = np.empty((n, _MAPPED), np.float32)
    with block_pool(1):
        for start in range(0, n, _ROWS_AT_A_TIME):
            rows = slice(start, start + _ROWS_AT_A_TIME)
            angles = np.asarray(chunk[rows], np.float32) * waves
            mapped = np.concatenate([np.cos(angles), np.sin(angles)], axis=1)
            out[rows] = np.nan_to_num(mapped, copy=False, nan=0.0) @ mixing
    return out


def _sample(chunk: Array, share: float, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    size = min(len(chunk), int(np.ceil(share * len(chunk))))
    return _complete(chunk[np.sort(rng.choice(len(chunk), size, replace=False))])


def _train(samples: Sequence[Array], n_cells: int, seed: int) -> Array:
    with block_pool(1) as run:
        return train_centroids(np.concatenate(samples), n_cells, rng=np.random.RandomState(seed % 2**32), run=run)


def _assign(chunk: Array, centroids: Array) -> Array:
    """Return the nearest cell of every row, then others near it."""
    half_squares = half_squared_norms(centroids)
    n_near = min(N_VISITS, len(centroids))
    near = np.empty((len(chunk), 1 + n_near), np.int32)
    with block_pool(1):
        for start in range(0, len(chunk), _ROWS_AT_A_TIME):
            rows = slice(start, start + _ROWS_AT_A_TIME)
            points = _complete(chunk[rows])
            near[rows, :1] = nearest(points, centroids, half_squares, 1)
            near[rows, 1:] = nearest(points, centroids, half_squares, n_near)
    return near


def _count(near: Array, n_cells: int) -> Array:
    return np.bincount(near[:, 0], minlength=n_cells)


def _send_home(chunk: Array, near: Array, start: int, cells: Cells) -> list[tuple[Array, ...]]:
    ids = start + np.arange(len(chunk))
    home = cells.block_of[cells.pieces(near[:, 0], ids)]
    return split_rows((chunk, ids, near), np.arange(len(chunk)), home, cells.n_blocks)


def _in_order(block: tuple[Array, ...], cells: Cells) -> tuple[Array, ...]:
    X, ids, near = block
    order = np.argsort(cells.rank[cells.pieces(near[:, 0], ids)], kind="stable")
    return X[order], ids[order], near[order, 1:]


def _complete(rows: Array) -> Array:
    """Return rows as float32, missing entries at the mean."""
    return np.nan_to_num(np.ascontiguousarray(rows, dtype=np.float32), nan=0.0)


def _concatenate(chunks: Sequence[Array]) -> Array:
    return np.concatenate(chunks)


def _nothing(n: int) -> Array:
    return np.zeros((n, 0), np.int32)


def _part(block: tuple[Array, ...], k: int) -> Array:
    return block[k]


def _same(value: Any) -> Any:
    return value
