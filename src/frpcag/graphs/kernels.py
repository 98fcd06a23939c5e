"""Kernels of the robust searches, compiled by Numba on first use: sums of bounded absolute differences, nearest first.

The kernels are serial and release the GIL; callers run disjoint blocks of rows in their own threads. A pair of rows has
the same sum wherever it is computed, so the result does not depend on blocks or threads. Lists of neighbours are kept
sorted by distance, then by index, which is the rule for ties.
"""

from __future__ import annotations

import numpy as np

from frpcag.runtime.compiled import compiled_reordered as compiled
from frpcag.runtime.compiled import inlined

# Features between two looks at whether the sum is already too large.
CHUNK = 256
# Rows compared with all queries of a block while they are in the cache.
TILE = 64


@inlined
def _length(A, Am, i, B, Bm, j, cut, least, limit):
    """Return ``sum min(|a - b|, cut)``, or some number above ``limit`` once it is known to be above.

    With weights ``Am`` and ``Bm``, 1 for entries that a row has and 0 for others, it is the sum over those that both
    rows have, scaled up to all of them; infinite for fewer than ``least``.
    """
    p = A.shape[1]
    total = np.float32(0)
    if Am is None:
        for start in range(0, p, CHUNK):
            # Slices, whose indices count from zero: the compiler then knows that none is negative, and uses vectors.
            a, b = A[i, start : start + CHUNK], B[j, start : start + CHUNK]
            part = np.float32(0)
            for f in range(len(a)):
                part += min(abs(a[f] - b[f]), cut)
            total += part
            if total > limit:
                break
    else:
        common = np.float32(0)
        for f in range(p):
            both = Am[i, f] * Bm[j, f]
            total += min(abs(A[i, f] - B[j, f]), cut) * both
            common += both
        total = total * (np.float32(p) / common) if common >= least else np.float32(np.inf)
    return total


@compiled
def _insert(indices, lengths, i, j, length):
    """Put a neighbour into the sorted list of row ``i``, unless it is too far or there already."""
    k = indices.shape[1]
    s = k
    while s > 0 and (lengths[i, s - 1] > length or (lengths[i, s - 1] == length and indices[i, s - 1] > j)):
        s -= 1
    if s == k or (s > 0 and indices[i, s - 1] == j):
        return
    for t in range(k - 1, s, -1):
        indices[i, t] = indices[i, t - 1]
        lengths[i, t] = lengths[i, t - 1]
    indices[i, s] = j
    lengths[i, s] = length


@compiled
def _is_listed(indices, i, j):
    """Return whether ``j`` is in the list of row ``i``."""
    listed = False
    for t in range(indices.shape[1]):
        listed |= indices[i, t] == j
    return listed


@compiled
def nearest_of_all(A, Am, B, Bm, cut, least, own, indices, lengths):
    """Write the nearest rows of ``B`` to each row of ``A``, row ``own[i]`` left out; see `_length`.

    ``indices`` must be filled with a number above every index and ``lengths`` with infinity. Weights are None where no
    entry is missing.
    """
    last = indices.shape[1] - 1
    for start in range(0, B.shape[0], TILE):
        for i in range(A.shape[0]):
            for j in range(start, min(start + TILE, B.shape[0])):
                if j != own[i]:
                    length = _length(A, Am, i, B, Bm, j, cut, least, lengths[i, last])
                    if length <= lengths[i, last]:
                        _insert(indices, lengths, i, j, length)


@compiled
def nearest_of_some(A, Am, B, Bm, candidates, cut, least, own, indices, lengths):
    """Do what `nearest_of_all` does among each row's candidates, which may repeat; -1 is none.

    The lists may hold neighbours already. Of candidates side by side that are the same, one is looked at.
    """
    last = indices.shape[1] - 1
    for i in range(A.shape[0]):
        before = np.int64(-1)
        for c in range(candidates.shape[1]):
            j = candidates[i, c]
            if j >= 0 and j != own[i] and j != before and not _is_listed(indices, i, j):
                before = j
                length = _length(A, Am, i, B, Bm, j, cut, least, lengths[i, last])
                if length <= lengths[i, last]:
                    _insert(indices, lengths, i, j, length)


@compiled
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
