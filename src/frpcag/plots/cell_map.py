"""The cell map: which cells of a table are probably wrong, by how much, and in which direction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap, Normalize
from matplotlib.patches import Patch

from frpcag.plots.style import TEXT_SIZE, dress

Array = np.ndarray

COLOURS = "cell map"
# Too low in blues, too high in reds. The faintest step is far from the ground, so that every flagged cell is seen.
_LOW, _HIGH = ("#7FB2DC", "#2C7BBF", "#0B3C7A"), ("#F4A582", "#D6463C", "#7F0F20")
_GROUND, _MISSING = (0.55, 0.55, 0.55, 0.08), (0.55, 0.55, 0.55, 0.45)
_LINES = (0.55, 0.55, 0.55, 0.25)
# The colours end at this percentile of the sizes that are drawn: one gross error does not pale the others.
_LIMIT = 95.0
# Dots of one cell at the resolution of the figure: what is smaller is not seen.
_LEAST_DOTS = 2
# From this many dots on, cells are set apart by lines.
_APART = 6
# Names along one side: all of them up to this many, else those of the worst.
_MOST_NAMES, _WORST = 60, 12
_SWEEPS = 100


def plot_cell_map(
    deviation: Any,
    probability: Any,
    *,
    scale: Any = None,
    threshold: float = 0.5,
    order: str = "similarity",
    feature_names: Sequence[str] | None = None,
    sample_names: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the cells that are probably wrong: rows are samples, columns features; red is too high, blue too low.

    Parameters
    ----------
    deviation : array-like of shape (n_samples, n_features)
        Value minus prediction, ``deviation_`` of a :class:`~frpcag.RobustGraphCleaner`. NaN marks a missing value and
        is drawn grey.
    probability : array-like of shape (n_samples, n_features)
        Probability that each cell is wrong, ``outlier_probability_``.
    scale : array-like of shape (n_features,), optional
        Unit of each feature; its deviations are divided by it. By default they are not divided.
    threshold : float, default=0.5
        Cells with a probability above this are drawn.
    order : {"similarity", "given"}, default="similarity"
        "similarity" puts samples that are wrong in the same features side by side, and features that are wrong in the
        same samples; those without a wrong cell come last.
    feature_names, sample_names : sequence of str, optional
        Labels of the axes: all names if they are legible, otherwise those with the most wrong cells. Numbers by
        default.
    ax : Axes or None, default=None
        Where to draw; a new one by default.

    Returns
    -------
    Axes

    Notes
    -----
    If the table has more cells than the figure has dots, each dot shows the largest deviation of its cells, so a single
    wrong cell stays visible. The colour scale is symmetric and ends at the 95th percentile of the sizes shown.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import numpy as np
    >>> from frpcag.plots import plot_cell_map
    >>> deviation = np.array([[0.1, 5.0], [-3.0, 0.2], [0.0, 0.0]])
    >>> ax = plot_cell_map(deviation, np.abs(deviation) > 1, order="given")
    >>> ax.images[0].get_array().compressed()
    array([ 5., -3.])
    >>> plt.close(ax.figure)
    """
    D, wrong, missing = _checked(deviation, probability, scale, threshold)
    rows, columns = _orders(wrong, order)
    if ax is None:
        n, p = D.shape
        size = (np.clip(0.17 * p + 1.8, 3.5, 7.0), np.clip(0.13 * n + 1.2, 2.6, 7.0))
        ax = plt.subplots(figsize=size, layout="constrained")[1]
    D, wrong, missing = (A[np.ix_(rows, columns)] for A in (D, wrong, missing))
    height, width = _dots(ax)
    tops, lefts = _edges(len(D), height // _LEAST_DOTS), _edges(D.shape[1], width // _LEAST_DOTS)
    shown = _strongest(np.where(wrong, D, 0), tops, lefts)
    flagged = _any(wrong, tops, lefts)
    limit = _limit(shown[flagged])
    extent = (-0.5, D.shape[1] - 0.5, len(D) - 0.5, -0.5)
    image = ax.imshow(
        np.ma.masked_array(shown, ~flagged), cmap=colours(), norm=Normalize(-limit, limit), aspect="auto",
        extent=extent, interpolation="nearest", zorder=1,
    )  # fmt: skip
    ax.set_facecolor(_GROUND)
    gaps = _any(missing, tops, lefts) & ~flagged
    if gaps.any():
        layer = np.zeros((*gaps.shape, 4))
        layer[gaps] = _MISSING
        ax.imshow(layer, aspect="auto", extent=extent, interpolation="nearest", zorder=0.5)
        ax.legend(
            handles=[Patch(facecolor=_MISSING, label="missing")], loc="lower right", bbox_to_anchor=(1.0, 1.0),
            frameon=False, fontsize=TEXT_SIZE - 1, borderpad=0, borderaxespad=0.3, handlelength=1,
        )  # fmt: skip
    _lines_between(ax, D.shape, height, width)
    _bar(ax, image, scaled=scale is not None, more=float(np.abs(D[wrong]).max(initial=0)) > limit)
    word = ", sorted" if order == "similarity" and wrong.any() else ""
    dress(ax, xlabel=f"feature{word}", ylabel=f"sample{word}", grid=False)
    ax.spines[["top", "right"]].set_visible(True)
    _names(ax.xaxis, columns, wrong.sum(0), feature_names, dots=width)
    _names(ax.yaxis, rows, wrong.sum(1), sample_names, dots=height)
    ax.tick_params(axis="x", labelrotation=90)
    ax.tick_params(length=2, labelsize=TEXT_SIZE - 1)
    ax.set(xlim=extent[:2], ylim=extent[2:])
    return ax


def _checked(deviation: Any, probability: Any, scale: Any, threshold: float) -> tuple[Array, Array, Array]:
    """Return the deviations, where they are probably wrong, and where they are missing."""
    D, post = np.asarray(deviation), np.asarray(probability)
    if D.ndim != 2 or D.size == 0:
        raise ValueError(f"deviation has shape {D.shape}; it must be (n_samples, n_features); pass a matrix.")
    if post.shape != D.shape:
        raise ValueError(f"probability has shape {post.shape}, deviation {D.shape}; pass one probability a cell.")
    if scale is not None:
        scale = np.asarray(scale, dtype=float)
        if scale.shape != D.shape[1:] or not (scale > 0).all():
            raise ValueError(f"scale must be {D.shape[1]} numbers > 0, one a feature; its shape is {scale.shape}.")
        D = D / scale
    missing = ~np.isfinite(D)
    return D, (post > threshold) & ~missing, missing


def _orders(wrong: Array, order: str) -> tuple[Array, Array]:
    """Return the rows and columns in the order to draw them."""
    n, p = wrong.shape
    if order == "given":
        return np.arange(n), np.arange(p)
    if order != "similarity":
        raise ValueError(f"order={order!r} must be 'similarity' or 'given'.")
    by_row, by_column = wrong.sum(1), wrong.sum(0)
    rows, columns = np.flatnonzero(by_row), np.flatnonzero(by_column)
    if len(rows) > 1 and len(columns) > 1:
        r, c = _co_clustered(wrong[np.ix_(rows, columns)])
        rows, columns = rows[r], columns[c]
    return _and_the_rest(rows, n), _and_the_rest(columns, p)


def _and_the_rest(first: Array, size: int) -> Array:
    return np.concatenate([first, np.setdiff1d(np.arange(size), first)])


def _co_clustered(wrong: Array) -> tuple[Array, Array]:
    """Return orders that put rows and columns with common flags near each other: Dhillon (2001), by power iteration."""
    import scipy.sparse as sp

    A = sp.csr_array(wrong, dtype=float)
    counts1, counts2 = (np.asarray(A.sum(axis=axis)).ravel() for axis in (1, 0))
    # A row or column of a single flag says little: the mean count is added, or such rows take over the order.
    root1, root2 = (np.sqrt(counts + counts.mean()) for counts in (counts1, counts2))
    A = sp.csr_array(sp.diags_array(1 / root1) @ A @ sp.diags_array(1 / root2))
    first = np.zeros(A.shape[1])
    for start in (root2, np.cos(np.arange(A.shape[1]) * 2.399963)):  # the same starts every time
        v = start
        for _ in range(_SWEEPS):
            v = v - first * (first @ v)
            v = A.T @ (A @ v)
            v /= np.linalg.norm(v) or 1.0
        first = v if not first.any() else first
    u = (A @ v) / root1
    v = v / root2
    # The side with more wrong cells comes first.
    sign = 1.0 if counts1[u < 0].sum() >= counts1[u > 0].sum() else -1.0
    return np.lexsort((-counts1, np.round(sign * u, 9))), np.lexsort((-counts2, np.round(sign * v, 9)))


def _dots(ax: Axes) -> tuple[int, int]:
    """Return the height and width of an Axes at the resolution of its figure; a little less for names and bar."""
    box = ax.get_window_extent()
    return max(int(0.85 * box.height), 8), max(int(0.85 * box.width), 8)


def _edges(size: int, most: int) -> Array:
    """Return where each of at most ``most`` groups of neighbours begins."""
    return np.unique(np.linspace(0, size, min(size, max(most, 1)), endpoint=False).astype(int))


def _strongest(D: Array, tops: Array, lefts: Array) -> Array:
    """Return the entry of the largest size, with its sign, of each group of rows and columns."""
    for axis, starts in ((0, tops), (1, lefts)):
        high, low = np.maximum.reduceat(D, starts, axis=axis), np.minimum.reduceat(D, starts, axis=axis)
        D = np.where(high >= -low, high, low)
    return D


def _any(flags: Array, tops: Array, lefts: Array) -> Array:
    """Say which groups have a flag."""
    return np.logical_or.reduceat(np.logical_or.reduceat(flags, tops, axis=0), lefts, axis=1)


def _limit(shown: Array) -> float:
    return float(np.percentile(np.abs(shown), _LIMIT)) or 1.0 if shown.size else 1.0


def colours() -> Colormap:
    """Return the colours of the map.

    Examples
    --------
    >>> from frpcag.plots.cell_map import colours
    >>> colours().name
    'cell map'
    """
    ends = [*zip((0.0, 0.3, 0.5), _LOW[::-1], strict=True), *zip((0.5, 0.7, 1.0), _HIGH, strict=True)]
    return LinearSegmentedColormap.from_list(COLOURS, ends, N=512).with_extremes(bad=(0, 0, 0, 0))


def _lines_between(ax: Axes, shape: tuple[int, int], height: int, width: int) -> None:
    n, p = shape
    if height / n >= _APART:
        ax.hlines(np.arange(n - 1) + 0.5, -0.5, p - 0.5, colors=[_LINES], linewidths=0.6, zorder=2)
    if width / p >= _APART:
        ax.vlines(np.arange(p - 1) + 0.5, -0.5, n - 0.5, colors=[_LINES], linewidths=0.6, zorder=2)


def _bar(ax: Axes, image: Any, *, scaled: bool, more: bool) -> None:
    bar = ax.figure.colorbar(image, ax=ax, fraction=0.05, pad=0.02, extend="both" if more else "neither")
    bar.set_label("deviation / spread of the feature" if scaled else "deviation", fontsize=TEXT_SIZE)
    bar.ax.tick_params(labelsize=TEXT_SIZE - 1)
    bar.outline.set_visible(False)


def _names(axis: Any, order: Array, counts: Array, names: Sequence[str] | None, *, dots: int) -> None:
    """Write all names of an axis while they are legible, else those with the most wrong cells, a line apart."""
    size = len(order)
    if names is not None and len(names) != size:
        raise ValueError(f"{len(names)} names for {size} {'features' if axis.axis_name == 'x' else 'samples'}.")
    least = 9 * size / dots  # cells that one line of text takes
    if size <= _MOST_NAMES and least <= 1.25:
        at = np.arange(size)
    else:
        chosen: list[int] = []
        for i in np.argsort(-counts, kind="stable")[: 20 * _WORST]:
            if counts[i] and len(chosen) < _WORST and all(abs(i - other) >= least for other in chosen):
                chosen.append(int(i))
        at = np.array(sorted(chosen), dtype=int)
    axis.set_ticks(at, [str(order[i]) if names is None else _short(names[order[i]]) for i in at])


def _short(name: Any) -> str:
    text = str(name).replace("$", r"\$")
    return text if len(text) <= 18 else f"{text[:17]}…"
