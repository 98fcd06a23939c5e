"""Embeddings as drawn."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from frpcag.plots import plot_cluster_counts, plot_embedding


def drawn_points(ax):
    return np.concatenate([points.get_offsets() for points in ax.collections])


@pytest.fixture
def clouds():
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(5), 30)
    centres = 6 * np.column_stack([np.cos(labels), np.sin(labels), labels])
    return centres + rng.standard_normal((150, 3)), labels


def test_embedding_draws_the_first_two_components_by_label(clouds, assert_golden):
    Z, labels = clouds
    ax = plot_embedding(Z, labels)
    assert len(ax.collections) == 5
    assert_array_equal(ax.collections[3].get_offsets(), Z[labels == 3, :2])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["0", "1", "2", "3", "4"]
    assert_golden(ax.figure, "embedding")


def test_embedding_gives_ten_labels_ten_colours(clouds):
    Z, _ = clouds
    ax = plot_embedding(Z, np.arange(150) % 10)
    assert len({tuple(points.get_facecolor()[0]) for points in ax.collections}) == 10


def test_embedding_tells_forty_labels_apart_by_colour_and_marker(clouds):
    Z, _ = clouds
    ax = plot_embedding(Z, np.arange(150) % 40)
    looks = {(tuple(c.get_facecolor()[0]), c.get_paths()[0].vertices.tobytes()) for c in ax.collections}
    assert len(looks) == 40


def test_embedding_without_labels_has_no_legend(clouds):
    Z, _ = clouds
    ax = plot_embedding(Z)
    assert ax.get_legend() is None
    assert_array_equal(drawn_points(ax), Z[:, :2])


def test_embedding_with_many_labels_has_no_legend(clouds):
    Z, _ = clouds
    assert plot_embedding(Z, np.arange(150) % 11).get_legend() is None


def test_embedding_of_one_component_is_drawn_against_the_sample():
    ax = plot_embedding([[5.0], [7.0]])
    assert_array_equal(drawn_points(ax), [[0, 5], [1, 7]])


def test_embedding_draws_the_label_minus_one_in_grey(clouds):
    Z, labels = clouds
    red, green, blue, _ = plot_embedding(Z, labels - 1).collections[0].get_facecolor()[0]
    assert red == green == blue


def test_embedding_draws_on_the_axes_given(clouds):
    figure, ax = plt.subplots()
    assert plot_embedding(clouds[0], ax=ax) is ax
    assert plt.get_fignums() == [figure.number]


@pytest.mark.parametrize(
    ("Z", "labels", "message"),
    [
        ([1.0, 2.0], None, r"Z has shape \(2,\)"),
        ([[1.0, 2.0]], [0, 1], r"labels has shape \(2,\).*each of 1 rows"),
    ],
)
def test_embedding_refuses_what_is_not_points_with_labels(Z, labels, message):
    with pytest.raises(ValueError, match=message):
        plot_embedding(Z, labels)


def test_cluster_counts_fill_the_best_of_those_looked_at(assert_golden):
    score = np.array([0.2, np.nan, 0.45, np.nan, 0.1])
    ax = plot_cluster_counts({"n_clusters": np.arange(2, 7), "gap": [0.3, 0.1, 0.5, 0.05, 0.2], "score": score})
    assert [bar.get_height() for bar in ax.patches] == [0.3, 0.1, 0.5, 0.05, 0.2]
    assert ax.lines[0].get_xdata().tolist() == [2, 4, 6]
    assert ax.lines[1].get_xydata().tolist() == [[4, 0.45]]
    assert_golden(ax.figure, "cluster_counts")


def test_cluster_counts_without_a_score_draw_the_gaps_alone():
    ax = plot_cluster_counts({"n_clusters": [2, 3], "gap": [0.3, 0.1], "score": [np.nan, np.nan]})
    assert len(ax.lines) == 0
