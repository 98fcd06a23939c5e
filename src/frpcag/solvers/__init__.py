"""Solvers: a Problem goes in, a certified Solution comes out."""

from frpcag.solvers.options import SOLVERS
from frpcag.solvers.solve import solve
from frpcag.solvers.stopping import CertificateWarning, Progress, Solution, SolveInterrupted

__all__ = ["SOLVERS", "CertificateWarning", "Progress", "Solution", "SolveInterrupted", "solve"]
