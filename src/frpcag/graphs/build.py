"""The entry point to graphs: it makes a Graph from data, a grid, an adjacency or a neighbour transformer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from frpcag.graphs.checks import (
    check_adjacency,
    check_axis,
    check_graph_size,
    check_grid_shape,
    check_n_neighbors,
    check_points,
    check_weight_options,
    transformer_edges,
)
from frpcag.graphs.graph import Graph, weighted_graph
from frpcag.graphs.index import Index
from frpcag.graphs.laplacian import check_laplacian
from frpcag.graphs.metric import check_metric, find_metric
from frpcag.graphs.weights import edges_to_matrix, gaussian_weights, mean_length, symmetrize_weights
from frpcag.runtime.arrays import is_tensor


@dataclass(frozen=True)
class GraphOptions:
    """The arguments of `build_graph`, checked as far as no data are needed.

    ``argument`` is what the caller calls ``method``, for errors: a model calls it "sample_graph".
    """

    axis: int = 0
    n_neighbors: int = 10
    sigma: str | float = "auto"
    weights: str = "gaussian"
    laplacian: str = "normalized"
    feature_shape: tuple[int, int] | None = None
    random_state: Any = None
    n_jobs: int | None = None
    argument: str = "method"
    metric: str = "euclidean"

    def __post_init__(self) -> None:
        check_axis(self.axis)
        check_laplacian(self.laplacian)
        check_weight_options(sigma=self.sigma, weights=self.weights)
        check_metric(self.metric)


def build_graph(
    X: Any,
    *,
    axis: int = 0,
    n_neighbors: int = 10,
    method: Any = "auto",
    metric: str = "euclidean",
    sigma: str | float = "auto",
    weights: str = "gaussian",
    laplacian: str = "normalized",
    feature_shape: tuple[int, int] | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
) -> Any:
    """Build the graph of the samples or of the features of ``X`` (Shahid et al. 2016).

    Parameters
    ----------
    X : array, sparse array or torch tensor of shape (n_samples, n_features)
        Finite real numbers; never written to. A grid and an adjacency use its shape only. The graph of a tensor is
        built on its device (`frpcag.graphs.torch.graphs.TensorGraph`).
    axis : {0, 1}, default=0
        0 links the samples (rows, the paper's ``G1``), 1 the features (columns, ``G2``).
    n_neighbors : int, default=10
        Edges from each node to its nearest nodes, the paper's ``K``. Grids, adjacencies and transformers have
        their own.
    method : str, sparse or dense adjacency, transformer or Graph, default="auto"
        "exact" search (the paper's strategy 1), "approximate" search (strategy 2; up to 144 nodes, all of which it
        would look at, it is exact),
        "auto" (exact while that takes seconds, else approximate), "grid" (pixels of an image of the given
        ``feature_shape``, each linked to the next ones up, down, left and right), a symmetric matrix of weights, an
        object with the interface of `sklearn.neighbors.KNeighborsTransformer`, or a Graph, which is returned as it is.
    metric : {"euclidean", "l1", "truncated", "cosine", "auto"}, default="euclidean"
        Distance between nodes. "l1" sums the absolute differences. "truncated" also sums them, each at most twice the
        mean absolute deviation, so gross errors of single entries hardly affect the neighbours. "cosine" is Euclidean
        between nodes divided by their lengths. "auto" takes the one of the first three whose neighbours predict the
        entries best, on at most 2000 nodes. Grids, adjacencies and transformers have
        their own.
    sigma : float or "auto", default="auto"
        Width of the Gaussian weights ``exp(-d^2 / sigma^2)``. "auto" is the mean length of the edges.
    weights : {"gaussian", "binary"}, default="gaussian"
        Weights of edges that have a length; a grid is always binary, an adjacency keeps its own.
    laplacian : {"normalized", "combinatorial"}, default="normalized"
        ``I - D^-1/2 A D^-1/2``, or ``D - A`` for data whose level matters, such as brightness.
    feature_shape : (height, width), optional
        Size of the grid; its pixels are the nodes, row by row.
    random_state : int, RandomState or None, default=None
        Seed of the approximate search. An int gives the same graph in every call, with any ``n_jobs``.
    n_jobs : int, optional
        Number of threads; None is all cores.

    Returns
    -------
    graph : Graph

    Notes
    -----
    A node need not be a neighbour of its own neighbours. The paper does not say how it makes the weights symmetric; we
    take ``(A + A') / 2``. No edge weighs less than 1e-12, so a point far from all others keeps its neighbours. Nodes
    that share no observed entry are not linked; one that shares none with any other has no neighbours.

    Examples
    --------
    >>> from frpcag.graphs import build_graph
    >>> X = np.random.default_rng(0).standard_normal((100, 20))
    >>> build_graph(X)
    Graph(n_nodes=100, n_edges=..., method='exact', sigma=...)
    >>> build_graph(X, axis=1, method="grid", feature_shape=(4, 5)).n_edges
    31
    """
    options = GraphOptions(
        axis, n_neighbors, sigma, weights, laplacian, feature_shape, random_state, n_jobs, metric=metric
    )
    return graph_of(X, method, options)


def graph_of(X: Any, method: Any, options: GraphOptions) -> Any:
    """Return the graph that `build_graph` describes."""
    if is_tensor(X):
        from frpcag.graphs.torch.graphs import build_tensor_graph

        return build_tensor_graph(X, method, options)
    X = X if sp.issparse(X) else np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimension(s) but must have 2 (samples, features); reshape it.")
    argument, n_nodes = options.argument, X.shape[options.axis]
    if isinstance(method, Graph):
        check_graph_size(method, n_nodes, axis=options.axis, argument=argument)
        return method
    if isinstance(method, str):
        if method not in GRAPHS:
            raise ValueError(
                f"{argument}={method!r} is unknown; pass one of {', '.join(map(repr, GRAPHS))}, an adjacency, "
                "a neighbour transformer or a Graph."
            )
        return GRAPHS[method](X, options)
    if hasattr(method, "fit_transform"):
        return _transformer_graph(method, X, options)
    weights = check_adjacency(method, n_nodes=n_nodes, argument=argument)
    return weighted_graph(weights, laplacian=options.laplacian, sigma=None, method="precomputed")


def graph_from_weights(
    A: Any, *, laplacian: str = "normalized", method: str = "precomputed", n_nodes: int | None = None
) -> Graph:
    """Return the graph of a given matrix of weights.

    Parameters
    ----------
    A : sparse or dense array of shape (n_nodes, n_nodes)
        Non-negative, finite, symmetric up to rounding. The diagonal is ignored; zeros are not edges.
    laplacian : {"normalized", "combinatorial"}, default="normalized"
    method : str, default="precomputed"
        The ``method`` attribute of the graph.
    n_nodes : int, optional
        The size ``A`` must have.

    Returns
    -------
    graph : Graph

    Examples
    --------
    >>> from frpcag.graphs import graph_from_weights
    >>> graph_from_weights(np.ones((3, 3)))
    Graph(n_nodes=3, n_edges=3, method='precomputed', sigma=None)
    """
    check_laplacian(laplacian)
    weights = check_adjacency(A, n_nodes=n_nodes)
    return weighted_graph(weights, laplacian=laplacian, sigma=None, method=method)


def _transformer_graph(transformer: Any, X: Any, options: GraphOptions) -> Graph:
    edges, are_distances = transformer_edges(transformer, _oriented(X, options.axis), argument=options.argument)
    sigma = None
    if options.weights == "binary":
        edges.data = np.ones_like(edges.data)
    elif are_distances:
        sigma = mean_length(edges.data) if options.sigma == "auto" else float(options.sigma)
        edges.data = gaussian_weights(edges.data, sigma)
    A = symmetrize_weights(edges)
    return weighted_graph(A, laplacian=options.laplacian, sigma=sigma, method="transformer")


def knn_graph(X: Any, options: GraphOptions, *, method: str) -> Graph:
    """Return the k-NN graph by a search (Shahid et al. 2016, Sec. III, strategies 1 and 2)."""
    check_n_neighbors(options.n_neighbors, X.shape[options.axis], axis=options.axis)
    points = check_points(_oriented(X, options.axis), argument=options.argument)
    metric = find_metric(options.metric, points, n_jobs=options.n_jobs)
    index = Index(points, metric, method=method, random_state=options.random_state, n_jobs=options.n_jobs)
    indices, distances = index.build(int(options.n_neighbors))
    # Infinitely far are points with which a node shares no observed entry: no edge.
    if options.weights == "binary":
        weights, sigma = np.isfinite(distances).astype(np.float64), None
    else:
        sigma = mean_length(distances) if options.sigma == "auto" else float(options.sigma)
        weights = gaussian_weights(distances, sigma)
    A = edges_to_matrix(indices, weights)
    return weighted_graph(A, laplacian=options.laplacian, sigma=sigma, method=index.method, metric=metric.name)


def grid_graph(X: Any, options: GraphOptions) -> Graph:
    """Return the binary graph of an image, each pixel linked to the next ones up, down, left and right."""
    height, width = check_grid_shape(
        options.feature_shape, X.shape[options.axis], axis=options.axis, argument=options.argument
    )
    nodes = np.arange(height * width).reshape(height, width)
    starts = np.concatenate([nodes[:, :-1].ravel(), nodes[:-1].ravel()])
    ends = np.concatenate([nodes[:, 1:].ravel(), nodes[1:].ravel()])
    both = (np.concatenate([starts, ends]), np.concatenate([ends, starts]))
    A = sp.csr_array((np.ones(2 * len(starts)), both), shape=(nodes.size, nodes.size))
    A.sort_indices()
    return weighted_graph(A, laplacian=options.laplacian, sigma=None, method="grid")


SEARCHES = ("auto", "exact", "approximate")
GRAPHS: dict[str, Callable[[Any, GraphOptions], Graph]] = {
    **{name: partial(knn_graph, method=name) for name in SEARCHES},
    "grid": grid_graph,
}


def _oriented(X: Any, axis: int) -> Any:
    """Return the nodes as rows: ``X`` for the samples, ``X.T`` for the features."""
    X = X if axis == 0 else X.T
    return sp.csr_array(X) if sp.issparse(X) else X
