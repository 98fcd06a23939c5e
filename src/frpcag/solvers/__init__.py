"""Solvers: a Problem goes in, a certified Solution comes out."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from frpcag.backends import Backend, is_tensor, select_backend
from frpcag.memory import require_memory
from frpcag.problem import Array, Problem, common_level
from frpcag.solvers.fista import fista
from frpcag.solvers.stopping import STOPS, Progress, Solution, Stop
from frpcag.solvers.tikhonov import tikhonov

__all__ = ["SOLVERS", "Progress", "Solution", "solve"]

SOLVERS: dict[str, Callable[..., Solution]] = {"fista": fista, "tikhonov": tikhonov}


def solve(
    problem: Problem,
    *,
    solver: str = "fista",
    tol: float = 1e-3,
    max_iter: int = 500,
    stop: str = "gap",
    backend: str | Backend = "auto",
    n_jobs: int | None = None,
    callback: Callable[[Progress], object] | None = None,
    U0: Array | None = None,
    restart: bool = True,
    step: str = "lanczos",
) -> Solution:
    """Solve the problem and say how close to the optimum the answer is.

    Parameters
    ----------
    problem : Problem
        Data, Laplacians, weights and loss.
    solver : {"fista", "tikhonov"}, default="fista"
        "tikhonov" is the closed-form filter for ``loss="l2"``.
    tol : float, default=1e-3
        Belongs to ``stop``.
    max_iter : int, default=500
        Limit of steps; reaching it warns with the gap reached.
    stop : {"gap", "change"}, default="gap"
        End on the relative duality gap, or on the relative squared change of Y as the paper does.
    backend : {"auto", "numpy", "numba", "torch", "dask"} or Backend, default="auto"
        Who does the arithmetic.
    n_jobs : int, optional
        Number of threads; all cores by default. The result does not depend on it.
    callback : callable, optional
        Called with a :class:`Progress` after every step; a true return value ends the run, which then
        still gives a valid, certified result. Ctrl-C does the same.
    U0 : ndarray of shape (n_samples, n_features), optional
        Warm start.
    restart : bool, default=True
        Reset the momentum when it points uphill; False and ``step="paper"`` give the paper's Algorithm 1.
    step : {"lanczos", "paper"}, default="lanczos"
        Step size from Lanczos estimates of the largest eigenvalues, or from the bound 2 of the paper.

    Returns
    -------
    Solution

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> from frpcag import Problem, solve
    >>> path = sp.csr_array(np.array([[1.0, -1, 0], [-1, 2, -1], [0, -1, 1]]))
    >>> X = np.array([[1.0, 2.0], [9.0, 2.0], [1.0, 2.0]])
    >>> solution = solve(Problem(X, path, None, gamma1=10.0, gamma2=0.0), tol=1e-6)
    >>> solution.U.round(3)
    array([[1.   , 2.   ],
           [1.025, 2.   ],
           [1.   , 2.   ]])
    >>> solution.gap <= 1e-6
    True
    """
    _check_choices(solver=solver, stop=stop, step=step, backend=backend, callback=callback)
    if not _is_number(tol) or tol < 0:
        raise ValueError(f"tol={tol!r} must be a finite number >= 0.")
    if not _is_number(max_iter) or int(max_iter) != max_iter or max_iter < 1:
        raise ValueError(f"max_iter={max_iter!r} must be an integer >= 1.")
    if U0 is not None and not is_tensor(U0):
        U0 = np.asarray(U0)
        if U0.shape != problem.X.shape or not np.isfinite(U0).all():
            raise ValueError(f"U0 has shape {U0.shape}; it must be finite and of the shape of X, {problem.X.shape}.")
    if isinstance(problem.X, np.ndarray):  # X in graph order, U and both Y
        require_memory(4 * problem.X.nbytes, f"solving for X with shape {problem.X.shape} in {problem.X.dtype}")
    whole = hasattr(problem, "transpose")  # row blocks are not
    level = common_level(problem) if whole else 0.0
    given = problem
    if level:
        problem = replace(given, X=given.X - level, mask=None)  # NaN in X says the same
        U0 = None if U0 is None else U0 - level
    # The kernels walk along rows: the longer dimension goes there.
    flip = whole and problem.X.shape[0] < problem.X.shape[1]
    chosen = select_backend(backend, n_jobs=n_jobs, X=problem.X) if isinstance(backend, str) else backend
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused below, in clear words
        solution = SOLVERS[solver](
            problem.transpose() if flip else problem,
            chosen,
            stop=Stop(stop, float(tol), int(max_iter), callback),
            restart=restart,
            step=step,
            U0=U0.T if flip and U0 is not None else U0,
        )
    if not np.isfinite([solution.objective, solution.gap]).all():
        raise ValueError(_out_of_range(given))
    U: Any = solution.U
    if flip:
        U = U.T.contiguous() if is_tensor(U) else np.ascontiguousarray(U.T)
    if level:
        U = U + level  # no rounding of what lies within a factor of two of the level
    solution.U = U
    if solution.status == "max_iter":
        message = (
            f"no convergence in max_iter={max_iter} steps: relative duality gap {solution.gap:.2g}, last relative "
            f"change {solution.change:.2g}, stop={stop!r} asks for tol={tol:g}; raise max_iter or tol."
        )
    elif solution.status == "interrupted":
        message = (
            f"interrupted after {solution.n_iter} steps; the result is valid, with a relative duality gap of "
            f"{solution.gap:.2g}."
        )
    else:
        return solution
    warnings.warn(message, ConvergenceWarning, stacklevel=2)
    return solution


def _check_choices(*, solver, stop, step, backend, callback) -> None:
    """Raise ValueError for words that are unknown, and for a backend or a callback that cannot be one."""
    words: tuple[tuple[str, Any, Any], ...] = (
        ("solver", solver, SOLVERS),
        ("stop", stop, STOPS),
        ("step", step, ("lanczos", "paper")),
    )
    for name, value, known in words:
        if not (isinstance(value, str) and value in known):
            raise ValueError(f"{name}={value!r} is unknown; choose one of {', '.join(map(repr, known))}.")
    if not (isinstance(backend, str) or hasattr(backend, "load")):
        raise ValueError(f"backend={backend!r} is unknown; pass 'auto', the name of a backend, or a Backend.")
    if callback is not None and not callable(callback):
        raise ValueError(f"callback={callback!r} must be None or a function of one argument, a Progress.")


def _is_number(value) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and bool(np.isfinite(float(value)))


def _out_of_range(problem) -> str:
    """Return what to say when sums over the problem have left the range of floating-point numbers."""
    X = problem.X
    size = ""
    if isinstance(X, np.ndarray):
        size = f", up to {float(np.nanmax(np.abs(X))):.3g} in {X.dtype},"
    return (
        f"the entries of X{size} and gamma1={problem.gamma1:.3g}, gamma2={problem.gamma2:.3g} are too large together: "
        "their products leave the range of the numbers. Divide X by its largest entry, with gammas times the same, or "
        "pass gamma='auto'; float64 reaches further than float32."
    )
