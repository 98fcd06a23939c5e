"""What a worker keeps of a solve: a run of row blocks, changed in place by calls that pass no scheduler.

The parts of a solve move on together. After every step each one sends the others the rows of Y that their neighbours
are, and the sums of its blocks; so all know how the step went, and no client is asked before a certificate is due.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from math import sqrt
from time import monotonic
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from frpcag.dask.checkpoint import write_block
from frpcag.dask.live import Live
from frpcag.problem import Array
from frpcag.runtime.malloc import keep_freed_memory

# Parts of this process: they live as long as their tokens, and those whose token is on disk until it comes back.
_PARTS: WeakValueDictionary[tuple[str, int], Part] = WeakValueDictionary()
_ON_DISK: dict[tuple[str, int], Part] = {}
# Seconds between two looks at workers that keep this one waiting.
_LOOK_EVERY = 1.0
# How often workers may die without any progress.
_ATTEMPTS = 5


class PartLost(RuntimeError):
    """A part of the solve, or the worker that held it, is gone; what was lost with it is done again."""


def retry_when_lost(
    do: Callable[[], Any],
    again: Callable[[], Any] = int,
    kept: Callable[[], Any] = int,
    needs: Callable[[], str] = str,
) -> Any:
    """Call a function; where it loses a part, call ``again`` and then the function, until it does not.

    ``kept`` tells the last checkpoint, ``needs`` what to say of memory when workers die time and again without one.
    """
    tries, before = 0, kept()
    while tries < _ATTEMPTS:
        try:
            if tries:
                again()
            return do()
        except PartLost as error:
            lost = str(error)
        gc.collect()  # frames of the call that failed hold parts, and these memory of the workers
        now = kept()
        tries, before = (tries + 1 if now == before else 1), now
    raise RuntimeError(
        f"workers died {_ATTEMPTS} times while they did the same steps, the last time: {lost}. {needs()}".rstrip()
    )


@dataclass(frozen=True)
class Numbers:
    """What all steps of a solve share: loss, step size and numbers of the prox, and what a certificate needs."""

    step: tuple[str, float, tuple[float, ...]]
    gap: tuple
    p: int
    patience: float


@dataclass(eq=False)
class Part:
    """The iterates of a run of blocks on one worker.

    ``live`` does the arithmetic.
    """

    run: str
    index: int
    n_parts: int
    live: Live
    numbers: Numbers
    worker: Any  # None where no cluster is
    busy: bool = False
    sends: dict[int, Array] | None = None  # rows that the other parts need of this one
    turn: int = 0
    messages: dict[int, dict[int, tuple]] = field(default_factory=dict)
    arrived: Any = None
    thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))

    def do(self, name: str, directory: Sequence[Any], arguments: tuple) -> tuple[str, Any]:
        """Do something in this part's own thread; say how it went."""
        try:
            self.busy = True
            if self.sends is None and name != "exchange_halo_lists":
                raise PartLost("this part was made again elsewhere")
            return "done", getattr(self, name)(directory, *arguments)
        except PartLost as error:
            return "lost", str(error)
        except Exception as error:
            _PARTS.pop((self.run, self.index), None)  # the others need not wait for this one
            return "failed", error
        finally:
            self.busy = False

    def advance(
        self, directory: Sequence[Any], n_steps: int, t: float, restart: bool, weight: float | None
    ) -> tuple[Array, float]:
        """Do steps with the momentum given, or with that of `frpcag.solvers.fista` from ``t`` on.

        Returns the sums of the last step over all parts, and ``t``.
        """
        total = np.zeros(3)
        for _ in range(n_steps):
            t_next = (1 + sqrt(1 + 4 * t * t)) / 2
            sums = self.live.step(*self.numbers.step, (t - 1) / t_next if weight is None else weight)
            total = self._swap("Y", directory, sums)
            t = 1.0 if restart and total[2] > 0 else t_next
        return total, t

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

    def exchange_halo_lists(self, directory: Sequence[Any]) -> None:
        """Tell the other parts which of their rows this one needs; hear which of its own they need."""
        needs, others = self.live.needs, (j for j in range(self.n_parts) if j != self.index)
        heard = self._exchange(directory, {j: (needs.get(j, np.zeros(0, np.int64)),) for j in others})
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

    def _exchange(self, directory: Sequence[Any], messages: dict[int, tuple]) -> dict[int, tuple]:
        self.turn += 1
        if self.n_parts == 1:
            return {}
        loop = self.worker.loop.asyncio_loop
        return asyncio.run_coroutine_threadsafe(_exchange(self, self.turn, messages, directory), loop).result()


class Token:
    """Held by Dask in place of a `Part`, which no task may copy; empty where the part is gone."""

    def __init__(self, part: Part | None) -> None:
        self.part = part

    def __reduce__(self) -> tuple:
        # On its way to the disk of this worker, or to another one, where there is no such part.
        if self.part is None:
            return Token, (None,)
        key = self.part.run, self.part.index
        _ON_DISK[key] = self.part
        return _come_back, (key,)


def _come_back(key: tuple[str, int]) -> Token:
    return Token(_ON_DISK.pop(key, None))


def place(rows: Any, features: Any, start: Sequence[Any] | None, who: tuple[str, int, int], numbers: Numbers) -> Token:
    """Make a part where its rows are; ``start`` are its blocks of U and Y, where they are not those of X."""
    worker = _this_worker()
    keep_freed_memory()  # it may have come since the fit began
    threads = 1 if worker is None else max(1, worker.state.nthreads)
    part = Part(*who, Live(rows, features, start, n_threads=threads), numbers, worker)
    if worker is not None:
        worker.handlers.setdefault("frpcag_message", receive)
    _PARTS[part.run, part.index] = part
    return Token(part)


def where(token: Token) -> Any:
    """Return the address of the worker that holds a part; "" for this process; None where the part is gone."""
    return None if token.part is None else _address(token.part)


def collect(token: Token, which: str) -> list[Array]:
    """Return the blocks of U, or of the gradient at it, of a part."""
    if token.part is None or token.part.sends is None:  # gone, or made again by Dask, without its steps
        raise PartLost("a worker died with its part of the clean matrix; fit again, or fit with a checkpoint.")
    return token.part.live.blocks(which, token.part.numbers.p)


async def call_parts(
    run: str, name: str, directory: Sequence[Any], arguments: dict[int, tuple], dask_worker: Any = None
) -> dict[int, tuple[str, Any]]:
    """Let all parts on this worker do something, each in its own thread; return what each says, by its number."""
    parts, loop = _parts_here(run, dask_worker), asyncio.get_running_loop()
    said = [loop.run_in_executor(part.thread, part.do, name, directory, arguments[part.index]) for part in parts]
    return dict(zip((part.index for part in parts), await asyncio.gather(*said), strict=True))


def call_parts_here(run: str, name: str, directory: Sequence[Any], arguments: dict[int, tuple]) -> dict:
    """Do the same in this process, where there is no cluster."""
    return {part.index: part.do(name, directory, arguments[part.index]) for part in _parts_here(run, None)}


async def receive(run: str, index: int, turn: int, sender: int, message: tuple) -> bool | None:
    """Take a message for a part of this worker, or, without one, say whether it works; None where it is gone."""
    part = _PARTS.get((run, index))
    if part is None:
        return None
    if message:
        part.messages.setdefault(turn, {})[sender] = message
        if part.arrived is not None:
            part.arrived.set()
    return part.busy


async def _exchange(part: Part, turn: int, messages: dict[int, tuple], directory: Sequence[Any]) -> dict[int, tuple]:
    """Send a message to every other part, and wait for theirs."""
    part.arrived = asyncio.Event()
    sending = asyncio.gather(*(_send(part, turn, j, message, directory) for j, message in messages.items()))
    since = monotonic()
    try:
        while len(here := part.messages.get(turn, {})) < len(messages) or not sending.done():
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
                missing = [j for j in messages if j not in here]
                if await _all_at_work(part, missing, directory):
                    since = monotonic()
                if monotonic() - since > part.numbers.patience:
                    raise PartLost(f"other workers have sent nothing for {part.numbers.patience:g} s")
    finally:
        sending.cancel()
    return part.messages.pop(turn)


async def _send(part: Part, turn: int, j: int, message: tuple, directory: Sequence[Any]) -> bool:
    """Send a message, or ask with an empty one; return whether the other part is at work."""
    from distributed.protocol import to_serialize

    about: dict[str, Any] = {"run": part.run, "index": j, "turn": turn, "sender": part.index}
    try:
        if directory[j] == _address(part):
            taken = await receive(**about, message=message)
        else:
            sealed = to_serialize(message) if message else ()
            taken = await part.worker.rpc(directory[j]).frpcag_message(**about, message=sealed)
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


def _parts_here(run: str, worker: Any) -> list[Part]:
    return [part for (owner, _), part in sorted(_PARTS.items()) if owner == run and part.worker is worker]


def _address(part: Part) -> str:
    return "" if part.worker is None else part.worker.address


def _this_worker() -> Any:
    try:
        from distributed import get_worker

        return get_worker()
    except (ImportError, ValueError):
        return None
