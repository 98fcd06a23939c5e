"""Contenders as drawn."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from contest.plots import plot_growth, plot_score_against_time
from matplotlib.text import Text
from numpy.testing import assert_allclose


def test_score_against_time_names_every_point_and_no_names_touch(assert_golden):
    seconds, scores = [0.01, 0.5, 0.6, 20.0], [0.3, 0.21, 0.2, 0.205]
    names = ["PCA", "FRPCAG", "IncrementalPCA", "TensorLy robust_pca"]
    ax = plot_score_against_time(seconds, scores, names, numbers=[1, 0, 5, 2], ylabel="error")
    assert_allclose([line.get_xydata()[0] for line in ax.lines], np.column_stack([seconds, scores]))
    assert [text.get_text() for text in ax.texts] == names
    ax.figure.canvas.draw()
    boxes = [Text.get_window_extent(text) for text in ax.texts]  # of the words, without their lines
    assert not [1 for i, one in enumerate(boxes) for other in boxes[:i] if one.overlaps(other)]
    assert ax.get_xscale() == "log"
    assert_golden(ax.figure, "score_against_time")


def test_growth_names_lines_at_their_ends_and_no_names_touch(assert_golden):
    sizes = [1000, 2000, 4000]
    lines = {
        "FRPCAG": (sizes, [0.2, 0.4, 0.9]),
        "PCA": (sizes, [0.1, 0.3, 0.91]),
        "TensorLy robust_pca": (sizes[:2], [20.0, 90.0]),
    }
    numbers = {"FRPCAG": 0, "PCA": 1, "TensorLy robust_pca": 2}
    ax = plot_growth(lines, numbers=numbers, xlabel="samples", ylabel="seconds")
    assert [text.xy for text in ax.texts] == [(4000, 0.9), (4000, 0.91), (2000, 90.0)]
    assert_allclose(ax.lines[2].get_xydata(), [[1000, 20], [2000, 90]])
    ax.figure.canvas.draw()
    boxes = [Text.get_window_extent(text) for text in ax.texts]
    assert not [1 for i, one in enumerate(boxes) for other in boxes[:i] if one.overlaps(other)]
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert_golden(ax.figure, "growth")


def test_peer_plots_refuse_numbers_that_do_not_match():
    with pytest.raises(ValueError, match=r"shapes \(2,\) and \(1,\); pass one for each of 2 names"):
        plot_score_against_time([1, 2], [1], ["a", "b"], ylabel="error")
    with pytest.raises(ValueError, match=r"'a' has numbers of shapes \(0,\)"):
        plot_growth({"a": ([], [])}, xlabel="x", ylabel="y")


def test_peer_plots_draw_on_the_axes_given():
    figure, (left, right) = plt.subplots(1, 2)
    assert plot_score_against_time([1.0], [1.0], ["a"], ylabel="error", ax=left) is left
    assert plot_growth({"a": ([1.0], [1.0])}, xlabel="x", ylabel="y", ax=right) is right
    assert plt.get_fignums() == [figure.number]
