"""Neighbour searches, against brute force of scikit-learn in float64."""

import os
from pathlib import Path

import faiss
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_info

from frpcag.graphs.index import choose_search
from support.neighbors import approximate_neighbors, exact_neighbors, query_neighbors


def clusters(n, p, seed=0):
    rng = np.random.default_rng(seed)
    return (3 * rng.standard_normal((20, p)))[rng.integers(20, size=n)] + rng.standard_normal((n, p))


def brute_force(X, k, rows=None):
    X = np.asarray(X, dtype=np.float64)
    search = NearestNeighbors(n_neighbors=k + 1, algorithm="brute", metric="minkowski", p=2).fit(X)
    rows = np.arange(len(X)) if rows is None else rows
    distances, indices = search.kneighbors(X[rows])
    others = indices != rows[:, None]
    others[others.all(axis=1), -1] = False  # more duplicates than neighbours: the point itself was not listed
    return indices[others].reshape(-1, k), distances[others].reshape(-1, k)


def recall(found, truth):
    return np.mean([len(set(a) & set(b)) / len(b) for a, b in zip(found, truth, strict=True)])


@pytest.mark.parametrize("k", [1, 7, 50])
def test_exact_indices_agree_with_brute_force(k):
    X = clusters(600, 12)
    assert_array_equal(exact_neighbors(X, k)[0], brute_force(X, k)[0])


@pytest.mark.parametrize("p", [1, 3, 40, 900])
def test_exact_distances_agree_with_brute_force(p):
    X = clusters(600, p)
    assert_allclose(exact_neighbors(X, 5)[1], brute_force(X, 5)[1], rtol=1e-4, atol=1e-6)


def test_exact_search_sees_through_a_large_common_offset():
    X = clusters(600, 12)
    assert recall(exact_neighbors(X + 1e6, 10)[0], brute_force(X, 10)[0]) == 1.0


def test_exact_search_ranks_near_duplicates():
    # Pairs 1e-4 apart in data of spread 1: the Gram trick in float32 resolves about 3e-4.
    rng = np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((300, 30)), 2, axis=0)
    X[1::2] += 1e-4 * rng.standard_normal((300, 30))
    assert_array_equal(exact_neighbors(X, 1)[0][:, 0], np.arange(600) ^ 1)


def test_distances_of_near_duplicates_are_accurate():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((300, 30)), 2, axis=0)
    X[1::2] += 1e-4 * rng.standard_normal((300, 30))
    assert_allclose(exact_neighbors(X, 1)[1][:, 0], np.linalg.norm(X - X[np.arange(600) ^ 1], axis=1), rtol=1e-2)


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1e30, 1e300])
def test_exact_distances_scale_with_the_data(scale):
    X = clusters(200, 5)
    assert_allclose(exact_neighbors(X * scale, 3)[1] / scale, exact_neighbors(X, 3)[1], rtol=1e-5)


@pytest.mark.parametrize(
    "layout",
    [
        lambda X: X.astype(np.float32),
        np.asfortranarray,
        lambda X: X[::-1][::-1],
        lambda X: np.repeat(X, 2, axis=1)[:, ::2],
        sp.csr_array,
    ],
    ids=["float32", "fortran", "negative strides", "strided", "sparse"],
)
def test_neighbors_do_not_depend_on_the_layout(layout):
    X = np.round(clusters(300, 8), 2).astype(np.float32).astype(np.float64)
    assert_array_equal(exact_neighbors(layout(X), 4)[0], exact_neighbors(X, 4)[0])


SEARCHES = {
    "exact": exact_neighbors,
    "approximate": lambda X, k, **options: approximate_neighbors(X, k, random_state=0, **options),
}


@pytest.fixture(params=SEARCHES)
def search(request):
    return SEARCHES[request.param]


def test_search_takes_read_only_data_and_leaves_it_alone(search):
    X = clusters(2500, 8)
    before = X.copy()
    X.flags.writeable = False
    search(X, 4)
    assert_array_equal(X, before)


def test_no_point_is_its_own_neighbor_among_many_duplicates(search):
    X = np.repeat(clusters(50, 6), 60, axis=0)
    indices, _ = search(X, 5)
    assert not (indices == np.arange(len(X))[:, None]).any()


def test_neighbors_of_duplicated_points_are_their_duplicates(search):
    X = np.repeat(clusters(50, 6), 60, axis=0)
    assert_allclose(search(X, 5)[1], 0, atol=0)


def test_no_neighbor_is_listed_twice(search):
    X = np.repeat(clusters(50, 6), 60, axis=0)
    assert (np.diff(np.sort(search(X, 5)[0], axis=1), axis=1) > 0).all()


def test_points_that_are_all_equal_have_zero_distances(search):
    assert_array_equal(search(np.full((3000, 4), 7.5), 10)[1], 0.0)


def test_constant_features_change_no_neighbor(search):
    X = clusters(2500, 8)
    padded = np.column_stack([X, np.full(len(X), 1e5)])
    # The extra column moves a rounding here and there, so lists may differ in a tie.
    assert recall(search(padded, 5)[0], search(X, 5)[0]) > 0.999


def test_neighbors_are_sorted_by_distance_then_index(search):
    X = np.random.default_rng(0).integers(0, 3, (2500, 4))
    indices, distances = search(X, 8)
    step = np.diff(distances, axis=1)
    assert ((step > 0) | ((step == 0) & (np.diff(indices, axis=1) > 0))).all()


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("p", [100, 200], ids=["all features", "reduced by PCA"])
def test_result_is_the_same_to_the_last_bit_with_one_and_two_threads(search, p):
    X = clusters(5000, p)
    for one, two in zip(search(X, 10, n_jobs=1), search(X, 10, n_jobs=2), strict=True):
        assert_array_equal(one, two)


@pytest.mark.usefixtures("two_threads")
def test_search_restores_the_thread_counts(search):
    def counts():
        return [library["num_threads"] for library in threadpool_info()] + [faiss.omp_get_max_threads()]

    before = counts()
    search(clusters(2500, 8), 4, n_jobs=1)
    assert counts() == before


@pytest.mark.parametrize("n_jobs", [0, 1.5, "all"])
def test_number_of_threads_that_makes_no_sense_is_refused(search, n_jobs):
    with pytest.raises(ValueError, match="n_jobs="):
        search(clusters(50, 8), 4, n_jobs=n_jobs)


@pytest.mark.parametrize("p", [16, 300], ids=["all features", "reduced by PCA"])
def test_approximate_search_finds_most_neighbors(p):
    X = clusters(6000, p)
    # Around their centre clusters of this many dimensions are balls of noise, the hardest case there is.
    if p > 128:
        X = clusters(6000, 10) @ np.random.default_rng(1).standard_normal((10, p)) + 0.1 * clusters(6000, p, seed=2)
    rows = np.arange(0, 6000, 20)
    assert recall(approximate_neighbors(X, 10, random_state=0)[0][rows], brute_force(X, 10, rows)[0]) >= 0.95


def test_approximate_distances_are_those_of_the_full_space():
    X = clusters(3000, 200)
    indices, distances = approximate_neighbors(X, 3, random_state=0)
    assert_allclose(distances, np.linalg.norm(X[:, None] - X[indices], axis=2), rtol=1e-4)


def test_approximate_search_with_more_neighbors_than_its_lists_hold_falls_back_to_exact():
    X = clusters(2100, 3)
    # 24 of 91 lists do not hold 1500 others.
    found, truth = approximate_neighbors(X, 1500, random_state=0)[0], exact_neighbors(X, 1500)[0]
    assert recall(found[:50], truth[:50]) > 0.999


@pytest.mark.parametrize("n", [2, 20, 144])
def test_approximate_search_of_few_points_finds_all_neighbors(n):
    X = clusters(n, 8)
    assert_array_equal(approximate_neighbors(X, 1, random_state=0)[0], exact_neighbors(X, 1)[0])


def test_wide_data_is_reduced_through_the_smaller_gram_matrix():
    X = clusters(2500, 5) @ np.random.default_rng(1).standard_normal((5, 4500))
    rows = np.arange(0, 2500, 25)
    assert recall(approximate_neighbors(X, 5, random_state=0)[0][rows], brute_force(X, 5, rows)[0]) >= 0.95


def test_auto_is_exact_for_ten_thousand_images():
    assert choose_search(10_000, 784) == "exact"


def test_auto_is_approximate_for_seventy_thousand_images():
    assert choose_search(70_000, 784) == "approximate"


def test_query_neighbors_agree_with_brute_force():
    X, rows = clusters(600, 12), clusters(100, 12, seed=1)
    truth = NearestNeighbors(n_neighbors=5, algorithm="brute").fit(X).kneighbors(rows)[1]
    assert_array_equal(query_neighbors(X, rows, 5)[0], truth)


def test_training_row_asked_for_is_its_own_nearest():
    X = clusters(600, 12)
    assert_array_equal(query_neighbors(X, X[:50], 1)[0][:, 0], np.arange(50))


def test_what_is_found_for_a_query_does_not_depend_on_the_others():
    X, rows = clusters(600, 12), clusters(100, 12, seed=1)
    assert_array_equal(query_neighbors(X, rows[7:8], 5)[1][0], query_neighbors(X, rows, 5)[1][7])


def test_query_far_beyond_the_data_has_finite_distances():
    assert np.isfinite(query_neighbors(clusters(100, 3), np.full((1, 3), 1e300), 2)[1]).all()


def test_query_neighbors_see_through_a_large_common_offset():
    X, rows = clusters(600, 12), clusters(100, 12, seed=1)
    assert recall(query_neighbors(X + 1e13, rows + 1e13, 5)[0], query_neighbors(np.round(X, 2), rows, 5)[0]) > 0.9


def test_no_queries_give_no_neighbors():
    assert query_neighbors(clusters(100, 3), np.empty((0, 3)), 2)[0].shape == (0, 2)


@pytest.mark.data
@pytest.mark.skipif("FRPCAG_DATA" not in os.environ, reason="FRPCAG_DATA does not point at the data sets")
def test_approximate_search_finds_95_percent_of_the_neighbors_of_mnist_digits():
    X = np.load(Path(os.environ["FRPCAG_DATA"]) / "mnist.npz")["X"][:10_000].reshape(10_000, -1)
    rows = np.arange(0, 10_000, 50)
    assert recall(approximate_neighbors(X, 10, random_state=0)[0][rows], brute_force(X, 10, rows)[0]) >= 0.95
