"""The clean matrix in factors, of tensors on their device."""

from __future__ import annotations

from numbers import Integral

import numpy as np
import torch
from sklearn.utils import check_random_state
from torch import Tensor

from frpcag.linalg.factorize import check_n_components, count_components, fix_signs, power_unit

# Both sides above this: a Gram matrix would cost more than a randomised sketch.
_GRAM_SIDE = 16384
_SKETCH_RANK = 256
# Rows per block of the Gram sum: bounds the float64 copy of a float32 block.
_BLOCK = 1 << 16


def gram_svd(U: Tensor, n_components: int | float | None = None, *, random_state=None) -> tuple[Tensor, Tensor, Tensor]:
    """Factorise a tensor as `frpcag.linalg.factorize.gram_svd` does an array."""
    n, p = U.shape
    check_n_components(n_components, n, p)
    low, high = torch.stack(torch.aminmax(U)).tolist()
    unit = power_unit(max(-low, high), U.itemsize)
    scaled = U if unit == 1.0 else U / unit
    if min(n, p) > _GRAM_SIDE:
        rank = int(n_components) if isinstance(n_components, Integral) else _SKETCH_RANK
        W, Sigma, V = _sketched_svd(scaled, min(rank, n, p), check_random_state(random_state))
        c = count_components(Sigma.cpu().numpy(), n_components)
        W, Sigma, V = W[:, :c], Sigma[:c], V[:, :c]
    else:
        A = scaled if p <= n else scaled.T
        gram = torch.zeros((A.shape[1], A.shape[1]), dtype=torch.float64, device=U.device)
        for block in A.split(_BLOCK):
            gram += block.double().T @ block.double()
        values, vectors = torch.linalg.eigh(gram)
        Sigma = values.flip(0).clamp(min=0.0).sqrt()
        c = count_components(Sigma.cpu().numpy(), n_components)
        Sigma, V = Sigma[:c], vectors.flip(1)[:, :c]
        inverse = torch.where(Sigma > 0, 1 / Sigma, 0.0)
        other = A @ (V * inverse).to(U.dtype)
        W, V = (other, V) if p <= n else (V, other)
    V, W = fix_signs(V, W)
    return W.to(U.dtype), (Sigma * unit).to(U.dtype), V.to(U.dtype)


def _sketched_svd(U: Tensor, rank: int, rng: np.random.RandomState) -> tuple[Tensor, Tensor, Tensor]:
    """Return the largest singular triplets from a random sketch, refined by four power steps."""
    start = torch.from_numpy(rng.standard_normal((U.shape[1], min(rank + 10, *U.shape)))).to(U)
    Q = torch.linalg.qr(U @ start).Q
    for _ in range(4):
        Q = torch.linalg.qr(U @ torch.linalg.qr(U.T @ Q).Q).Q
    W, Sigma, Vt = torch.linalg.svd(Q.T @ U, full_matrices=False)
    return (Q @ W)[:, :rank], Sigma[:rank], Vt.T[:, :rank]
