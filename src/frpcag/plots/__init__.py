"""Plots: each takes arrays, draws on the Axes it is given, and returns it."""

from frpcag.plots.cell_map import plot_cell_map
from frpcag.plots.clusters import plot_cluster_counts, plot_embedding
from frpcag.plots.curves import plot_history, plot_outlier_shares, plot_singular_values
from frpcag.plots.frames import plot_image_grid, plot_outlier_map

__all__ = [
    "plot_cell_map",
    "plot_cluster_counts",
    "plot_embedding",
    "plot_history",
    "plot_image_grid",
    "plot_outlier_map",
    "plot_outlier_shares",
    "plot_singular_values",
]
