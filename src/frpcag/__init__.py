"""Robust PCA and clustering on graphs (Shahid et al. 2016, *Fast Robust PCA on Graphs*)."""

import importlib
import typing

__version__ = "0.2.0"

# Where each public name lives, and the folders that are public themselves. Both are imported when they are first asked
# for: the command line prints its version and its help without SciPy and scikit-learn.
_HOMES = {
    "FRPCAG": "frpcag.estimators.decomposition",
    "FRPCAGCV": "frpcag.estimators.heldout",
    "BackgroundSeparator": "frpcag.video.separator",
    "Certificate": "frpcag.problem",
    "CompressiveFRPCAG": "frpcag.estimators.compressive",
    "DaskBackend": "frpcag.dask",
    "FRPCAGClustering": "frpcag.estimators.clustering",
    "Graph": "frpcag.graphs",
    "Problem": "frpcag.problem",
    "RobustGraphCleaner": "frpcag.estimators.cleaner",
    "RobustGraphImputer": "frpcag.estimators.imputer",
    "Solution": "frpcag.solvers",
    "SolveInterrupted": "frpcag.solvers",
    "build_graph": "frpcag.graphs",
    "certificate": "frpcag.problem",
    "load": "frpcag.saving",
    "read_frames": "frpcag.video.frames",
    "regularization_path": "frpcag.estimators.heldout",
    "solve": "frpcag.solvers",
}
__all__ = list(_HOMES)
_ROOMS = (
    "anndata",
    "backends",
    "baselines",
    "data",
    "engines",
    "estimators",
    "graphs",
    "insight",
    "labels",
    "plots",
    "problem",
    "report",
    "solvers",
    "video",
)

if typing.TYPE_CHECKING:  # each name as itself: type checkers then take it for public
    from frpcag.dask import DaskBackend as DaskBackend
    from frpcag.estimators.cleaner import RobustGraphCleaner as RobustGraphCleaner
    from frpcag.estimators.clustering import FRPCAGClustering as FRPCAGClustering
    from frpcag.estimators.compressive import CompressiveFRPCAG as CompressiveFRPCAG
    from frpcag.estimators.decomposition import FRPCAG as FRPCAG
    from frpcag.estimators.heldout import FRPCAGCV as FRPCAGCV
    from frpcag.estimators.heldout import regularization_path as regularization_path
    from frpcag.estimators.imputer import RobustGraphImputer as RobustGraphImputer
    from frpcag.graphs import Graph as Graph
    from frpcag.graphs import build_graph as build_graph
    from frpcag.problem import Certificate as Certificate
    from frpcag.problem import Problem as Problem
    from frpcag.problem import certificate as certificate
    from frpcag.saving import load as load
    from frpcag.solvers import Solution as Solution
    from frpcag.solvers import SolveInterrupted as SolveInterrupted
    from frpcag.solvers import solve as solve
    from frpcag.video.frames import read_frames as read_frames
    from frpcag.video.separator import BackgroundSeparator as BackgroundSeparator
else:  # hidden from type checkers, which would take any name for public

    def __getattr__(name):
        if name in _ROOMS:
            return importlib.import_module(f"frpcag.{name}")
        if name not in _HOMES:
            raise AttributeError(f"module 'frpcag' has no attribute {name!r}")
        value = globals()[name] = getattr(importlib.import_module(_HOMES[name]), name)
        return value

    def __dir__():
        return [*__all__, *_ROOMS, "__version__"]
