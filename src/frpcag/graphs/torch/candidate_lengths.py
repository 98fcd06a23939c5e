"""A Triton kernel: how far each row is from its candidates, without a copy of the candidates."""

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
