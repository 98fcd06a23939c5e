"""The sample graph over row blocks: neighbours searched inside blocks with overlap, merged, symmetrised, cut up."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import getitem
from typing import Any

import numpy as np
import scipy.sparse as sp

from frpcag.dask.cells import Cells, remote_queries
from frpcag.dask.row_blocks import Halo, LocalGraph, largest_block_eigenvalue, localize
from frpcag.dask.search import Options, find_neighbors
from frpcag.dask.tasks import Layout, exchange, same, split_rows, tree_sum
from frpcag.graphs.index import Index, choose_search
from frpcag.graphs.laplacian import degrees, laplacian_rows, null_vector
from frpcag.graphs.metric import EUCLIDEAN, Metric
from frpcag.graphs.weights import gaussian_weights

Array = np.ndarray
Edges = tuple[Array, Array, Array]  # row within the block, neighbour's position over all blocks, distance

logger = logging.getLogger("frpcag")

# Rows whose found neighbours are compared with their true ones.
_CHECKED_ROWS = 200


@dataclass
class BlockGraph:
    """The graph of the samples, its rows on the workers that hold the rows of ``X``.

    Attributes
    ----------
    parts : list of results
        A `LocalGraph` each: rows of the Laplacian.
    ids : list of results
        Which row of the caller's matrix each of its nodes is.
    halo : Halo
        Rows of other blocks each block needs.
    n_nodes, n_edges, n_halo : int
        Rows, edges (each counted once), and halo rows of all blocks together.
    lmax : float
        Upper estimate of the Laplacian's largest eigenvalue.
    sigma : float or None
        Width of the Gaussian weights.
    method : str
        How the edges were found.
    normalized : bool
        Whether the Laplacian is the normalised one.
    recall : float
        Share of the nearest neighbours found, on some rows; NaN for a graph that was given.
    metric : str or None
        By which neighbours were found; None for a graph whose edges were given.
    """

    parts: list[Any]
    ids: list[Any] = field(repr=False)
    halo: Halo = field(repr=False)
    n_nodes: int
    n_edges: int
    n_halo: int
    lmax: float
    sigma: float | None
    method: str
    normalized: bool
    recall: float
    metric: str | None = None


def search_graph(
    layout: Layout,
    X: Sequence[Any],
    ids: Sequence[Any],
    near: Sequence[Any],
    cells: Cells | None,
    *,
    n_features: int,
    n_neighbors: int,
    sigma: str | float,
    normalized: bool,
    method: str,
    seed: int,
    metric: Metric = EUCLIDEAN,
) -> BlockGraph:
    """Build the k-NN graph of row blocks (Shahid et al. 2016, Sec. III).

    Every row looks for neighbours in its own block and in those of the cells near it; what it finds is merged.
    With one block the graph is that of `build_graph`.

    Parameters
    ----------
    layout : Layout
    X, ids, near, cells
        As `order_rows` gives.
    n_features : int
        Columns of ``X``.
    n_neighbors, sigma
        As in `build_graph`.
    normalized : bool
        Whether to take the normalised Laplacian.
    method : {"auto", "exact", "approximate"}
        Search inside a block.
    seed : int
        Of the approximate search.
    metric : Metric, default=EUCLIDEAN
        In the units of ``X``.
    """
    cluster, bounds, blocks = layout.cluster, layout.bounds, range(len(layout.sizes))
    starts = [int(start) for start in bounds[:-1]]
    queries: list[Any] = [None for _ in blocks]
    shared = [cluster.submit(same, cells) for _ in blocks[:1]] * len(blocks)
    if cells is not None:
        queries = exchange(cluster, layout.map(remote_queries, X, near, ids, shared, blocks, starts), layout.owners)
    n = int(bounds[-1])
    # As on one machine: blocks of a matrix too large for brute force are often small enough, and would take longer.
    search = choose_search(n, n_features, method=method, metric=metric)
    options = [Options(n_neighbors, search, seed, metric) for _ in blocks]
    found = layout.map(find_neighbors, X, ids, near, queries, shared, [bounds for _ in blocks], blocks, options)
    del queries
    own, theirs = (layout.map(getitem, found, [i for _ in blocks]) for i in (0, 1))
    returned = exchange(cluster, theirs, layout.owners)
    edges = layout.map(_merge, own, returned, starts, [n_neighbors for _ in blocks])
    del found, own, theirs, returned
    total, count = tree_sum(cluster, layout.map(_lengths, edges))
    if sigma == "auto":
        sigma = float(total) / max(int(count), 1)
    weighted = layout.map(_weigh, edges, [float(sigma) for _ in blocks])
    back = exchange(cluster, layout.map(_turn, weighted, [bounds for _ in blocks], starts), layout.owners)
    rows = layout.map(_adjacency, weighted, back, [bounds for _ in blocks], blocks)
    del weighted, back
    recall = _recall(layout, X, edges, n_neighbors, metric) if n_neighbors < bounds[-1] else 1.0
    logger.info(
        "sample graph over %d blocks: recall %.3f of the %d nearest neighbours, on %d rows compared with exact search",
        len(blocks), recall, n_neighbors, min(_CHECKED_ROWS, int(bounds[-1])),
    )  # fmt: skip
    # Blocks see but part of the rows: the search is known to be exact where it was compared for all of them.
    found_exactly = (len(blocks) == 1 and search == "exact") or (recall == 1.0 and n <= _CHECKED_ROWS)
    known = {"sigma": float(sigma), "method": "exact" if found_exactly else "approximate", "metric": metric.name}
    return laplacian_blocks(layout, rows, ids, normalized=normalized, recall=float(recall), **known)


def given_graph(layout: Layout, ids: Sequence[Any], A: sp.csr_array, **known: Any) -> BlockGraph:
    """Cut a graph whose weights are known, nodes in the order of the caller's rows, into the blocks."""
    order = np.concatenate(layout.cluster.gather(list(ids)))
    position = np.empty_like(order)
    position[order] = np.arange(len(order))
    bounds, rows = layout.bounds, []
    for j, owner in enumerate(layout.owners):
        part = A[order[bounds[j] : bounds[j + 1]]]
        part = sp.csr_array((part.data, position[part.indices], part.indptr), shape=part.shape).sorted_indices()
        rows.append(layout.cluster.submit(same, part, owner=owner))
    return laplacian_blocks(layout, rows, ids, recall=np.nan, **known)


def laplacian_blocks(
    layout: Layout, rows: Sequence[Any], ids: Sequence[Any], *, normalized: bool, **known: Any
) -> BlockGraph:
    """Return the graph of symmetric weights, given as a block of rows with columns over all blocks each.

    ``known`` are fields of `BlockGraph`, as they come.
    """
    blocks = range(len(layout.sizes))
    weights = layout.map(localize, rows, [layout.bounds for _ in blocks], blocks)
    halo = Halo(layout, weights)
    degree = layout.map(_degrees, weights)
    parts = layout.map(_laplacian, weights, degree, halo.fetch(degree), [normalized for _ in blocks])
    n_edges, n_halo = tree_sum(layout.cluster, layout.map(_size, weights))
    return BlockGraph(
        parts, list(ids), halo, int(layout.bounds[-1]), int(n_edges) // 2, int(n_halo),
        largest_block_eigenvalue(layout, parts, ids, halo), normalized=normalized, **known,
    )  # fmt: skip


def _merge(own: tuple[Array, Array], returned: Edges, start: int, k: int) -> Edges:
    """Return the ``k`` nearest of all neighbours found for each row, here and in other blocks."""
    at, indices, distances = returned
    n = len(own[0])
    rows = np.concatenate([np.repeat(np.arange(n), own[0].shape[1]), np.repeat(at - start, indices.shape[1])])
    ends = np.concatenate([own[0].ravel(), indices.ravel()])
    lengths = np.concatenate([own[1].ravel(), distances.ravel()])
    known = (ends >= 0) & np.isfinite(lengths)  # rows that share no observed entry are not linked
    rows, ends, lengths = (A[known] for A in (rows, ends, lengths))
    # One integer to sort by is several times faster than two keys. Neighbours found twice are next to each other then.
    order = np.argsort(rows * (1 + ends.max(initial=0)) + ends, kind="stable")
    rows, ends, lengths = rows[order], ends[order], lengths[order]
    first = np.ones(len(rows), bool)
    first[1:] = (rows[1:] != rows[:-1]) | (ends[1:] != ends[:-1])
    rows, ends, lengths = rows[first], ends[first], lengths[first]
    # Bits of floats that are not negative are ordered as the floats are.
    order = np.argsort((rows << 32) + lengths.view(np.uint32).astype(np.int64), kind="stable")
    rows, ends, lengths = rows[order], ends[order], lengths[order]
    begin = np.searchsorted(rows, np.arange(n))
    kept = np.arange(len(rows)) - begin[rows] < k
    return rows[kept], ends[kept], lengths[kept]


def _lengths(edges: Edges) -> tuple[float, int]:
    return float(edges[2].sum(dtype=np.float64)), len(edges[2])


def _weigh(edges: Edges, sigma: float) -> Edges:
    """Return half the weight of every edge found: the other half comes from its other end."""
    return edges[0], edges[1], gaussian_weights(edges[2], sigma) / 2


def _turn(edges: Edges, bounds: Array, start: int) -> list[tuple[Array, ...]]:
    """Return the edges seen from their other ends, for the blocks of these."""
    rows, ends, weights = edges
    owner = np.searchsorted(bounds, ends, side="right") - 1
    return split_rows((ends, start + rows, weights), np.arange(len(rows)), owner, len(bounds) - 1)


def _adjacency(edges: Edges, back: Edges, bounds: Array, block: int) -> sp.csr_array:
    rows = np.concatenate([edges[0], back[0] - bounds[block]])
    ends, weights = (np.concatenate([mine, theirs]) for mine, theirs in zip(edges[1:], back[1:], strict=True))
    shape = (int(bounds[block + 1] - bounds[block]), int(bounds[-1]))
    A = sp.csr_array((weights, (rows, ends)), shape=shape)
    A.sum_duplicates()
    return A


def _degrees(weights: LocalGraph) -> Array:
    return degrees(weights.rows)


def _size(weights: LocalGraph) -> tuple[int, int]:
    return weights.rows.nnz, weights.n_halo


def _laplacian(weights: LocalGraph, degree: Array, halo: Sequence[Array], normalized: bool) -> LocalGraph:
    """Return the block's rows of the Laplacian."""
    L = laplacian_rows(weights.rows, np.concatenate([degree, *halo]), normalized=normalized)
    return LocalGraph(L, weights.needs, null_vector(degree, normalized=normalized))


def _recall(layout: Layout, X: Sequence[Any], edges: Sequence[Any], k: int, metric: Metric) -> float:
    """Return the share of true neighbours among those found, on rows spread over all blocks."""
    cluster, bounds = layout.cluster, layout.bounds
    checked = np.unique(np.linspace(0, bounds[-1] - 1, min(int(bounds[-1]), _CHECKED_ROWS)).astype(np.int64))
    inside = [checked[(checked >= a) & (checked < b)] - a for a, b in pairwise(bounds)]
    queries = cluster.submit(np.concatenate, layout.map(getitem, X, inside))
    nearest = layout.map(_nearest, X, [queries for _ in X], [(k, metric) for _ in X])
    true = cluster.submit(_nearest_of_all, nearest, k)
    offsets = np.cumsum([0, *map(len, inside[:-1])]).tolist()
    hits, all_of_them = tree_sum(cluster, layout.map(_hits, edges, inside, [true for _ in X], offsets))
    return float(hits) / all_of_them if all_of_them else 1.0


def _nearest(X: Array, queries: Array, options: tuple[int, Metric]) -> Array:
    """Return the distances from each query to the nearest rows of the block."""
    k, metric = options
    return Index(X, metric, method="exact", n_jobs=1).query(queries, min(k + 1, len(X)))[1]


def _nearest_of_all(nearest: Sequence[Array], k: int) -> Array:
    """Return the distances of each query to its k neighbours; the nearest row of all is the query itself."""
    return np.sort(np.concatenate(nearest, axis=1), axis=1)[:, 1 : k + 1]


def _hits(edges: Edges, rows: Array, true: Array, offset: int) -> tuple[int, int]:
    """Return how many neighbours of some rows were found, and how many these have."""
    place = np.full(1 + max(edges[0].max(initial=0), rows.max(initial=0)), -1)
    place[rows] = np.arange(len(rows))
    at = place[edges[0]]
    # Up to the rounding of the search, which differs between blocks.
    limit = true[offset + np.maximum(at, 0), -1] * (1 + 1e-4)
    n_true = np.isfinite(true[offset : offset + len(rows)]).sum()
    return int(((at >= 0) & (edges[2] <= limit)).sum()), int(n_true)
