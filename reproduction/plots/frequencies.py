"""Curves over graph frequencies: eigenvalues with their gap, energy, attenuation."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from frpcag.plots.style import COLORS, TEXT_SIZE, axes_or_new, dress, next_look


def plot_graph_spectrum(eigenvalues: Any, *, k: int | None = None, ax: Axes | None = None) -> Axes:
    """Draw the lowest eigenvalues of a Laplacian, and the gap after the first ``k``.

    Parameters
    ----------
    eigenvalues : array-like of shape (m,)
        Ascending.
    k : int or None, default=None
        Shade the gap between the k-th and the next eigenvalue, counted from 1; None shades nothing.
    ax : Axes or None, default=None
        Where to draw; a new one by default.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from reproduction.plots import plot_graph_spectrum
    >>> ax = plot_graph_spectrum([0.0, 0.1, 0.6, 0.7], k=2)
    >>> ax.get_legend().get_texts()[0].get_text()
    'gap after 2'
    >>> plt.close(ax.figure)
    """
    eigenvalues = _curve("eigenvalues", eigenvalues)
    if k is not None and not 1 <= k < len(eigenvalues):
        raise ValueError(f"k={k} must lie between 1 and {len(eigenvalues) - 1}, one less than there are eigenvalues.")
    ax = axes_or_new(ax)
    if k is not None:
        ax.axhspan(eigenvalues[k - 1], eigenvalues[k], color=COLORS[5], alpha=0.3, lw=0, label=f"gap after {k}")
        ax.legend(fontsize=TEXT_SIZE, frameon=False)
    ax.plot(np.arange(1, len(eigenvalues) + 1), eigenvalues, color=COLORS[0], marker="o", ms=3, lw=0.8)
    _count(ax)
    return dress(ax, xlabel="number of the eigenvalue", ylabel="graph frequency")


def plot_frequency_energy(energies: dict[str, Any], *, ax: Axes | None = None) -> Axes:
    """Draw the cumulative energy of matrices over the graph frequencies, lowest first.

    Parameters
    ----------
    energies : mapping of str to array-like of shape (k,)
        Share of the energy at each frequency, by the name of the matrix, such as ``{"X": ..., "U": ...}``.
    ax : Axes or None, default=None
        Where to draw; a new one by default.

    Returns
    -------
    Axes
        With one curve of cumulative shares for each matrix. The higher the curve, the smoother the matrix on the graph.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from reproduction.plots import plot_frequency_energy
    >>> ax = plot_frequency_energy({"X": [0.5, 0.25], "U": [0.9, 0.05]})
    >>> ax.lines[0].get_ydata()
    array([0.5 , 0.75])
    >>> plt.close(ax.figure)
    """
    ax = axes_or_new(ax)
    for name, energy in energies.items():
        shares = np.cumsum(_curve(f"energies[{name!r}]", energy))
        step = max(1, len(shares) // 10)
        ax.plot(np.arange(1, len(shares) + 1), shares, ms=3, lw=1.2, markevery=step, label=name, **next_look(ax))
    ax.set_ylim(0, 1.02)
    ax.legend(fontsize=TEXT_SIZE, frameon=False, loc="lower right")
    _count(ax)
    return dress(ax, xlabel="graph frequencies, lowest first", ylabel="share of the energy")


def plot_attenuation(measured: Any, predicted: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the share of each singular value of ``X`` that is left in ``U``, and the share that the graphs predict.

    Parameters
    ----------
    measured : array-like of shape (m,)
        ``Sigma_U / Sigma_X``.
    predicted : array-like of shape (m',)
        ``1 / ((1 + gamma1 lambda_i)(1 + gamma2 omega_i))`` (Shahid et al. 2016, Sec. V-A).
    ax : Axes or None, default=None
        Where to draw; a new one by default.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from reproduction.plots import plot_attenuation
    >>> ax = plot_attenuation([0.9, 0.5], [1.0, 0.4])
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['measured', 'predicted']
    >>> plt.close(ax.figure)
    """
    measured, predicted = _curve("measured", measured), _curve("predicted", predicted)
    ax = axes_or_new(ax)
    ax.plot(np.arange(1, len(measured) + 1), measured, color=COLORS[0], marker="o", ms=3, lw=1.2, label="measured")
    ax.plot(np.arange(1, len(predicted) + 1), predicted, color=COLORS[1], ls="--", lw=1.2, label="predicted")
    ax.set_ylim(bottom=0)
    ax.legend(fontsize=TEXT_SIZE, frameon=False)
    _count(ax)
    return dress(ax, xlabel="component", ylabel="singular value left")


def _count(ax: Axes) -> None:
    """Put ticks at whole numbers only."""
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def _curve(name: str, values: Any) -> np.ndarray:
    values = np.asarray(values, dtype=float)
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(f"{name} has shape {values.shape}; it must have one dimension; pass a vector with entries.")
    return values
