"""The feature graph from sums over rows: distances between columns need no column in one place."""

from __future__ import annotations

import numpy as np

from frpcag.graphs.graph import Graph, weighted_graph
from frpcag.graphs.weights import edges_to_matrix, gaussian_weights, mean_length

Array = np.ndarray
Sums = tuple[Array, Array, Array]

# Rows per block of the sums: bounds the float64 copies of a float32 block.
_BLOCK = 4096


def column_products(X: Array) -> Sums:
    """Return ``X' X``, ``(X * X)' M`` and ``M' M`` in float64, ``M`` one where ``X`` is observed, zero where it is NaN.

    These add up over row blocks. Costs ``O(n p^2)``; the last two are cheap when nothing is missing.
    """
    p = X.shape[1]
    gram, squares, common = np.zeros((p, p)), np.zeros((p, p)), np.zeros((p, p))
    for start in range(0, len(X), _BLOCK):
        block = X[start : start + _BLOCK].astype(np.float64)
        seen = ~np.isnan(block)
        if seen.all():
            gram += block.T @ block
            squares += np.square(block).sum(axis=0)[:, None]
            common += len(block)
        else:
            block, M = np.where(seen, block, 0.0), seen.astype(np.float64)
            gram += block.T @ block
            squares += np.square(block).T @ M
            common += M.T @ M
    return gram, squares, common


def graph_from_products(sums: Sums, n: int, *, n_neighbors: int, sigma: str | float, laplacian: str) -> Graph:
    """Return the exact k-NN graph of the columns of a matrix of ``n`` rows.

    Parameters
    ----------
    sums : tuple of three ndarrays of shape (p, p)
        What `column_products` gives, added over row blocks.
    n : int
        Rows; distances over the rows two columns share are scaled up to all of them.
    n_neighbors, sigma, laplacian
        As in `build_graph`.

    Notes
    -----
    ``|a - b|^2 = |a|^2 + |b|^2 - 2 <a, b>`` loses what two nearly equal columns differ by when that is below 1e-8 of
    their length; the neighbours found are the same then, in another order.

    Examples
    --------
    >>> X = np.array([[0.0, 1.0, 5.0], [0.0, 0.0, 0.0]])
    >>> graph = graph_from_products(column_products(X), 2, n_neighbors=1, sigma="auto", laplacian="normalized")
    >>> graph.n_edges, round(graph.sigma, 3)
    (2, 2.0)
    """
    gram, squares, common = sums
    with np.errstate(divide="ignore", invalid="ignore"):
        distances = np.where(common > 0, (squares + squares.T - 2 * gram) * (n / common), np.inf)
    distances = np.sqrt(np.maximum(distances, 0.0))
    np.fill_diagonal(distances, np.inf)
    p = len(distances)
    columns = np.broadcast_to(np.arange(p), (p, p))
    indices = np.lexsort((columns, distances), axis=1)
    # A column is the last of its own neighbours, behind those it has no row in common with.
    indices = np.stack([row[row != i] for i, row in enumerate(indices)])[:, :n_neighbors]
    lengths = np.take_along_axis(distances, indices, axis=1)
    width = mean_length(lengths) if sigma == "auto" else float(sigma)
    A = edges_to_matrix(indices, gaussian_weights(lengths, width))
    return weighted_graph(A, laplacian=laplacian, sigma=width, method="exact", metric="euclidean")
