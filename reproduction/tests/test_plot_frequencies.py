"""Curves over graph frequencies as drawn."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from reproduction.plots import plot_attenuation, plot_frequency_energy, plot_graph_spectrum


@pytest.fixture
def eigenvalues():
    return np.concatenate([[0.0, 0.01, 0.02], np.linspace(0.4, 0.9, 12)])


def test_graph_spectrum_shades_the_gap_after_k(eigenvalues, assert_golden):
    ax = plot_graph_spectrum(eigenvalues, k=3)
    assert_array_equal(ax.lines[0].get_xydata(), np.column_stack([np.arange(1, 16), eigenvalues]))
    box = ax.patches[0].get_bbox()
    assert_allclose([box.y0, box.y1], [0.02, 0.4])
    assert_golden(ax.figure, "graph_spectrum")


def test_graph_spectrum_without_k_shades_nothing(eigenvalues):
    ax = plot_graph_spectrum(eigenvalues)
    assert len(ax.patches) == 0
    assert ax.get_legend() is None


@pytest.mark.parametrize("k", [0, 15])
def test_graph_spectrum_refuses_a_k_without_a_gap(eigenvalues, k):
    with pytest.raises(ValueError, match=rf"k={k} must lie between 1 and 14"):
        plot_graph_spectrum(eigenvalues, k=k)


def test_frequency_energy_adds_up(assert_golden):
    energies = {"X": np.full(20, 0.03), "U": 0.4 * 0.6 ** np.arange(20)}
    ax = plot_frequency_energy(energies)
    for line, energy in zip(ax.lines, energies.values(), strict=True):
        assert_allclose(line.get_ydata(), np.cumsum(energy))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["X", "U"]
    assert_golden(ax.figure, "frequency_energy")


def test_attenuation_draws_measured_and_predicted(assert_golden):
    measured, predicted = 0.9 ** np.arange(1, 16), 0.85 ** np.arange(20)
    ax = plot_attenuation(measured, predicted)
    assert_array_equal(ax.lines[0].get_ydata(), measured)
    assert_array_equal(ax.lines[1].get_xydata(), np.column_stack([np.arange(1, 21), predicted]))
    assert_golden(ax.figure, "attenuation")


def test_curves_are_drawn_on_the_axes_given(eigenvalues):
    figure, ax = plt.subplots()
    assert plot_graph_spectrum(eigenvalues, ax=ax) is ax
    assert plot_frequency_energy({"X": eigenvalues}, ax=ax) is ax
    assert plot_attenuation(eigenvalues, eigenvalues, ax=ax) is ax
    assert plt.get_fignums() == [figure.number]


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: plot_graph_spectrum(np.eye(2)), r"eigenvalues has shape \(2, 2\)"),
        (lambda: plot_frequency_energy({"X": []}), r"energies\['X'\] has shape \(0,\)"),
        (lambda: plot_attenuation([[1.0]], [1.0]), r"measured has shape \(1, 1\)"),
    ],
)
def test_curves_refuse_what_is_no_vector(draw, message):
    with pytest.raises(ValueError, match=message):
        draw()
