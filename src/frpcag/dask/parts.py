"""What a worker keeps of a solve: a run of row blocks, changed in place by calls that pass no scheduler.

The parts of a solve move on together. After every step each one sends the others the rows of Y that their neighbours
are, and the sums of its blocks; so all know how the step went, and no client is asked before a certificate is due.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from math import sqrt
from time import monotonic
from typing import Any

import numpy as np

from frpcag.dask.checkpoint import write_block
from frpcag.dask.live import Live
from frpcag.problem import Array
from frpcag.runtime.malloc import keep_freed_memory

_PARTS: dict[tuple[str, int], Part] = {}
# Seconds between two looks at workers that keep this one waiting.
_LOOK_EVERY = 1.0


class PartLost(RuntimeError):
    """A part of the solve, or the worker that held it, is gone; the client makes it again."""


@dataclass(frozen=True)
class Numbers:
    """What all steps of a solve share: loss, step size and numbers of the prox, and what a certificate needs."""

    step: tuple[str, float, tuple[float, ...]]
    gap: tuple
    p: int


@dataclass(eq=False)
class Part:
    """The iterates of a run of blocks on one worker.

    ``live`` does the arithmetic.
    """

    run: str
    index: int
    epoch: int  # how often the parts have been made
    n_parts: int
    live: Live
    numbers: Numbers
    patience: float
    worker: Any  # None where no cluster is
    n_iter: int
    first: int = 0  # step at which it was made
    used: list[float] = field(default_factory=list)  # momentum of every step since
    pinned: bool = False  # its token is on disk
    busy: bool = False
    sends: dict[int, Array] | None = None  # rows that the other parts need of this one
    turn: int = 0
    letters: dict[int, dict[int, tuple]] = field(default_factory=dict)
    arrived: Any = None
    thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))

    def do(self, name: str, directory: Sequence[Any], arguments: tuple) -> tuple[str, Any]:
        """Do something in this part's own thread; say how it went."""
        try:
            self.busy = True
            if self.sends is None:
                self._meet(directory)
            return "done", getattr(self, name)(directory, *arguments)
        except PartLost as error:
            return "lost", str(error)
        except Exception as error:
            _PARTS.pop((self.run, self.index), None)  # the others need not wait for this one
            return "failed", error
        finally:
            self.busy = False

    def advance(
        self, directory: Sequence[Any], n_steps: int, t: float, restart: bool, weights: Sequence[float] | None
    ) -> tuple[Array, float, list[float]]:
        """Do steps with the momentum given, or with that of `frpcag.solvers.momentum` from ``t`` on.

        Returns the sums of the last step over all parts, ``t``, and the momentum of every step.
        """
        total, done = np.zeros(3), len(self.used)
        for k in range(n_steps):
            t_next = (1 + sqrt(1 + 4 * t * t)) / 2
            weight = (t - 1) / t_next if weights is None else weights[k]
            sums = self.live.step(*self.numbers.step, weight)
            self.used.append(weight)
            self.n_iter += 1
            total = self._swap("Y", directory, sums)
            t = 1.0 if restart and total[2] > 0 else t_next
        return total, t, self.used[done:]

    def history(self, directory: Sequence[Any], since: int) -> list[float]:
        """Return the momentum of every step since one."""
        return self.used[since - self.first :]

    def gap(self, directory: Sequence[Any]) -> list[tuple]:
        """Return the numbers of `frpcag.problem.Sums` of every block."""
        self.live.look_at_U()
        self._swap("U", directory, np.zeros((0, 3)))
        return self.live.gap(self.numbers.gap)

    def slope(self, directory: Sequence[Any]) -> None:
        """Compute the gradient of the graph terms at ``U``, for `collect`; it overwrites Y."""
        self.live.look_at_U()
        self._swap("U", directory, np.zeros((0, 3)))
        self.live.slope()

    def settle(self, directory: Sequence[Any]) -> None:
        """Let go of all iterates but ``U``: no step follows."""
        self.live.settle()

    def save(self, directory: Sequence[Any], paths: Sequence[str], names: Sequence[str]) -> list[str]:
        """Write iterates of every block to its file; return the digests."""
        blocks = zip(*(self.live.blocks(name, self.numbers.p) for name in names), strict=True)
        return [
            write_block(path, dict(zip(names, arrays, strict=True))) for path, arrays in zip(paths, blocks, strict=True)
        ]

    def _meet(self, directory: Sequence[Any]) -> None:
        """Tell the other parts which of their rows this one needs; hear which of its own they need."""
        needs = self.live.needs
        heard = self._exchange(directory, {j: (needs.get(j, np.zeros(0, np.int64)),) for j in self._others()})
        self.sends = {j: rows for j, (rows,) in heard.items()}
        self._swap("Y", directory, np.zeros((0, 3)))

    def _swap(self, which: str, directory: Sequence[Any], sums: Array) -> Array:
        """Bring the halo of an iterate up to date, and return the sums of all blocks of all parts, added in order."""
        assert self.sends is not None
        heard = self._exchange(directory, {j: (sums, self.live.pick(which, rows)) for j, rows in self.sends.items()})
        self.live.fill(which, {j: rows for j, (_, rows) in heard.items()})
        every = [sums if j == self.index else heard[j][0] for j in range(self.n_parts)]
        total = np.zeros(3)
        for row in np.concatenate(every):
            total += row
        return total

    def _others(self) -> list[int]:
        return [j for j in range(self.n_parts) if j != self.index]

    def _exchange(self, directory: Sequence[Any], letters: dict[int, tuple]) -> dict[int, tuple]:
        self.turn += 1
        if self.n_parts == 1:
            return {}
        loop = self.worker.loop.asyncio_loop
        return asyncio.run_coroutine_threadsafe(_exchange(self, self.turn, letters, directory), loop).result()


class Token:
    """Held by Dask in place of a `Part`, which no task may copy: the part lives as long as its token."""

    def __init__(self, key: tuple[str, int], epoch: int, address: str) -> None:
        self.key, self.epoch, self.address = key, epoch, address
        weakref.finalize(self, _free, key, epoch)

    def __reduce__(self) -> tuple:
        # On its way to the disk of this worker, or to another one, where there is no such part.
        part = _PARTS.get(self.key)
        if part is not None and part.epoch == self.epoch:
            part.pinned = True
        return _come_back, (self.key, self.epoch, self.address)


class Gone:
    """What a token is where its part is not."""

    address = None


def _come_back(key: tuple[str, int], epoch: int, address: str) -> Token | Gone:
    part = _PARTS.get(key)
    if part is None or part.epoch != epoch:
        return Gone()
    part.pinned = False
    return Token(key, epoch, address)


def place(
    rows: Any,
    features: Any,
    start: Sequence[Any] | None,
    who: tuple[str, int, int, int],
    numbers: Numbers,
    n_iter: int,
    patience: float,
) -> Token:
    """Make a part where its rows are; ``start`` are its blocks of U and Y, where they are not those of X."""
    run, index, epoch, n_parts = who
    _PARTS.pop((run, index), None)  # before the new one takes memory
    worker = _this_worker()
    keep_freed_memory()  # it may have come since the fit began
    threads = 1 if worker is None else max(1, worker.state.nthreads)
    live = Live(rows, features, start, n_threads=threads)
    part = Part(run, index, epoch, n_parts, live, numbers, patience, worker, n_iter, n_iter)
    if worker is not None:
        worker.handlers.setdefault("frpcag_letter", receive)
    _PARTS[run, index] = part
    return Token((run, index), epoch, _address(part))


def where(token: Any) -> Any:
    """Return the address of the worker that holds a part; "" for this process; None where the part is gone."""
    return token.address


def collect(token: Any, which: str, n_iter: int) -> list[Array]:
    """Return the blocks of U, or of the gradient at it, of a part."""
    part = None if token.address is None else _PARTS.get(token.key)
    if part is None or part.epoch != token.epoch or part.n_iter != n_iter:
        raise PartLost("a worker died with its part of the clean matrix; fit again, or fit with a checkpoint.")
    return part.live.blocks(which, part.numbers.p)


async def call_parts(
    run: str, epoch: int, name: str, directory: Sequence[Any], arguments: dict[int, tuple], dask_worker: Any = None
) -> dict[int, tuple[str, Any]]:
    """Let all parts on this worker do something, each in its own thread; return what each says, by its number."""
    parts = _parts_here(run, epoch, dask_worker)
    loop = asyncio.get_running_loop()
    said = [loop.run_in_executor(part.thread, part.do, name, directory, arguments[part.index]) for part in parts]
    return dict(zip((part.index for part in parts), await asyncio.gather(*said), strict=True))


def call_parts_here(run: str, epoch: int, name: str, directory: Sequence[Any], arguments: dict[int, tuple]) -> dict:
    """Do the same in this process, where there is no cluster."""
    return {part.index: part.do(name, directory, arguments[part.index]) for part in _parts_here(run, epoch, None)}


async def receive(run: str, epoch: int, index: int, turn: int, sender: int, letter: tuple) -> bool | None:
    """Take a letter for a part of this worker, or, without one, say whether it is at work; None where it is gone."""
    part = _PARTS.get((run, index))
    if part is None or part.epoch != epoch:
        return None
    if letter:
        part.letters.setdefault(turn, {})[sender] = letter
        if part.arrived is not None:
            part.arrived.set()
    return part.busy


async def _exchange(part: Part, turn: int, letters: dict[int, tuple], directory: Sequence[Any]) -> dict[int, tuple]:
    """Send a letter to every other part, and wait for theirs."""
    part.arrived = asyncio.Event()
    sending = asyncio.gather(*(_send(part, turn, j, letter, directory) for j, letter in letters.items()))
    since = monotonic()
    try:
        while len(here := part.letters.get(turn, {})) < len(letters) or not sending.done():
            part.arrived.clear()
            waiting = asyncio.ensure_future(part.arrived.wait())
            done, _ = await asyncio.wait(
                {waiting, sending} if not sending.done() else {waiting},
                timeout=_LOOK_EVERY,
                return_when=asyncio.FIRST_COMPLETED,
            )
            waiting.cancel()
            if sending.done():
                sending.result()
            if not done:
                missing = [j for j in letters if j not in here]
                if await _all_at_work(part, missing, directory):
                    since = monotonic()
                if monotonic() - since > part.patience:
                    raise PartLost(f"other workers have sent nothing for {part.patience:g} s")
    finally:
        sending.cancel()
    return part.letters.pop(turn)


async def _send(part: Part, turn: int, j: int, letter: tuple, directory: Sequence[Any]) -> bool:
    """Send a letter, or ask with an empty one; return whether the other part is at work."""
    from distributed.protocol import to_serialize

    about: dict[str, Any] = {"run": part.run, "epoch": part.epoch, "index": j, "turn": turn, "sender": part.index}
    try:
        if directory[j] == _address(part):
            taken = await receive(**about, letter=letter)
        else:
            sealed = to_serialize(letter) if letter else ()
            taken = await part.worker.rpc(directory[j]).frpcag_letter(**about, letter=sealed)
    except (OSError, AttributeError, KeyError) as error:
        raise PartLost(f"{directory[j]} does not answer ({type(error).__name__})") from error
    if taken is None:
        raise PartLost(f"{directory[j]} no longer holds its part")
    return taken


async def _all_at_work(part: Part, others: Sequence[int], directory: Sequence[Any]) -> bool:
    """Say whether all parts that keep this one waiting are at work; raise where one, or this one, is gone."""
    if _PARTS.get((part.run, part.index)) is not part:
        raise PartLost("this part was made again elsewhere")
    # The scheduler knows at once of a worker that died; to connect to one takes half a minute to fail.
    known = await part.worker.scheduler.ncores()
    if dead := [directory[j] for j in others if directory[j] not in known]:
        raise PartLost(f"{dead[0]} has died")
    return all(await asyncio.gather(*(_send(part, 0, j, (), directory) for j in others)))


def _parts_here(run: str, epoch: int, worker: Any) -> list[Part]:
    parts = [part for (owner, _), part in sorted(_PARTS.items()) if owner == run]
    return [part for part in parts if part.epoch == epoch and part.worker is worker]


def _address(part: Part) -> str:
    return "" if part.worker is None else part.worker.address


def _this_worker() -> Any:
    from importlib.util import find_spec

    if find_spec("distributed") is None:
        return None
    from distributed import get_worker

    try:
        return get_worker()
    except ValueError:
        return None


def _free(key: tuple[str, int], epoch: int) -> None:
    part = _PARTS.get(key)
    if part is not None and part.epoch == epoch and not part.pinned:
        del _PARTS[key]
        part.thread.shutdown(wait=False)
