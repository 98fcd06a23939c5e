"""Single rows solved with all others held fixed: the problem that a new row poses to a fitted model."""

from __future__ import annotations

import numpy as np

from frpcag.problem import Array, Problem, gradient, prox
from frpcag.solvers.momentum import constant_weight

_MAX_STEPS = 1000


def solve_rows(
    problem: Problem, *, pull: Array, target: Array, lmax2: float = 0.0, max_steps: int = _MAX_STEPS
) -> Array:
    """Minimise ``sum phi(x - u) + pull |u|^2 - 2 <u, target> + gamma2 u L2 u'`` for every row on its own.

    Parameters
    ----------
    problem : Problem
        New rows as ``X``, without a sample graph: loss, ``L2`` and ``gamma2``.
    pull : ndarray of shape (n_rows,)
        ``gamma1`` times the row's entry on the Laplacian's diagonal.
    target : ndarray of shape (n_rows, n_features)
        ``gamma1`` times the weighted sum of the clean rows that it is linked to.
    lmax2 : float
        Upper bound of the largest eigenvalue of ``L2``.
    max_steps : int
        Limit of the steps of a row.

    Returns
    -------
    ndarray of shape (n_rows, n_features)
        Each row takes as many steps as its own conditioning asks for: none depends on the others.
    """
    x = problem.X
    curved = 2 * pull  # strong convexity of each row's problem
    beta = curved + 2 * problem.gamma2 * lmax2
    start = np.nan_to_num(x, nan=0.0)
    if not beta.max(initial=0.0) > 0:
        return start
    beta = np.where(beta > 0, beta, 1.0)
    ratio = np.maximum(curved / beta, 1e-4)
    momentum, step, curved = (v[:, None].astype(x.dtype) for v in (constant_weight(ratio), 1 / beta, curved))
    n_steps = np.minimum(np.ceil(20 / np.sqrt(ratio)), max_steps)[:, None]
    u = y = start
    for k in range(int(n_steps.max())):
        slope = curved * y - 2 * target + gradient(problem, y)
        u_next = prox(problem, y - step * slope, step)
        going = k < n_steps
        u, y = np.where(going, u_next, u), np.where(going, u_next + momentum * (u_next - u), y)
    return u
