"""When to stop, what was seen on the way, and what comes out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil, log, nan
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from frpcag.backends import StepScalars
from frpcag.problem import Array, Certificate
from frpcag.runtime.warn import warn_user

STOPS = ("gap", "change")

# Far from the target, this share of the steps predicted to be left is taken before the next certificate; at most so
# many.
_FAR, _MOST = 0.7, 30


class CertificateWarning(ConvergenceWarning):
    """The solver met its tolerance, but rounding the result to its dtype leaves a larger gap, the one reported.

    Parameters
    ----------
    message : str
        The gap, and what to change.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)


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
        Relative duality gap at ``U``: the objective is within this share of the optimum. It is never smaller than the
        true one, whatever was rounded on the way; 1 where nothing can be proved.
    objective : float
        Value of Shahid et al. 2016, Eq. (1), at ``U``.
    change : float
        Relative squared change of ``Y`` in the last step.
    history : dict of str to ndarray
        ``n_iter``, ``objective``, ``gap`` and ``change`` at every step where the gap was computed.
    converged : bool
        Whether the stopping rule was met.
    status : {"converged", "rounded", "max_iter", "stopped", "interrupted"}
        Why it ended: the rule; the rule, but rounding ``U`` to its dtype has left a larger gap; the step limit; the
        callback; or Ctrl-C.
    backend : str
        Name of the backend that computed it.
    certificate : Certificate
        What is proved about ``U``, in parts.
    slope : ndarray of shape (n_samples, n_features) or None
        Gradient of the graph terms at ``U``, where rounding ``U`` to other units would show without it.
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
    certificate: Certificate
    slope: Array | None = None

    def settle(self, at: Certificate, *, stop: str, tol: float) -> None:
        """Take over what is proved after ``U`` was rounded; warn where that no longer meets the rule."""
        self.certificate, self.gap, self.objective, self.slope = at, at.gap, at.objective, None
        for name in ("gap", "objective"):
            self.history[name] = np.append(self.history[name][:-1], getattr(self, name))
        if stop == "gap" and self.converged and self.gap > tol:
            self.converged, self.status = False, "rounded"
            warn_user(
                f"rounding the result to the dtype and units of X leaves a relative duality gap of {self.gap:.3g}, "
                f"tol={tol:g}; pass float64, or data without their large common level; multiply tiny data.",
                CertificateWarning,
            )


class SolveInterrupted(KeyboardInterrupt):
    """Ctrl-C ended a solve; ``solution`` is the valid, certified result so far.

    Parameters
    ----------
    solution : Solution
        With ``status="interrupted"``.
    """

    def __init__(self, solution: Solution) -> None:
        super().__init__(
            f"interrupted after {solution.n_iter} steps, at a relative duality gap of {solution.gap:.2g}; the result "
            "so far is valid."
        )
        self.solution = solution


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
    watch: Callable[[Progress], object] | None = None  # told where the run looks anyway; it makes no stop of its own
    in_user_units: Callable[[Certificate], Certificate] = lambda at: at
    rounding_allowance: Callable[[Certificate], float] = lambda at: (
        0.0
    )  # what rounding U afterwards will add to the excess
    check_every: int = 10
    history: dict[str, list[float]] = field(
        default_factory=lambda: {"n_iter": [], "objective": [], "gap": [], "change": []}
    )
    stopped: bool = False
    change: float = nan
    last: Certificate = field(default_factory=lambda: Certificate(nan, nan))
    _next_check: int = 1

    def __call__(self, n_iter: int, scalars: StepScalars, certify: Callable[[], Certificate]) -> bool:
        """Say whether the rule is met after step ``n_iter``; the gap is computed only when it is due."""
        self.change = scalars.change / scalars.norm if scalars.norm > 0 else 0.0
        met = self._is_met(n_iter, certify)
        gap, objective = (self.history[key][-1] if self.history[key] else nan for key in ("gap", "objective"))
        told = Progress(n_iter, self.max_iter, self.change, gap, objective, self.tol)
        if self.watch is not None:
            self.watch(told)
        if self.callback is not None:
            self.stopped = bool(self.callback(told)) and not met
        return met

    def _is_met(self, n_iter: int, certify: Callable[[], Certificate]) -> bool:
        if self.rule == "gap":
            if n_iter == 1 and self.change >= self.tol:  # the start is not an optimum
                self._next_check = self.check_every
            return n_iter >= self._next_check and self.record(n_iter, certify()) <= self._target()
        return self.change < self.tol

    def memory(self, scalars: StepScalars) -> dict[str, Any]:
        """Return what a run that goes on from this step must know to end where this one would, as JSON takes it."""
        change = scalars.change / scalars.norm if scalars.norm > 0 else 0.0
        return {"history": self.history, "next_check": self._next_check, "change": change}

    def recall(self, memory: dict[str, Any], n_iter: int, certify: Callable[[], Certificate]) -> bool:
        """Take over the `memory` of a run that was saved after step ``n_iter``, and say whether it would end there."""
        self.history, self._next_check, self.change = memory["history"], memory["next_check"], memory["change"]
        return self._is_met(n_iter, certify)

    def steps_unseen(self, n_iter: int) -> int:
        """Return how many steps after ``n_iter`` may be taken before somebody wants to look; at least one."""
        if self.rule != "gap" or self.callback is not None:
            return 1
        return max(min(self._next_check, self.max_iter) - n_iter, 1)

    def record(self, n_iter: int, at: Certificate) -> float:
        """Note the certificate of step ``n_iter``, plan the next one, and return the gap."""
        seen = {"n_iter": n_iter, "objective": self.in_user_units(at).objective, "gap": at.gap, "change": self.change}
        for key, value in seen.items():
            self.history[key].append(value)
        self.last = at
        self._next_check = n_iter + self._steps_left(at.gap)
        return at.gap

    def _target(self) -> float:
        """Return the tolerance less what rounding is going to take of it, half of it at most."""
        whole = self.last.objective
        taken = min(self.rounding_allowance(self.last), self.tol / 2 * whole)
        return self.tol - taken / whole if whole > 0 else self.tol

    def _steps_left(self, gap: float) -> int:
        # A certificate costs one to two steps. The gap falls roughly geometrically once it falls, so the last two say
        # when the next one is worth it: far from the target not all the way, since the rate may grow.
        gaps, steps, target = self.history["gap"], self.history["n_iter"], self._target()
        if steps[-1] < self.check_every:
            return self.check_every - int(steps[-1])
        recent = len(gaps) > 1 and self.check_every <= steps[-2] < steps[-1]
        if not recent or not gaps[-2] > gap > 0 or target <= 0 or gap <= target:
            return self.check_every
        left = ceil(log(gap / target) / (log(gaps[-2] / gap) / (steps[-1] - steps[-2])))
        if left > self.check_every:
            left = max(self.check_every, int(_FAR * left))
        return min(max(left, 2), _MOST)

    def rounding_shows(self) -> bool:
        """Say whether rounding will move the last certificate visibly."""
        at = self.last
        return self.rounding_allowance(at) > 0.01 * max(at.excess, self.tol * at.objective)

    def finish(self, *, U: Array, n_iter: int, status: str, backend: str, slope: Array | None = None) -> Solution:
        """Return the solution, certified at its last step."""
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
            certificate=self.last,
            slope=slope,
        )
