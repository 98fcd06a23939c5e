"""build_graph: every kind of graph, its properties, and what it refuses."""

import re
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import SpectralClustering
from sklearn.feature_extraction.image import grid_to_graph
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import KNeighborsTransformer, kneighbors_graph

from frpcag.graphs import GRAPHS, Graph, GraphOptions, build_graph, graph_from_weights, graph_of

KINDS = sorted(GRAPHS)


def points(n=60, p=8, seed=0):
    return np.random.default_rng(seed).standard_normal((n, p))


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.mark.parametrize("laplacian", ["normalized", "combinatorial"])
def test_weights_are_symmetric_to_the_last_bit(kind, laplacian):
    A = build_graph(points(), method=kind, feature_shape=(6, 10), laplacian=laplacian).weights.toarray()
    assert_array_equal(A, A.T)


def test_weights_are_canonical_csr_of_float64(kind):
    A = build_graph(points(), method=kind, feature_shape=(6, 10)).weights
    assert (A.format, A.dtype, A.has_canonical_format) == ("csr", np.float64, True)


def test_diagonal_of_the_weights_is_empty(kind):
    A = build_graph(points(), method=kind, feature_shape=(6, 10)).weights.tocoo()
    assert (A.row != A.col).all()


def test_normalized_spectrum_is_within_zero_and_two(kind):
    values = np.linalg.eigvalsh(build_graph(points(), method=kind, feature_shape=(6, 10)).laplacian.toarray())
    assert values[0] > -1e-12
    assert values[-1] < 2 + 1e-12


def test_lmax_bounds_the_spectrum(kind):
    graph = build_graph(points(), method=kind, feature_shape=(6, 10))
    lmax = np.linalg.eigvalsh(graph.laplacian.toarray())[-1]
    assert lmax * (1 - 1e-12) <= graph.lmax <= 1.04 * lmax


def test_features_are_linked_like_the_samples_of_the_transpose(kind):
    X = points()
    ours = build_graph(X, axis=1, method=kind, feature_shape=(2, 4), n_neighbors=3)
    theirs = build_graph(X.T, axis=0, method=kind, feature_shape=(2, 4), n_neighbors=3)
    assert_array_equal(ours.weights.toarray(), theirs.weights.toarray())


@given(
    n=st.integers(3, 40),
    p=st.integers(1, 6),
    distinct=st.integers(1, 40),
    k=st.integers(1, 5),
    seed=st.integers(0, 99),
)
@settings(deadline=None, max_examples=40)
def test_spectrum_of_points_with_duplicates_is_within_zero_and_two(n, p, distinct, k, seed):
    X = points(distinct, p, seed)[np.arange(n) % distinct]
    values = np.linalg.eigvalsh(build_graph(X, n_neighbors=min(k, n - 1)).laplacian.toarray())
    assert values[0] > -1e-12
    assert values[-1] < 2 + 1e-12


@given(st.permutations(range(30)))
@settings(deadline=None, max_examples=20)
def test_permuting_samples_permutes_the_graph(order):
    X = points(30)
    expected = build_graph(X, n_neighbors=4).weights.toarray()[np.ix_(order, order)]
    # The mean is added up in another order: float32 rounds some coordinates to the other side.
    assert_allclose(build_graph(X[order], n_neighbors=4).weights.toarray(), expected, rtol=1e-5)


def test_binary_graph_agrees_with_scikit_learn():
    A = kneighbors_graph(points(), 5, include_self=False).toarray()
    graph = build_graph(points(), n_neighbors=5, weights="binary", method="exact")
    assert_array_equal(graph.weights.toarray(), (A + A.T) / 2)


def test_gaussian_graph_agrees_with_the_formula_of_the_paper():
    D = kneighbors_graph(points(), 5, mode="distance", include_self=False)
    sigma = D.data.mean()
    A = D.copy()
    A.data = np.exp(-((D.data / sigma) ** 2))
    expected = (A + A.T).toarray() / 2
    assert_allclose(build_graph(points(), n_neighbors=5).weights.toarray(), expected, rtol=1e-5)


def test_sigma_is_the_mean_length_of_the_edges():
    D = kneighbors_graph(points(), 5, mode="distance", include_self=False)
    assert build_graph(points(), n_neighbors=5).sigma == pytest.approx(D.data.mean(), rel=1e-6)


def test_given_sigma_is_used():
    assert build_graph(points(), sigma=2.5).sigma == 2.5


def test_an_edge_found_from_one_end_weighs_half_of_one_found_from_both():
    assert set(build_graph(points(), weights="binary").weights.data) == {0.5, 1.0}


def test_coinciding_points_get_unit_weights():
    assert set(build_graph(np.ones((20, 3)), n_neighbors=19).weights.data) == {1.0}


def test_far_outlier_keeps_its_edges():
    X = np.vstack([points(50), np.full((1, 8), 1e9)])
    assert (build_graph(X, n_neighbors=5, sigma=1.0).weights[[50]].data > 0).sum() == 5


@pytest.mark.parametrize("tensor", [False, True])
def test_a_search_is_called_what_it_is(tensor):
    as_given = pytest.importorskip("torch", reason="PyTorch is not installed").from_numpy if tensor else np.asarray
    few, many = as_given(points(100)), as_given(points(1500, 40))
    assert build_graph(few, method="approximate").method == "exact"
    exact, asked = (build_graph(many, method=method, random_state=0) for method in ("exact", "approximate"))
    assert (exact.method, asked.method) == ("exact", "approximate")
    assert (exact.to_scipy() != asked.to_scipy()).nnz > 0
    assert asked.edges_kept_by(exact) > 0.7


def test_auto_tells_which_search_it_chose():
    assert build_graph(points()).method == "exact"


@pytest.mark.usefixtures("two_threads")
def test_same_random_state_gives_the_same_graph_with_any_number_of_threads():
    X = points(3000, 20)
    one, two = (build_graph(X, method="approximate", random_state=3, n_jobs=n).laplacian for n in (1, 2))
    assert_array_equal(one.data, two.data)


@pytest.mark.parametrize("data", [np.asfortranarray, sp.csr_array, sp.csc_array, np.ndarray.tolist])
@pytest.mark.parametrize("axis", [0, 1])
def test_container_of_the_data_does_not_matter(data, axis):
    X = points()
    graph = build_graph(data(X), axis=axis, n_neighbors=4)
    assert_allclose(graph.weights.toarray(), build_graph(X, axis=axis, n_neighbors=4).weights.toarray(), rtol=1e-6)


def test_grid_agrees_with_scikit_learn():
    expected = grid_to_graph(4, 7, return_as=np.ndarray, dtype=int)
    np.fill_diagonal(expected, 0)
    graph = build_graph(np.empty((1, 28)), axis=1, method="grid", feature_shape=(4, 7))
    assert_array_equal(graph.weights.toarray(), expected)


def test_grid_of_missing_values_is_built():
    assert build_graph(np.full((2, 6), np.nan), axis=1, method="grid", feature_shape=(2, 3)).n_edges == 7


def test_repr_is_one_short_line():
    graph = build_graph(np.empty((6, 1)), method="grid", feature_shape=(2, 3))
    assert repr(graph) == "Graph(n_nodes=6, n_edges=7, method='grid', sigma=None)"


def test_graph_is_returned_as_it_is():
    graph = build_graph(points())
    assert build_graph(points(), method=graph) is graph


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.coo_matrix])
def test_given_adjacency_is_kept_but_for_its_diagonal(form):
    A = np.array([[5.0, 1.0, 0.0], [1.0, 0.0, 2.0], [0.0, 2.0, 0.0]])
    expected = A - np.diag(np.diag(A))
    assert_array_equal(build_graph(points(3), method=form(A)).weights.toarray(), expected)


def test_given_adjacency_is_not_written_to():
    A = sp.csr_array(np.ones((3, 3)))
    graph_from_weights(A)
    assert_array_equal(A.toarray(), 1.0)


def test_adjacency_symmetric_to_rounding_becomes_symmetric_to_the_last_bit():
    A = np.array([[0.0, 1.0], [1.0 + 1e-12, 0.0]])
    weights = graph_from_weights(A).weights.toarray()
    assert weights[0, 1] == weights[1, 0]


def test_transformer_gives_the_graph_of_our_own_exact_search():
    ours = build_graph(points(), n_neighbors=5, method="exact").weights.toarray()
    theirs = build_graph(points(), method=KNeighborsTransformer(n_neighbors=5)).weights.toarray()
    assert_allclose(theirs, ours, rtol=1e-5)


def test_transformer_is_not_fitted_itself():
    transformer = KNeighborsTransformer(n_neighbors=5)
    build_graph(points(), method=transformer)
    assert not hasattr(transformer, "n_features_in_")


def test_transformer_keeps_duplicates_as_neighbors():
    X = np.repeat(points(10), 3, axis=0)
    A = build_graph(X, method=KNeighborsTransformer(n_neighbors=2)).weights.toarray()
    assert_array_equal(A > 0, np.kron(np.eye(10), np.ones((3, 3)) - np.eye(3)) > 0)


def test_connectivity_of_a_transformer_is_taken_as_weights():
    transformer = KNeighborsTransformer(n_neighbors=5, mode="connectivity")
    A = kneighbors_graph(points(), 4, include_self=False).toarray()  # its 5 count the point itself
    assert_array_equal(build_graph(points(), method=transformer).weights.toarray(), (A + A.T) / 2)


def test_features_can_be_linked_by_a_transformer():
    assert build_graph(points(), axis=1, method=KNeighborsTransformer(n_neighbors=3)).n_nodes == 8


class DenseTransformer(KNeighborsTransformer):
    def fit_transform(self, X, y=None):
        return X


NAN, INF = points(), points()
NAN[3], INF[3, 2] = np.nan, -np.inf
ASYMMETRIC = np.triu(np.ones((60, 60)))
REFUSED = {
    "n_neighbors=60 must be smaller than n_samples=60; pass at most 59 or add samples.": {"n_neighbors": 60},
    "n_neighbors=8 must be smaller than n_features=8; pass at most 7 or add features.": {
        "axis": 1,
        "n_neighbors": 8,
    },
    "n_neighbors=0 must be an integer of at least 1": {"n_neighbors": 0},
    "n_neighbors=2.0 must be an integer": {"n_neighbors": 2.0},
    "n_neighbors=True must be an integer": {"n_neighbors": True},
    "X has n_samples=1 but a graph needs at least 2 nodes": {"X": points(1)},
    "node 3 of X has no observed entry": {"X": NAN},
    "X has 1 infinite entries but distances need finite ones": {"X": INF},
    "X has 1 infinite entries": {"X": sp.csr_array(INF)},
    "X has 1 dimension(s)": {"X": np.arange(5.0)},
    "X has shape (60, 0)": {"X": np.empty((60, 0))},
    "X has dtype complex128": {"X": points() * 1j},
    "axis=2 is unknown": {"axis": 2},
    "method='flann' is unknown": {"method": "flann"},
    "weights='cosine' is unknown": {"weights": "cosine"},
    "laplacian='signless' is unknown": {"laplacian": "signless"},
    "sigma=-1.0 must be a positive finite number or 'auto'": {"sigma": -1.0},
    "sigma=0 must be": {"sigma": 0},
    "sigma=nan must be": {"sigma": np.nan},
    "sigma='median' must be": {"sigma": "median"},
    "feature_shape=None does not fit method='grid'": {"method": "grid"},
    "feature_shape=(6, 9) has 54 pixels but X has n_samples=60": {"method": "grid", "feature_shape": (6, 9)},
    "feature_shape=60 must be two integers": {"method": "grid", "feature_shape": 60},
    "feature_shape=(6.0, 10.0) must be two integers": {"method": "grid", "feature_shape": (6.0, 10.0)},
    "method has 5 nodes but X has 60": {"method": sp.eye_array(5)},
    "method has shape (60, 5) but must be square": {"method": np.ones((60, 5))},
    "method differs from its transpose by 1 but must be symmetric": {"method": ASYMMETRIC},
    "method has negative weights (least -1)": {"method": -np.ones((60, 60))},
    "method has NaN or infinite weights": {"method": np.full((60, 60), np.nan)},
    "method has 0 dimension(s) and dtype object": {"method": None},
    "method is a graph of 3 nodes but X has n_samples=60": {"method": graph_from_weights(np.ones((3, 3)))},
    "method=DenseTransformer gave ndarray of shape (60, 8)": {"method": DenseTransformer()},
}


@pytest.mark.parametrize("message", REFUSED)
def test_wrong_argument_is_refused_with_its_name_and_value(message):
    arguments = {"X": points(), **REFUSED[message]}
    with pytest.raises(ValueError, match=re.escape(message)):
        build_graph(arguments.pop("X"), **arguments)


def test_huge_finite_values_are_no_infinities():
    assert isinstance(build_graph(points() * 1e307), Graph)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("flann", "sample_graph='flann' is unknown"),
        ("grid", "feature_shape=None does not fit sample_graph='grid'"),
        (sp.eye_array(5), "sample_graph has 5 nodes but X has 60"),
        (sp.coo_array(np.ones(60)), "sample_graph has 1 dimension(s)"),
        (graph_from_weights(np.ones((3, 3))), "sample_graph is a graph of 3 nodes but X has n_samples=60"),
        (DenseTransformer(), "sample_graph=DenseTransformer gave ndarray"),
    ],
)
def test_errors_name_the_argument_as_the_caller_does(method, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        graph_of(points(), method, GraphOptions(argument="sample_graph"))


def test_errors_of_given_weights_name_their_own_argument():
    with pytest.raises(ValueError, match="A has negative weights"):
        graph_from_weights(-np.ones((3, 3)))


def test_indices_are_32_bits_wide(kind):
    graph = build_graph(points(), method=kind, feature_shape=(6, 10))
    indices = [A for matrix in (graph.weights, graph.laplacian) for A in (matrix.indices, matrix.indptr)]
    assert {A.dtype for A in indices} == {np.dtype(np.int32)}


@pytest.mark.parametrize("given", [sp.csr_array(np.ones((60, 60))), KNeighborsTransformer(n_neighbors=5)])
def test_indices_of_given_graphs_are_32_bits_wide_whatever_they_came_with(given):
    if sp.issparse(given):
        given.indices, given.indptr = given.indices.astype(np.int64), given.indptr.astype(np.int64)
    graph = build_graph(points(), method=given)
    assert graph.weights.indices.dtype == graph.laplacian.indices.dtype == np.int32


def test_the_adjacency_goes_into_scikit_learn():
    X = np.repeat([[0.0] * 4, [3.5] * 4], 30, axis=0) + points(60, 4)
    labels = SpectralClustering(2, affinity="precomputed", random_state=0).fit_predict(build_graph(X).to_scipy())
    assert adjusted_rand_score(np.repeat([0, 1], 30), labels) == 1.0


def test_to_scipy_is_a_copy_of_the_weights():
    graph = build_graph(points())
    A = graph.to_scipy()
    assert_array_equal(A.toarray(), graph.weights.toarray())
    A.data[:] = 0
    assert graph.weights.data.min() > 0


def test_to_networkx_has_every_node_and_every_edge_with_its_weight():
    networkx = pytest.importorskip("networkx", reason="NetworkX is not installed")
    A = np.zeros((4, 4))
    A[0, 1] = A[1, 0] = 0.25
    A[1, 2] = A[2, 1] = 1.5
    graph = graph_from_weights(A).to_networkx()
    assert type(graph) is networkx.Graph
    assert sorted(graph.nodes) == [0, 1, 2, 3]
    assert sorted(graph.edges(data="weight")) == [(0, 1, 0.25), (1, 2, 1.5)]


def test_to_networkx_names_the_package_that_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(ImportError, match=r"Graph\.to_networkx needs NetworkX; install frpcag\[graphs\]"):
        build_graph(points()).to_networkx()
