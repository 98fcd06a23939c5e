"""Facts about neighbours of points with missing entries."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics.pairwise import nan_euclidean_distances

from frpcag import FRPCAG
from frpcag.graphs import build_graph
from support.engines import ENGINES, over, row_apart
from support.neighbors import approximate_neighbors, exact_neighbors, query_neighbors


def with_gaps(n, p, share, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) @ rng.normal(size=(4, p)) + 0.1 * rng.normal(size=(n, p)) + 50
    X[rng.random((n, p)) < share] = np.nan
    return X.astype(dtype)


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_exact_neighbours_are_those_of_scikit_learns_nan_euclidean_distances(share):
    X = with_gaps(120, 30, share)
    D = nan_euclidean_distances(X)
    np.fill_diagonal(D, np.inf)
    indices, distances = exact_neighbors(X, 5)
    assert_allclose(distances, np.sort(D, axis=1)[:, :5], rtol=1e-4)
    assert_allclose(np.take_along_axis(D, indices, axis=1), distances, rtol=1e-4)


def test_queries_with_gaps_find_the_rows_of_scikit_learns_distances():
    X, rows = with_gaps(100, 30, 0.3), with_gaps(20, 30, 0.3, seed=1)
    _, distances = query_neighbors(X, rows, 3)
    D = nan_euclidean_distances(rows, X)
    assert_allclose(distances, np.sort(D, axis=1)[:, :3], rtol=1e-4)


def test_queries_with_gaps_search_complete_points_too():
    X, rows = with_gaps(100, 30, 0.0), with_gaps(20, 30, 0.3, seed=1)
    D = nan_euclidean_distances(rows, X)
    assert_allclose(query_neighbors(X, rows, 3)[1], np.sort(D, axis=1)[:, :3], rtol=1e-4)


def test_approximate_search_finds_most_neighbours_of_points_with_gaps():
    X = with_gaps(2500, 150, 0.4, dtype=np.float32)
    truth, _ = exact_neighbors(X, 10)
    found, _ = approximate_neighbors(X, 10, random_state=0)
    recall = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(truth, found, strict=True)])
    assert recall > 0.9


@pytest.mark.usefixtures("two_threads")
def test_the_number_of_threads_does_not_change_neighbours_of_points_with_gaps():
    X = with_gaps(2500, 150, 0.4, dtype=np.float32)
    first, second = (approximate_neighbors(X, 10, random_state=0, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert np.array_equal(first[0], second[0])
    assert np.array_equal(first[1], second[1])


@pytest.mark.parametrize("n", [40, 400])
@pytest.mark.parametrize("method", ["exact", "approximate"])
@pytest.mark.parametrize("weights", ["gaussian", "binary"])
@pytest.mark.parametrize("metric", ["euclidean", "l1", "truncated"])
@pytest.mark.parametrize("engine", over(["numpy", "tensor"]))
def test_nodes_with_nothing_in_common_are_not_linked(engine, metric, weights, method, n):
    X = ENGINES[engine].load(row_apart(n, 6))
    graph = build_graph(X, n_neighbors=3, metric=metric, weights=weights, method=method, random_state=0).to_scipy()
    n_linked = np.diff(graph.indptr)
    assert n_linked[20] == 0
    assert (np.delete(n_linked, 20) >= 3).all()


@pytest.mark.parametrize("weights", ["gaussian", "binary"])
def test_nodes_have_only_the_neighbours_that_they_share_an_entry_with(weights):
    X = np.full((6, 4), np.nan)
    X[:3, :2], X[3:, 2:] = np.arange(6).reshape(3, 2), np.arange(6).reshape(3, 2)
    linked = build_graph(X, n_neighbors=4, weights=weights).weights.toarray() > 0
    assert np.array_equal(linked, np.kron(np.eye(2), np.ones((3, 3)) - np.eye(3)) > 0)


@pytest.mark.parametrize("params", [{}, {"feature_graph": None}, {"laplacian": "combinatorial"}], ids=str)
def test_a_row_without_neighbours_keeps_its_entries_and_gets_the_means_of_the_others(params):
    X = row_apart(40, 6)
    model = FRPCAG(n_neighbors=3, **params).fit(X)
    assert model.converged_
    assert_allclose(model.low_rank_[20, 0], X[20, 0])
    if params.get("feature_graph", ...) is None:
        assert_allclose(model.low_rank_[20, 1:], np.nanmean(X[:, 1:], axis=0))


def test_search_leaves_points_with_gaps_untouched():
    X = with_gaps(50, 10, 0.2)
    before = X.copy()
    exact_neighbors(X, 3)
    assert np.array_equal(X, before, equal_nan=True)
