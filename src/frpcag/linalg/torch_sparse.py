"""Sparse symmetric matrices on a device: what the graphs, gammas and step size need of them, in PyTorch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from scipy.linalg import eigh_tridiagonal
from torch import Tensor
from torch.nn.functional import embedding_bag

from frpcag.spectrum import MAX_STEPS, SETTLED


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
        return sp.csr_array(parts, shape=self.shape)

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
        """An upper estimate of the largest eigenvalue, as `frpcag.spectrum.largest_eigenvalue` gives it."""
        gershgorin = float(self.sum_rows(self.val.abs()).max()) if self.nnz else 0.0
        if gershgorin == 0.0:
            return 0.0
        theta, residual = _lanczos_top(self, gershgorin, margin=0.01)
        return min(1.01 * (theta + residual), 1.0) * gershgorin


def _lanczos_top(L: TorchCSR, scale: float, *, margin: float) -> tuple[float, float]:
    """Return the largest Ritz value of ``L / scale`` and the norm of its residual.

    The steps, start vector and stop of `frpcag.spectrum`, so that both devices take the same step size.
    """
    n = L.shape[0]
    q = torch.from_numpy(np.random.RandomState(0).standard_normal(n)).to(L.val.device)
    Q = torch.empty((min(n, MAX_STEPS), n), dtype=torch.float64, device=q.device)
    alphas: list[float] = []
    betas: list[float] = []
    norm = float(q.norm())
    for step in range(1, len(Q) + 1):
        q = q / norm
        Q[step - 1] = q
        q = L.matvec(q) / scale
        alpha = q @ Q[step - 1]
        for _ in range(2):  # once is not enough in floating point, twice is
            q = q - Q[:step].T @ (Q[:step] @ q)
        alpha, norm = torch.stack([alpha, q.norm()]).tolist()  # the host looks once a step
        alphas.append(alpha)
        values, vectors = eigh_tridiagonal(alphas, betas)
        theta, residual = float(values[-1]), abs(norm * float(vectors[-1, -1]))
        if norm <= 1e-12 or residual <= SETTLED * margin * theta:
            break
        betas.append(norm)
    return theta, residual


def mean_pull(L: TorchCSR, X: Tensor, *, axis: int) -> float:
    """Return the mean of ``|L X|`` (``axis=0``) or ``|X L|`` over at most 2000 samples, for `scale_free_gamma`."""
    samples = torch.from_numpy(np.unique(np.linspace(0, len(X) - 1, min(len(X), 2000)).astype(int))).to(X.device)
    points = X if axis == 0 else X[samples].T.contiguous()
    nodes = samples if axis == 0 else torch.arange(len(points), device=X.device)
    at, columns, values = L.take(nodes)
    starts = torch.searchsorted(at, torch.arange(len(nodes), device=X.device))

    def gathered(weights: Tensor, A: Tensor) -> Tensor:
        return embedding_bag(columns, A, starts, mode="sum", per_sample_weights=weights.to(A.dtype))

    if not bool(torch.isnan(points).any()):
        return float(gathered(values, points).abs().mean(dtype=torch.float64))
    # Missing neighbours count as the average of those observed.
    own, diagonal = points[nodes], L.diagonal()[nodes, None].to(X.dtype)
    weights = torch.where(columns == nodes[at], 0.0, -values)
    there = gathered(weights, (~torch.isnan(points)).to(X.dtype))
    mean = torch.where(there > 0, gathered(weights, points.nan_to_num(nan=0.0)) / there, 0.0)
    total = torch.segment_reduce(weights, "sum", offsets=torch.cat([starts, starts.new_tensor([len(at)])]))
    pull = (diagonal * own - total[:, None].to(X.dtype) * mean)[~torch.isnan(own)]
    return float(pull.abs().mean(dtype=torch.float64))
