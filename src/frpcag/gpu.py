"""The stages of a fit on PyTorch tensors: they stay on their device from the data to the factors."""

from __future__ import annotations

import copy
from numbers import Integral
from typing import Any

import numpy as np
import torch
from sklearn.utils import check_random_state
from torch import Tensor

from frpcag.backends.torch_backend import require_memory
from frpcag.data.preprocess import check_flags, validate_matrix
from frpcag.factorize import RANK_TOL, _rank, check_n_components
from frpcag.graphs.torch_graphs import TensorGraph
from frpcag.graphs.torch_neighbors import BLOCK

# Both sides above this: a Gram matrix would cost more than a randomised sketch.
_GRAM_SIDE = 16384
_SKETCH_RANK = 256
# Rows per block of the Gram sum: bounds the float64 copy of a float32 block.
_BLOCK = 1 << 16
# Arrays of the size of X that a solve holds: the caller's X, the centred one, U, both Y, and the feature gradient.
ARRAYS = 6


def fit_bytes(shape: tuple[int, int], itemsize: int, n_neighbors: int) -> int:
    """Return the most GPU memory a fit takes, ``X`` included: while it solves, or while it looks for neighbours.

    The solve holds six arrays of the size of ``X`` and the graphs, 80 bytes for each of the K neighbours of a node. The
    search holds ``X``, centred and in float16 too, and four blocks of scores or differences.

    Examples
    --------
    >>> from frpcag.gpu import fit_bytes
    >>> fit_bytes((70000, 784), 4, 10) / 1e9
    1.8...
    """
    n, p = shape
    size = n * p * itemsize
    blocks = 16 * min(max(n * n, p * p, 32 * n * p), BLOCK)
    return max(ARRAYS * size + 80 * (n + p) * n_neighbors, 7 * size // 2 + blocks)


def load_matrix(model: Any, X: Any) -> Tensor:
    """Return ``X`` on the device where it is fitted: its own for a tensor, the GPU if there is one for other arrays.

    Raises
    ------
    MemoryError
        With the bytes needed and free, when the arrays of the fit would not fit in GPU memory.
    """
    if not isinstance(X, torch.Tensor):
        X = validate_matrix(model, X, reset=True)
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        require_memory(fit_bytes(X.shape, X.dtype.itemsize, _neighbors(model)), device)
        X = np.ascontiguousarray(X.toarray() if hasattr(X, "toarray") else X)
        return torch.from_numpy(X if X.flags.writeable else X.copy()).to(device)
    if X.ndim != 2 or X.shape[0] < 2 or X.shape[1] < 1:
        raise ValueError(f"X has shape {tuple(X.shape)}; it must have at least 2 rows and 1 column.")
    model.n_features_in_ = X.shape[1]
    X = X.detach()
    X = X if X.dtype in (torch.float32, torch.float64) else X.double()
    size = X.numel() * X.itemsize  # there already
    require_memory(fit_bytes(tuple(X.shape), X.itemsize, _neighbors(model)) - size, X.device)
    if bool(torch.isfinite(X.sum())):
        return X
    if bool(torch.isinf(X).any()):
        raise ValueError("X has infinite entries; replace them or mark them as missing with NaN.")
    for what, axis in (("row", 1), ("column", 0)):
        empty = torch.isnan(X).all(dim=axis).nonzero()
        if len(empty):
            raise ValueError(f"{what} {int(empty[0])} of X has no observed entry (NaN throughout); drop it.")
    return X


def _neighbors(model: Any) -> int:
    return int(model.n_neighbors) if isinstance(model.n_neighbors, Integral) else 0  # the graphs will complain


def center_and_scale(X: Tensor, *, center: bool, scale: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Return what `frpcag.data.center_and_scale` does, of a tensor."""
    check_flags(center=center, scale=scale)
    mean = torch.zeros(X.shape[1], dtype=torch.float64, device=X.device)
    std = torch.ones_like(mean)
    if center or scale:
        mean = _column_mean(X)
    if scale:
        std = _column_mean((X - mean.to(X.dtype)).square()).sqrt()
        # A spread below the rounding of the values is noise; dividing by it would blow that noise up.
        std[std <= torch.finfo(X.dtype).eps * mean.abs()] = 1.0
    if not center:
        mean = torch.zeros_like(mean)
    Xc = X - mean.to(X.dtype)
    return (Xc.div_(std.to(X.dtype)) if scale else Xc).contiguous(), mean, std


def _column_mean(X: Tensor) -> Tensor:
    mean = X.mean(dim=0, dtype=torch.float64)
    return mean if bool(torch.isfinite(mean).all()) else X.double().nanmean(dim=0)


def finish(model: Any, X: Tensor, U: Tensor) -> None:
    """Factorise the clean part and name the results, as the estimator does with NumPy arrays."""
    origin = U.mean(dim=0, dtype=torch.float64)
    origin = origin if model.center else torch.zeros_like(origin)
    U -= origin.to(U.dtype)
    model.mean_ = model.center_ + origin * model.scale_
    W, Sigma, V = gram_svd(U, model.n_components, random_state=model.random_state)
    model.embedding_, model.components_, model.singular_values_ = W * Sigma, V.T.contiguous(), Sigma
    U *= model.scale_.to(U.dtype)
    U += model.mean_.to(U.dtype)
    model.low_rank_ = U
    model.sparse_ = (X - U).nan_to_num_(nan=0.0)


def gram_svd(U: Tensor, n_components: int | float | None = None, *, random_state=None) -> tuple[Tensor, Tensor, Tensor]:
    """Factorise a tensor as `frpcag.factorize.gram_svd` does an array."""
    n, p = U.shape
    check_n_components(n_components, n, p)
    if min(n, p) > _GRAM_SIDE:
        rank = int(n_components) if isinstance(n_components, Integral) else _SKETCH_RANK
        W, Sigma, V = _sketched_svd(U, min(rank, n, p), check_random_state(random_state))
        c = _rank(Sigma.cpu().numpy(), n_components, RANK_TOL)
        W, Sigma, V = W[:, :c], Sigma[:c], V[:, :c]
    else:
        A = U if p <= n else U.T
        gram = torch.zeros((A.shape[1], A.shape[1]), dtype=torch.float64, device=U.device)
        for block in A.split(_BLOCK):
            gram += block.double().T @ block.double()
        values, vectors = torch.linalg.eigh(gram)
        Sigma = values.flip(0).clamp(min=0.0).sqrt()
        c = _rank(Sigma.cpu().numpy(), n_components, RANK_TOL)
        Sigma, V = Sigma[:c], vectors.flip(1)[:, :c]
        inverse = torch.where(Sigma > 0, 1 / Sigma, 0.0)
        other = A @ (V * inverse).to(U.dtype)
        W, V = (other, V) if p <= n else (V, other)
    signs = V.gather(0, V.abs().argmax(dim=0, keepdim=True)).sign()[0]
    signs = torch.where(signs == 0, 1, signs)
    return (W * signs).to(U.dtype), Sigma.to(U.dtype), (V * signs).to(U.dtype)


def _sketched_svd(U: Tensor, rank: int, rng: np.random.RandomState) -> tuple[Tensor, Tensor, Tensor]:
    """Return the largest singular triplets from a random sketch, refined by four power steps."""
    start = torch.from_numpy(rng.standard_normal((U.shape[1], min(rank + 10, *U.shape)))).to(U)
    Q = torch.linalg.qr(U @ start).Q
    for _ in range(4):
        Q = torch.linalg.qr(U @ torch.linalg.qr(U.T @ Q).Q).Q
    W, Sigma, Vt = torch.linalg.svd(Q.T @ U, full_matrices=False)
    return (Q @ W)[:, :rank], Sigma[:rank], Vt.T[:, :rank]


def to_host(model: Any) -> Any:
    """Return a copy of a fitted model whose attributes are NumPy arrays and graphs of SciPy matrices."""
    model = copy.copy(model)
    results = {name: value for name, value in vars(model).items() if name.endswith("_")}
    for name, value in results.items():
        if isinstance(value, torch.Tensor):
            setattr(model, name, value.cpu().numpy())
        elif isinstance(value, TensorGraph):
            setattr(model, name, value.to_host())
    return model


def on_host(model: Any, method: str, X: Any) -> Tensor:
    """Call a method of a model fitted on tensors through its copy on the host; the result goes to the device."""
    rows = X.detach().cpu().numpy() if isinstance(X, torch.Tensor) else X
    return torch.from_numpy(np.asarray(getattr(to_host(model), method)(rows))).to(model.low_rank_.device)
