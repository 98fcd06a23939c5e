"""The step size: one over a Lipschitz constant of the gradient."""

from __future__ import annotations

from frpcag.linalg.lanczos import largest_eigenvalue
from frpcag.problem import Problem

BOUNDS = ("lanczos", "paper")


def lipschitz(problem: Problem, *, bound: str = "lanczos") -> float:
    """Return ``beta' = 2 gamma1 lmax(L1) + 2 gamma2 lmax(L2)``, a Lipschitz constant of the gradient.

    ``bound="lanczos"`` takes the largest eigenvalues that the problem states, and estimates others from above by a few
    Lanczos steps; ``bound="paper"`` takes 2, which holds for normalised Laplacians (Shahid et al. 2016, Sec. III).
    """
    terms = ((problem.gamma1, problem.L1, problem.lmax1), (problem.gamma2, problem.L2, problem.lmax2))
    beta = 0.0
    for gamma, L, lmax in terms:
        if L is not None and gamma > 0:
            if bound == "paper":
                lmax = 2.0
            beta += 2 * gamma * (largest_eigenvalue(L) if lmax is None else lmax)
    return beta
