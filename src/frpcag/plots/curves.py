"""Curves over an index: singular values, the history of a solve, and how much of each sample stands out."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, PercentFormatter

from frpcag.plots.style import COLORS, TEXT_SIZE, axes_or_new, dress, next_look


def plot_singular_values(Sigma: Any, *, ax: Axes | None = None, label: str | None = None) -> Axes:
    """Draw singular values on a logarithmic scale against their number, counted from 1.

    Parameters
    ----------
    Sigma : array-like of shape (n_components,)
        Singular values; zeros, which a logarithmic scale cannot hold, are left out.
    ax : Axes or None, default=None
        Where to draw; pass the same one again to compare spectra. A new one by default.
    label : str or None, default=None
        Name of the curve in the legend.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from frpcag.plots import plot_singular_values
    >>> ax = plot_singular_values([10.0, 3.0, 0.1], label="U")
    >>> ax.lines[0].get_ydata()
    array([10. ,  3. ,  0.1])
    >>> plt.close(ax.figure)
    """
    Sigma = _vector("Sigma", Sigma)
    ax = axes_or_new(ax)
    positive = Sigma > 0
    number = np.arange(1, len(Sigma) + 1)
    ax.plot(number[positive], Sigma[positive], ms=3, lw=1.2, label=label, **next_look(ax))
    ax.set_yscale("log")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    if label is not None:
        ax.legend(fontsize=TEXT_SIZE, frameon=False)
    return dress(ax, xlabel="component", ylabel="singular value")


def plot_history(n_iter: Any, gap: Any, *, objective: Any = None, ax: Axes | None = None) -> Axes:
    """Draw the relative duality gap of a solve against its steps, and the objective on a second scale.

    Parameters
    ----------
    n_iter : array-like of shape (n_records,)
        Step of each record.
    gap : array-like of shape (n_records,)
        Relative duality gap; records without one (NaN) and zeros are left out of the logarithmic curve.
    objective : array-like of shape (n_records,) or None, default=None
        Objective, drawn dashed against the right axis; NaN is left out.
    ax : Axes or None, default=None
        Where to draw; a new one by default.

    Returns
    -------
    Axes
        That of the gap; the objective's is the last of ``ax.figure.axes``.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from frpcag.plots import plot_history
    >>> ax = plot_history([10, 20, 30], [1e-1, 1e-2, 1e-4], objective=[9.0, 7.5, 7.4])
    >>> ax.get_ylabel()
    'relative duality gap'
    >>> plt.close(ax.figure)
    """
    n_iter = _vector("n_iter", n_iter)
    gap = _vector("gap", gap, like=n_iter)
    ax = axes_or_new(ax)
    shown = np.isfinite(gap) & (gap > 0)
    ax.plot(n_iter[shown], gap[shown], color=COLORS[0], marker="o", ms=3, lw=1.2)
    ax.set_yscale("log")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    dress(ax, xlabel="step", ylabel="relative duality gap")
    if objective is None:
        return ax
    objective = _vector("objective", objective, like=n_iter)
    shown = np.isfinite(objective)
    right = ax.twinx()
    right.plot(n_iter[shown], objective[shown], color=COLORS[1], ls="--", lw=1.2)
    dress(right, xlabel="step", ylabel="objective", grid=False)
    right.spines["right"].set_visible(True)
    ax.yaxis.label.set_color(COLORS[0])
    right.yaxis.label.set_color(COLORS[1])
    return ax


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


def _vector(name: str, values: Any, *, like: np.ndarray | None = None) -> np.ndarray:
    values = np.asarray(values, dtype=float)
    if values.ndim != 1 or (like is not None and values.shape != like.shape):
        wanted = "one dimension" if like is None else f"the shape {like.shape} of n_iter"
        raise ValueError(f"{name} has shape {values.shape}; it must have {wanted}; pass a vector that has.")
    return values
