"""The CPU backend: fused kernels on row tiles, run by a few threads of our own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import reverse_cuthill_mckee

from frpcag.backends.base import Backend, StepScalars, power_of_two, solve_bytes
from frpcag.backends.numba import kernels as kernels
from frpcag.losses import LOSSES
from frpcag.problem import Array, Certificate, Problem, Sums, certified, solution_box
from frpcag.runtime.memory import require_memory
from frpcag.runtime.threads import count_threads

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
    graphs: tuple[Array, ...]  # 2 gamma1 L1 and 2 gamma2 L2, times `power_of_two` of the step
    exact: tuple[Array, ...]  # without it, in float64
    box: tuple[float, float, Array, Array]
    tiles: Tiles


class Tiles:
    """The tiles of rows of a problem, their sums, and the threads that do them."""

    def __init__(self, shape: tuple[int, int], dtype: np.dtype, n_threads: int) -> None:
        n_tiles = shape[0] // kernels.TILE
        n_threads = min(n_threads, n_tiles)
        self.sums = np.zeros((n_tiles, kernels.SUMS))
        self._pool = ThreadPoolExecutor(n_threads) if n_threads > 1 else None
        edges = np.linspace(0, n_tiles, 1 + (1 if n_threads == 1 else min(8 * n_threads, n_tiles)), dtype=int)
        self._chunks = list(pairwise(edges.tolist()))
        self._scratch = [_scratch_tiles(shape[1], dtype) for _ in range(n_threads)]

    def run(self, task: Callable[[tuple[int, int], tuple], None]) -> None:
        """Call ``task(tiles, scratch)`` for runs of tiles, with scratch of a step and of a certificate."""
        if self._pool is None:
            task(self._chunks[0], self._scratch[0])
            return

        def run(chunk: tuple[int, int]) -> None:
            scratch = self._scratch.pop()  # list.pop and append are atomic
            try:
                task(chunk, scratch)
            finally:
                self._scratch.append(scratch)

        futures = [self._pool.submit(run, chunk) for chunk in self._chunks]
        try:
            for future in futures:
                future.result()
        finally:
            wait(futures)  # nobody may still be writing when an interrupt leaves this function


class NumbaBackend(Backend):
    """Fused kernels; the result is the same bit for bit with any number of threads."""

    name = "numba"

    def __init__(self, *, n_jobs: int | None = None) -> None:
        self.n_jobs = count_threads(n_jobs)

    def load(self, problem: Problem, *, step: float, U0: Array | None = None) -> NumbaState:
        """Copy the problem in, with neighbouring rows near each other in memory."""
        require_memory(*solve_bytes(problem))
        dtype = problem.X.dtype
        # Neighbour rows are gathered from Y: in the order of the graph most of them are still in cache.
        order = None
        if problem.L1 is not None:
            order = reverse_cuthill_mckee(sp.csr_matrix(problem.L1), symmetric_mode=True)
        X = _padded(problem.X, order)
        U = _padded(X) if U0 is None else _padded(np.asarray(U0, dtype=dtype), order)
        n, p = X.shape
        box = _padded_box(problem, order, n, p)
        if not problem.keeps_X:
            problem.drop_X()
        if problem.mask is not None:
            np.nan_to_num(U, copy=False, nan=0.0)
        exact = (
            *_scaled(problem.L1, 2 * problem.gamma1, n, order),
            *_scaled(problem.L2, 2 * problem.gamma2, p),
        )
        graphs = in_step_units(exact, step, dtype)
        work = p * graphs[2].size + n * graphs[5].size
        return NumbaState(
            problem=problem,
            order=order,
            lam=step,
            X=X,
            U=U,
            Y=_padded(U),
            Y_next=_aligned_zeros(U.shape, dtype),
            graphs=graphs,
            exact=exact,
            box=box,
            tiles=Tiles(X.shape, dtype, 1 if work < _SERIAL_WORK else self.n_jobs),
        )

    def step(self, state: NumbaState, *, momentum: float) -> StepScalars:
        """Do one step in one pass over X, U and Y."""
        real, problem = state.X.dtype.type, state.problem
        numbers = tuple(map(real, LOSSES[problem.loss].numbers(state.lam, problem.huber_delta)))
        step = real(state.lam / power_of_two(state.lam)), numbers, real(momentum)
        step_rows = kernels.step_rows_of(problem.loss)

        def task(tiles, scratch):
            step_rows(state.X, state.Y, state.U, state.Y_next, state.graphs, scratch[0], *step, tiles, state.tiles.sums)

        state.tiles.run(task)
        state.Y, state.Y_next = state.Y_next, state.Y
        return StepScalars(*map(float, state.tiles.sums[:, :3].sum(axis=0)))

    def gap(self, state: NumbaState) -> Certificate:
        """Return what is proved about ``U``; one pass, in float64."""
        problem = state.problem
        gap_rows = kernels.gap_rows_of(problem.loss)

        def task(tiles, scratch):
            gap_rows(state.X, state.U, state.exact, scratch[1], problem.huber_delta, state.box, tiles, state.tiles.sums)

        state.tiles.run(task)
        sums, tops = state.tiles.sums[:, :6].sum(axis=0), state.tiles.sums[:, 6:].max(axis=0)
        return certified(problem, Sums(*map(float, (*sums, *tops))))

    def slope(self, state: NumbaState) -> Array:
        """Return the gradient of the graph terms at ``U``; it overwrites ``Y``."""
        state.tiles.run(lambda tiles, scratch: kernels.slope_rows(state.U, state.exact, scratch[1], state.Y, tiles))
        del state.Y_next, state.X
        return _unpadded(state, state.Y)

    def unload(self, state: NumbaState) -> Array:
        """Return ``U`` in the order of the caller's rows, without padding."""
        state.Y_next = state.Y = state.U[:0]
        return _unpadded(state, state.U)


def _unpadded(state: NumbaState, A: Array) -> Array:
    out = np.empty(state.problem.X.shape, A.dtype)
    n, p = out.shape
    out[slice(None) if state.order is None else state.order] = A[:n, :p]
    return out


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


def _scratch_tiles(p: int, dtype: np.dtype) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """Return room for a transposed tile and its gradient: of a step, and of a certificate, which is in float64."""
    turned = _aligned_zeros((p, kernels.TILE), dtype)
    kinds = (dtype, np.dtype(np.float64))
    shapes = ((kernels.LANES, kernels.TILE), (kernels.TILE, p))
    step, exact = ((turned, *(_aligned_zeros(shape, kind) for shape in shapes)) for kind in kinds)
    return step, exact


def _scaled(L: sp.csr_array | None, factor: float, n: int, order: Array | None = None) -> tuple[Array, ...]:
    """Return the CSR arrays of ``factor * L``, nodes in the given order, with empty rows up to ``n``; float64."""
    if L is None or factor == 0:
        return np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0)
    L = (L if order is None else L[order][:, order]).sorted_indices()
    ptr = np.full(n + 1, L.nnz, np.int64)
    ptr[: L.shape[0] + 1] = L.indptr
    return ptr, L.indices.astype(np.int32), factor * L.data.astype(np.float64)


def in_step_units(lists: tuple[Array, ...], step: float, dtype: np.dtype) -> tuple[Array, ...]:
    """Return CSR arrays with entries times `power_of_two` of the step, in the dtype of the iterates."""
    unit = power_of_two(step)
    return tuple((unit * part).astype(dtype) if part.dtype == np.float64 else part for part in lists)
