"""Image grids and outlier maps as drawn."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits

from frpcag.plots import plot_image_grid, plot_outlier_map


@pytest.fixture
def digits():
    U = load_digits().data[:8]
    X = U.copy()
    X[:, 18:22] = X[:, 26:30] = 16
    return {"X": X, "U": U, "S": X - U}


def test_image_grid_draws_a_titled_row_for_each_matrix(digits, assert_golden):
    figure = plot_image_grid(digits, (8, 8), n_images=6)
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["X", "U", "S"]
    for ax, values in zip(figure.axes, digits.values(), strict=True):
        assert_array_equal([image.get_array() for image in ax.images], values[:6].reshape(6, 8, 8))
    assert_golden(figure, "image_grid")


def test_image_grid_gives_x_and_u_the_same_grey_scale(digits):
    digits["U"] = digits["U"] / 2 - 3
    ax_x, ax_u, _ = plot_image_grid(digits, (8, 8)).axes
    limits = {image.get_clim() for ax in (ax_x, ax_u) for image in ax.images}
    assert limits == {(digits["U"].min(), 16.0)}


def test_image_grid_puts_zero_in_the_middle_of_a_signed_row(digits):
    low, high = plot_image_grid(digits, (8, 8)).axes[2].images[0].get_clim()
    assert low == -high == -np.abs(digits["S"]).max()


def test_image_grid_of_rectangular_images_draws_them_upright():
    image = plot_image_grid({"X": np.arange(6.0)[None]}, (2, 3)).axes[0].images[0]
    assert_array_equal(image.get_array(), [[0, 1, 2], [3, 4, 5]])
    assert image.get_extent() == [0, 3, 2, 0]


def test_image_grid_shows_nan_pixels(tmp_path):
    figure = plot_image_grid({"X": [[np.nan, 1.0, 0.0, 2.0]]}, (2, 2))
    figure.savefig(tmp_path / "nan.png")
    image = figure.axes[0].images[0]
    assert np.ma.getmaskarray(image.get_array()).sum() == 1
    assert image.get_clim() == (0, 2)


def test_image_grid_draws_pixels_beyond_the_limits_in_red_and_blue():
    image = plot_image_grid({"X": [[-1.0, 0.0, 16.0, 17.0]]}, (2, 2), limits=(0, 16)).axes[0].images[0]
    (r_low, _, b_low, _), (r_high, _, b_high, _) = image.to_rgba([-1.0, 17.0])
    assert b_low > 2 * r_low
    assert r_high > 2 * b_high
    assert_array_equal(image.to_rgba([0.0, 16.0])[:, :3], [[0, 0, 0], [1, 1, 1]])


def test_image_grid_draws_on_the_figure_given(digits):
    figure = plt.figure()
    assert plot_image_grid(digits, (8, 8), figure=figure) is figure
    assert plt.get_fignums() == [figure.number]


def test_image_grid_refuses_rows_of_another_size(digits):
    with pytest.raises(ValueError, match=r"rows\['X'\] has shape \(8, 64\).*shape=\(8, 9\).*72"):
        plot_image_grid(digits, (8, 9))


def test_image_grid_refuses_no_rows():
    with pytest.raises(ValueError, match="rows is empty"):
        plot_image_grid({}, (8, 8))


def test_outlier_map_draws_the_size_of_each_entry(assert_golden):
    rng = np.random.default_rng(0)
    S = np.zeros((40, 60))
    S[rng.integers(0, 40, 90), rng.integers(0, 60, 90)] = rng.uniform(-5, 5, 90)
    S[10:14, 20:30] = -4
    ax = plot_outlier_map(S)
    assert_array_equal(ax.images[0].get_array(), np.abs(S))
    assert ax.images[0].get_clim() == (0, np.percentile(np.abs(S[S != 0]), 99))
    assert_golden(ax.figure, "outlier_map")


def test_outlier_map_counts_nan_as_zero():
    drawn = plot_outlier_map([[np.nan, -1.0]]).images[0].get_array()
    assert_array_equal(drawn.filled(np.nan), [[0, 1]])


def test_outlier_map_of_a_large_matrix_keeps_every_outlier_in_its_place():
    S = np.zeros((3000, 1300))
    S[2999, 0], S[1234, 1299] = -9, 8
    image = plot_outlier_map(S).images[0]
    drawn = np.asarray(image.get_array())
    assert max(drawn.shape) <= 256
    assert sorted(drawn[drawn > 0]) == [8, 9]
    assert drawn[-1, 0] == 9
    row, column = np.argwhere(drawn == 8)[0]
    assert_allclose([row / drawn.shape[0], column / drawn.shape[1]], [1234 / 3000, 1], atol=1 / 250)
    assert image.get_extent() == [0, 1300, 3000, 0]


def test_outlier_map_draws_on_the_axes_given():
    _, ax = plt.subplots()
    assert plot_outlier_map(np.eye(3), ax=ax) is ax


def test_outlier_map_refuses_a_vector():
    with pytest.raises(ValueError, match=r"S has shape \(3,\)"):
        plot_outlier_map([1.0, 2.0, 3.0])


def test_one_gross_error_does_not_pale_the_outlier_map():
    S = np.full((20, 20), 1.0)
    S[3, 3] = 1e6
    assert plot_outlier_map(S).images[0].get_clim() == (0, 1)
