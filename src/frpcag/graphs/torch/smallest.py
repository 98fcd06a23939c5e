"""The smallest scores of each row of a long matrix: every score is read once, and only a few are ranked."""

from __future__ import annotations

from importlib.util import find_spec

import torch
from torch import Tensor

# Columns of a group; up to so many groups for each score wanted, ranking all scores is as fast.
GROUP = 32
_FEW = 8


def smallest(offsets: Tensor, products: Tensor, count: int, *, grouped: bool | None = None) -> tuple[Tensor, Tensor]:
    """Return the ``count`` smallest of ``offsets - products`` in each row, in ascending order, and their columns.

    The smallest entries lie in the groups of columns with the smallest minima, at most one group for each entry. So
    the minima of the groups are ranked first, then the entries of the best groups.

    Parameters
    ----------
    offsets : float32 tensor of shape (n,)
    products : contiguous float32 tensor of shape (m, n)
    count : int
        At most ``n``.
    grouped : bool, optional
        Whether groups are ranked first; by default for long rows on a GPU.

    Examples
    --------
    >>> import torch
    >>> from frpcag.graphs.torch.smallest import smallest
    >>> values, columns = smallest(torch.tensor([3.0, 1.0, 2.0]), torch.zeros(1, 3), 2)
    >>> values.tolist(), columns.tolist()
    ([[1.0, 2.0]], [[1, 2]])
    """
    n = products.shape[1]
    if grouped is None:
        grouped = products.is_cuda and n > _FEW * GROUP * count and find_spec("triton") is not None
    if not grouped:
        return torch.topk(offsets - products, count, largest=False)
    from frpcag.graphs.torch.group_minima import group_minima

    minima = group_minima(offsets, products, GROUP)
    best = torch.topk(minima, min(count, minima.shape[1]), largest=False, sorted=False).indices
    columns = (best[:, :, None] * GROUP + torch.arange(GROUP, device=best.device)).flatten(start_dim=1)
    inside = columns.clamp(max=n - 1)
    scores = torch.where(columns < n, offsets[inside] - products.gather(1, inside), torch.inf)
    values, at = torch.topk(scores, count, largest=False)
    return values, inside.gather(1, at)
