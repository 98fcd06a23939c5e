"""Rows in the order of coarse cells, so that neighbours mostly share a block and the others are few."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import getitem
from typing import Any

import numpy as np
import scipy.sparse as sp

from frpcag.dask.partition import cut_cells, group_pieces, piece_links
from frpcag.dask.tasks import Cluster, Here, Layout, add_up, deal, exchange, same, split_rows, tree_sum
from frpcag.graphs.inverted_lists import N_PROBES, TRAINING_POINTS_PER_LIST, TRAINING_STEPS, cell_sums, moved
from frpcag.graphs.points import half_squared_norms, scored
from frpcag.graphs.sketch import FITTED, MAX_DIMENSION, frequencies, principal_directions
from frpcag.runtime.threads import block_pool

Array = np.ndarray

# Where whole blocks are searched: cells per block, never more than this many, and the cells near a row
# whose blocks search neighbours for it, its own among them.
_CELLS_PER_BLOCK, _MAX_CELLS = 16, 4096
N_ASKED = 6
# Cells nearest to a row that say which cells have neighbours in each other.
_LINKED = 4
# Pieces of a cut cell that a row looks at.
_LOOKS = 4
_ROWS_AT_A_TIME = 8192
# Samples are held in so many parts at most.
_SAMPLE_PARTS = 16
# Directions in which rows that are near by a robust metric are told from others.
_MAPPED = 96


@dataclass
class View:
    """The space in which cells are: of the rows, of their principal components, or of a map for a robust metric.

    Attributes
    ----------
    shift : ndarray of shape (p,)
        Taken off the rows, which are float32 then: a common offset would cost digits.
    basis : ndarray of shape (p, d) or None
        Principal directions, for many features.
    width : float or None
        Of the map of `frpcag.graphs.sketch`, in which rows are near that are so by a robust metric.
    seed : int
        Of the map.
    """

    shift: Array
    basis: Array | None
    width: float | None
    seed: int

    def points(self, X: Array) -> Array:
        """Return rows as float32, missing entries at the mean."""
        out = np.empty(X.shape, np.float32)
        for start in range(0, len(X), _ROWS_AT_A_TIME):
            rows = slice(start, start + _ROWS_AT_A_TIME)
            np.subtract(X[rows], self.shift, out=out[rows], casting="same_kind")
        return np.nan_to_num(out, copy=False, nan=0.0)

    def seen(self, Z: Array) -> Array:
        """Return points in the space of the cells."""
        return Z if self.basis is None else Z @ self.basis

    def __call__(self, X: Array) -> Array:
        """Return rows in the space of the cells."""
        return self.seen(self.points(X)) if self.width is None else _mapped(X, self.width, self.seed)


@dataclass
class Cells:
    """Cells around centroids, grouped into blocks of about as many rows each.

    A cell of very many rows (equal ones, say) is cut into pieces; which piece a row is in depends on its index.
    """

    centroids: Array  # (n_cells, d) float32
    first_piece: Array  # (n_cells,)
    n_pieces: Array  # (n_cells,)
    block_of: Array  # of each piece, -1 where it has no rows
    rank: Array  # of each piece in the order of the blocks
    view: View
    are_lists: bool  # whether a row looks for neighbours in the cells near it alone, not in all of their blocks

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return int(self.block_of.max()) + 1

    def pieces(self, cells: Array, index: Array, turn: int = 0) -> Array:
        """Return the pieces that rows with these cells and indices belong to, or others of the same cells."""
        return self.first_piece[cells] + (index + turn) % self.n_pieces[cells]

    def looked_at(self, near: Array, ids: Array) -> Array:
        """Return the pieces that rows look at, -1 for none: of every cell near them a few at most."""
        turns = range(min(_LOOKS, int(self.n_pieces.max())) if self.are_lists else 1)
        looks = [self.pieces(near, ids[:, None], turn) for turn in turns]
        for turn in turns[1:]:
            looks[turn][self.n_pieces[near] <= turn] = -1
        return np.concatenate(looks, axis=1)


def order_rows(
    cluster: Here | Cluster,
    chunks: Sequence[Any],
    sizes: Sequence[int],
    *,
    n_blocks: int,
    seed: int,
    width: float | None = None,
    lists: bool = False,
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
        Of the map of `frpcag.graphs.sketch`, in which rows are then near that are so by a robust metric.
    lists : bool, default=False
        Whether cells are to serve the search as inverted lists, as many and as large as on one machine.

    Returns
    -------
    layout : Layout
    X, ids, near : lists of results
        Of every block: its rows, where they come from, and the cells near each, nearest first (none with one block).
    cells : Cells or None
    """
    starts = np.concatenate([[0], np.cumsum(sizes)])
    n = int(starts[-1])
    n_blocks = min(n_blocks, n)
    anywhere = [None for _ in chunks]
    ids = cluster.map(np.arange, [(int(a), int(b)) for a, b in pairwise(starts)], anywhere)
    if n_blocks == 1:
        owners = deal(cluster, 1)
        X, ids = ([cluster.submit(np.concatenate, list(parts), owner=owners[0])] for parts in (chunks, ids))
        return Layout(cluster, [n], owners), X, ids, [cluster.submit(np.zeros, (n, 0), owner=owners[0])], None
    wanted = int(2 * np.sqrt(n)) if lists else min(_CELLS_PER_BLOCK * n_blocks, n // 8, _MAX_CELLS)
    n_cells, rng = max(n_blocks, wanted), np.random.default_rng(seed)

    def some(size: int) -> list[Any]:
        rows = np.sort(rng.choice(n, min(n, size), replace=False))
        parts = np.split(rows, np.searchsorted(rows, starts[1:-1]))
        tasks = [(chunk, part - start) for chunk, part, start in zip(chunks, parts, starts[:-1], strict=True)]
        return cluster.map(getitem, tasks, anywhere)

    view = _look(np.concatenate(cluster.gather(some(FITTED))), width, seed)
    shared = cluster.submit(same, view)
    sample = cluster.map(_seen, [(part, shared) for part in some(TRAINING_POINTS_PER_LIST * n_cells)], anywhere)
    centroids = _train(cluster, sample, n_cells)
    n_near = min(N_PROBES if lists else N_ASKED, n_cells)
    near = cluster.map(_assign, [(chunk, shared, centroids, n_near) for chunk in chunks], anywhere)
    counts, links = tree_sum(cluster, cluster.map(_count, [(found, n_cells) for found in near], anywhere))
    cells = group_cells(cluster.gather(centroids), counts, links, n_blocks, view=view, lists=lists)
    shared = cluster.submit(same, cells)
    owners = deal(cluster, cells.n_blocks)
    tasks = [(chunk, at, found, shared) for chunk, at, found in zip(chunks, ids, near, strict=True)]
    blocks = exchange(cluster, cluster.map(_to_owners, tasks, anywhere), owners)
    del near, tasks
    layout = Layout(cluster, [0] * len(owners), owners)
    blocks = layout.map(_in_order, blocks, [shared] * len(blocks))
    X, ids, near = (layout.map(getitem, blocks, [k] * len(blocks)) for k in range(3))
    layout.sizes = cluster.gather(layout.map(len, ids))
    return layout, X, ids, near, cells


def group_cells(
    centroids: Array, counts: Array, links: sp.csr_array, n_blocks: int, *, view: View, lists: bool = False
) -> Cells:
    """Cut cells of too many rows into pieces, and group the pieces into blocks.

    Parameters
    ----------
    centroids : ndarray of shape (n_cells, d)
    counts : ndarray of shape (n_cells,)
        Rows of each cell.
    links : csr_array of shape (n_cells, n_cells)
        How many rows of a cell are near another one.
    n_blocks : int
        Blocks wanted; there are at most as many as cells with rows.
    view, lists
        Kept; see `Cells`.
    """
    n = int(counts.sum())
    most = n // (4 * n_blocks)
    if lists:  # rows that coincide share a list however many they are, and each of them would look through all of it
        most = min(most, 1 + 8 * n // len(counts))
    first_piece, n_pieces = cut_cells(counts, most)
    points = np.repeat(centroids.astype(np.float64), n_pieces, axis=0)
    weights = np.repeat(counts / n_pieces, n_pieces)
    block_of, rank = group_pieces(points, weights, piece_links(links, first_piece, n_pieces), n_blocks)
    return Cells(centroids, first_piece, n_pieces, block_of, rank, view, lists)


def remote_queries(X: Array, near: Array, ids: Array, cells: Cells, block: int, start: int) -> list[tuple[Array, ...]]:
    """Return for every other block the rows that look for neighbours there too: their positions, cells and ids."""
    looks = cells.looked_at(near, ids)
    blocks = np.where(looks < 0, -1, cells.block_of[looks])
    blocks[blocks < 0] = block
    blocks.sort(axis=1)
    away = blocks != block
    away[:, 1:] &= blocks[:, 1:] != blocks[:, :-1]
    rows = np.nonzero(away)[0]
    if cells.are_lists:
        X = cells.view.points(X)
    return split_rows((X, start + np.arange(len(X)), near, ids), rows, blocks[away], cells.n_blocks)


def _look(rows: Array, width: float | None, seed: int) -> View:
    """Return how to look at the rows, from some of them."""
    observed = np.maximum((~np.isnan(rows)).sum(axis=0), 1)
    shift = np.nansum(rows, axis=0, dtype=np.float64) / observed
    view = View(shift.astype(rows.dtype), None, width, seed)
    if width is None and rows.shape[1] > MAX_DIMENSION:
        view.basis = principal_directions(view.points(rows))
    return view


def _mapped(chunk: Array, width: float, seed: int) -> Array:
    """Return rows in the space of `frpcag.graphs.sketch`, projected to a few directions at random."""
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


def _seen(rows: Array, view: View) -> Array:
    with block_pool(1):
        return view(rows)


def _train(cluster: Here | Cluster, sample: Sequence[Any], n_cells: int) -> Any:
    """Return centroids of cells by k-means on a sample, every part of it where it is."""
    group = -(-len(sample) // _SAMPLE_PARTS)
    groups = [(sample[i : i + group],) for i in range(0, len(sample), group)]
    # Dask would do all sums where the first centroids are made, of all parts: each has an owner instead.
    owners = deal(cluster, len(groups))
    parts = cluster.map(np.concatenate, groups, owners)
    centroids = cluster.submit(_first_centroids, parts, n_cells)
    for _ in range(TRAINING_STEPS):
        sums = cluster.map(_cell_sums, [(part, centroids) for part in parts], owners)
        centroids = cluster.submit(_means, sums, centroids)
    return centroids


def _first_centroids(parts: Sequence[Array], n_cells: int) -> Array:
    """Return points of the sample, evenly spaced."""
    everyone = np.concatenate(parts)
    return everyone[np.linspace(0, len(everyone) - 1, n_cells).astype(np.int64)]


def _cell_sums(sample: Array, centroids: Array) -> tuple[Array, Array]:
    """Return the sums of the points nearest to every centroid, and their numbers."""
    with block_pool(1) as run:
        return cell_sums(sample, centroids, run)


def _means(parts: Sequence[tuple[Array, Array]], centroids: Array) -> Array:
    """Return the centroids moved to the means of their points."""
    return moved(centroids, *add_up(parts))


def _assign(chunk: Array, view: View, centroids: Array, n_near: int) -> Array:
    """Return the cells nearest to every row, the nearest first."""
    out = np.empty((len(chunk), n_near), np.uint16 if len(centroids) < 1 << 16 else np.int32)
    with block_pool(1):
        for start in range(0, len(chunk), _ROWS_AT_A_TIME):
            rows = slice(start, start + _ROWS_AT_A_TIME)
            out[rows] = _nearest_cells(view(chunk[rows]), centroids, n_near)
    return out


def _nearest_cells(points: Array, centroids: Array, n_near: int) -> Array:
    half_squares = half_squared_norms(centroids)
    found = np.empty((len(points), n_near), np.int64)
    with block_pool(1):
        for start in range(0, len(points), _ROWS_AT_A_TIME):
            rows = slice(start, start + _ROWS_AT_A_TIME)
            found[rows] = scored(points[rows], centroids, half_squares, n_near)[0]
    return found


def _count(near: Array, n_cells: int) -> tuple[Array, sp.csr_array]:
    """Return the rows of every cell, and how many of them have which other cell next to it."""
    others = near[:, 1:_LINKED].astype(np.int64)
    own = np.broadcast_to(near[:, :1].astype(np.int64), others.shape)
    keys, numbers = np.unique(own * n_cells + others, return_counts=True)
    links = sp.csr_array((numbers.astype(np.float64), np.divmod(keys, n_cells)), shape=(n_cells, n_cells))
    return np.bincount(near[:, 0], minlength=n_cells), links


def _to_owners(chunk: Array, ids: Array, near: Array, cells: Cells) -> list[tuple[Array, ...]]:
    owner = cells.block_of[cells.pieces(near[:, 0], ids)]
    return split_rows((chunk, ids, near), np.arange(len(chunk)), owner, cells.n_blocks)


def _in_order(block: tuple[Array, ...], cells: Cells) -> tuple[Array, ...]:
    _, ids, near = block
    order = np.argsort(cells.rank[cells.pieces(near[:, 0], ids)], kind="stable")
    return tuple(A[order] for A in block)
