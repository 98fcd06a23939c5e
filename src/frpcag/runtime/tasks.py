"""Row blocks on a Dask cluster, or one after the other in this process: tasks, sums, and rows that change blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import getitem
from typing import Any

import numpy as np

Array = np.ndarray

# Parts added up by one task of a tree of sums.
_FAN_IN = 16


class Here:
    """Tasks run at once in this process: what a block-wise fit does where no Dask client is connected."""

    def workers(self) -> list[Any]:
        """Return the addresses of the workers."""
        return [None]

    def on_each_worker(self, function: Callable) -> list[Any]:
        """Return what a function says on every worker."""
        return [function()]

    def submit(self, function: Callable, *args: Any, home: Any = None) -> Any:
        """Return the result of a task."""
        return function(*args)

    def map(self, function: Callable, rows: Sequence[tuple], homes: Sequence[Any]) -> list[Any]:
        """Return the results of one task for every row of arguments."""
        return [function(*row) for row in rows]

    def gather(self, results: Any) -> Any:
        """Return the values of the results of tasks."""
        return results

    def chunks(self, dx: Any) -> list[Any]:
        """Return the row chunks of a Dask array."""
        return [dx.blocks[i].compute(scheduler="synchronous") for i in range(dx.numblocks[0])]

    def array(self, parts: Sequence[Any], shapes: Sequence[tuple[int, int]], dtype: Any) -> Any:
        """Return the Dask array of row chunks that are results of tasks."""
        import dask.array as da

        return da.concatenate([da.from_array(part, chunks=-1) for part in parts])


class Cluster:
    """Tasks run by the workers of a Dask client; their results stay there as futures.

    A task with a ``home`` runs on that worker while it lives, and anywhere else after. A lost result is computed again
    from those it was made of, by the scheduler.
    """

    def __init__(self, client: Any) -> None:
        self.client = client

    def workers(self) -> list[Any]:
        """Return the addresses of the workers there are now, at least one."""
        # Not by scheduler_info: the client's own refresh, which lists no workers, may come between call and answer.
        while not (workers := self.client.nthreads()):
            self.client.wait_for_workers(1)
        return sorted(workers)

    def on_each_worker(self, function: Callable) -> list[Any]:
        """Return what a function says on every worker."""
        return list(self.client.run(function).values())

    def submit(self, function: Callable, *args: Any, home: Any = None) -> Any:
        """Return the future of a task."""
        return self.map(function, [args], [home])[0]

    def map(self, function: Callable, rows: Sequence[tuple], homes: Sequence[Any]) -> list[Any]:
        """Return the futures of one task for every row of arguments; those with the same home are sent together."""
        futures: list[Any] = [None] * len(rows)
        for home in dict.fromkeys(homes):
            at = [i for i, other in enumerate(homes) if other == home]
            where = {} if home is None else {"workers": [home], "allow_other_workers": True}
            columns = zip(*(rows[i] for i in at), strict=True)
            sent = self.client.map(function, *map(list, columns), pure=False, **where)
            for i, future in zip(at, sent, strict=True):
                futures[i] = future
        return futures

    def gather(self, results: Any) -> Any:
        """Wait for futures and return their values; for small ones."""
        return self.client.gather(results)

    def chunks(self, dx: Any) -> list[Any]:
        """Return the row chunks of a Dask array as futures."""
        from distributed import futures_of

        dx = self.client.persist(dx)
        futures = {future.key: future for future in futures_of(dx)}
        return [futures[key] for (key,) in dx.__dask_keys__()]

    def array(self, parts: Sequence[Any], shapes: Sequence[tuple[int, int]], dtype: Any) -> Any:
        """Return the Dask array of row chunks that are futures."""
        import dask.array as da

        return da.concatenate(
            [da.from_delayed(part, shape, dtype=dtype) for part, shape in zip(parts, shapes, strict=True)]
        )


def current_cluster() -> Here | Cluster:
    """Return the cluster of the current Dask client, or this process where there is none."""
    try:
        from distributed import get_client

        return Cluster(get_client())
    except (ImportError, ValueError):
        return Here()


@dataclass
class Layout:
    """Where the row blocks are: block ``j`` has ``sizes[j]`` rows and lives on worker ``homes[j]``."""

    cluster: Here | Cluster
    sizes: list[int]
    homes: list[Any]

    @classmethod
    def spread(cls, cluster: Here | Cluster, sizes: Sequence[int]) -> Layout:
        """Deal the blocks to the workers there are now."""
        return cls(cluster, [int(size) for size in sizes], deal(cluster, len(sizes)))

    @property
    def bounds(self) -> Array:
        """First row of every block, and the number of rows."""
        return np.concatenate([[0], np.cumsum(self.sizes)])

    def map(self, function: Callable, *columns: Sequence[Any]) -> list[Any]:
        """Submit one task a block, at its home; its arguments are the block's entry of every column."""
        return self.cluster.map(function, list(zip(*columns, strict=True)), self.homes)


def deal(cluster: Here | Cluster, n_blocks: int) -> list[Any]:
    """Return a worker for every block, runs of blocks to the same one: blocks next to each other share most edges."""
    workers = cluster.workers()
    return [workers[j * len(workers) // n_blocks] for j in range(n_blocks)]


def exchange(cluster: Here | Cluster, sources: Sequence[Any], homes: Sequence[Any]) -> list[Any]:
    """Return the blocks that rows move to.

    Parameters
    ----------
    sources : sequence of results
        Each a list with one piece for every block moved to, as `split_rows` gives.
    homes : sequence of worker addresses
        Of the blocks moved to.

    Returns
    -------
    list of results
        Tuples of arrays: the pieces of all sources, one below the other.
    """
    n = len(homes)
    pieces = cluster.map(getitem, [(source, j) for source in sources for j in range(n)], [None] * (n * len(sources)))
    return cluster.map(_stack, [(pieces[j::n],) for j in range(n)], homes)


def split_rows(arrays: tuple[Array, ...], rows: Array, dest: Array, n_blocks: int) -> list[tuple[Array, ...]]:
    """Return for every block the ``rows`` of the arrays that go there; a row may go to several blocks or none."""
    order = np.argsort(dest, kind="stable")
    ends = np.searchsorted(dest[order], np.arange(n_blocks + 1))
    picked = rows[order]
    return [tuple(A[picked[ends[j] : ends[j + 1]]] for A in arrays) for j in range(n_blocks)]


def tree_sum(cluster: Here | Cluster, parts: Sequence[Any]) -> Any:
    """Return the sum of results, added by the workers in a fixed order; tuples and arrays add up entry by entry."""
    parts = list(parts)
    while len(parts) > 1:
        groups = [(parts[i : i + _FAN_IN],) for i in range(0, len(parts), _FAN_IN)]
        parts = cluster.map(add_up, groups, [None] * len(groups))
    return cluster.gather(parts[0])


def add_up(parts: Sequence[Any]) -> Any:
    """Return the sum of numbers, arrays, or tuples of them; of maxima, the largest."""
    first = parts[0]
    if isinstance(first, tuple):
        return tuple(add_up(column) for column in zip(*parts, strict=True))
    if isinstance(first, Maximum):
        return Maximum(np.fmax.reduce([part.value for part in parts]))
    with np.errstate(over="ignore", invalid="ignore"):  # whoever reads the sum refuses what has left the range
        return sum(parts[1:], start=first)


@dataclass(frozen=True)
class Maximum:
    """A number, or an array of them, of which a tree of sums takes the largest."""

    value: Any


def _stack(pieces: Sequence[tuple[Array, ...]]) -> tuple[Array, ...]:
    return tuple(np.concatenate(parts) for parts in zip(*pieces, strict=True))
