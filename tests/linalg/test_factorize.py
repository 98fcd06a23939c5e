"""Facts about the Gram-matrix SVD."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils.extmath import svd_flip

from frpcag.dask.tasks import Here, Layout
from frpcag.linalg import factorize
from frpcag.linalg.factorize import fix_signs, gram_factors, gram_sum, gram_svd


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


def tensor_gram_svd(U, n_components=None, **options):
    """Factorise an array as a tensor in host memory."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    return tuple(A.numpy() for A in gram_svd(torch.from_numpy(U), n_components, **options))


def block_gram_svd(U, n_components=None):
    """Factorise an array in row blocks, as a fit on Dask does."""
    pytest.importorskip("distributed", reason="Dask is not installed")
    from frpcag import FRPCAG
    from frpcag.dask import DaskEngine
    from frpcag.dask.block_problem import RowBlocks

    layout = Layout.spread(Here(), [7, len(U) - 7])
    blocks = RowBlocks([U[:7], U[7:]], U.shape, U.dtype, layout)
    factors = DaskEngine(FRPCAG(n_components, center=False)).factors(blocks)
    return factors.W, factors.Sigma, factors.V


ENGINES = {"array": gram_svd, "tensor": tensor_gram_svd, "blocks": block_gram_svd}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("shape", [(50, 20), (20, 50)])
@pytest.mark.parametrize(
    ("dtype", "size"), [(np.float64, 1e200), (np.float64, 1e-200), (np.float32, 1e30), (np.float32, 1e-30)]
)
def test_entries_whose_squares_leave_the_range_are_factorised(engine, shape, dtype, size):
    U = low_rank(*shape, rank=4)
    U /= np.abs(U).max()
    W, Sigma, V = ENGINES[engine]((U * size).astype(dtype), 4)
    expected = np.linalg.svd(U, full_matrices=False)
    assert_allclose(Sigma.astype(np.float64) / size, expected[1][:4], rtol=1e-4)
    assert_allclose(np.abs(np.sum(V * expected[2][:4].T, axis=0)), 1, rtol=1e-4)
    if engine != "blocks":  # which project the rows where they are
        assert_allclose(np.abs(np.sum(W * expected[0][:, :4], axis=0)), 1, rtol=1e-4)


@pytest.mark.parametrize("size", [1e200, 1e-200])
def test_the_randomised_route_keeps_in_range_too(monkeypatch, size):
    monkeypatch.setattr(factorize, "_GRAM_SIDE", 10)
    U = low_rank(60, 40, rank=4)
    assert_allclose(gram_svd(U * size, 4, random_state=0)[1] / size, np.linalg.svd(U)[1][:4], rtol=1e-8)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("shape", [(50, 20), (20, 50)])
def test_signs_are_those_of_scikit_learn_on_every_engine(engine, shape):
    U = low_rank(*shape, rank=5, seed=1)
    left, _, right = np.linalg.svd(U, full_matrices=False)
    _, expected = svd_flip(left[:, :5].copy(), right[:5].copy(), u_based_decision=False)
    assert_allclose(ENGINES[engine](U, 5)[2], expected.T, atol=1e-6)


def test_signs_are_fixed_by_the_first_matrix_and_nothing_is_erased_or_written_to():
    V, W = np.array([[0.0, -3.0], [0.0, 2.0]]), np.array([[5.0, 1.0], [-6.0, 1.0]])
    before = V.copy(), W.copy()
    fixed_V, fixed_W = fix_signs(V, W)
    assert_array_equal(fixed_V, [[0.0, 3.0], [0.0, -2.0]])
    assert_array_equal(fixed_W, [[5.0, -1.0], [-6.0, -1.0]])
    for given, kept in zip((V, W), before, strict=True):
        assert_array_equal(given, kept)


def test_gram_sums_of_row_blocks_give_the_factors_of_the_whole(monkeypatch):
    monkeypatch.setattr(factorize, "_BLOCK", 5)
    U = low_rank(60, 8, rank=8)
    Sigma, V = gram_factors(sum(gram_sum(part) for part in np.array_split(U, 7)), None)
    assert_allclose(Sigma, np.linalg.svd(U)[1][: len(Sigma)], rtol=1e-9)
    assert_allclose(V, gram_svd(U)[2], atol=1e-9)


def test_a_zero_matrix_has_one_component_of_zero():
    W, Sigma, V = gram_svd(np.zeros((4, 3)))
    assert Sigma.tolist() == [0.0]
    assert np.isfinite(W).all()
    assert np.isfinite(V).all()


@pytest.mark.parametrize("bad", [0, 4, -1, 1.5, 0.0, True, "mle"])
def test_impossible_numbers_of_components_are_refused(bad):
    with pytest.raises(ValueError, match="n_components="):
        gram_svd(np.ones((5, 3)), bad)
