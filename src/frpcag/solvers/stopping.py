"""When to stop, what was seen on the way, and what comes out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil, log, nan
from typing import NamedTuple

import numpy as np

from frpcag.backends import StepScalars
from frpcag.problem import Array, Certificate

STOPS = ("gap", "change")


class Progress(NamedTuple):
    """What a callback is told after every step; ``gap`` and ``objective`` are those last computed."""

    n_iter: int
    max_iter: int
    change: float
    gap: float
    objective: float
    tol: float


@dataclass(eq=False)
class Solution:
    """The outcome of a solver.

    Attributes
    ----------
    U : ndarray of shape (n_samples, n_features)
        The clean part.
    n_iter : int
        Steps done.
    gap : float
        Relative duality gap at ``U``: the objective is within this share of the optimum.
    objective : float
        Value of Shahid et al. 2016, Eq. (1), at ``U``.
    change : float
        Relative squared change of ``Y`` in the last step.
    history : dict of str to ndarray
        ``n_iter``, ``objective``, ``gap`` and ``change`` at every step where the gap was computed.
    converged : bool
        Whether the stopping rule was met.
    status : {"converged", "max_iter", "stopped", "interrupted"}
        Why it ended: the rule, the step limit, the callback, or Ctrl-C.
    backend : str
        Name of the backend that did the work.
    """

    U: Array
    n_iter: int
    gap: float
    objective: float
    change: float
    history: dict[str, Array]
    converged: bool
    status: str
    backend: str


@dataclass
class Stop:
    """The stopping rule of one run.

    ``rule="gap"`` ends when the relative duality gap is at most ``tol``; ``rule="change"`` is the paper's,
    ``||Y_next - Y||^2 < tol ||Y||^2`` (Shahid et al. 2016, Algorithm 1).
    """

    rule: str
    tol: float
    max_iter: int
    callback: Callable[[Progress], object] | None = None
    check_every: int = 10
    history: dict[str, list[float]] = field(
        default_factory=lambda: {"n_iter": [], "objective": [], "gap": [], "change": []}
    )
    stopped: bool = False
    change: float = nan
    _next_check: int = 1

    def __call__(self, n_iter: int, scalars: StepScalars, certify: Callable[[], Certificate]) -> bool:
        """Say whether the rule is met after step ``n_iter``; the gap is computed only when it is due."""
        self.change = scalars.change / scalars.norm if scalars.norm > 0 else 0.0
        if self.rule == "gap":
            met = n_iter >= self._next_check and self.record(n_iter, certify()) <= self.tol
        else:
            met = self.change < self.tol
        if self.callback is not None:
            gap, objective = (self.history[key][-1] if self.history[key] else nan for key in ("gap", "objective"))
            told = Progress(n_iter, self.max_iter, self.change, gap, objective, self.tol)
            self.stopped = bool(self.callback(told)) and not met
        return met

    def steps_unseen(self, n_iter: int) -> int:
        """Return how many steps after ``n_iter`` may be taken before somebody wants to look; at least one."""
        if self.rule != "gap" or self.callback is not None:
            return 1
        return max(min(self._next_check, self.max_iter) - n_iter, 1)

    def record(self, n_iter: int, at: Certificate) -> float:
        """Note the certificate of step ``n_iter``, plan the next one, and return the gap."""
        seen = {"n_iter": n_iter, "objective": at.objective, "gap": at.gap, "change": self.change}
        for key, value in seen.items():
            self.history[key].append(value)
        self._next_check = n_iter + self._steps_left(at.gap)
        return at.gap

    def _steps_left(self, gap: float) -> int:
        # A certificate costs about one step. The gap falls roughly geometrically, so the last two say when
        # the next one is worth it.
        gaps, steps = self.history["gap"], self.history["n_iter"]
        if len(gaps) < 2 or not gaps[-2] > gap > 0 or self.tol <= 0 or gap <= self.tol:
            return self.check_every
        rate = log(gaps[-2] / gap) / (steps[-1] - steps[-2])
        return min(max(ceil(log(gap / self.tol) / rate), 2), self.check_every)

    def finish(
        self, U_certificate: Certificate | None, *, U: Array, n_iter: int, status: str, backend: str
    ) -> Solution:
        """Return the solution, certified at its last step."""
        if U_certificate is not None:
            self.record(n_iter, U_certificate)
        return Solution(
            U=U,
            n_iter=n_iter,
            gap=self.history["gap"][-1],
            objective=self.history["objective"][-1],
            change=self.change,
            history={key: np.asarray(values) for key, values in self.history.items()},
            converged=status == "converged",
            status=status,
            backend=backend,
        )
