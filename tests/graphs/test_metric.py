"""Metrics of the sample graph, over the registry: against brute force in plain NumPy, under corruption, at size."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from frpcag import FRPCAG, build_graph
from frpcag.graphs import ELIGIBLE, METRICS, find_metric, metric_choice
from frpcag.graphs.index import choose_search
from frpcag.graphs.metric import CUT, mean_deviation
from support.neighbors import approximate_neighbors, exact_neighbors, query_neighbors

every_metric = pytest.mark.parametrize("name", METRICS)
ROBUST = [name for name, metric in METRICS.items() if not metric.euclidean]


def data(n=150, p=30, *, missing=0.0, dtype=np.float64, seed=0):
    """Return clusters with gross errors, no two distances equal."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(15, p))[np.arange(n) % 15] + 0.5 * rng.normal(size=(n, p))
    X[rng.random((n, p)) < 0.1] += 6
    X[rng.random((n, p)) < missing] = np.nan
    return X.astype(dtype)


def distances(X, Y, metric):
    """Return all distances over the entries that both rows have, scaled up to all features."""
    X, Y = (mapped(np.asarray(Z, float), metric.name) for Z in (X, Y))
    D = np.abs(X[:, None] - Y[None])
    D = D**2 if metric.euclidean else np.minimum(D, metric.cut)
    common = (~np.isnan(D)).sum(axis=2)
    with np.errstate(invalid="ignore", divide="ignore"):
        sums = np.where(common > 0, np.nansum(D, axis=2) * (X.shape[1] / common), np.inf)
    return np.sqrt(sums) if metric.euclidean else sums


def mapped(X, name):
    """Return the rows that a metric measures."""
    if name != "cosine":
        return X
    return X / np.sqrt(np.nanmean(X**2, axis=1, keepdims=True) * X.shape[1])


def nearest(X, metric, k):
    D = distances(X, X, metric)
    np.fill_diagonal(D, np.nan)
    order = np.argsort(D, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(D, order, axis=1)


@every_metric
@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_neighbours_are_those_of_brute_force(name, missing, dtype):
    X = data(missing=missing, dtype=dtype)
    metric = find_metric(name, X)
    indices, lengths = exact_neighbors(X, 6, metric=metric, n_jobs=1)
    wanted = nearest(X, metric, 6)
    assert_array_equal(indices, wanted[0])
    assert_allclose(lengths, wanted[1], rtol=1e-5)


@every_metric
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_neighbours_of_other_rows_are_those_of_brute_force(name, missing):
    X, rows = data(missing=missing), data(40, missing=missing, seed=1)
    metric = find_metric(name, X)
    indices, lengths = query_neighbors(X, rows, 4, metric=metric, n_jobs=1)
    D = distances(rows, X, metric)
    assert_array_equal(indices, np.argsort(D, axis=1, kind="stable")[:, :4])
    assert_allclose(lengths, np.sort(D, axis=1)[:, :4], rtol=1e-5)


@every_metric
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_the_graph_is_symmetric_with_a_spectrum_within_zero_and_two(name, missing):
    graph = build_graph(data(missing=missing), n_neighbors=5, metric=name)
    assert graph.metric == name
    assert abs(graph.weights - graph.weights.T).max() == 0
    values = np.linalg.eigvalsh(graph.laplacian.toarray())
    assert values[0] >= -1e-9
    assert values[-1] <= 2 + 1e-9


@every_metric
def test_weights_are_gaussian_in_the_mean_length(name):
    X = data()
    indices, lengths = nearest(X, find_metric(name, X), 5)
    A = np.zeros((len(X), len(X)))
    np.put_along_axis(A, indices, np.exp(-np.square(lengths / lengths.mean())), axis=1)
    graph = build_graph(X, n_neighbors=5, metric=name)
    assert_allclose(graph.weights.toarray(), (A + A.T) / 2, rtol=1e-4, atol=1e-12)
    assert_allclose(graph.sigma, lengths.mean(), rtol=1e-5)


@every_metric
def test_permuting_the_rows_permutes_the_graph(name):
    X = data(missing=0.1)
    order = np.random.default_rng(3).permutation(len(X))
    A, moved = (build_graph(Y, n_neighbors=5, metric=name).weights.toarray() for Y in (X, X[order]))
    assert_allclose(moved, A[np.ix_(order, order)], rtol=1e-5)


@pytest.mark.parametrize("name", ROBUST)
def test_of_equally_far_rows_the_first_are_taken(name):
    X = np.repeat(data(8), 40, axis=0)
    indices, lengths = exact_neighbors(X, 7, metric=find_metric(name, X), n_jobs=2)
    blocks = np.arange(len(X)) // 40
    first = np.stack([[j for j in range(40 * b, 40 * b + 8) if j != i][:7] for i, b in enumerate(blocks)])
    assert_array_equal(indices, first)
    assert not lengths.any()


@pytest.mark.usefixtures("two_threads")
@every_metric
@pytest.mark.parametrize("search", [exact_neighbors, approximate_neighbors])
def test_the_number_of_threads_does_not_matter(name, search):
    X = data(2100, 12, missing=0.05)
    more = {} if search is exact_neighbors else {"random_state": 0}
    one, two = (search(X, 4, metric=find_metric(name, X), n_jobs=n, **more) for n in (1, 2))
    assert_array_equal(one[0], two[0])
    assert_array_equal(one[1], two[1])


@pytest.mark.parametrize("name", ROBUST)
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_the_approximate_search_finds_nine_of_ten_neighbours(name, missing):
    X = data(3000, 200, missing=missing)
    metric = find_metric(name, X)
    exact = exact_neighbors(X, 10, metric=metric)[0]
    found, lengths = approximate_neighbors(X, 10, metric=metric, random_state=0)
    assert np.mean([len(set(a) & set(b)) / 10 for a, b in zip(found, exact, strict=True)]) >= 0.9
    rows = np.arange(0, 3000, 300)
    D = distances(X[rows], X, metric)
    assert_allclose(lengths[rows], np.take_along_axis(D, found[rows], axis=1), rtol=1e-4)


def test_rows_with_the_same_gross_error_do_not_become_neighbours():
    rng = np.random.default_rng(1)
    X = np.repeat(rng.normal(size=(20, 60)), 10, axis=0) + 0.1 * rng.normal(size=(200, 60))
    wrong = [3, 55, 77, 120, 160, 199]
    X[wrong, 7] += 1e4
    near = {name: set(build_graph(X, n_neighbors=5, metric=name).weights[[3]].indices) for name in METRICS}
    assert set(wrong) - {3} <= near["euclidean"]
    assert {i // 10 for i in near["truncated"]} == {0}


def test_one_huge_entry_does_not_lift_the_truncation():
    X = data()
    before = find_metric("truncated", X).cut
    X[5, 5] = 1e9
    assert_allclose(find_metric("truncated", X).cut, before, rtol=0.02)


def test_mean_deviation_is_that_of_the_entries_when_none_stands_out():
    X = np.random.default_rng(0).normal(size=(300, 40))
    assert_allclose(find_metric("truncated", X).cut, CUT * mean_deviation(X))
    assert_allclose(mean_deviation(X), np.abs(X - np.median(X, axis=0)).mean(), rtol=1e-4)
    assert mean_deviation(np.zeros((5, 3))) == 1.0


def test_auto_takes_the_metric_whose_neighbours_predict_best():
    rng = np.random.default_rng(2)
    X = np.repeat(rng.normal(size=(30, 80)), 10, axis=0) + 0.1 * rng.normal(size=(300, 80))
    assert build_graph(X + 0.0, metric="auto").metric in METRICS
    X[rng.random(X.shape) < 0.1] += 15
    errors = metric_choice.prediction_errors(X)
    assert [metric.name for metric in errors] == list(ELIGIBLE)
    best = min(errors, key=errors.get)
    assert best.name == build_graph(X, metric="auto").metric == "truncated"


def test_prediction_errors_are_those_of_plain_numpy():
    X = data(80, missing=0.2)
    for metric, error in metric_choice.prediction_errors(X).items():
        near = nearest(X, metric, metric_choice.JUDGES)[0]
        middle = np.nan_to_num(np.nanmedian(X[near], axis=1), nan=0.0)
        assert_allclose(error, np.nanmean(np.abs(X - middle)), rtol=1e-4)


def test_auto_looks_at_a_bounded_number_of_rows(monkeypatch):
    seen = []

    def errors(sample, **_):
        seen.append(len(sample))
        return {METRICS["l1"]: 0.0}

    monkeypatch.setattr(metric_choice, "prediction_errors", errors)
    find_metric("auto", np.zeros((50_000, 2)))
    assert seen == [2000]


def test_brute_force_of_absolute_differences_ends_earlier_than_of_products():
    assert choose_search(12_000, 784) == "exact"
    assert choose_search(12_000, 784, metric=METRICS["l1"]) == "approximate"


@pytest.mark.parametrize("value", ["chebyshev", None, 3])
def test_an_unknown_metric_is_refused_by_name(value):
    with pytest.raises(ValueError, match=f"^metric={value!r} is unknown; pass one of 'euclidean', 'l1', 'truncated', "):
        build_graph(data(), metric=value)


def test_a_column_without_entries_does_not_change_the_truncated_metric():
    X = np.random.default_rng(0).normal(size=(40, 5))
    empty = np.column_stack([X, np.full(40, np.nan)])
    graphs = [build_graph(Z, n_neighbors=3, metric="truncated") for Z in (X, empty)]
    assert (graphs[0].weights != 0).nnz == (graphs[1].weights != 0).nnz


@every_metric
def test_distances_in_plain_numpy_are_those_of_the_search(name):
    X = data(60)
    metric = find_metric(name, X)
    assert_allclose(metric.lengths(X[0], X[1:]), distances(X[:1], X[1:], metric)[0])


def test_cosine_neighbours_do_not_depend_on_the_lengths_of_rows():
    X = data()
    scaled = X * 10.0 ** np.random.default_rng(5).uniform(-150, 150, (len(X), 1))
    A, B = (build_graph(Z, n_neighbors=5, metric="cosine").weights.toarray() for Z in (X, scaled))
    assert_allclose(A, B, rtol=1e-4)


def test_rows_of_zeros_are_as_far_by_the_cosine_from_all_others():
    X = np.vstack([np.zeros((2, 4)), np.eye(4)])
    indices, lengths = exact_neighbors(X, 3, metric=METRICS["cosine"], n_jobs=1)
    assert indices[0].tolist() == [1, 2, 3]
    assert_allclose(lengths[0], [0, 1, 1], atol=1e-6)


@every_metric
def test_a_sparse_matrix_has_the_graph_of_the_array(name):
    X = np.where(np.random.default_rng(0).random((80, 20)) < 0.6, 0, data(80, 20))
    graphs = [build_graph(Z, n_neighbors=4, metric=name).weights.toarray() for Z in (X, sp.csr_array(X))]
    assert_allclose(*graphs, rtol=1e-6)


@every_metric
def test_every_metric_is_named_where_a_user_looks(name):
    shown = (FRPCAG.__doc__, build_graph.__doc__, (Path(__file__).parents[2] / "docs" / "choose.md").read_text())
    assert all(f'"{name}"' in text for text in shown)
