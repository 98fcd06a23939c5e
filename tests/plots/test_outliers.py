"""Shares of outlying entries as drawn."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from frpcag.plots import plot_outlier_shares


def test_shares_are_drawn_over_their_numbers(assert_golden):
    shares = 0.05 + 0.04 * np.sin(np.arange(30) / 4)
    ax = plot_outlier_shares(shares, numbers=np.arange(30) * 10, xlabel="frame")
    assert_array_equal(ax.lines[0].get_xydata(), np.column_stack([np.arange(30) * 10, shares]))
    assert ax.get_xlabel() == "frame"
    assert_golden(ax.figure, "outlier_shares")


def test_shares_without_numbers_are_counted_from_zero():
    assert_array_equal(plot_outlier_shares([0.5, 0.1]).lines[0].get_xdata(), [0, 1])


def test_shares_are_drawn_on_the_axes_given():
    figure, ax = plt.subplots()
    assert plot_outlier_shares([0.5], ax=ax) is ax
    assert plt.get_fignums() == [figure.number]


@pytest.mark.parametrize(("shares", "numbers"), [([[0.5]], None), ([], None), ([0.5], [1, 2])])
def test_shares_of_the_wrong_shape_are_refused(shares, numbers):
    with pytest.raises(ValueError, match="shares has shape"):
        plot_outlier_shares(shares, numbers=numbers)
