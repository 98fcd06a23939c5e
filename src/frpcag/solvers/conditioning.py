"""The problem in units that cost no digits: levels that no term sees are taken off, and the data are of size one.

`solve` works on the problem that `condition` returns; `restore` brings its solution back, with what that has moved.
How rows are reached depends on where they live: in arrays and tensors of one machine, or in row blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from math import frexp, sqrt
from types import ModuleType
from typing import Any

import numpy as np

from frpcag.backends.units import Moves, Units, graph_terms, levels_of
from frpcag.losses import LOSSES
from frpcag.problem import EPS, TINY, Array, Certificate, Problem

# Typical sizes between these need no other unit: squares of their roundings stay in the range of float32.
_PLAIN = (2.0**-20, 2.0**20)
# Share of the objective that rounding may hide before graph terms are computed again.
_LOOSE = 1e-4
# Largest entry, as a power of two, in units that are not those of the data.
_LARGEST = {"float32": 90, "float64": 900}


def condition(problem: Any) -> tuple[Any, Units | None]:
    """Return the problem to solve, and its units; None where the problem is good as it is.

    A level along the null vectors of the Laplacians is seen by no graph term, so data without it have the solution
    without it: one for all entries; without a feature graph one for each column; without a sample graph one for each
    row. It is taken off where the digits that it costs would show. Data times a constant have the solution times that
    constant, for gammas divided by it, or left as they are (squares); a power of two rounds nothing.
    """
    rows = rows_of(problem)
    dtype = str(problem.X.dtype).removeprefix("torch.")
    ratio = float(np.sqrt(1e-5 / np.finfo(dtype).eps))
    along = _unseen(problem)
    some, left, right = rows.sample(problem)
    level = _level(some / left[:, None] / right, along, ratio)
    unit = _unit(some - level * left[:, None] * right, problem, rows, _LARGEST[dtype])
    if unit == 1 and not level.any():
        return problem, None
    # Products with a null vector are rounded; a constant needs none.
    blur = 0.0 if (left == 1).all() and (right == 1).all() else 2 * EPS
    if along != "rows":
        right = right * level.ravel()
    units = Units(rows.left(problem, right, along, ratio), right, unit, blur)
    numbers = {}
    if LOSSES[problem.loss].DEGREE == 1:
        numbers = {name: getattr(problem, name) * unit for name in ("gamma1", "gamma2")}
        numbers["huber_delta"] = problem.huber_delta / unit
    return rows.framed(problem, units, **numbers), units


def restore(problem: Any, inner: Any, U: Any, V: Any, units: Units) -> tuple[Any, Moves]:
    """Return the solution of ``problem`` from that of ``inner``, and what rounding has moved; ``U`` is overwritten."""
    return rows_of(problem).restored(problem, inner, U, V, units)


def in_units_of(at: Certificate, problem: Any, units: Units) -> Certificate:
    """Return a certificate of the conditioned problem as one of the problem."""
    slope = units.unit ** (LOSSES[problem.loss].DEGREE - 1)
    factor = slope * units.unit
    factors = (factor, factor, factor, factor, slope, slope, units.unit)
    there = Certificate._make(number * unit for number, unit in zip(at, factors, strict=True))
    return there._replace(excess=there.excess + 4 * TINY) if at.excess > 0 else there  # numbers may underflow


def rounded(at: Certificate, moves: Moves, problem: Any, U: Any, units: Units) -> Certificate:
    """Return what is proved where both the data and the point of a certificate have been rounded since.

    ``U`` is the point rounded, in the outer units. Where bounds of its graph terms are loose, arrays of the host have
    them computed.
    """
    if np.isnan(moves.cross):  # the square root of a graph term is a seminorm
        known, blur = 0.0, 2 * sqrt(max(at.smooth + at.smooth_error, 0.0)) * sqrt(moves.shift) + moves.shift
        grown = blur
    else:
        known, blur = moves.cross + moves.shift / 2, at.gradient_error * moves.walk + moves.shift / 2
        grown = known + blur
    smooth_error = at.smooth_error + blur
    if type(problem) is Problem and smooth_error > _LOOSE * (moves.data + max(at.smooth, 0.0)):
        terms = (problem.L1, problem.gamma1), (problem.L2, problem.gamma2)
        smooth, off = graph_terms(U, units, terms, problem.reaches)
        if off < smooth_error:
            known, smooth_error = smooth - at.smooth, off
            grown = known + at.smooth_error + off
    excess = at.excess + (moves.data - at.data) + grown + at.dual_scale * moves.drift
    if moves.data != at.data:
        excess += 16 * EPS * (moves.data + at.data)
    return at._replace(data=moves.data, smooth=at.smooth + known, excess=excess, smooth_error=smooth_error)


def rounding_allowance(inner: Any, units: Units | None, level: float | None) -> Callable[[Certificate], float]:
    """Return what tells how much rounding the solution to the units of the data will add to a certificate's excess.

    A forecast, from the sizes of what will be rounded: a run that leaves room for it meets its tolerance afterwards.
    """
    added = 0.0 if level is None else level
    if units is not None and isinstance(units.left, np.ndarray):
        added = (added + float(np.abs(units.left).sum() * np.abs(units.right).sum())) / units.unit
    if level is None and not added:
        return lambda at: 0.0
    eps = float(np.finfo(str(inner.X.dtype).removeprefix("torch.")).eps)
    (n, p), (stiffness, _) = inner.shape, inner.stiffness

    def allowance(at: Certificate) -> float:
        slope = 1 + at.dual_scale + 2 * np.sqrt(max(at.smooth, 0.0) * stiffness / (2 * n * p))
        return float(eps / 2 * (added + at.size) * slope)

    return allowance


def rows_of(problem: Any) -> ModuleType:
    """Return the module that reaches the rows of a problem."""
    return import_module("frpcag.backends.rows" if problem.can_turn else "frpcag.dask.problem_rows")


def _unseen(problem: Any) -> str:
    """Return what has a level of its own that no term sees: "all" entries, "columns", "rows", or "none"."""
    terms = ((problem.gamma1, problem.L1, problem.level1), (problem.gamma2, problem.L2, problem.level2))
    pulls = [gamma > 0 and L is not None for gamma, L, _ in terms]
    if not any(pulls) or any(pull and level != "free" for pull, (_, _, level) in zip(pulls, terms, strict=True)):
        return "none"
    return "all" if all(pulls) else "columns" if pulls[0] else "rows"


def _level(Z: Array, along: str, ratio: float) -> Array:
    """Return the levels of a sample in units of the null vectors, in its shape or one that broadcasts to it."""
    if along == "columns":
        return levels_of(Z, ratio)[None, :]
    if along == "rows":
        return levels_of(Z.T, ratio)[:, None]
    return levels_of(Z.reshape(-1, 1), ratio) if along == "all" else np.zeros(1)


def _unit(some: Array, problem: Any, rows: ModuleType, largest: int) -> float:
    """Return the power of two that brings the typical entry to one, 1 where it is near it."""
    sizes = np.abs(some[~np.isnan(some)])
    typical = float(np.median(sizes[sizes > 0])) if sizes.any() else 1.0
    if _PLAIN[0] <= typical <= _PLAIN[1]:
        return 1.0
    # 2**1024 is no number, though entries come that near to it.
    unit = 2.0 ** min(max(frexp(typical)[1], frexp(rows.largest(problem))[1] - largest), 1023)
    numbers = (problem.gamma1 * unit, problem.gamma2 * unit, problem.huber_delta / unit)
    possible = LOSSES[problem.loss].DEGREE == 2 or (np.isfinite(numbers).all() and numbers[2] > 0)
    return unit if possible else 1.0
