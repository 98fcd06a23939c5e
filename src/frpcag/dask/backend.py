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
from frpcag.dask.live import feature_lists, join_rows, own_rows
from frpcag.dask.parts import Numbers, PartLost, call_parts, call_parts_here, collect, place, where
from frpcag.dask.tasks import Here, Layout, deal
from frpcag.losses import LOSSES
from frpcag.problem import Array, Certificate, Sums, certified

# How often workers may die during the same steps.
_ATTEMPTS = 5


@dataclass(eq=False)
class BlockState:
    """A solve whose parts live on the workers, and what makes them again when a worker dies."""

    problem: BlockProblem
    lam: float
    features: Any
    numbers: Numbers
    on_host: bool
    firsts: Array  # first block of every part, and the number of blocks
    data: list[Any]  # rows and graph of every part, in Dask's keeping
    start: RowBlocks | None = None  # what the solve starts from, where it is not X
    saved: Saved | None = None  # the last checkpoint, from which the log goes on
    kept: int = 0  # the step of the last checkpoint, also of one that this run does not go on from
    log: list[float] = field(default_factory=list)  # momentum of every step since
    run: str = field(default_factory=lambda: uuid4().hex)
    epoch: int = 0
    tokens: list[Any] | None = None  # None when the parts are gone
    directory: list[Any] = field(default_factory=list)
    workers: list[Any] = field(default_factory=list)
    sloped: bool = False
    unsure: bool = False  # whether the parts may have done steps that the log does not know

    @property
    def base(self) -> int:
        """Step at which the log begins."""
        return 0 if self.saved is None else self.saved.step

    @property
    def n_iter(self) -> int:
        """Steps done."""
        return self.base + len(self.log)


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
    does not depend on the workers. Where one dies, the steps since the last checkpoint, or since the start of the
    solve, are done again with the same numbers.

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
        )
        features = layout.cluster.submit(feature_lists, problem.L2, 2 * problem.gamma2, dtype, p, step)
        if on_host and U0 is not None:
            U0 = RowBlocks([np.asarray(U0[a:b], dtype) for a, b in pairwise(layout.bounds)], U0.shape, dtype)
        state = BlockState(problem, step, features, numbers, on_host, np.zeros(0), [], U0)
        self._join(state, problem.X.parts)
        problem.X.parts.clear()  # the joined copies serve from here on
        return state

    def resume(self, state: BlockState, *, max_iter: int) -> tuple[float, int, dict[str, Any] | None]:
        """Go on from the checkpoint, if there is one; return as `Backend.resume`.

        A checkpoint beyond ``max_iter`` stays for a longer run, and this one starts at the first step.
        """
        store = state.problem.store
        saved = None if store is None else store.saved("step")
        if saved is None:
            return 1.0, 0, None
        state.kept = saved.step
        if saved.step > max_iter:
            return 1.0, 0, None
        state.saved = saved
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
        n_iter = state.n_iter
        saved = self._save(state, store, "step", ("U", "Y"), {"t": t, "memory": memory})
        state.saved, state.kept, state.start = saved, n_iter, None
        state.log.clear()
        layout = state.problem.layout
        if layout.cluster.workers() != state.workers:  # some came or went
            self._deal_again(state)

    def step(self, state: BlockState, *, momentum: float) -> StepScalars:
        """Do one step on every worker."""
        return self._advance(state, 1, 1.0, False, [momentum])[0]

    def run_on_device(
        self, state: BlockState, n_steps: int, *, t: float, restart: bool, rough: bool = True
    ) -> tuple[StepScalars, float]:
        """Do several steps; the workers agree on momentum and restarts among themselves."""
        return self._advance(state, n_steps, t, restart, None)

    def gap(self, state: BlockState) -> Certificate:
        """Return what is proved about ``U``; one pass, in float64."""
        sums, tops = np.zeros(6), np.zeros(3)
        for blocks in self._ask(state, "gap"):
            for block_sums, block_tops in blocks:
                sums, tops = sums + block_sums, np.fmax(tops, block_tops)
        return certified(state.problem, Sums(*map(float, (*sums, *tops))))

    def slope(self, state: BlockState) -> Any:
        """Return the gradient of the graph terms at ``U``, as `unload` returns ``U``."""
        return self._results(state, "V")

    def unload(self, state: BlockState) -> Any:
        """Return ``U``: row blocks, or an array if the problem came as arrays."""
        U = self._results(state, "U")
        state.tokens = None  # the parts leave the workers
        return U

    def _join(self, state: BlockState, blocks: Sequence[Any]) -> None:
        """Join the blocks that have the same home."""
        problem, layout = state.problem, state.problem.layout
        graphs = [None for _ in blocks] if problem.L1 is None else problem.L1.parts
        state.firsts = np.array(
            [0, *(j for j in range(1, len(blocks)) if layout.homes[j] != layout.homes[j - 1]), len(blocks)]
        )
        state.workers = layout.cluster.workers()
        runs = [slice(int(a), int(b)) for a, b in pairwise(state.firsts)]
        sizes = np.array(layout.sizes)
        numbers = 2 * problem.gamma1, state.lam
        rows = [
            (list(blocks[run]), list(graphs[run]), (i, sizes, state.firsts), *numbers) for i, run in enumerate(runs)
        ]
        state.data = layout.cluster.map(join_rows, rows, [layout.homes[run.start] for run in runs])

    def _deal_again(self, state: BlockState) -> None:
        """Deal the blocks to the workers there are now."""
        layout, p = state.problem.layout, state.problem.X.shape[1]
        homes = [layout.homes[first] for first in state.firsts[:-1]]
        whole = layout.cluster.map(own_rows, [(data, p) for data in state.data], homes)
        blocks = _split(layout, whole, state.firsts)
        layout.homes[:] = deal(layout.cluster, len(layout.homes))
        state.tokens = None
        self._join(state, blocks)

    def _begin(self, state: BlockState) -> None:
        """Place the parts at the step of the last checkpoint, or at the start, and do the steps of the log again."""
        layout, n_parts = state.problem.layout, len(state.data)
        blocks = None if state.start is None else layout.map(_both, state.start.parts)
        if state.saved is not None and state.problem.store is not None:
            blocks = state.problem.store.load(state.saved, layout)
        state.tokens, state.epoch = None, state.epoch + 1
        tasks, homes = [], []
        for i, (a, b) in enumerate(pairwise(map(int, state.firsts))):
            start = None if blocks is None else list(blocks[a:b])
            who = (state.run, i, state.epoch, n_parts)
            tasks.append((state.data[i], state.features, start, who, state.numbers, state.base, self.patience))
            homes.append(layout.homes[a])
        tokens = layout.cluster.map(place, tasks, homes)
        state.directory = layout.cluster.gather(layout.cluster.map(where, [(token,) for token in tokens], homes))
        if None in state.directory:
            raise PartLost("a worker died at the start of the steps")
        for i, (a, b) in enumerate(pairwise(map(int, state.firsts))):
            layout.homes[a:b] = [state.directory[i] or None] * (b - a)
        state.tokens, state.sloped = tokens, False
        if state.log:
            self._call(state, "advance", (len(state.log), 1.0, False, list(state.log)))

    def _advance(
        self, state: BlockState, n_steps: int, t: float, restart: bool, weights: list[float] | None
    ) -> tuple[StepScalars, float]:
        state.unsure = True  # until they have answered: Ctrl-C may come before
        total, t, used = self._ask(state, "advance", n_steps, t, restart, weights)[0]
        state.unsure = False
        state.log += used
        return StepScalars(*map(float, total)), t

    def _ask(self, state: BlockState, name: str, *arguments: Any) -> list[Any]:
        """Let all parts do something; where a worker died, after they have been made again."""
        if state.unsure and name != "advance":
            state.unsure = False
            state.log[:] = self._ask(state, "history", state.base)[0]
        return self._lasting(state, lambda: self._call(state, name, arguments))

    def _lasting(self, state: BlockState, do: Callable[[], Any]) -> Any:
        """Call a function that needs the parts, which are made again when they are lost."""
        for _ in range(_ATTEMPTS):
            try:
                if state.tokens is None:
                    self._begin(state)
                return do()
            except PartLost as error:
                state.tokens, lost = None, error
        raise RuntimeError(
            f"workers died {_ATTEMPTS} times while they did the same steps, the last time: {lost}. "
            f"{state.problem.layout.cluster.needs}".rstrip()
        )

    def _call(self, state: BlockState, name: str, arguments: tuple | list[tuple]) -> list[Any]:
        """Call a method of all parts, with the same arguments or a list of them."""
        cluster, parts = state.problem.layout.cluster, range(len(state.data))
        each = {i: arguments[i] if isinstance(arguments, list) else arguments for i in parts}
        do = call_parts_here if isinstance(cluster, Here) else call_parts
        said = cluster.call(do, state.run, state.epoch, name, state.directory, each)
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
            return [digest for part in self._lasting(state, lambda: self._call(state, "save", each)) for digest in part]

        n_blocks = len(state.problem.layout.sizes)
        return store.save_by(write, name, n_blocks, step=state.n_iter, note=note)

    def _results(self, state: BlockState, which: str) -> Any:
        """Return U or the gradient at it as row blocks, or as an array if the problem came as arrays."""
        problem, store = state.problem, state.problem.store
        if state.on_host:
            parts = self._lasting(state, lambda: problem.layout.cluster.gather(self._collected(state, which)))
            return np.concatenate([block for part in parts for block in part])
        layout = problem.layout
        if store is not None and which == "U":
            # Read back: tasks without a past, so that a loss later on costs no step.
            blocks = store.load(self._save(state, store, "clean", ("U",), {}), layout)
            return RowBlocks(
                layout.map(getitem, blocks, ["U" for _ in blocks]), problem.X.shape, problem.X.dtype, layout
            )

        def collect_all() -> list[Any]:
            whole = self._collected(state, which)
            layout.cluster.gather(layout.cluster.map(len, [(part,) for part in whole], [None for _ in whole]))
            return _split(layout, whole, state.firsts)

        def renew() -> None:
            out.parts[:] = self._lasting(state, collect_all)
            state.tokens = None

        out = RowBlocks(self._lasting(state, collect_all), problem.X.shape, problem.X.dtype, layout, renew)
        return out

    def _collected(self, state: BlockState, which: str) -> list[Any]:
        """Return the blocks of every part, a list of arrays each."""
        if which == "V" and not state.sloped:
            self._call(state, "slope", ())
            state.sloped = True
        if which == "U":
            self._call(state, "settle", ())
        assert state.tokens is not None
        tasks = [(token, which, state.n_iter) for token in state.tokens]
        return state.problem.layout.cluster.map(collect, tasks, [home or None for home in state.directory])


def lasting(blocks: Sequence[RowBlocks | None], do: Callable[[], Any]) -> Any:
    """Call a function of row blocks, again after they were lost with a worker and have been made again."""
    for _ in range(_ATTEMPTS):
        try:
            return do()
        except PartLost:
            for part in blocks:
                if part is not None and part.renew is not None:
                    part.renew()
    return do()


def _split(layout: Layout, whole: Sequence[Any], firsts: Array) -> list[Any]:
    """Return single blocks of lists of them."""
    at = [(i, k) for i, (a, b) in enumerate(pairwise(firsts)) for k in range(int(b - a))]
    return layout.map(getitem, [whole[i] for i, _ in at], [k for _, k in at])


def _both(U: Array) -> dict[str, Array]:
    """Return a block of a solve that starts at ``U``."""
    return {"U": U, "Y": U}
