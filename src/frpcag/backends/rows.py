"""Rows of a problem of arrays or tensors: a sample of them, and all of them in other units."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from frpcag.backends.units import NOTHING, Moves, Terms, Units, frame_rows, levels_of, restore_rows
from frpcag.problem import Array
from frpcag.runtime.arrays import is_tensor, library_of, row_blocks

# Entries looked at; at least so many rows.
_SAMPLE = 200_000
_SAMPLE_ROWS = 25
# Entries of a tensor worked on at a time; some twenty float64 copies of them.
_TENSOR_BLOCK = 1 << 22


def sample(problem: Any) -> tuple[Array, Array, Array]:
    """Return some rows, evenly spaced, in float64, with their part of the first null vector, and the second."""
    some = slice(None, None, sampling(*problem.shape))
    left, right = null_vectors(problem)
    return to_host(problem.X[some]), left[some], right


def sampling(n: int, p: int) -> int:
    """Return the step between rows of a sample."""
    return max(1, n // max(_SAMPLE_ROWS, _SAMPLE // p))


def null_vectors(problem: Any) -> tuple[Array, Array]:
    """Return the null vectors of the terms that pull, ones for the others."""
    terms = ((problem.gamma1, problem.null1), (problem.gamma2, problem.null2))
    pairs = zip(terms, problem.shape, strict=True)
    left, right = (np.ones(n) if null is None or gamma == 0 else to_host(null) for (gamma, null), n in pairs)
    return left, right


def largest(problem: Any) -> float:
    """Return the largest absolute entry."""
    xp = library_of(problem.X)
    return max(float(xp.nan_to_num(abs(problem.X[rows]), nan=0.0).max()) for rows in _blocks(problem.X))


def left(problem: Any, right: Array, along: str, ratio: float) -> Array:
    """Return the left factor of a level: of each row, or along the null vector."""
    if along == "none":
        return np.zeros(problem.shape[0])
    if along == "rows":
        return np.concatenate([levels_of((to_host(problem.X[rows]) / right).T, ratio) for rows in _blocks(problem.X)])
    return null_vectors(problem)[0]


def framed(problem: Any, units: Units, **numbers: float) -> Any:
    """Return the problem in other units, with other gammas."""
    xp = library_of(problem.X)
    X = xp.empty_like(problem.X)
    for rows in _blocks(X):
        X[rows] = frame_rows(problem.X[rows], _part(units, rows, X), xp)
    return replace(problem, X=X, mask=None, **numbers)  # NaN in X says the same


def start(U0: Any, units: Units) -> Any:
    """Return a warm start in other units."""
    return frame_rows(U0, _part(units, slice(None), U0), library_of(U0))


def restored(problem: Any, inner: Any, U: Any, V: Any, units: Units) -> tuple[Any, Moves]:
    """Return the clean part in the units of the problem, in place, and what rounding has moved."""
    return restore_in_place(problem.X, inner.X, U, V, units, inner)


def restore_in_place(
    X: Any,
    inner: Any,
    U: Any,
    V: Any,
    units: Units,
    problem: Any,
    *,
    out: Any = None,
    run: Callable[..., list] | None = None,
) -> tuple[Any, Moves]:
    """Bring the clean part ``U`` of ``problem`` from the units of ``inner`` to those of ``X``; see `restore_rows`.

    An array ``out`` takes the result; without it, ``U`` does. ``run`` maps over blocks of rows in threads, as
    `frpcag.runtime.threads.block_pool` gives it.
    """
    xp, out = library_of(U), U if out is None else out
    reach1, reach2 = problem.reaches

    def restore_block(rows: slice) -> Moves:
        terms = Terms(reach1[rows], reach2, problem.loss, problem.huber_delta)
        given = X[rows].toarray() if hasattr(X, "toarray") else X[rows]
        slope = None if V is None else V[rows]
        out[rows], moved = restore_rows(given, inner[rows], U[rows], slope, _part(units, rows, U), terms, xp)
        return moved

    blocks = _blocks(U)
    parts = [restore_block(rows) for rows in blocks] if run is None or is_tensor(U) else run(restore_block, blocks)
    return out, sum(parts, NOTHING)  # in the order of the blocks, whatever the threads did


def to_host(A: Any) -> Array:
    """Return an array or a tensor as a float64 array on the host."""
    return A.double().cpu().numpy() if is_tensor(A) else np.asarray(A, dtype=np.float64)


def _part(units: Units, rows: slice, like: Any) -> Units:
    left = units.left[rows]
    if not is_tensor(like):
        return units._replace(left=left)
    xp = library_of(like)
    left, right = (xp.as_tensor(v, dtype=xp.float64, device=like.device) for v in (left, units.right))
    unit = units.unit if np.ndim(units.unit) == 0 else xp.as_tensor(units.unit, dtype=xp.float64, device=like.device)
    return Units(left, right, unit, units.blur)


def _blocks(X: Any) -> list[slice]:
    return row_blocks(tuple(X.shape), _TENSOR_BLOCK) if is_tensor(X) else row_blocks(X.shape)
