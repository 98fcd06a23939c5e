"""Robust PCA and clustering on graphs (Shahid et al. 2016, *Fast Robust PCA on Graphs*)."""

from frpcag.background import BackgroundSeparator
from frpcag.clustering import FRPCAGClustering
from frpcag.estimator import FRPCAG
from frpcag.graphs import Graph, build_graph
from frpcag.imputer import RobustGraphImputer
from frpcag.path import FRPCAGCV, regularization_path
from frpcag.problem import Problem
from frpcag.saved import load
from frpcag.solvers import Solution, solve

__version__ = "0.1.0"

__all__ = [
    "FRPCAG",
    "FRPCAGCV",
    "BackgroundSeparator",
    "FRPCAGClustering",
    "Graph",
    "Problem",
    "RobustGraphImputer",
    "Solution",
    "build_graph",
    "load",
    "regularization_path",
    "solve",
]
