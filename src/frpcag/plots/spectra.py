"""Curves over an index: singular values, and the history of a solve."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

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


def _vector(name: str, values: Any, *, like: np.ndarray | None = None) -> np.ndarray:
    values = np.asarray(values, dtype=float)
    if values.ndim != 1 or (like is not None and values.shape != like.shape):
        wanted = "one dimension" if like is None else f"the shape {like.shape} of n_iter"
        raise ValueError(f"{name} has shape {values.shape}; it must have {wanted}; pass a vector that has.")
    return values
