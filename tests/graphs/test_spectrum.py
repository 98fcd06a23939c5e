"""The estimate of the largest eigenvalue, against dense eigenvalues."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.sparse.csgraph import laplacian as scipy_laplacian
from threadpoolctl import threadpool_limits

from frpcag.spectrum import largest_eigenvalue
from oracles import random_sparse


def random_laplacian(n, density, normed, seed):
    A = random_sparse(n, density, seed)
    A = A + A.T
    A.setdiag(0)
    return sp.csr_array(scipy_laplacian(A, normed=normed))


def dense_lmax(L):
    return np.linalg.eigvalsh(L.toarray())[-1]


graphs = st.builds(
    random_laplacian,
    n=st.integers(2, 150),
    density=st.sampled_from([0.005, 0.05, 0.3]),  # the first leaves most graphs in many pieces
    normed=st.booleans(),
    seed=st.integers(0, 10_000),
)


@given(graphs)
@example(random_laplacian(86, 0.05, True, 125))  # a second eigenvalue close below catches an early stop
def test_estimate_is_never_below_the_largest_eigenvalue(L):
    lmax = dense_lmax(L)
    assert largest_eigenvalue(L) >= lmax * (1 - 1e-12)


@given(graphs)
def test_estimate_is_at_most_a_few_percent_above_the_largest_eigenvalue(L):
    assert largest_eigenvalue(L) <= 1.04 * max(dense_lmax(L), 0)


def test_largest_eigenvalue_is_found_in_a_tiny_component_of_a_large_graph():
    # One edge by itself has eigenvalue 2; the 600 other nodes stay near 1.
    large = random_laplacian(600, 0.1, True, 0)
    L = sp.block_diag([large, [[1.0, -1.0], [-1.0, 1.0]]], format="csr")
    assert dense_lmax(large) < 1.5
    assert 2 <= largest_eigenvalue(L) <= 2.04


def test_gershgorin_bound_caps_the_estimate():
    # A single edge meets its bound exactly, so no margin is added.
    assert largest_eigenvalue(sp.csr_array([[3.0, -3.0], [-3.0, 3.0]])) == 6.0


@pytest.mark.parametrize("shape", [(0, 0), (1, 1), (50, 50)])
def test_zero_matrix_has_largest_eigenvalue_zero(shape):
    assert largest_eigenvalue(sp.csr_array(shape)) == 0.0


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_estimate_scales_with_the_matrix(scale):
    L = random_laplacian(60, 0.1, False, 1)
    assert largest_eigenvalue(L * scale) == pytest.approx(largest_eigenvalue(L) * scale, rel=1e-6)


def test_estimate_does_not_depend_on_the_number_of_threads():
    L = random_laplacian(3000, 0.003, True, 2)
    with threadpool_limits(1):
        one = largest_eigenvalue(L)
    with threadpool_limits(2):
        two = largest_eigenvalue(L)
    assert one == two
