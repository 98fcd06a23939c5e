"""Theorem 1 of Shahid et al. 2016 on random clusterable problems."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from frpcag import FRPCAG, Problem, build_graph, solve
from frpcag.data import make_low_rank_on_graphs
from frpcag.insight import graph_basis, theorem_bound
from frpcag.problem import objective
from support.oracles import random_laplacian, random_problem


def clusterable(seed, *, loss="l1"):
    """Return a problem with the theorem's gammas, its X*, k1 and k2; sizes, noise and gamma vary with the seed."""
    rng = np.random.default_rng(seed)
    k1, k2 = rng.integers(2, 6, size=2)
    X, clean, _ = make_low_rank_on_graphs(
        int(rng.integers(40, 60)),
        int(rng.integers(30, 50)),
        n_sample_clusters=k1,
        n_feature_clusters=k2,
        noise=rng.uniform(0.05, 0.5),
        outliers=rng.uniform(0, 0.1),
        random_state=seed,
    )
    kind, weights = (("normalized", "gaussian"), ("combinatorial", "binary"))[seed % 2]
    graphs = (build_graph(X, axis=axis, n_neighbors=10, laplacian=kind, weights=weights) for axis in (0, 1))
    L1, L2 = (graph.laplacian for graph in graphs)
    lam, omega = graph_basis(L1)[0], graph_basis(L2)[0]
    gamma = float(np.exp(rng.uniform(-3, 2)))
    gammas = gamma / lam[k1], gamma / omega[k2]
    return Problem(X, L1, L2, *gammas, loss=loss), clean, int(k1), int(k2)


@pytest.mark.parametrize("seeds", [range(start, start + 50) for start in (0, 50)], ids=str)
def test_bound_holds_on_random_clusterable_problems(seeds):
    for seed in seeds:
        problem, clean, k1, k2 = clusterable(seed)
        solution = solve(problem, tol=1e-4, max_iter=5000, backend="numpy")
        bound = theorem_bound(problem, solution.U, k1=k1, k2=k2, clean=clean)
        print(f"seed {seed}: {bound.left:.6g} <= {bound.right:.6g}")
        assert bound.left <= bound.right + bound.slack
        assert bound.slack <= 1e-4 * objective(problem, solution.U)


@pytest.mark.parametrize("loss", ["l2", "huber"])
def test_bound_holds_for_other_losses(loss):
    problem, clean, k1, k2 = clusterable(0, loss=loss)
    solution = solve(problem, tol=1e-6, max_iter=5000, backend="numpy")
    assert theorem_bound(problem, solution.U, k1=k1, k2=k2, clean=clean).holds


def test_both_sides_are_those_of_the_paper_by_dense_arithmetic():
    problem, clean, k1, k2 = clusterable(4)
    X, gamma = problem.X, 0.8
    lam, Q = np.linalg.eigh(problem.L1.toarray())
    omega, P = np.linalg.eigh(problem.L2.toarray())
    problem = replace(problem, gamma1=gamma / lam[k1], gamma2=gamma / omega[k2])
    U = solve(problem, tol=1e-6, max_iter=5000).U
    X_star = Q[:, :k1] @ Q[:, :k1].T @ clean @ P[:, :k2] @ P[:, :k2].T
    left = np.abs(U - X).sum() + gamma * (np.square(Q[:, k1:].T @ U).sum() + np.square(U @ P[:, k2:]).sum())
    eigengaps = lam[k1 - 1] / lam[k1] + omega[k2 - 1] / omega[k2]
    right = np.abs(X - X_star).sum() + gamma * np.square(X_star).sum() * eigengaps
    bound = theorem_bound(problem, U, k1=k1, k2=k2, clean=clean)
    assert_allclose([bound.left, bound.right], [left, right], rtol=1e-7)


def test_bound_fails_for_what_does_not_solve_the_problem():
    problem, clean, k1, k2 = clusterable(1)
    U = np.random.default_rng(0).normal(size=clean.shape) * 100
    assert theorem_bound(problem, U, k1=k1, k2=k2, clean=clean).left > theorem_bound(problem, U, k1=k1, k2=k2).right


def test_bound_of_a_fit_needs_nothing_but_the_fit():
    X, _, _ = make_low_rank_on_graphs(80, 40, random_state=0)
    model = FRPCAG().fit(X)
    graphs = model.sample_graph_.laplacian, model.feature_graph_.laplacian
    problem = Problem(X - model.center_, *graphs, model.gamma1_, model.gamma2_)
    assert theorem_bound(problem, model.low_rank_ - model.center_, k1=4, k2=4).holds


def test_bound_refuses_one_graph_missing_entries_and_k_out_of_range():
    one = random_problem(0, graphs="samples")
    with pytest.raises(ValueError, match="both graphs and no missing entries"):
        theorem_bound(one, one.X, k1=1, k2=1)
    holes = random_problem(0, mask=0.2)
    with pytest.raises(ValueError, match="both graphs and no missing entries"):
        theorem_bound(holes, np.nan_to_num(holes.X), k1=1, k2=1)
    L = random_laplacian(np.random.default_rng(0), 3)
    small = Problem(np.ones((3, 3)), L, L, 1.0, 1.0)
    with pytest.raises(ValueError, match="k1=3 must lie between 1 and 2"):
        theorem_bound(small, small.X, k1=3, k2=1)
