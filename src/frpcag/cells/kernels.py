"""Kernels of the cell room, compiled by Numba on first use: robust distances of rows.

The kernels are serial and release the GIL; callers run disjoint blocks of rows in their own threads.
"""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np

# Sums may be reordered, which makes them vectors; data are finite here, missing entries are zero with weight zero.
FASTMATH = {"contract", "reassoc", "nsz", "arcp"}


def _compile(function: Callable) -> Callable:
    """Compile lazily; cached on disk where a folder for it is writable, else for this process only."""
    try:
        return numba.njit(nogil=True, fastmath=FASTMATH, error_model="numpy", cache=True)(function)
    except RuntimeError:  # numba finds no writable cache folder
        return numba.njit(nogil=True, fastmath=FASTMATH, error_model="numpy")(function)


@_compile
def absolute_sums(A, B, cut, plain, capped):
    """Write ``sum |a - b|`` and ``sum min(|a - b|, cut)`` of every pair of rows."""
    p = A.shape[1]
    for i in range(A.shape[0]):
        for j in range(B.shape[0]):
            whole = np.float32(0)
            part = np.float32(0)
            for f in range(p):
                d = abs(A[i, f] - B[j, f])
                whole += d
                part += min(d, cut)
            plain[i, j] = whole
            capped[i, j] = part


@_compile
def masked_absolute_sums(A, B, Am, Bm, cut, plain, capped):
    """Write the sums of `absolute_sums` over entries that both rows have (weights 1 and 0)."""
    p = A.shape[1]
    for i in range(A.shape[0]):
        for j in range(B.shape[0]):
            whole = np.float32(0)
            part = np.float32(0)
            for f in range(p):
                d = abs(A[i, f] - B[j, f]) * Am[i, f] * Bm[j, f]
                whole += d
                part += min(d, cut)
            plain[i, j] = whole
            capped[i, j] = part


@_compile
def neighbor_medians(X, M, indices, out):
    """Write the median over the listed rows of every entry, zero where none has it."""
    n, k = indices.shape
    p = X.shape[1]
    values = np.empty(k, X.dtype)
    for i in range(n):
        for f in range(p):
            count = 0
            for t in range(k):
                if M[indices[i, t], f]:
                    # insertion into a short sorted list
                    v = X[indices[i, t], f]
                    s = count
                    while s > 0 and values[s - 1] > v:
                        values[s] = values[s - 1]
                        s -= 1
                    values[s] = v
                    count += 1
            if count == 0:
                out[i, f] = 0
            elif count % 2:
                out[i, f] = values[count // 2]
            else:
                out[i, f] = (values[count // 2 - 1] + values[count // 2]) / 2
