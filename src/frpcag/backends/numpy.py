"""The reference backend: one solver step in the words of ``problem.py``, nothing clever."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from frpcag.backends.base import Backend, StepScalars, solve_bytes
from frpcag.problem import Array, Certificate, Problem, certified, gradient, prox, sums_at
from frpcag.runtime.memory import require_memory
from frpcag.runtime.threads import count_threads


@dataclass
class NumpyState:
    """Iterates of the solver."""

    problem: Problem
    lam: float  # step size, the paper's lambda
    U: Array
    Y: Array


class NumpyBackend(Backend):
    """Plain NumPy and SciPy."""

    name = "numpy"

    def __init__(self, *, n_jobs: int | None = None) -> None:
        self.n_jobs = count_threads(n_jobs)

    def load(self, problem: Problem, *, step: float, U0: Array | None = None) -> NumpyState:
        """Return the state at ``U = Y = U0``; missing entries start at zero."""
        require_memory(*solve_bytes(problem))
        U = np.nan_to_num(problem.X, nan=0.0) if U0 is None else np.array(U0, dtype=problem.X.dtype)
        return NumpyState(problem, step, U, U.copy())

    def step(self, state: NumpyState, *, momentum: float) -> StepScalars:
        """Do one step of Shahid et al. 2016, Algorithm 1."""
        Y, U_old = state.Y, state.U
        # In float64: gammas beyond the range of float32 give gradients beyond it, but not steps.
        move = state.lam * gradient(state.problem, Y.astype(np.float64))
        U = prox(state.problem, Y - move.astype(Y.dtype), state.lam)
        Y_next = U + U.dtype.type(momentum) * (U - U_old)
        state.U, state.Y = U, Y_next
        return StepScalars(
            change=float(np.sum(np.square(Y_next - Y, dtype=np.float64))),
            norm=float(np.sum(np.square(Y, dtype=np.float64))),
            restart=float(np.sum((Y - U) * (U - U_old), dtype=np.float64)),
        )

    def gap(self, state: NumpyState) -> Certificate:
        """Return what is proved about ``U``."""
        return certified(state.problem, sums_at(state.problem, state.U))

    def slope(self, state: NumpyState) -> Array:
        """Return the gradient of the graph terms at ``U``."""
        return gradient(state.problem, state.U.astype(np.float64)).astype(state.U.dtype)

    def unload(self, state: NumpyState) -> Array:
        """Return ``U``."""
        return state.U
