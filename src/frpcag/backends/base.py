"""The seam between the solvers, which own control flow, and the backends, which own arrays."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from math import frexp
from typing import Any, NamedTuple

from frpcag.problem import Certificate, Problem
from frpcag.runtime.arrays import is_tensor


class StepScalars(NamedTuple):
    """What the solver must know of one step, summed in float64."""

    change: float  # ||Y_next - Y||_F^2
    norm: float  # ||Y||_F^2
    restart: float  # <Y - U_next, U_next - U>: positive when the momentum points uphill


class Backend:
    """The array arithmetic of one solver step: what a backend must have, and what it may have."""

    name: str

    def whole(self, problem: Problem, run: Callable[[], Any]) -> Any:
        """Return what a run of the solver on a problem comes to: again where arrays were lost on the way."""
        return run()

    def load(self, problem: Problem, *, step: float, U0: Any = None) -> Any:
        """Return the solver's state at ``U = Y = U0`` (``X`` where not given)."""
        raise NotImplementedError

    def step(self, state: Any, *, momentum: float) -> StepScalars:
        """Do one proximal gradient step from ``Y``, then move ``Y`` on by ``momentum``."""
        raise NotImplementedError

    def gap(self, state: Any) -> Certificate:
        """Return what is proved about ``U``."""
        raise NotImplementedError

    def slope(self, state: Any) -> Any:
        """Return the gradient of the graph terms at ``U``, rounded to its dtype, as `unload` returns ``U``.

        Only `unload` may follow.
        """
        raise NotImplementedError

    def unload(self, state: Any) -> Any:
        """Return ``U``; the state must not be used afterwards."""
        raise NotImplementedError

    def resume(self, state: Any, *, max_iter: int) -> tuple[float, int, dict[str, Any] | None]:
        """Bring the state to a checkpoint of at most ``max_iter`` steps.

        Returns the momentum's ``t``, the steps done, and the memory of the stopping rule; None for a fresh start.
        """
        return 1.0, 0, None

    def keep(self, state: Any, *, t: float, memory: dict[str, Any]) -> None:
        """Save the state where it is time to, with the momentum's ``t`` and the memory of the stopping rule."""

    def steps_at_once(self, state: Any) -> int:
        """Return the most steps that `run_on_device` may do before `keep` is called."""
        return sys.maxsize

    def run_on_device(
        self, state: Any, n_steps: int, *, t: float, restart: bool, rough: bool = True
    ) -> tuple[StepScalars, float] | None:
        """Do several steps where a look at the scalars is dear; None where the solver is to do them one by one.

        Momentum and restarts follow `frpcag.solvers.fista`, beside the arrays. ``rough`` says that certificates will
        look at the iterates, so that steps far from the optimum may round. Returns the scalars of the last step and the
        momentum's ``t``.
        """
        return None


def power_of_two(step: float) -> float:
    """Return the power of two next to a step size, which kernels multiply graphs by and divide the step by.

    It rounds nothing, and keeps gradients of any gamma in the range of float32.
    """
    return 2.0 ** min(max(frexp(step)[1], -1000), 1000)


def solve_bytes(problem: Problem) -> tuple[int, str]:
    """Return the bytes that a solve takes on the host, X in graph order, U and both Y, and what takes them.

    Where the problem does not keep its own X, that goes before the second Y comes.
    """
    return (
        4 if problem.keeps_X else 3
    ) * problem.X.nbytes, f"solving for X with shape {problem.shape} in {problem.X.dtype}"


# Paths, so that a backend and its libraries are imported only when they are chosen.
BACKENDS = {
    "numpy": ("frpcag.backends.numpy", "NumpyBackend"),
    "numba": ("frpcag.backends.numba.backend", "NumbaBackend"),
    "torch": ("frpcag.backends.torch.backend", "TorchBackend"),
    "dask": ("frpcag.dask", "DaskBackend"),
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
