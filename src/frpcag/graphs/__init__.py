"""Graphs of samples and features: nearest neighbours, weights, Laplacians (Shahid et al. 2016, Sec. III)."""

from frpcag.graphs.build import GRAPHS, build_graph, graph_from_weights
from frpcag.graphs.graph import Graph
from frpcag.graphs.laplacian import build_laplacian
from frpcag.linalg.eigenpairs import low_eigenpairs

__all__ = [
    "GRAPHS",
    "Graph",
    "build_graph",
    "build_laplacian",
    "graph_from_weights",
    "low_eigenpairs",
]
