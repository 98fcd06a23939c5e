"""What kind of array something is, asked without importing PyTorch or Dask; and its rows, some at a time."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

# Entries worked on at a time: their float64 copies stay in cache.
BLOCK_ENTRIES = 1 << 16


def is_tensor(X: Any) -> bool:
    """Say whether ``X`` is a PyTorch tensor."""
    return type(X).__module__.partition(".")[0] == "torch"


def library_of(A: Any) -> ModuleType:
    """Return PyTorch for tensors, else NumPy: for what both spell alike."""
    return import_module("torch") if is_tensor(A) else np


def is_dask(X: Any) -> bool:
    """Say whether ``X`` is a Dask collection."""
    return type(X).__module__.partition(".")[0] == "dask"


def row_blocks(shape: tuple[int, int], entries: int = BLOCK_ENTRIES) -> list[slice]:
    """Return slices of rows with so many entries each."""
    n, p = shape
    step = max(1, entries // max(1, p))
    return [slice(start, start + step) for start in range(0, n, step)]
