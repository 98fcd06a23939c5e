"""GPU kernels: one solver step in two passes over the data, the certificate in two more, in float64.

`feature_pass` writes ``G = Y (2 gamma2 L2)``. Each program transposes a tile of rows into a scratch area that stays in
cache, so that a gathered feature is one contiguous read of all rows of the tile, and the index lists of L2 are read
once per tile. `step_pass` adds the sample gather ``(2 gamma1 L1) Y``, then does the gradient step, prox, momentum and
sums. It walks through panels of columns, all rows of one panel after the other: the panel of ``Y`` that is gathered
from stays in the level-2 cache. Far from the optimum both passes read a copy of ``Y`` in float16, half the bytes;
certificates never do. `finish_step` adds the partial sums up in a fixed order and decides on the restart, so
that the host need not look after every step.

The numbers of a run lie in a vector of float64 on the device (``control``): scalar arguments of Triton are float32.
"""

from __future__ import annotations

import triton
import triton.language as tl

# Places in ``control``: what the device keeps from step to step, what it tells the host, and constants of the run.
T = tl.constexpr(0)
MOMENTUM = tl.constexpr(1)
RESTARTS = tl.constexpr(2)
CHANGE = tl.constexpr(3)
NORM = tl.constexpr(4)
RESTART = tl.constexpr(5)
LAM = tl.constexpr(6)
KEEP = tl.constexpr(7)
EDGE = tl.constexpr(8)
LIMIT = tl.constexpr(9)
LOW = tl.constexpr(10)
HIGH = tl.constexpr(11)
DELTA = tl.constexpr(12)
Y_SCALE = tl.constexpr(13)
G_SCALE = tl.constexpr(14)
CONTROL_SIZE = 16


@triton.jit
def feature_pass(Y, G, scratch, starts, idx, val, n, p, ROWS: tl.constexpr, FEATURES: tl.constexpr):
    """Write rows of ``Y L2``; program i does the tiles i, i + number of programs, and so on.

    Sums are in the precision of ``val``: float64 for a certificate.
    """
    row, feature = tl.arange(0, ROWS), tl.arange(0, FEATURES)
    tile_t = scratch + tl.program_id(0).to(tl.int64) * p * ROWS  # (p, ROWS)
    for tile in range(tl.program_id(0), tl.cdiv(n, ROWS), tl.num_programs(0)):
        rows = tile * ROWS + row
        there = (rows < n)[:, None]
        places = rows.to(tl.int64)[:, None] * p
        for first in range(0, p, FEATURES):
            f = first + feature
            y = tl.load(Y + places + f[None, :], mask=there & (f < p)[None, :], other=0.0)
            tl.store(tile_t + f[:, None] * ROWS + row[None, :], tl.trans(y), mask=(f < p)[:, None])
        tl.debug_barrier()  # what the other threads of this program wrote is read next
        for part in range(0, tl.cdiv(p, FEATURES)):
            f = part * FEATURES + feature
            total = tl.zeros((FEATURES, ROWS), val.dtype.element_ty)
            for k in range(tl.load(starts + part), tl.load(starts + part + 1)):
                j = tl.load(idx + k * FEATURES + feature)
                w = tl.load(val + k * FEATURES + feature)
                total += w[:, None] * tl.load(tile_t + j[:, None] * ROWS + row[None, :]).to(val.dtype.element_ty)
            tl.store(G + places + f[None, :], tl.trans(total), mask=there & (f < p)[None, :])
        tl.debug_barrier()  # nobody may overwrite the tile while others still read it


@triton.jit
def dense_feature_pass(
    Y, G, high, low, starts, blocks, control, n, p,
    HALF: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """Write a block of ``Y L2`` by tensor cores, with the accuracy of float32; of float16 if ``Y`` is HALF.

    ``high + low`` is L2 in two float16 numbers, 22 bits; so is ``Y`` here, scaled to the range of float16. The product
    of the two low parts is below the rounding of float32. ``blocks`` lists, for each panel of columns, the blocks of
    DEPTH rows of L2 that are not zero: near features are linked, so many are. A HALF ``Y`` is scaled already.
    """
    panels = tl.cdiv(p, COLUMNS)
    panel = tl.program_id(0) % panels
    rows = (tl.program_id(0) // panels) * ROWS + tl.arange(0, ROWS)
    f = panel * COLUMNS + tl.arange(0, COLUMNS)
    depth = tl.arange(0, DEPTH)
    there, here = (rows < n)[:, None], (f < p)[None, :]
    places = rows.to(tl.int64)[:, None] * p
    scale = tl.load(control + Y_SCALE).to(tl.float32)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for block in range(tl.load(starts + panel), tl.load(starts + panel + 1)):
        k = tl.load(blocks + block) * DEPTH + depth
        y = tl.load(Y + places + k[None, :], mask=there & (k < p)[None, :], other=0.0)
        at = k[:, None] * p + f[None, :]
        L_high = tl.load(high + at, mask=(k < p)[:, None] & here, other=0.0)
        if HALF:
            total = tl.dot(y, L_high, total)
        else:
            y *= scale
            y_high = y.to(tl.float16)
            y_low = (y - y_high.to(tl.float32)).to(tl.float16)
            L_low = tl.load(low + at, mask=(k < p)[:, None] & here, other=0.0)
            total = tl.dot(y_high, L_low, total)
            total = tl.dot(y_low, L_high, total)
            total = tl.dot(y_high, L_high, total)
    total *= tl.load(control + G_SCALE).to(tl.float32)
    tl.store(G + places + f[None, :], total, mask=there & here)


@triton.jit
def _gradient_row(Y, G, g_row, ptr, idx, val, i, p, f, here, TWO: tl.constexpr, ONE: tl.constexpr, K: tl.constexpr):
    """Return a panel of row ``i`` of ``2 gamma1 L1 Y + G``, K neighbours at a time, in the precision of ``val``.

    ``g_row`` is where the row lies in ``G``.
    """
    g = tl.zeros_like(f).to(val.dtype.element_ty)
    if TWO:
        g = tl.load(G + g_row * p + f, mask=here, other=0.0, eviction_policy="evict_first")
    if ONE:
        neighbour = tl.arange(0, K)
        start, stop = tl.load(ptr + i), tl.load(ptr + i + 1)
        total = tl.zeros((K, f.shape[0]), val.dtype.element_ty)
        for k in range(start, stop, K):
            some = (k + neighbour) < stop
            j = tl.load(idx + k + neighbour, mask=some, other=0).to(tl.int64)
            w = tl.load(val + k + neighbour, mask=some, other=0.0)
            y = tl.load(
                Y + j[:, None] * p + f[None, :],
                mask=some[:, None] & here[None, :],
                other=0.0,
                eviction_policy="evict_last",
            )
            total += w[:, None] * y.to(val.dtype.element_ty)
        g += tl.sum(total, axis=0)
    return g


@triton.jit
def step_pass(
    X, Y, U, Y_next, near, near_next, G, ptr, idx, val, control, sums, n, p,
    HALF: tl.constexpr, TWO: tl.constexpr, ONE: tl.constexpr,
    ROWS: tl.constexpr, PANEL: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Do the step for ROWS rows of a panel; the sums of this program go to a column of ``sums``.

    Neighbours are read from ``near``: ``Y`` itself, or its copy in float16 if HALF, with the next one in ``near_next``;
    then ``Y_next`` may be ``Y``, of which each program reads its own rows only.
    """
    f = tl.program_id(1) * PANEL + tl.arange(0, PANEL)
    here = f < p
    real = X.dtype.element_ty
    momentum, lam = tl.load(control + MOMENTUM).to(real), tl.load(control + LAM).to(real)
    keep, edge, limit = (
        tl.load(control + KEEP).to(real),
        tl.load(control + EDGE).to(real),
        tl.load(control + LIMIT).to(real),
    )
    y_scale = tl.load(control + Y_SCALE).to(real)
    change, norm, restart = tl.zeros((PANEL,), real), tl.zeros((PANEL,), real), tl.zeros((PANEL,), real)
    first = tl.program_id(0).to(tl.int64) * ROWS
    for i in range(first, tl.minimum(first + ROWS, n)):
        place = i * p + f
        g = _gradient_row(near, G, i, ptr, idx, val, i, p, f, here, TWO, ONE, K)
        x = tl.load(X + place, mask=here, other=0.0, eviction_policy="evict_first")
        u = tl.load(U + place, mask=here, other=0.0, eviction_policy="evict_first")
        y = tl.load(Y + place, mask=here, other=0.0)
        z = y - lam * g
        d = z - x
        new = x + keep * d
        new = tl.where(d > edge, z - limit, new)
        new = tl.where(d < -edge, z + limit, new)
        new = tl.where(x == x, new, z)  # missing: no data term
        move = new - u
        ahead = new + momentum * move
        tl.store(U + place, new, mask=here, eviction_policy="evict_first")
        tl.store(Y_next + place, ahead, mask=here, eviction_policy="evict_first")
        if HALF:
            bounded = tl.minimum(tl.maximum(ahead * y_scale, -65504.0), 65504.0)  # no infinity, which would spread
            tl.store(near_next + place, bounded.to(near_next.dtype.element_ty), mask=here)
        # A few rows are summed in the arrays' precision, their sums in float64.
        change += (ahead - y) * (ahead - y)
        norm += y * y
        restart += (y - new) * move
    column = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    columns = tl.num_programs(0) * tl.num_programs(1)
    tl.store(sums + column, tl.sum(change.to(tl.float64), axis=0))
    tl.store(sums + columns + column, tl.sum(norm.to(tl.float64), axis=0))
    tl.store(sums + 2 * columns + column, tl.sum(restart.to(tl.float64), axis=0))


@triton.jit
def finish_step(sums, control, columns, BLOCK: tl.constexpr):
    """Add up the partial sums, restart or go on, and set the momentum of the next step."""
    at = tl.arange(0, BLOCK)
    change, norm = tl.zeros((BLOCK,), tl.float64), tl.zeros((BLOCK,), tl.float64)
    restart = tl.zeros((BLOCK,), tl.float64)
    for first in range(0, columns, BLOCK):
        some = first + at < columns
        change += tl.load(sums + first + at, mask=some, other=0.0)
        norm += tl.load(sums + columns + first + at, mask=some, other=0.0)
        restart += tl.load(sums + 2 * columns + first + at, mask=some, other=0.0)
    uphill = tl.sum(restart, axis=0)
    tl.store(control + CHANGE, tl.sum(change, axis=0))
    tl.store(control + NORM, tl.sum(norm, axis=0))
    tl.store(control + RESTART, uphill)
    t = tl.load(control + T)
    t_next = (1.0 + tl.sqrt(1.0 + 4.0 * t * t)) / 2.0
    t = tl.where((uphill > 0) & (tl.load(control + RESTARTS) > 0), t * 0.0 + 1.0, t_next)
    t_next = (1.0 + tl.sqrt(1.0 + 4.0 * t * t)) / 2.0
    tl.store(control + T, t)
    tl.store(control + MOMENTUM, (t - 1.0) / t_next)


@triton.jit
def gap_pass(
    X, U, G, ptr, idx, val, control, row_scale, column_scale, sums, start, stop, p,
    TWO: tl.constexpr, ONE: tl.constexpr, LOSS: tl.constexpr, MISSING: tl.constexpr,
    ROWS: tl.constexpr, PANEL: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Find the nine `frpcag.problem.Sums` of ROWS rows of a panel, of the rows from ``start`` on that ``G`` holds."""
    f = tl.program_id(1) * PANEL + tl.arange(0, PANEL)
    here = f < p
    data, VU = tl.zeros((PANEL,), tl.float64), tl.zeros((PANEL,), tl.float64)
    VR, VV = tl.zeros((PANEL,), tl.float64), tl.zeros((PANEL,), tl.float64)
    reach, size = tl.zeros((PANEL,), tl.float64), tl.zeros((PANEL,), tl.float64)
    Vmax, Vtop, Umax = tl.zeros((PANEL,), tl.float64), tl.zeros((PANEL,), tl.float64), tl.zeros((PANEL,), tl.float64)
    first = start + tl.program_id(0).to(tl.int64) * ROWS
    for i in range(first, tl.minimum(first + ROWS, stop)):
        place = i * p + f
        v = _gradient_row(U, G, i - start, ptr, idx, val, i, p, f, here, TWO, ONE, K)
        x = tl.load(X + place, mask=here, other=0.0).to(tl.float64)
        u = tl.load(U + place, mask=here, other=0.0).to(tl.float64)
        VU += v * u
        size += tl.abs(u)
        Umax = tl.maximum(Umax, tl.abs(u))
        Vtop = tl.maximum(Vtop, tl.abs(v))
        r = x - u
        vr, far = v * r, tl.abs(r)
        if MISSING:
            scale = tl.load(row_scale + i) * tl.load(column_scale + f, mask=here, other=0.0)
            seen = x == x
            below, above = tl.load(control + LOW) * scale - u, tl.load(control + HIGH) * scale - u
            vr = tl.where(seen, vr, tl.minimum(v * below, v * above))
            far = tl.where(seen, far, tl.maximum(tl.abs(below), tl.abs(above)))
            v = tl.where(seen, v, 0.0)
            r = tl.where(seen, r, 0.0)
        VR += vr
        reach += far
        VV += v * v
        Vmax = tl.maximum(Vmax, tl.abs(v))
        r = tl.abs(r)
        if LOSS == 1:
            r = r * r
        if LOSS == 2:
            delta = tl.load(control + DELTA)
            r = tl.where(r > delta, r - delta / 2, r * (r / (2 * delta)))
        data += r
    column = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    columns = tl.num_programs(0) * tl.num_programs(1)
    tl.store(sums + column, tl.sum(data, axis=0))
    tl.store(sums + columns + column, tl.sum(VU, axis=0))
    tl.store(sums + 2 * columns + column, tl.sum(VR, axis=0))
    tl.store(sums + 3 * columns + column, tl.sum(VV, axis=0))
    tl.store(sums + 4 * columns + column, tl.sum(reach, axis=0))
    tl.store(sums + 5 * columns + column, tl.sum(size, axis=0))
    tl.store(sums + 6 * columns + column, tl.max(Vmax, axis=0))
    tl.store(sums + 7 * columns + column, tl.max(Vtop, axis=0))
    tl.store(sums + 8 * columns + column, tl.max(Umax, axis=0))
