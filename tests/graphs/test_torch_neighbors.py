"""Neighbours and graphs of tensors are those of arrays."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.neighbors import NearestNeighbors

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from frpcag import FRPCAG  # noqa: E402
from frpcag.engines.gammas import scale_free_gamma  # noqa: E402
from frpcag.engines.torch import tensor_gamma  # noqa: E402
from frpcag.graphs import (  # noqa: E402
    METRICS,
    build_graph,
    find_metric,
)
from frpcag.graphs.torch.search import prepare_tensor  # noqa: E402
from frpcag.linalg.torch_sparse import TorchCSR  # noqa: E402
from support.neighbors import approximate_neighbors, exact_neighbors  # noqa: E402


def points(n=300, p=20, seed=0, missing=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + 4 * rng.normal(size=(1 + n // 50, p))[rng.integers(0, 1 + n // 50, n)]
    X[rng.random((n, p)) < missing] = np.nan
    return X


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_exact_neighbours_are_those_of_scikit_learn(offset):
    X = points() + offset
    expected = NearestNeighbors(n_neighbors=7, algorithm="brute").fit(X - offset).kneighbors()
    indices, distances = exact_neighbors(torch.from_numpy(X), 7)
    assert_allclose(distances, expected[0], rtol=1e-5)
    assert (indices.numpy() == expected[1]).mean() > 0.99  # ties within rounding of float32 aside


def test_coinciding_points_are_neighbours_but_no_point_is_its_own():
    X = np.repeat(points(10), 5, axis=0)
    indices, distances = exact_neighbors(torch.from_numpy(X), 4)
    assert_allclose(distances, 0, atol=1e-6)
    assert not (indices.numpy() == np.arange(50)[:, None]).any()
    assert all(len(set(row)) == 4 for row in indices.tolist())


def test_rows_that_share_no_entry_have_a_graph_without_edges():
    X = np.where(np.eye(6, dtype=bool), np.arange(1.0, 7.0), np.nan)
    assert FRPCAG(n_neighbors=2).fit(torch.from_numpy(X)).sample_graph_.n_edges == 0


@pytest.mark.parametrize(("dtype", "scale"), [(torch.float64, 1e-310), (torch.float32, 1e-40)])
def test_points_as_small_as_can_be_are_scaled_by_a_unit_that_has_a_reciprocal(dtype, scale):
    # What `/` is on a GPU.
    X = torch.from_numpy(scale * points(60)).to(dtype)
    assert torch.isfinite(1 / torch.tensor(prepare_tensor(X).unit, dtype=dtype))
    assert exact_neighbors(X, 3)[1].min() > 0


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_distances_follow_the_scale_of_the_data(scale):
    X = points(60)
    found, expected = exact_neighbors(torch.from_numpy(scale * X), 3), exact_neighbors(torch.from_numpy(X), 3)
    assert_allclose(found[1] / scale, expected[1], rtol=1e-5)


def test_missing_entries_are_left_out_of_distances_as_on_the_host():
    X = points(missing=0.4)
    expected = exact_neighbors(X, 6)
    indices, distances = exact_neighbors(torch.from_numpy(X), 6)
    assert_allclose(distances, expected[1], rtol=1e-5)
    assert (indices.numpy() == expected[0]).mean() > 0.99


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_every_metric_finds_the_neighbours_of_the_host(name, missing):
    X = points(missing=missing)
    metric = find_metric(name, X)
    assert find_metric(name, torch.from_numpy(X)) == metric
    expected = exact_neighbors(X, 6, metric=metric)
    indices, distances = exact_neighbors(torch.from_numpy(X), 6, metric=metric)
    assert_allclose(distances, expected[1], rtol=1e-5)
    assert (indices.numpy() == expected[0]).mean() > 0.99


@pytest.mark.parametrize("name", ["l1", "truncated"])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_inverted_lists_find_nine_of_ten_robust_neighbours(name, missing):
    X = points(1200, 150, missing=missing)
    X[np.random.default_rng(1).random(X.shape) < 0.05] = 20.0
    metric, tensor = find_metric(name, X), torch.from_numpy(X.astype(np.float32))
    found = approximate_neighbors(tensor, 8, metric=metric, random_state=0)[0].numpy()
    exact = exact_neighbors(X, 8, metric=metric)[0]
    assert np.mean([len(set(a) & set(b)) / 8 for a, b in zip(found, exact, strict=True)]) >= 0.9


@pytest.mark.parametrize(("p", "missing"), [(12, 0.0), (130, 0.0), (20, 0.2)])
def test_inverted_lists_find_most_neighbours_and_the_same_in_every_call(p, missing):
    X = torch.from_numpy(points(1200, p, missing=missing).astype(np.float32))
    truth = exact_neighbors(X, 10)
    found, again = (approximate_neighbors(X, 10, random_state=0) for _ in range(2))
    assert float((found[1] <= truth[1][:, -1:] * (1 + 1e-5)).double().mean()) > 0.9
    assert torch.equal(found[0], again[0])
    assert all(len(set(row)) == 10 for row in found[0][::100].tolist())


def test_inverted_lists_cope_with_points_that_coincide():
    X = torch.zeros((1500, 3))
    X[:100] = torch.from_numpy(points(100, 3).astype(np.float32))
    indices, distances = approximate_neighbors(X, 5, random_state=0)
    assert_allclose(distances[100:], 0, atol=1e-6)
    assert torch.isfinite(distances).all()
    assert not bool((indices == torch.arange(1500)[:, None]).any())


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"laplacian": "combinatorial"},
        {"weights": "binary"},
        {"sigma": 3.0, "n_neighbors": 4},
    ],
)
def test_the_graph_of_a_tensor_is_that_of_the_array(axis, missing, options):
    X = points(120, 25, missing=missing)
    expected, graph = build_graph(X, axis=axis, **options), build_graph(torch.from_numpy(X), axis=axis, **options)
    assert graph.method == expected.method == "exact"
    back = graph.to_host()
    assert_allclose(back.weights.toarray(), expected.weights.toarray(), rtol=1e-5, atol=1e-6)
    assert_allclose(back.laplacian.toarray(), expected.laplacian.toarray(), atol=1e-5)
    assert_allclose(graph.null_vector, expected.null_vector, rtol=1e-5)
    assert_allclose(graph.lmax, expected.lmax, rtol=1e-3)
    assert graph.n_edges == expected.n_edges
    gammas = (
        tensor_gamma(graph.laplacian, torch.from_numpy(X), axis=axis),
        scale_free_gamma(expected.laplacian, X, axis=axis),
    )
    assert_allclose(*gammas, rtol=1e-5)


def test_given_graphs_are_copied_to_the_device():
    X = torch.from_numpy(points(30, 12))
    ring = sp.diags_array([1.0] * 29, offsets=1, shape=(30, 30))
    graph = build_graph(X, method=ring + ring.T)
    assert graph.method == "precomputed"
    assert_allclose(graph.weights.to_scipy().toarray(), (ring + ring.T).toarray())
    assert build_graph(X, axis=1, method="grid", feature_shape=(3, 4)).n_edges == 17
    assert build_graph(X, method=graph) is graph


def test_edges_kept_counts_shared_edges():
    X = points(80, 6)
    graphs = [build_graph(A) for A in (X, X + 0.5 * points(80, 6, seed=1))]
    tensors = [build_graph(torch.from_numpy(A)) for A in (X, X + 0.5 * points(80, 6, seed=1))]
    assert_allclose(tensors[0].edges_kept_by(tensors[1]), graphs[0].edges_kept_by(graphs[1]), atol=0.01)


def test_sparse_products_equal_those_of_scipy():
    L = build_graph(points(50, 5)).laplacian
    matrix = TorchCSR.of(L, "cpu")
    v = np.random.default_rng(0).normal(size=50)
    assert_allclose(matrix.matvec(torch.from_numpy(v)), L @ v, rtol=1e-12)
    assert_allclose(matrix.diagonal(), L.diagonal())
    at, columns, values = matrix.take(torch.tensor([7, 3]))
    dense = np.zeros((2, 50))
    dense[at, columns] = values
    assert_allclose(dense, L[[7, 3]].toarray())


def test_a_graph_of_another_size_is_refused():
    graph = build_graph(torch.from_numpy(points(20, 5)))
    with pytest.raises(ValueError, match="method is a graph of 20 nodes but X has n_samples=30"):
        build_graph(torch.from_numpy(points(30, 5)), method=graph)


def test_a_graph_of_tensors_goes_to_scipy_and_networkx_as_that_of_arrays():
    pytest.importorskip("networkx", reason="NetworkX is not installed")
    graph = build_graph(torch.from_numpy(points(30, 5)))
    host = graph.to_host()
    assert graph.weights.to_scipy().indices.dtype == graph.weights.to_scipy().indptr.dtype == np.int32
    assert_array_equal(graph.to_scipy().toarray(), host.weights.toarray())
    assert_array_equal(graph.laplacian.toarray(), host.laplacian.toarray())
    assert sorted(graph.to_networkx().edges(data="weight")) == sorted(host.to_networkx().edges(data="weight"))


def test_a_sparse_tensor_becomes_the_dense_array_it_stands_for():
    A = TorchCSR(torch.tensor([0, 1, 3]), torch.tensor([1, 0, 1], dtype=torch.int32), torch.tensor([2.0, 2.0, 5.0]))
    assert_array_equal(A.toarray(), [[0.0, 2.0], [2.0, 5.0]])
