"""A Triton kernel: the smallest score in each group of columns, without a matrix of scores."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

# Groups of one program.
_GROUPS = 64


@triton.jit
def _minima_pass(offsets, products, minima, n, n_groups, GROUPS: tl.constexpr, GROUP: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    group = tl.program_id(1) * GROUPS + tl.arange(0, GROUPS)
    column = group[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    there = column < n
    score = tl.load(offsets + column, mask=there, other=float("inf"))
    score -= tl.load(products + row * n + column, mask=there, other=0.0, eviction_policy="evict_first")
    tl.store(minima + row * n_groups + group, tl.min(score, axis=1), mask=group < n_groups)


def group_minima(offsets: Tensor, products: Tensor, size: int) -> Tensor:
    """Return the minima of ``offsets - products`` over groups of ``size`` columns, of shape (m, n_groups)."""
    m, n = products.shape
    n_groups = -(-n // size)
    minima = torch.empty((m, n_groups), dtype=products.dtype, device=products.device)
    _minima_pass[(m, -(-n_groups // _GROUPS))](
        offsets, products.contiguous(), minima, n, n_groups, GROUPS=_GROUPS, GROUP=size
    )
    return minima
