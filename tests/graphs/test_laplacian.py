"""Laplacians and their low eigenpairs, against SciPy and dense eigenvectors."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse.csgraph import laplacian as scipy_laplacian

from frpcag.graphs.laplacian import LAPLACIANS, laplacian, low_eigenpairs
from oracles import random_sparse


def random_weights(n, density, seed):
    A = random_sparse(n, density, seed)
    A = A + A.T
    A.setdiag(0)
    A.eliminate_zeros()
    return sp.csr_array(A)


def ring(n):
    nodes = np.arange(n)
    A = sp.csr_array((np.ones(n), (nodes, (nodes + 1) % n)), shape=(n, n))
    return sp.csr_array(A + A.T)


def graph_of_grid(side):
    path = sp.diags_array([np.ones(side - 1)] * 2, offsets=[-1, 1])
    one = sp.eye_array(side)
    return sp.csr_array(sp.kron(path, one) + sp.kron(one, path))


adjacencies = st.builds(
    random_weights,
    n=st.integers(2, 60),
    density=st.sampled_from([0.01, 0.1, 0.5]),
    seed=st.integers(0, 10_000),
)


@pytest.mark.parametrize(("kind", "normed"), [("normalized", True), ("combinatorial", False)])
@given(A=adjacencies)
def test_laplacian_agrees_with_scipy(kind, normed, A):
    assert_allclose(laplacian(A, kind).toarray(), scipy_laplacian(A.toarray(), normed=normed), atol=1e-12)


@pytest.mark.parametrize("kind", LAPLACIANS)
@given(A=adjacencies)
def test_laplacian_is_symmetric_to_the_last_bit(kind, A):
    L = laplacian(A, kind)
    assert_array_equal(L.toarray(), L.toarray().T)


@pytest.mark.parametrize("kind", LAPLACIANS)
@given(A=adjacencies)
def test_laplacian_is_positive_semidefinite(kind, A):
    L = laplacian(A, kind).toarray()
    assert np.linalg.eigvalsh(L)[0] >= -1e-12 * max(1, np.abs(L).max())


@given(adjacencies)
def test_normalized_spectrum_is_at_most_two(A):
    assert np.linalg.eigvalsh(laplacian(A, "normalized").toarray())[-1] <= 2 + 1e-12


@given(adjacencies)
def test_combinatorial_rows_sum_to_zero(A):
    assert_allclose(laplacian(A, "combinatorial").sum(axis=1), 0, atol=1e-12)


@given(adjacencies)
def test_square_roots_of_degrees_are_null_vector_of_normalized_laplacian(A):
    assert_allclose(laplacian(A, "normalized") @ np.sqrt(A.sum(axis=1)), 0, atol=1e-12)


@pytest.mark.parametrize("kind", LAPLACIANS)
def test_isolated_node_has_a_zero_row(kind):
    A = sp.block_diag([ring(5), sp.csr_array((1, 1))], format="csr")
    assert_array_equal(laplacian(A, kind).toarray()[5], 0)


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_normalized_laplacian_does_not_see_the_scale_of_the_weights(scale):
    A = random_weights(30, 0.3, 0)
    assert_allclose(laplacian(A * scale).toarray(), laplacian(A).toarray(), rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("kind", LAPLACIANS)
def test_laplacian_indices_are_sorted(kind):
    assert laplacian(random_weights(30, 0.3, 0), kind).has_canonical_format


def test_unknown_laplacian_is_refused_by_name():
    with pytest.raises(ValueError, match="laplacian='signless' is unknown"):
        laplacian(ring(4), "signless")


def test_low_eigenvalues_of_a_ring_are_the_closed_form():
    n = 700  # above the dense limit
    expected = np.sort(2 - 2 * np.cos(2 * np.pi * np.arange(n) / n))[:5]
    assert_allclose(low_eigenpairs(laplacian(ring(n), "combinatorial"), 5)[0], expected, atol=1e-9)


def test_double_eigenvalues_of_a_square_grid_are_found_twice():
    path = 2 - 2 * np.cos(np.pi * np.arange(25) / 25)
    expected = np.sort(np.add.outer(path, path), axis=None)[:8]
    A = graph_of_grid(25)
    assert_allclose(low_eigenpairs(laplacian(A, "combinatorial"), 8)[0], expected, atol=1e-9)


@pytest.mark.parametrize("n", [50, 600])
def test_low_eigenvalues_agree_with_dense_ones(n):
    L = laplacian(random_weights(n, 8 / n, 3))
    assert_allclose(low_eigenpairs(L, 6)[0], np.linalg.eigvalsh(L.toarray())[:6], atol=1e-9)


@pytest.mark.parametrize("n", [50, 600])
def test_low_eigenvectors_satisfy_the_eigenvalue_equation(n):
    L = laplacian(random_weights(n, 8 / n, 3))
    values, vectors = low_eigenpairs(L, 6)
    assert_allclose(L @ vectors, vectors * values, atol=1e-7)


@pytest.mark.parametrize("n", [50, 600])
def test_low_eigenvectors_are_orthonormal(n):
    vectors = low_eigenpairs(laplacian(random_weights(n, 8 / n, 3)), 6)[1]
    assert_allclose(vectors.T @ vectors, np.eye(6), atol=1e-9)


def test_zero_eigenvalue_is_found_once_for_each_component():
    L = laplacian(sp.block_diag([random_weights(600, 0.05, seed) for seed in range(3)] + [ring(7)], format="csr"))
    assert (low_eigenpairs(L, 6)[0] < 1e-9).sum() == 4


def test_eigenvectors_live_on_one_component_each():
    L = laplacian(sp.block_diag([random_weights(600, 0.05, seed) for seed in range(2)], format="csr"))
    vectors = low_eigenpairs(L, 4)[1]
    assert_array_equal(np.abs(vectors[:600]).max(axis=0) * np.abs(vectors[600:]).max(axis=0), 0)


def test_largest_entry_of_each_eigenvector_is_positive():
    vectors = low_eigenpairs(laplacian(random_weights(600, 0.02, 3)), 6)[1]
    assert (vectors[np.abs(vectors).argmax(axis=0), range(6)] > 0).all()


def test_low_eigenpairs_repeat_to_the_last_bit():
    L = laplacian(random_weights(600, 0.02, 3))
    assert_array_equal(low_eigenpairs(L, 4)[1], low_eigenpairs(L, 4)[1])


@pytest.mark.parametrize("k", [1, 4, 5])
def test_as_many_eigenpairs_as_nodes_can_be_asked_for(k):
    assert low_eigenpairs(laplacian(ring(5)), k)[1].shape == (5, k)


@pytest.mark.parametrize("k", [0, 6])
def test_more_eigenpairs_than_nodes_are_refused(k):
    with pytest.raises(ValueError, match=f"k={k} must be between 1 and n_nodes=5"):
        low_eigenpairs(laplacian(ring(5)), k)
