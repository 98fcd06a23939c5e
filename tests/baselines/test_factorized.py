"""GLPCA, MMF and GNMF against dense linear algebra, scikit-learn and their own objectives."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import decomposition
from sklearn.exceptions import ConvergenceWarning

from frpcag import build_graph
from frpcag.baselines import GLPCA, GNMF, MMF, factorized


def centred(n=40, p=9, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, p)) @ np.diag(np.linspace(2, 0.5, p))
    return X - X.mean(axis=0)


def projector(W):
    Q, _ = np.linalg.qr(W)
    return Q @ Q.T


def glpca_matrix(X, L, beta):
    n = len(X)
    data, graph = np.linalg.eigvalsh(X @ X.T)[-1], np.linalg.eigvalsh(L)[-1]
    return (1 - beta) * (np.eye(n) - X @ X.T / data) + beta * L / graph


@pytest.mark.parametrize("beta", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("lanczos", [False, True])
def test_glpca_spans_the_lowest_eigenvectors_of_the_dense_matrix(beta, lanczos, monkeypatch):
    X = centred(n=70)
    if lanczos:
        monkeypatch.setattr(factorized, "_LANCZOS_NODES", 10)
    model = GLPCA(3, beta=beta, n_neighbors=5).fit(X)
    values, vectors = np.linalg.eigh(glpca_matrix(X, model.sample_graph_.laplacian.toarray(), beta))
    assert_allclose(model.eigenvalues_, values[:3], atol=1e-9)
    assert_allclose(projector(model.embedding_), projector(vectors[:, :3]), atol=1e-7)
    assert_allclose(model.embedding_.T @ model.embedding_, np.eye(3), atol=1e-9)


def test_no_orthonormal_factor_near_or_far_lowers_the_objective_of_glpca():
    X, rng = centred(), np.random.default_rng(1)
    model = GLPCA(3, beta=0.4, n_neighbors=5).fit(X)
    L, W = model.sample_graph_.laplacian.toarray(), model.embedding_
    G = glpca_matrix(X, L, 0.4)
    least = np.trace(W.T @ G @ W)
    for size in (1e-3, 1e-1, 1e3):
        for _ in range(20):
            Q, _ = np.linalg.qr(W + size * rng.normal(size=W.shape))
            assert np.trace(Q.T @ G @ Q) > least
    assert_allclose(G @ W - W @ (W.T @ G @ W), 0, atol=1e-10)  # the gradient on the manifold


def test_glpca_without_graph_weight_is_pca():
    X = centred()
    W, _, _ = np.linalg.svd(X, full_matrices=False)
    assert_allclose(projector(GLPCA(4, beta=0).fit(X).embedding_), projector(W[:, :4]), atol=1e-9)


def test_glpca_with_graph_weight_alone_is_the_spectral_embedding():
    X = centred()
    model = GLPCA(4, beta=1.0).fit(X)
    values, vectors = np.linalg.eigh(model.sample_graph_.laplacian.toarray())
    assert_allclose(model.eigenvalues_, values[:4] / values[-1], atol=1e-9)
    assert_allclose(projector(model.embedding_), projector(vectors[:, :4]), atol=1e-7)


def test_glpca_with_graph_weight_alone_keeps_the_parts_of_the_graph_apart(monkeypatch):
    monkeypatch.setattr(factorized, "_LANCZOS_NODES", 10)
    parts = sp.block_diag([sp.coo_array(np.ones((10, 10)))] * 10, format="csr")
    model = GLPCA(5, beta=1, sample_graph=parts).fit(centred(n=100))
    assert_allclose(model.eigenvalues_, 0, atol=1e-12)
    W = model.embedding_[::10]  # one row of each part
    assert_allclose(model.embedding_, np.repeat(W, 10, axis=0), atol=1e-9)
    assert_array_equal((np.abs(W) > 1e-9).sum(axis=0), 1)


@pytest.mark.parametrize("bad", [-0.1, 1.1, "half", np.nan, True])
def test_weights_beyond_zero_and_one_are_refused(bad):
    with pytest.raises(ValueError, match="beta="):
        GLPCA(beta=bad).fit(centred())


def mmf_objective(X, W, V, L, gamma):
    return np.linalg.norm(X - W @ V.T) ** 2 + gamma * np.trace(W.T @ L @ W)


@pytest.mark.parametrize("shape", [(40, 9), (12, 30)])
@pytest.mark.parametrize("gamma", [0.125, 4.0, 1024.0])
def test_mmf_is_the_closed_form_by_dense_inverse(shape, gamma):
    X = centred(*shape)
    model = MMF(3, gamma=gamma, n_neighbors=5).fit(X)
    L = model.sample_graph_.laplacian.toarray()
    inverse = np.linalg.inv(np.eye(len(X)) + gamma * L)
    V = np.linalg.eigh(X.T @ inverse @ X)[1][:, ::-1][:, :3]
    W = inverse @ X @ V
    assert_allclose(model.embedding_ @ model.components_, W @ V.T, atol=1e-8)
    assert_allclose(model.components_ @ model.components_.T, np.eye(3), atol=1e-8)
    assert_allclose(model.objective_, mmf_objective(X, W, V, L, gamma), rtol=1e-10)


def test_no_factors_near_or_far_lower_the_objective_of_mmf():
    X, rng = centred(), np.random.default_rng(1)
    model = MMF(3, gamma=2.0, n_neighbors=5).fit(X)
    L, W, V = model.sample_graph_.laplacian.toarray(), model.embedding_, model.components_.T
    least = mmf_objective(X, W, V, L, 2.0)
    for size in (1e-3, 1e-1, 1e1):
        for _ in range(20):
            Q, _ = np.linalg.qr(V + size * rng.normal(size=V.shape))
            assert mmf_objective(X, W + size * rng.normal(size=W.shape), V, L, 2.0) > least
            # With the best W for each V, so that only the choice of V counts.
            best = np.linalg.solve(np.eye(40) + 2.0 * L, X @ Q)
            assert mmf_objective(X, best, Q, L, 2.0) > least


def test_mmf_without_graph_weight_is_pca():
    X = centred()
    W, s, _ = np.linalg.svd(X, full_matrices=False)
    assert_allclose(np.abs(MMF(4, gamma=0).fit(X).embedding_), np.abs(W[:, :4] * s[:4]), atol=1e-8)


@pytest.mark.parametrize("model", [MMF, GNMF])
@pytest.mark.parametrize("bad", [-1, np.inf, "auto", True])
def test_negative_or_infinite_graph_weights_are_refused(model, bad):
    with pytest.raises(ValueError, match="gamma="):
        model(gamma=bad).fit(np.abs(centred()))


def positive(n=40, p=9, seed=0):
    return np.random.default_rng(seed).random((n, p))


@pytest.mark.parametrize("gamma", [0.0, 0.5, 100.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_update_of_gnmf_lowers_the_objective(gamma, dtype):
    X = positive().astype(dtype)
    values = [GNMF(3, gamma=gamma, max_iter=k, tol=0, random_state=0).fit(X).objective_ for k in range(1, 30)]
    assert (np.diff(values) <= 1e-6 * values[0]).all()
    assert values[-1] < values[0]


@pytest.mark.parametrize("n_iter", [1, 7, 200])
def test_gnmf_without_graph_weight_makes_the_updates_of_lee_and_seung(n_iter):
    X = positive()
    model = GNMF(3, gamma=0, max_iter=n_iter, tol=0, random_state=5).fit(X)
    theirs = decomposition.NMF(3, init="random", solver="mu", tol=0, max_iter=n_iter, random_state=5)
    W = theirs.fit_transform(X)
    lengths = np.linalg.norm(theirs.components_, axis=1)
    assert_allclose(model.embedding_, W * lengths, rtol=1e-8, atol=1e-12)
    assert_allclose(model.components_, theirs.components_ / lengths[:, None], rtol=1e-8, atol=1e-12)
    assert_allclose(model.objective_, np.linalg.norm(X - W @ theirs.components_) ** 2, rtol=1e-10)


def test_the_first_update_of_gnmf_is_that_of_cai():
    X, gamma = positive(), 3.0
    graph = build_graph(X, n_neighbors=5)
    A = graph.weights.toarray()
    D = np.diag(A.sum(axis=1))
    rng = np.random.RandomState(2)
    H, W = (np.abs(np.sqrt(X.mean() / 3) * rng.standard_normal(size=size)) for size in ((3, 9), (40, 3)))
    W = W * (X @ H.T + gamma * A @ W) / (W @ H @ H.T + gamma * D @ W)
    H = H * (W.T @ X) / (W.T @ W @ H)
    model = GNMF(3, gamma=gamma, sample_graph=graph, max_iter=1, tol=0, random_state=2).fit(X)
    assert_allclose(model.embedding_ @ model.components_, W @ H, rtol=1e-10)
    assert_allclose(np.linalg.norm(model.components_, axis=1), 1)
    graph_term = gamma * np.trace(W.T @ (D - A) @ W)
    assert_allclose(model.objective_, np.linalg.norm(X - W @ H) ** 2 + graph_term, rtol=1e-10)


def test_a_heavy_graph_pulls_linked_samples_together():
    X = positive()
    pairs = sp.block_diag([sp.coo_array(np.ones((2, 2)) - np.eye(2))] * 20, format="csr")
    spread = {}
    for gamma in (0.0, 1000.0):
        W = GNMF(3, gamma=gamma, sample_graph=pairs, max_iter=2000, random_state=0).fit(X).embedding_
        spread[gamma] = np.linalg.norm(W[::2] - W[1::2]) / np.linalg.norm(W)
    assert spread[1000.0] < 0.1 * spread[0.0]


def test_gnmf_warns_when_it_runs_out_of_updates():
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        assert GNMF(2, max_iter=3, random_state=0).fit(positive()).n_iter_ == 3
