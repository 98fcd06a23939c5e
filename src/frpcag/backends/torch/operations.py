"""The arithmetic of a step and of a certificate in tensor operations, on any device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from frpcag.backends.base import power_of_two
from frpcag.linalg.torch_sparse import TorchCSR
from frpcag.losses import LOSSES

# Columns, starts of the rows, and entries of a sparse matrix.
Lists = tuple[Tensor, Tensor, Tensor]
# Entries of a certificate worked on at a time: their float64 copies stay small beside the tensors.
BLOCK = 1 << 22


def scaled(L: TorchCSR | None, factor: float) -> Lists | None:
    """Return the lists of ``factor * L`` in float64; None where there is nothing."""
    return None if L is None or factor == 0 else (L.idx.long(), L.ptr[:-1], factor * L.val)


def in_step_units(lists: Lists | None, step: float, dtype: torch.dtype) -> Lists | None:
    """Return lists with entries times `power_of_two` of the step, in the dtype of the iterates."""
    return None if lists is None else (*lists[:2], (power_of_two(step) * lists[2]).to(dtype))


def _gathered(lists: Lists, Y: Tensor) -> Tensor:
    """Return the weighted sums of rows of ``Y``: faster than PyTorch's sparse products on a CPU."""
    idx, starts, val = lists
    return embedding_bag(idx, Y, starts, mode="sum", per_sample_weights=val)


def gradient(Y: Tensor, n: int, L1: Lists | None, L2: Lists | None) -> Tensor:
    """Return the gradient of the smooth part at the first ``n`` rows of ``Y``; the graph may reach below them."""
    V = torch.zeros_like(Y[:n])
    if L1 is not None:
        V += _gathered(L1, Y)
    if L2 is not None:
        V += _gathered(L2, Y[:n].T.contiguous()).T
    return V


def advanced(
    X: Tensor, U_old: Tensor, Y: Tensor, V: Tensor, seen: Any, lam: float, prox: Callable, momentum: float
) -> tuple[Tensor, ...]:
    """Do one step: return the next U and Y, and the sums of `StepScalars`, which stay on the device.

    ``seen`` is None, or where ``X`` is observed; ``prox(Z, X)`` is that of the loss for the step.
    """
    Z = Y - lam * V
    U = prox(Z, X)
    U = U if seen is None else torch.where(seen, U, Z)
    Y_next = U + momentum * (U - U_old)
    sums = ((Y_next - Y).square(), Y.square(), (Y - U) * (U - U_old))
    return U, Y_next, torch.stack([s.sum(dtype=torch.float64) for s in sums])


def certificate_sums(
    X: Tensor,
    U: Tensor,
    L1: Lists | None,
    L2: Lists | None,
    seen: Any,
    box: tuple,
    loss: str,
    delta: float,
    at: int = 0,
) -> list[float]:
    """Return the numbers of `frpcag.problem.Sums`; ``U`` is in float64, and ``box`` as of `box`, for missing entries.

    The graph may reach beyond the rows of ``X``: these are the rows of ``U`` and of ``L1`` from ``at`` on.
    """
    n, p = X.shape
    parts = []
    for first in range(0, n, step := max(1, BLOCK // p)):
        rows = slice(first, min(first + step, n))
        some = None if seen is None else seen[rows]
        some_box = box if seen is None else (*box[:2], box[2][rows], box[3])
        there = slice(at + rows.start, at + rows.stop)
        V = gradient_rows(U, there, L1, L2)
        parts.append(_sums_of_rows(X[rows].double(), U[there], V, some, some_box, loss, delta))
    found = torch.stack(parts)
    return [*found[:, :6].sum(dim=0).tolist(), *found[:, 6:].amax(dim=0).tolist()]


def gradient_rows(U: Tensor, rows: slice, L1: Lists | None, L2: Lists | None) -> Tensor:
    """Return some rows of the gradient of the smooth part."""
    V = torch.zeros_like(U[rows])
    if L1 is not None:
        idx, starts, val = L1
        ends = [int(starts[at]) if at < len(starts) else len(idx) for at in (rows.start, rows.stop)]
        places = slice(*ends)
        V += _gathered((idx[places], starts[rows] - ends[0], val[places]), U)
    if L2 is not None:
        V += _gathered(L2, U[rows].T.contiguous()).T
    return V


def slopes(U: Tensor, n: int, L1: Lists | None, L2: Lists | None, dtype: torch.dtype) -> Tensor:
    """Return the gradient of the smooth part at the first ``n`` rows of ``U``, which is in float64."""
    V = torch.empty((n, U.shape[1]), dtype=dtype, device=U.device)
    for first in range(0, n, step := max(1, BLOCK // U.shape[1])):
        rows = slice(first, min(first + step, n))
        V[rows] = gradient_rows(U, rows, L1, L2).to(dtype)
    return V


def _sums_of_rows(X: Tensor, U: Tensor, V: Tensor, seen: Any, box: tuple, loss: str, delta: float) -> Tensor:
    R = X - U
    VU, VR, reach, top = (V * U).sum(), V * R, R.abs(), V.abs().max()
    if seen is not None:
        lo, hi, rows, columns = box
        below, above = (end * rows[:, None] * columns - U for end in (lo, hi))
        VR = torch.where(seen, VR, torch.minimum(V * below, V * above))
        reach = torch.where(seen, reach, torch.maximum(below.abs(), above.abs()))
        V, R = torch.where(seen, V, 0.0), torch.where(seen, R, 0.0)
    data, duals = LOSSES[loss].value(R.abs(), delta, torch), LOSSES[loss].dual(V, torch)
    sums = (data.sum(), VU, VR.sum(), duals.sum(), reach.sum(), U.abs().sum())
    return torch.stack([*sums, V.abs().max(), top, U.abs().max()])
