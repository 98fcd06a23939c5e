"""Tasks on the workers of a Dask client, watched: a cluster that no longer moves is an error in words, never a hang."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from functools import partial
from time import monotonic
from typing import Any

from frpcag.runtime.memory import in_words

# Seconds between two looks at a cluster that keeps us waiting; and until the scheduler must have answered one.
_LOOK_EVERY, _ANSWER_IN = 5.0, 30.0
# States of a worker's tasks that mean work: computing, and fetching what a task needs. A task that has left its thread,
# "long-running", may be the one that waits here.
_AT_WORK = ("executing", "flight")
# How often a function is called on all workers while some of them die.
_ATTEMPTS = 5


class Cluster:
    """Tasks run by the workers of a Dask client; their results stay there as futures.

    A task with an ``owner`` runs on that worker while it lives, and anywhere else after. The scheduler computes a lost
    result again from those it was made of.

    Parameters
    ----------
    client : distributed.Client
    patience : float
        Seconds without any sign of work after which waiting ends with an error.

    Attributes
    ----------
    needs : str
        What the fit needs of the workers' memory, in words, for an error about it.
    """

    def __init__(self, client: Any, patience: float = 300.0) -> None:
        self.client = client
        self.patience = patience
        self.needs = ""
        self._anchor: Any = None

    def workers(self) -> list[Any]:
        """Return the addresses of the workers there are now, at least one."""
        with self._in_words():
            # Not by scheduler_info: the client's own refresh, which lists no workers, may come between call and answer.
            while not (workers := self.client.nthreads()):
                try:
                    self.client.wait_for_workers(1, timeout=self.patience)
                except TimeoutError as error:
                    raise RuntimeError(self._no_workers()) from error
        return sorted(workers)

    def memory(self) -> dict[Any, tuple[int, int]]:
        """Return the threads and the memory limit of every worker, 0 for no limit."""
        with self._in_words():
            workers = self.client.sync(self.client.scheduler.identity)["workers"]
        return {address: (info["nthreads"], info["memory_limit"] or 0) for address, info in workers.items()}

    def on_each_worker(self, function: Callable) -> list[Any]:
        """Return what a function says on every worker."""
        with self._in_words():
            for _ in range(_ATTEMPTS):
                self.workers()  # some may have died: ask those there are now
                said = self.client.run(function, on_error="return")
                failed = [value for value in said.values() if isinstance(value, BaseException)]
                if said and not failed:
                    return list(said.values())
            raise failed[0] if failed else RuntimeError(self._no_workers())

    def submit(self, function: Callable, *args: Any, owner: Any = None) -> Any:
        """Return the future of a task."""
        return self.map(function, [args], [owner])[0]

    def map(self, function: Callable, rows: Sequence[tuple], owners: Sequence[Any]) -> list[Any]:
        """Return the futures of one task for every row of arguments; those with the same owner are sent together."""
        futures: list[Any] = [None] * len(rows)
        with self._in_words():
            for owner in dict.fromkeys(owners):
                at = [i for i, other in enumerate(owners) if other == owner]
                where = {} if owner is None else {"workers": [owner], "allow_other_workers": True}
                columns = list(map(list, zip(*(rows[i] for i in at), strict=True)))
                do = function
                if owner is not None and not all(_depends(rows[i]) for i in at):
                    # A task that waits for nothing and loses its owner when there is no other worker is never looked at
                    # again by the scheduler, whoever joins; one that waits for another task is.
                    do, columns = _after, [[self._always() for _ in at], [function for _ in at], *columns]
                sent = self.client.map(do, *columns, pure=False, **where)
                for i, future in zip(at, sent, strict=True):
                    futures[i] = future
        return futures

    def gather(self, results: Any) -> Any:
        """Wait for futures and return their values; for small ones."""
        with self._in_words():
            return self.client.sync(self._watched, partial(self.client.gather, results, asynchronous=True))

    def call(self, function: Callable, *args: Any) -> list[Any]:
        """Return what a coroutine function says on every worker, past their tasks; an exception for one that died."""
        with self._in_words():
            ask = partial(self.client.run, function, *args, on_error="return")
            said = self.client.sync(self._watched, partial(ask, asynchronous=True), at_work=True)
        return list(said.values())

    def compute(self, lazy: Any) -> Any:
        """Compute a lazy Dask object and return its value; for small ones."""
        with self._in_words():
            future = self.client.compute(lazy)
        return self.gather(future)

    def chunks(self, dx: Any) -> list[Any]:
        """Return the row chunks of a Dask array as futures."""
        from distributed import futures_of
        from distributed.client import _wait

        with self._in_words():
            dx = self.client.persist(dx)
            futures = {future.key: future for future in futures_of(dx)}
            # The scheduler may take up tasks that were sent after a graph before it has ordered that graph, and drop
            # them as tasks that depend on nothing it knows.
            self.client.sync(self._watched, partial(_wait, list(futures.values())))
        return [futures[key] for (key,) in dx.__dask_keys__()]

    def array(self, parts: Sequence[Any], shapes: Sequence[tuple[int, int]], dtype: Any) -> Any:
        """Return the Dask array of row chunks that are futures."""
        import dask.array as da

        return da.concatenate(
            [da.from_delayed(part, shape, dtype=dtype) for part, shape in zip(parts, shapes, strict=True)]
        )

    def _always(self) -> Any:
        """Return a future that any worker can compute again."""
        if self._anchor is None:
            self._anchor = self.client.submit(int, pure=False)
        return self._anchor

    async def _watched(self, start: Callable, at_work: bool = False) -> Any:
        """Wait for what ``start`` returns, and look at the cluster meanwhile; runs in the client's event loop.

        ``at_work`` says that workers do what their tasks do not show.
        """
        waiting = asyncio.ensure_future(start())
        before, since = None, monotonic()
        try:
            while True:
                done, _ = await asyncio.wait({waiting}, timeout=min(_LOOK_EVERY, self.patience / 4))
                if done:
                    return waiting.result()
                seen = await self._look()
                if seen is not None and (
                    seen != before or (at_work and seen) or any(busy for *_, busy in seen.values())
                ):
                    before, since = seen, monotonic()
                elif monotonic() - since > self.patience:
                    raise self._stalled(seen)
        finally:
            waiting.cancel()

    async def _look(self) -> dict[Any, tuple] | None:
        """Return what every worker does; None where the scheduler does not answer."""
        try:
            told = await asyncio.wait_for(self.client.scheduler.identity(), min(_ANSWER_IN, self.patience))
        except OSError:
            return None
        seen = {}
        for address, info in told["workers"].items():
            metrics = info.get("metrics") or {}
            counts = metrics.get("task_counts") or {}
            counts = counts if isinstance(counts, dict) else {}
            spilled = (metrics.get("spilled_bytes") or {}).get("disk", 0)
            use = f"{in_words(metrics.get('memory', 0))} of {in_words(info['memory_limit'] or 0)}"
            at_work = any(counts.get(state) for state in _AT_WORK)
            seen[address] = (info["status"], sorted(counts.items()), spilled, _Unseen(use), at_work)
        return seen

    def _stalled(self, seen: dict[Any, tuple] | None) -> Exception:
        if seen is None:
            return RuntimeError(
                f"Dask's scheduler at {self.client.scheduler.address} has not answered for {self.patience:g} s; "
                "connect a client to a cluster that works and make the same call again."
            )
        if not seen:
            return RuntimeError(self._no_workers())
        paused = [(address, use) for address, (status, _, _, use, _) in seen.items() if status == "paused"]
        if paused:
            uses = ", ".join(f"{address} with {use}" for address, use in paused[:4])
            return MemoryError(
                f"the Dask cluster has done nothing for {self.patience:g} s: {len(paused)} of {len(seen)} workers are "
                f"paused by their memory limits ({uses}). {self.needs}"
            )
        return RuntimeError(
            f"the Dask cluster has done nothing for {self.patience:g} s, with {len(seen)} workers that say they run; "
            "restart its workers and make the same call again."
        )

    def _no_workers(self) -> str:
        return (
            f"the Dask cluster has had no workers for {self.patience:g} s; start some and make the same call again. It "
            "goes on from where it was if backend=DaskBackend(checkpoint=...) names a folder."
        )

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        """Turn what Dask raises about a cluster that is lost into one error that says what to do."""
        from distributed.client import CancelledError as AsyncCancelledError
        from distributed.comm import CommClosedError
        from distributed.scheduler import KilledWorker

        try:
            yield
        except KilledWorker as error:
            raise RuntimeError(
                f"{error.allowed_failures + 1} workers died one after the other while they ran the same task, the last "
                f"at {error.last_worker.address}; their memory may be too small. {self.needs}".rstrip()
            ) from error
        except (CancelledError, AsyncCancelledError, CommClosedError, asyncio.CancelledError) as error:
            raise RuntimeError(_lost(error)) from error
        except Exception as error:
            # Of a client that is closed, Dask says many things.
            if self.client.status in ("running", "connecting") or not _of_dask(error):
                raise
            raise RuntimeError(_lost(error)) from error


def _lost(error: BaseException) -> str:
    return (
        f"Dask's scheduler or its results were lost ({type(error).__name__}: {error}); connect a client to a cluster "
        "that works and make the same call again. It goes on from where it was if backend=DaskBackend(checkpoint=...) "
        "names a folder."
    )


class _Unseen(str):
    """Words that make no difference: two looks at a worker are equal whatever they are."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = str.__hash__


def _depends(arguments: Sequence[Any]) -> bool:
    """Say whether there is a future among the arguments, or in their lists."""
    from distributed import Future

    return any(
        isinstance(value, Future) or (isinstance(value, (list, tuple)) and _depends(value)) for value in arguments
    )


def _after(_: Any, function: Callable, *arguments: Any) -> Any:
    return function(*arguments)


def _of_dask(error: BaseException) -> bool:
    return type(error).__module__.split(".")[0] in ("distributed", "tornado", "asyncio", "builtins", "concurrent")
