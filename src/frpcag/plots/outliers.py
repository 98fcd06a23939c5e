"""How much of each sample or feature stands out."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, PercentFormatter

from frpcag.plots.style import COLORS, axes_or_new, dress


def plot_outlier_shares(shares: Any, *, numbers: Any = None, xlabel: str = "sample", ax: Axes | None = None) -> Axes:
    """Draw the share of outlying entries of each sample, frame or feature.

    Parameters
    ----------
    shares : array-like of shape (n,)
        In [0, 1].
    numbers : array-like of shape (n,) or None, default=None
        Number of each sample, frame or feature, ascending; 0, 1, ... by default.
    xlabel : str, default="sample"
        Label of the axis: what the numbers count.
    ax : Axes or None, default=None
        Where to draw; a new one by default.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from frpcag.plots import plot_outlier_shares
    >>> ax = plot_outlier_shares([0.0, 0.5], numbers=[10, 20], xlabel="frame")
    >>> ax.lines[0].get_xdata()
    array([10., 20.])
    >>> plt.close(ax.figure)
    """
    shares = np.asarray(shares, dtype=float)
    numbers = np.arange(shares.size, dtype=float) if numbers is None else np.asarray(numbers, dtype=float)
    if shares.ndim != 1 or shares.size == 0 or numbers.shape != shares.shape:
        raise ValueError(f"shares has shape {shares.shape}; it must be a vector with one number a share.")
    ax = axes_or_new(ax)
    ax.plot(numbers, shares, color=COLORS[0], lw=1.2)
    ax.fill_between(numbers, shares, color=COLORS[0], alpha=0.2, lw=0)
    ax.set_ylim(bottom=0)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    ax.yaxis.set_major_formatter(PercentFormatter(1.0))
    return dress(ax, xlabel=xlabel, ylabel="entries that stand out")
