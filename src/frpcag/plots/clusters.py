"""Samples as points, coloured by cluster; and how many clusters there may be."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from frpcag.plots.style import COLORS, GREY, TEXT_SIZE, axes_or_new, dress, look

# A longer legend hides the points.
_MAX_LEGEND = 10


def plot_embedding(Z: Any, labels: Any = None, *, ax: Axes | None = None) -> Axes:
    """Draw the first two columns of an embedding as points, one colour and marker for each label.

    Parameters
    ----------
    Z : array-like of shape (n_samples, n_components)
        The embedding; a single column is drawn against the number of the sample.
    labels : array-like of shape (n_samples,) or None, default=None
        Clusters or classes. Up to ten get a legend. The label -1 is grey.
    ax : Axes or None, default=None
        Where to draw; a new one by default.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from frpcag.plots import plot_embedding
    >>> ax = plot_embedding([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], ["a", "a", "b"])
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['a', 'b']
    >>> plt.close(ax.figure)
    """
    Z = np.asarray(Z, dtype=float)
    if Z.ndim != 2 or Z.shape[1] == 0:
        raise ValueError(f"Z has shape {Z.shape}; it must be (n_samples, n_components); pass a matrix.")
    labels = np.zeros(len(Z), dtype=int) if labels is None else np.asarray(labels)
    if labels.shape != (len(Z),):
        raise ValueError(f"labels has shape {labels.shape}; it must hold one label for each of {len(Z)} rows.")
    ax = axes_or_new(ax)
    x, y = (Z[:, 0], Z[:, 1]) if Z.shape[1] > 1 else (np.arange(len(Z)), Z[:, 0])
    size = float(np.clip(4000 / max(1, len(Z)), 3, 18))
    classes = np.unique(labels)
    for number, value in enumerate(classes):
        members = labels == value
        ax.scatter(x[members], y[members], s=size, linewidths=0, alpha=0.85, label=str(value), **_look(number, value))
    if 1 < len(classes) <= _MAX_LEGEND:
        ax.legend(
            fontsize=TEXT_SIZE - 1,
            frameon=False,
            loc="center left",
            bbox_to_anchor=(1.0, 0.5),
            handletextpad=0.2,
            borderaxespad=0.2,
            markerscale=(18 / size) ** 0.5,
        )
    if Z.shape[1] > 1:
        return dress(ax, xlabel="component 1", ylabel="component 2")
    return dress(ax, xlabel="sample", ylabel="component 1")


def _look(number: int, value: Any) -> dict[str, Any]:
    if np.issubdtype(type(value), np.number) and value == -1:
        return {"color": GREY, "marker": "."}
    return look(number)


def plot_cluster_counts(counts: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the gaps of the spectrum as bars and the scores of the numbers tried as points, the best one filled.

    Parameters
    ----------
    counts : dict of str to array-like
        ``FRPCAGClustering.counts_``: ``n_clusters``, ``gap`` and ``score``; the score is NaN for numbers not tried.
    ax : Axes or None, default=None
        Where to draw; a new one by default.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from frpcag.plots import plot_cluster_counts
    >>> ax = plot_cluster_counts({"n_clusters": [2, 3], "gap": [0.1, 0.5], "score": [float("nan"), 0.4]})
    >>> ax.lines[-1].get_xydata()
    array([[3. , 0.4]])
    >>> plt.close(ax.figure)
    """
    tried, gap, score = (np.asarray(counts[name], dtype=float) for name in ("n_clusters", "gap", "score"))
    ax = axes_or_new(ax)
    ax.bar(tried, gap, width=0.8, color=GREY, alpha=0.5, label="relative gap")
    seen = np.isfinite(score)
    if seen.any():
        ax.plot(tried[seen], score[seen], marker="o", ls="none", mfc="none", color=COLORS[0], label="gap x stability")
        best = int(np.nanargmax(score))
        ax.plot(
            [tried[best]], [score[best]], marker="o", ls="none", color=COLORS[1], label=f"{tried[best]:.0f} clusters"
        )
    ax.legend(fontsize=TEXT_SIZE, frameon=False)
    return dress(ax, xlabel="number of clusters", ylabel="score")
