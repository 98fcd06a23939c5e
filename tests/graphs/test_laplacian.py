"""Laplacians, against SciPy."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse.csgraph import laplacian as scipy_laplacian

from frpcag.graphs.laplacian import (
    LAPLACIANS,
    build_laplacian,
    degrees,
    diagonal_entries,
    edge_entries,
    laplacian_rows,
    null_vector,
)
from support.oracles import random_weights, ring

adjacencies = st.builds(
    random_weights,
    n=st.integers(2, 60),
    density=st.sampled_from([0.01, 0.1, 0.5]),
    seed=st.integers(0, 10_000),
)


@pytest.mark.parametrize(("kind", "normed"), [("normalized", True), ("combinatorial", False)])
@given(A=adjacencies)
def test_laplacian_agrees_with_scipy(kind, normed, A):
    assert_allclose(build_laplacian(A, kind).toarray(), scipy_laplacian(A.toarray(), normed=normed), atol=1e-12)


@pytest.mark.parametrize("kind", LAPLACIANS)
@given(A=adjacencies)
def test_laplacian_is_symmetric_to_the_last_bit(kind, A):
    L = build_laplacian(A, kind)
    assert_array_equal(L.toarray(), L.toarray().T)


@pytest.mark.parametrize("kind", LAPLACIANS)
@given(A=adjacencies)
def test_laplacian_is_positive_semidefinite(kind, A):
    L = build_laplacian(A, kind).toarray()
    assert np.linalg.eigvalsh(L)[0] >= -1e-12 * max(1, np.abs(L).max())


@given(adjacencies)
def test_normalized_spectrum_is_at_most_two(A):
    assert np.linalg.eigvalsh(build_laplacian(A, "normalized").toarray())[-1] <= 2 + 1e-12


@given(adjacencies)
def test_combinatorial_rows_sum_to_zero(A):
    assert_allclose(build_laplacian(A, "combinatorial").sum(axis=1), 0, atol=1e-12)


@given(adjacencies)
def test_square_roots_of_degrees_are_null_vector_of_normalized_laplacian(A):
    assert_allclose(build_laplacian(A, "normalized") @ np.sqrt(A.sum(axis=1)), 0, atol=1e-12)


@pytest.mark.parametrize("kind", LAPLACIANS)
def test_isolated_node_has_a_zero_row(kind):
    A = sp.block_diag([ring(5), sp.csr_array((1, 1))], format="csr")
    assert_array_equal(build_laplacian(A, kind).toarray()[5], 0)


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_normalized_laplacian_does_not_see_the_scale_of_the_weights(scale):
    A = random_weights(30, 0.3, 0)
    assert_allclose(build_laplacian(A * scale).toarray(), build_laplacian(A).toarray(), rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("kind", LAPLACIANS)
def test_laplacian_indices_are_sorted(kind):
    assert build_laplacian(random_weights(30, 0.3, 0), kind).has_canonical_format


def test_unknown_laplacian_is_refused_by_name():
    with pytest.raises(ValueError, match="laplacian='signless' is unknown"):
        build_laplacian(ring(4), "signless")


@pytest.mark.parametrize("kind", LAPLACIANS)
@given(A=adjacencies)
def test_null_vector_is_positive_and_mapped_to_zero(kind, A):
    null = null_vector(degrees(A), normalized=kind == "normalized")
    assert (null > 0).all()
    assert_allclose(build_laplacian(A, kind) @ null, 0, atol=1e-12)


@pytest.mark.parametrize("kind", LAPLACIANS)
def test_rows_of_a_block_are_those_of_the_whole(kind):
    A = random_weights(30, 0.1, 0)
    rows = laplacian_rows(A[:12], degrees(A), normalized=kind == "normalized")
    assert_array_equal(rows.toarray(), build_laplacian(A, kind).toarray()[:12])


@pytest.mark.parametrize("normalized", [True, False])
def test_entries_of_tensors_are_those_of_arrays(normalized):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    weights = np.exp(rng.uniform(-300, 300, size=200))
    ends = weights * np.exp(rng.uniform(0, 9, size=(2, 200)))  # a degree is no less than a weight of its node
    degree = np.append(ends[0], 0.0)
    for function, arrays in ((edge_entries, (weights, *ends)), (diagonal_entries, (degree,)), (null_vector, (degree,))):
        on_device = function(*map(torch.from_numpy, arrays), normalized=normalized)
        assert on_device.dtype == torch.float64
        # Square roots of PyTorch may be off by the last bit.
        assert_allclose(on_device.numpy(), function(*arrays, normalized=normalized), rtol=1e-15)
