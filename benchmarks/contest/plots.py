"""Contenders side by side: score against time, and time against size, each named without a legend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter

from frpcag.plots.style import TEXT_SIZE, axes_or_new, dress, look

# Share of the height that a label needs.
_LINE = 0.085


def plot_score_against_time(
    seconds: Any,
    scores: Any,
    names: Sequence[str],
    *,
    numbers: Sequence[int] | None = None,
    ylabel: str,
    ax: Axes | None = None,
) -> Axes:
    """Draw one point for each contender, its name on the right: left is faster, low is better.

    Parameters
    ----------
    seconds : array-like of shape (m,)
        On a logarithmic scale.
    scores : array-like of shape (m,)
        The smaller the better, from 0.
    names : sequence of str
        Of the contenders.
    numbers : sequence of int, optional
        Of their colours and markers; 0, 1, ... by default.
    ylabel : str
        Name of the score.
    ax : Axes or None, default=None
        Where to draw; a new one by default.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from contest.plots import plot_score_against_time
    >>> ax = plot_score_against_time([0.1, 10.0], [0.3, 0.2], ["PCA", "other"], ylabel="error")
    >>> [text.get_text() for text in ax.texts]
    ['PCA', 'other']
    >>> plt.close(ax.figure)
    """
    x, y = np.asarray(seconds, dtype=float), np.asarray(scores, dtype=float)
    if x.shape != y.shape or x.shape != (len(names),):
        raise ValueError(
            f"seconds and scores have shapes {x.shape} and {y.shape}; pass one for each of {len(names)} names."
        )
    ax = axes_or_new(ax)
    ax.set_xscale("log")
    top = 1.12 * (y.max() or 1.0) if len(y) else 1.0
    ax.set_ylim(0, top)
    if len(x):
        ax.set_xlim(x.min() / 3, x.max() * 3)
    for number, xi, yi in zip(numbers or range(len(x)), x, y, strict=True):
        ax.plot([xi], [yi], ms=6, ls="none", **look(number))
    _name_on_the_right(ax, names, np.column_stack([x, y]))
    return dress(ax, xlabel="seconds", ylabel=ylabel)


def plot_growth(
    lines: Mapping[str, tuple[Any, Any]],
    *,
    numbers: Mapping[str, int] | None = None,
    xlabel: str,
    ylabel: str,
    ax: Axes | None = None,
) -> Axes:
    """Draw one line for each contender on two logarithmic scales, its name on the right.

    Parameters
    ----------
    lines : mapping of str to (array-like of shape (m,), array-like of shape (m,))
        Positive numbers of each contender, such as samples and seconds.
    numbers : mapping of str to int, optional
        Of their colours and markers; 0, 1, ... by default.
    xlabel, ylabel : str
        Names of the two axes.
    ax : Axes or None, default=None
        Where to draw; a new one by default.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from contest.plots import plot_growth
    >>> ax = plot_growth({"PCA": ([1000, 2000], [0.5, 1.0])}, xlabel="samples", ylabel="seconds")
    >>> ax.get_xscale(), ax.texts[0].get_text()
    ('log', 'PCA')
    >>> plt.close(ax.figure)
    """
    ax = axes_or_new(ax)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ends = []
    for number, (name, (x, y)) in enumerate(lines.items()):
        x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        if x.shape != y.shape or x.ndim != 1 or not x.size:
            raise ValueError(
                f"{name!r} has numbers of shapes {x.shape} and {y.shape}; pass as many of both, one at least."
            )
        ax.plot(x, y, ms=4, lw=1.2, **look(number if numbers is None else numbers[name]))
        ends.append((x[-1], y[-1]))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(NullFormatter())
    _name_on_the_right(ax, list(lines), np.reshape(ends, (-1, 2)))
    return dress(ax, xlabel=xlabel, ylabel=ylabel)


def _name_on_the_right(ax: Axes, names: Sequence[str], points: np.ndarray) -> None:
    """Write names in a column right of the Axes, as near to the heights of their points as they fit, and join them."""
    ax.set_xlim(ax.get_xlim())  # what follows is placed in shares of the Axes as they are now
    ax.set_ylim(ax.get_ylim())
    if not len(names):
        return
    heights = ax.transAxes.inverted().transform(ax.transData.transform(points))[:, 1]
    for name, line, point, place in zip(names, ax.lines, points, _spread(heights), strict=True):
        ax.annotate(
            name,
            tuple(point),
            xytext=(1.03, place),
            textcoords="axes fraction",
            va="center",
            fontsize=TEXT_SIZE - 1,
            color=line.get_color(),
            annotation_clip=False,
            arrowprops={
                **{"arrowstyle": "-", "color": line.get_color(), "lw": 0.5, "alpha": 0.5},
                **{"relpos": (0, 0.5), "shrinkA": 0, "shrinkB": 3},
            },
        )


def _spread(heights: np.ndarray) -> np.ndarray:
    """Return heights in [0, 1] moved apart until labels of one line do not touch."""
    order = np.argsort(heights)
    places = np.clip(heights, _LINE / 2, 1 - _LINE / 2)
    for _ in range(200):
        gaps = np.diff(places[order])
        push = np.maximum(_LINE - gaps, 0) / 2
        if not (push > 1e-4).any():
            break
        places[order[:-1]] -= push
        places[order[1:]] += push
        places = np.clip(places, _LINE / 2, 1 - _LINE / 2)
    return places
