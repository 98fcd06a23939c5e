"""Graphs go out to other libraries and come in from them, with nothing lost."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.cluster import DBSCAN

from frpcag import FRPCAG, build_graph
from frpcag.graphs import graph_from_weights


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(30, 4))


@pytest.fixture
def graph(X):
    return build_graph(X, n_neighbors=4)


def as_networkx(graph):
    pytest.importorskip("networkx", reason="NetworkX is not installed")
    return graph.to_networkx()


def as_igraph(graph):
    pytest.importorskip("igraph", reason="igraph is not installed")
    return graph.to_igraph()


def as_edges(graph):
    both = graph.weights.tocoo()
    return np.column_stack([both.row, both.col, both.data])


def as_upper_edges(graph):
    edges = as_edges(graph)
    return edges[edges[:, 0] < edges[:, 1]].tolist()


@pytest.mark.parametrize("convert", [as_networkx, as_igraph, as_edges, as_upper_edges])
def test_a_graph_of_another_library_fits_like_its_weights(X, graph, convert):
    given = FRPCAG(sample_graph=graph.weights).fit(X)
    again = FRPCAG(sample_graph=convert(graph)).fit(X)
    assert_allclose(again.sample_graph_.weights.toarray(), graph.weights.toarray(), rtol=1e-15)
    assert_allclose(again.low_rank_, given.low_rank_, atol=1e-12)


def test_nodes_of_networkx_may_come_in_any_order_and_have_names(X, graph):
    networkx = pytest.importorskip("networkx", reason="NetworkX is not installed")
    shuffled = networkx.Graph()
    shuffled.add_nodes_from(reversed(range(30)))
    shuffled.add_weighted_edges_from(graph.to_networkx().edges(data="weight"))
    named = networkx.relabel_nodes(graph.to_networkx(), {i: f"n{i}" for i in range(30)})
    for other in (shuffled, named):
        assert_allclose(build_graph(X, method=other).weights.toarray(), graph.weights.toarray(), rtol=1e-15)


def test_edges_without_weights_weigh_one(X):
    A = build_graph(X, method=[(0, 1), (1, 2), (2, 1), (3, 4)]).weights.toarray()
    assert A.sum() == 6
    assert A[0, 1] == A[1, 0] == A[1, 2] == A[3, 4] == 1


@pytest.mark.parametrize("edges", [[(0, 99), (1, 2), (2, 3)], [(0.5, 1.0), (1, 2), (2, 3)], [(-1, 1), (1, 2), (0, 2)]])
def test_edges_to_nodes_that_are_not_there_are_refused(X, edges):
    with pytest.raises(ValueError, match="sample_graph is a list of edges with nodes that are not in 0 to 29"):
        FRPCAG(sample_graph=edges).fit(X)


def test_directed_graphs_are_refused(X):
    networkx = pytest.importorskip("networkx", reason="NetworkX is not installed")
    with pytest.raises(ValueError, match="directed"):
        FRPCAG(sample_graph=networkx.DiGraph([(0, 1)])).fit(X)


def test_igraph_has_every_node_and_edge(graph):
    other = as_igraph(graph)
    assert (other.vcount(), other.ecount()) == (30, graph.n_edges)
    assert sum(other.es["weight"]) == pytest.approx(graph.weights.sum() / 2)


def test_distances_are_those_of_the_points_along_the_edges(X, graph):
    D = graph.distances(X)
    linked = graph.weights.toarray() > 0
    assert_allclose(D.toarray()[linked], cdist(X, X)[linked])
    mutual = np.isclose(graph.weights.toarray(), np.exp(-((cdist(X, X) / graph.sigma) ** 2)))
    both = linked & mutual
    assert_allclose(graph.distances().toarray()[both], cdist(X, X)[both])


def test_distances_go_where_a_precomputed_metric_is_asked_for(X):
    X = np.r_[X, X + 50]
    graph = build_graph(X, n_neighbors=8)
    labels = DBSCAN(eps=5, min_samples=3, metric="precomputed").fit_predict(graph.distances(X))
    assert len(set(labels[:30])) == len(set(labels[30:])) == 1
    assert labels[0] != labels[-1]


def test_distances_of_other_weights_need_the_points(X):
    with pytest.raises(ValueError, match="pass X, one row a node"):
        build_graph(X, weights="binary").distances()


@pytest.mark.parametrize(
    "edges", [[(0, 1), (1, 2)], [(0, 1, 0.5), (1, 2, 0.5), (2, 3, 0.5)]], ids=["pairs", "weighted"]
)
def test_few_edges_are_edges_where_there_are_more_nodes(X, edges):
    weights = build_graph(X, method=edges).weights
    assert (weights.shape, weights.nnz) == ((30, 30), 2 * len(edges))


@pytest.mark.parametrize(
    "edges", [[(0, 1), (1, 2)], [(0, 1, 0.5), (1, 2, 0.5), (0, 2, 0.5)]], ids=["pairs", "weighted"]
)
def test_edges_that_might_be_a_matrix_are_refused(X, edges):
    words = rf"has shape \({len(edges)}, .* a list of {len(edges)} edges; pass a matrix as .* both ways"
    with pytest.raises(ValueError, match="A " + words):
        graph_from_weights(edges)
    if len(edges) == 3:
        with pytest.raises(ValueError, match="method " + words):
            build_graph(X[:3], method=edges)


@pytest.mark.parametrize("A", [[[0, 2], [2, 0]], [[0, 1, 0], [1, 0, 1], [0, 1, 0]]], ids=["2", "3"])
def test_small_matrices_are_no_edges(X, A):
    assert_array_equal(graph_from_weights(A).weights.toarray(), A)
    assert_array_equal(build_graph(X[: len(A)], method=A).weights.toarray(), A)
    with pytest.raises(ValueError, match="is a matrix of"):
        build_graph(X, method=A)
