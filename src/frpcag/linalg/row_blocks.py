"""A graph cut into row blocks: what a block holds, and the rows of other blocks (its halo) that it must see."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from frpcag.cluster import Layout

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


class Halo:
    """Who needs which rows of whom; the lists of rows stay on the workers."""

    def __init__(self, layout: Layout, parts: Sequence[Any]) -> None:
        """Ask every block (a result that is a `LocalGraph`) what it needs."""
        self.layout = layout
        owners = layout.cluster.gather(layout.map(_owners, parts))
        pairs = [(i, j) for i, here in enumerate(owners) for j in here]
        rows = layout.cluster.map(_need, [(parts[i], j) for i, j in pairs], [layout.homes[j] for _, j in pairs])
        self.pairs = dict(zip(pairs, rows, strict=True))

    def fetch(self, parts: Sequence[Any], pick: Callable[[Any, Array], Array]) -> list[list[Any]]:
        """Return for every block the pieces of its halo, ``pick(part, rows)`` of every block it needs rows of.

        Only the rows picked travel: they are picked where their block lives.
        """
        homes = [self.layout.homes[j] for _, j in self.pairs]
        tasks = [(parts[j], rows) for (_, j), rows in self.pairs.items()]
        fetched: list[list[Any]] = [[] for _ in parts]
        for (i, _), piece in zip(self.pairs, self.layout.cluster.map(pick, tasks, homes), strict=True):
            fetched[i].append(piece)
        return fetched

    @property
    def n_pieces(self) -> int:
        """Pieces that change blocks in every step."""
        return len(self.pairs)


def _owners(part: LocalGraph) -> list[int]:
    return list(part.needs)


def _need(part: LocalGraph, block: int) -> Array:
    return part.needs[block]
