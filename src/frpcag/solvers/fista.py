"""FISTA with gradient restart, the loop of Shahid et al. 2016, Algorithm 1, its step size and its momentum."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Any

from frpcag.backends import Backend, StepScalars
from frpcag.linalg.lanczos import largest_eigenvalue
from frpcag.problem import Array, Problem
from frpcag.solvers.stopping import Solution, Stop

BOUNDS = ("lanczos", "paper")


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
        What computes the steps.
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
    t, n_iter, memory = backend.resume(state, max_iter=stop.max_iter)
    momentum = Momentum(t, restart)
    status = "max_iter"
    try:
        if memory is not None and stop.recall(memory, n_iter, lambda: backend.gap(state)):
            status = "converged"
        while status != "converged" and n_iter < stop.max_iter:
            n_steps = min(stop.steps_unseen(n_iter), backend.steps_at_once(state))
            for done, last in _advance(backend, state, momentum, stop, n_steps):
                n_iter, scalars = n_iter + done, last
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
    if not certified:
        stop.record(n_iter, backend.gap(state))
    slope = backend.slope(state) if stop.rounding_shows() else None
    return stop.finish(U=backend.unload(state), n_iter=n_iter, status=status, backend=backend.name, slope=slope)


def _advance(
    backend: Backend, state: Any, momentum: Momentum, stop: Stop, n_steps: int
) -> Iterator[tuple[int, StepScalars]]:
    """Do several steps; yield how many are done, each time some are, and the scalars of the last."""
    rough = stop.rule == "gap"  # the change of the iterates would be that of their rounding
    done = backend.run_on_device(state, n_steps, t=momentum.t, restart=momentum.restart, rough=rough)
    if done is not None:
        scalars, momentum.t = done
        yield n_steps, scalars
        backend.keep(state, t=momentum.t, memory=stop.memory(scalars))
        return
    for _ in range(n_steps):
        scalars = backend.step(state, momentum=momentum.weight)
        yield 1, scalars
        momentum.update(scalars.restart)
        backend.keep(state, t=momentum.t, memory=stop.memory(scalars))


def lipschitz(problem: Problem, *, bound: str = "lanczos") -> float:
    """Return ``beta' = 2 gamma1 lmax(L1) + 2 gamma2 lmax(L2)``, a Lipschitz constant of the gradient.

    ``bound="lanczos"`` takes the largest eigenvalues that the problem states, and estimates others from above by a few
    Lanczos steps; ``bound="paper"`` takes 2, which holds for normalised Laplacians (Shahid et al. 2016, Sec. III).
    """
    terms = ((problem.gamma1, problem.L1, problem.lmax1), (problem.gamma2, problem.L2, problem.lmax2))
    beta = 0.0
    for gamma, L, lmax in terms:
        if L is not None and gamma > 0:
            if bound == "paper":
                lmax = 2.0
            beta += 2 * gamma * (largest_eigenvalue(L) if lmax is None else lmax)
    return beta


@dataclass
class Momentum:
    """The sequence ``t`` of FISTA (Shahid et al. 2016, Algorithm 1).

    Parameters
    ----------
    t : float, default=1.0
        Where the sequence stands.
    restart : bool, default=True
        Begin again at 1 when the momentum points uphill (O'Donoghue and Candes 2015). The paper does not.

    Examples
    --------
    >>> momentum = Momentum()
    >>> momentum.update(-1.0)
    >>> round(momentum.weight, 3)
    0.282
    """

    t: float = 1.0
    restart: bool = True

    @property
    def weight(self) -> float:
        """The share of the last move that the next step adds."""
        return (self.t - 1) / self._next

    def update(self, uphill: float) -> None:
        """Move on by one step; ``uphill`` is ``<Y - U_next, U_next - U>`` of it."""
        self.t = 1.0 if self.restart and uphill > 0 else self._next

    @property
    def _next(self) -> float:
        return (1 + sqrt(1 + 4 * self.t * self.t)) / 2
