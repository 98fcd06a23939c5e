"""What kind of array something is, asked without importing PyTorch or Dask."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np


def is_tensor(X: Any) -> bool:
    """Say whether ``X`` is a PyTorch tensor."""
    return type(X).__module__.partition(".")[0] == "torch"


def library_of(A: Any) -> ModuleType:
    """Return PyTorch for tensors, else NumPy: for what both spell alike."""
    return import_module("torch") if is_tensor(A) else np


def is_dask(X: Any) -> bool:
    """Say whether ``X`` is a Dask collection."""
    return type(X).__module__.partition(".")[0] == "dask"
