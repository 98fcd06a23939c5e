"""Singular values and solve histories as drawn."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from frpcag.plots import plot_history, plot_singular_values


@pytest.fixture
def spectrum():
    return 100 * 0.6 ** np.arange(20)


def test_singular_values_are_drawn_from_one_on_a_log_scale(spectrum):
    ax = plot_singular_values(spectrum)
    assert_array_equal(ax.lines[0].get_xdata(), np.arange(1, 21))
    assert_array_equal(ax.lines[0].get_ydata(), spectrum)
    assert ax.get_yscale() == "log"


def test_singular_values_leave_zeros_out_but_keep_the_numbering():
    ax = plot_singular_values([4.0, 0.0, 2.0])
    assert_array_equal(ax.lines[0].get_xdata(), [1, 3])


def test_singular_values_that_are_all_zero_still_draw(tmp_path):
    plot_singular_values([0.0, 0.0]).figure.savefig(tmp_path / "zero.png")


def test_singular_values_refuse_a_matrix():
    with pytest.raises(ValueError, match=r"Sigma has shape \(2, 2\)"):
        plot_singular_values(np.eye(2))


def test_singular_values_draw_on_the_axes_given(spectrum):
    figure, ax = plt.subplots()
    assert plot_singular_values(spectrum, ax=ax) is ax
    assert plt.get_fignums() == [figure.number]


def test_two_spectra_on_one_axes_differ_in_colour(spectrum, assert_golden):
    ax = plot_singular_values(spectrum, label="X")
    plot_singular_values(spectrum**2 / 100, ax=ax, label="U")
    assert ax.lines[0].get_color() != ax.lines[1].get_color()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["X", "U"]
    assert_golden(ax.figure, "singular_values")


def test_history_draws_gap_and_objective(assert_golden):
    n_iter = np.arange(10, 110, 10)
    gap, objective = 0.9**n_iter, 5 + 3 * 0.93**n_iter
    ax = plot_history(n_iter, gap, objective=objective)
    right = ax.figure.axes[-1]
    assert_array_equal(ax.lines[0].get_xydata(), np.column_stack([n_iter, gap]))
    assert_array_equal(right.lines[0].get_xydata(), np.column_stack([n_iter, objective]))
    assert (ax.get_yscale(), right.get_yscale()) == ("log", "linear")
    assert_golden(ax.figure, "history")


def test_history_leaves_out_records_without_a_gap():
    ax = plot_history([1, 2, 3, 4], [0.5, np.nan, 0.1, 0.0], objective=[3.0, 2.0, np.nan, 1.0])
    assert_array_equal(ax.lines[0].get_xdata(), [1, 3])
    assert_array_equal(ax.figure.axes[-1].lines[0].get_xdata(), [1, 2, 4])


def test_history_without_objective_has_one_axes():
    assert len(plot_history([1, 2], [0.1, 0.01]).figure.axes) == 1


def test_history_refuses_vectors_of_different_length():
    with pytest.raises(ValueError, match=r"gap has shape \(1,\).*\(2,\) of n_iter"):
        plot_history([1, 2], [0.1])
