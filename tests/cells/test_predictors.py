"""Predictors against closed forms: each cell is predicted without itself."""

import numpy as np
import scipy.sparse as sp

from frpcag.cells.columns import _conditional
from frpcag.cells.low_rank import LowRankPredictor, column_medians, solve_rows
from frpcag.cells.metric import column_folds
from frpcag.cells.predictors import GraphPredictor, neighbor_moments, stack_weights


def low_rank_matrix(rng, n=200, p=40, r=3):
    return rng.normal(size=(n, r)) @ rng.normal(size=(r, p))


def test_low_rank_is_recovered_from_gross_errors_and_missing_cells():
    rng = np.random.default_rng(0)
    truth = low_rank_matrix(rng)
    X, observed = truth + 0.01 * rng.normal(size=truth.shape), rng.random(truth.shape) > 0.2
    X[rng.random(X.shape) < 0.1] += 20
    P = LowRankPredictor(3).fit(X, observed).values
    assert np.linalg.norm(P - truth) < 0.05 * np.linalg.norm(truth)


def test_leverage_gives_the_fit_without_the_cell():
    rng = np.random.default_rng(1)
    B, target, weight = rng.normal(size=(15, 4)), rng.normal(size=(3, 15)), rng.random((3, 15))
    A, own = solve_rows(weight, target * weight, B, 0.1, leverage=True)
    residual = target - A @ B.T
    left_out = np.empty_like(target)
    for i in range(3):
        for j in range(15):
            w = weight[i].copy()
            w[j] = 0
            a = np.linalg.solve((B * w[:, None]).T @ B + 0.1 * np.eye(4), B.T @ (w * target[i]))
            left_out[i, j] = target[i, j] - B[j] @ a
    np.testing.assert_allclose(residual / (1 - own * weight), left_out, rtol=1e-9)


def test_columns_predict_by_the_conditional_mean_of_a_gaussian():
    rng = np.random.default_rng(2)
    F = rng.normal(size=(6, 6))
    C = F @ F.T + np.eye(6)
    z = rng.normal(size=(1, 6))
    P, sd, _, _ = _conditional(C, z, np.ones((1, 6)))
    for j in range(6):
        rest = np.setdiff1d(np.arange(6), j)
        slope = np.linalg.solve(C[np.ix_(rest, rest)], C[rest, j])
        np.testing.assert_allclose(P[0, j], slope @ z[0, rest], rtol=1e-6)
        np.testing.assert_allclose(sd[0, j] ** 2, C[j, j] - slope @ C[rest, j], rtol=1e-6)


def test_a_missing_cell_tells_nothing_about_its_row():
    C = np.array([[1.0, 0.9], [0.9, 1.0]])
    P, _, _, _ = _conditional(C, np.array([[0.0, 50.0]]), np.array([[1.0, 0.0]]))
    assert abs(P[0, 0]) < 0.01


def test_graph_neighbours_leave_the_cell_out():
    W = sp.csr_array(np.ones((4, 4)) - np.eye(4))
    U = np.array([[100.0], [1.0], [2.0], [3.0]])
    mean, spread = neighbor_moments(U, None, W, None, 1.0, 0.0)
    np.testing.assert_allclose(mean[0, 0], 2.0)
    np.testing.assert_allclose(spread[0, 0], np.std([1, 2, 3]))


def test_graph_prediction_of_a_missing_cell_is_the_solution_there():
    rng = np.random.default_rng(3)
    W = sp.csr_array(np.ones((6, 6)) - np.eye(6)) / 5
    X, observed = rng.normal(size=(6, 60)), np.ones((6, 60), bool)
    observed[2, 3] = False
    graph = GraphPredictor([W], None, 0.4, 0.0, column_folds(60), max_iter=500, tol=1e-7)
    P = graph.predict(X, observed).values
    np.testing.assert_allclose(P[2, 3], graph.solve(X, observed)[2, 3], rtol=1e-3)


def test_the_stack_takes_the_better_predictor_and_mixes_equal_ones():
    rng = np.random.default_rng(5)
    truth = rng.normal(size=4000)
    good, bad = truth + 0.1 * rng.normal(size=4000), rng.normal(size=4000)
    np.testing.assert_array_equal(stack_weights([bad, good], truth, 10.0)[0], [0, 1])
    other = truth + 0.1 * rng.normal(size=4000)
    np.testing.assert_array_equal(stack_weights([other, good], truth, 10.0)[0], [0.5, 0.5])


def test_medians_at_the_end_of_the_range_do_not_warn():
    A = np.full((4, 2), np.finfo(float).max)
    np.testing.assert_array_equal(column_medians(A, np.ones(A.shape, bool)), [np.inf, np.inf])
