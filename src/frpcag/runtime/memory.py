"""What a fit needs and what the machine has: a fit that cannot fit says so, with the bytes, before it starts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

# Arrays of the size of X that a fit holds beside X itself: the centred one, and X, U and both Y of the solver. The
# reference backend makes more for its plain expressions.
ARRAYS = {"numpy": 8}
_USUAL_ARRAYS = 5
# Blocks of the neighbour search in float64, one set a thread, whatever the size of X.
_BLOCKS = 96 * 2**20
# Each neighbour of a node: edges found from both ends, as weights and as a Laplacian, and copies while they are built.
_BYTES_PER_NEIGHBOR = 120
# Rows and columns of the solver's arrays are padded to whole tiles (frpcag.backends.numba.kernels).
_TILE, _LANES = 64, 16
# Of the smaller side, squared: the Gram matrix and its eigenvectors, in float64. Larger sides are sketched.
_GRAM_SIDE, _GRAM_BYTES = 4096, 32
# Less than this is not looked at: reading the state of the machine takes longer than small fits do.
LEAST = 128 * 2**20


def needed_bytes(n: int, p: int, dtype: Any = np.float64, n_neighbors: int = 10, *, backend: str = "auto") -> int:
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
        Who does the arithmetic; "numpy" takes eight arrays of the size of ``X``, the others five.

    Returns
    -------
    int

    Examples
    --------
    >>> from frpcag.runtime.memory import needed_bytes
    >>> round(needed_bytes(70_000, 784, "float32") / 2**30, 2)
    1.2
    """
    itemsize = 4 if np.dtype(dtype) == np.float32 else 8
    rows, columns = max(n, p), min(n, p)
    padded = -(-rows // _TILE) * _TILE * -(-columns // _LANES) * _LANES
    arrays = ARRAYS.get(backend, _USUAL_ARRAYS)
    solver = (n * p + (arrays - 1) * (n * p if backend == "numpy" else padded)) * itemsize
    # The Gram matrix comes after the solve: beside it there are only U and what is made of it.
    gram = _GRAM_BYTES * columns**2 + 3 * n * p * itemsize if columns <= _GRAM_SIDE else 0
    return max(solver, gram) + _BYTES_PER_NEIGHBOR * (n + p) * n_neighbors + _BLOCKS


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


def require_memory(needed: int, what: str) -> None:
    """Raise MemoryError where ``needed`` bytes are more than there are.

    Parameters
    ----------
    needed : int
        Bytes.
    what : str
        Who needs them, such as "a fit of X with shape (3, 4)".
    """
    if needed < LEAST:
        return
    free = available_bytes()
    if free is not None and needed > free:
        raise MemoryError(
            f"{what} needs about {in_words(needed)}, but {in_words(free)} are free; pass float32, fewer rows or fewer "
            "columns, or a Dask array, which is fitted block by block."
        )


def require_memory_for(X: Any, n_neighbors: Any = 10, *, backend: Any = "auto") -> None:
    """Raise MemoryError where a fit of ``X`` would not fit; what is no matrix is left to those who check it."""
    shape, dtype = getattr(X, "shape", None), getattr(X, "dtype", None)
    if not isinstance(shape, tuple) or len(shape) != 2 or not all(isinstance(size, int) for size in shape):
        return
    kept = dtype if isinstance(dtype, np.dtype) and dtype == np.float32 else np.dtype(np.float64)
    k = min(n_neighbors, 1000) if isinstance(n_neighbors, int) else 10
    needed = needed_bytes(*shape, kept, max(k, 0), backend=backend if isinstance(backend, str) else "auto")
    if not (isinstance(dtype, np.dtype) and dtype == kept) and not hasattr(X, "toarray"):
        needed += shape[0] * shape[1] * 8  # a copy in float64 comes first
    one = in_words(shape[0] * shape[1] * kept.itemsize)
    require_memory(needed, f"a fit of X with shape {shape} in {kept} (dense: {one} for each array of its size)")


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
