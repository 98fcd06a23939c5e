"""Memory that a fit takes on each worker, and a refusal where a worker has less."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from frpcag.runtime.memory import in_words

# A Dask worker: Python and its libraries, and copies of a block that the neighbour search makes.
_PYTHON, _SEARCH_COPIES = 350 * 10**6, 5
# Copies of a row in the search at most: one for each list it looks at (`frpcag.graphs.inverted_lists`), its own.
_MOST_COPIES = 25


def worker_bytes(n: int, p: int, itemsize: int, n_neighbors: int, *, n_workers: int, n_blocks: int) -> int:
    """Return about how many bytes each Dask worker takes at the peak of a fit (docs/scaling.md, the cost model).

    Parameters
    ----------
    n, p : int
        Samples and features.
    itemsize : int
        Bytes of a number.
    n_neighbors : int
        Neighbours of each sample.
    n_workers, n_blocks : int
        Of the cluster, and row chunks of the matrix.

    Examples
    --------
    >>> from frpcag.dask.memory import worker_bytes
    >>> from frpcag.runtime.memory import in_words
    >>> in_words(worker_bytes(10**6, 64, 4, 10, n_workers=2, n_blocks=8))
    '1.7 GiB'
    """
    share, row = -(-n // n_workers), itemsize * p
    solve = _solve_bytes(share, row, itemsize, n_neighbors)
    # Rows are sent to other blocks whose lists they look at, the more so the more blocks there are (measured for 2 to
    # 15); their lists of neighbours travel.
    copies = min(2 + 1.5 * np.log2(n_blocks), _MOST_COPIES)
    search = share * (copies * row + 56 * n_neighbors) + _SEARCH_COPIES * 2 * row * -(-n // n_blocks)
    return int(max(solve, search)) + _PYTHON


def _solve_bytes(share: int, row: int, itemsize: int, n_neighbors: int) -> int:
    """Return the bytes of ``share`` rows in the solve: X, U, Y and the next Y with their halo, the graph twice."""
    halo = 0.1  # of rows on other workers, twice
    return int(share * (row * (4 + 2 * halo) + (24 + itemsize) * (1 + 1.7 * n_neighbors) + 40))


def require_worker_memory(
    cluster: Any, shape: tuple[int, int], chunks: Sequence[int], itemsize: int, n_neighbors: Any
) -> None:
    """Raise MemoryError where a worker cannot hold the chunks that it works on, or its rows in the solve.

    It notes what the fit needs. Other stages may do with less than `worker_bytes`: what is not worked on goes to the
    worker's disk. The solve changes its arrays in place, in memory.
    """
    (n, p), limits = shape, cluster.memory()
    if not any(limit for _, limit in limits.values()):
        return
    k = n_neighbors if isinstance(n_neighbors, int) else 10
    needed = worker_bytes(n, p, itemsize, k, n_workers=len(limits), n_blocks=len(chunks))
    fit = f"A fit of X with shape {shape} in chunks of {max(chunks)} rows"
    ways = "give the workers more memory, add workers, or pass smaller chunks"
    cluster.needs = f"{fit} needs about {in_words(needed)} on each of {len(limits)} workers; {ways}."
    for address, (n_threads, limit) in limits.items():
        search = _SEARCH_COPIES * itemsize * p * max(chunks) * min(n_threads, len(chunks))
        least = _PYTHON + max(search, _solve_bytes(-(-n // len(limits)), itemsize * p, itemsize, k))
        if limit and least > limit:
            raise MemoryError(
                f"{fit} needs at least {in_words(least)} on a worker of {n_threads} threads; the limit of {address} is "
                f"{in_words(limit)}; {ways}."
            )
