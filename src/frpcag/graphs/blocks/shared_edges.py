"""How many edges two graphs over row blocks have in common, whatever order each has its nodes in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from frpcag.linalg.row_blocks import Halo, LocalGraph
from frpcag.runtime.tasks import exchange, split_rows, tree_sum

Array = np.ndarray


def shared_edges(
    first: tuple[Halo, Sequence[Any], Sequence[Any]], second: tuple[Halo, Sequence[Any], Sequence[Any]], n_nodes: int
) -> tuple[int, int]:
    """Return how many edges of the first graph the second has too, and how many the first has; each from both ends.

    A graph is its halo, its parts (`LocalGraph`) and the names of the nodes of every part. Edges meet by the names of
    their ends, in as many shares as the first graph has blocks: ``8 nnz`` bytes of each graph change workers.
    """
    layout = first[0].layout
    n_shares = len(layout.sizes)
    edges = []
    for halo, parts, ids in (first, second):
        near = halo.fetch(ids, _pick)
        blocks = halo.layout.map(_named_edges, parts, ids, near, [(n_nodes, n_shares) for _ in parts])
        edges.append(exchange(layout.cluster, blocks, layout.homes))
    return tree_sum(layout.cluster, layout.map(_count, *edges))


def _pick(ids: Array, rows: Array) -> Array:
    return ids[rows]


def _named_edges(part: LocalGraph, ids: Array, near: Sequence[Array], numbers: tuple[int, int]) -> list[Any]:
    """Return the edges of a block as a number each, for every share."""
    n_nodes, n_shares = numbers
    ends = part.rows.tocoo()
    linked = (ends.row != ends.col) & (ends.data != 0)
    names = np.concatenate([ids, *near])
    rows, columns = (names[at[linked]] for at in (ends.row, ends.col))
    edges = rows * n_nodes + columns
    return split_rows((edges,), np.arange(len(edges)), rows * n_shares // n_nodes, n_shares)


def _count(first: tuple[Array], second: tuple[Array]) -> tuple[int, int]:
    return len(np.intersect1d(first[0], second[0], assume_unique=True)), len(first[0])
