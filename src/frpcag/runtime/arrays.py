"""What kind of array something is, asked without importing PyTorch or Dask."""

from __future__ import annotations

from typing import Any


def is_tensor(X: Any) -> bool:
    """Say whether ``X`` is a PyTorch tensor."""
    return type(X).__module__.partition(".")[0] == "torch"


def is_dask(X: Any) -> bool:
    """Say whether ``X`` is a Dask collection."""
    return type(X).__module__.partition(".")[0] == "dask"
