"""Facts about the Gram-matrix SVD."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from frpcag import factorize
from frpcag.factorize import gram_svd


def low_rank(n, p, rank, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(n, rank)) @ rng.normal(size=(rank, p))).astype(dtype)


@pytest.mark.parametrize("shape", [(50, 20), (20, 50), (30, 30)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_factors_are_those_of_the_dense_svd(shape, dtype):
    U = low_rank(*shape, rank=5, dtype=dtype)
    W, Sigma, V = gram_svd(U, 5)
    assert_allclose(Sigma, np.linalg.svd(U, compute_uv=False)[:5], rtol=1e-4)
    assert_allclose((W * Sigma) @ V.T, U, atol=1e-3)
    assert_allclose(W.T @ W, np.eye(5), atol=1e-4)
    assert_allclose(V.T @ V, np.eye(5), atol=1e-4)
    assert {A.dtype for A in (W, Sigma, V)} == {np.dtype(dtype)}


def test_rank_rule_counts_singular_values_above_the_threshold():
    U = np.diag([10.0, 1.0, 0.2, 0.05, 0.0])
    assert gram_svd(U)[1].size == 3
    assert gram_svd(U, rank_tol=0.001)[1].size == 4


def test_a_share_keeps_the_fewest_components_that_hold_it():
    U = np.diag([3.0, 2.0, 1.0])  # squares 9, 4, 1 of 14
    assert gram_svd(U, 9.5 / 14)[1].size == 2
    assert gram_svd(U, 8.5 / 14)[1].size == 1
    assert gram_svd(U, 0.999)[1].size == 3


def test_randomised_route_agrees_with_the_dense_svd(monkeypatch):
    monkeypatch.setattr(factorize, "_GRAM_SIDE", 10)
    U = low_rank(60, 40, rank=4)
    W, Sigma, V = gram_svd(U, 4, random_state=0)
    assert_allclose(Sigma, np.linalg.svd(U, compute_uv=False)[:4], rtol=1e-8)
    assert_allclose((W * Sigma) @ V.T, U, atol=1e-8)


def test_the_largest_entry_of_every_direction_is_positive():
    V = gram_svd(low_rank(40, 30, rank=6))[2]
    assert (V[np.abs(V).argmax(axis=0), np.arange(V.shape[1])] > 0).all()


def test_a_zero_matrix_has_one_component_of_zero():
    W, Sigma, V = gram_svd(np.zeros((4, 3)))
    assert Sigma.tolist() == [0.0]
    assert np.isfinite(W).all()
    assert np.isfinite(V).all()


@pytest.mark.parametrize("bad", [0, 4, -1, 1.5, 0.0, True, "mle"])
def test_impossible_numbers_of_components_are_refused(bad):
    with pytest.raises(ValueError, match="n_components="):
        gram_svd(np.ones((5, 3)), bad)
