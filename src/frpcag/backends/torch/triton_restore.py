"""A GPU kernel for `frpcag.linalg.units.restore_rows`: the same numbers in one pass instead of some forty."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from frpcag.linalg.units import EPS, Moves, Terms, Units
from frpcag.problem import LOSSES

# Rows and columns of a program.
_ROWS, _COLUMNS = 4, 128


@triton.jit
def _distance(a, level, unit, inner, eps):
    difference = a - level
    back = difference - a
    lost = (a - (difference - back)) - (level + back)
    distance = difference / unit - inner
    return distance, tl.abs(lost) / unit + eps * tl.abs(distance)


@triton.jit
def _restore_pass(
    X, inner, U, V, left, right, units, reach1, reach2, numbers, sums, n, p,
    SLOPE: tl.constexpr, LOSS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Do what `restore_rows` does for a tile, term by term; ``U`` is overwritten."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    f = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    here = (row < n)[:, None] & (f < p)[None, :]
    place = row.to(tl.int64)[:, None] * p + f[None, :]
    eps, blur, delta, eps_slope = tl.load(numbers), tl.load(numbers + 2), tl.load(numbers + 3), tl.load(numbers + 4)
    level = tl.load(left + row, mask=row < n, other=0.0)[:, None] * tl.load(right + f, mask=f < p, other=0.0)[None, :]
    unit = tl.load(units + f, mask=f < p, other=1.0)[None, :]
    divided = tl.where(unit != 1, tl.load(numbers + 1), 0.0)
    given = tl.load(X + place, mask=here, other=0.0)
    there = tl.load(inner + place, mask=here, other=0.0)
    point = tl.load(U + place, mask=here, other=0.0)
    u = point.to(tl.float64)
    out = tl.where(there == point, given, (u * unit + level).to(given.dtype))
    tl.store(U + place, out, mask=here)
    x, at, there = given.to(tl.float64), out.to(tl.float64), there.to(tl.float64)
    slip = blur * tl.abs(level / unit)
    move, lost = _distance(at, level, unit, u, eps)
    lost = lost + divided * tl.abs(u) + slip
    moved = tl.where(here, tl.abs(move) + lost, 0.0)
    off, rest = _distance(x, level, unit, there, eps)
    seen = here & (x == x)
    drift = tl.where(seen, tl.abs(off) + rest + divided * tl.abs(there) + slip, 0.0)
    reach = (
        tl.load(reach1 + row, mask=row < n, other=0.0)[:, None] + tl.load(reach2 + f, mask=f < p, other=0.0)[None, :]
    )
    shift = tl.sqrt(reach) * moved
    r = tl.where(seen, tl.abs((x - at) / unit), 0.0)
    if LOSS == 1:
        r = r * r
    if LOSS == 2:
        r = tl.where(r > delta, r - delta / 2, r * r / (2 * delta))
    column = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    columns = tl.num_programs(0) * tl.num_programs(1)
    tl.store(sums + column, tl.sum(tl.sum(r, axis=1), axis=0))
    tl.store(sums + columns + column, tl.sum(tl.sum(shift * shift, axis=1), axis=0))
    tl.store(sums + 2 * columns + column, tl.sum(tl.sum(drift, axis=1), axis=0))
    tl.store(sums + 3 * columns + column, tl.sum(tl.sum(moved, axis=1), axis=0))
    if SLOPE:
        v = tl.load(V + place, mask=here, other=0.0).to(tl.float64)
        cross = tl.where(here, v * move + tl.abs(v) * (lost + eps_slope * moved), 0.0)
        tl.store(sums + 4 * columns + column, tl.sum(tl.sum(cross, axis=1), axis=0))


def restore_tensor(X: Tensor, inner: Tensor, U: Tensor, V: Tensor | None, units: Units, terms: Terms) -> Moves:
    """Bring ``U`` to the units of ``X`` in place, and return what rounding has moved; see `restore_rows`."""
    n, p = U.shape
    wide = {"dtype": torch.float64, "device": U.device}
    unit = torch.as_tensor(units.unit, **wide)
    divided = EPS if unit.ndim else 0.0  # quotients are rounded, unless they are by a power of two
    unit = unit.expand(p).contiguous()
    reach1 = torch.as_tensor(terms.reach1, **wide).expand(n).contiguous()
    left, right, reach2 = (torch.as_tensor(v, **wide).contiguous() for v in (units.left, units.right, terms.reach2))
    grid = (-(-n // _ROWS), -(-p // _COLUMNS))
    sums = torch.zeros((5, grid[0] * grid[1]), **wide)
    numbers = torch.tensor([EPS, divided, units.blur, terms.delta, torch.finfo(U.dtype).eps], **wide)
    _restore_pass[grid](
        X.contiguous(), inner.contiguous(), U, U if V is None else V.contiguous(), left, right, unit, reach1, reach2,
        numbers, sums, n, p, SLOPE=V is not None, LOSS=LOSSES.index(terms.loss), ROWS=_ROWS, COLUMNS=_COLUMNS,
        enable_fp_fusion=False,  # Knuth's sum is exact only without
    )  # fmt: skip
    data, shift, drift, walk, cross = sums.sum(dim=1).tolist()
    return Moves(data, shift, drift, walk, float("nan") if V is None else cross)
