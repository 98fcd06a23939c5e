"""Graphs of samples and features: nearest neighbours, weights, Laplacians (Shahid et al. 2016, Sec. III).

Arrays, sparse arrays and tensors come in; rows are nodes, and NaN is missing.
"""

from frpcag.graphs.build import GRAPHS, GraphOptions, build_graph, graph_from_weights, graph_of
from frpcag.graphs.checks import check_weight_options
from frpcag.graphs.graph import Graph
from frpcag.graphs.index import Index
from frpcag.graphs.laplacian import Links, build_laplacian, check_laplacian
from frpcag.graphs.metric import ELIGIBLE, EUCLIDEAN, METRICS, Metric, check_metric, find_metric
from frpcag.graphs.weights import edges_to_matrix
from frpcag.linalg.eigenpairs import low_eigenpairs

__all__ = [
    "ELIGIBLE",
    "EUCLIDEAN",
    "GRAPHS",
    "METRICS",
    "Graph",
    "GraphOptions",
    "Index",
    "Links",
    "Metric",
    "build_graph",
    "build_laplacian",
    "check_laplacian",
    "check_metric",
    "check_weight_options",
    "edges_to_matrix",
    "find_metric",
    "graph_from_weights",
    "graph_of",
    "low_eigenpairs",
]
