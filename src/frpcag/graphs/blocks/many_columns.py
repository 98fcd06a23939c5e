"""The feature graph of very many features: candidates from random combinations of rows, then exact distances.

Where p x p products do not fit, every column is told from the others by some combinations of the rows, a column of
`COMBINATIONS` numbers, whose distances are those of the columns to a few percent. The nearest by these are candidates;
their true distances are sums over row blocks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from frpcag.graphs.blocks.gram import column_graph
from frpcag.graphs.graph import Graph
from frpcag.graphs.neighbors import approximate_neighbors, choose_search, exact_neighbors

Array = np.ndarray

# Combinations of rows, and how many of them each row enters.
COMBINATIONS, _ENTERED = 1024, 8
# Candidates for each neighbour wanted, and a few more.
_CANDIDATES, _MORE = 4, 10
# Rows whose differences are taken at a time.
_ROWS = 256


def combined_rows(X: Array, ids: Array) -> Array:
    """Return random combinations of the rows of a block, NaN as zero; over row blocks these add up.

    Which combinations a row enters, and with which signs, depends on its name alone. Costs ``O(n p)``.
    """
    n = len(ids)
    names = ids.astype(np.uint64)[:, None] * np.uint64(_ENTERED) + np.arange(_ENTERED, dtype=np.uint64)
    bits = _mixed(names)
    signs = 1.0 - 2.0 * (bits >> np.uint64(63)).astype(np.float64)
    into = (bits % np.uint64(COMBINATIONS)).astype(np.int64)
    rows = np.repeat(np.arange(n), _ENTERED)
    S = sp.csr_array((signs.ravel() / np.sqrt(_ENTERED), (into.ravel(), rows)), shape=(COMBINATIONS, n))
    return (S @ np.nan_to_num(X)).astype(np.float32)


def candidates(combined: Array, n_neighbors: int, *, seed: int) -> Array:
    """Return for every column the nearest others by combinations of rows."""
    points = np.ascontiguousarray(combined.T)
    p = len(points)
    k = min(_CANDIDATES * n_neighbors + _MORE, p - 1)
    if choose_search(p, COMBINATIONS) == "exact":
        return exact_neighbors(points, k)[0]
    return approximate_neighbors(points, k, random_state=seed)[0]


def pair_sums(X: Array, pairs: Array) -> tuple[Array, Array]:
    """Return the squared distances of every column to its candidates, and the rows observed in both; these add up.

    Costs ``O(n p)`` a candidate.
    """
    squares, common = np.zeros(pairs.shape), np.zeros(pairs.shape)
    for start in range(0, len(X), _ROWS):
        block = X[start : start + _ROWS].astype(np.float64)
        for j in range(pairs.shape[1]):
            differences = block - block[:, pairs[:, j]]
            squares[:, j] += np.nansum(np.square(differences), axis=0)
            common[:, j] += (~np.isnan(differences)).sum(axis=0)
    return squares, common


def graph_from_pairs(pairs: Array, sums: tuple[Array, Array], n: int, **options: Any) -> Graph:
    """Return the graph of the columns from the sums over their candidates; options as `column_graph` takes them."""
    squares, common = sums
    with np.errstate(divide="ignore", invalid="ignore"):
        lengths = np.sqrt(np.where(common > 0, squares * (n / common), np.inf))
    order = np.lexsort((pairs, lengths), axis=1)
    ordered = (np.take_along_axis(A, order, axis=1) for A in (pairs, lengths))
    return column_graph(*ordered, method="approximate", **options)


def _mixed(names: Array) -> Array:
    """Return numbers with their bits mixed (Steele et al. 2014, SplitMix64)."""
    z = names * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
