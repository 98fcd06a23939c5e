"""The robust fit of rows as products of tensors; see `frpcag.backends.numba.robust_rows` for the same, row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor


def fit_rows(
    model: Any, Z: Tensor, seen: Tensor, rate: Tensor, *, widths: np.ndarray, relax: float, momentum: float, most: float
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
        any_share = ((wrong * ~same).sum(1, keepdim=True) / count - model.usual[0]).clamp(1e-3, most)
        same_share = ((wrong * same).sum(1, keepdim=True) / count - model.usual[1]).clamp(1e-5, most)
        moved = relax * ((weight @ B - prior * a) @ inverse) + momentum * moved
        a = a + moved
    return predicted, wrong
