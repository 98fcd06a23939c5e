"""The steps of single rows that are linked to fixed ones, compiled by Numba: one row after another, each by itself.

Serial kernels that release the GIL; callers run disjoint blocks of rows in threads of their own.
"""

from __future__ import annotations

import numpy as np

from frpcag.runtime.compiled import compiled_reordered as compiled


@compiled
def solve_rows(
    X, target, start, pointers, indices, values, curved, step, momentum, keep, edge, limit, settled, most, out
):
    """Write the clean part of each row by accelerated proximal gradient steps.

    ``values`` are those of ``2 gamma2 L2``, ``curved`` is twice the pull of the links; see `RowTerms.steps` of
    `frpcag.solvers.linked_rows`.
    """
    n, p = X.shape
    y, moved = np.empty(p, X.dtype), np.empty(p, X.dtype)
    edges = len(pointers) > 1
    for i in range(n):
        x, u, t = X[i], out[i], target[i]
        u[:] = start[i]
        y[:] = u
        for _ in range(most):
            change = size = X.dtype.type(0)
            for j in range(p):
                slope = curved[i] * y[j] - 2 * t[j]
                if edges:
                    for place in range(pointers[j], pointers[j + 1]):
                        slope += values[place] * y[indices[place]]
                v = y[j] - step[i] * slope
                if not np.isnan(x[j]):
                    d = v - x[j]
                    v = x[j] + keep[i] * d if abs(d) <= edge[i] else (v - limit[i] if d > 0 else v + limit[i])
                moved[j] = v
                change = max(change, abs(v - u[j]))
                size = max(size, abs(v))
            for j in range(p):
                y[j] = moved[j] + momentum[i] * (moved[j] - u[j])
                u[j] = moved[j]
            if change <= settled[i] * size:
                break
