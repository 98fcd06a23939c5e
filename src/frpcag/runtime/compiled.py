"""One way to compile kernels: by Numba on first use, serial, without the GIL, kept on disk."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType

# Sums may be reordered, which makes them vectors. No "nnan": missing entries are NaN and must stay so.
REORDER = frozenset({"contract", "reassoc", "nsz", "arcp"})


def compiled(function: Callable) -> Callable:
    """Compile lazily, sums in the order written; cached on disk where a folder for it is writable."""
    return _compile(function)


def compiled_reordered(function: Callable) -> Callable:
    """Compile like `compiled`, but let sums be reordered."""
    return _compile(function, fastmath=set(REORDER))


def completed(function: Callable, name: str, **parts: Callable) -> Callable:
    """Compile like `compiled_reordered` a kernel that calls functions it does not have, with these written into it.

    The name tells kernels with other parts from each other on the disk.
    """
    whole = FunctionType(function.__code__, function.__globals__ | {key: inlined(part) for key, part in parts.items()})
    whole.__qualname__ = whole.__name__ = f"{function.__name__}_{name}"
    return compiled_reordered(whole)


def inlined(function: Callable) -> Callable:
    """Make a part of kernels with reordered sums, written into each of them.

    As a function of its own it would have its sums in one order in the process that compiles it and its callers, and in
    another one in those that read them from the disk.
    """
    import numba

    return numba.njit(inline="always")(function)


def _compile(function: Callable, **options) -> Callable:
    import numba

    try:
        return numba.njit(nogil=True, error_model="numpy", cache=True, **options)(function)
    except RuntimeError:  # numba finds no writable cache folder
        return numba.njit(nogil=True, error_model="numpy", **options)(function)
