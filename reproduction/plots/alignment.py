"""Matrices that show structure: covariance in a graph basis, shape interaction, alignment of singular vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from frpcag.plots.style import TEXT_SIZE, axes_or_new, dress

# Decibels below the largest entry that are still told apart.
_RANGE_DB = 60.0


def plot_graph_covariance(Gamma: Any, *, range_db: float = _RANGE_DB, ax: Axes | None = None) -> Axes:
    """Draw ``Gamma = P' C P`` in decibels below its largest entry (Shahid et al. 2016).

    Parameters
    ----------
    Gamma : array-like of shape (k, k)
        Covariance in the basis of the feature graph, low frequencies first. If only the diagonal is bright, graph and
        covariance have the same eigenvectors.
    range_db : float, default=60
        Entries this far below the largest, and zeros, all get the darkest colour.
    ax : Axes or None, default=None
        Where to draw; a new one by default.

    Returns
    -------
    Axes

    Notes
    -----
    ``20 log10 |Gamma|``. The paper (Figs. 2 and 3) does not say which factor its decibels have.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from reproduction.plots import plot_graph_covariance
    >>> ax = plot_graph_covariance([[10.0, 0.1], [0.1, 1.0]])
    >>> ax.images[0].get_array()[0].tolist()
    [0.0, -40.0]
    >>> plt.close(ax.figure)
    """
    size = np.abs(_matrix("Gamma", Gamma))
    top = size.max()
    with np.errstate(divide="ignore"):
        decibels = 20 * np.log10(size / top) if top > 0 else np.full(size.shape, -range_db)
    return _draw(
        np.maximum(decibels, -range_db),
        axes_or_new(ax, height=2.5),
        {"cmap": "viridis", "vmin": -range_db, "vmax": 0.0},
        bar="dB",
        xlabel="graph frequency",
        ylabel="graph frequency",
    )


def plot_shape_interaction(SIM: Any, *, labels: Any = None, ax: Axes | None = None) -> Axes:
    """Draw the size of the shape interaction matrix ``W W'``, with lines between the classes.

    Parameters
    ----------
    SIM : array-like of shape (m, m)
        Samples sorted by class.
    labels : array-like of shape (m,) or None, default=None
        Class of each sample, in the same order; a thin line is drawn wherever it changes.
    ax : Axes or None, default=None
        Where to draw; a new one by default.

    Returns
    -------
    Axes

    Notes
    -----
    The colour scale ends at the 99.5th percentile, so that a few samples do not darken the rest.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import numpy as np
    >>> from reproduction.plots import plot_shape_interaction
    >>> ax = plot_shape_interaction(np.eye(4), labels=[0, 0, 1, 1])
    >>> len(ax.lines)
    2
    >>> plt.close(ax.figure)
    """
    size = np.abs(_matrix("SIM", SIM))
    if size.shape[0] != size.shape[1]:
        raise ValueError(f"SIM has shape {size.shape}; it must be square, samples against samples.")
    ax = axes_or_new(ax, height=2.5)
    top = float(np.percentile(size, 99.5)) or float(size.max()) or 1.0
    scale = {"cmap": "Blues", "vmin": 0.0, "vmax": top}
    _draw(size, ax, scale, bar="|W W'|", xlabel="sample", ylabel="sample")
    if labels is not None:
        labels = np.asarray(labels)
        if labels.shape != (len(size),):
            raise ValueError(f"labels has shape {labels.shape}; it must hold one label for each of {len(size)} rows.")
        for edge in np.flatnonzero(labels[1:] != labels[:-1]) + 0.5:
            ax.axhline(edge, color="0.3", lw=0.5)
            ax.axvline(edge, color="0.3", lw=0.5)
    return ax


def plot_alignment(A: Any, *, vectors: str = "W", basis: str = "Q", ax: Axes | None = None) -> Axes:
    """Draw ``|Sigma W' Q|``: singular vectors down, graph eigenvectors across, low frequencies at the left.

    Parameters
    ----------
    A : array-like of shape (c, k)
        ``Sigma W' Q`` of the samples or ``Sigma V' P`` of the features (Shahid et al. 2016, Fig. 4).
    vectors, basis : str, default="W" and "Q"
        Letters of the two, for the names of the axes.
    ax : Axes or None, default=None
        Where to draw; a new one by default.

    Returns
    -------
    Axes

    Notes
    -----
    Sizes are drawn as a share of the largest, on a square-root scale, so that the first singular value does not hide
    the rest.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from reproduction.plots import plot_alignment
    >>> ax = plot_alignment([[4.0, 0.0], [0.0, -1.0]])
    >>> ax.images[0].get_array().tolist()
    [[1.0, 0.0], [0.0, 0.5]]
    >>> plt.close(ax.figure)
    """
    size = np.abs(_matrix("A", A))
    top = size.max()
    return _draw(
        np.sqrt(size / top) if top > 0 else size,
        axes_or_new(ax),
        {"cmap": "Blues", "vmin": 0.0, "vmax": 1.0},
        bar=f"(|Σ{vectors}'{basis}| / max)^½",
        xlabel=f"graph eigenvector ({basis})",
        ylabel=f"singular vector ({vectors})",
    )


def _draw(values: np.ndarray, ax: Axes, scale: dict[str, Any], *, bar: str, xlabel: str, ylabel: str) -> Axes:
    # "auto" smooths what has more cells than the figure has dots, and nothing else.
    image = ax.imshow(values, interpolation="antialiased", aspect="auto", **scale)
    if values.shape[0] == values.shape[1]:
        ax.set_box_aspect(1)
    colours = ax.figure.colorbar(image, ax=ax, fraction=0.05, pad=0.02)
    colours.set_label(bar, fontsize=TEXT_SIZE)
    colours.ax.tick_params(labelsize=TEXT_SIZE)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(5, integer=True, min_n_ticks=1))
    dress(ax, xlabel=xlabel, ylabel=ylabel, grid=False)
    ax.spines[["top", "right"]].set_visible(True)
    return ax


def _matrix(name: str, values: Any) -> np.ndarray:
    values = np.asarray(values, dtype=float)
    if values.ndim != 2 or values.size == 0:
        raise ValueError(f"{name} has shape {values.shape}; it must have two dimensions; pass a matrix with entries.")
    return values
