"""NCut and Laplacian eigenmaps against dense eigensolvers and planted partitions."""

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from frpcag.baselines import LaplacianEigenmaps, NCut
from frpcag.graphs import graph_from_weights


def random_weights(rng, n=30, density=0.4):
    A = np.triu(rng.random((n, n)) * (rng.random((n, n)) < density), 1)
    return A + A.T


def embed(model, A):
    return model.set_params(sample_graph=sp.csr_array(A)).fit(np.zeros((len(A), 1)))


def test_ncut_recovers_planted_blocks():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(3), 30)
    A = np.triu(rng.random((90, 90)) < np.where(y[:, None] == y, 0.5, 0.03), 1).astype(float)
    W = embed(NCut(3), A + A.T).embedding_
    assert adjusted_rand_score(y, KMeans(3, n_init=10, random_state=0).fit_predict(W)) == 1


def test_ncut_rows_are_eigenvector_rows_of_unit_length():
    A = random_weights(np.random.default_rng(1))
    model = embed(NCut(4), A)
    root = np.sqrt(A.sum(axis=1))
    values, vectors = np.linalg.eigh(np.eye(30) - A / np.outer(root, root))
    assert_allclose(model.eigenvalues_, values[:4], atol=1e-12)
    rows = vectors[:, :4] / np.linalg.norm(vectors[:, :4], axis=1, keepdims=True)
    # The Gram matrix does not see the signs of the eigenvectors.
    assert_allclose(model.embedding_ @ model.embedding_.T, rows @ rows.T, atol=1e-9)


def test_laplacian_eigenmaps_solve_the_generalised_problem():
    A = random_weights(np.random.default_rng(2))
    D = np.diag(A.sum(axis=1))
    values, vectors = scipy.linalg.eigh(D - A, D)
    model = embed(LaplacianEigenmaps(5), A)
    Y = model.embedding_
    assert_allclose(model.eigenvalues_, values[1:6], atol=1e-12)
    assert_allclose(np.abs(np.diag(Y.T @ D @ vectors[:, 1:6])), 1, atol=1e-9)
    assert_allclose(Y.T @ D @ Y, np.eye(5), atol=1e-9)


def test_the_constant_alone_is_trivial_in_a_graph_of_several_parts():
    rng = np.random.default_rng(3)
    A = scipy.linalg.block_diag(*(random_weights(rng, n=n, density=0.9) for n in (8, 9, 10)))
    d = A.sum(axis=1)
    large = embed(LaplacianEigenmaps(4), A)
    for c in (1, 2, 4):
        model = embed(LaplacianEigenmaps(c), A)
        Y = model.embedding_
        assert_allclose(Y, large.first_components(c), atol=1e-10)
        assert np.sum(model.eigenvalues_ < 1e-12) == min(c, 2)
        assert_allclose((np.diag(d) - A) @ Y, (d[:, None] * Y) * model.eigenvalues_, atol=1e-10)
        assert_allclose(d @ Y, 0, atol=1e-10)
        assert_allclose(Y.T @ (d[:, None] * Y), np.eye(c), atol=1e-10)


def test_a_combinatorial_graph_gives_the_same_spectral_embeddings():
    A = random_weights(np.random.default_rng(4))
    X = np.zeros((30, 1))
    for model in (NCut, LaplacianEigenmaps):
        one, other = (
            model(3, sample_graph=graph_from_weights(A, laplacian=kind)).fit(X).embedding_
            for kind in ("normalized", "combinatorial")
        )
        assert_allclose(one, other, atol=1e-12)
