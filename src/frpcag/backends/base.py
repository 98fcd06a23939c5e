"""The seam between the solvers, which own control flow, and the backends, which own arrays."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any, NamedTuple, Protocol

from frpcag.problem import Array, Certificate, Problem


class StepScalars(NamedTuple):
    """What the solver must know of one step, summed in float64."""

    change: float  # ||Y_next - Y||_F^2
    norm: float  # ||Y||_F^2
    restart: float  # <Y - U_next, U_next - U>: positive when the momentum points uphill


class Backend(Protocol):
    """The array arithmetic of one solver step."""

    name: str

    def load(self, problem: Problem, *, step: float, U0: Array | None = None) -> Any:
        """Return the solver's state at ``U = Y = U0`` (``X`` where not given)."""

    def step(self, state: Any, *, momentum: float) -> StepScalars:
        """Do one proximal gradient step from ``Y``, then move ``Y`` on by ``momentum``."""

    def gap(self, state: Any) -> Certificate:
        """Return objective and dual bound at ``U``."""

    def unload(self, state: Any) -> Array:
        """Return ``U``; the state must not be used afterwards."""

    # A backend for which a look at the scalars is dear may also have
    # ``advance(state, n_steps, *, t, restart) -> (scalars of the last step, t)``: several steps of the solver's loop,
    # with momentum and restarts decided beside the arrays. A state may have ``start``, (t, steps done) to go on from.


def is_tensor(X: Any) -> bool:
    """Say whether ``X`` is a PyTorch tensor, without importing PyTorch."""
    return type(X).__module__.partition(".")[0] == "torch"


# Paths, so that a backend and its libraries are imported only when they are chosen.
BACKENDS = {
    "numpy": ("frpcag.backends.numpy_backend", "NumpyBackend"),
    "numba": ("frpcag.backends.numba_backend", "NumbaBackend"),
    "torch": ("frpcag.backends.torch_backend", "TorchBackend"),
    "dask": ("frpcag.backends.dask_backend", "DaskBackend"),
}


def select_backend(name: str = "auto", *, n_jobs: int | None = None, X: Any = None) -> Backend:
    """Return the backend of that name; "auto" takes PyTorch for tensors, else Numba where it is installed, or NumPy."""
    if name == "auto":
        name = "torch" if is_tensor(X) else "numba" if importlib.util.find_spec("numba") else "numpy"
    if name not in BACKENDS:
        raise ValueError(f"backend={name!r} is unknown; choose 'auto' or one of {', '.join(map(repr, BACKENDS))}.")
    if name == "torch" and not importlib.util.find_spec("torch"):
        raise ImportError("backend='torch' needs PyTorch; install frpcag[gpu].")
    if name == "dask" and not importlib.util.find_spec("distributed"):
        raise ImportError("backend='dask' needs Dask; install frpcag[dask].")
    if is_tensor(X) and name != "torch":
        raise ValueError(f"backend={name!r} does not take PyTorch tensors; pass backend='torch' or X.cpu().numpy().")
    module, attribute = BACKENDS[name]
    return getattr(importlib.import_module(module), attribute)(n_jobs=n_jobs)
