"""A matrix cut into row blocks: its rows, the rows of other blocks (its halo) that a block must see, Lanczos."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import getitem
from typing import Any

import numpy as np
import scipy.sparse as sp

from frpcag.dask.tasks import Layout, Maximum, tree_sum
from frpcag.linalg.lanczos import Vectors, combine, look, start_vector, top_eigenvalue

Array = np.ndarray


@dataclass
class LocalGraph:
    """The rows of a symmetric matrix that belong to one block.

    Attributes
    ----------
    rows : csr_array of shape (n_rows, n_rows + n_halo)
        Columns are the block's own rows, then its halo, block by block.
    needs : dict of int to ndarray
        Rows of other blocks that make up the halo, by block, counted from the first row of that block.
    null : ndarray of shape (n_rows,)
        The block's part of a positive vector that the matrix maps to zero.
    """

    rows: sp.csr_array
    needs: dict[int, Array]
    null: Array

    @property
    def n_halo(self) -> int:
        """Rows of other blocks that this one must see."""
        return self.rows.shape[1] - self.rows.shape[0]


def localize(rows: sp.csr_array, bounds: Array, block: int, null: Array | None = None) -> LocalGraph:
    """Return the block's rows of a matrix, given with columns counted over all blocks, with its halo.

    Parameters
    ----------
    rows : csr_array of shape (n_rows, n_nodes)
    bounds : ndarray of shape (n_blocks + 1,)
        First row of each block, and the number of nodes.
    block : int
    null : ndarray of shape (n_rows,), optional
        Ones where not given.
    """
    start, stop = bounds[block], bounds[block + 1]
    columns = rows.indices.astype(np.int64)
    inside = (columns >= start) & (columns < stop)
    outside = np.unique(columns[~inside])
    owner = np.searchsorted(bounds, outside, side="right") - 1
    needs = {int(j): outside[owner == j] - bounds[j] for j in np.unique(owner)}
    n = int(stop - start)
    local = np.where(inside, columns - start, n + np.searchsorted(outside, columns))
    L = sp.csr_array((rows.data, local.astype(np.int32), rows.indptr), shape=(n, n + len(outside)))
    return LocalGraph(L, needs, np.ones(n) if null is None else null)


@dataclass(frozen=True)
class Cut:
    """A run of blocks, the part of a matrix on one worker, among all of them.

    Attributes
    ----------
    index : int
        Which run it is.
    sizes, heights : ndarray of shape (n_blocks,)
        Rows of every block of the matrix, and rows that it takes in the arrays of a worker, padding included.
    firsts : ndarray of shape (n_runs + 1,)
        First block of every run, and the number of blocks.
    """

    index: int
    sizes: Array
    heights: Array
    firsts: Array

    @property
    def blocks(self) -> range:
        """Blocks of this run."""
        return range(int(self.firsts[self.index]), int(self.firsts[self.index + 1]))

    @property
    def tops(self) -> Array:
        """First row of every block over all runs, padding included, and the number of rows."""
        return np.concatenate([[0], np.cumsum(self.heights)]).astype(np.int64)

    @property
    def rows(self) -> list[slice]:
        """Rows of the blocks of this run in its arrays, without their padding."""
        starts = self.tops[self.blocks.start : self.blocks.stop] - self.tops[self.blocks.start]
        sizes = self.sizes[self.blocks.start : self.blocks.stop]
        return [slice(int(a), int(a + n)) for a, n in zip(starts, sizes, strict=True)]


def join_graphs(parts: Sequence[LocalGraph], cut: Cut) -> tuple[sp.csr_array, dict[int, Array]]:
    """Return the rows of a run of blocks as one matrix, and the rows that it needs of every other run.

    Columns are the run's own rows, padding included, then the rows needed, run by run. The entries of a row stay in the
    order of all rows of the matrix: their sums are the same however blocks are dealt to workers.
    """
    tops, ends = cut.tops, cut.tops[cut.firsts]
    first, last = ends[cut.index], ends[cut.index + 1]
    columns, data, counts = [], [], []
    for block, part in zip(cut.blocks, parts, strict=True):
        own = tops[block] + np.arange(part.rows.shape[0])
        place = np.concatenate([own, *(tops[j] + rows for j, rows in part.needs.items())])
        L = sp.csr_array((part.rows.data, place[part.rows.indices], part.rows.indptr), (len(own), int(tops[-1])))
        L = L.sorted_indices()
        columns.append(L.indices.astype(np.int64))
        data.append(L.data)
        counts.append(np.pad(np.diff(L.indptr), (0, int(cut.heights[block]) - len(own))))
    at, n = np.concatenate(columns), int(last - first)
    inside = (at >= first) & (at < last)
    outside = np.unique(at[~inside])
    local = np.where(inside, at - first, n + np.searchsorted(outside, at)).astype(np.int32)
    ptr = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
    owner = np.searchsorted(ends, outside, side="right") - 1
    needs = {int(j): outside[owner == j] - ends[j] for j in np.unique(owner)}
    return sp.csr_array((np.concatenate(data), local, ptr), shape=(n, n + len(outside))), needs


class Halo:
    """Which rows each block needs from the others; the lists of rows stay on the workers."""

    def __init__(self, layout: Layout, parts: Sequence[Any]) -> None:
        """Ask every block (a result that is a `LocalGraph`) what it needs."""
        self.layout = layout
        needed = layout.cluster.gather(layout.map(_needed_blocks, parts))
        pairs = [(i, j) for i, blocks in enumerate(needed) for j in blocks]
        rows = layout.cluster.map(_need, [(parts[i], j) for i, j in pairs], [layout.owners[j] for _, j in pairs])
        self.pairs = dict(zip(pairs, rows, strict=True))

    def fetch(self, parts: Sequence[Any]) -> list[list[Any]]:
        """Return for every block the pieces of its halo, rows of every block it needs some of.

        Only the rows picked travel: they are picked where their block lives.
        """
        owners = [self.layout.owners[j] for _, j in self.pairs]
        tasks = [(parts[j], rows) for (_, j), rows in self.pairs.items()]
        fetched: list[list[Any]] = [[] for _ in parts]
        for (i, _), piece in zip(self.pairs, self.layout.cluster.map(getitem, tasks, owners), strict=True):
            fetched[i].append(piece)
        return fetched


def largest_block_eigenvalue(
    layout: Layout, parts: Sequence[Any], ids: Sequence[Any], halo: Halo, *, on_client: int = 1 << 18
) -> float:
    """Return an upper estimate of the largest eigenvalue of a matrix in row blocks.

    Parameters
    ----------
    layout : Layout
    parts : sequence of results
        A `LocalGraph` each.
    ids : sequence of results
        Which node each row of a block is.
    halo : Halo
    on_client : int, default=262144
        With so many rows or fewer the matrix comes to the client, which takes the steps of the host. Of more rows, each
        step is a round of the cluster.
    """
    cluster = layout.cluster
    bound = tree_sum(cluster, layout.map(_gershgorin, parts)).value
    sizes = np.array(cluster.gather(layout.map(len, ids)))
    if sizes.sum() <= on_client and bound > 0:
        whole = Cut(0, sizes, sizes, np.array([0, len(sizes)]))
        A = join_graphs(cluster.gather(parts), whole)[0] / bound
        return top_eigenvalue(Vectors(start_vector(np.concatenate(cluster.gather(ids))), lambda v: A @ v), bound)
    # Blocks each block needs rows of, in the order of its halo.
    neighbours = [[j for i, j in halo.pairs if i == block] for block in range(len(parts))]

    def apply(v: list[Any]) -> list[Any]:
        # Whole parts of neighbours, not the rows needed: a vector is small, and a task for every pair of blocks
        # would take longer than to move it.
        near = [[v[j] for j in blocks] for blocks in neighbours]
        return layout.map(_apply, parts, v, near, [bound for _ in v])

    vectors = Vectors(
        start=layout.map(start_vector, ids),
        apply=apply,
        look=lambda v, image: tree_sum(cluster, layout.map(look, v, image)),
        combine=lambda numbers, *some: layout.map(combine, [numbers for _ in parts], *some),
        steps=40,  # each is a round of the cluster
    )
    return top_eigenvalue(vectors, bound)


def _apply(part: LocalGraph, v: Array, near: Sequence[Array], bound: float) -> Array:
    halo = [other[rows] for other, rows in zip(near, part.needs.values(), strict=True)]
    return part.rows @ np.concatenate([v, *halo]) / bound


def _gershgorin(part: LocalGraph) -> Maximum:
    return Maximum(float(abs(part.rows).sum(axis=1).max(initial=0.0)))


def _needed_blocks(part: LocalGraph) -> list[int]:
    return list(part.needs)


def _need(part: LocalGraph, block: int) -> Array:
    return part.needs[block]
