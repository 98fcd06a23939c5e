"""Graph frequencies of data against dense linear algebra."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from frpcag import build_graph
from frpcag.data import make_low_rank_on_graphs
from frpcag.insight import (
    attenuation,
    eigengaps,
    frequency_energy,
    graph_basis,
    low_rank_distance,
    project_low_rank,
    singular_value_ratio,
    suggest_k,
)
from support.oracles import random_laplacian


def dense_basis(L):
    return np.linalg.eigh(L.toarray())


@pytest.fixture
def data():
    return np.random.default_rng(0).normal(size=(30, 20)) + 1.0


@pytest.fixture
def laplacians():
    rng = np.random.default_rng(1)
    return random_laplacian(rng, 30), random_laplacian(rng, 20, "combinatorial")


def subspaces_agree(A, B):
    return np.abs(A @ A.T - B @ B.T).max() < 1e-8


def test_full_basis_is_that_of_the_dense_laplacian(laplacians):
    for L in laplacians:
        eigenvalues, vectors = graph_basis(L)
        assert_allclose(eigenvalues, dense_basis(L)[0], atol=1e-12)
        assert_allclose(vectors @ np.diag(eigenvalues) @ vectors.T, L.toarray(), atol=1e-12)


def test_partial_basis_of_a_large_graph_is_that_of_the_dense_laplacian():
    X = np.random.default_rng(0).normal(size=(700, 3))  # above the size where all eigenpairs are computed
    graph = build_graph(X, n_neighbors=6)
    eigenvalues, Q = graph_basis(graph, 5)
    expected, vectors = dense_basis(graph.laplacian)
    assert_allclose(eigenvalues, expected[:5], atol=1e-8)
    assert subspaces_agree(Q, vectors[:, :5])


def test_energy_over_all_frequencies_is_that_of_the_dense_transform(data, laplacians):
    for axis, L in enumerate(laplacians):
        basis = graph_basis(L)[1]
        transformed = basis.T @ data if axis == 0 else data @ basis
        expected = np.square(transformed).sum(axis=1 - axis) / np.square(data).sum()
        energy = frequency_energy(data, basis, axis=axis)
        assert_allclose(energy, expected)
        assert_allclose(energy.sum(), 1.0)


def test_graph_terms_are_energy_weighted_by_frequency(data, laplacians):
    """Shahid et al. 2016, Eq. (10): tr(U' L U) = |U|^2 sum_j lambda_j energy_j."""
    for axis, L in enumerate(laplacians):
        eigenvalues, basis = graph_basis(L)
        term = np.sum(data * (L @ data if axis == 0 else data @ L))
        assert_allclose(np.square(data).sum() * eigenvalues @ frequency_energy(data, basis, axis=axis), term)


def test_energy_of_float32_data_is_summed_in_float64():
    X = np.full((2**13, 2**8), 1.0, dtype=np.float32)
    X[0] = 1e4
    basis = np.zeros((len(X), 1))
    basis[0] = 1
    assert_allclose(frequency_energy(X, basis), [1e8 / (1e8 + 2**13 - 1)], rtol=1e-6)


def test_energy_of_zero_data_is_zero():
    assert_array_equal(frequency_energy(np.zeros((3, 2)), np.eye(3)), np.zeros(3))


def test_energy_refuses_another_axis(data):
    with pytest.raises(ValueError, match="axis=2 must be 0"):
        frequency_energy(data, np.eye(30), axis=2)


def test_projection_is_the_nearest_low_rank_matrix_on_graphs(data, laplacians):
    Q, P = (graph_basis(L)[1][:, :k] for L, k in zip(laplacians, (4, 3), strict=True))
    # Least squares over the coefficients C of Q C P', written as a vector.
    C, *_ = np.linalg.lstsq(np.kron(Q, P), data.ravel(), rcond=None)
    nearest = Q @ C.reshape(4, 3) @ P.T
    assert_allclose(project_low_rank(data, Q, P), nearest)
    expected = np.linalg.norm(data - nearest) / np.linalg.norm(data)
    assert_allclose(low_rank_distance(data, Q, P), expected)


def test_matrices_that_are_low_rank_on_graphs_have_distance_zero():
    _, clean, _ = make_low_rank_on_graphs(60, 40, n_sample_clusters=3, random_state=0)
    # Graphs that join equal clusters only, with constant eigenvectors on each.
    bases = []
    for points, k in ((clean, 3), (clean.T, 4)):
        same = np.abs(points[:, None] - points[None]).sum(axis=2) < 1e-9
        L = sp.csr_array(np.diag(same.sum(axis=1)) - same.astype(float))
        bases.append(graph_basis(L, k)[1])
    assert low_rank_distance(clean, *bases) < 1e-12
    assert_allclose(project_low_rank(clean, *bases), clean, atol=1e-12)


def test_one_graph_projects_along_one_side_only(data):
    Q = np.full((30, 1), 30**-0.5)
    assert_allclose(project_low_rank(data, Q, None), np.tile(data.mean(axis=0), (30, 1)))
    P = np.full((20, 1), 20**-0.5)
    assert_allclose(project_low_rank(data, None, P), np.tile(data.mean(axis=1), (20, 1)).T)
    assert low_rank_distance(data, None, None) == 0


def test_largest_eigengap_names_the_number_of_clusters():
    _, clean, _ = make_low_rank_on_graphs(90, 20, n_sample_clusters=5, random_state=0)
    X = clean + 0.05 * np.random.default_rng(0).normal(size=clean.shape)
    eigenvalues, _ = graph_basis(build_graph(X, n_neighbors=10), 12)
    assert suggest_k(eigenvalues) == 5
    assert_allclose(eigengaps(eigenvalues), eigenvalues[1:] - eigenvalues[:-1])


def test_least_number_of_clusters_is_respected():
    eigenvalues = np.array([0.0, 0.5, 0.6, 0.9])
    assert suggest_k(eigenvalues) == 1
    assert suggest_k(eigenvalues, k_min=2) == 3
    with pytest.raises(ValueError, match="k_min=4 must lie between 1 and 3"):
        suggest_k(eigenvalues, k_min=4)


def test_attenuation_is_exact_where_the_data_share_the_graphs_eigenvectors():
    """The two proximal steps of Shahid et al. 2016, Sec. V-A, with dense inverses."""
    rng = np.random.default_rng(0)
    L1, L2 = random_laplacian(rng, 12), random_laplacian(rng, 9)
    (lam, Q), (omega, P) = dense_basis(L1), dense_basis(L2)
    Sigma = np.geomspace(10, 1, 9)
    X = Q[:, :9] @ np.diag(Sigma) @ P.T
    gamma1, gamma2 = 0.7, 1.3
    U = np.linalg.inv(np.eye(12) + gamma1 * L1.toarray()) @ X @ np.linalg.inv(np.eye(9) + gamma2 * L2.toarray())
    measured = singular_value_ratio(*(np.linalg.svd(A, compute_uv=False) for A in (X, U)))
    assert_allclose(attenuation(lam, omega, gamma1=gamma1, gamma2=gamma2), measured)


def test_ratio_of_singular_values_takes_zero_for_what_was_zero():
    assert_array_equal(singular_value_ratio(np.array([2.0, 0.0, 0.0]), np.array([1.0, 0.0])), [0.5, 0.0])
