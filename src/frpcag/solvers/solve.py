"""The one entry point to solvers: a Problem in, a certified Solution out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from frpcag.backends import Backend, select_backend
from frpcag.problem import Array, Certificate, Problem, indefinite
from frpcag.runtime.warn import warn_user
from frpcag.solvers.conditioning import condition, in_units_of, restore, rounded, rounding_allowance, rows_of
from frpcag.solvers.fista import fista
from frpcag.solvers.options import SolveOptions
from frpcag.solvers.stopping import Progress, Solution, SolveInterrupted, Stop

# A relative squared change below this is rounding.
_STILL = 1e-12


def solve(
    problem: Problem,
    *,
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
    tol : float, default=1e-3
        Tolerance of ``stop``.
    max_iter : int, default=500
        Limit of steps; reaching it warns with the gap reached.
    stop : {"gap", "change"}, default="gap"
        End on the relative duality gap, or on the relative squared change of Y as the paper does.
    backend : {"auto", "numpy", "numba", "torch", "dask"} or Backend, default="auto"
        What computes the steps.
    n_jobs : int, optional
        Number of threads; all cores by default. The result does not depend on it.
    callback : callable, optional
        Called with a :class:`Progress` after every step; a true return value ends the run, which then
        still gives a valid, certified result.
    U0 : ndarray of shape (n_samples, n_features), optional
        Warm start.
    restart : bool, default=True
        Reset the momentum when it points uphill; False and ``step="paper"`` give the paper's Algorithm 1.
    step : {"lanczos", "paper"}, default="lanczos"
        Step size from Lanczos estimates of the largest eigenvalues, or from the bound 2 of the paper.

    Returns
    -------
    Solution

    Raises
    ------
    SolveInterrupted
        On Ctrl-C: a `KeyboardInterrupt` whose ``solution`` is the valid, certified result so far.

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
    return run(problem, SolveOptions(tol, max_iter, stop, backend, n_jobs, callback, restart, step), U0=U0)


def run(
    problem: Problem,
    options: SolveOptions,
    *,
    U0: Array | None = None,
    watch: Callable[[Progress], object] | None = None,
    level: float | None = None,
    keep_X: bool = True,
) -> Solution:
    """Do what `solve` does.

    Parameters
    ----------
    problem, options, U0
        As in `solve`.
    watch : callable, optional
        Told a `Progress` whenever the run looks at its arrays anyway, so that it costs no pass over them.
    level : float, optional
        For callers who will bring ``U`` to other units: the sum of the absolute numbers that they will add to its
        entries, in its units. The run then goes on until ``tol`` has room for their rounding.
    keep_X : bool, default=True
        False lets a backend that copies the data drop ``problem.X``, which is one array less in memory; the problem
        then reads NaN there.
    """
    U0 = None if U0 is None else problem.start(U0)
    if refusal := indefinite(problem):
        raise ValueError(refusal)
    given = problem
    with np.errstate(over="ignore", invalid="ignore"):
        try:
            problem, units = condition(given)
        except ValueError as error:  # the entries were finite; without their level, or in other units, they are not
            raise ValueError(_out_of_range(given)) from error
    if units is not None and U0 is not None:
        U0 = rows_of(given).start(U0, units)

    def in_user_units(at: Certificate) -> Certificate:
        return at if units is None else in_units_of(at, given, units)

    # The kernels walk along rows: the longer dimension goes there.
    flip = problem.can_turn and problem.shape[0] < problem.shape[1]
    posed_as = problem.transpose() if flip else problem
    if not keep_X and units is None:  # in other units the data are needed for the way back
        for each in (problem, posed_as):
            object.__setattr__(each, "keeps_X", False)
        if flip:  # the transposed problem holds them now
            problem.drop_X()
    backend = options.backend
    if isinstance(backend, str):
        backend = select_backend(backend, n_jobs=options.n_jobs, X=problem.X)
    rule, tol = options.stop, float(options.tol)
    allowance = rounding_allowance(problem, units, level)

    def steps() -> Solution:
        return fista(
            posed_as,
            backend,
            stop=Stop(rule, tol, int(options.max_iter), options.callback, watch, in_user_units, allowance),
            restart=options.restart,
            step=options.step,
            U0=U0.T if flip and U0 is not None else U0,
        )

    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused below, in clear words
        solution = backend.whole(posed_as, steps)
    if not np.isfinite(solution.objective):
        raise ValueError(_out_of_range(given))
    if flip:
        solution.U = problem.turn(solution.U)
        solution.slope = None if solution.slope is None else problem.turn(solution.slope)
    if units is not None:
        with np.errstate(over="ignore", invalid="ignore"):
            solution.U, moves = restore(given, problem, solution.U, solution.slope, units)
        if not np.isfinite(moves.data):  # entries at the end of the range, brought back to their units
            raise ValueError(_out_of_range(given))
        solution.settle(
            in_user_units(rounded(solution.certificate, moves, problem, solution.U, units)), stop=rule, tol=tol
        )
    if solution.status == "interrupted":
        raise SolveInterrupted(solution)
    if solution.status == "max_iter":
        warn_user(_not_reached(solution, options), ConvergenceWarning)
    return solution


def _not_reached(solution: Solution, options: SolveOptions) -> str:
    """Return what to say of a run that the step limit ended: what is proved all the same, and what helps."""
    start = (
        f"no convergence in max_iter={options.max_iter} steps: relative duality gap {solution.gap:.2g}, last relative "
        f"change {solution.change:.2g}, stop={options.stop!r} asks for tol={options.tol:g}. "
    )
    if not solution.gap < 1 and solution.change < _STILL:
        return start + (
            "The steps change nothing any more, but the proof fails: with missing entries its bound can be too loose "
            "under the normalised Laplacian. Pass laplacian='combinatorial', or stop='change' to do without a proof."
        )
    if not solution.gap < 1:
        return start + "Nothing is proved about the result yet; raise max_iter, or pass smaller gammas."
    means = f"The objective is proved to be within {100 * solution.gap:.2g} % of the smallest possible. "
    steps = solution.history["gap"]
    falls = len(steps) < 5 or steps[-1] < 0.9 * steps[len(steps) // 2]
    if falls:
        return (
            start
            + means
            + f"The gap still falls: raise max_iter to {4 * options.max_iter}, or tol if that is near enough."
        )
    return start + means + "The gap falls slowly: pass smaller gammas, scale=True, or tol if that is near enough."


def _out_of_range(problem: Problem) -> str:
    """Return what to say when sums over the problem have left the range of floating-point numbers."""
    largest = rows_of(problem).largest(problem) if problem.keeps_X else None
    entries = "the entries of X" if largest is None else f"the entries of X, up to {largest:.3g},"
    return (
        f"{entries} and gamma1={problem.gamma1:.3g}, gamma2={problem.gamma2:.3g} are too large together: their "
        "products leave the range of the numbers. Divide X by its largest entry, with gammas times the same, or "
        "pass gamma='auto'; float64 reaches further than float32."
    )
