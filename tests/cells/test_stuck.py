"""Stuck sensors: runs of one value in a column while the others move."""

import numpy as np

from frpcag.cells.repeats import Run, drifting, find_runs


def test_a_run_is_found_and_single_ties_are_not():
    X = np.random.default_rng(0).normal(size=(200, 6))
    X[50:60, 2] = X[49, 2]
    X[101, 4] = X[100, 4]
    (run,) = find_runs(X, np.ones(X.shape, bool), np.arange(len(X)))
    assert (run.column, run.rows.tolist()) == (2, list(range(49, 60)))


def test_categories_and_repeated_rows_have_no_runs():
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.integers(0, 2, size=300), rng.normal(size=(300, 4))])
    X[100:110] = X[100]
    assert find_runs(X, np.ones(X.shape, bool), np.arange(len(X))) == []


def test_a_saturated_column_is_no_stuck_sensor():
    X = np.random.default_rng(3).normal(size=(200, 5))
    X[60:70, 1] = X[:, 1].max() + 1
    assert find_runs(X, np.ones(X.shape, bool), np.arange(len(X))) == []


def test_only_runs_that_drift_from_their_prediction_are_wrong():
    residual = np.random.default_rng(2).normal(size=(100, 2))
    residual[20:30, 0] = 5
    runs = [Run(0, np.arange(20, 30)), Run(1, np.arange(40, 50))]
    assert [run.column for run in drifting(runs, residual, np.ones(residual.shape, bool))] == [0]
