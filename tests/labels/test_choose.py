"""Facts about the choice between candidates."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from frpcag.labels.choose import best, on_points


def candidates():
    rng = np.random.default_rng(0)
    X = np.repeat(4 * np.eye(3), 40, axis=0) + 0.3 * rng.normal(size=(120, 3))
    return on_points("X", X, 3, random_state=0)


def lopsided(one):
    """Return a candidate with a cluster of two."""
    labels = np.repeat([0, 1, 2], [60, 58, 2])
    return replace(one, labels=labels, score=1e9)


def test_a_candidate_with_a_tiny_cluster_is_not_taken_while_another_can_be_had():
    tried = candidates()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert best([lopsided(tried[0]), *tried[1:]]).smallest > 30


def test_tiny_clusters_warn_where_nothing_else_can_be_had():
    with pytest.warns(UserWarning, match="the smallest of 3 clusters has 2 of 120 samples"):
        best([lopsided(one) for one in candidates()])


def test_the_smallest_cut_is_taken():
    tried = candidates()
    assert best(tried).score == max(one.score for one in tried)
