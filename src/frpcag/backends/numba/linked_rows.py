"""The steps of single rows that are linked to fixed ones, compiled by Numba: one row after another, each by itself.

Serial kernels that release the GIL; callers run disjoint blocks of rows in threads of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from frpcag.backends.numba import scalars
from frpcag.losses import LOSSES
from frpcag.runtime.compiled import completed

prox = None  # of a loss: `completed` writes it into the kernel


def _solve_rows(X, middle, pointers, indices, values, curved, weight, momentum, settled, numbers, most, out):
    """Write the clean part of each row by accelerated proximal gradient steps.

    See `RowTerms` of `frpcag.rows.terms`.
    """
    n, p = X.shape
    y, moved = np.empty(p, X.dtype), np.empty(p, X.dtype)
    edges, rounding = len(pointers) > 1, 2 * np.finfo(X.dtype).eps
    for i in range(n):
        x, u, near = X[i], out[i], middle[i]
        u[:] = near
        y[:] = u
        for _ in range(most):
            change = size = largest = X.dtype.type(0)
            for j in range(p):
                v = y[j] - curved[i] * (y[j] - near[j])
                if edges:
                    total = X.dtype.type(0)
                    for place in range(pointers[j], pointers[j + 1]):
                        total += values[place] * y[indices[place]]
                    v -= weight[i] * total
                if not np.isnan(x[j]):
                    v = prox(v, x[j], numbers[i], scalars)
                moved[j] = v
                change = max(change, abs(v - u[j]))
                size, largest = max(size, abs(v - near[j])), max(largest, abs(v))
            for j in range(p):
                y[j] = moved[j] + momentum[i] * (moved[j] - u[j])
                u[j] = moved[j]
            if change <= settled[i] * size + rounding * largest:
                break


@cache
def kernel_for(loss: str) -> Callable:
    """Return the kernel of a loss."""
    return completed(_solve_rows, loss, prox=LOSSES[loss].prox)
