"""The Dask backend: row blocks of U and Y stay on the workers; halo rows, L2 and a few numbers travel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import sqrt
from typing import Any

import numpy as np
import scipy.sparse as sp

from frpcag.backends.base import StepScalars
from frpcag.checkpoint import Checkpoint, step_name
from frpcag.cluster import Here, Layout, Maximum, current_cluster, deal, tree_sum
from frpcag.halo import Halo, LocalGraph, localize
from frpcag.problem import LOSSES, Array, Certificate, Problem, dual_bound, shrinkage, solution_box

Lists = tuple[Array, ...]  # starts of the rows, columns and entries of a sparse matrix


@dataclass
class RowBlocks:
    """A matrix in row blocks, results of tasks each."""

    parts: list[Any]
    shape: tuple[int, int]
    dtype: np.dtype


@dataclass
class SampleGraph:
    """What the backend needs of a graph over blocks: rows of the Laplacian (`LocalGraph`), halo and eigenvalue."""

    parts: list[Any]
    halo: Halo
    lmax: float


@dataclass(frozen=True, eq=False)
class BlockProblem:
    """A `Problem` in row blocks. Rows stay rows: it has no transpose.

    Parameters
    ----------
    layout : Layout
        Where the blocks are.
    X : RowBlocks
        Centred and scaled data; NaN is missing. The backend lets go of it when it has made its own copy.
    L1 : SampleGraph or None
        Also any object with its attributes.
    L2 : csr_array of shape (n_features, n_features) or None
    gamma1, gamma2 : float
    loss, delta, null2
        As in `Problem`.
    box : (float, float) or None
        Range that the observed entries of ``X`` have in units of the null vectors; None when nothing is missing.
    """

    layout: Layout
    X: RowBlocks
    L1: Any
    L2: sp.csr_array | None
    gamma1: float
    gamma2: float
    loss: str = "l1"
    delta: float = 1.0
    null2: Array | None = None
    box: tuple[float, float] | None = None

    @classmethod
    def of(cls, problem: Problem) -> BlockProblem:
        """Cut a problem of NumPy arrays into blocks, two for every worker."""
        cluster = current_cluster()
        n, p = problem.X.shape
        # In this process blocks of a single row and blocks of many must do alike.
        n_blocks = min(n, 3 if isinstance(cluster, Here) else 2 * len(cluster.workers()))
        bounds = np.linspace(0, n, n_blocks + 1).astype(int)
        layout = Layout.spread(cluster, np.diff(bounds).tolist())
        cuts = [slice(a, b) for a, b in pairwise(bounds)]
        lo, hi, rows, _ = solution_box(problem)
        L1 = None
        if problem.L1 is not None:
            parts = [localize(problem.L1[cut], bounds, j, rows[cut]) for j, cut in enumerate(cuts)]
            parts = layout.map(_same, parts)
            L1 = SampleGraph(parts, Halo(layout, parts), 0.0)
        X = RowBlocks(layout.map(_same, [problem.X[cut] for cut in cuts]), (n, p), problem.X.dtype)
        return cls(
            layout, X, L1, problem.L2, problem.gamma1, problem.gamma2, problem.loss, problem.delta, problem.null2,
            None if problem.mask is None else (lo, hi),
        )  # fmt: skip


@dataclass
class BlockState:
    """Results of tasks: the constants of every block and its iterates."""

    problem: BlockProblem
    lam: float
    data: list[Any]
    features: Any
    blocks: list[Any]
    on_host: bool
    start: tuple[float, int] = (1.0, 0)  # t and steps done, of the checkpoint gone on from
    n_iter: int = 0


@dataclass
class BlockData:
    """What a block keeps through all steps, padded for the kernels."""

    X: Array
    graph: Lists  # 2 gamma1 L1; columns are own rows, then the halo
    null: Array
    n_halo: int


@dataclass
class Iterates:
    """One block of U and Y. ``Y`` has room for the halo below its own rows, filled in by the step that reads it."""

    U: Array
    Y: Array
    sums: tuple[float, ...] = field(default=(0.0, 0.0, 0.0))


class DaskBackend:
    """Row blocks on the workers of the current Dask client; in this process where no client is connected.

    Parameters
    ----------
    checkpoint : str, optional
        Folder that the client and all workers reach (a path or an fsspec address). The prepared blocks and, every
        ``every`` steps, the iterates are saved there; the same call goes on from them.
    every : int, default=20
        Steps between checkpoints. A lost worker costs at most this many steps to repeat.
    output : str, optional
        Zarr store that ``low_rank_``, ``sparse_`` and ``embedding_`` are written to by `FRPCAG`; by default they are
        kept in the workers' memory.
    n_jobs : int, optional
        Ignored: a worker's threads take one block each.

    Notes
    -----
    A step sends to every block the rows of ``Y`` that its neighbours in other blocks hold, and brings back five
    numbers. Tasks are the same for the same blocks, so the result does not depend on the workers, nor on their losses.
    Without a checkpoint the scheduler remembers the tasks of all steps, in case it must repeat them.

    Examples
    --------
    >>> from frpcag import FRPCAG
    >>> from frpcag.backends.dask_backend import DaskBackend
    >>> model = FRPCAG(backend=DaskBackend(checkpoint="/tmp/frpcag-run", every=20))
    """

    name = "dask"

    def __init__(
        self,
        *,
        checkpoint: str | None = None,
        every: int = 20,
        output: str | None = None,
        n_jobs: int | None = None,
    ) -> None:
        if int(every) != every or every < 1:
            raise ValueError(f"every={every!r} must be an integer >= 1, the number of steps between checkpoints.")
        self.checkpoint = checkpoint
        self.every = int(every)
        self.output = output
        self.n_jobs = n_jobs

    def __repr__(self) -> str:
        return f"DaskBackend(checkpoint={self.checkpoint!r}, every={self.every}, output={self.output!r})"

    def load(self, problem: Any, *, step: float, U0: Array | None = None) -> BlockState:
        """Prepare the blocks where they live, at the last checkpoint if there is one."""
        on_host = not isinstance(problem, BlockProblem)
        if on_host:
            problem = BlockProblem.of(problem)
        layout, p = problem.layout, problem.X.shape[1]
        features = layout.cluster.submit(_feature_lists, problem.L2, 2 * problem.gamma2, problem.X.dtype, p)
        state = BlockState(problem, step, self._block_data(problem), features, [], on_host)
        problem.X.parts.clear()  # the padded copies serve from here on
        store = self._store(state)
        if store is not None and (steps := store.steps()):
            state.n_iter = steps[-1]
            state.start = (store.manifest(step_name(steps[-1]))["t"], steps[-1])  # type: ignore[index]
            self._go_on_from(state, store)
        elif U0 is not None:
            bounds = layout.bounds
            parts = [np.asarray(U0[a:b], problem.X.dtype) for a, b in pairwise(bounds)]
            state.blocks = layout.map(_iterates, state.data, parts)
        else:
            state.blocks = layout.map(_iterates, state.data, [None for _ in state.data])
        return state

    def advance(self, state: BlockState, n_steps: int, *, t: float, restart: bool) -> tuple[StepScalars, float]:
        """Do several steps of the solver's loop, and save the iterates when it is time."""
        store = self._store(state)
        for _ in range(n_steps):
            t_next = (1 + sqrt(1 + 4 * t * t)) / 2
            scalars = self.step(state, momentum=(t - 1) / t_next)
            t = 1.0 if restart and scalars.restart > 0 else t_next
            if store is not None and state.n_iter % self.every == 0:
                self._save(state, store, t)
        return scalars, t

    def step(self, state: BlockState, *, momentum: float) -> StepScalars:
        """Do one step: pieces of Y to the blocks that need them, the kernel on every block, sums back."""
        layout = state.problem.layout
        shrink = shrinkage(state.problem, state.lam)  # type: ignore[arg-type]
        numbers = (state.lam, *shrink, momentum)
        halos = self._halos(state, _pick_Y)
        same = [None for _ in halos]
        state.blocks = layout.map(
            step_block, state.data, [state.features for _ in same], state.blocks, halos, [numbers for _ in same]
        )
        state.n_iter += 1
        sums = tree_sum(layout.cluster, layout.map(_sums, state.blocks))
        return StepScalars(*map(float, sums))

    def gap(self, state: BlockState) -> Certificate:
        """Return objective and dual bound at ``U``; one pass, sums in float64."""
        problem, layout = state.problem, state.problem.layout
        lo, hi = problem.box or (0.0, 0.0)
        p = problem.X.shape[1]
        columns = np.ones(p) if problem.null2 is None else np.asarray(problem.null2, np.float64)
        numbers = (LOSSES.index(problem.loss), problem.delta, lo, hi, columns)
        halos = self._halos(state, _pick_U)
        parts = layout.map(
            gap_block, state.data, [state.features for _ in halos], state.blocks, halos, [numbers for _ in halos]
        )
        data, VU, VX, VV, Vmax = tree_sum(layout.cluster, parts)
        bound = dual_bound(problem, VX=VX, VV=VV, g=VU / 2, Vmax=Vmax.value)  # type: ignore[arg-type]
        return Certificate(data + VU / 2, bound)

    def unload(self, state: BlockState) -> Any:
        """Return ``U``: row blocks, or an array if the problem came as arrays."""
        layout, (_, p) = state.problem.layout, state.problem.X.shape
        parts = layout.map(_own_U, state.blocks, layout.sizes, [p for _ in layout.sizes])
        if state.on_host:
            return np.concatenate(layout.cluster.gather(parts))
        return RowBlocks(parts, state.problem.X.shape, state.problem.X.dtype)

    def _block_data(self, problem: BlockProblem) -> list[Any]:
        graphs = problem.L1.parts if problem.L1 is not None else [None for _ in problem.X.parts]
        return problem.layout.map(_block_data, problem.X.parts, graphs, [2 * problem.gamma1 for _ in graphs])

    def _halos(self, state: BlockState, pick: Any) -> list[Any]:
        if state.problem.L1 is None or state.problem.gamma1 == 0:
            return [[] for _ in state.blocks]
        return state.problem.L1.halo.fetch(state.blocks, pick)

    def _store(self, state: BlockState) -> Checkpoint | None:
        # Problems of NumPy arrays say nothing of the fit they belong to.
        return None if self.checkpoint is None or state.on_host else Checkpoint(self.checkpoint)

    def _save(self, state: BlockState, store: Checkpoint, t: float) -> None:
        layout, (_, p) = state.problem.layout, state.problem.X.shape
        sizes = [(size, p) for size in layout.sizes]
        packed = layout.map(_pack, state.blocks, sizes)
        before = store.steps()
        store.save(step_name(state.n_iter), layout, packed, {"t": t})
        for step in before:
            if step != state.n_iter:
                store.drop(step_name(step))
        layout.homes[:] = deal(layout.cluster, len(layout.homes))  # workers may have come or gone
        self._go_on_from(state, store)

    def _go_on_from(self, state: BlockState, store: Checkpoint) -> None:
        """Read the iterates back: tasks without a past, so that nothing before this step is ever needed again."""
        saved = store.load(step_name(state.n_iter), state.problem.layout)
        state.blocks = state.problem.layout.map(_unpack, state.data, saved)


def step_block(data: BlockData, features: Lists, old: Iterates, halo: Sequence[Array], numbers: tuple) -> Iterates:
    """Do one step on one block with the kernel of the Numba backend; the old iterates stay as they are."""
    from frpcag.backends import numba_kernels as kernels

    X, Y = _writable(data.X), _writable(old.Y)
    _fill_halo(Y, len(X), halo)
    U, Y_next = _writable(old.U, copy=True), np.empty_like(Y)
    sums = np.zeros((len(X) // kernels.TILE, 5))
    real = X.dtype.type
    kernels.step_rows(X, Y, U, Y_next, _lists(data, features), _scratch(X), *map(real, numbers), (0, len(sums)), sums)
    return Iterates(U, Y_next, tuple(map(float, sums[:, :3].sum(axis=0))))


def gap_block(data: BlockData, features: Lists, at: Iterates, halo: Sequence[Array], numbers: tuple) -> tuple:
    """Return the block's part of a certificate: data term, <V, U>, <V, X>, <V, V> and max |V|."""
    from frpcag.backends import numba_kernels as kernels

    X = _writable(data.X)
    n, p = X.shape
    U = np.empty((n + data.n_halo, p), X.dtype)
    U[:n] = at.U
    _fill_halo(U, n, halo)
    loss, delta, lo, hi, columns = numbers
    box = (lo, hi, np.pad(data.null, (0, n - len(data.null))), np.pad(columns, (0, p - len(columns))))
    sums = np.zeros((n // kernels.TILE, 5))
    kernels.gap_rows(X, U, _lists(data, features), _scratch(X), loss, delta, box, (0, len(sums)), sums)
    return (*map(float, sums[:, :4].sum(axis=0)), Maximum(float(sums[:, 4].max())))


def _block_data(X: Array, graph: LocalGraph | None, factor: float) -> BlockData:
    from frpcag.backends.numba_backend import _padded, _scaled

    padded = _padded(X)
    n = len(padded)
    if graph is None or factor == 0:
        return BlockData(padded, _scaled(None, 0.0, X.dtype, n), np.ones(len(X)) if graph is None else graph.null, 0)
    ptr, idx, val = _scaled(graph.rows, factor, X.dtype, n)
    idx[idx >= len(X)] += n - len(X)  # the halo lies below the padding
    return BlockData(padded, (ptr, idx, val), graph.null, graph.n_halo)


def _feature_lists(L2: sp.csr_array | None, factor: float, dtype: np.dtype, p: int) -> Lists:
    from frpcag.backends import numba_kernels as kernels
    from frpcag.backends.numba_backend import _scaled

    return _scaled(L2, factor, dtype, -(-p // kernels.LANES) * kernels.LANES)


def _iterates(data: BlockData, U0: Array | None, Y0: Array | None = None) -> Iterates:
    """Return iterates at ``U0`` (``X`` if None, missing entries at zero) and ``Y0`` (``U0`` if None)."""
    n, p = data.X.shape
    U, Y = np.zeros((n, p), data.X.dtype), np.zeros((n + data.n_halo, p), data.X.dtype)
    if U0 is None:
        np.copyto(U, data.X)
        np.nan_to_num(U, copy=False, nan=0.0)
    else:
        U[: len(U0), : U0.shape[1]] = U0
    if Y0 is None:
        Y[:n] = U
    else:
        Y[: len(Y0), : Y0.shape[1]] = Y0
    return Iterates(U, Y)


def _pack(block: Iterates, shape: tuple[int, int]) -> dict[str, Array]:
    n, p = shape
    return {"U": block.U[:n, :p], "Y": block.Y[:n, :p]}


def _unpack(data: BlockData, saved: dict[str, Array]) -> Iterates:
    return _iterates(data, saved["U"], saved["Y"])


def _fill_halo(Y: Array, n: int, halo: Sequence[Array]) -> None:
    at = n
    for piece in halo:
        Y[at : at + len(piece)] = piece
        at += len(piece)


def _writable(A: Array, *, copy: bool = False) -> Array:
    # Arrays that came over the network may be read-only, another type to Numba.
    return A.copy() if copy or not A.flags.writeable else A


def _lists(data: BlockData, features: Lists) -> Lists:
    return tuple(map(_writable, (*data.graph, *features)))


def _scratch(X: Array) -> tuple[Array, ...]:
    from frpcag.backends import numba_kernels as kernels

    shapes = ((X.shape[1], kernels.TILE), (kernels.LANES, kernels.TILE), (kernels.TILE, X.shape[1]))
    return tuple(np.zeros(shape, X.dtype) for shape in shapes)


def _pick_Y(block: Iterates, rows: Array) -> Array:
    return block.Y[rows]


def _pick_U(block: Iterates, rows: Array) -> Array:
    return block.U[rows]


def _sums(block: Iterates) -> tuple[float, ...]:
    return block.sums


def _own_U(block: Iterates, n: int, p: int) -> Array:
    return np.ascontiguousarray(block.U[:n, :p])


def _same(value: Any) -> Any:
    return value
