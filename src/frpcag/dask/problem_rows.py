"""Rows of a problem in row blocks: the functions of `frpcag.backends.rows`, each block where it lives."""

from __future__ import annotations

from dataclasses import replace
from operator import getitem
from typing import Any

import numpy as np

from frpcag.backends.rows import sampling
from frpcag.backends.units import Moves, Terms, Units, frame_rows, levels_of, restore_rows
from frpcag.dask import block_tasks
from frpcag.dask.block_problem import BlockProblem, RowBlocks
from frpcag.dask.row_blocks import LocalGraph
from frpcag.dask.tasks import Maximum, tree_sum
from frpcag.problem import Array, widened


def sample(problem: BlockProblem) -> tuple[Array, Array, Array]:
    """Return some rows of every block in float64, with their part of the first null vector, and the second."""
    layout = problem.layout
    step = sampling(*problem.shape)
    found = layout.cluster.gather(layout.map(_some, problem.X.parts, _graphs(problem), [step for _ in layout.sizes]))
    some, left = (np.concatenate([part[i] for part in found]) for i in (0, 1))
    plain = problem.null2 is None or problem.gamma2 == 0
    return some, left, np.ones(problem.shape[1]) if plain else np.asarray(problem.null2, dtype=np.float64)


def largest(problem: BlockProblem) -> float | None:
    """Return the largest absolute entry; None when the backend has let go of the blocks."""
    if not problem.X.parts:
        return None
    return float(tree_sum(problem.layout.cluster, problem.layout.map(block_tasks.largest, problem.X.parts)).value)


def left(problem: BlockProblem, right: Array, along: str, ratio: float) -> list[Any]:
    """Return the left factor of a level, block by block."""
    shared = ([value for _ in problem.X.parts] for value in (right, along, ratio))
    return problem.layout.map(_left, problem.X.parts, _graphs(problem), *shared)


def framed(problem: BlockProblem, units: Units, **numbers: Any) -> BlockProblem:
    """Return the problem in other units, with other gammas; the blocks given stay for the way back."""
    shared = ([value for _ in problem.X.parts] for value in (units.right, units.unit))
    parts = problem.layout.map(_frame, problem.X.parts, units.left, *shared)
    inner = replace(problem, X=RowBlocks(parts, problem.X.shape, problem.X.dtype), **numbers)
    return inner if problem.box is None else replace(inner, box=box(inner))


def restored(
    problem: BlockProblem, inner: BlockProblem, U: RowBlocks, V: RowBlocks | None, units: Units
) -> tuple[RowBlocks, Moves]:
    """Return the clean part in the units of the problem, and what rounding has moved."""
    layout = problem.layout
    terms = Terms(inner.gamma1, inner.reaches[1], inner.loss, inner.huber_delta)

    slopes = [None for _ in U.parts] if V is None else V.parts
    shared = ([value for _ in U.parts] for value in (units._replace(left=None), terms))
    done = layout.map(_restore, problem.X.parts, U.parts, slopes, _graphs(problem), units.left, *shared)
    parts, moves = (layout.map(getitem, done, [i for _ in done]) for i in (0, 1))
    return RowBlocks(parts, U.shape, U.dtype, U.layout), Moves(*tree_sum(layout.cluster, moves))


def box(problem: BlockProblem) -> tuple[float, float]:
    """Return the range of the observed entries in units of the null vectors, as `frpcag.problem.solution_box`."""
    columns = np.ones(problem.shape[1]) if problem.null2 is None else np.asarray(problem.null2, dtype=np.float64)
    shared = [columns for _ in problem.X.parts]
    low, high = tree_sum(problem.layout.cluster, problem.layout.map(_range, problem.X.parts, _graphs(problem), shared))
    return widened(-low.value, high.value, problem.X.dtype)


def _graphs(problem: BlockProblem) -> list[LocalGraph | None]:
    return [None for _ in problem.X.parts] if problem.L1 is None else problem.L1.parts


def _null(X: Array, graph: LocalGraph | None) -> Array:
    return np.ones(len(X)) if graph is None else graph.null


def _some(X: Array, graph: LocalGraph | None, step: int) -> tuple[Array, Array]:
    return X[::step].astype(np.float64), _null(X, graph)[::step]


def _left(X: Array, graph: LocalGraph | None, right: Array, along: str, ratio: float) -> Array:
    if along == "none":
        return np.zeros(len(X))
    return levels_of((X / right).T, ratio) if along == "rows" else _null(X, graph)


def _frame(X: Array, left: Array, right: Array, unit: float) -> Array:
    return frame_rows(X, Units(left, right, unit))


def _restore(
    X: Array,
    U: Array,
    V: Array | None,
    graph: LocalGraph | None,
    left: Array,
    units: Units,
    terms: Terms,
) -> tuple[Array, tuple]:
    units = units._replace(left=left)
    reach = np.zeros(len(X)) if graph is None else terms.reach1 * abs(graph.rows).sum(axis=1)
    out, moves = restore_rows(X, frame_rows(X, units), U, V, units, terms._replace(reach1=reach))
    return out, tuple(moves)


def _range(X: Array, graph: LocalGraph | None, columns: Array) -> tuple[Maximum, Maximum]:
    Z = X / _null(X, graph)[:, None] / columns
    return Maximum(-float(np.fmin.reduce(Z, axis=None))), Maximum(float(np.fmax.reduce(Z, axis=None)))
