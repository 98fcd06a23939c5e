"""Graphs of samples and features: nearest neighbours, weights, Laplacians (Shahid et al. 2016, Sec. III)."""

from frpcag.graphs.build import GRAPHS, Graph, build_graph, graph_from_transformer, graph_from_weights
from frpcag.graphs.laplacian import laplacian, low_eigenpairs

__all__ = [
    "GRAPHS",
    "Graph",
    "build_graph",
    "graph_from_transformer",
    "graph_from_weights",
    "laplacian",
    "low_eigenpairs",
]
