"""One way to compile kernels: by Numba on first use, serial, without the GIL, kept on disk."""

from __future__ import annotations

from collections.abc import Callable

# Sums may be reordered, which makes them vectors. No "nnan": missing entries are NaN and must stay so.
REORDER = frozenset({"contract", "reassoc", "nsz", "arcp"})


def compiled(function: Callable) -> Callable:
    """Compile lazily, sums in the order written; cached on disk where a folder for it is writable."""
    return _compile(function)


def compiled_reordered(function: Callable) -> Callable:
    """Compile like `compiled`, but let sums be reordered."""
    return _compile(function, fastmath=set(REORDER))


def _compile(function: Callable, **options) -> Callable:
    import numba

    try:
        return numba.njit(nogil=True, error_model="numpy", cache=True, **options)(function)
    except RuntimeError:  # numba finds no writable cache folder
        return numba.njit(nogil=True, error_model="numpy", **options)(function)
