"""Plots: each takes arrays, draws on the Axes it is given, and returns it."""

from frpcag.plots.alignment import plot_alignment, plot_graph_covariance, plot_shape_interaction
from frpcag.plots.cell_map import plot_cell_map
from frpcag.plots.clusters import plot_cluster_counts, plot_embedding
from frpcag.plots.frames import plot_contact_sheet, plot_image_grid, plot_outlier_map
from frpcag.plots.frequencies import plot_attenuation, plot_frequency_energy, plot_graph_spectrum
from frpcag.plots.gamma_grid import plot_gamma_grid
from frpcag.plots.outliers import plot_outlier_shares
from frpcag.plots.spectra import plot_history, plot_singular_values

__all__ = [
    "plot_alignment",
    "plot_attenuation",
    "plot_cell_map",
    "plot_cluster_counts",
    "plot_contact_sheet",
    "plot_embedding",
    "plot_frequency_energy",
    "plot_gamma_grid",
    "plot_graph_covariance",
    "plot_graph_spectrum",
    "plot_history",
    "plot_image_grid",
    "plot_outlier_map",
    "plot_outlier_shares",
    "plot_shape_interaction",
    "plot_singular_values",
]
