"""The CPU backend: fused kernels on row tiles, run by a few threads of our own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import reverse_cuthill_mckee

from frpcag.backends import numba_kernels as kernels
from frpcag.backends.base import StepScalars
from frpcag.problem import LOSSES, Array, Certificate, Problem, dual_bound, shrinkage, solution_box
from frpcag.threads import count_threads

# Below this many multiply-adds a step is over before a second thread has woken up.
_SERIAL_WORK = 2_000_000


@dataclass
class NumbaState:
    """Iterates in graph order (``order``), and what the kernels need beside them."""

    problem: Problem
    order: Array | None
    lam: float
    X: Array
    U: Array
    Y: Array
    Y_next: Array
    graphs: tuple[Array, ...]
    box: tuple[float, float, Array, Array]
    sums: Array
    pool: ThreadPoolExecutor | None
    chunks: list[tuple[int, int]]
    scratch: list[tuple[Array, ...]]


class NumbaBackend:
    """Fused kernels; the result is the same bit for bit with any number of threads."""

    name = "numba"

    def __init__(self, *, n_jobs: int | None = None) -> None:
        self.n_jobs = count_threads(n_jobs)

    def load(self, problem: Problem, *, step: float, U0: Array | None = None) -> NumbaState:
        """Copy the problem in, with neighbouring rows near each other in memory."""
        dtype = problem.X.dtype
        # Neighbour rows are gathered from Y: in the order of the graph most of them are still in cache.
        order = None
        if problem.L1 is not None:
            order = reverse_cuthill_mckee(sp.csr_matrix(problem.L1), symmetric_mode=True)
        X = _padded(problem.X, order)
        U = _padded(X) if U0 is None else _padded(np.asarray(U0, dtype=dtype), order)
        if problem.mask is not None:
            np.nan_to_num(U, copy=False, nan=0.0)
        n, p = X.shape
        graphs = (
            *_scaled(problem.L1, 2 * problem.gamma1, dtype, n, order),
            *_scaled(problem.L2, 2 * problem.gamma2, dtype, p),
        )
        n_tiles = n // kernels.TILE
        work = p * graphs[2].size + n * graphs[5].size
        n_threads = 1 if work < _SERIAL_WORK else min(self.n_jobs, n_tiles)
        edges = np.linspace(0, n_tiles, 1 + (1 if n_threads == 1 else min(8 * n_threads, n_tiles)), dtype=int)
        shapes = ((p, kernels.TILE), (kernels.LANES, kernels.TILE), (kernels.TILE, p))
        return NumbaState(
            problem=problem,
            order=order,
            lam=step,
            X=X,
            U=U,
            Y=_padded(U),
            Y_next=_aligned_zeros(U.shape, dtype),
            graphs=graphs,
            box=_padded_box(problem, order, n, p),
            sums=np.zeros((n_tiles, 5)),
            pool=ThreadPoolExecutor(n_threads) if n_threads > 1 else None,
            chunks=list(pairwise(edges)),
            scratch=[tuple(_aligned_zeros(shape, dtype) for shape in shapes) for _ in range(n_threads)],
        )

    def step(self, state: NumbaState, *, momentum: float) -> StepScalars:
        """Do one step in one pass over X, U and Y."""
        real = state.X.dtype.type
        numbers = tuple(map(real, (state.lam, *shrinkage(state.problem, state.lam), momentum)))

        def task(tiles, scratch):
            kernels.step_rows(
                state.X, state.Y, state.U, state.Y_next, state.graphs, scratch, *numbers, tiles, state.sums
            )

        _run(state, task)
        state.Y, state.Y_next = state.Y_next, state.Y
        return StepScalars(*map(float, state.sums[:, :3].sum(axis=0)))

    def gap(self, state: NumbaState) -> Certificate:
        """Return objective and dual bound at ``U``; one pass, sums in float64."""
        problem = state.problem
        loss = LOSSES.index(problem.loss)

        def task(tiles, scratch):
            kernels.gap_rows(state.X, state.U, state.graphs, scratch, loss, problem.delta, state.box, tiles, state.sums)

        _run(state, task)
        data, VU, VX, VV = map(float, state.sums[:, :4].sum(axis=0))
        bound = dual_bound(problem, VX=VX, VV=VV, g=VU / 2, Vmax=float(state.sums[:, 4].max()))
        return Certificate(data + VU / 2, bound)

    def unload(self, state: NumbaState) -> Array:
        """Return ``U`` in the order of the caller's rows, without padding."""
        n, p = state.problem.X.shape
        del state.Y_next
        U = np.empty((n, p), state.U.dtype)
        U[slice(None) if state.order is None else state.order] = state.U[:n, :p]
        return U


def _run(state: NumbaState, task) -> None:
    if state.pool is None:
        task(state.chunks[0], state.scratch[0])
        return

    def run(chunk):
        scratch = state.scratch.pop()  # list.pop and append are atomic
        try:
            task(chunk, scratch)
        finally:
            state.scratch.append(scratch)

    futures = [state.pool.submit(run, chunk) for chunk in state.chunks]
    try:
        for future in futures:
            future.result()
    finally:
        wait(futures)  # nobody may still be writing when an interrupt leaves this function


def _aligned_zeros(shape: tuple[int, int], dtype) -> Array:
    """Return zeros that start on a cache line, so that no vector straddles two."""
    n_bytes = shape[0] * shape[1] * dtype.itemsize
    raw = np.zeros(n_bytes + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + n_bytes].view(dtype).reshape(shape)


def _padded(A: Array, order: Array | None = None) -> Array:
    """Return a copy of ``A``, rows in the given order, with zeros up to whole tiles and vectors."""
    n, p = A.shape
    out = _aligned_zeros((-(-n // kernels.TILE) * kernels.TILE, -(-p // kernels.LANES) * kernels.LANES), A.dtype)
    for start in range(0, n, 4096):  # a block at a time: no second copy of A
        rows = slice(start, start + 4096)
        out[start : min(start + 4096, n), :p] = A[rows if order is None else order[rows]]
    return out


def _padded_box(problem: Problem, order: Array | None, n: int, p: int) -> tuple[float, float, Array, Array]:
    """Return the box of the solution with zeros for the padding, rows in the given order."""
    lo, hi, rows, columns = solution_box(problem)
    rows = rows if order is None else rows[order]
    return lo, hi, np.pad(rows, (0, n - len(rows))), np.pad(columns, (0, p - len(columns)))


def _scaled(L: sp.csr_array | None, factor: float, dtype, n: int, order: Array | None = None) -> tuple[Array, ...]:
    """Return the CSR arrays of ``factor * L``, nodes in the given order, with empty rows up to ``n``."""
    if L is None or factor == 0:
        return np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, dtype)
    L = (L if order is None else L[order][:, order]).sorted_indices()
    ptr = np.full(n + 1, L.nnz, np.int64)
    ptr[: L.shape[0] + 1] = L.indptr
    return ptr, L.indices.astype(np.int32), (factor * L.data).astype(dtype)
