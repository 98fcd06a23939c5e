"""Graphs of samples and features: nearest neighbours, weights, Laplacians (Shahid et al. 2016, Sec. III).

Arrays, sparse arrays and tensors come in; rows are nodes, and NaN is missing. What is in ``__all__`` is for users, the
other names are for the rooms above.
"""

from frpcag.graphs.build import GRAPHS, build_graph, graph_from_weights
from frpcag.graphs.build import GraphOptions as GraphOptions
from frpcag.graphs.build import graph_of as graph_of
from frpcag.graphs.checks import check_weight_options as check_weight_options
from frpcag.graphs.graph import Graph
from frpcag.graphs.index import Index
from frpcag.graphs.laplacian import Links as Links
from frpcag.graphs.laplacian import build_laplacian
from frpcag.graphs.laplacian import check_laplacian as check_laplacian
from frpcag.graphs.metric import ELIGIBLE as ELIGIBLE
from frpcag.graphs.metric import EUCLIDEAN as EUCLIDEAN
from frpcag.graphs.metric import METRICS, Metric
from frpcag.graphs.metric import check_metric as check_metric
from frpcag.graphs.metric import find_metric as find_metric
from frpcag.graphs.weights import edges_to_matrix as edges_to_matrix
from frpcag.linalg.eigenpairs import low_eigenpairs

__all__ = [
    "GRAPHS",
    "METRICS",
    "Graph",
    "Index",
    "Metric",
    "build_graph",
    "build_laplacian",
    "graph_from_weights",
    "low_eigenpairs",
]
