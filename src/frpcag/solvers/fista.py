"""FISTA with gradient restart: the loop of Shahid et al. 2016, Algorithm 1; no array arithmetic here."""

from __future__ import annotations

from math import sqrt

from frpcag.backends import Backend
from frpcag.problem import Array, Problem, lipschitz
from frpcag.solvers.stopping import Solution, Stop


def fista(
    problem: Problem,
    backend: Backend,
    *,
    stop: Stop,
    restart: bool = True,
    step: str = "lanczos",
    U0: Array | None = None,
) -> Solution:
    """Solve by accelerated proximal gradient steps.

    Parameters
    ----------
    problem : Problem
        What to solve.
    backend : Backend
        Who does the arithmetic.
    stop : Stop
        When to end.
    restart : bool, default=True
        Reset the momentum when it points uphill (O'Donoghue and Candes 2015). The paper does not.
    step : {"lanczos", "paper"}, default="lanczos"
        How the largest eigenvalues in the step size are bounded.
    U0 : ndarray, optional
        Warm start.

    Returns
    -------
    Solution
        Valid and certified also when the callback or Ctrl-C ended the run early.

    Notes
    -----
    A step costs ``O((nnz(L1) / n + nnz(L2) / p) n p)``. The restart departs from the paper: without it the gap
    is still 5-10 % where the paper stops.
    """
    beta = lipschitz(problem, bound=step)
    state = backend.load(problem, step=1 / beta if beta > 0 else 1.0, U0=U0)
    t, n_iter = getattr(state, "start", (1.0, 0))  # a state read from a checkpoint goes on where it was saved
    status = "max_iter"
    try:
        while n_iter < stop.max_iter:
            if hasattr(backend, "advance"):
                n_steps = stop.steps_unseen(n_iter)
                scalars, t = backend.advance(state, n_steps, t=t, restart=restart)
                n_iter += n_steps
            else:
                t_next = (1 + sqrt(1 + 4 * t * t)) / 2
                scalars = backend.step(state, momentum=(t - 1) / t_next)
                t = 1.0 if restart and scalars.restart > 0 else t_next
                n_iter += 1
            if stop(n_iter, scalars, lambda: backend.gap(state)):
                status = "converged"
                break
            if stop.stopped:
                status = "stopped"
                break
    except KeyboardInterrupt:
        # Every U is feasible, so what is there now is a valid answer with its own certificate.
        status = "interrupted"
    certified = stop.history["n_iter"] and stop.history["n_iter"][-1] == n_iter and status != "interrupted"
    last = None if certified else backend.gap(state)
    return stop.finish(last, U=backend.unload(state), n_iter=n_iter, status=status, backend=backend.name)
