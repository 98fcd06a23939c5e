"""The backgrounds of a clip, solved for a block of pixels at a time."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from frpcag.graphs import build_graph
from frpcag.problem import Problem
from frpcag.solvers import solve
from frpcag.video import background
from frpcag.video.background import solve_backgrounds


@pytest.fixture
def clip():
    """Frames of 300 pixels, the Laplacian of a graph, and what is missing."""
    rng = np.random.default_rng(0)
    planes = (rng.normal(100, 20, (1, 300, 1)) + rng.normal(0, 4, (40, 300, 1))).astype(np.float32)
    graph = build_graph(rng.normal(size=(40, 3)), n_neighbors=4, laplacian="combinatorial")
    return planes, graph.laplacian, rng.random((40, 300)) < 0.1


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(background, "_ENTRIES", 40 * 64)


def test_blocks_give_the_solution_of_all_pixels(clip, small_blocks):
    planes, L, missing = clip
    found = solve_backgrounds(planes, L, 0.1, missing=missing, tol=1e-6, max_iter=5000)
    X = planes[..., 0].astype(np.float64)
    X[missing] = np.nan
    exact = solve(Problem(X, L, None, 0.1, 0.0), tol=1e-9, max_iter=5000)
    np.testing.assert_allclose(found.U[..., 0], exact.U, atol=0.05)
    assert found.gap <= 1e-6


def test_the_gap_is_that_of_all_pixels(clip, small_blocks):
    planes, L, _ = clip
    found = solve_backgrounds(planes, L, 0.1, tol=0.0, max_iter=4)
    U, X = found.U[..., 0].astype(np.float64), planes[..., 0].astype(np.float64)
    reached = np.abs(X - U).sum() + 0.1 * np.sum(U * (L @ U))
    assert 0 < 1 - solve(Problem(X, L, None, 0.1, 0.0), tol=1e-9, max_iter=5000).objective / reached <= found.gap < 1
    with pytest.warns(ConvergenceWarning):
        alone = [solve(Problem(X[:, at : at + 64], L, None, 0.1, 0.0), tol=0.0, max_iter=4) for at in range(0, 300, 64)]
    excess = sum(each.gap * each.objective for each in alone)
    assert found.gap == pytest.approx(excess / reached, rel=1e-2)


def test_blocks_do_not_depend_on_the_number_of_threads(clip, small_blocks):
    planes, L, missing = clip
    one, two = (solve_backgrounds(planes, L, 0.1, missing=missing, tol=0.0, max_iter=9, n_jobs=n) for n in (1, 2))
    np.testing.assert_array_equal(one.U, two.U)
    assert (one.n_iter, one.gap) == (two.n_iter, two.gap)


def test_a_callback_hears_of_all_blocks_together_and_stops_them(clip, small_blocks):
    planes, L, _ = clip
    heard = []
    solve_backgrounds(planes, L, 0.1, tol=0.0, max_iter=6, callback=heard.append, n_jobs=1)
    steps = [at.n_iter for at in heard]
    assert steps == sorted(steps)
    assert len(steps) == 5 * 6  # five blocks
    assert (steps[0], steps[-1]) == (1, 6)
    stopped = solve_backgrounds(planes, L, 0.1, tol=0.0, max_iter=6, callback=lambda at: True, n_jobs=1)
    assert stopped.n_iter == 1
    assert np.isfinite(stopped.U).all()
