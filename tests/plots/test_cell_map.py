"""The cell map as drawn."""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from frpcag.plots import plot_cell_map


def sensor_table():
    """Return deviations of 50 days of 20 sensors: scattered errors, a stuck sensor, and missing cells."""
    rng = np.random.default_rng(0)
    D = 0.3 * rng.normal(size=(50, 20))
    wrong = rng.random(D.shape) < 0.03
    D[wrong] += rng.choice([-5, 5], wrong.sum())
    wrong[10:22, 3], D[10:22, 3] = True, -4
    D[40:44, 2] = np.nan
    return D, wrong


def drawn(ax):
    """Return the map as an array, zero where nothing is drawn."""
    return np.ma.filled(ax.images[0].get_array(), 0)


def test_cell_map_shows_flagged_cells_with_names_and_missing_ones(assert_golden):
    D, wrong = sensor_table()
    names = {"feature_names": [f"sensor {j}" for j in range(20)], "sample_names": [f"day {i}" for i in range(50)]}
    ax = plot_cell_map(D, wrong.astype(float), **names)
    assert {text.get_text() for text in ax.get_xticklabels()} == set(names["feature_names"])
    assert {text.get_text() for text in ax.get_yticklabels()} == set(names["sample_names"])
    assert ax.get_legend().get_texts()[0].get_text() == "missing"
    assert_golden(ax.figure, "cell_map")


def test_given_order_draws_every_cell_in_its_place():
    D, wrong = sensor_table()
    wrong &= np.isfinite(D)
    assert_array_equal(drawn(plot_cell_map(D, wrong, order="given")), np.where(wrong, D, 0))


def test_sorting_moves_names_with_their_cells():
    D, wrong = sensor_table()
    ax = plot_cell_map(D, wrong)
    rows, columns = (
        [int(text.get_text()) for text in labels] for labels in (ax.get_yticklabels(), ax.get_xticklabels())
    )
    assert_array_equal(drawn(ax), np.where(wrong & np.isfinite(D), D, 0)[np.ix_(rows, columns)])


def test_rows_wrong_in_the_same_features_lie_together():
    wrong = np.zeros((40, 12), bool)
    wrong[::4, [1, 5, 9]] = wrong[1::4, [2, 6]] = True
    ax = plot_cell_map(np.ones(wrong.shape), wrong)
    kinds = [int(text.get_text()) % 4 for text in ax.get_yticklabels()]
    assert sum(a != b for a, b in pairwise(kinds[:20])) == 1
    assert set(kinds[20:]) == {2, 3}, "rows without a wrong cell come last"


@pytest.mark.parametrize("at", [(0, 0), (7123, 321), (9999, 499)])
def test_one_flagged_cell_of_five_million_is_seen_in_the_file(at, tmp_path):
    D, wrong = np.zeros((10_000, 500), np.float32), np.zeros((10_000, 500), bool)
    D[at], wrong[at] = -0.01, True
    D[5000, 250] = 100  # large, but not probable
    ax = plot_cell_map(D, wrong, order="given")
    assert np.count_nonzero(drawn(ax)) == 1
    ax.figure.savefig(tmp_path / "map.png", dpi=100)
    dots = plt.imread(tmp_path / "map.png")[:, :, :3]
    box = ax.get_window_extent()
    left, right, top, bottom = int(box.x0), int(box.x1) + 1, len(dots) - int(box.y1) - 1, len(dots) - int(box.y0)
    inside = dots[top:bottom, left:right]
    assert (inside[..., 2] - inside[..., 0] > 0.2).sum() >= 2, "blue dots inside the frame"
    assert ax.get_yticklabels()[0].get_text() == str(at[0])


def test_opposite_deviations_under_one_dot_show_the_larger():
    D, wrong = np.zeros((10_000, 500)), np.zeros((10_000, 500), bool)
    D[0, 0], D[1, 1], wrong[:2, :2] = 2.0, -3.0, True
    assert drawn(plot_cell_map(D, wrong, order="given"))[0, 0] == -3.0


def test_the_colour_scale_is_symmetric_and_ignores_a_gross_error():
    D = np.linspace(-2, 2, 200).reshape(20, 10)
    D[3, 3] = 1e6
    norm = plot_cell_map(D, np.ones(D.shape)).images[0].norm
    assert norm.vmin == -norm.vmax
    assert norm.vmax < 3


def test_features_are_divided_by_their_scale():
    ax = plot_cell_map([[1.0, 1000.0]], [[1, 1]], scale=[1.0, 1000.0], order="given")
    assert_array_equal(drawn(ax), [[1, 1]])


def test_nothing_wrong_is_an_empty_map():
    ax = plot_cell_map(np.ones((5, 4)), np.zeros((5, 4)))
    assert ax.images[0].get_array().mask.all()


def test_cell_map_is_drawn_on_the_axes_given():
    figure, ax = plt.subplots()
    assert plot_cell_map([[1.0]], [[1.0]], ax=ax) is ax
    assert plt.get_fignums() == [figure.number]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"deviation": [1.0]}, "deviation has shape"),
        ({"probability": [[1.0]]}, "probability has shape"),
        ({"scale": [1.0]}, "scale must be 2 numbers > 0"),
        ({"scale": [1.0, 0.0]}, "scale must be 2 numbers > 0"),
        ({"order": "random"}, "order='random'"),
        ({"feature_names": ["a"]}, "1 names for 2 features"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(change, words):
    arguments = {"deviation": [[1.0, 2.0]], "probability": [[1.0, 0.0]], **change}
    with pytest.raises(ValueError, match=words):
        plot_cell_map(arguments.pop("deviation"), arguments.pop("probability"), **arguments)
