"""Memory that a fit needs and that the machine has: if a fit would not fit, it raises MemoryError before it starts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from frpcag.runtime.threads import count_threads

# Arrays of the size of X that a fit holds beside X itself: in the solver a centred copy, U and both Y; the reference
# backend makes more for its plain expressions. At the end U, its slope, and both results.
_SOLVER_ARRAYS = {"numpy": 8}
_USUAL_ARRAYS, _END_ARRAYS = 4, 4.5
# Libraries' buffers and blocks of the neighbour search, whatever the size of X.
_FIXED = 60 * 10**6
# Each neighbour of a node: edges found from both ends, as weights and as a Laplacian, and copies while they are built.
_BYTES_PER_NEIGHBOR = 120
# Rows and columns of the solver's arrays are padded to whole tiles (frpcag.backends.numba.kernels).
_TILE, _LANES = 64, 16
# Of the smaller side, squared: the Gram matrix and its eigenvectors, in float64. Larger sides are sketched.
_GRAM_SIDE, _GRAM_BYTES = 4096, 32
# Rows that automatic gammas look at, and float64 arrays of them (frpcag.engines.gammas).
_GAMMA_ROWS, _GAMMA_ARRAYS = 2000, 5
# Search with missing entries: rows of a block, bytes for each pair of them and a node, of each thread; bytes of each
# entry. Beyond so many nodes it is approximate and looks at fewer pairs.
_SEARCH_ROWS, _PAIR_BYTES, _ENTRY_BYTES, _EXACT_NODES = 512, 22, 8, 20_000
# Each neighbour of a row that is labelled: its edges, in both directions, while clusters are merged.
_LABEL_BYTES = 170
# A Dask worker: Python and its libraries, and copies of a block that the neighbour search makes.
_PYTHON, _SEARCH_COPIES = 350 * 10**6, 5
# Copies of a row in the search at most: one for each list it looks at (`frpcag.graphs.inverted_lists`), its own.
_MOST_COPIES = 25
# Less than this is not looked at: reading the state of the machine takes longer than small fits do.
LEAST = 128 * 2**20


def needed_bytes(
    n: int,
    p: int,
    dtype: Any = np.float64,
    n_neighbors: int = 10,
    *,
    backend: str = "auto",
    missing: bool = False,
    n_threads: int = 1,
) -> int:
    """Return about how many bytes a fit of an ``n`` by ``p`` matrix takes at its peak, those of ``X`` not counted.

    Parameters
    ----------
    n, p : int
        Samples and features.
    dtype : dtype, default=float64
        float32 stays float32, all others are computed in float64.
    n_neighbors : int, default=10
        Neighbours of each node of both graphs.
    backend : str, default="auto"
        What computes the steps; "numpy" takes eight arrays of the size of ``X``, the others four.
    missing : bool, default=False
        Whether entries are missing: distances over common entries take more.
    n_threads : int, default=1
        Threads of the neighbour search.

    Returns
    -------
    int
        The largest of the stages: search, automatic gammas, solver, factors and results.

    Examples
    --------
    >>> from frpcag.runtime.memory import needed_bytes
    >>> round(needed_bytes(70_000, 784, "float32") / 2**30, 2)
    1.07
    """
    itemsize = 4 if np.dtype(dtype) == np.float32 else 8
    rows, columns = max(n, p), min(n, p)
    one, padded = n * p * itemsize, -(-rows // _TILE) * _TILE * -(-columns // _LANES) * _LANES * itemsize
    arrays = _SOLVER_ARRAYS.get(backend, _USUAL_ARRAYS)
    stages = [
        arrays * (one if backend == "numpy" else padded),
        one + 8 * _GAMMA_ARRAYS * min(n, _GAMMA_ROWS) * p,
        _END_ARRAYS * one + (_GRAM_BYTES * columns**2 if columns <= _GRAM_SIDE else 0),
    ]
    if missing:
        nodes = min(rows, _EXACT_NODES)
        pairs = _PAIR_BYTES * min(nodes, _SEARCH_ROWS) * nodes
        stages.append(one + n_threads * (pairs + _ENTRY_BYTES * nodes * columns))
    return int(max(stages)) + _BYTES_PER_NEIGHBOR * (n + p) * n_neighbors + _FIXED


def available_bytes() -> int | None:
    """Return the bytes this process may still take, None where the system does not say.

    On Linux the memory and the swap that are free or can be freed, or what the limit of a container leaves of it;
    elsewhere all the memory the machine has.
    """
    try:
        free = _meminfo()
    except (OSError, ValueError, KeyError):
        return _physical()
    left = _cgroup_left()
    return free if left is None else min(free, left)


def require_memory(needed: int, what: str, *, dtype: Any = None) -> None:
    """Raise MemoryError where ``needed`` bytes are more than there are.

    Parameters
    ----------
    needed : int
        Bytes.
    what : str
        What needs them, such as "a fit of X with shape (3, 4)".
    dtype : dtype, optional
        Of the data: owners of float64 are told that float32 takes less.
    """
    if needed < LEAST:
        return
    free = available_bytes()
    if free is not None and needed > free:
        single = "float32, " if dtype == np.float64 else ""
        raise MemoryError(
            f"{what} needs about {in_words(needed)}, but {in_words(free)} are free; pass {single}fewer rows or fewer "
            "columns, or a Dask array, which is fitted block by block."
        )


def fit_bytes(X: Any, model: Any) -> int:
    """Return about how many bytes a fit of ``X`` takes at its peak, those of ``X`` not counted."""
    dtype = getattr(X, "dtype", None)
    kept = dtype if isinstance(dtype, np.dtype) and dtype == np.float32 else np.dtype(np.float64)
    k = min(model.n_neighbors, 1000) if isinstance(model.n_neighbors, int) else 10
    backend = model.backend if isinstance(model.backend, str) else "auto"
    n, p = X.shape
    missing, n_threads = _has_missing(X), count_threads(model.n_jobs)
    needed = needed_bytes(n, p, kept, max(k, 0), backend=backend, missing=missing, n_threads=n_threads)
    if not (isinstance(dtype, np.dtype) and dtype == kept) and not hasattr(X, "toarray"):
        needed += n * p * 8  # a copy in float64 comes first
    return needed


def clustering_bytes(X: Any, model: Any, *, points: int, n_neighbors: int) -> int:
    """Return about how many bytes it takes to fit ``X`` and to label its rows, those of ``X`` not counted.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
    model : FRPCAG
    points : int
        Bytes of each row of what is labelled.
    n_neighbors : int
        Of each row, in the largest graph that labels are tried on.

    Returns
    -------
    int
        The fit, or its results and what labels them, whichever is larger.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag import FRPCAG
    >>> from frpcag.runtime.memory import clustering_bytes, fit_bytes
    >>> X = np.zeros((20_000, 20))
    >>> clustering_bytes(X, FRPCAG(), points=320, n_neighbors=25) > 1.5 * fit_bytes(X, FRPCAG())
    True
    """
    n, p = X.shape
    k = model.n_neighbors if isinstance(model.n_neighbors, int) else 10
    results = 2 * n * p * X.dtype.itemsize + _BYTES_PER_NEIGHBOR * (n + p) * k + _FIXED
    return int(max(fit_bytes(X, model), results + n * (points + _LABEL_BYTES * n_neighbors)))


def require_memory_for(X: Any, model: Any) -> None:
    """Raise MemoryError if a fit of ``X`` would not fit; other checks refuse what is not a matrix."""
    shape, dtype = getattr(X, "shape", None), getattr(X, "dtype", None)
    if not isinstance(shape, tuple) or len(shape) != 2 or not all(isinstance(size, int) for size in shape):
        return
    kept = dtype if isinstance(dtype, np.dtype) and dtype == np.float32 else np.dtype(np.float64)
    one = in_words(shape[0] * shape[1] * kept.itemsize)
    what = f"a fit of X with shape {shape} in {kept} (dense: {one} for each array of its size)"
    require_memory(fit_bytes(X, model), what, dtype=kept)


def _has_missing(X: Any) -> bool:
    """Say whether a large array of floats has NaN; no array of its size is made."""
    if not isinstance(X, np.ndarray) or X.dtype.kind != "f" or X.size < 2**20:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isnan(X.sum()))


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
    >>> from frpcag.runtime.memory import in_words, worker_bytes
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


def in_words(n_bytes: int) -> str:
    """Return bytes in the unit that suits them.

    Examples
    --------
    >>> from frpcag.runtime.memory import in_words
    >>> in_words(3 * 2**30), in_words(700), in_words(2**43)
    ('3.0 GiB', '700 bytes', '8.0 TiB')
    """
    for power, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB")):
        if n_bytes >= 2**power:
            return f"{n_bytes / 2**power:,.1f} {unit}"
    return f"{n_bytes} bytes"


def _meminfo() -> int:
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    kilobytes = {line.split(":")[0]: int(line.split()[1]) for line in lines if ":" in line}
    return 1024 * (kilobytes["MemAvailable"] + kilobytes.get("SwapFree", 0))


def _physical() -> int | None:
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # no sysconf on Windows
        return None
    return total if total > 0 else None


def _cgroup_left() -> int | None:
    """Return what the control groups of this process leave, the tightest of them; None without a limit."""
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    left = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            root, names = Path("/sys/fs/cgroup"), ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            root = Path("/sys/fs/cgroup/memory")
        else:
            continue
        # A limit may be set on any group above; in a container the path is often that of the host and not to be seen.
        group = root / path.lstrip("/")
        left += [_group_left(folder, *names) for folder in (group, *group.parents) if folder.is_relative_to(root)]
    known = [n_bytes for n_bytes in left if n_bytes is not None]
    return min(known) if known else None


def _group_left(folder: Path, limit: str, usage: str, cache: str) -> int | None:
    try:
        most, used = (int((folder / name).read_text()) for name in (limit, usage))
        stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):  # not there, or "max": no limit
        return None
    # Cached files count as used but are given back on demand.
    return max(most - used + int(stat.get(cache, 0)), 0)
