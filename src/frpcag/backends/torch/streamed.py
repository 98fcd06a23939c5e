"""A solve on a device that is too small for it: arrays lie on the host, and row blocks go to the device and back.

The arithmetic is that of the tensor operations, row by row the same. Rows are in graph order, so that few neighbours of
a block lie outside of it; these, its halo, are gathered on the host. Two blocks are under way at a time, each on a
stream of its own: one is copied while the other is computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from scipy.sparse.csgraph import reverse_cuthill_mckee
from torch import Tensor

from frpcag.backends.base import StepScalars, power_of_two, solve_bytes
from frpcag.backends.torch.operations import (
    BLOCK,
    Lists,
    advanced,
    certificate_sums,
    gradient,
    in_step_units,
    scaled,
    slopes,
)
from frpcag.linalg.torch_sparse import TorchCSR
from frpcag.problem import Array, Certificate, Problem, Sums, certified, shrinkage, solution_box
from frpcag.runtime.memory import in_words, require_memory

# Blocks under way at a time.
_SLOTS = 2
# Arrays of a block's own rows that a step holds on the device, and of its rows and halo, beside their float64 copy.
_OWN_ARRAYS, _ALL_ARRAYS = 12, 2
# Float64 arrays of the rows that a certificate works on at a time.
_EXACT_ARRAYS = 10


@dataclass(frozen=True)
class _Block:
    """Rows of the matrix, in graph order, and their part of the sample graph; columns are own rows, then the halo."""

    rows: slice
    halo: Tensor
    starts: Tensor
    idx: Tensor
    exact: Tensor
    val: Tensor


class StreamedState:
    """Iterates on the host, and blocks of them on the way to the device and back.

    Parameters
    ----------
    problem : Problem
        Of NumPy arrays.
    device : torch.device
    step : float
        Step size.
    U0 : ndarray, optional
        Warm start.
    budget : int
        Bytes of the device that may be taken.
    """

    def __init__(self, problem: Problem, device: torch.device, *, step: float, U0: Any, budget: int) -> None:
        require_memory(*solve_bytes(problem))
        self.problem, self.device, self._lam = problem, device, step
        dtype = torch.from_numpy(problem.X[:1].copy()).dtype
        L1 = None if problem.L1 is None or problem.gamma1 == 0 else sp.csr_array(problem.L1).sorted_indices()
        n = len(problem.X)
        self._order = np.arange(n) if L1 is None else reverse_cuthill_mckee(sp.csr_matrix(L1), symmetric_mode=True)
        self._X = self._placed(problem.X)
        self._U = self._placed(problem.X if U0 is None else np.asarray(U0, dtype=problem.X.dtype))
        if problem.mask is not None:
            self._U.nan_to_num_(nan=0.0)
        self._Y, self._Y_next = self._room(self._U.shape, dtype).copy_(self._U), self._room(self._U.shape, dtype)
        L2 = None if problem.L2 is None else TorchCSR.of(problem.L2, device)
        self._exact2 = scaled(L2, 2 * problem.gamma2)
        self._step2 = in_step_units(self._exact2, step, dtype)
        parts = _cut(L1, self._order, problem.X, budget)
        self._blocks = [self._block(part, 2 * problem.gamma1, dtype) for part in parts]
        lo, hi, rows, columns = solution_box(problem)
        self._box = lo, hi, torch.from_numpy(rows[self._order]), torch.as_tensor(columns, device=device)
        most = max(len(block.halo) for block in self._blocks)
        self._halos = [self._room((most, problem.X.shape[1]), dtype) for _ in range(_SLOTS)]
        on_gpu = device.type == "cuda"
        self._streams: list[Any] = [torch.cuda.Stream(device) if on_gpu else None for _ in range(_SLOTS)]
        self._wait()

    @property
    def n_blocks(self) -> int:
        """Number of row blocks."""
        return len(self._blocks)

    def step(self, momentum: float) -> StepScalars:
        """Do one step of Shahid et al. 2016, Algorithm 1."""
        unit = power_of_two(self._lam)
        numbers = (self._lam / unit, *shrinkage(self.problem, self._lam), momentum)
        sums = []
        for slot, block in self._slots():
            with self._on(slot):
                X, U, Y = self._sent(self._X, block), self._sent(self._U, block), self._gathered(self._Y, slot, block)
                V = gradient(Y, len(X), self._lists(block, block.val), self._step2)
                U, ahead, parts = advanced(X, U, Y[: len(X)], V, self._seen(X), numbers)
                self._U[block.rows].copy_(U, non_blocking=True)
                self._Y_next[block.rows].copy_(ahead, non_blocking=True)
                sums.append(parts)
        self._wait()
        self._Y, self._Y_next = self._Y_next, self._Y
        return StepScalars(*torch.stack(sums).sum(dim=0).tolist())

    def certificate(self) -> Certificate:
        """Return what is proved about ``U``, in float64."""
        problem, (lo, hi, rows, columns) = self.problem, self._box
        found = []
        for slot, block in self._slots():
            with self._on(slot):
                X, U = self._sent(self._X, block), self._gathered(self._U, slot, block).double()
                box = (lo, hi, rows[block.rows].to(self.device), columns)
                lists = self._lists(block, block.exact)
                rest = (self._seen(X), box, problem.loss, problem.huber_delta)
                found.append(certificate_sums(X, U, lists, self._exact2, *rest))
        self._wait()
        sums = np.array(found)
        return certified(problem, Sums(*map(float, (*sums[:, :6].sum(axis=0), *sums[:, 6:].max(axis=0)))))

    def slope(self) -> Array:
        """Return the gradient of the graph terms at ``U``; it overwrites ``Y``."""
        for slot, block in self._slots():
            with self._on(slot):
                U, n = self._gathered(self._U, slot, block).double(), block.rows.stop - block.rows.start
                V = slopes(U, n, self._lists(block, block.exact), self._exact2, self._U.dtype)
                self._Y[block.rows].copy_(V, non_blocking=True)
        self._wait()
        return self._given_order(self._Y)

    def unload(self) -> Array:
        """Return ``U`` in the order of the caller's rows."""
        return self._given_order(self._U)

    def _given_order(self, A: Tensor) -> Array:
        out = np.empty(A.shape, self.problem.X.dtype)
        out[self._order] = A.numpy()
        return out

    def _room(self, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """Return room on the host, in pages that a GPU copies from and to by itself where there are enough of them."""
        if self.device.type == "cuda":
            try:
                return torch.empty(shape, dtype=dtype, pin_memory=True)
            except RuntimeError:  # the system limits such pages
                pass
        return torch.empty(shape, dtype=dtype)

    def _placed(self, A: Array) -> Tensor:
        """Return a copy of an array with its rows in graph order."""
        out = self._room(A.shape, torch.from_numpy(A[:1].copy()).dtype)
        for start in range(0, len(A), 4096):
            rows = slice(start, start + 4096)
            out[rows] = torch.from_numpy(A[self._order[rows]])
        return out

    def _block(self, part: tuple[slice, Array, Array, Array, Array], factor: float, dtype: torch.dtype) -> _Block:
        rows, halo, starts, idx, val = part
        exact = torch.from_numpy(factor * val)
        starts, idx = starts.astype(np.int32), idx.astype(np.int32)
        return _Block(
            rows,
            torch.from_numpy(halo),
            starts=self._kept(torch.from_numpy(starts)),
            idx=self._kept(torch.from_numpy(idx)),
            exact=self._kept(exact),
            val=self._kept((power_of_two(self._lam) * exact).to(dtype)),
        )

    def _kept(self, A: Tensor) -> Tensor:
        return self._room(tuple(A.shape), A.dtype).copy_(A)

    def _slots(self) -> Iterator[tuple[int, _Block]]:
        for i, block in enumerate(self._blocks):
            slot = i % _SLOTS
            if self._streams[slot] is not None:
                self._streams[slot].synchronize()  # the room for its halo is free again
            yield slot, block

    def _on(self, slot: int) -> AbstractContextManager:
        stream = self._streams[slot]
        return nullcontext() if stream is None else torch.cuda.stream(stream)

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def _sent(self, A: Tensor, block: _Block) -> Tensor:
        return A[block.rows].to(self.device, non_blocking=True)

    def _gathered(self, A: Tensor, slot: int, block: _Block) -> Tensor:
        """Return the rows of a block and its halo on the device."""
        own = A[block.rows]
        out = torch.empty((len(own) + len(block.halo), A.shape[1]), dtype=A.dtype, device=self.device)
        out[: len(own)].copy_(own, non_blocking=True)
        halo = self._halos[slot][: len(block.halo)]
        torch.index_select(A, 0, block.halo, out=halo)
        out[len(own) :].copy_(halo, non_blocking=True)
        return out

    def _lists(self, block: _Block, values: Tensor) -> Lists | None:
        if self.problem.L1 is None or self.problem.gamma1 == 0:
            return None
        idx, starts, val = (A.to(self.device, non_blocking=True) for A in (block.idx, block.starts, values))
        return idx, starts, val

    def _seen(self, X: Tensor) -> Tensor | None:
        return None if self.problem.mask is None else ~torch.isnan(X)


def _cut(L1: Any, order: Array, X: Array, budget: int) -> list[tuple[slice, Array, Array, Array, Array]]:
    """Return as few row blocks as the budget allows: rows, halo, and starts, columns and values of the graph."""
    n, p = X.shape
    if L1 is None:
        L1 = sp.csr_array((n, n))
    at = np.empty(n, np.int64)
    at[order] = np.arange(n)
    turned = L1[order]  # the entries of a row keep their order: sums in another order round otherwise
    columns, ptr = at[turned.indices], turned.indptr.astype(np.int64)
    height = n
    while True:
        parts, most = [], 0
        for start in range(0, n, height):
            rows = slice(start, min(start + height, n))
            entries = slice(ptr[rows.start], ptr[rows.stop])
            some = columns[entries]
            inside = (some >= rows.start) & (some < rows.stop)
            halo = np.unique(some[~inside])
            own = rows.stop - rows.start
            local = np.where(inside, some - rows.start, own + np.searchsorted(halo, some))
            parts.append((rows, halo, ptr[rows] - ptr[rows.start], local, turned.data[entries]))
            most = max(most, _block_bytes(own, len(halo), p, X.itemsize, len(some)))
        if _SLOTS * most <= budget:
            return parts
        if height == 1:
            raise MemoryError(
                f"one row of X with its neighbours needs {in_words(_SLOTS * most)} of the device, but "
                f"{in_words(budget)} are free; use backend='numba'."
            )
        height = -(-height // 2)


def _block_bytes(own: int, halo: int, p: int, itemsize: int, n_entries: int) -> int:
    """Return the bytes that a block takes on the device, in a step or in a certificate."""
    rows = p * (itemsize * (_OWN_ARRAYS * own + _ALL_ARRAYS * (own + halo)) + 8 * (own + halo))
    return rows + 8 * _EXACT_ARRAYS * min(own * p, max(BLOCK, p)) + 24 * n_entries
