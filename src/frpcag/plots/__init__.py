"""Arrays in, Axes out: each plot draws on the Axes it is given and returns it."""

from frpcag.plots.clusters import plot_embedding
from frpcag.plots.frames import plot_image_grid, plot_outlier_map
from frpcag.plots.spectra import plot_history, plot_singular_values

__all__ = [
    "plot_embedding",
    "plot_history",
    "plot_image_grid",
    "plot_outlier_map",
    "plot_singular_values",
]
