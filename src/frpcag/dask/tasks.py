"""Row blocks on a Dask cluster, or one after the other in this process: tasks, sums, and rows that change blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from operator import getitem
from typing import Any

import numpy as np

from frpcag.dask.cluster import Cluster

Array = np.ndarray

# Parts added up by one task of a tree of sums.
_FAN_IN = 16


class Here:
    """Tasks run at once in this process: what a block-wise fit does where no Dask client is connected."""

    needs = ""

    def workers(self) -> list[Any]:
        """Return the addresses of the workers."""
        return [None]

    def memory(self) -> dict[Any, tuple[int, int]]:
        """Return the threads and the memory limit of every worker, 0 for no limit."""
        return {None: (1, 0)}

    def on_each_worker(self, function: Callable) -> list[Any]:
        """Return what a function says on every worker."""
        return [function()]

    def submit(self, function: Callable, *args: Any, owner: Any = None) -> Any:
        """Return the result of a task."""
        return function(*args)

    def map(self, function: Callable, rows: Sequence[tuple], owners: Sequence[Any]) -> list[Any]:
        """Return the results of one task for every row of arguments."""
        return [function(*row) for row in rows]

    def gather(self, results: Any) -> Any:
        """Return the values of the results of tasks."""
        return results

    def call(self, function: Callable, *args: Any) -> list[Any]:
        """Return what a function says in this process."""
        return [function(*args)]

    def compute(self, lazy: Any) -> Any:
        """Compute a lazy Dask object and return its value."""
        return lazy.compute(scheduler="synchronous")

    def chunks(self, dx: Any) -> list[Any]:
        """Return the row chunks of a Dask array."""
        return [dx.blocks[i].compute(scheduler="synchronous") for i in range(dx.numblocks[0])]

    def array(self, parts: Sequence[Any], shapes: Sequence[tuple[int, int]], dtype: Any) -> Any:
        """Return the Dask array of row chunks that are results of tasks."""
        import dask.array as da

        return da.concatenate([da.from_array(part, chunks=-1) for part in parts])


def current_cluster(patience: float = 300.0) -> Here | Cluster:
    """Return the cluster of the current Dask client, or this process where there is none.

    A task of that cluster leaves its thread to the tasks that it waits for.
    """
    try:
        from distributed import get_client, secede

        client = get_client()
    except (ImportError, ValueError):
        return Here()
    with suppress(ValueError, KeyError):  # this is no task, or one that has left its thread before
        secede()
    return Cluster(client, patience)


@dataclass
class Layout:
    """Where the row blocks are: block ``j`` has ``sizes[j]`` rows and lives on worker ``owners[j]``."""

    cluster: Here | Cluster
    sizes: list[int]
    owners: list[Any]

    @classmethod
    def spread(cls, cluster: Here | Cluster, sizes: Sequence[int]) -> Layout:
        """Deal the blocks to the workers there are now."""
        return cls(cluster, [int(size) for size in sizes], deal(cluster, len(sizes)))

    @property
    def bounds(self) -> Array:
        """First row of every block, and the number of rows."""
        return np.concatenate([[0], np.cumsum(self.sizes)])

    def map(self, function: Callable, *columns: Sequence[Any]) -> list[Any]:
        """Submit one task a block, at its owner; its arguments are the block's entry of every column."""
        return self.cluster.map(function, list(zip(*columns, strict=True)), self.owners)


def deal(cluster: Here | Cluster, n_blocks: int) -> list[Any]:
    """Return a worker for every block, runs of blocks to the same one: blocks next to each other share most edges."""
    workers = cluster.workers()
    return [workers[j * len(workers) // n_blocks] for j in range(n_blocks)]


def exchange(cluster: Here | Cluster, sources: Sequence[Any], owners: Sequence[Any]) -> list[Any]:
    """Return the blocks that rows move to.

    Parameters
    ----------
    sources : sequence of results
        Each a list with one piece for every block moved to, as `split_rows` gives.
    owners : sequence of worker addresses
        Of the blocks moved to.

    Returns
    -------
    list of results
        Tuples of arrays: the pieces of all sources, one below the other.
    """
    n = len(owners)
    pieces = cluster.map(getitem, [(source, j) for source in sources for j in range(n)], [None] * (n * len(sources)))
    return cluster.map(_stack, [(pieces[j::n],) for j in range(n)], owners)


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


def same(value: Any) -> Any:
    """Return a value: the task that holds it for others."""
    return value


def _stack(pieces: Sequence[tuple[Array, ...]]) -> tuple[Array, ...]:
    return tuple(np.concatenate(parts) for parts in zip(*pieces, strict=True))
