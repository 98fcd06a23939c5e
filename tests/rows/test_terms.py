"""Single rows against fixed ones: minimisers of their own problem, each by itself."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from frpcag.graphs import build_graph
from frpcag.losses import LOSSES
from frpcag.problem import Problem, gradient, prox
from frpcag.rows.terms import MOST_STEPS, RowTerms, solve_linked

GAMMA2 = 0.7


def linked(*, loss="l1", feature=True, n=9, p=14, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)).astype(dtype)
    X[rng.random(X.shape) < 0.15] = np.nan
    graph = build_graph(rng.normal(size=(30, p)), axis=1, n_neighbors=3)
    terms = RowTerms(loss, 0.4, graph.laplacian, GAMMA2, graph.lmax) if feature else RowTerms(loss, 0.4)
    pull = rng.uniform(0.2, 2.0, n)
    middle = rng.normal(size=X.shape).astype(dtype)
    return X, terms, pull, middle, graph


@pytest.mark.parametrize("feature", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_result_is_a_fixed_point_of_the_proximal_gradient_step(loss, feature):
    X, terms, pull, middle, graph = linked(loss=loss, feature=feature)
    U = solve_linked(X, terms, pull=pull, middle=middle)
    L2, null = (graph.laplacian, graph.null_vector) if feature else (None, None)
    problem = Problem(X, None, L2, 0.0, GAMMA2, loss=loss, huber_delta=0.4, null2=null)
    slope = gradient(problem, U) + 2 * pull[:, None] * (U - middle)
    assert_allclose(prox(problem, U - 0.1 * slope, 0.1), U, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_do_not_depend_on_each_other_by_a_bit(dtype):
    X, terms, pull, middle, _ = linked(n=150, dtype=dtype)
    together = solve_linked(X, terms, pull=pull, middle=middle, n_jobs=2)
    assert together.dtype == dtype
    for i in (0, 70, 149):
        at = slice(i, i + 1)
        assert_array_equal(solve_linked(X[at], terms, pull=pull[at], middle=middle[at]), together[at])


def test_a_row_without_any_link_or_graph_stays_as_it_is():
    X = np.array([[1.0, np.nan, -3.0]])
    found = solve_linked(X, RowTerms(), pull=np.zeros(1), middle=np.nan_to_num(X))
    assert_array_equal(found, [[1.0, 0.0, -3.0]])


@pytest.mark.parametrize("loss", LOSSES)
def test_tensors_take_the_same_steps(loss):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from frpcag.backends.torch.linked_rows import solve_rows
    from frpcag.backends.torch.operations import scaled
    from frpcag.linalg.torch_sparse import TorchCSR

    X, terms, pull, middle, _ = linked(loss=loss)
    L2 = scaled(TorchCSR.of(terms.L2, "cpu"), 1.0)
    found = solve_rows(torch.from_numpy(X), torch.from_numpy(middle), L2, loss, terms.steps(pull), MOST_STEPS)
    assert_allclose(found, solve_linked(X, terms, pull=pull, middle=middle), atol=1e-9)


@pytest.mark.parametrize("loss", ["l1", "l2"])
def test_a_level_of_all_rows_only_shifts_the_result(loss):
    X, _, pull, middle, _ = linked(loss=loss)
    graph = build_graph(X, axis=1, n_neighbors=3, laplacian="combinatorial")  # it does not see a level
    terms = RowTerms(loss, 0.4, graph.laplacian, GAMMA2, graph.lmax)
    U = solve_linked(X, terms, pull=0.05 * pull, middle=middle)
    assert_allclose(solve_linked(X + 1e6, terms, pull=0.05 * pull, middle=middle + 1e6) - 1e6, U, atol=1e-5)


@pytest.mark.parametrize("factor", [1e-45, 1e45])
def test_gammas_beyond_the_range_of_float32_leave_no_infinities(factor):
    X, _, pull, middle, graph = linked(dtype=np.float32)
    terms = RowTerms("l1", 0.4, graph.laplacian, factor * GAMMA2, graph.lmax)
    found = solve_linked(X, terms, pull=factor * pull, middle=middle)
    if factor < 1:
        assert_array_equal(found[~np.isnan(X)], X[~np.isnan(X)])
    assert np.isfinite(found).all()
    assert np.abs(found).max() <= max(np.nanmax(np.abs(X)), np.abs(middle).max())


def test_an_edge_of_a_row_that_joins_weighs_as_in_the_graph_with_that_row():
    from frpcag.graphs import Links, graph_from_weights

    rng = np.random.default_rng(3)
    points = rng.normal(size=(25, 2))
    graph = build_graph(points, n_neighbors=4)
    indices, distances = np.array([[3, 7, 11]]), np.array([[0.1, 0.2, 0.4]])
    diagonal, links = Links(graph).of(indices, distances, joined=True)
    weights = np.exp(-np.square(distances / max(distances.mean(), graph.sigma)))
    row = sp.csr_array((weights[0], ([0, 0, 0], indices[0])), shape=(1, 25))
    larger = graph_from_weights(sp.csr_array(sp.block_array([[graph.weights, row.T], [row, None]])))
    expected = larger.laplacian.toarray()[-1]
    assert_allclose(links[0], -expected[indices[0]], atol=1e-12)
    assert_allclose(diagonal, expected[-1])
