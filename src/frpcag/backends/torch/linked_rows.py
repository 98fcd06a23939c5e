"""The steps of single rows that are linked to fixed ones, as tensors; see `frpcag.backends.numba.linked_rows`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from frpcag.backends.torch.operations import Lists, gradient
from frpcag.losses import LOSSES


def solve_rows(X: Tensor, middle: Tensor, L2: Lists | None, loss: str, parts: tuple[Any, ...], most: int) -> Tensor:
    """Return the clean part of each row by accelerated proximal gradient steps.

    Parameters
    ----------
    X, middle : tensor of shape (n_rows, n_features)
    L2 : tuple of tensors or None
        The lists of ``L2``, in the dtype of ``X``.
    loss : str
    parts : tuple of ndarray of shape (n_rows,), the last with a second axis
        See `RowTerms.steps` of `frpcag.rows.terms`.
    most : int
        Steps at most.
    """
    curved, weight, momentum, settled, numbers = (
        torch.as_tensor(part).to(X.device, X.dtype)[:, None] for part in parts
    )
    prox = LOSSES[loss].prox
    missing = torch.isnan(X)
    u = y = middle
    rounding = 2 * torch.finfo(X.dtype).eps
    going = torch.ones_like(curved, dtype=torch.bool)
    for number in range(most):
        v = y - curved * (y - middle)
        if L2 is not None:
            v = v - weight * gradient(y, len(y), None, L2)
        moved = prox(v, X, numbers.unbind(2), torch)
        moved = torch.where(going, torch.where(missing, v, moved), u)
        change = (moved - u).abs().amax(dim=1, keepdim=True)
        y, u = moved + momentum * (moved - u), moved
        size, largest = ((u - part).abs().amax(dim=1, keepdim=True) for part in (middle, 0))
        going = going & (change > settled * size + rounding * largest)
        # Asking a GPU costs as much as a step.
        if number % 8 == 7 and not bool(going.any()):
            break
    return u
