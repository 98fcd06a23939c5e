"""The quality of a graph: components, degrees, and the share of true neighbours that it links."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse.csgraph import connected_components
from sklearn.utils import check_random_state

from frpcag.graphs import Graph, Index, find_metric

Array = np.ndarray


@dataclass(frozen=True)
class GraphQuality:
    """Size, components and degrees of a graph.

    Parameters
    ----------
    n_nodes, n_edges : int
        Size; an edge counts once.
    n_components : int
        Connected components; a node without edges is one.
    largest_component : float
        Share of the nodes in the largest component.
    n_isolated : int
        Nodes without edges.
    n_neighbors : tuple of int
        Least, median and greatest number of edges at a node.
    degree : tuple of float
        Least, median and greatest sum of weights at a node.
    """

    n_nodes: int
    n_edges: int
    n_components: int
    largest_component: float
    n_isolated: int
    n_neighbors: tuple[int, int, int]
    degree: tuple[float, float, float]


def graph_quality(graph: Graph) -> GraphQuality:
    """Describe a graph.

    Parameters
    ----------
    graph : Graph
        Of samples or of features.

    Returns
    -------
    GraphQuality

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag.graphs import graph_from_weights
    >>> from frpcag.insight import graph_quality
    >>> quality = graph_quality(graph_from_weights(np.array([[0.0, 2.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 0.0]])))
    >>> quality.n_components, quality.n_isolated, quality.degree
    (2, 1, (0.0, 2.0, 2.0))
    """
    n_components, component = connected_components(graph.weights, directed=False)
    count = np.diff(graph.weights.indptr)
    degree = np.asarray(graph.weights.sum(axis=1)).ravel()
    return GraphQuality(
        n_nodes=graph.n_nodes,
        n_edges=graph.n_edges,
        n_components=int(n_components),
        largest_component=float(np.bincount(component).max() / graph.n_nodes),
        n_isolated=int(np.sum(count == 0)),
        n_neighbors=(int(count.min()), int(np.median(count)), int(count.max())),
        degree=(float(degree.min()), float(np.median(degree)), float(degree.max())),
    )


def neighbor_recall(
    graph: Graph,
    X: Array,
    *,
    axis: int = 0,
    n_neighbors: int = 10,
    n_sample: int = 500,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
) -> float:
    """Return the share of true nearest neighbours that the graph links, on a sample of its nodes.

    Parameters
    ----------
    graph : Graph
        Built from ``X``, for example by approximate search. Its metric is used.
    X : ndarray of shape (n_samples, n_features)
        The finite data from which the graph was built.
    axis : {0, 1}, default=0
        0 for the samples, 1 for the features.
    n_neighbors : int, default=10
        Number of true neighbours per node, the paper's ``K``.
    n_sample : int, default=500
        Number of nodes in the sample; 500 give a standard error of about 0.01. All nodes if there are fewer.
    random_state : int, RandomState or None
        Seed of the sample.
    n_jobs : int, optional
        Threads of the exact search, ``O(n_sample n p)``.

    Returns
    -------
    float
        In [0, 1]. A link counts in either direction, as in the graph itself. A neighbour counts as found if a linked
        node is equally near, so ties do no harm.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag import build_graph
    >>> from frpcag.insight import neighbor_recall
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> neighbor_recall(build_graph(X, n_neighbors=5, method="exact"), X, n_neighbors=5)
    1.0
    """
    points = np.ascontiguousarray(X if axis == 0 else X.T)
    n = len(points)
    if n != graph.n_nodes:
        raise ValueError(f"X has {n} {'rows' if axis == 0 else 'columns'} but the graph {graph.n_nodes} nodes.")
    if not 1 <= n_neighbors < n:
        raise ValueError(f"n_neighbors={n_neighbors} must lie between 1 and {n - 1}, one less than there are nodes.")
    nodes = check_random_state(random_state).permutation(n)[:n_sample]
    metric = find_metric(graph.metric or "euclidean", points)
    idx, _ = Index(points, metric, method="exact", n_jobs=n_jobs).query(points[nodes], n_neighbors + 1)
    found = 0
    for node, near in zip(nodes, idx, strict=True):
        # The node itself is among its neighbours, unless more than n_neighbors copies of it are.
        farthest = metric.lengths(points[node], points[near[near != node][:n_neighbors]]).max()
        linked = graph.weights.indices[graph.weights.indptr[node] : graph.weights.indptr[node + 1]]
        # The search compares distances in float32.
        as_near = metric.lengths(points[node], points[linked]) <= farthest * (1 + 1e-5)
        found += min(n_neighbors, int(as_near.sum()))
    return found / (len(nodes) * n_neighbors)
