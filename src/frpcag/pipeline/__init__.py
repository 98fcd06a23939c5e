"""One way from a matrix to its certified clean part: `prepare`, ``graphs``, ``solve``.

Estimators come in with their parameters and a matrix of any kind; nothing else in the library solves a fit.
"""

from frpcag.pipeline.parameters import check_parameters, check_seed, check_verbose
from frpcag.pipeline.prepared import Prepared, Solved, prepare

__all__ = ["Prepared", "Solved", "check_parameters", "check_seed", "check_verbose", "prepare"]
