"""The robust fit of rows as products of tensors; see `frpcag.backends.numba.robust_rows` for the same, row by row."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor


class Training(NamedTuple):
    """Training rows, how near equal values are, values that many of their cells hold, and how many, by column."""

    X: Tensor
    tol: float
    common: Tensor
    rates: Tensor


def fit_rows(
    model: Any,
    Z: Tensor,
    seen: Tensor,
    rate: Tensor,
    *,
    widths: np.ndarray,
    relax: float,
    momentum: float,
    settled: float,
    most: float,
):
    """Return the predictions of all cells and the probability that each is wrong."""
    B, scale, prior, inverse = (
        torch.from_numpy(np.ascontiguousarray(part, np.float32)).to(Z.device)
        for part in (model.B, model.scale, model.prior, model.inverse)
    )
    count = seen.sum(1, keepdim=True).clamp(min=1)
    a = torch.zeros((len(Z), B.shape[1]), device=Z.device)
    moved = torch.zeros_like(a)
    any_share = same_share = torch.full((len(Z), 1), 0.05, device=Z.device)
    going = torch.ones_like(count, dtype=torch.bool)
    same = rate >= 0
    predicted, wrong = Z, seen
    for step, width in enumerate(widths.tolist()):
        predicted = a @ B.T
        rest = Z - predicted
        y = 1 + 0.25 * torch.square(rest / (scale * width))
        fall = 1 / (y * y * torch.sqrt(y))
        bad = torch.where(same, same_share, any_share * model.density)
        right = 0.375 * (1 - any_share) * fall / (scale * width)
        good = torch.where(same, (1 - same_share) * rate * fall, right)
        wrong = seen * bad / (bad + good)
        if step == len(widths) - 1:
            break
        v = rest / scale
        weight = (seen - wrong) * 1.25 / y * v / scale
        any_new = ((wrong * ~same).sum(1, keepdim=True) / count - model.usual[0]).clamp(1e-3, most)
        same_new = ((wrong * same).sum(1, keepdim=True) / count - model.usual[1]).clamp(1e-5, most)
        any_share, same_share = torch.where(going, any_new, any_share), torch.where(going, same_new, same_share)
        moved = going * (relax * ((weight @ B - prior * a) @ inverse) + momentum * moved)
        a = a + moved
        if width == 1:  # a row that has settled stays as it is
            far, near = (torch.square(part) @ prior[:, None] for part in (a, moved))
            going = going & (near > settled * (far + 1))
    return predicted, wrong


def repeat_rates(rows: Tensor, near: Tensor, weights: Tensor, training: Training, *, least: int) -> Tensor:
    """Return how often right cells hold a value that a row repeats, where it does; -1 elsewhere."""
    k = near.shape[1]
    rate = torch.full(rows.shape, -1.0, device=rows.device)
    around = training.X[near]  # (m, k, p)
    for v in repeated(rows, least).T:
        held = ((around - v[:, None, None]).abs() <= training.tol).float()
        nearby = torch.einsum("mk,mkp->mp", weights, held)
        everywhere = torch.zeros_like(nearby)
        for value, rates in zip(training.common, training.rates, strict=True):
            everywhere = torch.where(((v - value).abs() <= training.tol)[:, None], rates, everywhere)
        rate = torch.where(rows == v[:, None], (k * nearby + 2 * everywhere + 1e-3) / (k + 2), rate)
    return rate


def repeated(rows: Tensor, least: int) -> Tensor:
    """Return the two values that each row holds most often, at least ``least`` times; NaN for none."""
    m, p = rows.shape
    ordered = rows.sort(dim=1).values  # NaN last, each a run of its own
    new = torch.ones_like(ordered, dtype=torch.bool)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    run = new.cumsum(dim=1) - 1
    lengths = torch.zeros((m, p), dtype=torch.int64, device=rows.device).scatter_add_(1, run, torch.ones_like(run))
    first = torch.zeros_like(ordered).scatter_reduce_(1, run, ordered, "amin", include_self=False)
    # Of runs of the same length, the smaller value: the key tells the run, too.
    key = lengths * p + (p - 1 - torch.arange(p, device=rows.device))
    at = key.topk(min(2, p), dim=1).indices
    found = torch.where(lengths.gather(1, at) >= least, first.gather(1, at), torch.nan)
    return found if p > 1 else torch.cat([found, torch.full_like(found, torch.nan)], dim=1)
