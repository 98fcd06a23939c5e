"""A number over a grid of both gammas."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from frpcag.plots.style import GREY, TEXT_SIZE, axes_or_new, dress


def plot_gamma_grid(gammas1: Any, gammas2: Any, values: Any, *, label: str, ax: Axes | None = None) -> Axes:
    """Draw an error, a rank or any other number over a grid of both gammas, with a cross at its least value.

    Parameters
    ----------
    gammas1 : array-like of shape (m1,)
        Gammas of the sample graph, the vertical axis.
    gammas2 : array-like of shape (m2,)
        Gammas of the feature graph, the horizontal axis.
    values : array-like of shape (m1, m2)
        NaN leaves a grey cell.
    label : str
        Name of the number.
    ax : Axes or None, default=None
        Where to draw; a new one by default.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from reproduction.plots import plot_gamma_grid
    >>> ax = plot_gamma_grid([0.1, 1.0], [1.0], [[0.5], [0.2]], label="clustering error")
    >>> ax.lines[0].get_xydata()
    array([[0., 1.]])
    >>> plt.close(ax.figure)
    """
    values = np.asarray(values, dtype=float)
    if values.shape != (len(gammas1), len(gammas2)):
        wanted = (len(gammas1), len(gammas2))
        raise ValueError(f"values has shape {values.shape}; it must be {wanted}, gamma1 down and gamma2 across.")
    ax = axes_or_new(ax)
    image = ax.imshow(values, cmap="cividis", aspect="auto", interpolation="nearest")
    ax.set_facecolor(GREY)
    if np.isfinite(values).any():
        row, column = np.unravel_index(np.nanargmin(values), values.shape)
        ax.plot([column], [row], marker="x", ms=8, mew=2, color="white", ls="none")
    ax.set_xticks(range(len(gammas2)), [f"{gamma:.3g}" for gamma in gammas2])
    ax.set_yticks(range(len(gammas1)), [f"{gamma:.3g}" for gamma in gammas1])
    bar = ax.figure.colorbar(image, ax=ax, fraction=0.05, pad=0.02)
    bar.set_label(label, fontsize=TEXT_SIZE)
    bar.ax.tick_params(labelsize=TEXT_SIZE)
    return dress(ax, xlabel="gamma2", ylabel="gamma1", grid=False)
