"""The one entry point to graphs: data, a grid, an adjacency or a neighbour transformer in, a Graph out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from frpcag.graphs.checks import (
    check_adjacency,
    check_axis,
    check_grid_shape,
    check_n_neighbors,
    check_points,
    check_weight_options,
    node_word,
    transformer_edges,
)
from frpcag.graphs.laplacian import check_laplacian
from frpcag.graphs.laplacian import laplacian as laplacian_of
from frpcag.graphs.neighbors import (
    Neighbors,
    approximate_neighbors,
    choose_search,
    exact_neighbors,
    pynndescent_neighbors,
)
from frpcag.graphs.weights import edges_to_matrix, gaussian_weights, mean_length, symmetrize_weights
from frpcag.spectrum import largest_eigenvalue


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """An undirected weighted graph and its Laplacian.

    Parameters
    ----------
    weights : csr_array of shape (n_nodes, n_nodes)
        Symmetric non-negative weights, float64, empty diagonal, indices sorted.
    laplacian : csr_array of shape (n_nodes, n_nodes)
        Normalised or combinatorial, see `frpcag.graphs.laplacian.laplacian`.
    sigma : float or None
        Width of the Gaussian weights; None for weights that are not Gaussian.
    method : str
        How the edges were found: "exact", "approximate", "pynndescent", "grid", "precomputed" or
        "transformer".
    kind : {"normalized", "combinatorial"}
        Which Laplacian it is.
    """

    weights: sp.csr_array
    laplacian: sp.csr_array
    sigma: float | None
    method: str
    kind: str

    @cached_property
    def lmax(self) -> float:
        """An upper estimate of the largest eigenvalue of the Laplacian, a percent or so above it."""
        return largest_eigenvalue(self.laplacian)

    @property
    def null_vector(self) -> np.ndarray:
        """A positive vector that the Laplacian maps to zero: the square root of the degree, or ones."""
        if self.kind == "combinatorial":
            return np.ones(self.n_nodes)
        degree = np.asarray(self.weights.sum(axis=1)).ravel()
        return np.sqrt(np.where(degree > 0, degree, 1.0))

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return self.weights.shape[0]

    @property
    def n_edges(self) -> int:
        """Number of edges, each counted once."""
        return self.weights.nnz // 2

    def edges_kept_by(self, other: Graph) -> float:
        """Return the share of the edges that ``other``, a graph of the same nodes, has too; 1 without edges."""
        shared = (self.weights != 0).multiply(other.weights != 0).nnz
        return shared / self.weights.nnz if self.weights.nnz else 1.0

    def __repr__(self) -> str:
        sigma = "None" if self.sigma is None else f"{self.sigma:.4g}"
        return f"Graph(n_nodes={self.n_nodes}, n_edges={self.n_edges}, method={self.method!r}, sigma={sigma})"


@dataclass(frozen=True)
class GraphOptions:
    """The arguments of `build_graph` that a graph kind may look at; words and sigma are checked already."""

    axis: int
    n_neighbors: int
    sigma: str | float
    weights: str
    laplacian: str
    symmetrize: str
    shape: tuple[int, int] | None
    random_state: Any
    n_jobs: int | None


def build_graph(
    X: Any,
    *,
    axis: int = 0,
    n_neighbors: int = 10,
    method: Any = "auto",
    sigma: str | float = "auto",
    weights: str = "gaussian",
    laplacian: str = "normalized",
    symmetrize: str = "average",
    shape: tuple[int, int] | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
) -> Any:
    """Build the graph of the samples or of the features of ``X`` (Shahid et al. 2016, Sec. III).

    Parameters
    ----------
    X : array, sparse array or torch tensor of shape (n_samples, n_features)
        Finite real numbers; never written to. A grid and an adjacency use its shape only. The graph of a tensor is
        built on its device (`frpcag.graphs.torch_graphs.TensorGraph`).
    axis : {0, 1}, default=0
        0 links the samples (rows, the paper's ``G1``), 1 the features (columns, ``G2``).
    n_neighbors : int, default=10
        Edges from each node to its nearest nodes, the paper's ``K``. Grids, adjacencies and transformers have
        their own.
    method : str, sparse or dense adjacency, transformer or Graph, default="auto"
        "exact" search (the paper's strategy 1), "approximate" search (strategy 2), "pynndescent" (approximate
        too, faster from some 100,000 nodes on once compiled), "auto" (exact while that takes seconds, else
        approximate), "grid" (pixels of an image of the given ``shape``, each linked to the next ones up,
        down, left and right), a symmetric matrix of weights, an object with the interface of
        `sklearn.neighbors.KNeighborsTransformer`, or a Graph, which is returned as it is.
    sigma : float or "auto", default="auto"
        Width of the Gaussian weights ``exp(-d^2 / sigma^2)``. "auto" is the mean length of the edges.
    weights : {"gaussian", "binary"}, default="gaussian"
        Weights of edges that have a length; a grid is always binary, an adjacency keeps its own.
    laplacian : {"normalized", "combinatorial"}, default="normalized"
        ``I - D^-1/2 A D^-1/2``, or ``D - A`` for data whose level matters, such as brightness.
    symmetrize : {"average", "maximum"}, default="average"
        ``(A + A') / 2`` or ``max(A, A')``: being a nearest neighbour is not mutual.
    shape : (height, width), optional
        Of the grid; pixels are the nodes row by row.
    random_state : int, RandomState or None, default=None
        For approximate search. An int gives the same graph in every call, with any ``n_jobs``.
    n_jobs : int, optional
        Number of threads; None is all cores.

    Returns
    -------
    graph : Graph

    Notes
    -----
    The paper leaves the symmetrisation open; the average is our choice. No edge weighs less than 1e-12, so
    that a point far from all others keeps its neighbours.

    Examples
    --------
    >>> from frpcag.graphs import build_graph
    >>> X = np.random.default_rng(0).standard_normal((100, 20))
    >>> build_graph(X)
    Graph(n_nodes=100, n_edges=..., method='exact', sigma=...)
    >>> build_graph(X, axis=1, method="grid", shape=(4, 5)).n_edges
    31
    """
    check_axis(axis)
    check_laplacian(laplacian)
    check_weight_options(sigma=sigma, weights=weights, symmetrize=symmetrize)
    options = GraphOptions(axis, n_neighbors, sigma, weights, laplacian, symmetrize, shape, random_state, n_jobs)
    if type(X).__module__.partition(".")[0] == "torch":
        from frpcag.graphs.torch_graphs import build_tensor_graph

        return build_tensor_graph(X, method, options)
    X = X if sp.issparse(X) else np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimension(s) but must have 2 (samples, features); reshape it.")
    n_nodes = X.shape[axis]
    if isinstance(method, Graph):
        if method.n_nodes != n_nodes:
            raise ValueError(
                f"method is a graph of {method.n_nodes} nodes but X has {node_word(axis)}={n_nodes}; "
                "pass a graph of the same size."
            )
        return method
    if isinstance(method, str):
        if method not in GRAPHS:
            raise ValueError(
                f"method={method!r} is unknown; pass one of {', '.join(map(repr, GRAPHS))}, an adjacency, "
                "a neighbour transformer or a Graph."
            )
        return GRAPHS[method](X, options)
    if hasattr(method, "fit_transform"):
        return graph_from_transformer(
            method, X, axis=axis, sigma=sigma, weights=weights, laplacian=laplacian, symmetrize=symmetrize
        )
    return graph_from_weights(method, laplacian=laplacian, n_nodes=n_nodes)


def graph_from_weights(
    A: Any, *, laplacian: str = "normalized", method: str = "precomputed", n_nodes: int | None = None
) -> Graph:
    """Return the graph of a given matrix of weights.

    Parameters
    ----------
    A : sparse or dense array of shape (n_nodes, n_nodes)
        Non-negative, finite, symmetric to rounding. Its diagonal is dropped, zeros are no edges.
    laplacian : {"normalized", "combinatorial"}, default="normalized"
    method : str, default="precomputed"
        What the graph says of its origin.
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
    return Graph(weights, laplacian_of(weights, laplacian), None, method, laplacian)


def graph_from_transformer(
    transformer: Any,
    X: Any,
    *,
    axis: int = 0,
    sigma: str | float = "auto",
    weights: str = "gaussian",
    laplacian: str = "normalized",
    symmetrize: str = "average",
) -> Graph:
    """Return the graph of the neighbours that a scikit-learn transformer finds.

    Parameters
    ----------
    transformer : object
        With the interface of `sklearn.neighbors.KNeighborsTransformer`: ``fit_transform`` gives a square
        sparse matrix of distances, in which a stored zero is a neighbour at distance 0. It is cloned, not
        fitted itself. With ``mode="connectivity"`` the values are taken as weights.
    X : array or sparse array of shape (n_samples, n_features)
    axis, sigma, weights, laplacian, symmetrize
        See `build_graph`.

    Returns
    -------
    graph : Graph

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsTransformer
    >>> from frpcag.graphs import graph_from_transformer
    >>> X = np.arange(6.0).reshape(-1, 1)
    >>> graph_from_transformer(KNeighborsTransformer(n_neighbors=1), X, weights="binary").method
    'transformer'
    """
    check_axis(axis)
    check_laplacian(laplacian)
    check_weight_options(sigma=sigma, weights=weights, symmetrize=symmetrize)
    edges, are_distances = transformer_edges(transformer, _oriented(X, axis))
    used_sigma = None
    if weights == "binary":
        edges.data = np.ones_like(edges.data)
    elif are_distances:
        used_sigma = mean_length(edges.data) if sigma == "auto" else float(sigma)
        edges.data = gaussian_weights(edges.data, used_sigma)
    A = symmetrize_weights(edges, symmetrize)
    return Graph(A, laplacian_of(A, laplacian), used_sigma, "transformer", laplacian)


def _knn_graph(X: Any, options: GraphOptions, search: Callable[..., Neighbors], method: str) -> Graph:
    """Return the graph of the nearest neighbours that ``search`` finds."""
    check_n_neighbors(options.n_neighbors, X.shape[options.axis], axis=options.axis)
    points = check_points(_oriented(X, options.axis))
    indices, distances = search(points, int(options.n_neighbors))
    # Points with missing entries that have no feature in common with K others: linked all the same, as loosely as any.
    distances[np.isinf(distances)] = distances[np.isfinite(distances)].max(initial=0.0)
    if options.weights == "binary":
        weights, sigma = np.ones_like(distances), None
    else:
        sigma = mean_length(distances) if options.sigma == "auto" else float(options.sigma)
        weights = gaussian_weights(distances, sigma)
    A = edges_to_matrix(indices, weights, symmetrize=options.symmetrize)
    return Graph(A, laplacian_of(A, options.laplacian), sigma, method, options.laplacian)


def exact_graph(X: Any, options: GraphOptions) -> Graph:
    """Return the k-NN graph by exact search (Shahid et al. 2016, Sec. III, strategy 1)."""
    return _knn_graph(X, options, lambda P, k: exact_neighbors(P, k, n_jobs=options.n_jobs), "exact")


def approximate_graph(X: Any, options: GraphOptions) -> Graph:
    """Return the k-NN graph by approximate search (Shahid et al. 2016, Sec. III, strategy 2)."""
    seeded = {"random_state": options.random_state, "n_jobs": options.n_jobs}
    return _knn_graph(X, options, lambda P, k: approximate_neighbors(P, k, **seeded), "approximate")


def pynndescent_graph(X: Any, options: GraphOptions) -> Graph:
    """Return the k-NN graph by nearest-neighbour descent."""
    seeded = {"random_state": options.random_state, "n_jobs": options.n_jobs}
    return _knn_graph(X, options, lambda P, k: pynndescent_neighbors(P, k, **seeded), "pynndescent")


def auto_graph(X: Any, options: GraphOptions) -> Graph:
    """Return the exact graph while that takes a few seconds, else the approximate one."""
    chosen = choose_search(X.shape[options.axis], X.shape[1 - options.axis])
    return GRAPHS[chosen](X, options)


def grid_graph(X: Any, options: GraphOptions) -> Graph:
    """Return the binary graph of an image, each pixel linked to the next ones up, down, left and right."""
    height, width = check_grid_shape(options.shape, X.shape[options.axis], axis=options.axis)
    nodes = np.arange(height * width).reshape(height, width)
    starts = np.concatenate([nodes[:, :-1].ravel(), nodes[:-1].ravel()])
    ends = np.concatenate([nodes[:, 1:].ravel(), nodes[1:].ravel()])
    half = sp.csr_array((np.ones(len(starts)), (starts, ends)), shape=(nodes.size, nodes.size))
    A = symmetrize_weights(half, "maximum")
    return Graph(A, laplacian_of(A, options.laplacian), None, "grid", options.laplacian)


GRAPHS: dict[str, Callable[[Any, GraphOptions], Graph]] = {
    "auto": auto_graph,
    "exact": exact_graph,
    "approximate": approximate_graph,
    "pynndescent": pynndescent_graph,
    "grid": grid_graph,
}


def _oriented(X: Any, axis: int) -> Any:
    """Return the nodes as rows: ``X`` for the samples, ``X.T`` for the features."""
    X = X if sp.issparse(X) else np.asarray(X)
    X = X if axis == 0 else X.T
    return sp.csr_array(X) if sp.issparse(X) else X
