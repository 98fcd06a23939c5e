"""What every table and figure of the experiments is made of."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from frpcag.runtime.atomic import atomic_file
from reproduction.paper.run import arrays_file

NONE = "-"


def markdown_table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table."""
    head = list(head)
    lines = [head, ["---"] * len(head), *map(list, rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def percent(value: float | None) -> str:
    """Return a share as a percentage of one decimal, or a dash."""
    return NONE if value is None else f"{100 * value:.1f}"


def cell_arrays(folder: Path, cell: dict) -> dict[str, np.ndarray]:
    """Return the arrays stored with the record of a cell."""
    with np.load(arrays_file(folder, cell), allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def new_figure(n_rows: int, n_columns: int, *, width: float, height: float):
    """Return a figure off screen and its Axes, a size in inches for each of them; Axes are always two-dimensional."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    size = (width * n_columns, height * n_rows)
    return plt.subplots(n_rows, n_columns, figsize=size, layout="constrained", squeeze=False)


def save(figure, file: Path) -> None:
    """Write a figure and forget it."""
    import matplotlib.pyplot as plt

    with atomic_file(file) as partial:
        figure.savefig(partial, dpi=110)
    plt.close(figure)
