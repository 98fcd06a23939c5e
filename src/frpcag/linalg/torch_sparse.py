"""Sparse symmetric matrices on a device: what the graphs, gammas and step size need of them, in PyTorch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from frpcag.linalg.lanczos import Vectors, largest_eigenvalue, start_vector, top_eigenvalue
from frpcag.linalg.small_indices import with_small_indices

# Below this many entries the host has a product sooner than a GPU has its kernels started.
_FEW_ENTRIES = 1 << 16


@dataclass(frozen=True, eq=False)
class TorchCSR:
    """A square sparse matrix in rows, float64, columns ascending in each row.

    Not ``torch.sparse_csr``: sums there are not in a fixed order on a GPU, and it warns that it is experimental.

    Parameters
    ----------
    ptr : int64 tensor of shape (n + 1,)
        Where each row starts in ``idx`` and ``val``.
    idx : int32 tensor of shape (nnz,)
        Columns.
    val : float64 tensor of shape (nnz,)
        Entries.
    """

    ptr: Tensor
    idx: Tensor
    val: Tensor

    @classmethod
    def of(cls, A: Any, device: Any) -> TorchCSR:
        """Return a SciPy matrix, copied to the device."""
        A = sp.csr_array(A, dtype=np.float64).sorted_indices()
        return cls(
            torch.from_numpy(A.indptr.astype(np.int64)).to(device),
            torch.from_numpy(A.indices.astype(np.int32)).to(device),
            torch.from_numpy(A.data).to(device),
        )

    def to_scipy(self) -> sp.csr_array:
        """Return the matrix as a SciPy array on the host."""
        parts = (self.val.cpu().numpy(), self.idx.cpu().numpy(), self.ptr.cpu().numpy())
        return with_small_indices(sp.csr_array(parts, shape=self.shape))

    def toarray(self) -> np.ndarray:
        """Return the matrix as a dense NumPy array on the host, as SciPy's method of this name does."""
        return self.to_scipy().toarray()

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.ptr) - 1, len(self.ptr) - 1

    @property
    def nnz(self) -> int:
        """Number of stored entries."""
        return len(self.val)

    @cached_property
    def rows(self) -> Tensor:
        """Row of every entry, int64."""
        return torch.repeat_interleave(torch.arange(self.shape[0], device=self.ptr.device), self.ptr.diff())

    def sum_rows(self, values: Tensor) -> Tensor:
        """Return the sums of one number per entry over the rows, in a fixed order."""
        return torch.segment_reduce(values, "sum", offsets=self.ptr, initial=0.0, unsafe=True)  # without checks

    def matvec(self, v: Tensor) -> Tensor:
        """Return the product with a vector of float64."""
        return self.sum_rows(self.val * v[self.idx])

    def diagonal(self) -> Tensor:
        """Return the diagonal."""
        return self.sum_rows(torch.where(self.rows == self.idx, self.val, 0.0))

    def take(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the entries of some rows: position in ``rows``, column and value of each."""
        starts, counts = self.ptr[rows], self.ptr[rows + 1] - self.ptr[rows]
        at = torch.repeat_interleave(torch.arange(len(rows), device=rows.device), counts)
        first = torch.repeat_interleave(starts - (counts.cumsum(0) - counts), counts)
        entries = first + torch.arange(len(at), device=rows.device)
        return at, self.idx[entries].long(), self.val[entries]

    @cached_property
    def lmax(self) -> float:
        """An upper estimate of the largest eigenvalue, as `frpcag.linalg.lanczos.largest_eigenvalue` gives it.

        Of a small matrix, or one in host memory, it is that function's: SciPy's product is an order of magnitude faster
        there, and its sums do not depend on the number of threads.
        """
        if self.val.device.type == "cpu" or self.nnz < _FEW_ENTRIES:
            return largest_eigenvalue(self.to_scipy())
        return self.lanczos()

    def lanczos(self) -> float:
        """Return it by a run on the device."""
        bound = float(self.sum_rows(self.val.abs()).max()) if self.nnz else 0.0
        start = torch.from_numpy(start_vector(np.arange(self.shape[0]))).to(self.val.device)
        return top_eigenvalue(Vectors(start, lambda v: self.matvec(v) / bound), bound)
