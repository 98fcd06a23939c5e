"""Rows of X as pictures: images of X, U and S, and the map of the outliers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.layout_engine import ConstrainedLayoutEngine

from frpcag.plots.style import COLUMN_WIDTH, TEXT_SIZE, axes_or_new, dress

# Cells of an outlier map along one side: more than the dots of a column-wide figure would show nothing new.
_MAP_CELLS = 256


def plot_image_grid(
    rows: Mapping[str, Any],
    shape: tuple[int, int],
    *,
    n_images: int = 8,
    signed: Collection[str] = ("S",),
    limits: tuple[float, float] | None = None,
    figure: FigureBase | None = None,
) -> FigureBase:
    """Draw the first images of several matrices, each matrix as one row of images with a title.

    Parameters
    ----------
    rows : mapping of str to array-like of shape (n_samples, h * w)
        Title and images of each row, such as ``{"X": X, "U": U, "S": X - U}``.
    shape : tuple of int (h, w)
        Size of an image.
    n_images : int, default=8
        Images in a row; the first ones, or all there are.
    signed : collection of str, default=("S",)
        Titles of rows drawn with zero in white, negative in blue and positive in red, up to the 99th percentile of
        their sizes. The other rows share one grey scale, so that you can compare them.
    limits : tuple of float (black, white), optional
        Range of the grey scale; pixels below it are drawn blue, pixels above it red. By default all values that occur.
    figure : Figure, SubFigure or None, default=None
        Where to draw; a new one by default.

    Returns
    -------
    Figure or SubFigure
        With one Axes for each row. NaN pixels are drawn light blue in grey rows.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import numpy as np
    >>> from frpcag.plots import plot_image_grid
    >>> X = np.arange(24.0).reshape(2, 12)
    >>> figure = plot_image_grid({"X": X, "S": X - 10}, (3, 4))
    >>> [ax.get_title(loc="left") for ax in figure.axes]
    ['X', 'S']
    >>> plt.close(figure)
    """
    h, w = shape
    images = {name: _first_images(name, values, h, w, n_images) for name, values in rows.items()}
    if not images:
        raise ValueError("rows is empty; pass at least one title with its images, such as {'X': X}.")
    if figure is None:
        n_shown = max(len(stack) for stack in images.values())
        row_height = COLUMN_WIDTH / n_shown * h / w + 0.15
        layout = ConstrainedLayoutEngine(h_pad=0.02, hspace=0)
        figure = plt.figure(figsize=(COLUMN_WIDTH, row_height * len(images)), layout=layout)
    grey = [stack for name, stack in images.items() if name not in signed]
    low, high = limits or (_limits(np.concatenate([stack.ravel() for stack in grey])) if grey else (0.0, 1.0))
    axes = figure.subplots(len(images), 1, squeeze=False)[:, 0]
    for ax, (name, stack) in zip(axes, images.items(), strict=True):
        if name in signed:
            bound = _robust_limit(stack)
            _draw_row(ax, stack, cmap="RdBu_r", vmin=-bound, vmax=bound)
        else:
            _draw_row(ax, stack, cmap="gray", vmin=low, vmax=high)
        ax.set_title(name, loc="left", fontsize=TEXT_SIZE, pad=2)
    return figure


def plot_outlier_map(S: Any, *, ax: Axes | None = None) -> Axes:
    """Draw where and how strongly the data are corrupted: ``|S|``, with samples as rows and features as columns.

    The colours end at the 99th percentile of the values shown, so one gross error does not hide the others.

    Parameters
    ----------
    S : array-like of shape (n_samples, n_features)
        The sparse part; NaN counts as 0. A matrix larger than the figure can show is reduced by the
        maximum of neighbouring entries, so that no outlier is lost.
    ax : Axes or None, default=None
        Where to draw; a new one by default.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from frpcag.plots import plot_outlier_map
    >>> ax = plot_outlier_map([[0.0, -2.0], [0.0, 0.0]])
    >>> float(ax.images[0].get_array().max())
    2.0
    >>> plt.close(ax.figure)
    """
    S = np.asarray(S)
    if S.ndim != 2 or S.size == 0:
        raise ValueError(f"S has shape {S.shape}; it must be (n_samples, n_features); pass a matrix.")
    ax = axes_or_new(ax)
    n, p = S.shape
    shown = _shrink(S)
    limit = _robust_limit(shown)
    image = ax.imshow(
        shown, cmap="Blues", vmin=0, vmax=limit, aspect="auto", extent=(0, p, n, 0), interpolation="antialiased"
    )
    extend = "max" if shown.max() > limit else "neither"
    bar = ax.figure.colorbar(image, ax=ax, fraction=0.05, pad=0.02, extend=extend)
    bar.set_label("|S|", fontsize=TEXT_SIZE)
    bar.ax.tick_params(labelsize=TEXT_SIZE)
    dress(ax, xlabel="feature", ylabel="sample", grid=False)
    ax.spines[["top", "right"]].set_visible(True)
    return ax


def _first_images(name: str, values: Any, h: int, w: int, n_images: int) -> np.ndarray:
    values = np.asarray(values)
    if values.ndim != 2 or len(values) == 0 or values.shape[1] != h * w:
        raise ValueError(
            f"rows[{name!r}] has shape {values.shape}, which does not match shape={(h, w)}; pass one image a "
            f"row, (n_samples, {h * w})."
        )
    return values[:n_images].reshape(-1, h, w).astype(float)


def _limits(values: np.ndarray) -> tuple[float, float]:
    """Return the smallest and largest finite value, or (0, 1) where there is no spread to show."""
    values = values[np.isfinite(values)]
    if values.size == 0 or values.min() == values.max() == 0:
        return 0.0, 1.0
    return float(values.min()), float(values.max())


def _robust_limit(values: np.ndarray) -> float:
    """Return the 99th percentile of the sizes that are not zero, or 1 without any."""
    sizes = np.abs(values[np.isfinite(values) & (values != 0)])
    return float(np.percentile(sizes, 99)) if sizes.size else 1.0


# Colours of grey pixels that the grey scale does not reach.
_BEYOND: dict[str, dict[str, str]] = {"gray": {"under": "#2166AC", "over": "#B2182B"}, "RdBu_r": {}}


def _draw_row(ax: Axes, stack: np.ndarray, *, cmap: str, vmin: float, vmax: float) -> None:
    """Draw images beside each other, a little apart, in the coordinates of one Axes."""
    n, h, w = stack.shape
    gap = max(1, round(w / 12))
    for number, image in enumerate(stack):
        left = number * (w + gap)
        drawn = ax.imshow(
            image,
            cmap=plt.get_cmap(cmap).with_extremes(bad="#9FD3F0", **_BEYOND[cmap]),
            vmin=vmin,
            vmax=vmax,
            extent=(left, left + w, h, 0),
            interpolation="nearest",
        )
        drawn.set_clip_on(False)
    ax.set_xlim(0, n * (w + gap) - gap)
    ax.set_ylim(h, 0)
    ax.set_axis_off()


def _shrink(S: np.ndarray) -> np.ndarray:
    """Return ``|S|`` with at most _MAP_CELLS rows and columns, each cell the maximum of its entries."""
    n, p = S.shape
    tops = np.linspace(0, n, min(n, _MAP_CELLS), endpoint=False).astype(int)
    lefts = np.linspace(0, p, min(p, _MAP_CELLS), endpoint=False).astype(int)
    bottoms = [*tops[1:], n]
    strongest = np.zeros((len(tops), p))
    for cell, top, bottom in zip(strongest, tops, bottoms, strict=True):
        np.fmax.reduce(np.abs(S[top:bottom]), axis=0, out=cell, initial=0)
    return np.maximum.reduceat(strongest, lefts, axis=1)
