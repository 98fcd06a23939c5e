"""Facts that hold for every way to label, and graph degree linkage against a dense one."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from scipy.sparse.csgraph import connected_components
from sklearn.metrics import adjusted_rand_score

from frpcag.labels import LABELLERS, cloud_of, label
from frpcag.labels.linkage import linkage

every_labeller = pytest.mark.parametrize("name", LABELLERS)


def blobs(n=120, k=4, *, seed=0, spread=0.15):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    return 3 * np.eye(max(k, 5))[y] + spread * rng.normal(size=(n, max(k, 5))), y


def dense_linkage(cloud, k):
    """Merge by brute force: all affinities anew after every merge."""
    W = cloud.directed.toarray()
    n = len(W)
    nearest = sp.csr_array((np.ones(n), (np.arange(n), cloud.indices[:, 0])), shape=(n, n))
    groups = [np.flatnonzero(connected_components(nearest)[1] == c) for c in range(connected_components(nearest)[0])]
    while len(groups) > k:
        best, pair = 0.0, None
        for i, a in enumerate(groups):
            for j, b in enumerate(groups[:i]):
                there, back = W[np.ix_(a, b)], W[np.ix_(b, a)]
                affinity = (there @ back).sum() / len(a) ** 2 + (back @ there).sum() / len(b) ** 2
                if affinity > best:
                    best, pair = affinity, (i, j)
        if pair is None:
            break
        i, j = pair
        groups[j] = np.concatenate([groups[j], groups.pop(i)])
    labels = np.empty(n, int)
    for number, group in enumerate(groups):
        labels[group] = number
    return labels


@every_labeller
def test_clear_clusters_are_found(name):
    X, y = blobs()
    assert adjusted_rand_score(y, label(name, cloud_of(X), 4, random_state=0)) == 1


@every_labeller
def test_labels_move_with_the_samples(name):
    X, _ = blobs(spread=0.2)
    order = np.random.default_rng(1).permutation(len(X))
    straight, moved = (label(name, cloud_of(Z), 4, random_state=0) for Z in (X, X[order]))
    assert adjusted_rand_score(straight[order], moved) == 1


@every_labeller
@pytest.mark.parametrize("k", [1, 2, 7, 39, 40])
def test_there_are_k_clusters_and_none_is_empty(name, k):
    X = np.random.default_rng(2).normal(size=(40, 3))
    assert_array_equal(np.unique(label(name, cloud_of(X), k, random_state=0)), np.arange(k))


@every_labeller
def test_labels_repeat_to_the_last_bit(name):
    X, _ = blobs(spread=2.0)
    first, second = (label(name, cloud_of(X), 5, random_state=3) for _ in range(2))
    assert_array_equal(first, second)


@every_labeller
def test_missing_entries_are_labelled(name):
    X, y = blobs()
    X = np.tile(X, 5)  # several features tell each cluster, so that one of them may be missing
    X[np.random.default_rng(4).random(X.shape) < 0.2] = np.nan
    assert adjusted_rand_score(y, label(name, cloud_of(X), 4, random_state=0)) == 1


@pytest.mark.parametrize("seed", range(6))
def test_linkage_merges_as_a_dense_one_does(seed):
    X, _ = blobs(60, spread=1.0, seed=seed)
    cloud = cloud_of(X, n_neighbors=8)
    for k in (2, 5, 9):
        expected = dense_linkage(cloud, k)
        if len(np.unique(expected)) == k:  # it stops where no two are linked both ways
            assert adjusted_rand_score(expected, linkage(cloud, k)) == 1


def test_linkage_joins_islands_by_their_centres():
    """Five islands far apart, no edge between them: the two that are nearest become one."""
    rng = np.random.default_rng(0)
    places = np.array([[0.0, 0], [100, 0], [0, 100], [100, 100], [104, 100]])
    X = np.repeat(places, [30, 30, 30, 30, 20], axis=0) + rng.normal(size=(140, 2)) * 0.1
    labels = label("linkage", cloud_of(X, n_neighbors=6), 4)
    assert len(np.unique(labels[90:])) == 1
    assert len(np.unique(labels)) == 4
