"""The clustering error against brute force, and its symmetries."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reproduction.evaluate import clustering_error, clustering_scores
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

LABELS = st.integers(1, 25).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(0, 3), min_size=n, max_size=n),
        st.lists(st.integers(0, 4), min_size=n, max_size=n),
    )
)


def brute_force_error(y_true, y_pred):
    """Try every way of giving the five clusters the names of classes."""
    y_true, y_pred = np.array(y_true), np.array(y_pred)
    return min(np.mean(np.array(names)[y_pred] != y_true) for names in permutations(range(5)))


@given(LABELS)
def test_clustering_error_is_the_smallest_over_all_matchings(labels):
    assert clustering_error(*labels) == pytest.approx(brute_force_error(*labels), abs=1e-12)


@given(LABELS)
def test_clustering_error_does_not_depend_on_the_names_of_clusters(labels):
    y_true, y_pred = labels
    assert clustering_error(y_true, [f"c{9 - c}" for c in y_pred]) == clustering_error(y_true, y_pred)


@given(LABELS)
def test_clustering_error_is_symmetric(labels):
    assert clustering_error(*labels) == clustering_error(*labels[::-1])


def test_clustering_error_counts_surplus_clusters_as_errors():
    assert clustering_error([0, 0, 0, 0], [0, 0, 1, 2]) == 0.5


def test_clustering_error_counts_merged_classes_as_errors():
    assert clustering_error([0, 0, 1, 2], [7, 7, 7, 7]) == 0.5


@pytest.mark.parametrize(("y_true", "y_pred"), [([0, 1], [0]), ([], []), ([[0, 1]], [[0, 1]])])
def test_clustering_error_refuses_labels_that_are_not_two_equal_vectors(y_true, y_pred):
    with pytest.raises(ValueError, match=r"y_true has shape .* pass vectors of equal length"):
        clustering_error(y_true, y_pred)


def test_clustering_scores_agree_with_scikit_learn():
    rng = np.random.default_rng(0)
    y_true = rng.integers(0, 4, 200)
    y_pred = np.where(rng.random(200) < 0.3, rng.integers(0, 3, 200), y_true)
    scores = clustering_scores(y_true, y_pred)
    assert scores == {
        "error": clustering_error(y_true, y_pred),
        "nmi": pytest.approx(normalized_mutual_info_score(y_true, y_pred)),
        "ari": pytest.approx(adjusted_rand_score(y_true, y_pred)),
    }
    assert {type(score) for score in scores.values()} == {float}
