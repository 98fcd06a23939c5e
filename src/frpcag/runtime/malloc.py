"""The C library's allocator on Dask workers: temporary arrays come from memory that the process already has."""

from __future__ import annotations

import ctypes
import os

# glibc's numbers, and what they become by themselves in a process that frees large arrays, the half of it here.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT, _MAPPED = 1 << 25, 1 << 24


def keep_freed_memory() -> None:
    """Let this process keep some of the memory it frees, where Dask has told it to give all of it back at once.

    Dask starts workers with ``MALLOC_TRIM_THRESHOLD_=65536``. Every temporary array of 128 KiB or more is then mapped
    anew and cleared by the system page by page, which takes a third of the time of a fit. At most 32 MiB are kept, and
    arrays of 16 MiB or more are given back at once as before.
    """
    mallopt = _mallopt() if "MALLOC_TRIM_THRESHOLD_" in os.environ else None
    if mallopt is not None:
        mallopt(_TRIM_THRESHOLD, _KEPT)
        mallopt(_MMAP_THRESHOLD, _MAPPED)


def _mallopt():
    """Return glibc's ``mallopt``; None with another C library."""
    try:
        return ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return None
