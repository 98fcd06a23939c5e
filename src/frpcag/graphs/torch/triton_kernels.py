"""Triton kernels: distances to candidates without a copy of these, minima of scores without a matrix of scores."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

# Candidates and features that a program works on at a time.
_CANDIDATES, _FEATURES = 8, 128


@triton.jit
def _lengths_pass(
    Q, Z, ids, lengths, p, n_candidates, cut,
    SQUARED: tl.constexpr, CANDIDATES: tl.constexpr, FEATURES: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    candidate = tl.program_id(1) * CANDIDATES + tl.arange(0, CANDIDATES)
    some = candidate < n_candidates
    theirs = tl.load(ids + row * n_candidates + candidate, mask=some, other=0) * p
    total = tl.zeros((CANDIDATES, FEATURES), tl.float32)
    for first in range(0, p, FEATURES):
        f = first + tl.arange(0, FEATURES)
        here = f < p
        z = tl.load(Q + row * p + f, mask=here, other=0.0)
        near = tl.load(Z + theirs[:, None] + f[None, :], mask=some[:, None] & here[None, :], other=0.0)
        d = tl.where(here[None, :], near - z[None, :], 0.0)
        total += d * d if SQUARED else tl.minimum(tl.abs(d), cut)
    length = tl.sum(total, axis=1)
    tl.store(lengths + row * n_candidates + candidate, tl.sqrt(length) if SQUARED else length, mask=some)


def candidate_lengths(Q: Tensor, Z: Tensor, ids: Tensor, cut: float | None = None) -> Tensor:
    """Return the distances of rows to their candidates, in float64 with the accuracy of float32.

    Parameters
    ----------
    Q, Z : float32 tensors of shape (m, p) and (n, p)
        ``Z`` is contiguous.
    ids : int64 tensor of shape (m, n_candidates)
        Rows of ``Z``.
    cut : float, optional
        For sums of absolute differences: the most that a feature adds. Without it, distances are Euclidean.
    """
    m, n_candidates = ids.shape
    lengths = torch.empty((m, n_candidates), dtype=torch.float32, device=Z.device)
    if m:
        _lengths_pass[(m, -(-n_candidates // _CANDIDATES))](
            Q.contiguous(), Z, ids.contiguous(), lengths, Z.shape[1], n_candidates,
            float("inf") if cut is None else cut, SQUARED=cut is None, CANDIDATES=_CANDIDATES, FEATURES=_FEATURES,
            num_warps=4,
        )  # fmt: skip
    return lengths.double()


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
