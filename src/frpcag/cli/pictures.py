"""Figures of a run, drawn by frpcag.plots and saved without a screen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from frpcag.report.figures import fonts_as_they_are

# Dots per inch: a figure of one column is 700 dots wide.
_DPI = 200


def save_cell_map(path: Path, cells, **names: Any) -> None:
    """Draw the cell map of what a cleaner says of every cell."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from frpcag.plots import plot_cell_map

    figure: Any = plot_cell_map(cells.deviation, cells.probability, scale=cells.scale, **names).figure
    with fonts_as_they_are():
        figure.savefig(path, dpi=_DPI, metadata={"Software": None})
    plt.close(figure)
