"""Memory that the machine has; what would not fit raises MemoryError before it starts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

# Less than this is not looked at: reading the state of the machine takes longer than small fits do.
LEAST = 128 * 2**20


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
