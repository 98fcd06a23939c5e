"""PyTorch's side of the seam `frpcag.linalg.arrays`: tensors stay on their device, in their dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from frpcag.linalg.arrays import HostArrays
from frpcag.linalg.torch_sparse import TorchCSR

# Entries of a product that are held at once before they are summed.
MOST_ENTRIES = 2**24


class TorchArrays(HostArrays):
    """PyTorch's spelling; every name of `HostArrays` is written again."""

    where, abs, clip, square, sqrt, sign = torch.where, torch.abs, torch.clip, torch.square, torch.sqrt, torch.sign
    zeros_like, empty_like = torch.zeros_like, torch.empty_like
    inv, solve, eigh, qr = torch.linalg.inv, torch.linalg.solve, torch.linalg.eigh, torch.linalg.qr
    double = torch.float64

    @staticmethod
    def cast(A: Tensor, dtype: Any) -> Tensor:
        return A.to(dtype)

    @staticmethod
    def copy(A: Tensor) -> Tensor:
        return A.clone(memory_format=torch.contiguous_format)

    @staticmethod
    def of(A: np.ndarray, like: Tensor) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(A)).to(like.device, like.dtype)

    @staticmethod
    def index(A: np.ndarray, like: Tensor) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(A, np.int64)).to(like.device)

    @staticmethod
    def host(A: Tensor) -> np.ndarray:
        return A.cpu().numpy()

    @staticmethod
    def float_type(A: Tensor) -> np.dtype:
        return np.dtype(str(A.dtype).removeprefix("torch."))

    @staticmethod
    def zeros(shape: tuple[int, ...], like: Tensor) -> Tensor:
        return torch.zeros(shape, dtype=like.dtype, device=like.device)

    @staticmethod
    def empty(shape: tuple[int, ...], like: Tensor) -> Tensor:
        return torch.empty(shape, dtype=like.dtype, device=like.device)

    @staticmethod
    def tiled(C: Tensor, n: int) -> Tensor:
        return C[None].repeat(n, 1, 1)

    @staticmethod
    def weighed(weight: Any, A: Tensor) -> Tensor:
        return float(weight) * A

    @staticmethod
    def leading(V: Tensor, rank: int) -> Tensor:
        return V.flip(1)[:, :rank]

    @staticmethod
    def sorted(A: Tensor) -> Tensor:
        return A.sort(dim=0).values

    @staticmethod
    def medians(A: Tensor) -> Tensor:
        ordered, n = A.sort(dim=0).values, len(A)
        return (ordered[(n - 1) // 2] + ordered[n // 2]) / 2

    @staticmethod
    def mean_of_smallest(flat: Tensor, count: int) -> float:
        return float(flat.sort().values[:count].mean(dtype=torch.float64))

    @staticmethod
    def deviation(flat: Tensor) -> float:
        return float(flat.double().std(correction=0))

    @staticmethod
    def sparse(L: sp.csr_array, like: Tensor) -> TorchCSR:
        return TorchCSR.of(L, like.device)

    @staticmethod
    def product(W: sp.csr_array, Z: Tensor) -> Tensor:
        """Return ``W @ Z``, sums in a fixed order; `TorchCSR` says why not ``torch.sparse_csr``."""
        A = sp.csr_array(W)
        ptr, idx = (torch.from_numpy(part.astype(np.int64)).to(Z.device) for part in (A.indptr, A.indices))
        val = TorchArrays.of(A.data, Z)
        out = Z.new_empty((A.shape[0], Z.shape[1]))
        at_once = max(1, int(MOST_ENTRIES / max(1.0, A.nnz / max(A.shape[0], 1) * Z.shape[1])))
        for start in range(0, A.shape[0], at_once):
            stop = min(start + at_once, A.shape[0])
            part = slice(int(A.indptr[start]), int(A.indptr[stop]))
            terms = val[part, None] * Z[idx[part]]
            offsets = ptr[start : stop + 1] - part.start
            out[start:stop] = torch.segment_reduce(terms, "sum", offsets=offsets, axis=0, initial=0.0, unsafe=True)
        return out
