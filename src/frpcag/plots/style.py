"""One look for every figure: colours safe for colour-blind readers, text legible at column width."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

# Okabe and Ito (2008) without the yellow, which is too pale for points on white; then wine, olive and indigo
# of Tol (2021), for ten colours in all.
COLORS = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000"),
    *("#882255", "#999933", "#332288"),
)
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*")
GREY = "#8C8C8C"

# Inches: one column of a two-column page.
COLUMN_WIDTH = 3.5
TEXT_SIZE = 8


def axes_or_new(ax: Axes | None, *, height: float = 2.6) -> Axes:
    """Return ``ax``, or the Axes of a new figure one column wide.

    Parameters
    ----------
    ax : Axes or None
        Returned as it is, unless None.
    height : float, default=2.6
        Height of a new figure, in inches.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from frpcag.plots.style import axes_or_new
    >>> ax = axes_or_new(None)
    >>> axes_or_new(ax) is ax
    True
    >>> plt.close(ax.figure)
    """
    if ax is not None:
        return ax
    _, ax = plt.subplots(figsize=(COLUMN_WIDTH, height), layout="constrained")
    return ax


def look(number: int) -> dict[str, Any]:
    """Return a colour and a marker, which change together: each helps where the other fails.

    Parameters
    ----------
    number : int
        Of the curve or cluster, from 0.

    Returns
    -------
    dict
        Arguments of ``Axes.plot`` and ``Axes.scatter``.

    Examples
    --------
    >>> from frpcag.plots.style import look
    >>> look(1)
    {'color': '#D55E00', 'marker': '^'}
    """
    return {"color": COLORS[number % len(COLORS)], "marker": MARKERS[number % len(MARKERS)]}


def next_look(ax: Axes) -> dict[str, Any]:
    """Return the colour and marker for one more line on ``ax``.

    Parameters
    ----------
    ax : Axes
        Where the line will be drawn.

    Returns
    -------
    dict
        Arguments of ``Axes.plot``.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from frpcag.plots.style import axes_or_new, next_look
    >>> ax = axes_or_new(None)
    >>> next_look(ax)
    {'color': '#0072B2', 'marker': 'o'}
    >>> plt.close(ax.figure)
    """
    return look(len(ax.lines))


def dress(ax: Axes, *, xlabel: str, ylabel: str, grid: bool = True) -> Axes:
    """Name the axes, set the text sizes, drop the frame lines that carry nothing.

    Parameters
    ----------
    ax : Axes
        What to dress.
    xlabel, ylabel : str
        Names of the two axes.
    grid : bool, default=True
        Draw a faint grid behind the data.

    Returns
    -------
    Axes
        ``ax`` itself.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from frpcag.plots.style import axes_or_new, dress
    >>> dress(axes_or_new(None), xlabel="step", ylabel="gap").get_xlabel()
    'step'
    >>> plt.close()
    """
    ax.set_xlabel(xlabel, fontsize=TEXT_SIZE)
    ax.set_ylabel(ylabel, fontsize=TEXT_SIZE)
    ax.tick_params(which="both", labelsize=TEXT_SIZE)
    ax.spines[["top", "right"]].set_visible(False)
    if grid:
        ax.grid(True, which="major", color="0.9", linewidth=0.6)
        ax.set_axisbelow(True)
    return ax
