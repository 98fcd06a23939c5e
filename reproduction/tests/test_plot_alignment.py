"""Matrices that show structure, as drawn."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from reproduction.plots import plot_alignment, plot_graph_covariance, plot_shape_interaction


def drawn(ax):
    return np.asarray(ax.images[0].get_array())


@pytest.fixture
def covariance():
    A = np.random.default_rng(0).normal(size=(60, 30)) * 0.8 ** np.arange(30)
    return A.T @ A / 60


def test_graph_covariance_is_drawn_in_decibels_below_its_top(covariance, assert_golden):
    ax = plot_graph_covariance(covariance)
    expected = np.clip(20 * np.log10(np.abs(covariance) / np.abs(covariance).max()), -60, 0)
    assert_allclose(drawn(ax), expected)
    assert ax.images[0].get_clim() == (-60, 0)
    assert_golden(ax.figure, "graph_covariance")


def test_graph_covariance_with_zeros_draws_them_at_the_bottom():
    assert_array_equal(drawn(plot_graph_covariance(np.diag([1.0, 10.0]), range_db=30)), [[-20, -30], [-30, 0]])


def test_graph_covariance_of_zero_still_draws(tmp_path):
    plot_graph_covariance(np.zeros((2, 2))).figure.savefig(tmp_path / "zero.png")


def test_shape_interaction_draws_sizes_and_class_edges(assert_golden):
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], [20, 30, 10])
    W, _ = np.linalg.qr(np.eye(3)[labels] + 0.1 * rng.normal(size=(60, 3)))
    ax = plot_shape_interaction(W @ W.T, labels=labels)
    assert_array_equal(drawn(ax), np.abs(W @ W.T))
    assert sorted({line.get_ydata()[0] for line in ax.lines if line.get_xdata()[0] == 0}) == [19.5, 49.5]
    assert_golden(ax.figure, "shape_interaction")


def test_shape_interaction_of_few_large_entries_keeps_the_rest_visible():
    SIM = np.full((100, 100), 0.1)
    SIM[0, 0] = 50.0
    assert plot_shape_interaction(SIM).images[0].get_clim() == (0.0, 0.1)


def test_alignment_is_drawn_as_the_root_of_the_share(assert_golden):
    A = np.diag([9.0, 4.0, -1.0]) @ np.eye(3, 8)
    ax = plot_alignment(A)
    assert_allclose(drawn(ax)[:, :3], np.diag([1, 2 / 3, 1 / 3]))
    assert ax.get_xlabel() == "graph eigenvector (Q)"
    assert_golden(ax.figure, "alignment")


def test_matrices_are_drawn_on_the_axes_given():
    figure, ax = plt.subplots()
    assert plot_graph_covariance(np.eye(3), ax=ax) is ax
    assert plot_shape_interaction(np.eye(3), ax=ax) is ax
    assert plot_alignment(np.eye(3), vectors="V", basis="P", ax=ax) is ax
    assert plt.get_fignums() == [figure.number]


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: plot_graph_covariance([1.0]), r"Gamma has shape \(1,\)"),
        (lambda: plot_shape_interaction(np.ones((2, 3))), r"SIM has shape \(2, 3\)"),
        (lambda: plot_shape_interaction(np.eye(2), labels=[1]), r"labels has shape \(1,\).*each of 2 rows"),
        (lambda: plot_alignment(np.ones((0, 3))), r"A has shape \(0, 3\)"),
    ],
)
def test_matrices_of_the_wrong_shape_are_refused(draw, message):
    with pytest.raises(ValueError, match=message):
        draw()
