"""Solvers: a Problem goes in, a certified Solution comes out."""

from frpcag.solvers.solve import solve
from frpcag.solvers.stopping import CertificateWarning, Progress, Solution, SolveInterrupted

__all__ = ["CertificateWarning", "Progress", "Solution", "SolveInterrupted", "solve"]
