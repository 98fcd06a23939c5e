"""Plots of the paper's theory and of single examples; those of users are in frpcag.plots."""

from reproduction.plots.alignment import plot_alignment, plot_graph_covariance, plot_shape_interaction
from reproduction.plots.contact_sheet import plot_contact_sheet
from reproduction.plots.frequencies import plot_attenuation, plot_frequency_energy, plot_graph_spectrum
from reproduction.plots.gamma_grid import plot_gamma_grid

__all__ = [
    "plot_alignment",
    "plot_attenuation",
    "plot_contact_sheet",
    "plot_frequency_energy",
    "plot_gamma_grid",
    "plot_graph_covariance",
    "plot_graph_spectrum",
    "plot_shape_interaction",
]
