"""CPU kernels: one fused pass over row tiles per solver step, compiled by Numba on first use.

The kernels are serial and release the GIL; the backend runs disjoint row ranges in its own threads. Numba's own
thread pool is not used: it aborts the process when two threads enter it at once.

Arrays are padded with zeros to whole tiles of rows and whole vectors of columns, so no loop has a remainder; padding
has no edges and no data term, so it stays zero and adds nothing to the sums. Every number that leaves a kernel is
summed per tile, and the tiles do not depend on the number of threads. The formulas of a loss are compiled into the
inner loops, so each loss has kernels of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from frpcag.backends.numba import scalars
from frpcag.backends.numba.vectors import LANES, gathered_sum, transpose_block
from frpcag.losses import LOSSES
from frpcag.runtime.compiled import compiled_reordered as compiled
from frpcag.runtime.compiled import completed

# Rows per tile. A tile is transposed so that the feature gather reads whole vectors of samples.
TILE = 64
# Numbers that a tile of a certificate sums up.
SUMS = 9

# Formulas of a loss: `completed` writes them into the kernels.
prox = value = dual = None

_sum_narrow = gathered_sum(LANES)
_sum_wide = gathered_sum(TILE)


def _gradient_tile(Y, first, ptr1, idx1, val1, ptr2, idx2, val2, Yt, Gt, G):
    """Write a tile of rows of ``2 gamma1 L1 Y + 2 gamma2 Y L2`` to ``G``; the factors are in val1, val2."""
    p = Y.shape[1]
    if ptr2.size > 1:
        for f in range(0, p, LANES):
            for s in range(0, TILE, LANES):
                transpose_block(Y, first + s, f, Yt, f, s)
        for f0 in range(0, p, LANES):
            Gt[:] = 0
            for f in range(f0, f0 + LANES):
                _sum_wide(Yt, idx2, val2, ptr2[f], ptr2[f + 1], 0, Gt, f - f0, 0)
            for s in range(0, TILE, LANES):
                transpose_block(Gt, 0, s, G, s, f0)
    else:
        G[:] = 0
    if ptr1.size > 1:
        wide = p - p % TILE
        for s in range(TILE):
            start, stop = ptr1[first + s], ptr1[first + s + 1]
            for f in range(0, wide, TILE):
                _sum_wide(Y, idx1, val1, start, stop, f, G, s, f)
            for f in range(wide, p, LANES):
                _sum_narrow(Y, idx1, val1, start, stop, f, G, s, f)


def _step_rows(X, Y, U, Y_next, graphs, scratch, lam, numbers, momentum, tiles, sums):
    """Do the tiles ``tiles``: gradient step, prox, momentum; partial sums of each tile go to ``sums``."""
    p = Y.shape[1]
    ptr1, idx1, val1, ptr2, idx2, val2 = graphs
    Yt, Gt, G = scratch
    zero = lam - lam
    for tile in range(tiles[0], tiles[1]):
        first = tile * TILE
        gradient_tile(Y, first, ptr1, idx1, val1, ptr2, idx2, val2, Yt, Gt, G)
        change, norm, restart = 0.0, 0.0, 0.0
        for s in range(TILE):
            x, y, u, y_next, g = X[first + s], Y[first + s], U[first + s], Y_next[first + s], G[s]
            # One row is summed in the arrays' precision: widening every number would halve the speed.
            row_change, row_norm, row_restart = zero, zero, zero
            for f in range(p):
                z = y[f] - lam * g[f]
                new = prox(z, x[f], numbers, scalars)
                new = new if new == new else z
                move = new - u[f]
                ahead = new + momentum * move
                u[f] = new
                y_next[f] = ahead
                row_change += (ahead - y[f]) * (ahead - y[f])
                row_norm += y[f] * y[f]
                row_restart += (y[f] - new) * move
            change += row_change
            norm += row_norm
            restart += row_restart
        sums[tile, 0], sums[tile, 1], sums[tile, 2] = change, norm, restart


def _gap_rows(X, U, graphs, scratch, delta, box, tiles, sums):
    """Write the nine `frpcag.problem.Sums` of the tiles ``tiles``, all in float64; so are graphs and gradient here."""
    p = U.shape[1]
    ptr1, idx1, val1, ptr2, idx2, val2 = graphs
    Ut, Gt, G = scratch
    lo, hi, rows, columns = box
    for tile in range(tiles[0], tiles[1]):
        first = tile * TILE
        gradient_tile(U, first, ptr1, idx1, val1, ptr2, idx2, val2, Ut, Gt, G)
        data, VU, VR, duals, reach, size = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        # Of maxima the lowest and the highest: a chain of both is a vector operation, one of absolute values is not.
        V_low, V_high, top_low, top_high, U_low, U_high = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for s in range(TILE):
            x, u, g = X[first + s], U[first + s], G[s]
            low, high = lo * rows[first + s], hi * rows[first + s]
            for f in range(p):  # Numba's float() leaves a float32 as it is
                v, at = g[f], np.float64(u[f])
                r = np.float64(x[f]) - at
                seen = r == r
                below, above = low * columns[f] - at, high * columns[f] - at
                VU += v * at
                size += abs(at)
                VR += v * r if seen else min(v * below, v * above)
                reach += abs(r) if seen else max(abs(below), abs(above))
                U_low, U_high = min(U_low, at), max(U_high, at)
                top_low, top_high = min(top_low, v), max(top_high, v)
                v = v if seen else 0.0
                duals += dual(v, scalars)
                V_low, V_high = min(V_low, v), max(V_high, v)
            for f in range(p):
                r = abs(np.float64(x[f]) - np.float64(u[f]))
                r = r if r == r else 0.0
                data += value(r, delta, scalars)
        sums[tile, 0], sums[tile, 1], sums[tile, 2], sums[tile, 3] = data, VU, VR, duals
        sums[tile, 4], sums[tile, 5] = reach, size
        sums[tile, 6], sums[tile, 7] = max(-V_low, V_high), max(-top_low, top_high)
        sums[tile, 8] = max(-U_low, U_high)


def _slope_rows(U, graphs, scratch, V, tiles):
    """Write the gradient of the graph terms at ``U``, computed in float64, to the tiles ``tiles`` of ``V``."""
    ptr1, idx1, val1, ptr2, idx2, val2 = graphs
    Ut, Gt, G = scratch
    for tile in range(tiles[0], tiles[1]):
        gradient_tile(U, tile * TILE, ptr1, idx1, val1, ptr2, idx2, val2, Ut, Gt, G)
        for s in range(TILE):
            for f in range(U.shape[1]):
                V[tile * TILE + s, f] = G[s, f]


gradient_tile = compiled(_gradient_tile)
slope_rows = compiled(_slope_rows)


@cache
def step_rows_of(loss: str) -> Callable:
    """Return the kernel of the steps of a loss."""
    return completed(_step_rows, loss, prox=LOSSES[loss].prox)


@cache
def gap_rows_of(loss: str) -> Callable:
    """Return the kernel of the certificates of a loss."""
    return completed(_gap_rows, loss, value=LOSSES[loss].value, dual=LOSSES[loss].dual)
