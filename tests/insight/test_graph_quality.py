"""Graph quality against networks counted by hand and brute-force neighbours."""

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from frpcag import build_graph
from frpcag.graphs import graph_from_weights
from frpcag.insight import graph_quality, neighbor_recall


def test_quality_of_a_small_graph_is_as_counted_by_hand():
    A = np.zeros((6, 6))
    for i, j, w in [(0, 1, 1.0), (1, 2, 3.0), (3, 4, 0.5)]:  # a path of three, a pair, and node 5 alone
        A[i, j] = A[j, i] = w
    quality = graph_quality(graph_from_weights(A))
    assert (quality.n_nodes, quality.n_edges) == (6, 3)
    assert (quality.n_components, quality.largest_component, quality.n_isolated) == (3, 0.5, 1)
    assert quality.n_neighbors == (0, 1, 2)
    assert quality.degree == (0.0, 0.75, 4.0)


@pytest.mark.parametrize("axis", [0, 1])
def test_an_exact_graph_has_recall_one(axis):
    X = np.random.default_rng(0).normal(size=(60, 40)).astype(np.float32)
    graph = build_graph(X, axis=axis, n_neighbors=7, method="exact")
    assert neighbor_recall(graph, X, axis=axis, n_neighbors=7) == 1.0


def test_equal_distances_are_no_fault():
    X = np.arange(30.0)[:, None] % 3  # ten copies of each of three points
    assert neighbor_recall(build_graph(X, n_neighbors=4, method="exact"), X, n_neighbors=4) == 1.0


def test_recall_is_the_share_of_true_neighbours_linked():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 5))
    A = np.triu((rng.random((50, 50)) < 0.3).astype(float), 1)
    graph = graph_from_weights(A + A.T)
    near = NearestNeighbors(n_neighbors=6).fit(X).kneighbors(return_distance=False)
    expected = np.mean([graph.weights[[i]].toarray()[0, near[i]] > 0 for i in range(50)])
    assert neighbor_recall(graph, X, n_neighbors=6) == pytest.approx(expected)


def test_recall_on_a_sample_is_near_that_of_all_nodes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    A = build_graph(X, n_neighbors=8, method="exact").weights.toarray() > 0
    A = np.triu(A & (rng.random(A.shape) < 0.7), 1)
    graph = graph_from_weights((A + A.T).astype(float))
    every = neighbor_recall(graph, X, n_neighbors=8)
    some = neighbor_recall(graph, X, n_neighbors=8, n_sample=200, random_state=1)
    assert 0.6 < every < 0.8
    assert abs(some - every) < 0.03


def test_recall_refuses_another_graph_and_too_many_neighbours():
    X = np.random.default_rng(0).normal(size=(10, 4))
    graph = build_graph(X, n_neighbors=2)
    with pytest.raises(ValueError, match="X has 4 columns but the graph 10 nodes"):
        neighbor_recall(graph, X, axis=1)
    with pytest.raises(ValueError, match="n_neighbors=10 must lie between 1 and 9"):
        neighbor_recall(graph, X)
