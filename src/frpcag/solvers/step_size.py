"""The step size: one over a Lipschitz constant of the gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from frpcag.linalg.lanczos import largest_eigenvalue, start_vector
from frpcag.problem import Problem

BOUNDS = ("lanczos", "paper")

# Below this many nodes all eigenvalues are known at once.
_DENSE_NODES = 300
_POWER_STEPS = 100


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


def refuse_indefinite(problem: Problem) -> None:
    """Raise ValueError for a Laplacian with a negative eigenvalue, where its entries do not rule one out.

    Entries beside the diagonal that are not positive and a null vector, or a diagonal that outweighs them, do. Where
    they do not, a value between the eigenvalues is computed: a negative one means that there is one. That there is
    none is what remains to be trusted of such a matrix.
    """
    for name, L, level in (("L1", problem.L1, problem.level1), ("L2", problem.L2, problem.level2)):
        if level != "unknown" or L is None:
            continue
        largest = float(abs(L).sum(axis=1).max())
        lowest = _low_eigenvalue(L, largest)
        if lowest < -1e-9 * largest:
            raise ValueError(
                f"{name} has a negative eigenvalue, {lowest:.3g} or lower, so it is no Laplacian, and the "
                "problem has no minimum; pass D - A or its normalised form for non-negative weights A."
            )


def _low_eigenvalue(L: Any, bound: float) -> float:
    """Return the lowest eigenvalue of a small matrix, or a value above it, near it as a rule, of a large one."""
    n = L.shape[0]
    if n <= _DENSE_NODES:
        return float(np.linalg.eigvalsh(L.toarray())[0])
    v = start_vector(np.arange(n))
    for _ in range(_POWER_STEPS):  # of bound - L, whose top is the bottom of L
        v = bound * v - L @ v
        v /= np.linalg.norm(v)
    return float(v @ (L @ v))
