"""Covariance and singular vectors in a graph's basis, against dense linear algebra."""

import os

import numpy as np
import pytest
from numpy.testing import assert_allclose
from reproduction.datasets import load_dataset

from frpcag import build_graph
from frpcag.insight import alignment_ratio, graph_basis, graph_covariance, shape_interaction, vector_alignment
from support.oracles import random_laplacian


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return rng.normal(size=(50, 12)) @ rng.normal(size=(12, 12)) + 3.0


def test_graph_covariance_is_the_papers_with_the_mean_of_all_entries(data):
    _, P = np.linalg.eigh(random_laplacian(np.random.default_rng(1), 12).toarray())
    centred = data - data.sum() / data.size
    C = sum(np.outer(x, x) for x in centred) / 50
    assert_allclose(graph_covariance(data, P), P.T @ C @ P)


def test_graph_covariance_of_part_of_the_basis_is_its_corner(data):
    _, P = np.linalg.eigh(random_laplacian(np.random.default_rng(1), 12).toarray())
    assert_allclose(graph_covariance(data, P[:, :5]), graph_covariance(data, P)[:5, :5])


def test_alignment_is_perfect_for_stationary_data():
    """Where C is a function of L, both have the same eigenvectors: C = (I + L)^-1 here."""
    L = random_laplacian(np.random.default_rng(0), 10).toarray()
    root = np.linalg.cholesky(np.linalg.inv(np.eye(10) + L))
    signs = np.sqrt(20) * np.vstack([np.eye(10), -np.eye(10)]) / np.sqrt(2)  # 20 samples, mean 0, covariance I
    X = signs @ root.T
    assert_allclose(alignment_ratio(graph_covariance(X, np.linalg.eigh(L)[1])), 1.0)


def test_alignment_of_one_direction_spread_over_the_basis_is_low(data):
    assert_allclose(alignment_ratio(np.ones((25, 25))), 1 / 5)
    assert alignment_ratio(np.zeros((2, 2))) == 1.0


def test_singular_vectors_in_the_basis_make_up_the_graph_term(data):
    """Shahid et al. 2016, Eq. (10): tr(U' L1 U) = sum_ij sigma_i^2 lambda_j (w_i' q_j)^2."""
    L = random_laplacian(np.random.default_rng(2), 50)
    W, Sigma, _ = np.linalg.svd(data, full_matrices=False)
    eigenvalues, Q = graph_basis(L)
    A = vector_alignment(W, Sigma, Q)
    assert_allclose(np.sum(np.square(A) * eigenvalues), np.trace(data.T @ (L @ data)))


def test_shape_interaction_of_orthogonal_classes_is_block_diagonal():
    rng = np.random.default_rng(0)
    X = np.zeros((30, 10))
    X[:12, :4] = rng.normal(size=(12, 2)) @ rng.normal(size=(2, 4))
    X[12:, 4:] = rng.normal(size=(18, 3)) @ rng.normal(size=(3, 6))
    W = np.linalg.svd(X)[0][:, :5]
    SIM = shape_interaction(W)
    assert np.abs(SIM[:12, 12:]).max() < 1e-12
    assert_allclose(SIM @ X, X, atol=1e-12)
    assert_allclose(shape_interaction(W[5:9]), SIM[5:9, 5:9])


@pytest.mark.data
@pytest.mark.skipif(not os.environ.get("FRPCAG_DATA"), reason="FRPCAG_DATA does not point at the data sets")
@pytest.mark.parametrize(("digit", "paper"), [(3, 0.97), (None, 0.82)])
def test_alignment_of_usps_is_that_of_the_paper(digit, paper):
    """Combinatorial Laplacian, sigma the mean distance, 10 neighbours: see docs/report.md for what else was tried."""
    data = load_dataset("usps")
    X = data.X if digit is None else data.X[data.y == digit]
    graph = build_graph(X, axis=1, n_neighbors=10, method="exact", laplacian="combinatorial")
    assert abs(alignment_ratio(graph_covariance(X, graph_basis(graph)[1])) - paper) < 0.05
