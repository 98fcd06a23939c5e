"""Low eigenpairs of Laplacians, against closed forms and dense eigenvectors."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from frpcag.graphs import build_graph, build_laplacian
from frpcag.linalg import eigenpairs
from frpcag.linalg.eigenpairs import low_eigenpairs
from support.oracles import random_weights, ring


def graph_of_grid(side):
    path = sp.diags_array([np.ones(side - 1)] * 2, offsets=[-1, 1])
    one = sp.eye_array(side)
    return sp.csr_array(sp.kron(path, one) + sp.kron(one, path))


def test_low_eigenvalues_of_a_ring_are_the_closed_form():
    n = 700  # above the dense limit
    expected = np.sort(2 - 2 * np.cos(2 * np.pi * np.arange(n) / n))[:5]
    assert_allclose(low_eigenpairs(build_laplacian(ring(n), "combinatorial"), 5)[0], expected, atol=1e-9)


def test_double_eigenvalues_of_a_square_grid_are_found_twice():
    path = 2 - 2 * np.cos(np.pi * np.arange(25) / 25)
    expected = np.sort(np.add.outer(path, path), axis=None)[:8]
    A = graph_of_grid(25)
    assert_allclose(low_eigenpairs(build_laplacian(A, "combinatorial"), 8)[0], expected, atol=1e-9)


@pytest.mark.parametrize("n", [50, 600])
def test_low_eigenvalues_agree_with_dense_ones(n):
    L = build_laplacian(random_weights(n, 8 / n, 3))
    assert_allclose(low_eigenpairs(L, 6)[0], np.linalg.eigvalsh(L.toarray())[:6], atol=1e-9)


@pytest.mark.parametrize("n", [50, 600])
def test_low_eigenvectors_satisfy_the_eigenvalue_equation(n):
    L = build_laplacian(random_weights(n, 8 / n, 3))
    values, vectors = low_eigenpairs(L, 6)
    assert_allclose(L @ vectors, vectors * values, atol=1e-7)


@pytest.mark.parametrize("n", [50, 600])
def test_low_eigenvectors_are_orthonormal(n):
    vectors = low_eigenpairs(build_laplacian(random_weights(n, 8 / n, 3)), 6)[1]
    assert_allclose(vectors.T @ vectors, np.eye(6), atol=1e-9)


def test_zero_eigenvalue_is_found_once_for_each_component():
    L = build_laplacian(sp.block_diag([random_weights(600, 0.05, seed) for seed in range(3)] + [ring(7)], format="csr"))
    assert (low_eigenpairs(L, 6)[0] < 1e-9).sum() == 4


def test_eigenvectors_live_on_one_component_each():
    L = build_laplacian(sp.block_diag([random_weights(600, 0.05, seed) for seed in range(2)], format="csr"))
    vectors = low_eigenpairs(L, 4)[1]
    assert_array_equal(np.abs(vectors[:600]).max(axis=0) * np.abs(vectors[600:]).max(axis=0), 0)


def test_largest_entry_of_each_eigenvector_is_positive():
    vectors = low_eigenpairs(build_laplacian(random_weights(600, 0.02, 3)), 6)[1]
    assert (vectors[np.abs(vectors).argmax(axis=0), range(6)] > 0).all()


def test_low_eigenpairs_repeat_to_the_last_bit():
    L = build_laplacian(random_weights(600, 0.02, 3))
    assert_array_equal(low_eigenpairs(L, 4)[1], low_eigenpairs(L, 4)[1])


@pytest.mark.parametrize("k", [1, 4, 5])
def test_as_many_eigenpairs_as_nodes_can_be_asked_for(k):
    assert low_eigenpairs(build_laplacian(ring(5)), k)[1].shape == (5, k)


@pytest.mark.parametrize("k", [0, 6])
def test_more_eigenpairs_than_nodes_are_refused(k):
    with pytest.raises(ValueError, match=f"k={k} must be between 1 and n_nodes=5"):
        low_eigenpairs(build_laplacian(ring(5)), k)


def hostile_graphs():
    rng = np.random.default_rng(5)
    tiny = random_weights(700, 0.02, 1)
    tiny.data = 10.0 ** rng.uniform(-12, 0, tiny.nnz)
    far = np.exp(rng.normal(scale=4, size=(700, 5)))
    yield "weights from 1e-12 to 1", sp.csr_array(tiny + tiny.T)
    yield "lognormal points", build_graph(far).weights
    yield "duplicates", build_graph(np.repeat(far[:70], 10, axis=0)).weights
    yield "isolated nodes", sp.block_diag([random_weights(600, 0.02, 3), sp.csr_array((9, 9))], format="csr")
    two = sp.block_diag([ring(610), ring(590)], format="lil")
    two[0, 700] = two[700, 0] = 1e-12
    yield "two rings and a thread", sp.csr_array(two)


@pytest.mark.parametrize("kind", ["normalized", "combinatorial"])
@pytest.mark.parametrize(("A", "k"), [pytest.param(A, k, id=f"{n}, {k}") for n, A in hostile_graphs() for k in (2, 12)])
def test_low_eigenpairs_of_hostile_graphs_agree_with_dense_ones(A, k, kind):
    L = build_laplacian(A, kind)
    values, vectors = low_eigenpairs(L, k)
    unit = abs(L).max()
    assert_allclose(values / unit, np.linalg.eigvalsh(L.toarray())[:k] / unit, atol=1e-9)
    assert_allclose(vectors.T @ vectors, np.eye(k), atol=1e-9)
    assert_allclose(L @ vectors / unit, vectors * values / unit, atol=3e-6)


@pytest.mark.parametrize("limit", ["FEW_PRODUCTS", "CYCLES"])
def test_eigenpairs_come_when_the_bound_of_products_is_met(monkeypatch, limit):
    """A ring of 3600 nodes is too long for one cycle; the vectors are orthonormal and low all the same."""
    monkeypatch.setattr(eigenpairs, limit, 1)
    monkeypatch.setattr(eigenpairs, "MOST_PRODUCTS", 1)
    L = build_laplacian(ring(3600 if limit == "FEW_PRODUCTS" else 600), "combinatorial")
    values, vectors = low_eigenpairs(L, 4)
    assert np.isfinite(values).all()
    assert values.max() < 0.1
    assert_allclose(vectors.T @ vectors, np.eye(4), atol=1e-9)


def test_of_many_components_the_largest_come_first():
    L = build_laplacian(sp.block_diag([ring(3)] * 5 + [ring(40), ring(50)], format="csr"))
    vectors = low_eigenpairs(L, 2)[1]
    assert (vectors[-50:, 0] > 0).all()
    assert (vectors[-90:-50, 1] > 0).all()
