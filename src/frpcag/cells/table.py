"""The wrong cells of a whole table, in an order and in units of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from frpcag.cells.feature_graphs import feature_candidates, find_shape
from frpcag.cells.low_rank import column_medians
from frpcag.cells.mixture import row_probability
from frpcag.cells.model import CellModel
from frpcag.cells.order import canonical_order
from frpcag.cells.repeats import drifting, find_runs, in_runs
from frpcag.cells.rounds import CellRounds
from frpcag.cells.units import Units, find_units
from frpcag.runtime.threads import single_threaded_blas

Array = np.ndarray

# Rows on which everything is chosen; more rows are then judged by what was chosen.
MOST_ROWS = 2000
# Below this, and from one column, there is nothing to learn; missing cells get the median of their column.
LEAST_ROWS, LEAST_CELLS = 10, 60
# Rows judged at a time.
CHUNK = 1024


@dataclass(frozen=True)
class WrongCells:
    """What was found in a table.

    Attributes
    ----------
    post, predicted : ndarray of shape (n_samples, n_features)
        Probability that a cell is wrong, and what it should be.
    wrong_rows : bool ndarray of shape (n_samples,)
    shape : (height, width) or None
        Of the image behind a row.
    columns : ndarray of shape (n_features,)
        The order in which units and model have the columns.
    units : Units
    model : CellModel or None
        What judges other rows; None where there was too little to learn from.
    results, notes : list
        Every setting that was tried, and the decisions in words.
    """

    post: Array
    predicted: Array
    wrong_rows: Array
    shape: tuple[int, int] | None
    columns: Array
    units: Units
    model: CellModel | None
    results: list[dict]
    notes: list[str]


def find_wrong_cells(
    X: Array, *, shape: tuple[int, int] | None, seed: int, n_jobs: int | None, tell: Callable[[str], object]
) -> WrongCells:
    """Judge every cell of a table.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Each row once; NaN is missing.
    shape : (height, width) or None
        Of the image behind a row; without it a grid is looked for.
    seed, n_jobs : int and int or None
    tell : callable
        Called with every decision in words.
    """
    # Neither places nor units are evidence.
    rows, columns = canonical_order(X)
    order, table = np.argsort(rows), X[rows]
    if shape is None and len(X) >= LEAST_ROWS:
        seen = ~np.isnan(table)
        shape = find_shape(find_units(table, seen, one_level=False).apply(table), seen)
    if shape is not None:
        columns = np.arange(X.shape[1])
    table = np.ascontiguousarray(table[:, columns])
    seen = ~np.isnan(table)
    units, given = find_units(table, seen, one_level=shape is not None), np.where(seen, table, 0)
    notes: list[str] = []

    def note(decision: str) -> None:
        notes.append(decision)
        tell(decision)

    if len(X) < LEAST_ROWS or X.shape[1] < 2 or seen.sum() < LEAST_CELLS:
        predicted = np.broadcast_to(column_medians(given, seen), X.shape)
        post, wrong_rows, model, results = np.zeros(X.shape), np.zeros(len(X), bool), None, []
    else:
        Z = units.apply(table)
        rng = np.random.Generator(np.random.SFC64([seed, 1]))
        some = np.arange(len(X)) if len(X) <= MOST_ROWS else np.sort(rng.permutation(len(X))[:MOST_ROWS])
        graphs = feature_candidates(Z[some], seen[some], shape=shape, n_jobs=n_jobs)
        came = np.argsort(np.argsort(order)[some])
        rounds = CellRounds(Z[some], seen[some], graphs, given[some], units, came, shape, seed, n_jobs, note)
        with single_threaded_blas():  # many small products: threads would wait for each other
            rounds.run()
        model, results = rounds.model, rounds.results
        if len(X) <= MOST_ROWS:
            post, predicted, wrong_rows = rounds.best.post, units.restore(rounds.predicted), rounds.best.wrong_rows
        else:
            post, predicted = _judge_all(rounds, Z, given, seen, order)
            wrong_rows = row_probability(post, seen) > 0.5
    back = np.ix_(order, np.argsort(columns))
    return WrongCells(post[back], predicted[back], wrong_rows[order], shape, columns, units, model, results, notes)


def _judge_all(rounds: CellRounds, Z: Array, given: Array, observed: Array, order: Array) -> tuple[Array, Array]:
    """Judge more rows than the choices were made on: once against the chosen rows, once among all of them."""
    model, flagged = rounds.model, np.zeros(Z.shape, bool)
    for start in range(0, len(Z), CHUNK):
        rows = slice(start, start + CHUNK)
        P = model.predict(Z[rows], observed[rows])
        flagged[rows] = model.posterior(Z[rows], given[rows], observed[rows], P) > 0.5
    mask = observed & ~flagged
    if model.graph is not None:
        model = replace(model, graph=rounds.graph(rounds.choice.setting, Z, mask))
    runs = find_runs(given, observed, order) if rounds.best.runs else []
    mask &= ~in_runs(runs, Z.shape)
    P = model.predict(Z, mask)
    stuck = in_runs(drifting(runs, Z - P.values, observed), Z.shape)
    return np.maximum(model.posterior(Z, given, observed, P), stuck), model.units.restore(P.values)
