"""Graphs of other libraries in, and out to them: NetworkX, igraph, edge lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

Array = np.ndarray


def as_adjacency(graph: Any, *, n_nodes: int | None, argument: str) -> Any:
    """Return a graph of NetworkX or igraph, or an edge list, as a sparse adjacency; other things as they are.

    Parameters
    ----------
    graph : object
        A graph whose nodes are 0, 1, ... in any order, or n others in the order of the samples; or an array of shape
        (m, 2) or (m, 3): two nodes an edge and its weight, 1 without one. Each edge stands there once or both ways.
        Two pairs or three weighted edges, whose shape is also that of a matrix, are edges of more nodes than that.
    n_nodes : int or None
        Number of nodes, where it is known.
    argument : str
        What the user passed it as.

    Examples
    --------
    >>> from frpcag.graphs.exchange import as_adjacency
    >>> as_adjacency([(0, 1, 0.5), (1, 2, 2.0)], n_nodes=4, argument="A").toarray()
    array([[0. , 0.5, 0. , 0. ],
           [0.5, 0. , 2. , 0. ],
           [0. , 2. , 0. , 0. ],
           [0. , 0. , 0. , 0. ]])
    """
    if hasattr(graph, "edges") and hasattr(graph, "is_directed") and hasattr(graph, "nodes"):
        _refuse_directed(graph.is_directed(), argument)
        nodes = list(graph.nodes)
        order = {node: i for i, node in enumerate(sorted(nodes) if set(nodes) == set(range(len(nodes))) else nodes)}
        listed = [(order[a], order[b], weight) for a, b, weight in graph.edges(data="weight", default=1.0)]
        return _adjacency(np.array(listed, dtype=np.float64).reshape(-1, 3), len(nodes), argument)
    if hasattr(graph, "get_edgelist") and hasattr(graph, "vcount"):
        _refuse_directed(graph.is_directed(), argument)
        edges = np.array(graph.get_edgelist(), dtype=np.float64).reshape(-1, 2)
        weight = graph.es["weight"] if "weight" in graph.es.attributes() else np.ones(len(edges))
        return _adjacency(np.column_stack([edges, weight]), graph.vcount(), argument)
    if sp.issparse(graph) or hasattr(graph, "tocsr"):
        return graph
    try:
        edges = np.asarray(graph)
    except ValueError:
        return graph
    if edges.ndim != 2 or edges.shape[1] not in (2, 3) or edges.dtype.kind not in "iuf":
        return graph
    if edges.shape[0] == edges.shape[1] and _is_matrix(edges, n_nodes, argument):
        return graph
    size = n_nodes if n_nodes is not None else int(edges[:, :2].max(initial=-1)) + 1
    return _adjacency(edges.astype(np.float64), size, argument)


def _is_matrix(A: Array, n_nodes: int | None, argument: str) -> bool:
    """Return whether a square array, which might be a list of edges, is a matrix; raise ValueError if it may be either.

    A list of edges holds numbers of nodes and links none to itself; a matrix is symmetric, its diagonal zero.
    """
    m, ends = len(A), A[:, :2]
    are_nodes = (ends == np.round(ends)) & (ends >= 0) & (ends < (np.inf if n_nodes is None else n_nodes))
    if not are_nodes.all() or (ends[:, 0] == ends[:, 1]).any():
        return True
    looks_like_one = bool((A == A.T).all() and not A.diagonal().any())
    if looks_like_one and n_nodes in (None, m):
        return True
    if looks_like_one or n_nodes is None or n_nodes <= m:
        raise ValueError(
            f"{argument} has shape {A.shape}, which is a matrix of {m} nodes or a list of {m} edges; pass a matrix as "
            "scipy.sparse.csr_array, and list edges both ways."
        )
    return False


def _refuse_directed(directed: bool, argument: str) -> None:
    if directed:
        raise ValueError(f"{argument} is a directed graph, but edges have no direction here; pass its undirected form.")


def _adjacency(edges: Array, n_nodes: int, argument: str) -> sp.csr_array:
    """Return the symmetric matrix of edges (node, node[, weight]); an edge that comes both ways counts once."""
    ends = edges[:, :2]
    if len(ends) and not ((ends == np.round(ends)) & (ends >= 0) & (ends < n_nodes)).all():
        raise ValueError(
            f"{argument} is a list of edges with nodes that are not in 0 to {n_nodes - 1}; number them so."
        )
    a, b = ends.astype(np.intp).T
    weight = edges[:, 2] if edges.shape[1] == 3 else np.ones(len(edges))
    one_way = sp.csr_array((weight, (np.minimum(a, b), np.maximum(a, b))), shape=(n_nodes, n_nodes))
    times = sp.csr_array((np.ones(len(a)), (np.minimum(a, b), np.maximum(a, b))), shape=(n_nodes, n_nodes))
    one_way.data /= times.data  # the mean of what comes more than once
    return sp.csr_array(one_way + one_way.T)


def to_igraph(weights: sp.csr_array) -> Any:
    """Return weights as an undirected `igraph.Graph`."""
    try:
        from igraph import Graph
    except ImportError as error:
        raise ImportError("Graph.to_igraph needs igraph; install frpcag[graphs].") from error
    upper = sp.triu(weights).tocoo()
    edges = np.column_stack([upper.row, upper.col])
    return Graph(n=weights.shape[0], edges=edges.tolist(), edge_attrs={"weight": upper.data.tolist()})


def edge_lengths(weights: sp.csr_array, sigma: float | None, X: Any = None) -> sp.csr_array:
    """Return distances in place of weights; see `frpcag.Graph.distances`."""
    out = weights.copy()
    if X is None:
        if sigma is None:
            raise ValueError("X=None gives distances only from Gaussian weights; pass X, one row a node.")
        with np.errstate(divide="ignore"):
            out.data = sigma * np.sqrt(np.maximum(-np.log(np.minimum(weights.data, 1.0)), 0.0))
        return out
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or len(X) != weights.shape[0]:
        raise ValueError(f"X has shape {X.shape} but the graph has {weights.shape[0]} nodes; pass one row a node.")
    rows = np.repeat(np.arange(weights.shape[0]), np.diff(weights.indptr))
    step = max(1, (1 << 22) // max(1, X.shape[1]))
    for start in range(0, len(rows), step):
        at = slice(start, start + step)
        out.data[at] = np.sqrt(np.square(X[rows[at]] - X[weights.indices[at]]).sum(axis=1))
    return out
