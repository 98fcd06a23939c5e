"""The Dask backend: row blocks of U and Y stay on the workers; halo rows, L2 and a few numbers travel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import getitem
from typing import Any
from uuid import uuid4

import numpy as np

from frpcag.backends.base import Backend, StepScalars, power_of_two
from frpcag.dask.block_problem import BlockProblem, RowBlocks
from frpcag.dask.checkpoint import Checkpoint, Saved
from frpcag.dask.live import feature_lists, join_rows
from frpcag.dask.parts import Numbers, PartLost, call_parts, call_parts_here, collect, place, retry_when_lost, where
from frpcag.dask.tasks import Here
from frpcag.losses import LOSSES
from frpcag.problem import Array, Certificate, Sums, certified


@dataclass(eq=False)
class BlockState:
    """A solve whose parts live on the workers."""

    problem: BlockProblem
    features: Any
    numbers: Numbers
    on_host: bool
    firsts: Array  # first block of every part, and the number of blocks
    data: list[Any]  # rows and graph of every part, in Dask's keeping
    start: list[Any] | None = None  # blocks of U and Y to start from, where they are not those of X
    n_iter: int = 0
    kept: int = 0  # the step of the last checkpoint, also of one that this run does not go on from
    run: str = field(default_factory=lambda: uuid4().hex)
    tokens: list[Any] | None = None  # None before the first step and after the last
    directory: list[Any] = field(default_factory=list)
    workers: list[Any] = field(default_factory=list)


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
    patience : float, default=300
        Seconds. If the cluster does nothing for so long while a fit waits for it, the fit ends with an error: without
        workers, with workers that their memory limits have paused, or with a scheduler that does not answer.
    n_jobs : int, optional
        Ignored: the threads of a worker share its rows.

    Notes
    -----
    Each worker keeps its rows of X, U and Y in memory and changes them in place. After a step the workers send each
    other the rows of ``Y`` that they need and the sums of their blocks, added in the order of the blocks: the result
    does not depend on the workers. Where one dies, the fit goes on from the last checkpoint, or begins again without
    one, and finds the same numbers; a callback is told of the steps that are done again.

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
        patience: float = 300.0,
        n_jobs: int | None = None,
    ) -> None:
        if int(every) != every or every < 1:
            raise ValueError(f"every={every!r} must be an integer >= 1, the number of steps between checkpoints.")
        if not patience > 0:
            raise ValueError(f"patience={patience!r} must be a number of seconds > 0.")
        self.checkpoint = checkpoint
        self.every = int(every)
        self.patience = float(patience)
        self.output = output
        self.n_jobs = n_jobs

    def __repr__(self) -> str:
        return f"DaskBackend(checkpoint={self.checkpoint!r}, every={self.every}, output={self.output!r})"

    def load(self, problem: Any, *, step: float, U0: Any = None) -> BlockState:
        """Join the blocks of every worker where they live."""
        on_host = not isinstance(problem, BlockProblem)
        if on_host:
            problem = BlockProblem.of(problem)
        layout, (_, p), dtype = problem.layout, problem.X.shape, problem.X.dtype
        lo, hi = problem.box or (0.0, 0.0)
        columns = np.ones(p) if problem.null2 is None else np.asarray(problem.null2, np.float64)
        numbers = Numbers(
            (problem.loss, step / power_of_two(step), LOSSES[problem.loss].numbers(step, problem.huber_delta)),
            (problem.loss, problem.huber_delta, lo, hi, columns),
            p,
            self.patience,
        )
        features = layout.cluster.submit(feature_lists, problem.L2, 2 * problem.gamma2, dtype, p, step)
        start = None
        if U0 is not None:
            start = layout.map(_both, [np.asarray(U0[a:b], dtype) for a, b in pairwise(layout.bounds)])
        blocks = problem.X.parts
        firsts = [0, *(j for j in range(1, len(blocks)) if layout.owners[j] != layout.owners[j - 1]), len(blocks)]
        graphs = [None for _ in blocks] if problem.L1 is None else problem.L1.parts
        sizes = np.array(layout.sizes)
        rows = [
            (list(blocks[a:b]), list(graphs[a:b]), (i, sizes, np.array(firsts)), 2 * problem.gamma1, step)
            for i, (a, b) in enumerate(pairwise(firsts))
        ]
        data = layout.cluster.map(join_rows, rows, [layout.owners[first] for first in firsts[:-1]])
        blocks.clear()  # the joined copies serve from here on
        return BlockState(problem, features, numbers, on_host, np.array(firsts), data, start)

    def resume(self, state: BlockState, *, max_iter: int) -> tuple[float, int, dict[str, Any] | None]:
        """Go on from the checkpoint, if there is one; return as `Backend.resume`.

        A checkpoint beyond ``max_iter`` stays for a longer run, and this one starts at the first step.
        """
        store = state.problem.store
        saved = None if store is None else store.saved("step")
        state.workers = state.problem.layout.cluster.workers()
        if store is None or saved is None:
            return 1.0, 0, None
        state.kept = saved.step
        if saved.step > max_iter:
            return 1.0, 0, None
        state.start, state.n_iter = store.load(saved, state.problem.layout), saved.step
        return saved.note["t"], saved.step, saved.note["memory"]

    def steps_at_once(self, state: BlockState) -> int:
        """Return the steps up to the next checkpoint."""
        return (
            self.every - state.n_iter % self.every if state.problem.store is not None else super().steps_at_once(state)
        )

    def keep(self, state: BlockState, *, t: float, memory: dict[str, Any]) -> None:
        """Save the iterates when it is time."""
        store = state.problem.store
        if store is None or state.n_iter % self.every or state.n_iter <= state.kept:
            return
        self._save(state, store, "step", ("U", "Y"), {"t": t, "memory": memory})
        state.kept = state.n_iter
        if state.problem.layout.cluster.workers() != state.workers:
            raise PartLost("workers came or went; the fit goes on with those there are now")

    def step(self, state: BlockState, *, momentum: float) -> StepScalars:
        """Do one step on every worker."""
        return self._advance(state, 1, 1.0, False, momentum)[0]

    def run_on_device(
        self, state: BlockState, n_steps: int, *, t: float, restart: bool, rough: bool = True
    ) -> tuple[StepScalars, float]:
        """Do several steps; the workers agree on momentum and restarts among themselves."""
        return self._advance(state, n_steps, t, restart, None)

    def gap(self, state: BlockState) -> Certificate:
        """Return what is proved about ``U``; one pass, in float64."""
        sums, tops = np.zeros(6), np.zeros(3)
        for blocks in self._call(state, "gap"):
            for block_sums, block_tops in blocks:
                sums, tops = sums + block_sums, np.fmax(tops, block_tops)
        return certified(state.problem, Sums(*map(float, (*sums, *tops))))

    def slope(self, state: BlockState) -> Any:
        """Return the gradient of the graph terms at ``U``, as `unload` returns ``U``."""
        self._call(state, "slope")
        return self._results(state, "V")

    def unload(self, state: BlockState) -> Any:
        """Return ``U``: row blocks, or an array if the problem came as arrays."""
        self._call(state, "settle")
        U = self._results(state, "U")
        state.tokens = None  # the parts leave the workers
        return U

    def whole(self, problem: Any, run: Callable[[], Any]) -> Any:
        """Return the run of a solve, from its beginning where a part was lost; in a fit the engine sees to that."""
        return run() if isinstance(problem, BlockProblem) else retry_when_lost(run)

    def _begin(self, state: BlockState) -> None:
        """Place the parts on the workers, and let them tell each other which rows they need."""
        layout, runs = state.problem.layout, list(pairwise(map(int, state.firsts)))
        starts = [None if state.start is None else state.start[a:b] for a, b in runs]
        who = [(state.run, i, len(runs)) for i in range(len(runs))]
        tasks = [
            (rows, state.features, *more, state.numbers) for *more, rows in zip(starts, who, state.data, strict=True)
        ]
        owners = [layout.owners[a] for a, _ in runs]
        state.tokens, state.start = layout.cluster.map(place, tasks, owners), None
        tokens = [(token,) for token in state.tokens]
        state.directory = layout.cluster.gather(layout.cluster.map(where, tokens, owners))
        if None in state.directory:
            raise PartLost("a worker died at the start of the steps")
        for address, (a, b) in zip(state.directory, runs, strict=True):
            layout.owners[a:b] = [address or None] * (b - a)
        self._call(state, "exchange_halo_lists")

    def _advance(
        self, state: BlockState, n_steps: int, t: float, restart: bool, weight: float | None
    ) -> tuple[StepScalars, float]:
        total, t = self._call(state, "advance", n_steps, t, restart, weight)[0]
        state.n_iter += n_steps
        return StepScalars(*map(float, total)), t

    def _call(self, state: BlockState, name: str, *arguments: Any, each: Sequence[tuple] | None = None) -> list[Any]:
        """Call a method of all parts, with the same arguments or with those of each."""
        if state.tokens is None:
            self._begin(state)
        cluster, parts = state.problem.layout.cluster, range(len(state.data))
        do = call_parts_here if isinstance(cluster, Here) else call_parts
        given = dict(enumerate(each)) if each is not None else dict.fromkeys(parts, arguments)
        said = cluster.call(do, state.run, name, state.directory, given)
        answers = {i: answer for one in said if isinstance(one, dict) for i, answer in one.items()}
        for how, value in answers.values():
            if how == "failed":
                raise value
        lost = [value for how, value in answers.values() if how == "lost"]
        if lost or len(answers) < len(parts):
            raise PartLost(lost[0] if lost else "a worker died")
        return [answers[i][1] for i in parts]

    def _save(self, state: BlockState, store: Checkpoint, name: str, names: tuple, note: dict[str, Any]) -> Saved:
        def write(paths: list[str]) -> list[str]:
            each = [(paths[int(a) : int(b)], names) for a, b in pairwise(state.firsts)]
            return [digest for part in self._call(state, "save", each=each) for digest in part]

        return store.save_by(write, name, len(state.problem.layout.sizes), step=state.n_iter, note=note)

    def _results(self, state: BlockState, which: str) -> Any:
        """Return U or the gradient at it as row blocks, or as an array if the problem came as arrays."""
        problem, store, layout = state.problem, state.problem.store, state.problem.layout
        if store is not None and which == "U":
            # Read back: tasks without a past, so that a loss later on costs no step.
            blocks = store.load(self._save(state, store, "clean", ("U",), {}), layout)
            parts = layout.map(getitem, blocks, ["U" for _ in blocks])
            return RowBlocks(parts, problem.X.shape, problem.X.dtype, layout)
        assert state.tokens is not None
        owners = [owner or None for owner in state.directory]
        whole = layout.cluster.map(collect, [(token, which) for token in state.tokens], owners)
        if state.on_host:
            return np.concatenate([block for part in layout.cluster.gather(whole) for block in part])
        layout.cluster.gather(layout.cluster.map(len, [(part,) for part in whole], [None for _ in whole]))
        at = [(i, k) for i, (a, b) in enumerate(pairwise(state.firsts)) for k in range(int(b - a))]
        parts = layout.map(getitem, [whole[i] for i, _ in at], [k for _, k in at])
        return RowBlocks(parts, problem.X.shape, problem.X.dtype, layout)


def _both(U: Array) -> dict[str, Array]:
    """Return a block of a solve that starts at ``U``."""
    return {"U": U, "Y": U}
