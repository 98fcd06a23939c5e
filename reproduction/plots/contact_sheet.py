"""Frames of a video in rows, each with its results beside it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import FigureBase
from matplotlib.layout_engine import ConstrainedLayoutEngine

from frpcag.plots.style import COLUMN_WIDTH, TEXT_SIZE


def plot_contact_sheet(
    columns: Mapping[str, Any],
    *,
    labels: Collection[str] = (),
    figure: FigureBase | None = None,
) -> FigureBase:
    """Draw frames of a video in rows, each with its results beside it.

    Parameters
    ----------
    columns : mapping of str to array-like of shape (n_frames, h, w) or (n_frames, h, w, 3)
        Title and frames of each column, such as ``{"frame": X, "background": U, "mask": mask}``. uint8 and bool are
        drawn as they are; other numbers on the range of their column.
    labels : collection of str, default=()
        Text to the left of each frame, such as its number.
    figure : Figure, SubFigure or None, default=None
        Where to draw; a new one by default.

    Returns
    -------
    Figure or SubFigure
        With one Axes for each frame and column.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import numpy as np
    >>> from reproduction.plots import plot_contact_sheet
    >>> frames = np.zeros((2, 6, 8), np.uint8)
    >>> figure = plot_contact_sheet({"frame": frames, "mask": frames > 0}, labels=["7", "9"])
    >>> [ax.get_title() for ax in figure.axes], [ax.get_ylabel() for ax in figure.axes]
    (['frame', 'mask', '', ''], ['7', '', '9', ''])
    >>> plt.close(figure)
    """
    stacks = {name: _as_pictures(name, values) for name, values in columns.items()}
    if len({stack.shape[:3] for stack in stacks.values()}) != 1:
        shapes = ", ".join(f"{name!r} {stack.shape}" for name, stack in stacks.items()) or "nothing"
        raise ValueError(f"columns holds {shapes}; pass the same number of frames of one size in each.")
    n, h, w = next(iter(stacks.values())).shape[:3]
    if figure is None:
        width = COLUMN_WIDTH * 2
        height = width / len(stacks) * h / w * n + 0.2
        layout = ConstrainedLayoutEngine(h_pad=0.01, w_pad=0.01, hspace=0, wspace=0)
        figure = plt.figure(figsize=(width, height), layout=layout)
    axes = figure.subplots(n, len(stacks), squeeze=False)
    for column, (name, stack) in enumerate(stacks.items()):
        axes[0, column].set_title(name, fontsize=TEXT_SIZE, pad=2)
        for row, picture in enumerate(stack):
            ax = axes[row, column]
            ax.imshow(picture, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
    for ax, label in zip(axes[:, 0], labels, strict=False):
        ax.set_ylabel(label, fontsize=TEXT_SIZE, labelpad=2)
    return figure


def _as_pictures(name: str, values: Any) -> np.ndarray:
    """Return frames as uint8."""
    values = np.asarray(values)
    if values.ndim not in (3, 4) or 0 in values.shape:
        raise ValueError(f"columns[{name!r}] has shape {values.shape}; pass (n_frames, h, w) or (n_frames, h, w, 3).")
    if values.dtype == np.uint8:
        return values
    if values.dtype == np.bool_:
        return values.astype(np.uint8) * np.uint8(255)
    low, high = (float(values.min()), float(values.max()))
    return np.rint(np.clip((values - low) / (high - low or 1.0), 0, 1) * 255).astype(np.uint8)
