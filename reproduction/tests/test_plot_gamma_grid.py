"""Numbers over a grid of gammas as drawn."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from reproduction.plots import plot_gamma_grid


def test_gamma_grid_marks_the_least_value(assert_golden):
    values = np.array([[0.5, 0.4, np.nan], [0.3, 0.1, 0.2]])
    ax = plot_gamma_grid([0.1, 1.0], [1.0, 3.0, 10.0], values, label="clustering error")
    assert_array_equal(ax.lines[0].get_xydata(), [[1, 1]])
    assert [text.get_text() for text in ax.get_xticklabels()] == ["1", "3", "10"]
    assert_golden(ax.figure, "gamma_grid")


def test_gamma_grid_of_nothing_but_nan_marks_nothing():
    assert len(plot_gamma_grid([1.0], [1.0], [[np.nan]], label="error").lines) == 0


def test_gamma_grid_draws_on_the_axes_given():
    figure, ax = plt.subplots()
    assert plot_gamma_grid([1.0], [1.0], [[1.0]], label="rank", ax=ax) is ax
    assert plt.get_fignums() == [figure.number]


def test_gamma_grid_refuses_values_of_another_shape():
    with pytest.raises(ValueError, match=r"values has shape \(1, 2\).*\(2, 1\)"):
        plot_gamma_grid([1.0, 2.0], [1.0], [[1.0, 2.0]], label="rank")
