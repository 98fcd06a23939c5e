"""Which class of problems goes with which kind of array."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from frpcag.problem import Problem
from frpcag.runtime.arrays import is_tensor


def problem_type(X: Any) -> type[Problem]:
    """Return `Problem` for NumPy arrays and, for tensors, the one of the torch backend, loaded when asked for."""
    return import_module("frpcag.backends.torch.backend").TensorProblem if is_tensor(X) else Problem
