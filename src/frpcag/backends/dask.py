"""The Dask backend: row blocks of U and Y stay on the workers; halo rows, L2 and a few numbers travel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from glob import glob
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from shutil import which
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from frpcag.backends.base import Backend, StepScalars, power_of_two
from frpcag.linalg.row_blocks import Halo, LocalGraph, localize
from frpcag.problem import LOSSES, Array, Certificate, Problem, Sums, certified, shrinkage, solution_box
from frpcag.runtime.checkpoint import Checkpoint, Saved
from frpcag.runtime.tasks import Here, Layout, Maximum, current_cluster, deal, tree_sum

_KERNELS = ("numba", "torch")


@dataclass
class RowBlocks:
    """A matrix in row blocks, results of tasks each."""

    parts: list[Any]
    shape: tuple[int, int]
    dtype: np.dtype
    layout: Any = None


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
    loss, huber_delta, null2
        As in `Problem`.
    box : (float, float) or None
        Range that the observed entries of ``X`` have in units of the null vectors; None when nothing is missing.
    store : Checkpoint or None
        Where the iterates are saved.
    """

    layout: Layout
    X: RowBlocks
    L1: Any
    L2: sp.csr_array | None
    gamma1: float
    gamma2: float
    loss: str = "l1"
    huber_delta: float = 1.0
    null2: Array | None = None
    box: tuple[float, float] | None = None
    lmax1: float | None = None
    lmax2: float | None = None
    store: Checkpoint | None = None

    can_turn: ClassVar[bool] = False
    keeps_X: ClassVar[bool] = True
    level1: ClassVar[str] = "free"
    level2: ClassVar[str] = "free"

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and features."""
        return self.X.shape

    @cached_property
    def reaches(self) -> tuple[float, Array]:
        """Absolute row sums of ``gamma1 L1``, the largest of them, and of ``gamma2 L2``."""
        return self.gamma1 * self._sample_sums[0], _row_sums(self.L2, self.shape[1], self.gamma2)

    @cached_property
    def stiffness(self) -> tuple[float, int]:
        """As in `Problem`."""
        longest = 0 if self.L2 is None else int(np.diff(self.L2.indptr).max())
        return 2 * float(self.reaches[0] + self.reaches[1].max()), int(self._sample_sums[1]) + longest

    @cached_property
    def _sample_sums(self) -> Array:
        if self.L1 is None:
            return np.zeros(2)
        return tree_sum(self.layout.cluster, self.layout.map(_longest, self.L1.parts)).value

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
            layout, X, L1, problem.L2, problem.gamma1, problem.gamma2, problem.loss, problem.huber_delta, problem.null2,
            None if problem.mask is None else (lo, hi),
        )  # fmt: skip


@dataclass
class BlockState:
    """Results of tasks: the constants of every block and its iterates."""

    problem: BlockProblem
    lam: float
    do: Callable[[str], Callable]  # a function of the chosen kernels, by its name
    data: list[Any]
    features: Any
    blocks: list[Any]
    on_host: bool
    n_iter: int = 0
    saved: int = 0  # the step of the last checkpoint


class DaskBackend(Backend):
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
    kernels : {"auto", "numba", "torch"}, default="auto"
        Who does the arithmetic of a block; "auto" takes PyTorch, on the GPU, where every worker has one.
    patience : float, default=300
        Seconds. If the cluster does nothing for so long while a fit waits for it, the fit ends with an error: without
        workers, with workers that their memory limits have paused, or with a scheduler that does not answer.
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
    >>> from frpcag import DaskBackend
    >>> model = FRPCAG(backend=DaskBackend(checkpoint="/tmp/frpcag-run", every=20))
    """

    name = "dask"

    def __init__(
        self,
        *,
        checkpoint: str | None = None,
        every: int = 20,
        output: str | None = None,
        kernels: str = "auto",
        patience: float = 300.0,
        n_jobs: int | None = None,
    ) -> None:
        if kernels not in ("auto", *_KERNELS):
            raise ValueError(f"kernels={kernels!r} is unknown; choose 'auto', {', '.join(map(repr, _KERNELS))}.")
        if int(every) != every or every < 1:
            raise ValueError(f"every={every!r} must be an integer >= 1, the number of steps between checkpoints.")
        if not patience > 0:
            raise ValueError(f"patience={patience!r} must be a number of seconds > 0.")
        self.checkpoint = checkpoint
        self.every = int(every)
        self.patience = float(patience)
        self.output = output
        self.kernels = kernels
        self.n_jobs = n_jobs

    def __repr__(self) -> str:
        parts = f"checkpoint={self.checkpoint!r}, every={self.every}, output={self.output!r}, kernels={self.kernels!r}"
        return f"DaskBackend({parts})"

    def load(self, problem: Any, *, step: float, U0: Array | None = None) -> BlockState:
        """Prepare the blocks where they live."""
        on_host = not isinstance(problem, BlockProblem)
        if on_host:
            problem = BlockProblem.of(problem)
        layout, p = problem.layout, problem.X.shape[1]
        do = self._on_workers(layout)
        features = layout.cluster.submit(do("feature_lists"), problem.L2, 2 * problem.gamma2, problem.X.dtype, p, step)
        graphs = problem.L1.parts if problem.L1 is not None else [None for _ in problem.X.parts]
        shared = ([number for _ in graphs] for number in (2 * problem.gamma1, step))
        data = layout.map(do("block_data"), problem.X.parts, graphs, *shared)
        state = BlockState(problem, step, do, data, features, [], on_host)
        problem.X.parts.clear()  # the padded copies serve from here on
        parts: list[Any] = [None for _ in state.data]
        if U0 is not None:
            parts = [np.asarray(U0[a:b], problem.X.dtype) for a, b in pairwise(layout.bounds)]
        state.blocks = layout.map(do("iterates"), state.data, parts)
        return state

    def resume(self, state: BlockState, *, max_iter: int) -> tuple[float, int, dict[str, Any] | None]:
        """Go on from the checkpoint, if there is one; return as `Backend.resume`.

        A checkpoint beyond ``max_iter`` stays for a longer run, and this one starts at the first step.
        """
        store = state.problem.store
        saved = None if store is None else store.saved("step")
        if store is None or saved is None:
            return 1.0, 0, None
        state.saved = saved.step
        if saved.step > max_iter:
            return 1.0, 0, None
        state.n_iter = saved.step
        self._go_on_from(state, store, saved)
        return saved.note["t"], saved.step, saved.note["memory"]

    def keep(self, state: BlockState, *, t: float, memory: dict[str, Any]) -> None:
        """Save the iterates when it is time."""
        store = state.problem.store
        if store is not None and state.n_iter % self.every == 0 and state.n_iter > state.saved:
            self._save(state, store, {"t": t, "memory": memory})

    def step(self, state: BlockState, *, momentum: float) -> StepScalars:
        """Do one step: pieces of Y to the blocks that need them, the kernel on every block, sums back."""
        layout = state.problem.layout
        shrink = shrinkage(state.problem, state.lam)  # type: ignore[arg-type]
        numbers = (state.lam / power_of_two(state.lam), *shrink, momentum)
        state.blocks = self._on_blocks(state, "step_block", "pick_Y", numbers)
        state.n_iter += 1
        sums = tree_sum(layout.cluster, layout.map(state.do("step_sums"), state.blocks))
        return StepScalars(*map(float, sums))

    def gap(self, state: BlockState) -> Certificate:
        """Return what is proved about ``U``; one pass, in float64."""
        problem, layout = state.problem, state.problem.layout
        lo, hi = problem.box or (0.0, 0.0)
        p = problem.X.shape[1]
        columns = np.ones(p) if problem.null2 is None else np.asarray(problem.null2, np.float64)
        numbers = (LOSSES.index(problem.loss), problem.huber_delta, lo, hi, columns)
        parts = self._on_blocks(state, "gap_block", "pick_U", numbers)
        *sums, tops = tree_sum(layout.cluster, parts)
        return certified(problem, Sums(*sums, *map(float, tops.value)))

    def slope(self, state: BlockState) -> Any:
        """Return the gradient of the graph terms at ``U``, as `unload` returns ``U``."""
        parts = self._on_blocks(state, "slope_block", "pick_U", (state.problem.shape[1],))
        if state.on_host:
            return np.concatenate(state.problem.layout.cluster.gather(parts))
        return RowBlocks(parts, state.problem.X.shape, state.problem.X.dtype, state.problem.layout)

    def unload(self, state: BlockState) -> Any:
        """Return ``U``: row blocks, or an array if the problem came as arrays."""
        layout, (_, p) = state.problem.layout, state.problem.X.shape
        parts = layout.map(state.do("own_U"), state.blocks, layout.sizes, [p for _ in layout.sizes])
        if state.on_host:
            return np.concatenate(layout.cluster.gather(parts))
        return RowBlocks(parts, state.problem.X.shape, state.problem.X.dtype, layout)

    def _on_workers(self, layout: Layout) -> Callable[[str], Callable]:
        """Return what gives a function of the chosen kernels by its name, to be imported where it runs."""
        kernels = self.kernels
        if kernels == "auto":
            kernels = "torch" if all(layout.cluster.on_each_worker(_has_gpu)) else "numba"
        return partial(partial, _run, kernels)

    def _on_blocks(self, state: BlockState, function: str, pick: str, numbers: tuple) -> list[Any]:
        """Call a function on every block with its halo, rows that ``pick`` takes where they live."""
        if state.problem.L1 is None or state.problem.gamma1 == 0:
            halos: list[Any] = [[] for _ in state.blocks]
        else:
            halos = state.problem.L1.halo.fetch(state.blocks, state.do(pick))
        features, shared = [state.features for _ in halos], [numbers for _ in halos]
        return state.problem.layout.map(state.do(function), state.data, features, state.blocks, halos, shared)

    def _save(self, state: BlockState, store: Checkpoint, note: dict[str, Any]) -> None:
        layout, (_, p) = state.problem.layout, state.problem.X.shape
        sizes = [(size, p) for size in layout.sizes]
        packed = layout.map(state.do("pack"), state.blocks, sizes)
        saved = store.save("step", layout, packed, step=state.n_iter, note=note)
        state.saved = state.n_iter
        layout.homes[:] = deal(layout.cluster, len(layout.homes))  # workers may have come or gone
        self._go_on_from(state, store, saved)

    def _go_on_from(self, state: BlockState, store: Checkpoint, saved: Saved) -> None:
        """Read the iterates back: tasks without a past, so that nothing before this step is ever needed again."""
        blocks = store.load(saved, state.problem.layout)
        state.blocks = state.problem.layout.map(state.do("unpack"), state.data, blocks)


def _run(kernels: str, name: str, *arguments: Any) -> Any:
    """Call a function of frpcag.backends.numba.blocks or .torch.blocks; the client need not have either."""
    return getattr(import_module(f"frpcag.backends.{kernels}.blocks"), name)(*arguments)


def _has_gpu() -> bool:
    """Whether this worker can compute on a GPU; PyTorch is imported only where there is one."""
    if find_spec("torch") is None or not (which("nvidia-smi") or glob("/dev/nvidia*")):
        return False
    import torch

    return torch.cuda.is_available()


def _longest(graph: LocalGraph) -> Maximum:
    """Return the largest absolute row sum of a block's part of a Laplacian, and the most entries of a row."""
    return Maximum(np.array([abs(graph.rows).sum(axis=1).max(), np.diff(graph.rows.indptr).max()], dtype=np.float64))


def _row_sums(L: sp.csr_array | None, n: int, factor: float) -> Array:
    return np.zeros(n) if L is None else factor * np.asarray(abs(L).sum(axis=1)).ravel()


def _same(value: Any) -> Any:
    return value
