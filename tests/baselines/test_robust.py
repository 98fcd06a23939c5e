"""RPCA and RPCAG against CVXPY, planted low-rank parts and each other."""

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from frpcag.baselines import RPCA, RPCAG


def planted(n, p, rank=2, share=0.1, seed=0):
    """Return a low-rank matrix and a sparse one."""
    rng = np.random.default_rng(seed)
    clean = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, p))
    gross = np.where(rng.random((n, p)) < share, 5 * rng.choice([-1, 1], size=(n, p)), 0.0)
    return clean, gross


def cvxpy_optimum(X, lam, gamma=0.0, L=None):
    U = cp.Variable(X.shape)
    terms = cp.normNuc(U) + lam * cp.sum(cp.abs(X - U))
    if L is not None:
        values, vectors = np.linalg.eigh(L)
        terms += gamma * cp.sum_squares((np.sqrt(np.maximum(values, 0))[:, None] * vectors.T) @ U)
    model = cp.Problem(cp.Minimize(terms))
    model.solve(solver=cp.CLARABEL)
    return float(model.value)


@pytest.mark.parametrize("shape", [(14, 9), (9, 14)])
@pytest.mark.parametrize("lam", ["auto", 0.2])
def test_rpca_reaches_the_optimum(shape, lam):
    X = sum(planted(*shape))
    model = RPCA(lam, rho=1.05).fit(X)
    lam = 1 / np.sqrt(14) if lam == "auto" else lam
    U, S = model.low_rank_, model.sparse_
    value = np.linalg.norm(U, "nuc") + lam * np.abs(S).sum()
    assert_allclose(model.objective_, value, rtol=1e-6)
    assert_allclose(value, cvxpy_optimum(X, lam), rtol=1e-4)
    assert_allclose(model.residual_, np.linalg.norm(X - U - S) / np.linalg.norm(X), rtol=1e-6)
    assert model.residual_ < 1e-7
    assert model.converged_


@pytest.mark.parametrize("gamma", [0.05, 0.5, 5.0])
def test_rpcag_reaches_the_optimum(gamma):
    X = sum(planted(14, 9, seed=1))
    model = RPCAG(gamma=gamma, n_neighbors=3, rho=1.05).fit(X)
    L, U = model.sample_graph_.laplacian.toarray(), model.low_rank_
    value = np.linalg.norm(U, "nuc") + np.abs(model.sparse_).sum() / np.sqrt(14) + gamma * np.trace(U.T @ L @ U)
    assert_allclose(model.objective_, value, rtol=1e-6)
    assert_allclose(value, cvxpy_optimum(X, 1 / np.sqrt(14), gamma, L), rtol=1e-4)
    assert model.residual_ < 1e-7


def test_the_default_growth_of_the_penalty_ends_near_the_optimum():
    X = sum(planted(14, 9))
    optimum = cvxpy_optimum(X, 1 / np.sqrt(14))
    assert optimum * (1 - 1e-6) < RPCA().fit(X).objective_ < optimum * 1.01


@pytest.mark.parametrize("shape", [(60, 80), (80, 60)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rpca_recovers_a_planted_low_rank_matrix(shape, dtype):
    clean, gross = planted(*shape, rank=3, share=0.05)
    model = RPCA().fit((clean + gross).astype(dtype))
    loose = 1e-5 if dtype == np.float64 else 1e-4  # rounding of the data
    assert np.linalg.norm(model.low_rank_ - clean) < loose * np.linalg.norm(clean)
    assert_array_equal(np.abs(model.sparse_) > 1e-3, gross != 0)
    assert len(model.singular_values_) == 3
    assert model.low_rank_.dtype == model.sparse_.dtype == dtype


@pytest.mark.parametrize("shape", [(40, 15), (15, 40)])
def test_distances_of_the_embedding_are_those_of_the_low_rank_part(shape):
    model = RPCA().fit(sum(planted(*shape)))
    W, U = model.embedding_, model.low_rank_
    assert_allclose(W @ W.T, U @ U.T, atol=1e-6)
    assert_allclose(np.linalg.norm(W, axis=0), model.singular_values_, atol=1e-6)


def test_rpcag_without_graph_weight_is_rpca():
    X = sum(planted(30, 12))
    graph, plain = RPCAG(gamma=0, rho=1.2).fit(X), RPCA(rho=1.2).fit(X)
    for name in ("low_rank_", "sparse_", "embedding_"):
        assert_array_equal(getattr(graph, name), getattr(plain, name))
    assert (graph.n_iter_, graph.objective_) == (plain.n_iter_, plain.objective_)


def test_the_graph_makes_linked_rows_more_alike():
    X = sum(planted(30, 12))
    roughness = []
    for gamma in (0.0, 0.1, 10.0):
        model = RPCAG(gamma=gamma, n_neighbors=4).fit(X)
        L, U = model.sample_graph_.laplacian, model.low_rank_
        roughness.append(np.sum(U * (L @ U)))
    assert roughness[0] > roughness[1] > roughness[2]


@pytest.mark.parametrize("model", [RPCA(), RPCAG()])
def test_zero_data_have_zero_parts(model):
    model.fit(np.zeros((12, 4)))
    assert_array_equal(model.low_rank_, 0)
    assert_array_equal(model.embedding_, np.zeros((12, 1)))
    assert model.converged_


def test_few_steps_warn_with_the_residual():
    with pytest.warns(ConvergenceWarning, match="max_iter=2 steps and has a residual of"):
        model = RPCA(max_iter=2).fit(sum(planted(20, 10)))
    assert (model.n_iter_, model.converged_) == (2, False)


@pytest.mark.parametrize(
    ("params", "named"),
    [({"lam": 0}, "lam=0"), ({"lam": "big"}, "lam='big'"), ({"rho": 1.0}, "rho=1.0"), ({"max_iter": 0}, "max_iter=0")],
)
def test_impossible_parameters_are_refused(params, named):
    with pytest.raises(ValueError, match=named):
        RPCA(**params).fit(sum(planted(12, 6)))
